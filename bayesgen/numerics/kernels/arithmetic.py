"""log1p and exp for loops over arrays: without branches and calls, so that they run many at a time.

Written for the bits of float64, after fdlibm (Sun Microsystems, 1993: ``s_log1p.c``, ``e_exp.c``).
They are wrong where sums are reordered, so that no caller's ``fastmath`` may reach them.
"""

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from bayesgen.numerics.kernels.compiling import compiled


def _reread(given: Any, result: Any, bits: Any) -> Any:
    """A function of the language of numba: the same 64 bits, read as another type."""

    def typed(typing_context: Any, x: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], bits)

        return result(given), code

    return intrinsic(typed)


_bits = _reread(types.float64, types.int64, ir.IntType(64))
_number = _reread(types.int64, types.float64, ir.DoubleType())


@numba.njit(error_model="numpy", forceinline=True, fastmath=False)
def log1p(x: float) -> float:  # pragma: no cover - compiled
    """log(1 + x) for 0 <= x <= 1e300, within 2 units in the last place."""
    y = 1.0 + x
    k = (_bits(y) - 0x3FE6A09E667F3BCD) >> 52  # y = 2^k (1 + f), 1 + f in sqrt(1/2) .. sqrt(2)
    f = _number(_bits(y) - (k << 52)) - 1.0
    lost = x - (y - 1.0)  # what rounding took from y
    once = 1.0 / (y * (2.0 + f))  # one division instead of two
    s = f * y * once
    z = s * s
    w = z * z
    odd = z * (
        0.6666666666666735130
        + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    )
    even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    half = 0.5 * f * f
    n = float(k)
    rest = s * (half + odd + even) + (n * 1.90821492927058770002e-10 + lost * (once * (2.0 + f)))
    return n * 6.93147180369123816490e-01 - ((half - rest) - f)


@numba.njit(error_model="numpy", forceinline=True, fastmath=False)
def exp(x: float) -> float:  # pragma: no cover - compiled
    """exp(x) for x <= 700, within 2 units in the last place; 0 below -746."""
    small = x < -746.0
    x = -746.0 if small else x
    shifted = x * 1.44269504088896338700 + 6755399441055744.0  # 1.5 * 2^52: rounds to a whole k
    k = _bits(shifted) - 0x4338000000000000
    n = shifted - 6755399441055744.0
    high = x - n * 6.93147180369123816490e-01
    low = n * 1.90821492927058770002e-10
    r = high - low
    t = r * r
    c = r - t * (
        1.66666666666666019037e-01
        + t
        * (
            -2.77777777770155933842e-03
            + t
            * (
                6.61375632143793436117e-05
                + t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08)
            )
        )
    )
    y = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    half = k >> 1  # in two steps: 2^k itself may be below the smallest normal number
    y = y * _number((half + 1023) << 52) * _number((k - half + 1023) << 52)
    return 0.0 if small else y


# ------------------------------------------------------------------------------------------------
# Differences of log-gammas for compiled loops, one number at a time; the forms of `numerics`.

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
