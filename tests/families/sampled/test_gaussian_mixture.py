"""GaussianMixture and MixtureDiscriminant: densities against SciPy, defaults, label switching."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
from bayesgen.inference.nuts import diagnose

NAN = np.nan
SIZES = [1, 3]


def family(covariance: str = "full", sizes: Any = SIZES) -> GaussianMixture:
    unit = {"location": np.zeros(2), "scale": np.ones(2), "resolution": np.zeros(2)}
    return GaussianMixture(n_components=sizes, covariance=covariance, **unit)._sized(2)


def drawn_theta(covariance: str, n: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    real = np.arange(3) < np.array(SIZES)[:, None]
    weight = rng.gamma(2.0, size=(n, 2, 3)) * real
    theta = {
        "weight": weight / weight.sum(axis=2, keepdims=True),
        "mu": rng.normal(size=(n, 2, 3, 2)),
        "sigma": rng.gamma(3.0, size=(n, 2, 3, 2)),
    }
    if covariance == "full":
        r = rng.uniform(-0.9, 0.9, size=(n, 2, 3, 1, 1))
        theta["correlation"] = np.eye(2) + r * (1 - np.eye(2))
    return theta


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_densities_of_the_observed_cells_are_scipys(covariance):
    theta = drawn_theta(covariance)
    X = np.random.default_rng(1).normal(size=(5, 2))
    X[0, 1] = X[1] = NAN
    log_p_of_rows = family(covariance).log_likelihood(X, theta)
    assert np.all(log_p_of_rows[:, 1] == 0.0)
    for s, i, c in np.ndindex(log_p_of_rows.shape):
        seen = np.flatnonzero(~np.isnan(X[i]))
        if not len(seen):
            continue
        terms = []
        for k in range(SIZES[c]):
            sd = theta["sigma"][s, c, k]
            omega = theta["correlation"][s, c, k] if covariance == "full" else np.eye(2)
            part = (sd[:, None] * omega * sd)[np.ix_(seen, seen)]
            mean = theta["mu"][s, c, k, seen]
            log_p = stats.multivariate_normal.logpdf(X[i, seen], mean, part)
            terms.append(np.log(theta["weight"][s, c, k]) + log_p)
        assert log_p_of_rows[s, i, c] == pytest.approx(logsumexp(terms), rel=1e-9, abs=1e-9)


def test_the_step_of_a_column_is_the_median_gap_where_values_are_equal():
    """Rounded, continuous, constant, empty, half zeros; with gaps; values computed in two ways."""
    rng = np.random.default_rng(9)
    n = 200
    tenths = np.round(rng.normal(size=n), 1)
    tenths[:2] = 0.3, 0.1 * 3
    assert tenths[0] != tenths[1]
    zeros = rng.normal(size=n) * (np.arange(n) % 2)
    X = np.stack([tenths, rng.normal(size=n), np.full(n, 7.0), np.full(n, NAN), zeros], axis=1)
    X[5:9, :2] = NAN
    y = rng.integers(-1, 2, n)
    steps = GaussianMixture().with_defaults(X, y, 2).resolution
    assert steps[0] == pytest.approx(0.1, rel=1e-9)
    assert steps[1:4].tolist() == [0.0, 1.0, 0.0]
    assert 0 < steps[4] < 0.1
    finer = np.vstack([X, X[0] + 0.05])  # one value of more digits
    weight = np.ones(n + 1)
    for last in (1.0, 0.0, 2.0):
        weight[-1] = last
        steps = GaussianMixture().with_defaults(finer, np.append(y, 0), 2, weight).resolution
        assert steps[0] == pytest.approx(0.1, rel=1e-9)
        assert (steps[1] > 0) == (last > 1)  # a weight of 2 is the row twice
    stated = GaussianMixture(resolution=[0.5] * 5).with_defaults(X, y, 2)
    assert stated.resolution.tolist() == [0.5] * 5


@pytest.mark.parametrize("k", [1, 2, 5])
def test_chains_start_where_the_density_is_finite(k):
    """Also with fewer rows than clusters, equal rows, and missing cells."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(14, 2)) * [1.0, 1e4], np.repeat([0, 1], [12, 2])
    X[0, 0], X[1], X[12:] = NAN, NAN, 7.0
    family = GaussianMixture(n_components=k).with_defaults(X, y, 2)
    point = family.start(rng, X, y)
    assert all(np.isfinite(v).all() for v in point.values())
    assert np.all(point["sigma"] > 0)
    assert np.all(point["sigma_raw"] > 0)


# ----------------------------------------------------------------------------------------- NUTS


def test_chains_are_compared_by_densities_of_rows():
    """One chain has its clusters in another order than the other: that is no disagreement."""
    rng = np.random.default_rng(5)
    mu = rng.normal(size=(2, 500, 2, 2, 2)) + np.array([0.0, 9.0])[:, None]
    mu[1] = mu[1, :, :, ::-1]
    density = rng.normal(size=(2, 500, 6))
    draws = xr.Dataset(
        {
            "mu": (("chain", "draw", "class", "component", "feature"), mu),
            "log_density": (("chain", "draw", "checked_row"), density),
        }
    )
    diagnosis = diagnose(draws, xr.Dataset())
    assert (diagnosis.r_hat_of, diagnosis.r_hat < 1.01) == ("log_density", True)
    density[1] += 1
    assert "fewer components" in diagnose(draws, xr.Dataset()).complaints()[0]
