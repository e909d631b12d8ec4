"""Sequences of tokens: an n-gram model per class with Dirichlet priors."""

from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov
from bayesgen.families.conjugate.dirichlet_markov.statistics import MarkovStats

__all__ = ["DirichletMarkov", "MarkovStats"]
