"""Of every kind of pool: predictions are in their intervals, and are the means of the draws."""

import numpy as np
import pytest
from scipy import sparse

import bayesgen as bg


def table(n_classes, n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n)
    means = rng.normal(size=(n_classes, 4)) * 1.5
    shared = rng.normal(size=(len(y) + 20, 1))
    every = np.r_[y, rng.integers(n_classes, size=20)]
    X = means[every] + rng.normal(size=(len(every), 4)) + shared
    return X[: len(y)], y, X[len(y) :]


def of_table():
    return bg.LogLinearPool(), *table(3, 15)


def of_few_rows():
    return bg.LogLinearPool(), *table(2, 5, 1)


def of_many_classes():
    members = [bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()]
    return bg.LogLinearPool(members), *table(11, 12, 2)


def of_one_member():
    return bg.LogLinearPool([bg.GaussianNB()]), *table(2, 80, 3)


def of_counts():
    rng = np.random.default_rng(5)
    y = np.arange(80) % 2
    X = sparse.csr_matrix(rng.poisson(0.3 + 0.5 * (y[:, None] == np.arange(12) % 2)))
    return bg.LogLinearPool(), X[:50], y[:50], X[50:]


def of_texts():
    rng = np.random.default_rng(6)
    y = np.arange(60) % 2
    X = np.array(["".join(rng.choice(list("abcd" + "aabb"[2 * c :]), 9)) for c in y], dtype=object)
    return bg.LogLinearPool([bg.MarkovNB(order=1), bg.MarkovNB(order=2)]), X[:40], y[:40], X[40:]


KINDS = (of_table, of_few_rows, of_many_classes, of_one_member, of_counts, of_texts)


@pytest.mark.usefixtures("few_exponents")
@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_predictions_are_in_their_intervals(kind):
    clf, X, y, new = kind()
    clf.fit(X, y)
    p = clf.predict_proba(new)
    for interval in ("eti", "hdi"):
        found = clf.predict_interval(new, prob=0.89, kind=interval)
        own = found["predictive"].values  # to the last bit the ends where these were moved
        np.testing.assert_allclose(own, p, rtol=1e-12)
        low, high = np.moveaxis(found["interval"].values, -1, 0)
        assert ((low <= own) & (own <= high)).mean() >= 0.99
    rho = clf.predict_posterior(new, draws=100)["predictions/class_probability"]
    np.testing.assert_allclose(rho.mean(("chain", "draw")), p, atol=1e-3)
    np.testing.assert_allclose(clf.predict_uncertainty(new)["mean"], p, atol=1e-3)
