"""Categorical features that depend on each other along forests, averaged over all of them."""

from bayesgen.families.conjugate.dirichlet_forest.family import DirichletForest
from bayesgen.families.conjugate.dirichlet_forest.statistics import ForestStats

__all__ = ["DirichletForest", "ForestStats"]
