"""Intervals of class probabilities given the row too, against draws weighted by p(x | theta)."""

from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp

from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.intervals import class_probability_intervals
from bayesgen.predict.request import IntervalRequest
from tests.laws.cases import N_SIGMA, is_table, only, takes_missing, with_missing

ENOUGH = 400.0  # draws that the weights of a row must leave


def draws(case, model, X, n=6000):
    """(n, C) class weights and (n, N, C) log densities of plain draws of theta."""
    theta = model.draw(case.rng(31), n)
    return theta.pop(CLASS_WEIGHTS), model.family.log_likelihood(X, theta)


def weighted(weights, log_x, class_prior=None):
    """(n, N) weights of sum 1 and (n, N, C) log-odds of plain draws of theta."""
    pi = weights if class_prior is None else np.asarray(class_prior)[None]
    a = np.log(pi)[:, None] + log_x
    log_x = logsumexp(a, axis=-1)
    rest = [logsumexp(np.delete(a, c, axis=-1), axis=-1) for c in range(a.shape[-1])]
    return np.exp(log_x - logsumexp(log_x, axis=0)), a - np.stack(rest, axis=-1)


def held_to_weighted_draws(model, X, plain, **options):
    """The posterior probability below each end, by the weighted draws, in their own MCSE."""
    weights, odds = weighted(*plain, options.get("class_prior"))
    sane = 1 / np.square(weights).sum(axis=0) > ENOUGH
    assert sane.any()
    request = IntervalRequest(0.8, "eti", options.pop("method", "auto"), "training and row")
    found = class_probability_intervals(model, X, request, n_draws=1 << 12, **options)
    assert (found.log_odds_lower < found.log_odds_upper).all()
    for tail, end in ((0.1, found.log_odds_lower), (0.9, found.log_odds_upper)):
        below = odds <= end
        miss = np.einsum("sn,snc->nc", weights, below - tail)
        mcse = np.sqrt(np.einsum("sn,snc->nc", weights**2, (below - tail) ** 2))
        slack = N_SIGMA * np.hypot(mcse, found.error[:, None]) + 1e-3
        assert (np.abs(miss) <= slack)[sane].all(), np.abs(miss / slack)[sane].max()


def posterior(case, n_rows=30):
    family, *_ = case.fitted(n_rows)
    X, _ = case.rows(3, salt=6)
    return ClassModel(np.arange(2.0, 2 + case.n_classes), family), X


@cache
def posterior_and_draws(case):
    model, X = posterior(case)
    return model, X, draws(case, model, X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_the_row_draws_are_weighted_by_its_density(case, n_classes):
    held_to_weighted_draws(*posterior_and_draws(case.sized(n_classes, 2)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_that_replace_the_fitted_ones(case, n_classes):
    model, X, (pi, log_x) = posterior_and_draws(case.sized(n_classes, 2))
    prior = np.arange(1.0, n_classes + 1)
    # without class weights to smooth it a cumulant generating function falls slowly: one row
    held_to_weighted_draws(model, X[:1], (pi, log_x[:, :1]), class_prior=prior / prior.sum())


@only(takes_missing)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_cells(case, n_classes):
    case = case.sized(n_classes, 3)
    model, X = posterior(case)
    assert is_table(X)
    X = with_missing(X, case.rng(32))
    held_to_weighted_draws(model, X, draws(case, model, X))


def test_the_route_by_draws(case):
    # the number of classes that the laws above have of this example
    model, X, (pi, log_x) = posterior_and_draws(case.sized(3 - case.index % 2, 2))
    held_to_weighted_draws(model, X[:2], (pi, log_x[:, :2]), method="draws")
