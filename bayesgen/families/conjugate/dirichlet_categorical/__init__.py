"""Categorical features with Dirichlet priors."""

from bayesgen.families.conjugate.dirichlet_categorical.family import (
    CategoricalStats,
    DirichletCategorical,
)

__all__ = ["CategoricalStats", "DirichletCategorical"]
