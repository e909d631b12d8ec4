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


def by_hand(scores, new, weight):
    """Ranks of harmonic means of the members' ranks, one row after the other."""

    def mean_tail(one, rows):
        total = 1 + weight[rows].sum()
        tails = [
            (1 + weight[rows] @ (s[rows] <= v)) / total for s, v in zip(scores, one, strict=True)
        ]
        return len(tails) / np.sum(1 / np.array(tails))

    every = np.arange(scores.shape[1])
    left_out = np.array([mean_tail(scores[:, i], np.delete(every, i)) for i in every])
    below = [weight @ (left_out <= mean_tail(one, every)) for one in new.T]
    return (1 + np.array(below)) / (1 + weight.sum())


def test_ranks_are_those_of_refits(iris):
    X, y = iris
    rows = X[::5] + np.random.default_rng(0).normal(scale=0.5, size=(10, 4))
    members = [bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()]
    pool = bg.LogLinearPool(members).fit(X, y)
    typicality = pool.typicality(rows)
    of_members = [densities_by_refits(clf, X, y, rows) for clf in pool.members_.values()]
    of_class, every, new, overall = map(np.stack, zip(*of_members, strict=True))
    np.testing.assert_allclose(typicality["overall"], by_hand(every, overall, np.ones(50)))
    for c in range(3):
        expected = by_hand(of_class[:, y == c], new[:, :, c], np.ones((y == c).sum()))
        np.testing.assert_allclose(typicality["by_class"][:, c], expected)
    again = pool.typicality(rows, training=(X, y, np.ones(50)))
    np.testing.assert_array_equal(again["overall"], typicality["overall"])


def test_a_row_of_weight_w_counts_w_times_and_leaves_whole():
    rng = np.random.default_rng(1)
    scores, weight, new = rng.normal(size=(3, 20)), rng.uniform(0.5, 3, 20), rng.normal(size=(3, 9))

    left_out = LeftOut(np.arange(20) % 2, weight, weight, scores, scores)
    expected = by_hand(scores, new, weight)
    np.testing.assert_allclose(left_out.typical_overall(new), expected, rtol=1e-12)


def test_a_row_like_none_is_told_by_one_member(iris):
    X, y = iris
    pool = bg.LogLinearPool().fit(X, y)
    odd = X.mean(axis=0, keepdims=True) * [1, 1, 1, 0] + [0, 0, 0, 9.0]
    assert pool.typicality(odd)["overall"].item() == pytest.approx(1 / 51)
    decided = bg.decide(pool, np.r_[odd, X[:1]], typicality=0.06)  # of 17 flowers
    assert decided["decision"].values.tolist() == ["reject", 0]
