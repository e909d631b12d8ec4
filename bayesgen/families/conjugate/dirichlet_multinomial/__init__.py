"""Word counts with Dirichlet priors."""

from bayesgen.families.conjugate.dirichlet_multinomial.family import (
    DirichletMultinomial,
    MultinomialStats,
)

__all__ = ["DirichletMultinomial", "MultinomialStats"]
