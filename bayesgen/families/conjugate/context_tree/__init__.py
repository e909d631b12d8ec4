"""Sequences of tokens: an average over variable-order context trees, with Dirichlet priors."""

from bayesgen.families.conjugate.context_tree.family import ContextTree

__all__ = ["ContextTree"]
