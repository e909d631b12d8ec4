"""Several Gaussians per class."""

from bayesgen.families.sampled.gaussian_mixture.family import GaussianMixture

__all__ = ["GaussianMixture"]
