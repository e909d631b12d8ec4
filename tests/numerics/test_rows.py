"""Passes over rows against plain NumPy, on the same numbers dense and sparse, wide and narrow."""

import math

import numpy as np
import pytest
from scipy import sparse, special

from bayesgen.numerics.rows import (
    class_sums,
    dense_block,
    dot,
    dot_log,
    exact_parts,
    has_nan,
    refuse_negative_counts,
    split_missing,
    sum_except,
)


def some_counts(n_rows, n_features, rng, density=0.3):
    X = rng.poisson(3.0, size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    return X.astype(np.float64)


def every_form(X):
    """The same numbers as dense and sparse, wide and narrow."""
    for dtype in (np.float64, np.float32, np.int64, np.uint8):
        yield X.astype(dtype)
        yield sparse.csr_matrix(X.astype(dtype))
        yield sparse.csr_array(X.astype(dtype))


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


# --------------------------------------------------------------------------------- rows of counts


def test_negative_counts_are_refused_with_their_place():
    X = np.array([[1.0, 2.0, np.nan], [0.0, -3.0, 1.0]])
    for form in (X, sparse.csr_matrix(X), np.nan_to_num(X).astype(np.int32)):
        with pytest.raises(ValueError, match="row 1, feature 1 is -3"):
            refuse_negative_counts(form)
    for form in (np.abs(X), np.zeros((0, 2)), X[:1], np.array([[True]]), sparse.csr_matrix((3, 2))):
        refuse_negative_counts(form)
    refuse_negative_counts(np.full((2, 2), np.nan))


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
