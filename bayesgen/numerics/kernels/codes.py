"""Bits in one pass: counts of ones by class, and sums of log-probabilities.

The cells may be numbers that a threshold makes into bits: they are compared as they are read, so
that no array of bits is made. X is dense, of any dtype, order and strides; NaN is a missing cell.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayesgen.errors import InputError
from bayesgen.numerics.kernels.compiling import COLUMNS, as_data, compiled, row_slices
from bayesgen.numerics.kernels.threads import blocks, over_blocks

Array = np.ndarray

_ROWS = 128
_COLUMNS = 64
_PADDING = 8  # else the columns of a tile would fall into the same few sets of the cache
_PARTS = 16  # partial sums of so many blocks of rows at most,
_PART_CELLS = 1 << 22  # and of so many cells in all
_READ_AS_IS = tuple(map(np.dtype, ("u1", "i8", "f4", "f8")))


class InfiniteCellError(InputError):
    """X contains an infinite cell; raised by a compiled pass."""


def first_invalid(X: Array) -> tuple[int, int] | None:
    """Row and column of the first cell that is not 0, 1 or NaN."""
    dtype, _ = _comparable(X.dtype, 0.0)

    def find(start: int, stop: int) -> int:
        for at, block in _readable(X, dtype, start, stop):
            place = _first_invalid(block)
            if place >= 0:
                return at * X.shape[1] + place
        return -1

    for place in over_blocks(find, *X.shape):
        if place >= 0:
            return divmod(place, X.shape[1])
    return None


def ones_and_missing(
    X: Array, y: Array, n_classes: int, weight: Array | None, threshold: float
) -> tuple[Array, Array]:
    """(C, D) weight of the rows with a 1, and with a missing cell, in each class.

    Parameters
    ----------
    X : (N, D)
    y : (N,) class codes
    weight : (N,) or None
    threshold : float
        Values above it are 1, the others 0.

    Raises
    ------
    InfiniteCellError
    """
    n, d = X.shape
    dtype, limit = _comparable(X.dtype, threshold)
    y = np.asarray(y, dtype=np.int64)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)

    def count(start: int, stop: int) -> tuple[Array, Array]:
        ones, missing = np.zeros((n_classes, d)), np.zeros((n_classes, d))
        for at, block in _readable(X, dtype, start, stop):
            own = slice(at, at + len(block))
            _refuse(at, d, _count(block, y[own], w[own], limit, ones, missing))
        return ones, missing

    ones, missing = np.zeros((n_classes, d)), np.zeros((n_classes, d))
    most = max(1, min(_PARTS, _PART_CELLS // max(1, n_classes * d)))
    for some_ones, some_missing in over_blocks(count, n, d, most):
        ones += some_ones
        missing += some_missing
    return ones, missing


def log_masses(X: Array, log_one: Array, log_zero: Array, threshold: float) -> Array:
    """(N, C) sums over the observed cells of `log_one` where it is 1 and of `log_zero` elsewhere.

    Each term is added as it is, without cancellation. The tables are (C, D) and may hold -inf; X,
    `threshold` and errors as in `ones_and_missing`.
    """
    n, d = X.shape
    dtype, limit = _comparable(X.dtype, threshold)
    one, zero = (np.ascontiguousarray(table, dtype=np.float64) for table in (log_one, log_zero))
    out = np.empty((n, len(one)))

    def add_up(start: int, stop: int) -> None:
        for at, block in _readable(X, dtype, start, stop):
            own = out[at : at + len(block)]
            _refuse(at, d, _add_up(block, limit, one, zero, own))

    list(over_blocks(add_up, n, d))
    return out


def _comparable(dtype: np.dtype, threshold: float) -> tuple[np.dtype, Any]:
    """The dtype in which cells are read, and the threshold in it, as NumPy compares the two."""
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    if dtype.kind == "f":
        limit = dtype.type(threshold)
        return (dtype, limit) if dtype in _READ_AS_IS else (np.dtype("f8"), np.float64(limit))
    if dtype in _READ_AS_IS and math.isfinite(threshold):
        below = math.floor(threshold)
        if np.iinfo(dtype).min <= below <= np.iinfo(dtype).max:
            return dtype, dtype.type(below)
    return np.dtype("f8"), np.float64(threshold)


def _readable(X: Array, dtype: np.dtype, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Rows in C order and of one dtype: the same memory, or a copy of one block at a time."""
    rows = as_data(X[start:stop])
    if rows.flags.c_contiguous and rows.dtype == dtype:
        yield start, rows
        return
    for a, b in blocks(len(rows), rows.shape[1]):
        yield start + a, as_data(np.ascontiguousarray(rows[a:b], dtype=dtype))


def _refuse(start: int, n_columns: int, infinite: int) -> None:
    if infinite >= 0:
        row, column = divmod(infinite, n_columns)
        what, why = "Input X contains infinity:", f", column {column}"
        raise InfiniteCellError(what, why, row=start + row, column=column, place=" row {}")


@compiled
def _first_invalid(x: Array) -> int:  # pragma: no cover - compiled
    """Position of the first cell that is not 0, 1 or NaN; -1 if there is none."""
    for i in range(len(x)):
        n = 0
        for j in range(x.shape[1]):
            n += (x[i, j] != 0) & (x[i, j] != 1) & (x[i, j] == x[i, j])
        if n:
            for j in range(x.shape[1]):
                if x[i, j] != 0 and x[i, j] != 1 and x[i, j] == x[i, j]:
                    return i * x.shape[1] + j
    return -1


@compiled
def _first_infinite(row: Array) -> int:  # pragma: no cover - compiled
    for j in range(len(row)):
        if np.isinf(row[j]):
            return j
    return -1


@compiled
def _count(  # pragma: no cover - compiled
    x: Array, y: Array, w: Array, limit: Any, ones: Array, missing: Array
) -> int:
    """Add to `ones` and `missing`; the position of an infinite cell, or -1."""
    for i in range(len(x)):
        row, total, weight = x[i], ones[y[i]], w[i]
        odd = 0
        for j in range(len(row)):
            total[j] += weight if row[j] > limit else 0.0
            odd += row[j] - row[j] != 0  # NaN and inf
        if odd:
            place = _first_infinite(row)
            if place >= 0:
                return i * len(row) + place
            for j in range(len(row)):
                if row[j] != row[j]:
                    missing[y[i], j] += weight
    return -1


@compiled
def _add_up(  # pragma: no cover - compiled
    x: Array, limit: Any, one: Array, zero: Array, out: Array
) -> int:
    """A few rows and columns on their side at a time, so that every loop runs over many rows."""
    n, d = x.shape
    tile = np.empty((_COLUMNS, _ROWS + _PADDING), x.dtype)
    total, part = np.empty((len(one), _ROWS)), np.empty(_ROWS)
    for start in range(0, n, _ROWS):
        rows = x[start : start + _ROWS]
        m = len(rows)
        total[:] = 0.0
        for first in range(0, d, _COLUMNS):
            width = min(_COLUMNS, d - first)
            odd = 0
            for r in range(m):
                row = rows[r, first : first + width]
                for j in range(width):
                    tile[j, r] = row[j]
                    odd += row[j] - row[j] != 0  # NaN and inf
            if odd:
                for r in range(m):
                    place = _first_infinite(rows[r])
                    if place >= 0:
                        return (start + r) * d + place
            for c in range(len(one)):
                part[:] = 0.0
                for j in range(width):
                    on, off = one[c, first + j], zero[c, first + j]
                    if odd:
                        for r in range(m):
                            seen = on if tile[j, r] > limit else off
                            part[r] += seen if tile[j, r] == tile[j, r] else 0.0
                    else:
                        for r in range(m):
                            part[r] += on if tile[j, r] > limit else off
                for r in range(m):
                    total[c, r] += part[r]
        for r in range(m):
            for c in range(len(one)):
                out[start + r, c] = total[c, r]
    return -1


# ------------------------------------------------------------------------------------------------
# Category codes of rows: which occur, how often in each class, and what a table says of them.
#
# A code is a whole number 0 .. K-1. Any other number is a category never seen, which a table of
# K + 2 entries has in the last place but one; a missing cell (NaN) is in the last.

_BYTES = (np.uint8, np.bool)  # read as they are
OTHER = 63  # the bit of `mark_small_codes` for what is no small code
_TOGETHER = 8
_OUTPUTS = 64  # of the table at a time: they stay in the second-level cache


def as_codes(x: Array) -> Array:
    """Rows as C-contiguous float64, int64 or uint8: the same memory, or a copy."""
    dtype: Any = np.float64
    if x.dtype.kind in "iub":
        dtype = np.uint8 if x.dtype in _BYTES else np.int64
    # of 64 bits without a sign: what becomes negative is no code either way
    return as_data(np.ascontiguousarray(x).astype(dtype, copy=False))


def padded(table: Array) -> Array:
    """With zeros after the end of the last axis, for sums of so many outputs together."""
    *lead, n_outputs = table.shape
    out = np.zeros((*lead, n_outputs + -n_outputs % _TOGETHER))
    out[..., :n_outputs] = table
    return as_data(out)


def code_slices(x: Array, start: int, stop: int) -> Iterator[slice]:
    """Some rows, a few at a time where `as_codes` makes a copy of them."""
    return row_slices(x, start, stop, (np.float64, np.int64, *_BYTES))


@compiled
def _code(value: Any, k: int) -> Any:  # pragma: no cover - compiled
    """Place of a cell in a table of k + 2 entries; no branch, as no guess would be right."""
    inside = (value >= 0) & (value < k)
    code = np.int64(value if inside else 0)
    other = k + np.int64(value != value)
    return np.uint64(code if inside & (code == value) else other)


@compiled
def mark_codes(x: Array, seen: Array) -> None:  # pragma: no cover - compiled
    """Set ``seen[j, code]`` for every cell; seen (D, K + 2)."""
    k = seen.shape[1] - 2
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            seen[j, _code(x[i, j], k)] = 1


@compiled
def mark_small_codes(x: Array, seen: Array) -> None:  # pragma: no cover - compiled
    """Set bit k of ``seen[j]``, uint64, for every code k < 63 in column j; 63 for other numbers.

    No cell has to wait for a place in memory: as fast as X is read.
    """
    one, other = np.uint64(1), np.uint64(OTHER)
    for i in range(x.shape[0]):
        row = x[i]
        for j in range(len(row)):
            value = row[j]
            inside = (value >= 0) & (value < OTHER)
            code = np.int64(value if inside else 0)
            bit = one << (np.uint64(code) if inside & (code == value) else other)
            seen[j] |= bit if value == value else np.uint64(0)


@compiled
def count_codes(x: Array, y: Array, weight: Array, counts: Array) -> None:  # pragma: no cover
    """Add rows to counts (C, D, K + 2); weight is (N,), or (0,) for rows of weight 1.

    y : uint64 (N,), class codes
    """
    k = counts.shape[2] - 2
    for i in range(x.shape[0]):
        c = y[i]
        w = weight[i] if len(weight) else 1.0
        for j in range(x.shape[1]):
            counts[c, j, _code(x[i, j], k)] += w


@compiled
def look_up(x: Array, table: Array, out: Array, start: int) -> None:  # pragma: no cover - compiled
    """Sums over the columns of a table (D, K + 2, >= S C) at the codes of each row.

    Those of row i go to ``out[:, start + i]``, out (S, N, C).

    The last axis of the table is padded to a multiple of 8, so that eight sums are added up beside
    each other, and none waits for its own end.
    """
    n_features, width, n_padded = table.shape
    n_classes = out.shape[2]
    n_outputs = out.shape[0] * n_classes
    at = np.empty(n_features, np.uint64)
    found = np.empty(_TOGETHER)
    for first in range(0, n_padded, _OUTPUTS):
        for i in range(x.shape[0]):
            for j in range(n_features):
                at[j] = _code(x[i, j], width - 2)
            for m in range(first, min(first + _OUTPUTS, n_padded), _TOGETHER):
                found[:] = 0.0
                for begin in range(0, n_features, COLUMNS):
                    a = b = c = d = e = f = g = h = 0.0
                    for j in range(begin, min(begin + COLUMNS, n_features)):
                        row = table[j, at[j], m : m + _TOGETHER]
                        a += row[0]
                        b += row[1]
                        c += row[2]
                        d += row[3]
                        e += row[4]
                        f += row[5]
                        g += row[6]
                        h += row[7]
                    found[0] += a
                    found[1] += b
                    found[2] += c
                    found[3] += d
                    found[4] += e
                    found[5] += f
                    found[6] += g
                    found[7] += h
                s, k = m // n_classes, m % n_classes
                for q in range(min(_TOGETHER, n_outputs - m)):
                    out[s, start + i, k] = found[q]
                    k += 1
                    if k == n_classes:
                        s, k = s + 1, 0
