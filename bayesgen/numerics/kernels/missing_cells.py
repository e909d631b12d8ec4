"""Normal densities of rows with missing cells, and their gradients, pattern by pattern."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

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
        z = np.empty(d)
        for c in range(n_classes):
            if c == 0 or not shared:
                L, half = _factor(sigma[c], columns)
            top = -half - 0.5 * d * np.log(2 * np.pi)
            for row in order[first[p] : first[p + 1]]:
                q = 0.0
                for i in range(d):
                    rest = x[row, columns[i]] - mu[c, columns[i]]
                    for k in range(i):
                        rest -= L[i, k] * z[k]
                    z[i] = rest / L[i, i]
                    q += z[i] * z[i]
                out[row, c] = top - 0.5 * q
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
        z = np.empty(d)
        for c in range(n_classes):
            g = 0 if shared else c
            if c == 0 or not shared:
                L, _ = _factor(sigma[g], columns)
            total = 0.0
            part = np.zeros((d, d))  # lower triangle of the sum of weight a a^T
            for row in order[first[p] : first[p + 1]]:
                w = weight[row, c]
                total += w
                for i in range(d):
                    rest = x[row, columns[i]] - mu[c, columns[i]]
                    for k in range(i):
                        rest -= L[i, k] * z[k]
                    z[i] = rest / L[i, i]
                for i in range(d - 1, -1, -1):  # a = sigma^-1 (x - mu), in place
                    rest = z[i]
                    for k in range(i + 1, d):
                        rest -= L[k, i] * z[k]
                    z[i] = rest / L[i, i]
                    d_mu[c, columns[i]] += w * z[i]
                for i in range(d):
                    for j in range(i + 1):
                        part[i, j] += w * z[i] * z[j]
            for j in range(d):  # minus the total weight times sigma^-1, a column at a time
                for i in range(d):
                    rest = 1.0 if i == j else 0.0
                    for k in range(i):
                        rest -= L[i, k] * z[k]
                    z[i] = rest / L[i, i]
                for i in range(d - 1, -1, -1):
                    rest = z[i]
                    for k in range(i + 1, d):
                        rest -= L[k, i] * z[k]
                    z[i] = rest / L[i, i]
                for i in range(j, d):
                    part[i, j] -= total * z[i]
            for i in range(d):
                for j in range(i + 1):
                    half = 0.5 * part[i, j]
                    d_sigma[g, columns[i], columns[j]] += half
                    if i != j:
                        d_sigma[g, columns[j], columns[i]] += half
    return d_mu, d_sigma
