"""The index of a frame labels the rows of every result."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg

NAMES = ["p7", "p3", "p9"]


@pytest.fixture(scope="module")
def fits():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = pd.DataFrame(rng.normal(size=(30, 2)) + y[:, None], columns=["u", "v"])
    clf = bg.GaussianNB().fit(X, y)
    return clf, bg.LogLinearPool([clf]).fit(X, y), X


@pytest.mark.parametrize("which", ["classifier", "pool"])
@pytest.mark.parametrize(
    "call",
    [
        lambda clf, X: clf.predict_interval(X),
        lambda clf, X: clf.predict_uncertainty(X),
        lambda clf, X: clf.predict_posterior(X, 10)["predictions"],
        lambda clf, X: clf.predict_set(X),
        lambda clf, X: clf.explain(X=X),
        lambda clf, X: bg.decide(clf, X, [[0, 1], [1, 0]]),
        lambda clf, X: clf.typicality(X),
        lambda clf, X: bg.estimate_class_prior(clf, X, draws=30)["predictions"],
    ],
    ids=["interval", "uncertainty", "posterior", "set", "explain", "decide", "typicality", "shift"],
)
def test_the_index_is_obs_id(fits, which, call):
    clf, pool, X = fits
    clf = clf if which == "classifier" else pool
    rows = X[:3].set_axis(NAMES)
    try:
        named = call(clf, rows)
    except (AttributeError, TypeError):
        assert which == "pool"  # which has no density, and no draws of one model
        return
    assert named["obs_id"].values.tolist() == NAMES
    again = call(clf, X[:3])
    assert again["obs_id"].values.tolist() == [0, 1, 2]
    first = next(iter(named.data_vars))
    np.testing.assert_array_equal(named[first].sel(obs_id="p3"), again[first].isel(obs_id=1))


def test_labels_of_several_levels_are_counted(fits):
    clf, _, X = fits
    rows = X[:2].set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    assert clf.predict_interval(rows)["obs_id"].values.tolist() == [0, 1]
