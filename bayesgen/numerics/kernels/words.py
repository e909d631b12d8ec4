"""Documents of word counts: their sums by class, and masses of urns of n-grams.

X is CSR, with indices in any order, cells in several parts and zeros stored, or dense. Blocks of
rows are read as float64 counts beside int32 columns; nothing else is made of X.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.numerics.kernels.arithmetic import (
    log_factorial,
    log_gamma_difference,
    log_negative_binomial,
    log_rising_table,
)
from bayesgen.numerics.kernels.compiling import as_data, compiled
from bayesgen.numerics.kernels.threads import over_blocks

Array = np.ndarray
Cells = tuple[Array, Array, Array]  # indptr, columns, counts of a block of rows

_PARTS = 16  # partial sums of so many blocks of rows at most,
_PART_CELLS = 1 << 22  # and of so many cells in all
_LOOKED_UP = 256  # the largest count, at most
MANY = 32  # in a long document each count of so many and more is a negative binomial mass


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


def log_numerators(
    X: Any, alpha: Array, log_alpha: Array, total: Array, long: float
) -> tuple[Array, Array]:
    """(N, C) sums over the words of a document of log r(alpha, x); (N,) lengths.

    Counts are looked up: of each word up to the largest that occurs. Documents of `long` words and
    more have, with b = total/length, log NB(x; alpha, b) for counts from `MANY` on, log r(alpha, x)
    - x log(1 + b) for others, and -log NB(length; total, b). The length of a document with a count
    that is negative, missing or not finite is NaN.

    Parameters
    ----------
    X : (N, D)
    alpha : (C, D)
    log_alpha : (D, C)
    total : (C,) sums of alpha
    """
    if sparse.issparse(X) and X.nnz < X.shape[1]:  # tables of the words that occur
        words, at = np.unique(X.indices, return_inverse=True)
        X = sparse.csr_matrix((X.data, at, X.indptr), shape=(X.shape[0], len(words)))
        alpha, log_alpha = alpha[:, words], log_alpha[words]
    read, first = _reader(X), _first_terms(X)
    terms = np.empty(first[-1] * len(alpha) + 4)  # read four at a time
    each = terms[:-4].reshape(-1, len(alpha))
    each[first[:-1]] = log_alpha
    _fill(alpha, first, each)
    out, length = np.empty((X.shape[0], len(alpha))), np.empty(X.shape[0])
    own = np.asfortranarray(alpha).T

    def score(start: int, stop: int) -> None:
        cells, rows = read(start, stop), slice(start, stop)
        _score(cells, first, terms, out[rows], length[rows])
        if not (length[rows] < long).all():
            _add_others(cells, first, each, own, total, long, out[rows], length[rows])

    for _ in over_blocks(score, X.shape[0], _width(X)):
        pass
    return out, length


def _first_terms(X: Any) -> Array:
    """(D + 1,) where the terms of each word begin: of counts 1 .. the largest, within bounds."""
    largest = (X.data if sparse.issparse(X) else X).max(initial=1)
    most = np.full(X.shape[1], float(largest if largest < _LOOKED_UP else _LOOKED_UP))
    if most.sum() > X.size // 16:  # not all words up to the same
        most[:] = 1
        if sparse.issparse(X):
            _find_most(as_data(X.indices), as_data(X.data), most)
        else:
            most = np.fmax(X.max(axis=0, initial=1), most)
        most = np.minimum(most, min(_LOOKED_UP, max(1, 2 * X.size // X.shape[1])))
    ends = np.cumsum(np.floor(most))
    return np.concatenate([[0.0], ends]).astype(np.int64)


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


@compiled
def _find_most(words: Array, counts: Array, most: Array) -> None:  # pragma: no cover - compiled
    for s in range(len(words)):
        if counts[s] > 1 and counts[s] > most[words[s]]:
            most[words[s]] = counts[s]


@compiled
def _fill(alpha: Array, first: Array, terms: Array) -> None:  # pragma: no cover - compiled
    """log r(a, n) for n = 2, 3, .. of each word: log (a + n - 1)/n more than the one before."""
    for j in range(len(first) - 1):
        for k in range(first[j] + 1, first[j + 1]):
            n = k - first[j]
            for c in range(len(alpha)):
                terms[k, c] = terms[k - 1, c] + math.log((alpha[c, j] + n) / (n + 1))


@compiled
def _score(  # pragma: no cover - compiled
    cells: Cells, first: Array, terms: Array, out: Array, lengths: Array
) -> None:
    """Sums of the terms that are looked up; NaN is the length of rows that have others.

    Which terms a row has is found without a branch: half of its cells may be 0.
    """
    indptr, words, counts = cells
    n_classes = out.shape[1]
    at = np.empty(1 + len(words), np.uint64)
    for i in range(len(out)):
        m, length, known = np.uint64(0), np.int64(0), True
        for s in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            n, j = counts[s], np.uint32(words[s])
            k = np.int32(n if (n >= 0) & (n <= _LOOKED_UP) else 0.0)
            end = first[j] + k
            found = (k == n) & (end <= first[j + np.uint32(1)])
            known &= found
            at[m] = (end - 1) * n_classes
            m += np.uint64(found & (k != 0))
            length += k
        lengths[i] = length if known else np.nan
        for c in range(0, n_classes, 4):
            a = b = d = e = 0.0
            for s in range(m):
                p = at[s] + np.uint64(c)
                a += terms[p]
                b += terms[p + np.uint64(1)]
                d += terms[p + np.uint64(2)]
                e += terms[p + np.uint64(3)]
            for q, total in enumerate((a, b, d, e)):
                if c + q < n_classes:
                    out[i, c + q] = total


@compiled
def _add_others(  # pragma: no cover - compiled
    cells: Cells,
    first: Array,
    terms: Array,
    alpha: Array,
    total: Array,
    long: float,
    out: Array,
    lengths: Array,
) -> None:
    """Complete the rows that are long or have terms that are not looked up; alpha is (D, C)."""
    indptr, words, counts = cells
    n_classes = out.shape[1]
    b = np.empty(n_classes)
    for i in range(len(out)):
        if lengths[i] < long:  # NaN is not
            continue
        length = of_few = 0.0
        for s in range(indptr[i], indptr[i + 1]):
            n = counts[s] if counts[s] >= 0 else np.nan
            length += n
            of_few += n if n < MANY else 0.0
        if not length < np.inf:
            continue
        lengths[i], is_long = length, length >= long
        for c in range(n_classes if is_long else 0):
            b[c] = total[c] / length
            out[i, c] -= of_few * math.log1p(b[c]) + log_negative_binomial(length, total[c], b[c])
        for s in range(indptr[i], indptr[i + 1]):
            n, j = counts[s], words[s]
            end = first[j] + int(n if n <= _LOOKED_UP else 0.0)
            found = end - first[j] == n and end <= first[j + 1]
            many = is_long and n >= MANY
            if n == 0 or (found and not many):
                continue
            for c in range(n_classes):
                if many:
                    out[i, c] += log_negative_binomial(n, alpha[j, c], b[c])
                    out[i, c] -= terms[end - 1, c] if found else 0.0
                else:
                    out[i, c] += log_gamma_difference(alpha[j, c], n) - log_factorial(n)


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
