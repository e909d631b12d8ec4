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
    uncertainty = clf.predict_uncertainty(row)
    mcse = np.sqrt(top * (1 - top) / 2000)
    assert np.all(np.abs(uncertainty["mean"][0] - top) < 5 * mcse + 2 * uncertainty["error"].item())
    table = clf.predict_interval(row, prob=0.8)
    for c in range(n_classes):
        best_other = np.delete(weights, c, axis=1).max(axis=1)
        below = np.mean(
            (weights[:, c] - best_other)[:, None] * FAR < table["log_odds"][0, c].values, 0
        )
        np.testing.assert_allclose(below, [0.1, 0.9], atol=5 * np.sqrt(0.09 / 2000) + 0.01)


@pytest.mark.parametrize("ask", ["predict_interval", "predict_uncertainty"])
@pytest.mark.parametrize(
    ("estimator", "value", "message"),
    [
        (bg.GaussianNB, 1e60, "column 'x0' holds 1e[+]60 in row 1, more than 1e[+]30 standard"),
        (bg.GaussianNB, -1e308, "column 'x0' holds -1e[+]308 in row 1, beyond 1e[+]151"),
        (bg.QuadraticDiscriminant, 1e60, "more than 1e[+]30 standard deviations"),
        (bg.MixedNB, 1e60, "more than 1e[+]30 standard deviations"),
        (bg.PoissonNB, 1e100, "column 'x0' holds 1e[+]100 in row 1, beyond 9.007e[+]15"),
    ],
)
def test_what_float64_cannot_tell_is_refused(ask, estimator, value, message):
    X = np.random.default_rng(0).poisson(3.0, (20, 2)).astype(float)
    clf = estimator().fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match=message):
        getattr(clf, ask)([[1.0, 2.0], [value, 2.0]])


def test_a_count_far_above_the_mean():
    X = np.random.default_rng(0).poisson(1.0, (60, 2))
    clf = bg.PoissonNB().fit(X, np.arange(60) % 2)
    drawn = clf.posterior_["posterior"]["rate"].values.reshape(2000, 2, 2)[:, :, 0]
    second = np.mean(drawn[:, 1] > drawn[:, 0])  # has the larger rate, and so the count
    mean = clf.predict_uncertainty([[1e9, 1.0]])["mean"][0, 1].item()
    assert abs(mean - second) < 5 * np.sqrt(second * (1 - second) / 2000)
