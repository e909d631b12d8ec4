"""Categorical features that all depend on the same one or two of them."""

from bayesgen.families.conjugate.dirichlet_super_parents.family import DirichletSuperParents
from bayesgen.families.conjugate.dirichlet_super_parents.statistics import SuperParentStats

__all__ = ["DirichletSuperParents", "SuperParentStats"]
