"""Each column on its own: the margins of a Normal-inverse-Wishart are Normal-inverse-gamma.

A diagonal cell of an inverse Wishart is an inverse chi-squared with D - 1 degrees less.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.conjugate.normal_inverse_gamma import GaussianStats, NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def of_family(f: "NormalInverseWishart") -> NormalInverseGamma:
    """Independent columns with the margins of `f`."""
    nu = (f.nu - (f.mu.shape[1] - 1))[:, None]
    psi = np.diagonal(f.psi, axis1=1, axis2=2)
    variance: Any = "tied" if f.shared else "class"
    kappa = np.broadcast_to(f.kappa[:, None], f.mu.shape)
    nu = np.broadcast_to(nu, psi.shape)
    return NormalInverseGamma(f.mu, kappa, nu, psi / nu, f.shift, f.ignored, variance)


def of_stats(stats: ScatterStats) -> GaussianStats:
    """Counts, means and scatters of the columns."""
    scatter = np.diagonal(stats.scatter, axis1=1, axis2=2)
    if stats.shared:  # of all classes: only the sum is looked at
        scatter = scatter * (np.arange(len(stats.n)) == 0)[:, None]
    n = np.broadcast_to(stats.n[:, None], stats.mean.shape)
    return GaussianStats(n, stats.mean, np.array(scatter), stats.shift)
