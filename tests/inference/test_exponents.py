"""Exponents of a pool: against SciPy's optimiser, numerical derivatives and PyMC's log density."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import gamma, norm

from bayesgen.inference.exponents import (
    ExponentPrior,
    comparable,
    fit,
    fit_without_each_row,
    pooled,
)
from tests.selection import crossed

N, M, C = 60, 3, 4


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    codes = rng.integers(C, size=N)
    scores = rng.normal(size=(M, N, C)) * np.array([1.0, 4.0, 9.0])[:, None, None]
    scores[:, np.arange(N), codes] += 2
    return comparable(scores), codes, rng.choice([0.5, 1.0, 2.0], size=N)


def minus_log_posterior(point, scores, codes, weight, prior, offset=0.0):
    """In coordinates (log eta, b), by SciPy's densities."""
    m, _, n_classes = scores.shape
    eta, b = np.exp(point[:m]), point[m:] if len(point) > m else np.zeros(n_classes)
    s = np.einsum("m,mnc->nc", eta, scores) + b + offset
    loss = -(weight * (s[np.arange(len(s)), codes] - logsumexp(s, axis=1))).sum()
    loss -= gamma(prior.shape, scale=prior.mean / prior.shape).logpdf(eta).sum() + point[:m].sum()
    if prior.intercept_scale is not None:
        loss -= norm(scale=prior.intercept_scale).logpdf(b).sum()
    return loss


def test_a_first_step_that_is_far_too_long():
    """Probabilities of 0 and 1 have no curvature: the step is as long as the weights are large."""
    codes, weight = np.repeat([0, 1], 3), np.full(6, 1e12)
    scores = np.full((2, 6, 2), -300.0)
    scores[:, np.arange(6), codes] = 0
    scores[:, 0] = scores[:, 0, ::-1]  # sure, and wrong
    prior = ExponentPrior(0.5, 0.5, None)
    found = fit(comparable(scores), codes, weight, prior)
    eta = found.exponents.sum()
    share = 1 / (1 + np.exp(-300 * eta))
    np.testing.assert_allclose(share, 5 / 6, atol=1e-4)


@pytest.mark.parametrize(("shape", "scale"), crossed([0.5, 1.0, 3.0], [None, 2.0]))
def test_mode_and_curvature(problem, shape, scale):
    prior = ExponentPrior(shape, 1 / M, scale)
    offset = np.array([0.3, -0.2, 0.0, 1.0])
    found = fit(*problem, prior, offset)
    arguments = (*problem, prior, offset)
    start = np.concatenate([np.full(M, np.log(1 / M)), np.zeros(0 if scale is None else C)])
    best = minimize(minus_log_posterior, start, arguments, method="BFGS", options={"gtol": 1e-7})
    point = np.log(found.exponents)
    if scale is not None:
        point = np.concatenate([point, found.intercepts])
    np.testing.assert_allclose(point, best.x, atol=2e-4)
    assert minus_log_posterior(point, *arguments) <= best.fun + 1e-8
    step = 1e-4 * np.eye(len(point))
    hessian = np.array(
        [
            [
                sum(
                    a * b * minus_log_posterior(point + a * u + b * v, *arguments)
                    for a in (1, -1)
                    for b in (1, -1)
                )
                / 4e-8
                for v in step
            ]
            for u in step
        ]
    )
    np.testing.assert_allclose(np.linalg.inv(found.covariance), hessian, rtol=1e-3, atol=1e-3)
    assert np.any(found.intercepts) == (scale is not None)


def test_draws_have_the_moments_of_the_approximation(problem):
    found = fit(*problem, ExponentPrior(0.5, 1 / M, 2.0))
    eta, b = found.draw(np.random.default_rng(0), 40_000)
    draws = np.concatenate([np.log(eta / found.exponents), b - found.intercepts], axis=1)
    sd = np.sqrt(np.diag(found.covariance))
    assert np.all(np.abs(draws.mean(axis=0)) < 5 * sd / 200)
    error = np.cov(draws.T) - found.covariance
    assert np.all(np.abs(error) < 5 * np.outer(sd, sd) * np.sqrt(2 / 40_000))


def test_unweighted_rows_of_weight_two_are_rows_given_twice(problem):
    scores, codes, _ = problem
    prior = ExponentPrior(0.5, 1 / M, 2.0)
    twice = fit(np.tile(scores, (1, 2, 1)), np.tile(codes, 2), np.ones(2 * N), prior)
    weighted = fit(scores, codes, np.full(N, 2.0), prior)
    np.testing.assert_allclose(twice.exponents, weighted.exponents, rtol=1e-6)


def test_perfectly_separated_rows_have_a_mode():
    """The likelihood grows without bound in the exponent; the prior does not let it."""
    scores = comparable(np.array([[[0.0, -50.0], [-50.0, 0.0]]]))
    found = fit(scores, np.array([0, 1]), np.ones(2), ExponentPrior(0.5, 1.0, 2.0))
    assert 0 < found.exponents[0] < 10


def test_scores_are_relative_and_bounded():
    values = comparable(np.array([[1e4, 0.0], [-np.inf, 5.0], [-np.inf, -np.inf]]))
    np.testing.assert_array_equal(values, [[0, -300], [-300, 0], [0, 0]])
    log_p = pooled(values[None], np.array([0.01]), np.zeros(2))
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="need rows"):
        fit(np.zeros((1, 0, 2)), np.zeros(0, int), np.zeros(0), ExponentPrior(1.0, 1.0, None))


@pytest.mark.parametrize("scale", [None, 2.0])
def test_a_newton_step_leaves_a_row_out(problem, scale):
    """Against a fit for each row: what remains is of the second order in the row's share."""
    scores, codes, weight = problem
    prior, offset = ExponentPrior(0.5, 1 / M, scale), np.array([0.3, -0.2, 0.0, 1.0])
    every = fit(*problem, prior, offset)
    step = fit_without_each_row(every, *problem, prior, offset)
    refits = np.empty((N, C))
    for i in range(N):
        rest = np.arange(N) != i
        found = fit(scores[:, rest], codes[rest], weight[rest], prior, offset)
        refits[i] = pooled(scores[:, [i]], found.exponents, found.intercepts + offset)[0]
    with_it = pooled(scores, every.exponents, every.intercepts + offset)
    own = np.arange(N), codes
    effect = (with_it - refits)[own]
    assert effect.sum() > 1.5  # nats
    assert abs((step - refits)[own].sum()) < 0.05 * effect.sum()
    np.testing.assert_allclose(step[own], refits[own], atol=0.1)
    np.testing.assert_allclose(np.exp(step).sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [3, 40])
def test_a_row_is_taken_out_by_one_newton_step(n_classes):
    """Beside refits, for few classes and for more than those whose curvature is taken out."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(4 * n_classes) % n_classes
    scores = comparable(3 * rng.normal(size=(2, len(y), n_classes)) + 3 * np.eye(n_classes)[y])
    weight, prior = rng.choice([1.0, 2.0], len(y)), ExponentPrior(0.5, 0.5, 2.0)
    found = fit(scores, y, weight, prior)
    log_p = fit_without_each_row(found, scores, y, weight, prior)
    for i in (0, 5):
        rest = np.arange(len(y)) != i
        own = fit(scores[:, rest], y[rest], weight[rest], prior)
        refit = pooled(scores[:, [i]], own.exponents, own.intercepts)[0]
        with_row = pooled(scores[:, [i]], found.exponents, found.intercepts)[0]
        gap = abs(refit[y[i]] - with_row[y[i]])
        assert abs(log_p[i, y[i]] - refit[y[i]]) < max(0.25 * gap, 1e-3)


def test_a_row_with_most_of_the_weight_is_taken_out_by_a_fit(problem):
    """One Newton step from where that row alone decides is far from what the others say."""
    scores, codes, weight = problem
    weight = np.where(np.arange(N) == 7, 1e4, weight)
    prior, rest = ExponentPrior(0.5, 1 / M, 2.0), np.arange(N) != 7
    found = fit(scores, codes, weight, prior)
    log_p = fit_without_each_row(found, scores, codes, weight, prior)
    own = fit(scores[:, rest], codes[rest], weight[rest], prior)
    refit = pooled(scores[:, [7]], own.exponents, own.intercepts)
    np.testing.assert_allclose(log_p[[7]], refit, rtol=1e-12)
    assert abs(pooled(scores[:, [7]], found.exponents, found.intercepts) - refit).max() > 0.1
