"""Documents of word counts: their sums by class, and their Dirichlet-multinomial masses.

X is CSR, with indices in any order, cells in several parts and zeros stored, or dense. Blocks of
rows are read as float64 counts beside int32 columns; nothing else is made of X.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.numerics.kernels.compiling import compiled
from bayesgen.numerics.kernels.gamma import log_factorial, log_gamma_difference
from bayesgen.numerics.kernels.threads import over_blocks

Array = np.ndarray
Cells = tuple[Array, Array, Array]  # indptr, columns, counts of a block of rows

_PARTS = 16  # partial sums of so many blocks of rows at most,
_PART_CELLS = 1 << 22  # and of so many cells in all
_FACTORS = 64  # a rising factorial of a whole count up to this is multiplied out
_TOGETHER = 256  # terms added up before they are added to the sum of a long document
_LARGEST = 290.0  # decimal digits that a product of factors may have


def sums(X: Any, y: Array, n_classes: int, weight: Array | None) -> tuple[Array, Array]:
    """(C, D) sums of the counts of each class, and (C,) sums of log multinomial coefficients.

    Parameters
    ----------
    X : (N, D), counts >= 0
    y : (N,) class codes
    weight : (N,) or None
    """
    n, d = X.shape
    read = _reader(X)
    y = np.asarray(y, dtype=np.int64)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)

    def add_up(start: int, stop: int) -> tuple[Array, Array]:
        found = np.zeros((n_classes, d)), np.zeros(n_classes)
        _add_up(*read(start, stop), y[start:stop], w[start:stop], *found)
        return found

    most = max(1, min(_PARTS, _PART_CELLS // max(1, n_classes * d)))
    blocks = over_blocks(add_up, n, _width(X), most)
    counts, coefficients = next(blocks, (np.zeros((n_classes, d)), np.zeros(n_classes)))
    for some_counts, some_coefficients in blocks:
        counts += some_counts
        coefficients += some_coefficients
    return counts, coefficients


def log_numerators(X: Any, alpha: Array) -> tuple[Array, Array]:
    """(N, C) sums over the words of a document of log r(alpha, x), plus log L!; (N,) lengths L.

    What is missing to the Dirichlet-multinomial mass is the rising factorial of A by L, which
    documents of one length share.

    Parameters
    ----------
    X : as in `sums`
    alpha : (C, D)
    """
    n = X.shape[0]
    read = _reader(X)
    columns = None
    if sparse.issparse(X) and X.nnz < X.shape[1]:  # tables of the words that occur
        columns = np.unique(X.indices)
        alpha = alpha[:, columns]
    table = np.ascontiguousarray(alpha.T, dtype=np.float64)
    logs = np.log(table)
    largest = float(table.max(initial=0.0)) + _FACTORS
    per_log = max(1, int(_LARGEST / math.log10(largest)))
    out, length = np.empty((n, len(alpha))), np.empty(n)

    def score(start: int, stop: int) -> None:
        indptr, words, counts = read(start, stop)
        if columns is not None:
            words = np.searchsorted(columns, words).astype(np.int32)
        own = out[start:stop], length[start:stop]
        _score(indptr, words, counts, table, logs, per_log, *own)

    for _ in over_blocks(score, n, _width(X)):
        pass
    return out, length


def _width(X: Any) -> int:
    """Cells of a row, on average."""
    return int(X.nnz // max(1, X.shape[0])) if sparse.issparse(X) else int(X.shape[1])


def _reader(X: Any) -> Callable[[int, int], Cells]:
    """What reads rows start .. stop - 1 of X."""
    if not sparse.issparse(X):
        columns = np.arange(X.shape[1], dtype=np.int32)

        def dense(start: int, stop: int) -> Cells:
            counts = np.ascontiguousarray(X[start:stop], dtype=np.float64).ravel()
            indptr = np.arange(stop - start + 1, dtype=np.int64) * X.shape[1]
            return indptr, np.tile(columns, stop - start), counts

        return dense
    once = X.has_canonical_format

    def stored(start: int, stop: int) -> Cells:
        indptr, first, last = X.indptr[start : stop + 1], X.indptr[start], X.indptr[stop]
        words, counts = X.indices[first:last], X.data[first:last]
        if not once:
            block = X[start:stop].copy()
            block.sum_duplicates()
            indptr, words, counts = block.indptr, block.indices, block.data
        return (
            indptr.astype(np.int64) - indptr[0],
            np.ascontiguousarray(words, dtype=np.int32),
            np.ascontiguousarray(counts, dtype=np.float64),
        )

    return stored


@compiled
def _add_up(  # pragma: no cover - compiled
    indptr: Array,
    words: Array,
    counts: Array,
    y: Array,
    w: Array,
    out: Array,
    coefficients: Array,
) -> None:
    for i in range(len(y)):
        own, weight = out[y[i]], w[i]
        length = given = 0.0
        for s in range(indptr[i], indptr[i + 1]):
            n = counts[s]
            own[words[s]] += weight * n
            length += n
            given += log_factorial(n)
        coefficients[y[i]] += weight * (log_factorial(length) - given)


@compiled
def _score(  # pragma: no cover - compiled
    indptr: Array,
    words: Array,
    counts: Array,
    alpha: Array,
    log_alpha: Array,
    per_log: int,
    out: Array,
    lengths: Array,
) -> None:
    """Sum over the words of log r(a, n), and of log n! of the length.

    log a(a+1)...(a+n-1) takes one log for `per_log` of the later factors.
    log a is looked up: most words occur once. The terms of a few words are added up first, so
    that a long document rounds like a short one.
    """
    n_classes = alpha.shape[1]
    part, product = np.zeros(n_classes), np.ones(n_classes)
    for i in range(len(out)):
        found = out[i]
        found[:] = 0.0
        length = given = 0.0
        n_terms = n_factors = 0
        for s in range(indptr[i], indptr[i + 1]):
            n, j = counts[s], words[s]
            if n == 0.0:
                continue
            length += n
            whole = n <= _FACTORS and n == int(n)
            if n == 1.0 or whole:
                for c in range(n_classes):
                    part[c] += log_alpha[j, c]
            if n != 1.0:
                given += log_factorial(n)
                for m in range(1, int(n) if whole else 1):
                    if n_factors == per_log:
                        for c in range(n_classes):
                            part[c] += math.log(product[c])
                            product[c] = 1.0
                        n_factors = 0
                    for c in range(n_classes):
                        product[c] *= alpha[j, c] + m
                    n_factors += 1
                if not whole:
                    for c in range(n_classes):
                        part[c] += log_gamma_difference(alpha[j, c], n)
            n_terms += 1
            if n_terms == _TOGETHER:
                for c in range(n_classes):
                    found[c] += part[c]
                    part[c] = 0.0
                n_terms = 0
        lengths[i] = length
        coefficient = log_factorial(length) - given
        for c in range(n_classes):
            if n_factors:
                part[c] += math.log(product[c])
                product[c] = 1.0
            found[c] += part[c] + coefficient
            part[c] = 0.0
