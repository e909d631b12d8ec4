"""Differences of log-gammas for compiled loops, one number at a time; the forms of `numerics`."""

import math

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

_STIRLING_FROM = 32.0  # as in `numerics`
_SOME = 1 << 14
LOG_FACTORIAL = np.array([math.lgamma(k + 1.0) for k in range(256)])


def largest_count(counts: Array) -> int:
    """About the largest of some counts, of which tables need not hold more: that of 16 000 cells.

    They are evenly spread, as the rows may be sorted.
    """
    some = counts[:: max(1, counts.size // _SOME)]
    return int(np.nan_to_num(np.fmax.reduce(some, axis=None, initial=0)))


@compiled
def stirling_tail(z: float) -> float:  # pragma: no cover - compiled
    """As `numerics`: what Stirling's formula leaves of log Gamma(z), z >= 32."""
    r = 1.0 / z
    w = r * r
    return r * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680)))


@compiled
def log_gamma_difference(a: float, n: float) -> float:  # pragma: no cover - compiled
    """log Gamma(a + n) - log Gamma(a) for n >= 0, without cancellation."""
    if a < _STIRLING_FROM:
        return math.lgamma(a + n) - math.lgamma(a)
    total = a + n
    rest = n * math.log(a) + (total - 0.5) * math.log1p(n / a) - n
    return rest + stirling_tail(total) - stirling_tail(a)


@compiled
def log_rising_table(a: Array, most: int) -> Array:  # pragma: no cover - compiled
    """(K, most + 1, C) log a (a + 1) .. (a + n - 1) for n = 0 .. most and a (K, C)."""
    out = np.zeros((len(a), most + 1, a.shape[1]))
    for k in range(len(a)):
        for n in range(1, most + 1):
            for c in range(a.shape[1]):
                out[k, n, c] = out[k, n - 1, c] + math.log(a[k, c] + (n - 1))
    return out


@compiled
def log_factorial(n: float) -> float:  # pragma: no cover - compiled
    """log n! for n >= 0, by look-up for small whole numbers."""
    if n < len(LOG_FACTORIAL) and n == int(n):
        return float(LOG_FACTORIAL[int(n)])
    return math.lgamma(n + 1.0)


@compiled
def _deviance(x: float, mean: float) -> float:  # pragma: no cover - compiled
    """x log(x/mean) - x + mean for x > 0, mean > 0; accurate when both are huge and close."""
    e = (x - mean) / mean
    if abs(e) < 0.5:
        return mean * ((1.0 + e) * math.log1p(e) - e)
    return x * math.log(x / mean) - x + mean


@compiled
def log_negative_binomial(x: float, a: float, b: float) -> float:  # pragma: no cover - compiled
    """Log-mass of a Poisson count whose rate is Gamma(a, rate b)."""
    tail = -a * math.log1p(1.0 / b) - x * math.log1p(b)
    if x < _STIRLING_FROM:
        return log_gamma_difference(a, x) - log_factorial(x) + tail
    if a < _STIRLING_FROM:
        return log_gamma_difference(x + 1.0, a - 1.0) - math.lgamma(a) + tail
    n = a + x
    return (
        stirling_tail(n)
        - stirling_tail(x)
        - stirling_tail(a)
        - _deviance(x, n / (b + 1.0))
        - _deviance(a, n * (b / (b + 1.0)))
        + 0.5 * (math.log(a / n) - math.log(2.0 * math.pi * x))
    )
