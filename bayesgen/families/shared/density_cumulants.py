r"""The first five cumulants of class log-densities: derivatives of their cgfs at t = 0 and t = 1.

At t = 1 they are those of the posterior that has also seen the row, with the class as its label.
Each function returns an array (5, ...), the derivative of order r = 1 .. 5 at position r - 1.
"""

from typing import Any

import numpy as np
from scipy.special import polygamma, psi

from bayesgen.numerics.special import Array

ORDERS = np.arange(1.0, 6.0)
_MANY = 1 << 12


def by_order(values: Array, like: Array) -> Array:
    """(5,) as (5, 1, ..., 1), to go with arrays (5, *like.shape)."""
    return values.reshape(-1, *[1] * np.ndim(like))


def log_gamma_derivatives(a: Any, n: Any = 1.0, t: float = 0.0) -> Array:
    """Of log Gamma(a + t n): n^r psi^(r-1)(a + t n)."""
    a, n = np.broadcast_arrays(np.asarray(a, dtype=np.float64), n)
    at = a + t * n
    if at.size < _MANY:
        psis = _polygammas(at)
    else:  # of counts many are equal, and a sort takes a tenth of the time
        values, place = np.unique(at, return_inverse=True)
        psis = _polygammas(values)[:, place.reshape(at.shape)]
    out: Array = psis * n ** by_order(ORDERS, at)
    return out


def _polygammas(at: Array) -> Array:
    return np.stack([psi(at), *(polygamma(r, at) for r in range(1, 5))])


def log1p_derivatives(z: Any, t: float = 0.0) -> Array:
    """Of log(1 + t z)."""
    z = np.asarray(z)
    power = z / (1 + t * z) if t else z
    out = np.empty((5, *z.shape))
    out[0] = power
    for r in range(1, 5):
        np.multiply(out[r - 1], -r * power, out=out[r])
    return out


def product_derivatives(level: Any, slope: Any, log: Array, derivatives: Array) -> Array:
    """Of (level + t slope) log f(t) where the first factor is `level` at this t.

    `log` is log f(t), `derivatives` (5, ...) those of log f.
    """
    before = np.concatenate([log[None], derivatives[:-1]])
    out: Array = level * derivatives + by_order(ORDERS, log) * slope * before
    return out


def student_derivatives(z: Array, nu: Any, m: Any, t: float) -> Array:
    """Of -(nu + t m)/2 log(1 + t z): what a squared distance adds to a group of m cells."""
    return product_derivatives(-(nu + t * m) / 2, -m / 2, np.log1p(t * z), log1p_derivatives(z, t))


def student_table(nu: Array, ss: Array, k: Array, m: Any, t: float) -> Array:
    """(5, ...) of what the density of a group of m cells has that does not depend on its values."""
    out = log_gamma_derivatives(nu / 2, m / 2, t) - student_derivatives(k, nu, m, t)
    out -= m / 2 * log1p_derivatives(k, t)
    out[0] -= m / 2 * np.log(np.pi * ss)
    return out
