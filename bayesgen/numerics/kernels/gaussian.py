"""Normal densities of rows with missing cells, and their gradients, compiled."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled, compiled_sums

Array = np.ndarray


@compiled
def _factor(sigma: Array, columns: Array) -> tuple[Array, float]:  # pragma: no cover - compiled
    """Lower Cholesky factor of some rows and columns, and half the log determinant.

    NaN where the matrix is not positive definite.
    """
    d = len(columns)
    L = np.zeros((d, d))
    half = 0.0
    for i in range(d):
        for j in range(i + 1):
            rest = sigma[columns[i], columns[j]]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(rest) if i == j else rest / L[j, j]
        half += np.log(L[i, i])
    return L, half


@compiled
def _forward(L: Array, z: Array, i: int) -> None:  # pragma: no cover - compiled
    """Row i of the solution of L z = b, in place: z (D, n) holds b from row i on."""
    for k in range(i):
        for n in range(z.shape[1]):
            z[i, n] -= L[i, k] * z[k, n]
    for n in range(z.shape[1]):
        z[i, n] /= L[i, i]


@compiled
def _backward(L: Array, z: Array, i: int) -> None:  # pragma: no cover - compiled
    """Row i of the solution of L^T a = z, in place: z holds a from row i + 1 on."""
    for k in range(i + 1, len(L)):
        for n in range(z.shape[1]):
            z[i, n] -= L[k, i] * z[k, n]
    for n in range(z.shape[1]):
        z[i, n] /= L[i, i]


@compiled_sums
def _dot(a: Array, b: Array) -> float:  # pragma: no cover - compiled
    total = 0.0
    for n in range(len(a)):
        total += a[n] * b[n]
    return total


@compiled
def observed_normal(  # pragma: no cover - compiled
    x: Array, order: Array, first: Array, seen: Array, mu: Array, sigma: Array
) -> Array:
    """(N, C) Normal log densities of the observed cells of each row.

    Parameters
    ----------
    x : (N, D), any number in a cell that is missing
    order : int (N,), first : int (P + 1,)
        ``order[first[p] : first[p + 1]]`` are the rows with pattern p.
    seen : int (P, D), 1 where pattern p is observed
    mu : (C, D)
    sigma : (C, D, D), or (1, D, D) for all classes
    """
    n_classes = len(mu)
    shared = len(sigma) == 1
    out = np.zeros((len(x), n_classes))
    for p in range(len(seen)):
        columns = np.flatnonzero(seen[p])
        d = len(columns)
        rows = order[first[p] : first[p + 1]]
        z = np.empty((d, len(rows)))
        for c in range(n_classes):
            if c == 0 or not shared:
                L, half = _factor(sigma[c], columns)
            top = -half - 0.5 * d * np.log(2 * np.pi)
            q = np.zeros(len(rows))
            for i in range(d):
                for n in range(len(rows)):
                    z[i, n] = x[rows[n], columns[i]] - mu[c, columns[i]]
                _forward(L, z, i)
                for n in range(len(rows)):
                    q[n] += z[i, n] * z[i, n]
            for n in range(len(rows)):
                out[rows[n], c] = top - 0.5 * q[n]
    return out


@compiled
def observed_normal_gradient(  # pragma: no cover - compiled
    x: Array, order: Array, first: Array, seen: Array, mu: Array, sigma: Array, weight: Array
) -> tuple[Array, Array]:
    """Gradients in mu and sigma of the sum of ``weight * observed_normal(...)``, weight (N, C)."""
    n_classes = len(mu)
    shared = len(sigma) == 1
    d_mu, d_sigma = np.zeros(mu.shape), np.zeros(sigma.shape)
    for p in range(len(seen)):
        columns = np.flatnonzero(seen[p])
        d = len(columns)
        rows = order[first[p] : first[p + 1]]
        z, weighted = np.empty((d, len(rows))), np.empty(len(rows))
        for c in range(n_classes):
            g = 0 if shared else c
            if c == 0 or not shared:
                L, _ = _factor(sigma[g], columns)
                inverse = np.eye(d)
                for i in range(d):
                    _forward(L, inverse, i)
                for i in range(d - 1, -1, -1):
                    _backward(L, inverse, i)
            total = 0.0
            for i in range(d):
                for n in range(len(rows)):
                    z[i, n] = x[rows[n], columns[i]] - mu[c, columns[i]]
                _forward(L, z, i)
            for i in range(d - 1, -1, -1):  # sigma^-1 (x - mu), in place
                _backward(L, z, i)
            part = np.zeros((d, d))  # lower triangle of the gradient in sigma, twice
            for n in range(len(rows)):
                total += weight[rows[n], c]
            for i in range(d):
                for n in range(len(rows)):
                    weighted[n] = weight[rows[n], c] * z[i, n]
                    d_mu[c, columns[i]] += weighted[n]
                for j in range(i + 1):
                    part[i, j] = _dot(weighted, z[j]) - total * inverse[i, j]
            for i in range(d):
                for j in range(i + 1):
                    half = 0.5 * part[i, j]
                    d_sigma[g, columns[i], columns[j]] += half
                    if i != j:
                        d_sigma[g, columns[j], columns[i]] += half
    return d_mu, d_sigma
