"""Word counts with a logistic-normal distribution of the proportions."""

from bayesgen.families.sampled.logistic_normal.family import LogisticNormal

__all__ = ["LogisticNormal"]
