"""Narrow, sparse, strided and read-only rows give the same numbers."""

import copy
from itertools import pairwise

import numpy as np
from scipy import sparse

from tests.laws.cases import close, first, fits_missing, has_table, is_table, only, with_missing


def _everything(case, X, y, weight, theta):
    """Every number that a family computes from rows."""
    stats = case.stats(X, y, weight)
    posterior = case.prior.update(stats)
    return (
        posterior.log_predictive(X),
        posterior.log_likelihood(X, theta),
        np.array(case.prior.log_evidence(stats)),
    )


def _same_input(case, X, same, y=None, weight=None, tol=1e-12):
    if y is None:
        y = np.arange(X.shape[0]) % case.n_classes
    # one theta for both: draws that reject may go different ways for numbers 1e-16 apart
    theta = case.prior.update(case.stats(same, y, weight)).draw(case.rng(), 3)
    for actual, expected in zip(
        _everything(case, X, y, weight, theta),
        _everything(case, same, y, weight, theta),
        strict=True,
    ):
        assert type(actual) is np.ndarray
        close(actual, expected, tol)


@only(has_table)
def test_narrow_numbers_give_the_result_of_wide_ones(case):
    X, _ = case.rows(20)
    narrow = X.astype(np.float32)
    _same_input(case, narrow, narrow.astype(np.float64))
    if np.array_equal(X, np.round(X)):
        wide = X.astype(np.float64)
        for dtype in (np.int64, np.int32, np.uint8 if X.max() < 256 else np.uint64):
            _same_input(case, X.astype(dtype), wide)
        if set(np.unique(X)) <= {0, 1}:
            _same_input(case, X.astype(bool), wide)


@only(lambda case: case.family.sparse)
def test_sparse_rows_give_the_result_of_dense_ones(case, missing):
    X, _ = case.rows(20)
    weight = case.rng().gamma(2.0, size=20)
    if missing:
        X = with_missing(X, case.rng())
    for container in (sparse.csr_matrix, sparse.csr_array):
        for dtype in (np.float64, np.float32, *(() if missing else (np.int64,))):
            _same_input(case, container(X.astype(dtype)), X, weight=weight)
    messy = sparse.csr_matrix(X.astype(np.float64))
    for start, stop in pairwise(messy.indptr):  # columns of a row in falling order
        messy.indices[start:stop] = messy.indices[start:stop][::-1].copy()
        messy.data[start:stop] = messy.data[start:stop][::-1].copy()
    messy.has_sorted_indices = False
    _same_input(case, messy, X)
    stored_zero = sparse.csr_matrix(X.astype(np.float64))
    stored_zero.data[0] = 0.0
    _same_input(case, stored_zero, np.asarray(stored_zero.todense()))


def test_any_memory_layout_will_do_and_nothing_is_written_to(case):
    X, y = case.rows(20)
    weight = case.rng().gamma(2.0, size=20)
    if not is_table(X):
        layouts = [X]
    else:
        wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
        layouts = [X, np.asfortranarray(X), wide[::2, ::3], np.ascontiguousarray(X[::-1])[::-1]]
        if fits_missing(case):
            layouts.append(with_missing(X, case.rng()))
    for layout in layouts:
        before = copy.deepcopy(layout)
        for a in (layout, y, weight, *(layout if layout.dtype == object else ())):
            a.setflags(write=False)
        _same_input(case, layout, before, y, weight)
        for now, then in zip(layout, before, strict=True):
            np.testing.assert_array_equal(now, then)
    theta = case.prior.draw(case.rng(), 2)
    for value in theta.values():
        value.setflags(write=False)
    case.prior.log_likelihood(X, theta)
    case.prior.simulate(case.rng(), first(theta), y)
