"""Every row without itself, in closed form, is what removing it and fitting again gives."""

import numpy as np
import pytest
from scipy import sparse

from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel
from tests.laws.cases import (
    close,
    fits_missing,
    has_cells_of_both_signs,
    has_real_columns,
    has_table,
    only,
    stack,
    with_missing,
)

N, SOME = 30, range(0, 30, 3)  # rows; those that are held to a fit without them
WEIGHTS = {"ones": (1.0,), "some": (0.0, 0.5, 1.0, 2.0), "large": (2.0**36, 2.0**40)}


def posterior(case, X, y, weight):
    prior = ClassModel(np.array([0.5, 1.0, 2.0]), case.prior)
    stats = prior.stats(X, y, case.n_classes, weight)
    return ExactPosterior(prior, prior.update(stats), stats)


def refitted(case, X, y, weight, rows):
    """(n, C) log joint densities of some rows after a fit to all others."""
    others = np.setdiff1d(np.arange(len(y)), rows)
    left = posterior(case, X[others], y[others], weight[others])
    return left.model.family.log_predictive(X[rows]) + np.log(left.model.mean_weights())


def weights(case, kind):
    return case.rng(8).choice(WEIGHTS[kind], size=N)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_row_leaves_as_it_came(case, kind):
    X, y = case.rows(N)
    weight = weights(case, kind)
    left_out, k = posterior(case, X, y, weight).log_joint_without(X, y, weight)
    assert np.isneginf(k).all()  # exact
    for i in SOME:
        close(left_out[i : i + 1], refitted(case, X, y, weight, [i]), 1e-11)


def test_a_group_leaves_as_it_came(case):
    X, y = case.rows(N)
    weight = weights(case, "some")
    groups = np.split(case.rng(9).permutation(N), [3, 4, 15])
    left_out = posterior(case, X, y, weight).log_joint_without_groups(X, y, weight, groups)
    for rows in groups:
        close(left_out[rows], refitted(case, X, y, weight, rows), 1e-11)


@only(fits_missing)
def test_missing_cells_of_a_row_take_nothing_with_them(case):
    X, y = case.rows(N)
    X, weight = with_missing(X, case.rng(10)), np.ones(N)
    left_out, _ = posterior(case, X, y, weight).log_joint_without(X, y, weight)
    for i in SOME:
        close(left_out[i : i + 1], refitted(case, X, y, weight, [i]), 1e-11)


@only(has_table, lambda case: case.family.sparse)
def test_sparse_rows_leave_as_dense_ones(case):
    X, y = case.rows(N)
    weight, S = np.ones(N), sparse.csr_matrix(X)
    dense, _ = posterior(case, X, y, weight).log_joint_without(X, y, weight)
    close(posterior(case, S, y, weight).log_joint_without(S, y, weight)[0], dense, 1e-12)


@only(has_real_columns, has_cells_of_both_signs)
def test_a_row_that_is_nearly_all_of_a_sum_leaves_no_rounding_error(case):
    """One cell of 1e6 among values near 1: a subtraction would keep 4 digits of the others."""
    X, y = case.rows(N)
    X = np.array(X)
    X[0, 0] = 1e6
    X[1, 1] = -3e5
    weight = np.ones(N)
    left_out, _ = posterior(case, X, y, weight).log_joint_without(X, y, weight)
    for i in (0, 1, 2, 3):
        close(left_out[i : i + 1], refitted(case, X, y, weight, [i]), 1e-9)


def test_some_rows_leave_as_among_all(case):
    X, y = case.rows(N)
    weight = np.ones(N)
    whole = posterior(case, X, y, weight)
    every, _ = whole.log_joint_without(X, y, weight)
    some = np.array([3, 4, 17])
    part, _ = whole.log_joint_without(X[some], y[some], weight[some])
    close(part, every[some], 1e-12)
    codes = np.where(np.arange(N) < 5, -1, y)  # rows that were never in keep the whole posterior
    outside, _ = whole.log_joint_without(X, codes, weight)
    close(outside[:5], whole.log_joint(X[:5]), 1e-13)
    close(stack([outside[5:]]), every[5:], 1e-12)
