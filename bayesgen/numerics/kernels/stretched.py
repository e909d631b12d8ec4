"""Radii of Normal vectors that were stretched by a function of their radius."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

_STEPS = 7  # Newton's: after six the error is that of rounding, for any arguments


@compiled
def squared_radius(square: Array, bend: Array, size: Array) -> Array:  # pragma: no cover - compiled
    r"""(n,) the y that solve :math:`y e^{2 \text{asinh}(k (y - m))} = Q`.

    With r^2 = y and q^2 = Q: :math:`2kq r^3 + r^2 - 2kmq r - q^2 = 0`, which has one positive root.
    The left side is convex beyond it, and Newton's steps from above fall to the root.

    Parameters
    ----------
    square, bend, size : (n,)
        Q >= 0, k >= 0 and m > 0.
    """
    q, r = np.sqrt(square), np.empty(len(square))
    for i in range(len(r)):  # bounds from above, the last two without a term of the equation
        root, product = np.sqrt(size[i]), bend[i] * size[i]
        first = min(max(q[i], root), q[i] * (product + np.sqrt(product * product + 1)))
        r[i] = min(first, root + np.cbrt(q[i] / (2 * bend[i])))
    for _ in range(_STEPS):
        for i in range(len(r)):
            a = 2 * bend[i] * q[i]
            above = (2 * a * r[i] + 1) * r[i] * r[i] + q[i] * q[i]
            r[i] = above / ((3 * a * r[i] + 2) * r[i] - a * size[i])
    for i in range(len(r)):
        r[i] = r[i] * r[i] if q[i] > 0 else 0.0
    return r
