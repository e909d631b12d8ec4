"""Normal features with normal-inverse-gamma priors."""

from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_gamma.statistics import GaussianStats

__all__ = ["GaussianStats", "NormalInverseGamma"]
