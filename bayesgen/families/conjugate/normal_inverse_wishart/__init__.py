"""Normal rows, one covariance per class or one in common: normal-inverse-Wishart."""

from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart

__all__ = ["NormalInverseWishart"]
