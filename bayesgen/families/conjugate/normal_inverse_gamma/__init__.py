"""Normal features with normal-inverse-gamma priors."""

from bayesgen.families.conjugate.normal_inverse_gamma.family import (
    GaussianStats,
    NormalInverseGamma,
)

__all__ = ["GaussianStats", "NormalInverseGamma"]
