"""Mutual information against enumeration, and the selector in scikit-learn's tools.

That of each family: ``tests/laws/test_capabilities.py`` and the tests of the families.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import bayesgen as bg


def from_table(joint):
    """Mutual information, in nats, of a joint table (class, value)."""
    joint = np.asarray(joint) / np.sum(joint)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    used = joint > 0
    return float(np.sum(joint[used] * np.log(joint[used] / independent[used])))


def test_several_categories_by_enumeration():
    rng = np.random.default_rng(5)
    X, y = np.array(["p", "q", "r", "s"])[rng.integers(0, 4, (50, 2))], rng.integers(0, 3, 50)
    clf = bg.CategoricalNB(alpha=0.5).fit(X, y)
    for j in range(2):
        n = np.array([[np.sum((y == c) & (X[:, j] == v)) for v in "pqrs"] for c in range(3)])
        plain = bg.mutual_information(clf, "mle", unit="nats")[j]
        assert float(plain) == pytest.approx(from_table(n), rel=1e-10)
        theta = (n + 0.5) / (n + 0.5).sum(axis=1, keepdims=True)
        pi = (n.sum(axis=1) + 1) / 53
        smoothed = bg.mutual_information(clf, unit="nats")[j]
        assert float(smoothed) == pytest.approx(from_table(pi[:, None] * theta), rel=1e-10)


def test_mixed_columns_each_by_its_own_family():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 30)
    frame = pd.DataFrame({"size": rng.normal(size=60) + y, "wet": rng.random(60) < 0.3 + 0.4 * y})
    both = bg.mutual_information(bg.MixedNB().fit(frame, y))
    assert both.coords["feature"].values.tolist() == ["size", "wet"]
    alone = bg.GaussianNB().fit(frame[["size"]], y)
    assert float(both[0]) == pytest.approx(float(bg.mutual_information(alone)[0]), rel=1e-10)


def test_the_thirteen_samples():
    X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    for method, nats in (("mle", 0.0787269), ("posterior_mean", 0.0226386)):
        table = bg.mutual_information(clf, method, unit="nats")
        np.testing.assert_allclose(table, nats, atol=5e-8)
        np.testing.assert_allclose(bg.mutual_information(clf, method), table / np.log(2))


def test_one_class_says_nothing():
    clf = bg.BernoulliNB().fit([[0], [1]], ["a", "a"])
    assert float(bg.mutual_information(clf)[0]) == 0


def test_arguments_are_checked():
    clf = bg.BernoulliNB().fit([[0, 1], [1, 1]], [0, 1])
    with pytest.raises(ValueError, match="method must be one of 'posterior_mean', 'map', 'mle'"):
        bg.mutual_information(clf, method="posterior_predictive")
    with pytest.raises(ValueError, match="unit must be one of 'bits', 'nats', got 'bytes'"):
        bg.mutual_information(clf, unit="bytes")
    with pytest.raises(NotImplementedError, match="DirichletMarkov"):
        bg.mutual_information(bg.MarkovNB().fit(["ab", "ba"], [0, 1]))


# ---------------------------------------------------------------------------------- selector


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    X = (rng.random((300, 40)) < 0.5).astype(int)
    X[:, [5, 17]] = (rng.random((300, 2)) < 0.2 + 0.6 * y[:, None]).astype(int)
    return X, y


def test_selector_finds_the_columns_that_matter(noisy):
    X, y = noisy
    selector = bg.MutualInformationSelector(n_features=2).fit(X, y)
    assert np.flatnonzero(selector.get_support()).tolist() == [5, 17]
    np.testing.assert_array_equal(selector.transform(X), X[:, [5, 17]])
    share = clone(selector).set_params(n_features=0.1).fit(X, y)
    assert share.get_support().sum() == 4


def test_selector_in_a_pipeline(noisy):
    X, y = noisy
    few = make_pipeline(bg.MutualInformationSelector(n_features=2), bg.BernoulliNB())
    score = cross_val_score(few, X, y, scoring="neg_log_loss").mean()
    assert score > cross_val_score(bg.BernoulliNB(), X, y, scoring="neg_log_loss").mean()


def test_selector_takes_any_estimator_and_names(noisy):
    X, y = noisy
    frame = pd.DataFrame(X + 0.0, columns=[f"f{j}" for j in range(40)])
    selector = bg.MutualInformationSelector(bg.GaussianNB(), n_features=2, method="map")
    assert selector.fit(frame, y).get_feature_names_out().tolist() == ["f5", "f17"]
    with pytest.raises(ValueError, match="n_features"):
        bg.MutualInformationSelector(n_features=0).fit(X, y)
