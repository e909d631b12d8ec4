"""Sequences of tokens: an n-gram model per class with Dirichlet priors."""

from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov, MarkovStats

__all__ = ["DirichletMarkov", "MarkovStats"]
