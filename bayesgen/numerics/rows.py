"""Passes over the rows of a table: blocks that fit the cache, sums by class, missing cells.

X is dense or CSR; in CSR what is not stored is 0, and nothing is made dense beyond one block.
Sums are of float64, whatever X holds. Notation of the docstrings: N rows, D features, C classes.
"""

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.errors import InputError
from bayesgen.numerics import kernels
from bayesgen.numerics.special import Array

Seed = int | list[int]  # of numpy.random.default_rng
Matrix = Any  # a dense (N, D) array or a scipy.sparse CSR matrix of that shape

BLOCK_CELLS = 1 << 18  # cells of one row block: 2 MiB of float64, inside the second-level cache
_SHARED_CELLS = 1 << 21  # of a block whose sums a thread makes: a millisecond, a thread costs .1
_FEW_CELLS = 1 << 15  # of a block that is multiplied: small products need no threads of BLAS

LEAST_LEFT = 1e-5  # share of a sum without a row: less has lost 5 of 16 digits and more
_FEW_COLUMNS = 64  # up to so many a sparse block is multiplied as a dense one

# ------------------------------------------------------------------------------------------- blocks


def row_blocks(n_rows: int, n_columns: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Slices that cover the rows in blocks of so many cells, about 2 MiB of float64."""
    step = max(1, cells // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def shared_blocks(X: Array, n_sums: int) -> Iterator[slice]:
    """Slices of rows that threads add up, each to so many sums of its own."""
    return row_blocks(len(X), X.shape[1], max(_SHARED_CELLS, 4 * n_sums))


def few_at_a_time(positions: Array) -> Iterator[Array]:
    """Positions of rows in parts of 256, for what holds much more of a row than its cells."""
    for start in range(0, len(positions), 256):
        yield positions[start : start + 256]


def draws_of_each_row(
    draw: Callable[[np.random.Generator, Matrix], Array], seed: Seed, X: Matrix
) -> Array:
    """Draw (S, N, C) by ``draw(generator, row)``, with a generator as new for each row."""
    rows = (X[i : i + 1] for i in range(X.shape[0]))
    return np.concatenate([draw(np.random.default_rng(seed), row) for row in rows], axis=1)


def dense_block(X: Matrix, rows: slice | Array) -> Array:
    """Rows of X as a dense float64 array, for one block of `row_blocks`.

    float32 is widened here, before any sum, never after.
    """
    block = X[rows]
    return np.asarray(block.todense() if sparse.issparse(X) else block, dtype=np.float64)


def n_stored(X: Matrix) -> int:
    """Cells that a pass over X visits."""
    return int(X.nnz) if sparse.issparse(X) else int(X.shape[0] * X.shape[1])


def cell_of(X: Matrix, at: int) -> tuple[int, int]:
    """Row and column of a stored cell of a CSR matrix."""
    return int(np.searchsorted(X.indptr, int(at), "right")) - 1, int(X.indices[at])


def first_cell(X: Matrix, bad: Array) -> tuple[int, int, Any]:
    """Row, column and value of the first cell that is bad; of CSR, among the stored cells."""
    place = int(bad.argmax())
    if sparse.issparse(X):
        return *cell_of(X, place), X.data[place]
    row, j = divmod(place, X.shape[1])
    return row, j, X[row, j]


def each_cell_once(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """CSR in which no cell is stored in several parts: X itself, or a copy."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def stored_cells(X: Matrix, rows: slice | Array) -> sparse.csr_matrix:
    """Return the nonzero (or NaN) cells of some rows as float64 CSR, each cell once.

    They may share memory with X: not to be changed in place.
    """
    block = _some_rows(X, rows) if sparse.issparse(X) else dense_block(X, rows)
    if not isinstance(block, sparse.csr_matrix) or block.dtype != np.float64:
        block = sparse.csr_matrix(block, dtype=float)
    return each_cell_once(block)


def _some_rows(X: sparse.csr_matrix, rows: slice | Array) -> sparse.csr_matrix:
    """``X[rows]``, of a slice without a copy of its cells."""
    if not isinstance(rows, slice) or X.format != "csr":
        return X[rows]
    start, stop, _ = rows.indices(X.shape[0])
    cells = slice(X.indptr[start], X.indptr[stop])
    parts = X.data[cells], X.indices[cells], X.indptr[start : stop + 1] - X.indptr[start]
    block = sparse.csr_matrix(parts, shape=(stop - start, X.shape[1]))
    block.has_canonical_format = X.has_canonical_format  # which is looked for once
    return block


def stored_blocks(X: Matrix, table_cells: int) -> Iterator[tuple[slice, sparse.csr_matrix]]:
    """`stored_cells` of all rows, in blocks of about 2 MiB or as large as the caller's tables."""
    n_rows, width = X.shape
    if sparse.issparse(X):
        width = int(X.nnz / max(1, n_rows) * min(1.0, BLOCK_CELLS / max(1, table_cells)))
    for rows in row_blocks(n_rows, width):
        yield rows, stored_cells(X, rows)


def equal_weights(y: Array, weight: Array) -> Iterator[tuple[int, float, Array]]:
    """Yield (class, weight, positions of its rows of this weight)."""
    for c in np.unique(y).tolist():
        rows = np.flatnonzero(y == c)
        values, which = np.unique(weight[rows], return_inverse=True)
        for k, value in enumerate(values.tolist()):
            yield c, value, rows[which == k]


def without_weight(total: Array, weight: Array | float) -> tuple[Array, Array]:
    """``total - weight``, and whether too few digits are left of it, or nothing; there it is 1."""
    left = total - weight
    is_lost = ~(left > LEAST_LEFT * total)
    return np.where(is_lost, 1.0, left), is_lost


# -------------------------------------------------------------------------------- sums and products


def one_hot(y: Array, n_classes: int, weight: Array | None = None) -> sparse.csc_matrix:
    """Return (C, N) sparse indicator of the class codes, with the row weights as values."""
    n = len(y)
    data = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    return sparse.csc_matrix((data, y, np.arange(n + 1)), shape=(n_classes, n))


def class_counts(y: Array, n_classes: int, weight: Array | None = None) -> Array:
    """Return (C,) total weight of the rows of each class."""
    return np.bincount(y, weights=weight, minlength=n_classes).astype(np.float64)


def class_sums(
    X: Matrix,
    y: Array,
    n_classes: int,
    weight: Array | None = None,
    function: Callable[[Array], Array] | None = None,
) -> Array:
    """Return (C, D) weighted column sums of each class, in float64; sparse X stays sparse.

    `function`, with value 0 at 0, is applied to the cells first.
    """
    indicator = one_hot(y, n_classes, weight)
    if sparse.issparse(X):
        if function is not None:
            X = stored_cells(X, slice(None))
            X.data = function(X.data)
        return np.asarray((indicator.tocsr() @ X.astype(np.float64, copy=False)).todense())
    if X.dtype == np.uint8 and weight is None and function is None and kernels.pays(X.size):
        return _sums_of_bytes(X, y, n_classes)
    sums = np.zeros((n_classes, X.shape[1]))
    for rows in row_blocks(*X.shape):
        block = dense_block(X, rows)
        sums += indicator[:, rows] @ (block if function is None else function(block))
    return sums


def _sums_of_bytes(X: Array, y: Array, n_classes: int) -> Array:
    """Return `class_sums` of a large dense X of uint8."""
    from bayesgen.numerics.kernels.compiling import as_data
    from bayesgen.numerics.kernels.dense import add_bytes
    from bayesgen.numerics.kernels.threads import run_in_threads

    codes, shape = as_data(np.ascontiguousarray(y, dtype=np.int64)), (n_classes, X.shape[1])

    def add(rows: slice) -> Array:
        sums = np.zeros(shape, dtype=np.uint32)
        add_bytes(as_data(np.ascontiguousarray(X[rows])), codes[rows], sums)
        return sums.astype(np.float64)

    return reduce(np.add, run_in_threads(add, shared_blocks(X, math.prod(shape))))


def dot(X: Matrix, table: Array) -> Array:
    """``X @ table.T`` for a table (..., C, D): dense float64 (..., N, C), in blocks of rows."""
    *batch, n_classes, n_features = table.shape
    flat = table.reshape(-1, n_features)
    if sparse.issparse(X):
        products = np.asarray(X @ flat.T)
    else:
        products = np.empty((X.shape[0], len(flat)))
        cells = min(BLOCK_CELLS, max(_FEW_CELLS, 8 * flat.size))
        for rows in row_blocks(X.shape[0], n_features, cells):
            np.matmul(dense_block(X, rows), flat.T, out=products[rows])
    return np.moveaxis(products.reshape(X.shape[0], *batch, n_classes), 0, -2)


def dot_log(X: Matrix, p: Array) -> Array:
    """``X @ log(p).T`` with 0 log 0 = 0 and -inf where a positive count meets p = 0.

    X (N, D) non-negative without NaN; p (..., C, D). Returns (..., N, C).
    """
    zero = p == 0
    products = dot(X, np.log(np.where(zero, 1.0, p)))
    if zero.any():
        products = np.where(dot(X, zero.astype(np.float64)) > 0, -np.inf, products)
    return products


def over_draws(
    X: Matrix,
    p: Array,
    tables: Callable[[Array], Any],
    score: Callable[[Matrix, slice, Any, Array], None],
) -> Array:
    """Add up columns for parameters p (..., C, D) by products of matrices: (..., N, C).

    Parameters
    ----------
    tables : (s, C, D) -> anything
        Of some draws of p.
    score : (block, rows, tables, out) -> None
        Of ``block = X[rows]``, float64 or CSR, and some draws, into ``out`` (n, s * C).

    Notes
    -----
    Blocks of draws as of rows: beside the result there are never more than a few blocks.
    """
    *lead, n_classes, n_features = p.shape
    n_draws = int(np.prod(lead))
    p = p.reshape(n_draws, n_classes, n_features)
    total = np.empty((X.shape[0], n_draws * n_classes))
    stored = sparse.issparse(X) and n_features > _FEW_COLUMNS
    for draws in row_blocks(n_draws, -(-n_classes * n_features // 2)):
        block_tables = tables(p[draws])
        columns = total[:, draws.start * n_classes : draws.stop * n_classes]
        for rows in row_blocks(
            X.shape[0], columns.shape[1] if stored else max(n_features, columns.shape[1])
        ):
            block = X[rows] if stored else dense_block(X, rows)
            score(block, rows, block_tables, columns[rows])
    each = total.reshape(X.shape[0], n_draws, n_classes)
    return np.moveaxis(each, 0, 1).reshape(*lead, X.shape[0], n_classes)


def multiply(block: Matrix, columns: Array, out: Array) -> None:
    """``out[:] = block @ columns`` without an array of its own where `block` is dense."""
    if sparse.issparse(block):
        out[:] = block @ columns
    else:
        np.matmul(block, columns, out=out)


def columns_of(table: Array) -> Array:
    """Return (D, s * C) C-contiguous float64 from (s, C, D): what rows are multiplied with."""
    flat = table.reshape(-1, table.shape[-1])
    return np.ascontiguousarray(flat.T, dtype=np.float64)


def row_sums(values: Array, indptr: Array) -> Array:
    """Return (..., n) sums over each row of CSR cells (..., nnz)."""
    filled = np.flatnonzero(np.diff(indptr))
    sums = np.zeros((*values.shape[:-1], len(indptr) - 1), dtype=values.dtype)
    if len(filled):
        sums[..., filled] = np.add.reduceat(values, indptr[filled], axis=-1)
    return sums


def exact_parts(table: Array) -> Array:
    """Split a table >= 0 in coarse + fine (2, ..., D); sums of coarse parts do not round.

    The coarse parts are multiples of one power of two, large enough that no sum over the last
    axis needs more than 53 bits.
    """
    total = table.sum(axis=-1, keepdims=True)
    unit = np.exp2(np.ceil(np.log2(np.where(total > 0, total, 1.0))) - 52)
    coarse = np.rint(table / unit) * unit
    return np.stack([coarse, table - coarse])


def sum_except(mask: Matrix, parts: Array) -> Array:
    """Return (..., N, C) sums of a table (..., C, D), given as `exact_parts`, where `mask` is 0.

    The sum over all cells minus the sum over those of the mask, which may be sparse: wrong by
    1e-4 when done in plain floats and the entries reach 1e12; exact here.
    """
    coarse, fine = parts.sum(axis=-1)[..., None, :] - dot(mask, parts)
    return coarse + fine


def remainder(total: Array, part: Array) -> Array:
    """``total - part`` of weights that were summed apart; 0 where only rounding is left.

    Whole numbers add up without rounding: one row beside 1e12 others is no rounding error.
    """
    difference = total - part
    whole = (total == np.rint(total)) & (part == np.rint(part))
    return np.where(difference > np.where(whole, 0.0, 1e-12 * total), difference, 0.0)


# ------------------------------------------------------------------------------------ missing cells


def has_nan(X: Matrix) -> bool:
    """Return whether any cell is NaN, without a mask for types that cannot hold one."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "fc" or values.size == 0:
        return False
    return bool(np.isnan(values.min()))


def split_missing(X: Matrix) -> tuple[Matrix, Matrix | None]:
    """X with NaN replaced by 0, and the indicator of the NaN cells (None if there is none)."""
    if not has_nan(X):
        return X, None
    if sparse.issparse(X):
        filled, missing = X.copy(), X.copy()
        is_nan = np.isnan(X.data)
        filled.data = np.where(is_nan, 0.0, X.data)
        missing.data = is_nan.astype(np.float64)
        return filled, missing
    is_nan = np.isnan(X)
    return np.where(is_nan, 0.0, X), is_nan


def first_observed(X: Matrix) -> Array:
    """Return (D,) the first value that is not NaN in each column, 0 where there is none."""
    head = dense_block(X, slice(0, 1))
    if len(head) and not np.isnan(head).any():
        return head[0].copy()
    values = np.zeros(X.shape[1])
    todo = np.arange(X.shape[1])
    for rows in row_blocks(*X.shape):
        block = dense_block(X, rows)[:, todo]
        seen = ~np.isnan(block)
        observed = seen.any(axis=0)
        values[todo[observed]] = block[seen.argmax(axis=0)[observed], np.flatnonzero(observed)]
        todo = todo[~observed]
        if not todo.size:
            break
    return values


# ------------------------------------------------------------------------------------------- counts


def refuse_negative_counts(X: Matrix) -> None:
    """Raise if a cell is below 0, and say which; NaN is not looked at."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind in "ub" or values.size == 0 or not np.fmin.reduce(values, axis=None) < 0:
        return
    i, j, value = first_cell(X, values < 0)
    why = f", feature {j} is {value:g}"
    raise InputError("counts must be >= 0:", why, row=i, column=j, place=" row {}")


def pattern(cells: sparse.csr_matrix) -> sparse.csr_matrix:
    """1 at every stored cell."""
    ones = np.ones(len(cells.data))
    return sparse.csr_matrix((ones, cells.indices, cells.indptr), shape=cells.shape)


def distinct_cells(cells: sparse.csr_matrix) -> tuple[Array, Array, sparse.csr_matrix]:
    """Columns (U,) and values (U,) of the distinct cells, and which row has which, (n, U).

    A function of column and value is computed once for all rows that share a cell, and
    `shared_sums` gives each row its own.
    """
    import pandas as pd

    code, values = pd.factorize(cells.data)
    which, use = pd.factorize(code * cells.shape[1] + cells.indices)
    counts = sparse.csr_matrix(
        (np.ones(len(which)), which, cells.indptr), shape=(cells.shape[0], len(use))
    )
    return use % cells.shape[1], values[use // cells.shape[1]], counts


def shared_sums(rows: Matrix, table: Array) -> Array:
    """Multiply rows (n, U), dense or sparse, with a table (..., U): (..., n)."""
    *lead, width = table.shape
    flat = table.reshape(int(np.prod(lead)), width).T
    return np.asarray(rows @ flat).T.reshape(*lead, rows.shape[0])


def small_count_table(
    function: Callable[[Any, Array], Array], X: Matrix, n_tables: int
) -> Callable[[Array, Array], Array]:
    """``function(columns, counts)``, made to look up small whole counts in a table.

    The table covers counts below 16, or fewer if it would be larger than X has cells.
    """
    n_features = max(1, X.shape[1])
    n_cells = X.nnz if sparse.issparse(X) else X.shape[0] * n_features
    below = min(16, n_cells // n_features, (1 << 23) // (n_features * n_tables))
    if below < 2:
        return function
    table = function(slice(None), np.arange(below, dtype=np.float64)[:, None]).ravel()

    def look_up(columns: Array, counts: Array) -> Array:
        whole = np.minimum(counts, below).astype(np.intp)
        small = (whole == counts) & (whole < below)
        if small.all():
            return table.take(whole * n_features + columns)
        values = np.empty(len(counts))
        values[small] = table.take(whole[small] * n_features + columns[small])
        large = ~small
        values[large] = function(columns[large], counts[large])
        return values

    return look_up
