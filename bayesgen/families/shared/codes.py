"""Category codes 0 .. K - 1 in a table: counted by class, looked up in tables of terms, drawn.

N rows, D columns, C classes. NaN is a missing cell; -1, or any number that is no code, is a
category never seen.
"""

import math
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.errors import InputError
from bayesgen.families.shared.pymc_parts import sum_cells
from bayesgen.numerics import kernels
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

_LOOKED_UP = 255  # largest count whose term is looked up
_TABLE_CELLS = 1 << 18  # of terms that are looked up


def n_codes(X: Matrix) -> int:
    """Largest code + 1, at least 1."""
    top = np.fmax.reduce(X, axis=None) if X.size else 0
    return 1 + (int(top) if top > 0 else 0)


def code_index(values: Array, k: int) -> Array:
    """Indices: the codes 0 .. k - 1, k for any other number, k + 1 for NaN."""
    with np.errstate(invalid="ignore"):  # what is no integer differs from its code
        whole = values.astype(np.int64, copy=False)
    # without a sign negative numbers become huge ones
    codes = np.minimum(whole.view(np.uint64), np.uint64(k)).view(np.int64)
    if values.dtype.kind in "biu":
        return codes
    other = np.nonzero(codes != values)
    codes[other] = k + np.isnan(values[other])
    return codes


def count_codes(X: Matrix, y: Array, n_classes: int, k: int, weight: Array | None = None) -> Array:
    """Return (C, D, k) weighted counts of each code among the observed cells.

    Raises
    ------
    ValueError
        If a code is not a whole number in 0 .. k - 1.
    """
    counts = count_all_codes(X, y, n_classes, k, weight)
    if counts[..., k].any():
        raise _first_that_is_no_code(X, k)
    return counts[..., :k].copy()


def _not_a_code(value, row: int, feature: int, k: int) -> InputError:
    why = f", feature {feature}: {value} is not one of the category codes 0 .. {k - 1}"
    return InputError("row", why, row=row, column=int(feature), place=" {}")


def _first_that_is_no_code(X: Array, k: int) -> ValueError:
    for rows in passes.row_blocks(*X.shape):
        unknown = np.argwhere(code_index(X[rows], k) == k)
        if len(unknown):
            i, j = unknown[0]
            return _not_a_code(X[rows][i, j], rows.start + i, j, k)
    raise AssertionError("every cell is a code or missing")


def count_all_codes(
    X: Array, y: Array, n_classes: int, k: int, weight: Array | None = None
) -> Array:
    """Return (C, D, K + 2) counts of a dense X: codes, other numbers, missing cells."""
    shape = n_classes, X.shape[1], k + 2
    if not kernels.pays(X.size):
        first = (y[:, None] * X.shape[1] + np.arange(X.shape[1])) * (k + 2)
        each = None if weight is None else np.repeat(weight, X.shape[1])
        places = (first + code_index(X, k)).ravel()
        return np.bincount(places, each, math.prod(shape)).astype(np.float64).reshape(shape)
    from bayesgen.numerics.kernels import dense
    from bayesgen.numerics.kernels.compiling import as_data
    from bayesgen.numerics.kernels.threads import run_in_threads

    labels = as_data(np.ascontiguousarray(y, dtype=np.int64))
    weights = as_data(np.ascontiguousarray(() if weight is None else weight, dtype=np.float64))

    def count(rows: slice) -> Array:
        counts = np.zeros(shape)
        dense.count_codes(as_codes(X[rows]), labels[rows], weights[rows], counts)
        return counts

    blocks = passes.shared_blocks(X, math.prod(shape))
    return sum(run_in_threads(count, blocks), start=np.zeros(shape))


def look_up(X: Matrix, table: Array) -> Array:
    """Add up a table (..., C, D, K + 2) at the codes of each row: (..., N, C)."""
    *lead, n_features, width = table.shape
    is_real = table.dtype == np.float64 and len(lead) > 0
    if is_real and kernels.pays(X.shape[0] * table.size // width):
        return _look_up_compiled(X, table)
    flat = table.reshape(-1, n_features * width)
    total = np.empty((len(flat), X.shape[0]), dtype=table.dtype)
    offsets = np.arange(n_features) * width
    for rows in passes.row_blocks(*X.shape):
        place = code_index(X[rows], width - 2) + offsets
        axis = 0 if len(place) > n_features else 1  # the longer axis stays innermost
        place = np.ascontiguousarray(place.T) if axis == 0 else place
        for each, sums in zip(flat, total, strict=True):
            sums[rows] = each.take(place).sum(axis=axis)
    return np.moveaxis(total.reshape(*lead, X.shape[0]), -1, -2)


def look_up_counts(X: Matrix, a: Array, ratio: Array, first: Array) -> Array:
    """Return (N, C) sums of ``first + log(Gamma(a + x)/(Gamma(a) x!) ratio^x)`` over counts x.

    NaN for a row with a count that is fractional or large. Of sparse X the stored cells count.
    `a` is (C, D), and so are `ratio` and `first`, or ().
    """
    X = passes.stored_cells(X, slice(None)) if sparse.issparse(X) else X
    counts = X.data if sparse.issparse(X) else X
    largest = int(np.fmax.reduce(counts, axis=None, initial=0))
    # no more terms than cells, but for a few rows
    most = min(_LOOKED_UP, largest, _TABLE_CELLS // a.size, max(15, X.shape[0]))
    n = np.arange(1.0, most + 1)
    table = np.zeros((*a.shape, most + 3))  # a missing cell adds 0
    np.cumsum(np.log((a[..., None] + (n - 1)) / n * ratio[..., None]), -1, out=table[..., 1:-2])
    table[..., :-2] += first[..., None]
    table[..., -2] = np.nan
    if not sparse.issparse(X):
        return look_up(X, table)
    columns = np.ascontiguousarray(table.reshape(len(a), -1).T)
    places = X.indices.astype(np.int64) * (most + 3) + code_index(X.data, most + 1)
    parts = np.ones(X.nnz), places, X.indptr
    return sparse.csr_matrix(parts, shape=(X.shape[0], len(columns))) @ columns


def _look_up_compiled(X: Array, table: Array) -> Array:
    """Return `look_up` of a large dense X, or of many tables of real numbers."""
    from bayesgen.numerics.kernels import dense
    from bayesgen.numerics.kernels.compiling import as_data
    from bayesgen.numerics.kernels.threads import run_in_threads

    *lead, n_classes, n_features, width = table.shape
    flat = as_data(np.ascontiguousarray(table.reshape(-1, n_features, width).transpose(1, 2, 0)))
    sums = np.empty((X.shape[0], flat.shape[2]))

    def add_terms(rows: slice) -> None:
        dense.look_up(as_codes(X[rows]), flat, sums[rows])

    run_in_threads(add_terms, passes.row_blocks(X.shape[0], max(X.shape[1], flat.shape[2])))
    by_row = sums.reshape(X.shape[0], math.prod(lead), n_classes)
    return by_row.swapaxes(0, 1).reshape(*lead, X.shape[0], n_classes)


def as_codes(x: Array) -> Array:
    """Return rows as C-contiguous float64, int64 or uint8: the same memory, or a copy."""
    from bayesgen.numerics.kernels.compiling import as_data

    dtype: Any = np.float64
    if x.dtype.kind in "iub":
        dtype = np.uint8 if x.dtype in (np.uint8, np.bool) else np.int64
    # of 64 bits without a sign: what becomes negative is no code either way
    return as_data(np.ascontiguousarray(x).astype(dtype, copy=False))


def draw_codes(rng: np.random.Generator, p: Array, y: Array) -> Array:
    """Return (N, D) codes of rows of the classes `y`, as int64.

    `p` is (C, D, K), or one table for each row (N, C, D, K).
    """
    n_features, k = p.shape[-2:]
    codes = np.empty((len(y), n_features), dtype=np.int64)
    for rows in passes.row_blocks(len(y), n_features * k):
        draw_index = np.arange(len(y))[rows]
        block_p = p[draw_index, y[rows]] if p.ndim > 3 else p[y[rows]]
        # p.sum() may miss 1 by rounding: a draw must not fall into the padding
        upto = np.cumsum(block_p, axis=-1)
        u = rng.random((len(upto), n_features, 1)) * upto[..., -1:]
        codes[rows] = (u >= upto[..., :-1]).sum(axis=-1)
    return codes


def declared_codes(X, levels: Array, missing: str) -> Array:
    """Return (N, D) int64 codes, each below the feature's number of categories in `levels`.

    Raises
    ------
    ValueError
        At a missing cell, with `missing` as the reason, or a number that is no code of its feature.
    """
    X = np.asarray(X)
    k = int(np.max(levels))
    codes = np.empty(X.shape, dtype=np.int64)
    for rows in passes.row_blocks(*X.shape):
        codes[rows] = code_index(X[rows], k)
    if (codes == k + 1).any():
        i, j = np.argwhere(codes == k + 1)[0]
        why = f", feature {j} is missing or a category never seen (NaN): {missing}"
        raise InputError("row", why, row=i, column=int(j), place=" {}")
    bad = codes >= levels
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise _not_a_code(X[i, j], i, j, levels[j])
    return codes


# ------------------------------------------------------------------------------------------------
# Tables of bits: 0, 1 and NaN, or numbers that are bits by a threshold.


def threshold_bits(X: Array, threshold: float) -> tuple[Array, bool]:
    """Return uint8, 1 where numbers (N, D) are above a threshold, and whether all are finite."""
    if 0 <= threshold < 1 and X.dtype in (bool, np.uint8) and are_bits(X):
        return X.view(np.uint8), True
    bits = np.empty(X.shape, dtype=np.uint8)

    def compare(rows: slice) -> bool:
        np.greater(X[rows], threshold, out=bits[rows].view(bool))
        with np.errstate(over="ignore", invalid="ignore"):
            return X.dtype.kind != "f" or bool(np.isfinite(X[rows].sum()))

    if not kernels.pays(X.size):
        return bits, compare(slice(None))
    from bayesgen.numerics.kernels.threads import run_in_threads

    return bits, all(run_in_threads(compare, passes.row_blocks(*X.shape)))


def are_bits(values: Array) -> bool:
    """Return whether some numbers, (N, D) or (N,), are 0, 1 or NaN; of bytes, at a glance."""
    if values.dtype in (bool, np.uint8):
        return values.dtype == bool or bool(values.max(initial=0) <= 1)
    blocks = passes.row_blocks(len(values), math.prod(values.shape[1:]))
    return not any(are_others(values[rows]).any() for rows in blocks)


def are_others(values: Array) -> Array:
    """Return where numbers are neither 0 nor 1 nor NaN."""
    return (values != (values != 0)) & (values == values)


def checked_bits(X: Matrix) -> Matrix:
    """Return the bits, all 0, 1 or NaN."""
    bits = passes.each_cell_once(X) if sparse.issparse(X) else X
    cells = bits.data if sparse.issparse(X) else X
    if not are_bits(cells):
        row, j, value = passes.first_cell(bits, are_others(cells))
        why = f", feature {j} is {value:g}"
        raise InputError("bits must be 0, 1 or NaN:", why, row=row, column=j, place=" row {}")
    return bits


def pymc_log_likelihood_of_bits(f, X: Matrix, theta, *, prefix: str = ""):
    """Sums over the cells that are 1 or missing, and what a row of zeros has."""
    import pytensor.tensor as pt

    ones, missing = passes.split_missing(X)
    on, off = pt.log(theta["theta"]).T, pt.log1p(-theta["theta"]).T
    log_p = sum_cells(f"{prefix}ones", passes.stored_cells(ones, slice(None)), on - off)
    if missing is not None:
        log_p = log_p - sum_cells(
            f"{prefix}missing", passes.stored_cells(missing, slice(None)), off
        )
    return log_p + off.sum(axis=0)
