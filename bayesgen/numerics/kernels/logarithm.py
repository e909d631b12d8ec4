"""log1p and exp for loops over arrays: without branches and calls, so that they run many at a time.

Written for the bits of float64, after fdlibm (Sun Microsystems, 1993: ``s_log1p.c``, ``e_exp.c``).
They are wrong where sums are reordered, so that no caller's ``fastmath`` may reach them.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


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
