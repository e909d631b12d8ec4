"""Normal rows with missing cells in PyMC: densities against SciPy, gradients."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from bayesgen.families.shared import gaussian
from tests.graphs import PYTHON, pm, pt, pytensor

NAN = np.nan


def rows_with_gaps(n: int = 60, d: int = 4, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d) + 5.0
    X[rng.random((n, d)) < 0.3] = NAN
    X[0], X[1] = NAN, 5.0  # nothing observed, everything observed
    mu = rng.normal(size=(3, d)) * 10.0 ** np.arange(d)
    A = rng.normal(size=(3, d, d)) * 10.0 ** np.arange(d)[:, None]
    return X, mu, A @ A.transpose(0, 2, 1) + np.diag(100.0 ** np.arange(d))


def by_scipy(X: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    out = np.zeros((len(X), len(mu)))
    for i, c in np.ndindex(out.shape):
        seen = ~np.isnan(X[i])
        if seen.any():
            part = sigma[c % len(sigma)][np.ix_(seen, seen)]
            out[i, c] = stats.multivariate_normal.logpdf(X[i, seen], mu[c, seen], part)
    return out


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_densities_of_the_observed_cells_are_scipys(gaps, shared):
    X, mu, sigma = rows_with_gaps()
    X = X if gaps else np.nan_to_num(X)
    sigma = sigma[:1] if shared else sigma
    means = pt.tensor(shape=mu.shape, dtype="float64")
    covariances = pt.tensor(shape=sigma.shape, dtype="float64")
    with pm.Model():
        log_p = gaussian.log_density(X, means, covariances, "rows")
    weight = np.random.default_rng(1).normal(size=(len(X), 3))
    total = (weight * log_p).sum()
    f = pytensor.function(
        [means, covariances], [log_p, total, *pt.grad(total, [means, covariances])], mode=PYTHON
    )
    found, _, d_mu, d_sigma = f(mu, sigma)
    np.testing.assert_allclose(found, by_scipy(X, mu, sigma), rtol=1e-10, atol=1e-10)
    rng, unit, h = np.random.default_rng(2), 10.0 ** np.arange(4), 1e-6
    for _ in range(3):
        step = rng.normal(size=mu.shape) * unit
        slope = (f(mu + h * step, sigma)[1] - f(mu - h * step, sigma)[1]) / (2 * h)
        assert np.sum(d_mu * step) == pytest.approx(slope, rel=1e-5)
        step = rng.normal(size=sigma.shape) * np.outer(unit, unit)
        step = step + step.transpose(0, 2, 1)
        slope = (f(mu, sigma + h * step)[1] - f(mu, sigma - h * step)[1]) / (2 * h)
        assert np.sum(d_sigma * step) == pytest.approx(slope, rel=1e-5)
