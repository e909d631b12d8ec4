"""Independent counts in one pass: sums by class, and sums of negative binomial log-masses.

X is dense, of any dtype, order and strides, with counts >= 0; NaN is a missing cell.
"""

import numpy as np

from bayesgen.numerics.kernels.arithmetic import (
    LOG_FACTORIAL,
    largest_count,
    log_factorial,
    log_negative_binomial,
)
from bayesgen.numerics.kernels.compiling import COLUMNS, as_data, compiled
from bayesgen.numerics.kernels.threads import over_blocks

Array = np.ndarray

_PARTS = 16  # partial sums of so many blocks of rows at most,
_PART_CELLS = 1 << 21  # and of so many cells in all
_TABLE_CELLS = 1 << 18  # of looked-up masses


def sums(X: Array, y: Array, n_classes: int, weight: Array | None) -> tuple[Array, Array, Array]:
    """(C, D) sums of the counts, of log x!, and of the weights of missing cells in each class.

    Parameters
    ----------
    X : (N, D)
    y : (N,) class codes
    weight : (N,) or None
    """
    n, d = X.shape
    y = np.asarray(y, dtype=np.int64)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)

    def add_up(start: int, stop: int) -> Array:
        found = np.zeros((3, n_classes, d))
        _add_up(_rows(X, start, stop), y[start:stop], w[start:stop], *found)
        return found

    out = np.zeros((3, n_classes, d))
    for part in over_blocks(add_up, n, d, max(1, min(_PARTS, _PART_CELLS // max(1, out.size)))):
        out += part
    return out[0], out[1], out[2]


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

    for _ in over_blocks(score, n, d):
        pass
    return out


def _rows(X: Array, start: int, stop: int) -> Array:
    """Some rows as C-ordered float64."""
    return as_data(np.ascontiguousarray(X[start:stop], dtype=np.float64))


@compiled
def _add_up(  # pragma: no cover - compiled
    x: Array, y: Array, w: Array, total: Array, factorials: Array, missing: Array
) -> None:
    for i in range(len(x)):
        row, weight = x[i], w[i]
        own, own_factorials = total[y[i]], factorials[y[i]]
        others = 0
        for j in range(len(row)):
            n = row[j]
            own[j] += weight * n if n == n else 0.0
            known = n < 256.0 and n == np.floor(n)
            own_factorials[j] += weight * LOG_FACTORIAL[int(n) if known else 0]
            others += not known
        if others:
            for j in range(len(row)):
                n = row[j]
                if n != n:
                    missing[y[i], j] += weight
                elif n >= 256.0 or n != np.floor(n):
                    own_factorials[j] += weight * log_factorial(n)


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
