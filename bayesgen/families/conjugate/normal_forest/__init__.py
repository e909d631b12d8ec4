"""Real features that depend on each other along forests, averaged over all of them."""

from bayesgen.families.conjugate.normal_forest.family import NormalForest

__all__ = ["NormalForest"]
