"""typicality of a pool: ranks by refits and by hand."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.predict.left_out import LeftOut
from tests.estimators.cases import densities_by_refits

pytestmark = pytest.mark.usefixtures("few_exponents")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


def combined(left_out, new):
    """Ranks by rank, one row after the other: of harmonic means of members' ranks."""
    n = left_out.shape[1]
    harmonic = []
    for i in range(n):
        tails = [np.sum(np.delete(s, i) <= s[i]) + 1 for s in left_out]
        harmonic.append(len(tails) / np.sum(n / np.array(tails)))
    ranks = []
    for one in new.T:
        tails = [np.sum(s <= v) + 1 for s, v in zip(left_out, one, strict=True)]
        h = len(tails) / np.sum((n + 1) / np.array(tails))
        ranks.append((1 + np.sum(np.array(harmonic) <= h)) / (n + 1))
    return ranks


def test_ranks_are_those_of_refits(iris):
    X, y = iris
    rows = X[::5] + np.random.default_rng(0).normal(scale=0.5, size=(10, 4))
    members = [bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()]
    pool = bg.LogLinearPool(members).fit(X, y)
    typicality = pool.typicality(rows)
    parts = [densities_by_refits(clf, X, y, rows) for clf in pool.members_.values()]
    of_class, every, new, overall = (np.stack(part) for part in zip(*parts, strict=True))
    np.testing.assert_allclose(typicality["overall"], combined(every, overall))
    for c in range(3):
        expected = combined(of_class[:, y == c], new[:, :, c])
        np.testing.assert_allclose(typicality["by_class"][:, c], expected)
    again = pool.typicality(rows, training=(X, y, np.ones(50)))
    np.testing.assert_array_equal(again["overall"], typicality["overall"])


def test_a_row_of_weight_w_counts_w_times_and_leaves_whole():
    rng = np.random.default_rng(1)
    scores, weight, new = rng.normal(size=(3, 20)), rng.uniform(0.5, 3, 20), rng.normal(size=(3, 9))

    def mean_tail(one, rest):
        total = 1 + weight[rest].sum()
        tails = [
            (1 + weight[rest] @ (s[rest] <= v)) / total for s, v in zip(scores, one, strict=True)
        ]
        return len(tails) / np.sum(1 / np.array(tails))

    every = np.arange(20)
    left_out = np.array([mean_tail(scores[:, i], np.delete(every, i)) for i in every])
    expected = [
        (1 + weight @ (left_out <= mean_tail(one, every))) / (1 + weight.sum()) for one in new.T
    ]
    typicality = LeftOut(every % 2, weight, weight, scores, scores).typical_overall(new)
    np.testing.assert_allclose(typicality, expected, rtol=1e-12)


def test_a_row_like_none_is_told_by_one_member(iris):
    X, y = iris
    pool = bg.LogLinearPool().fit(X, y)
    odd = X.mean(axis=0, keepdims=True) * [1, 1, 1, 0] + [0, 0, 0, 9.0]
    assert pool.typicality(odd)["overall"].item() == pytest.approx(1 / 51)
    decided = bg.decide(pool, np.r_[odd, X[:1]], typicality=0.06)  # of 17 flowers
    assert decided["decision"].values.tolist() == ["reject", 0]
