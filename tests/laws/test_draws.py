"""Draws of theta, their moments and their density."""

import numpy as np
import pytest

from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from tests.laws.cases import (
    EXACT,
    N_SIGMA,
    close,
    has_density,
    likelihood_over_predictive_is_one,
    only,
    within_mcse,
)


def test_draws_pushed_through_the_likelihood_converge_to_the_predictive(case):
    case = case.sized(2, 2)
    posterior, _, _, _ = case.fitted(40)
    X, _ = case.rows(6, salt=4)
    likelihood_over_predictive_is_one(case, posterior, X, 4000)


def test_the_mean_of_the_draws_is_the_mean(case):
    posterior, _, _, _ = case.fitted(60)
    try:
        mean = posterior.mean()
    except UndefinedEstimateError:
        pytest.skip("this posterior has no mean")
    draws = posterior.draw(case.rng(9), 6000)
    assert mean.keys() == draws.keys()
    for name, value in mean.items():
        assert value.shape == draws[name].shape[1:]
        within_mcse(draws[name], value, f"mean of {name}")


def test_draws_have_the_dims_that_params_promises(case):
    posterior, _, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 5)
    assert draws.keys() == posterior.params.keys()
    sizes = {CLASS: case.n_classes, FEATURE: case.n_features, FEATURE_BIS: case.n_features}
    for name, dims in posterior.params.items():
        assert draws[name].ndim == 1 + len(dims)
        assert len(draws[name]) == 5
        assert draws[name].dtype == np.float64
        for size, dim in zip(draws[name].shape[1:], dims, strict=True):
            # a product of families has axes of its own for each block of columns
            assert dim not in sizes or size == sizes[dim] or case.family.__name__ == "Columns"
    assert posterior.n_parameters() == sum(v[0].size for v in draws.values())
    again = posterior.draw(case.rng(), 5)
    assert all(np.array_equal(again[name], value) for name, value in draws.items())


def test_theta_may_have_any_leading_axes(case):
    posterior, X, _, _ = case.fitted()
    draws = posterior.draw(case.rng(), 6)
    chains = {name: v.reshape(2, 3, *v.shape[1:]) for name, v in draws.items()}
    none = {name: v[:0] for name, v in draws.items()}
    functions = {(len(X), case.n_classes): lambda theta: posterior.log_likelihood(X, theta)}
    if has_density(case):
        functions[()] = posterior.log_density
    for shape, function in functions.items():
        flat = function(draws)
        assert flat.shape == (6, *shape)
        assert flat.dtype == np.float64
        close(function(chains), flat.reshape(2, 3, *shape), 1e-12)
        for s in range(6):
            close(function({name: v[s] for name, v in draws.items()}), flat[s], 1e-12)
        assert function(none).shape == (0, *shape)


@only(has_density)
def test_draws_follow_the_density_of_theta(case):
    """E_a sqrt(b/a) = E_b sqrt(a/b): the affinity of two posteriors, from either side."""
    case = case.sized(2, 2)
    X, y = case.rows(12)
    rng, S = case.rng(22), 4000
    a = case.prior.update(case.stats(X, y))
    b = case.prior.update(case.stats(X, y, np.full(12, 0.6)))
    sides = []
    for here, there in ((a, b), (b, a)):
        theta = here.draw(rng, S)
        sides.append(np.exp(0.5 * (there.log_density(theta) - here.log_density(theta))))
    mcse = np.hypot(*(s.std() / np.sqrt(S) for s in sides))
    assert abs(sides[0].mean() - sides[1].mean()) <= N_SIGMA * mcse + EXACT
    assert mcse < 0.05
