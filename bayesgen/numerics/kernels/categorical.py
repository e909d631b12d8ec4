"""Category codes of rows: which occur, how often in each class, and what a table says of them.

A code is a whole number 0 .. K-1. Any other number is a category never seen, which a table of
K + 2 entries has in the last place but one; a missing cell (NaN) is in the last.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bayesgen.numerics.kernels.compiling import COLUMNS, as_data, compiled

Array = np.ndarray

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


def row_slices(x: Array, start: int, stop: int) -> Iterator[slice]:
    """Some rows, a few at a time where `as_codes` makes a copy of them."""
    as_they_are = x.flags.c_contiguous and x.dtype in (np.float64, np.int64, *_BYTES)
    step = stop - start if as_they_are else max(1, (1 << 16) // max(1, x.shape[1]))
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


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
