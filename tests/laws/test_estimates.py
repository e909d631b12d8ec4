"""Plug-in estimates: the largest likelihood, and agreement in large samples."""

import numpy as np
import pytest

from bayesgen.families.errors import UndefinedEstimateError
from tests.laws.cases import close, first, fits_missing, has_density, only


def test_no_theta_explains_the_data_better_than_the_mle(case):
    X, y = case.rows(60)
    weight = case.rng().gamma(1.0, size=60)
    stats = case.stats(X, y, weight)
    try:
        mle = case.prior.mle(stats)
    except UndefinedEstimateError:
        pytest.skip("this data set has no maximum-likelihood estimate")
    rows = np.arange(len(y))
    best = case.prior.update(stats).log_likelihood(X, mle)[rows, y] @ weight
    assert np.isfinite(best)
    assert mle.keys() >= case.prior.params.keys()
    for _ in range(5):  # from far away to close by
        posterior = case.prior.update(stats)
        draws = posterior.draw(case.rng(12), 100)
        assert all(v.shape[1:] == mle[name].shape for name, v in draws.items())
        theirs = posterior.log_likelihood(X, draws)[:, rows, y] @ weight
        assert theirs.max() <= best + 1e-9 * (1 + abs(best))
        for _ in range(4):
            stats = stats.merge(stats)


@only(fits_missing, lambda case: case.prior.separable)
def test_the_mle_of_a_column_that_a_class_never_shows_is_refused_by_name(case):
    X, y = case.rows(30)
    X = np.array(X, dtype=float)
    X[y == 1, 2] = np.nan
    with pytest.raises(UndefinedEstimateError) as caught:
        case.prior.mle(case.stats(X, y))
    assert (caught.value.class_index, caught.value.feature_index) == (1, 2)


def test_estimates_of_a_large_sample_meet(case):
    X, y = case.rows(60)
    stats = case.stats(X, y)
    for _ in range(30):
        stats = stats.merge(stats)  # 2^30 copies: the prior is worth 1e-9 of the data
    posterior = case.prior.update(stats)
    labelled = np.arange(len(y)), y
    predictive = posterior.log_predictive(X)[labelled]
    estimates = {
        "mle": (lambda: case.prior.mle(stats), 1e-6),
        "map": (posterior.map, 1e-6),
        "mean": (posterior.mean, 1e-6),
        "draw": (lambda: first(posterior.draw(case.rng(), 1)), 1e-2),
    }
    defined = 0
    for estimate, tol in estimates.values():
        try:
            theta = estimate()
        except UndefinedEstimateError:  # a cell that no copy of the data has shown
            continue
        close(posterior.log_likelihood(X, theta)[labelled], predictive, tol)
        defined += 1
    assert defined >= 2


@only(has_density)
def test_no_theta_is_denser_than_the_map(case):
    """Nor a little away from it: the parameters of every family are a convex set."""
    posterior, _, _, _ = case.fitted(60)
    try:
        mode = posterior.map()
    except UndefinedEstimateError:
        pytest.skip("this posterior has no mode")
    draws = posterior.draw(case.rng(23), 100)
    top = posterior.log_density({name: mode[name] for name in draws})
    assert np.isfinite(top)
    for step in (1.0, 0.1, 0.01, 1e-3):
        near = {name: mode[name] + step * (value - mode[name]) for name, value in draws.items()}
        assert posterior.log_density(near).max() <= top + 1e-9 * (1 + abs(top))
