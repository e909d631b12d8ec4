"""Normal rows with missing cells: densities, gradients, sigma points, against SciPy."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from bayesgen.families.shared import gaussian
from bayesgen.numerics.kernels import gaussian as missing_cells

NAN = np.nan


def rows_with_gaps(n: int = 60, d: int = 4, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d) + 5.0
    X[rng.random((n, d)) < 0.3] = NAN
    X[0], X[1] = NAN, 5.0  # nothing observed, everything observed
    mu = rng.normal(size=(3, d)) * 10.0 ** np.arange(d)
    A = rng.normal(size=(3, d, d)) * 10.0 ** np.arange(d)[:, None]
    return X, mu, A @ A.transpose(0, 2, 1) + np.diag(100.0 ** np.arange(d))


def kernel_arguments(X: np.ndarray) -> tuple[np.ndarray, ...]:
    at = gaussian.Patterns.of(X)  # whole numbers as PyMC hands them over
    return np.nan_to_num(X), *(a.astype(np.int32) for a in (at.order, at.first, at.seen))


def by_scipy(X: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    out = np.zeros((len(X), len(mu)))
    for i, c in np.ndindex(out.shape):
        seen = ~np.isnan(X[i])
        if seen.any():
            part = sigma[c % len(sigma)][np.ix_(seen, seen)]
            out[i, c] = stats.multivariate_normal.logpdf(X[i, seen], mu[c, seen], part)
    return out


@pytest.mark.parametrize("shared", [False, True])
def test_densities_of_the_observed_cells_are_scipys(shared):
    X, mu, sigma = rows_with_gaps()
    sigma = sigma[:1] if shared else sigma
    found = missing_cells.observed_normal(*kernel_arguments(X), mu, sigma)
    np.testing.assert_allclose(found, by_scipy(X, mu, sigma), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shared", [False, True])
def test_their_gradient_is_that_of_finite_differences(shared):
    X, mu, sigma = rows_with_gaps(d=3)
    sigma = sigma[:1] if shared else sigma
    weight = np.random.default_rng(1).normal(size=(len(X), 3))
    arguments = kernel_arguments(X)
    d_mu, d_sigma = missing_cells.observed_normal_gradient(*arguments, mu, sigma, weight)

    def total(mu: np.ndarray, sigma: np.ndarray) -> float:
        return float((weight * missing_cells.observed_normal(*arguments, mu, sigma)).sum())

    rng, h = np.random.default_rng(2), 1e-6
    unit = 10.0 ** np.arange(3)
    for _ in range(5):
        step = rng.normal(size=mu.shape) * unit
        slope = (total(mu + h * step, sigma) - total(mu - h * step, sigma)) / (2 * h)
        assert np.sum(d_mu * step) == pytest.approx(slope, rel=1e-6)
        step = rng.normal(size=sigma.shape) * np.outer(unit, unit)
        step = step + step.transpose(0, 2, 1)
        slope = (total(mu, sigma + h * step) - total(mu, sigma - h * step)) / (2 * h)
        assert np.sum(d_sigma * step) == pytest.approx(slope, rel=1e-6)


def test_a_covariance_that_is_none_has_no_density():
    X, mu, _ = rows_with_gaps(d=2)
    bad = np.array([[[1.0, 2.0], [2.0, 1.0]]])
    found = missing_cells.observed_normal(*kernel_arguments(X), mu, bad)
    assert np.isnan(found[~np.isnan(X).any(axis=1)]).all()


def test_sigma_points_have_the_likelihood_of_the_rows():
    X, mu, sigma = rows_with_gaps(2000)
    weight = np.random.default_rng(3).random(len(X)) + 0.1
    points, mass = gaussian.sigma_points(X, weight)
    assert len(points) <= 2 * 4 * 16
    np.testing.assert_allclose(mass.sum(), weight.sum())
    np.testing.assert_allclose(
        mass @ by_scipy(points, mu, sigma), weight @ by_scipy(X, mu, sigma), rtol=1e-10
    )


def test_sigma_points_of_few_equal_or_empty_rows():
    rows = np.array([[1.0, NAN], [NAN, NAN], [NAN, NAN]])
    points, mass = gaussian.sigma_points(rows, np.array([1.0, 2.0, 0.5]))
    assert sorted(mass.tolist()) == [1.0, 2.5]
    same = np.tile([3.0, 1e8], (9, 1))
    points, mass = gaussian.sigma_points(same, np.ones(9))
    np.testing.assert_array_equal(points, np.tile([3.0, 1e8], (4, 1)))
