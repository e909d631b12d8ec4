"""Sequences of tokens: an n-gram model that interpolates between orders."""

from bayesgen.families.approximate.interpolated_markov.family import InterpolatedMarkov

__all__ = ["InterpolatedMarkov"]
