"""Rows far from all training rows, where squares of distances hold no digit of the log-odds."""

import numpy as np
import pytest

import bayesgen as bg

FAR = 1e12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_with_one_covariance(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    clf = bg.LinearDiscriminant().fit(rng.normal(size=(60, 2)) + 0.02 * y[:, None], y)
    drawn = clf.posterior_["posterior"]
    mu, sigma = (drawn[name].values.reshape(2000, -1, 2) for name in ("mu", "Sigma"))
    weights = np.linalg.solve(sigma, mu.transpose(0, 2, 1))[:, 0]  # of log-odds, per unit of x0
    top = np.bincount(weights.argmax(axis=1), minlength=n_classes) / 2000
    row = [[FAR, 0.0]]
    found = clf.predict_uncertainty(row)
    mcse = np.sqrt(top * (1 - top) / 2000)
    assert np.all(np.abs(found["mean"][0] - top) < 5 * mcse + 2 * found["error"].item())
    table = clf.predict_interval(row, prob=0.8)
    for c in range(n_classes):
        rest = np.delete(weights, c, axis=1).max(axis=1)
        below = np.mean((weights[:, c] - rest)[:, None] * FAR < table["log_odds"][0, c].values, 0)
        np.testing.assert_allclose(below, [0.1, 0.9], atol=5 * np.sqrt(0.09 / 2000) + 0.01)
