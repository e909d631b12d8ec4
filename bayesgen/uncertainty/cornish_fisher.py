r"""Quantiles from four cumulants: Cornish and Fisher's expansion.

.. math:: w = z + (z^2-1)\frac{\gamma_1}{6} + (z^3-3z)\frac{\gamma_2}{24}
              - (2z^3-5z)\frac{\gamma_1^2}{36}

Source: Cornish and Fisher (1938), Moments and cumulants in the specification of distributions.
"""

import numpy as np
from scipy.special import ndtri

from bayesgen.numerics import Array
from bayesgen.uncertainty.log_odds import Cumulants

# where the rule holds the percentile is right to .002 (MATH.md C; tests/uncertainty)
MAX_SKEWNESS, MAX_KURTOSIS = 0.6, 1.0


def quantile(k: Cumulants, p: Array) -> Array:
    """(N, Q) quantiles at the probabilities p, (Q,) or (N, Q)."""
    z = ndtri(p)
    g1, g2 = k.skewness[:, None], k.kurtosis[:, None]
    w = z + (z * z - 1) * g1 / 6 + (z**3 - 3 * z) * g2 / 24 - (2 * z**3 - 5 * z) * g1**2 / 36
    return k.mean[:, None] + k.sd[:, None] * w


def applies(k: Cumulants) -> Array:
    """(N,) whether the expansion is good to .002 in percentile between 2.5 % and 97.5 %."""
    small = (np.abs(k.skewness) <= MAX_SKEWNESS) & (np.abs(k.kurtosis) <= MAX_KURTOSIS)
    return small & (k.error < 0.01)
