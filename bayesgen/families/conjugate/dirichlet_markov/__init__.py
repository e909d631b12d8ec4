"""Sequences of tokens: an n-gram model per class with Dirichlet priors."""

from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov
from bayesgen.families.shared.markov_stats import MarkovStats

__all__ = ["DirichletMarkov", "MarkovStats"]
