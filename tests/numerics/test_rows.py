"""Passes over rows against plain NumPy, on the same numbers dense and sparse, wide and narrow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, special

from bayesgen.numerics.rows import (
    class_counts,
    class_sums,
    columns_of,
    dense_block,
    dot,
    dot_log,
    exact_parts,
    few_at_a_time,
    has_nan,
    multiply,
    one_hot,
    over_draws,
    refuse_negative_counts,
    remainder,
    row_blocks,
    row_sums,
    small_count_table,
    split_missing,
    stored_blocks,
    stored_cells,
    sum_except,
)
from bayesgen.numerics.special import log_gamma_difference

property_test = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def some_counts(n_rows, n_features, rng, density=0.3):
    X = rng.poisson(3.0, size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    return X.astype(np.float64)


def every_form(X):
    """The same numbers as dense and sparse, wide and narrow."""
    for dtype in (np.float64, np.float32, np.int64, np.uint8):
        yield X.astype(dtype)
        yield sparse.csr_matrix(X.astype(dtype))
        yield sparse.csr_array(X.astype(dtype))


@property_test
@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_row_blocks_cover_the_rows_once(n_rows, n_columns):
    blocks = []
    for block in row_blocks(n_rows, n_columns):
        blocks.append(block)
        if len(blocks) > 50:
            return
    edges = [0, *(b.stop for b in blocks)]
    assert [b.start for b in blocks] == edges[:-1]
    assert edges[-1] == n_rows
    assert all(b.stop > b.start for b in blocks)
    widest = max((b.stop - b.start for b in blocks), default=0)
    assert widest <= 1 or widest * n_columns <= 2**18


def test_one_hot_and_class_counts():
    y, w = np.array([2, 0, 2, 2]), np.array([0.5, 1.0, 0.0, 2.0])
    hot = one_hot(y, 4).toarray()
    np.testing.assert_array_equal(hot, (y == np.arange(4)[:, None]).astype(float))
    np.testing.assert_array_equal(one_hot(y, 4, w).toarray(), hot * w)
    np.testing.assert_array_equal(class_counts(y, 4), [1, 0, 3, 0])
    np.testing.assert_array_equal(class_counts(y, 4, w), [1, 0, 2.5, 0])
    nobody = class_counts(y[:0], 3)
    np.testing.assert_array_equal(nobody, np.zeros(3))
    assert nobody.dtype == np.float64


@pytest.mark.parametrize("weighted", [False, True])
def test_class_sums(weighted):
    rng = np.random.default_rng(1)
    X, y = some_counts(50, 7, rng), rng.integers(4, size=50)
    w = rng.gamma(1.0, size=50) if weighted else None
    weights = np.ones(50) if w is None else w
    expected = np.array([(weights * (y == c)) @ X for c in range(5)])
    squared = np.array([(weights * (y == c)) @ X**2 for c in range(5)])
    for form in every_form(X):
        out = class_sums(form, y, 5, w)
        assert type(out) is np.ndarray
        assert out.dtype == np.float64
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        np.testing.assert_allclose(class_sums(form, y, 5, w, np.square), squared, rtol=1e-13)


def test_class_sums_in_many_blocks():
    rng = np.random.default_rng(2)
    X, y = rng.random((5000, 300)), rng.integers(3, size=5000)
    assert len(list(row_blocks(*X.shape))) > 3
    expected = np.array([X[y == c].sum(axis=0) for c in range(3)])
    np.testing.assert_allclose(class_sums(X, y, 3), expected, rtol=1e-12)


def test_sums_of_narrow_numbers_are_wide():
    X = np.full((1 << 14, 1), 1e4 + 1 / 3, dtype=np.float32)
    total = class_sums(X, np.zeros(len(X), dtype=int), 1)
    assert total[0, 0] == float(X[0, 0]) * len(X)
    small = np.full((300, 1), 255, dtype=np.uint8)
    for form in (small, sparse.csr_matrix(small)):
        assert class_sums(form, np.zeros(300, dtype=int), 1)[0, 0] == 300 * 255
        assert dot(form, np.array([[2.0]]))[0, 0] == 510


def test_dot_and_dot_log():
    rng = np.random.default_rng(3)
    X = some_counts(20, 6, rng)
    table = rng.normal(size=(2, 3, 4, 6))
    p = rng.dirichlet(np.ones(6), size=(2, 3, 4))
    p[0, 1, 2, [0, 3]] = 0.0
    expected = special.xlogy(X[:, None], p[..., None, :, :]).sum(axis=-1)
    assert np.isneginf(expected).any()
    assert np.isfinite(expected[0, 1]).any()
    for form in every_form(X):
        out = dot(form, table)
        assert type(out) is np.ndarray
        assert out.shape == (2, 3, 20, 4)
        np.testing.assert_allclose(out, np.einsum("nd,abcd->abnc", X, table), atol=1e-12)
        np.testing.assert_allclose(dot_log(form, p), expected, rtol=1e-13)
        assert dot(form, table[0, 0]).shape == (20, 4)
    nothing = np.zeros((2, 6))
    np.testing.assert_array_equal(dot_log(nothing, p[0, 1]), np.zeros((2, 4)))


def test_has_nan_and_split_missing():
    X = np.array([[1.0, np.nan, 0.0], [0.0, 2.0, np.nan]])
    seen = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    for form in (X, sparse.csr_matrix(X), X.astype(np.float32)):
        before = form.copy()
        assert has_nan(form)
        filled, missing = split_missing(form)
        filled, missing = (np.asarray(dense_block(f, slice(None))) for f in (filled, missing))
        np.testing.assert_array_equal(filled, seen)
        np.testing.assert_array_equal(missing, np.isnan(X))
        both = (dense_block(form, slice(None)), dense_block(before, slice(None)))
        np.testing.assert_array_equal(*both)
    whole = np.nan_to_num(X)
    for form in (*every_form(whole), whole.astype(bool), np.zeros((0, 3)), whole[:, :0]):
        assert not has_nan(form)
        same, nothing = split_missing(form)
        assert same is form
        assert nothing is None
    assert not has_nan(np.array([[np.inf, -np.inf]]))


def test_dense_block_is_a_plain_wide_array():
    X = some_counts(9, 4, np.random.default_rng(4))
    for form in every_form(X):
        block = dense_block(form, slice(2, 5))
        assert type(block) is np.ndarray
        assert block.dtype == np.float64
        np.testing.assert_array_equal(block, X[2:5])


# --------------------------------------------------------------------------------- rows of counts


def test_negative_counts_are_refused_with_their_place():
    X = np.array([[1.0, 2.0, np.nan], [0.0, -3.0, 1.0]])
    for form in (X, sparse.csr_matrix(X), np.nan_to_num(X).astype(np.int32)):
        with pytest.raises(ValueError, match="row 1, feature 1 is -3"):
            refuse_negative_counts(form)
    for form in (np.abs(X), np.zeros((0, 2)), X[:1], np.array([[True]]), sparse.csr_matrix((3, 2))):
        refuse_negative_counts(form)
    refuse_negative_counts(np.full((2, 2), np.nan))


def test_stored_cells_are_each_cell_once_and_leave_x_alone():
    data, indices, indptr = [1.0, 2.0, 4.0, 0.0], [2, 0, 2, 1], [0, 3, 4]
    messy = sparse.csr_matrix((data, indices, indptr), shape=(2, 3))
    cells = stored_cells(messy, slice(None))
    np.testing.assert_array_equal(cells.toarray(), [[2.0, 0.0, 5.0], [0.0, 0.0, 0.0]])
    assert cells.has_canonical_format
    assert messy.nnz == 4
    X = some_counts(40, 5, np.random.default_rng(5))
    X[3, 2] = np.nan
    for form in (X, sparse.csr_matrix(X), X.astype(np.float32)):
        np.testing.assert_array_equal(stored_cells(form, slice(1, 30)).toarray(), X[1:30])
        blocks = list(stored_blocks(form, 100))
        np.testing.assert_array_equal(np.vstack([c.toarray() for _, c in blocks]), X)
        assert [rows.stop - rows.start for rows, _ in blocks] == [c.shape[0] for _, c in blocks]


def test_row_sums_with_empty_rows():
    indptr = np.array([0, 0, 2, 2, 3, 3])
    values = np.array([[1.0, 2.0, 5.0], [10.0, 20.0, 50.0]])
    expected = [[0.0, 3.0, 0.0, 5.0, 0.0], [0.0, 30.0, 0.0, 50.0, 0.0]]
    np.testing.assert_array_equal(row_sums(values, indptr), expected)
    np.testing.assert_array_equal(row_sums(values[0] * 1j, indptr), np.array(expected[0]) * 1j)
    np.testing.assert_array_equal(row_sums(np.zeros(0), np.zeros(4, dtype=int)), np.zeros(3))


def test_sum_except_has_no_cancellation():
    rng = np.random.default_rng(6)
    table = rng.random((3, 200)) * np.where(rng.random(200) < 0.05, 1e12, 1.0)
    mask = table.max(axis=0) > 1e6  # leave the huge entries out
    masks = np.stack([mask, np.zeros(200, dtype=bool), np.ones(200, dtype=bool)])
    expected = np.array([[math.fsum(row[~m]) for row in table] for m in masks])
    parts = exact_parts(table)
    for form in (masks, sparse.csr_matrix(masks.astype(float))):
        np.testing.assert_allclose(sum_except(form, parts), expected, rtol=1e-12, atol=1e-10)
    assert np.all(exact_parts(np.zeros((2, 3))) == 0)


def test_remainder_is_never_a_rounding_error():
    total, part = np.array([1.0, 0.3, 0.0, 5.0]), np.array([0.25, 0.1 + 0.2, 0.0, 5.0])
    rest = remainder(total, part)
    np.testing.assert_array_equal(rest, [0.75, 0.0, 0.0, 0.0])


def test_small_count_table_looks_up_what_the_function_says():
    rng = np.random.default_rng(7)
    X = some_counts(400, 6, rng) + (rng.random((400, 6)) < 0.01) * 100
    X[0, :3] = [0.5, 15.0, 16.0]
    shape = rng.gamma(2.0, size=6)

    def function(columns, counts):
        return log_gamma_difference(shape[columns], counts)

    for form in (X, sparse.csr_matrix(X)):
        cells = stored_cells(form, slice(None))
        look_up = small_count_table(function, form, 1)
        assert look_up is not function
        np.testing.assert_array_equal(
            look_up(cells.indices, cells.data), function(cells.indices, cells.data)
        )
    assert small_count_table(function, X[:1], 1) is function


@pytest.mark.parametrize("make", [np.array, np.asfortranarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("d", [3, 90, 5000])
@pytest.mark.parametrize("lead", [(), (1,), (7,), (2, 30)])
def test_products_over_draws(make, d, lead):
    rng = np.random.default_rng(5)
    X, p = some_counts(40, d, rng), rng.normal(size=(*lead, 3, d))

    def score(block, rows, table, out):
        multiply(block, table, out)
        out += X[rows].sum(axis=1)[:, None]

    found = over_draws(make(X), p, columns_of, score)
    assert found.shape == (*lead, 40, 3)
    expected = np.moveaxis(np.tensordot(X, p, axes=(1, p.ndim - 1)), 0, -2)
    np.testing.assert_allclose(found, expected + X.sum(axis=1)[:, None], rtol=1e-11, atol=1e-11)


def test_few_at_a_time():
    parts = list(few_at_a_time(np.arange(600) * 3))
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(600) * 3)
    assert max(map(len, parts)) <= 256
    assert list(few_at_a_time(np.arange(0))) == []
