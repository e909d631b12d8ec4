"""Defects seen in peers (shared/ANCHORS.md): ours must not have them, and the peer still does.

Where the peer is scikit-learn its side is asserted too, so that each test says why it is here.
"""

import numpy as np
import pytest
import sklearn.naive_bayes as peers
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

import bayesgen as bg


def _split(load):
    """Row i is test iff i % 3 == 2 (shared/DATA.md)."""
    X, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 2
    return X[~test], y[~test], X[test], y[test]


PEERS_REFUSE = [
    # pseudo-counts by feature; ours: BernoulliNB in tests/estimators/test_against_scipy
    (lambda: peers.BernoulliNB(alpha=[0.5, 2.0, 7.0]).fit(np.eye(3), [0, 1, 1]), "broadcast"),
    # texts, and codes that training has not shown; ours: CategoricalNB in the same file
    (lambda: peers.CategoricalNB().fit([["red"], ["blue"]], [0, 1]), "invalid literal"),
    (lambda: peers.CategoricalNB().fit([[0], [1]], [0, 1]).predict([[2]]), "out of bounds"),
    # fewer rows of a class than columns; ours: test_stated_priors_by_formula
    (lambda: QuadraticDiscriminantAnalysis().fit(*_split(load_digits)[:2]), "full rank"),
]


@pytest.mark.parametrize(("call", "message"), PEERS_REFUSE)
@pytest.mark.filterwarnings("ignore")
def test_peers_still_refuse_what_ours_take(call, message):
    with pytest.raises((ValueError, IndexError, np.linalg.LinAlgError), match=message):
        call()


# GaussianNB: certainty from noise, var_smoothing across columns, digits


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


# floored densities far from the data


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
