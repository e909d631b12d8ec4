"""Correlation matrices from partial correlations, and the gradient."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray


@compiled
def _factor(half: Array, n_axes: int) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """Cholesky factor L, and the shares c of L_ij = r_ij c_ij, of one matrix."""
    L, share = np.zeros((n_axes, n_axes)), np.zeros((n_axes, n_axes))
    at = 0
    for i in range(n_axes):
        left = 1.0
        for j in range(i):
            h = half[at]
            share[i, j] = left
            L[i, j] = (2 * h - 1) * left
            left *= 2 * np.sqrt(h * (1 - h))
            at += 1
        L[i, i] = left
    return L, share


@compiled
def correlation(half: Array) -> Array:  # pragma: no cover - compiled
    """(G, D, D) correlation matrices of half (G, D (D - 1)/2), (1 + r)/2 row by row."""
    n_axes = int(0.5 + np.sqrt(0.25 + 2 * half.shape[1]) + 1e-6)
    out = np.empty((len(half), n_axes, n_axes))
    for g in range(len(half)):
        L, _ = _factor(half[g], n_axes)
        for i in range(n_axes):
            out[g, i, i] = 1.0
            for j in range(i):
                total = 0.0
                for k in range(j + 1):
                    total += L[i, k] * L[j, k]
                out[g, i, j] = out[g, j, i] = total
    return out


@compiled
def correlation_gradient(half: Array, weight: Array) -> Array:  # pragma: no cover - compiled
    """Gradient in half of the sum of ``weight * correlation(half)``, weight (G, D, D)."""
    n_axes = weight.shape[1]
    out = np.empty(half.shape)
    for g in range(len(half)):
        L, share = _factor(half[g], n_axes)
        for i in range(n_axes):
            first = i * (i - 1) // 2
            later = 0.0  # sum of d_ik L_ik over k > j
            for j in range(i, -1, -1):
                d = 0.0  # with respect to L_ij
                for k in range(j, n_axes):
                    d += (weight[g, i, k] + weight[g, k, i]) * L[k, j]
                if j < i:
                    h = half[g, first + j]
                    out[g, first + j] = 2 * d * share[i, j] - later * (2 * h - 1) / (
                        2 * h * (1 - h)
                    )
                later += d * L[i, j]
    return out


@compiled
def correlations(half: Array) -> Array:  # pragma: no cover - compiled
    """`correlation` of half (..., D (D - 1)/2)."""
    out = correlation(np.ascontiguousarray(half).reshape((-1, half.shape[-1])))
    return out.reshape((*half.shape[:-1], *out.shape[1:]))


@compiled
def correlations_gradient(half: Array, weight: Array) -> Array:  # pragma: no cover - compiled
    """`correlation_gradient` of half (..., D (D - 1)/2)."""
    flat = np.ascontiguousarray(half).reshape((-1, half.shape[-1]))
    each = np.ascontiguousarray(weight).reshape((-1, *weight.shape[-2:]))
    return correlation_gradient(flat, each).reshape(half.shape)


# ------------------------------------------------------------------------------------------------
# Radii of Normal vectors that were stretched by a function of their radius.

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
