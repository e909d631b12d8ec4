"""Bits: against SciPy's beta-binomial, enumeration, a numerical optimiser, and worked numbers."""

import numpy as np
import pytest

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli

# 13 samples of two bits: class 0 once (1, 1); class 1 four times each of the other three rows


def fitted(X, y, n_classes, weight=None, **prior):
    family = BetaBernoulli(**prior)
    seen = family.stats(X, y, n_classes, weight)
    return family.resolve(seen).update(seen), seen


def test_real_weights_leave_no_trace_of_rounding():
    """0.1 + 0.2 + ... summed twice in different ways: the zeros of a column of ones are 0."""
    weight = np.random.default_rng(0).random(1001)
    X = np.ones((1001, 1))
    X[::3] = np.nan
    posterior, seen = fitted(X, np.zeros(1001, dtype=int), 1, weight)
    assert seen.zeros[0, 0] == 0
    assert posterior.mle(seen)["theta"][0, 0] == 1
    with np.errstate(divide="ignore"):
        assert posterior.log_likelihood(np.zeros((1, 1)), posterior.mle(seen)) == -np.inf


def test_huge_counts():
    """Totals of 1e12: the evidence of one more row is its predictive."""
    posterior = BetaBernoulli(np.array([[1e12, 3e12]]), np.array([[2e12, 5.0]]))
    x = np.array([[1, 0]])
    seen = posterior.stats(x, np.array([0]), 1)
    assert posterior.log_evidence(seen) == pytest.approx(
        posterior.log_predictive(x)[0, 0], rel=1e-12
    )
    expected = np.log(1 / 3) + np.log(5 / (3e12 + 5))
    assert posterior.log_predictive(x)[0, 0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("weight", [np.ones(30), np.arange(30) % 3 + 1.0])
def test_rows_leave_without_a_refit_where_counts_end_with_them(weight):
    """Columns that one row alone has, or all but one; that rows leave: laws/test_leave_one_out."""
    X = np.zeros((30, 34))
    X[np.arange(30), np.arange(30)] = 1
    X[:, 30:32] = 1
    X[3, 31] = 0
    y = np.arange(30) % 2
    family = BetaBernoulli(np.ones((2, 34)), np.ones((2, 34)))
    posterior = family.update(family.stats(X, y, 2, weight))
    log_p, left = posterior.log_predictive_without(X, y, weight)
    others = np.arange(30) != 3
    refit = family.update(family.stats(X[others], y[others], 2, weight[others]))
    assert (left > 0).all()
    assert log_p[3, 1] == pytest.approx(refit.log_predictive(X[3:4])[0, 1], rel=1e-12)
