"""Documents of word counts: their sums by class, and masses of urns of n-grams.

X is CSR, with indices in any order, cells in several parts and zeros stored, or dense. Blocks of
rows are read as float64 counts beside int32 columns; nothing else is made of X.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.numerics.kernels.arithmetic import (
    log_factorial,
    log_gamma_difference,
    log_rising_table,
)
from bayesgen.numerics.kernels.compiling import as_data, compiled
from bayesgen.numerics.kernels.threads import over_blocks

Array = np.ndarray
Cells = tuple[Array, Array, Array]  # indptr, columns, counts of a block of rows

_PARTS = 16  # partial sums of so many blocks of rows at most,
_PART_CELLS = 1 << 22  # and of so many cells in all


def sums(X: Any, y: Array, n_classes: int, weight: Array | None) -> tuple[Array, Array]:
    """(C, D) sums of the counts of each class, and (C,) sums of log multinomial coefficients.

    The latter are NaN if a count is missing or below 0.

    Parameters
    ----------
    X : (N, D)
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
            return indptr, as_data(np.tile(columns, stop - start)), as_data(counts)

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
            as_data(np.ascontiguousarray(words, dtype=np.int32)),
            as_data(np.ascontiguousarray(counts, dtype=np.float64)),
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
            if not n >= 0:
                coefficients[:] = np.nan
                return
            own[words[s]] += weight * n
            length += n
            given += log_factorial(n)
        coefficients[y[i]] += weight * (log_factorial(length) - given)


# ------------------------------------------------------------------------------------------------
# Urns of each document: sums of log rising factorials of how often its n-grams occur.

_MOST = 16  # counts that are looked up, where there are so many tokens for each n-gram


def log_masses_of_urns(
    gram: Array,
    lengths: Array,
    context: Array,
    is_unknown: Array,
    cell: Array,
    total: Array,
    unknown: Array,
) -> Array:
    """(N, C) log masses of documents: rising factorials of cells, over those of contexts.

    Parameters
    ----------
    gram : int (T,)
        n-gram of each token of all documents.
    lengths : (N,)
    context : int (U,) of each n-gram, in order
    is_unknown : bool (U,), n-grams that end in a token outside the vocabulary
    cell, total : (U, C), (M, C) pseudo-counts
    unknown : (C,)
        What is added to the total of a context after which a document has an unknown token.
    """
    ends = np.cumsum(lengths)
    first = np.concatenate([[0], ends]).astype(np.int64)
    most = 1 + min(_MOST, len(gram) // max(1, len(cell)))
    tables = tuple(log_rising_table(np.ascontiguousarray(a), most) for a in (cell, total))
    out = np.zeros((len(lengths), cell.shape[1]))

    def score(start: int, stop: int) -> None:
        own = first[start : stop + 1], out[start:stop]
        _score_urns(gram, *own, context, is_unknown, cell, total, unknown, *tables)

    list(over_blocks(score, len(lengths), 1 + len(gram) // max(1, len(lengths)), most=32))
    return out


@compiled
def _score_urns(  # pragma: no cover - compiled
    gram: Array,
    first: Array,
    out: Array,
    context: Array,
    is_unknown: Array,
    cell: Array,
    total: Array,
    unknown: Array,
    cells: Array,
    totals: Array,
) -> None:
    n, drawn = np.zeros(len(cell), np.int64), np.zeros(len(total), np.int64)
    odd = np.zeros(len(total), np.bool_)  # contexts before an unknown token
    for i in range(len(out)):
        for s in range(first[i], first[i + 1]):
            g = gram[s]
            n[g] += 1
            drawn[context[g]] += 1
            odd[context[g]] |= is_unknown[g]
        for s in range(first[i], first[i + 1]):
            g = gram[s]
            k, many = context[g], n[g]
            if many:
                for c in range(out.shape[1]):
                    if many < cells.shape[1]:
                        out[i, c] += cells[g, many, c]
                    else:
                        out[i, c] += log_gamma_difference(cell[g, c], float(many))
                n[g] = 0
            many = drawn[k]
            if many:
                for c in range(out.shape[1]):
                    if odd[k]:
                        out[i, c] -= log_gamma_difference(total[k, c] + unknown[c], float(many))
                    elif many < totals.shape[1]:
                        out[i, c] -= totals[k, many, c]
                    else:
                        out[i, c] -= log_gamma_difference(total[k, c], float(many))
                drawn[k], odd[k] = 0, False
