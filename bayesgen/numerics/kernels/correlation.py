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
