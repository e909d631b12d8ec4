"""Defects seen in peers (shared/ANCHORS.md): ours must not have them, and the peer still does.

Where the peer is scikit-learn its side is asserted too, so that each test says why it is here.
"""

import warnings

import numpy as np
import pytest
import sklearn.naive_bayes as peers
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import log_loss

import bayesgen as bg


def _split(load):
    """Row i is test iff i % 3 == 2 (shared/DATA.md)."""
    X, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 2
    return X[~test], y[~test], X[test], y[test]


# 1. BernoulliNB(alpha=array)


@pytest.mark.parametrize("n_classes", [2, 3], ids=["other", "as many features as classes"])
def test_pseudo_counts_by_feature(n_classes):
    alpha = np.array([0.5, 2.0, 7.0])
    X = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0]])
    y = np.arange(6) % n_classes
    clf = bg.BernoulliNB(alpha=alpha, beta=1.0).fit(X, y)
    theta = clf.model_.estimate("posterior_mean", clf.stats_)["theta"]
    for c in range(n_classes):
        rows = X[y == c]
        expected = (rows.sum(axis=0) + alpha) / (len(rows) + alpha + 1.0)
        np.testing.assert_allclose(theta[c], expected, rtol=1e-14)
    by_class = np.arange(1.0, n_classes + 1)[:, None]
    prior = bg.BernoulliNB(alpha=by_class).fit(X, y).prior_.family
    np.testing.assert_array_equal(prior.alpha, np.repeat(by_class, 3, axis=1))


def test_peer_mistakes_pseudo_counts_by_feature():
    X, y = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 0]]), [0, 1, 1]
    with pytest.raises(ValueError, match="broadcast"):
        peers.BernoulliNB(alpha=[0.5, 2.0, 7.0]).fit(X, y)


# 2. CategoricalNB: unseen codes, NaN, strings


def test_unseen_missing_and_textual_categories():
    """What they are worth is asked in tests/estimators/test_against_scipy."""
    X = np.array([["red", "s"], ["blue", "m"], ["red", "l"], [None, "m"]], dtype=object)
    y = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="invalid literal"):
        peers.CategoricalNB().fit(X, y)
    clf = bg.CategoricalNB().fit(X, y)
    with pytest.warns(bg.UnknownCategoryWarning, match="column 0: 1 cell, the first 'green'"):
        p = clf.predict_proba(np.array([["green", "s"], [None, "s"]], dtype=object))
    np.testing.assert_array_equal(p[0], p[1])
    codes = [[0], [1], [0], [1]]
    with pytest.raises(IndexError):
        peers.CategoricalNB().fit(codes, y).predict_proba([[2]])
    with pytest.warns(bg.UnknownCategoryWarning, match="the first 2 in row 0"):
        assert bg.CategoricalNB().fit(codes, y).predict_proba([[2]]) == pytest.approx(0.5)


# 3. GaussianNB: certainty from noise, var_smoothing across columns, digits


def test_noise_gives_no_certainty():
    """Three rows a class, twenty features of pure noise, a new row of noise."""
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for _ in range(200):
        X, y, new = rng.normal(size=(6, 20)), [0, 0, 0, 1, 1, 1], rng.normal(size=(1, 20))
        truth = rng.integers(2)
        ours.append(bg.GaussianNB().fit(X, y).predict_log_proba(new)[0, truth])
        theirs.append(peers.GaussianNB().fit(X, y).predict_log_proba(new)[0, truth])
    assert -np.mean(ours) < 2.5  # log 2 = .69 would be no information at all
    assert -np.mean(theirs) > 10


def test_a_large_column_does_not_smooth_a_small_one():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 50)
    small = 1e-3 * (rng.normal(size=100) + 4 * y)
    X = np.column_stack([small, 1e6 * rng.normal(size=100)])
    theirs = peers.GaussianNB().fit(X, y)
    assert theirs.var_[0, 0] > 100 * small.var()
    assert theirs.score(X, y) < 0.75
    assert bg.GaussianNB().fit(X, y).score(X, y) > 0.95


def test_digits():
    X, y, X_test, y_test = _split(load_digits)
    theirs = peers.GaussianNB().fit(X, y).predict_log_proba(X_test)
    assert -theirs[np.arange(len(y_test)), y_test].mean() == pytest.approx(95_278, abs=1)
    ours = bg.GaussianNB().fit(X, y).predict_log_proba(X_test)
    assert -ours[np.arange(len(y_test)), y_test].mean() < 4


# 4. QDA with n_k <= D


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_quadratic_discriminant_fits(load):
    X, y, X_test, y_test = _split(load)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(np.linalg.LinAlgError):
            QuadraticDiscriminantAnalysis().fit(X, y)
    p = bg.QuadraticDiscriminant().fit(X, y).predict_proba(X_test)
    assert log_loss(y_test, p) < 0.5


# 5. floored densities far from the data


def test_far_away_the_wider_class_wins():
    """At x = 100, N(0, 1) against N(0, 5): peers that floor densities say the first class."""
    rng = np.random.default_rng(3)
    n = 400
    X = np.r_[stats.norm.ppf(np.arange(1, n) / n), 5 * stats.norm.ppf(np.arange(1, n) / n)]
    y = np.repeat(["narrow", "wide"], n - 1)
    clf = bg.GaussianNB().fit(X[:, None], y)
    for method in ("posterior_predictive", "posterior_mean", "map", "mle"):
        p = clf.predict_proba([[100.0], [-1e4], [rng.normal() + 1e8]], method=method)
        assert np.all(p[:, 1] > 1 - 1e-6), method
