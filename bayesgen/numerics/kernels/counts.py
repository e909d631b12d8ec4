"""Independent counts in one pass: sums of negative binomial log-masses.

X is dense, of any dtype, order and strides, with counts >= 0; NaN is a missing cell.
"""

import numpy as np

from bayesgen.numerics.kernels.arithmetic import largest_count, log_negative_binomial
from bayesgen.numerics.kernels.compiling import COLUMNS, as_data, compiled
from bayesgen.numerics.kernels.threads import over_blocks

Array = np.ndarray

_TABLE_CELLS = 1 << 18  # of looked-up masses


def log_masses(X: Array, shape: Array, rate: Array) -> Array:
    """(N, C) sums over the observed cells of negative binomial log-masses.

    Parameters
    ----------
    X : (N, D)
    shape, rate : (C, D)
        Of the Gamma distributions of the Poisson rates.
    """
    n, d = X.shape
    shape, rate = (np.ascontiguousarray(a, dtype=np.float64) for a in (shape, rate))
    n_counts = min(256, _TABLE_CELLS // max(1, shape.size), n, 1 + largest_count(X))
    table = _table(shape, rate, n_counts)
    out = np.empty((n, len(shape)))

    def score(start: int, stop: int) -> None:
        _score(_rows(X, start, stop), shape, rate, table, out[start:stop])

    list(over_blocks(score, n, d))
    return out


def _rows(X: Array, start: int, stop: int) -> Array:
    """Some rows as C-ordered float64."""
    return as_data(np.ascontiguousarray(X[start:stop], dtype=np.float64))


@compiled
def _table(shape: Array, rate: Array, n_counts: int) -> Array:  # pragma: no cover - compiled
    """(D, K, C) log-masses of the counts 0 .. K - 1."""
    n_classes, d = shape.shape
    out = np.empty((d, n_counts, n_classes))
    for j in range(d):
        for x in range(n_counts):
            for c in range(n_classes):
                out[j, x, c] = log_negative_binomial(float(x), shape[c, j], rate[c, j])
    return out


@compiled
def _score(  # pragma: no cover - compiled
    x: Array, shape: Array, rate: Array, table: Array, out: Array
) -> None:
    d, n_counts, n_classes = table.shape
    part = np.empty(n_classes)
    for i in range(len(x)):
        out[i] = 0.0
        for first in range(0, d, COLUMNS):
            part[:] = 0.0
            for j in range(first, min(first + COLUMNS, d)):
                n = x[i, j]
                if n < n_counts and n == int(n):
                    masses = table[j, int(n)]
                    for c in range(n_classes):
                        part[c] += masses[c]
                elif n == n:
                    for c in range(n_classes):
                        part[c] += log_negative_binomial(n, shape[c, j], rate[c, j])
            for c in range(n_classes):
                out[i, c] += part[c]
