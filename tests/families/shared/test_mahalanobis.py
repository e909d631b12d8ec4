"""Squared distances: held to triangular solves one class and one draw at a time."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from bayesgen.families.shared import gaussian
from bayesgen.families.shared.gaussian import (
    inverse_of_lower,
    observed_distances,
    squared_distances,
)

RNG = np.random.default_rng(8)


@pytest.fixture(params=["one block", "small blocks"])
def both_ways(request, monkeypatch):
    if request.param != "one block":
        monkeypatch.setattr(gaussian, "_DRAWS", 4)
        monkeypatch.setattr("bayesgen.numerics.rows.BLOCK_CELLS", 60)


def factors(*shape, units=1.0):
    *lead, d, _ = shape
    a = RNG.standard_normal((*lead, d, 2 * d)) * np.broadcast_to(units, d)[:, None]
    return np.linalg.cholesky(a @ a.swapaxes(-1, -2))


def one_by_one(X, mu, factor):
    distances = np.empty((len(X), len(mu)))
    for c, m in enumerate(mu):
        z = solve_triangular(factor[c if len(factor) > 1 else 0], (X - m).T, lower=True)
        distances[:, c] = np.square(z).sum(axis=0)
    return distances


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (50, 1), (50, 3), (40, 70), (200, 70)])
@pytest.mark.parametrize("apart", [1.0, 1e7])
def test_distances_are_those_of_a_solve_for_each_class(n, d, groups, apart, both_ways):
    units = np.logspace(-6, 6, d)
    factor, mu = factors(groups, d, d, units=units), RNG.standard_normal((4, d)) * units * apart
    X = RNG.standard_normal((n, d)) * units + mu[RNG.integers(4, size=n)]
    distances = squared_distances(X, mu, inverse_of_lower(factor))
    np.testing.assert_allclose(distances, one_by_one(X, mu, factor), rtol=1e-11)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("d", [1, 9])
def test_distances_of_observed_cells_are_those_of_a_solve_for_each_row(d, groups, both_ways):
    units = np.logspace(-100, 100, d)
    factor, mu = factors(groups, d, d, units=units), RNG.standard_normal((4, d)) * units
    scale = factor @ factor.swapaxes(1, 2)
    X = np.where(RNG.random((150, d)) < 0.3, np.nan, RNG.standard_normal((150, d)) * units)
    distances, half_log_det = observed_distances(X, mu, scale)
    for x, q, half in zip(X, distances, half_log_det, strict=True):
        at = np.flatnonzero(~np.isnan(x))
        observed_factor = np.linalg.cholesky(scale[:, at[:, None], at])
        np.testing.assert_allclose(
            q, one_by_one(x[None, at], mu[:, at], observed_factor)[0], rtol=1e-12
        )
        expected = np.log(np.diagonal(observed_factor, axis1=1, axis2=2)).sum(axis=1)
        np.testing.assert_allclose(half, expected, rtol=1e-12, atol=1e-12)
