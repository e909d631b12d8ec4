"""Poisson counts with Gamma priors."""

from bayesgen.families.conjugate.gamma_poisson.family import GammaPoisson, PoissonStats

__all__ = ["GammaPoisson", "PoissonStats"]
