"""bg.decide against brute force, Chow's rule and what must hold for all costs."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg

NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X, y = X[:, :2], NAMES[y]
    return bg.QuadraticDiscriminant().fit(X[::2], y[::2]), X[1::2]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_decisions_by_brute_force(iris, seed, n_decisions):
    clf, X = iris
    rng = np.random.default_rng(seed)
    order = rng.permutation(3)
    decisions = [f"do {k}" for k in range(n_decisions)]
    cost = pd.DataFrame(rng.gamma(0.5, 2.0, (3, n_decisions)), NAMES[order], decisions)
    prior = dict(zip(NAMES, rng.dirichlet(np.ones(3)), strict=True))
    table = bg.decide(clf, X[:5], cost, class_prior=prior)
    p = clf.predict_proba(X[:5], class_prior=prior)
    for i in range(5):
        expected = {
            d: sum(p[i, list(clf.classes_).index(c)] * cost.loc[c, d] for c in NAMES)
            for d in decisions
        }
        ranked = sorted(expected, key=expected.__getitem__)
        row = table.isel(obs_id=i)
        assert row["decision"].item() == ranked[0]
        for d in decisions:
            assert row["expected_cost"].sel(action=d).item() == pytest.approx(expected[d])
        if n_decisions == 1:
            assert row["margin"].item() == np.inf
        else:
            gap = expected[ranked[1]] - expected[ranked[0]]
            assert row["margin"].item() == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("method", ["posterior_predictive", "map"])
@pytest.mark.parametrize("reject", [0.0, 0.05, 0.3, 0.7])
def test_chows_rule(iris, reject, method):
    """Refuse where the largest probability is below 1 - cost; source: Chow (1970)."""
    clf, X = iris
    table = bg.decide(clf, X, 1 - np.eye(3), reject=reject, method=method)
    top = clf.predict_proba(X, method=method).max(axis=1)
    refused = (table["decision"] == "reject").values
    np.testing.assert_array_equal(refused, top < 1 - reject)
    np.testing.assert_array_equal(table["decision"][~refused], clf.predict(X, method)[~refused])
    assert (table["expected_cost"].sel(action="reject") == reject).all()
    xr.testing.assert_identical(
        bg.decide(clf, X, reject=reject, method=method), table
    )  # without costs


def test_costs_as_array_frame_and_dict_are_one(iris):
    clf, X = iris
    cost = np.array([[0, 2, 9], [1, 0, 3], [7, 1, 0.0]])
    frame = pd.DataFrame(cost, NAMES, NAMES).iloc[[2, 0, 1], [1, 2, 0]]
    by_label = {c: {d: frame.loc[c, d] for d in NAMES[::-1] if d != c} for c in NAMES[[1, 0, 2]]}
    plain = bg.decide(clf, X, cost.tolist(), reject=0.5)
    for other in (frame, by_label):
        table = bg.decide(clf, X, other, reject=0.5)
        np.testing.assert_array_equal(table["decision"], plain["decision"])
        again = table["expected_cost"].sel(action=plain["action"])
        np.testing.assert_allclose(again, plain["expected_cost"], rtol=1e-14)
    named = bg.decide(clf, X, by_label, reject=0.5)
    assert named["action"].values.tolist() == [*NAMES, "reject"]


def test_other_decisions_than_the_classes(iris):
    clf, X = iris
    cost = {c: {"pick": float(c == "setosa"), "leave": 0.3} for c in NAMES}
    table = bg.decide(clf, X, cost)
    setosa = clf.predict_proba(X)[:, 0]
    np.testing.assert_array_equal(table["decision"], np.where(setosa <= 0.3, "pick", "leave"))


def test_ties_go_to_the_first_and_rejection_last():
    clf = bg.BernoulliNB().fit([[0], [0], [1], [1]], ["b", "a", "b", "a"])  # p = 1/2
    table = bg.decide(clf, [[0], [1]], 1 - np.eye(2), reject=0.5)
    assert table["decision"].values.tolist() == ["a", "a"]
    assert table["margin"].values.tolist() == [0, 0]
    swapped = pd.DataFrame([[1, 0], [0, 1]], index=["a", "b"], columns=["b", "a"])
    assert bg.decide(clf, [[0]], swapped)["decision"].item() == "b"


def test_labels_that_are_numbers_stay_numbers():
    clf = bg.GaussianNB().fit([[0.0], [0.2], [3.0], [3.3]], [0, 0, 1, 1])
    X = [[0.1], [1.6], [3.1]]
    table = bg.decide(clf, X, 1 - np.eye(2))
    assert table["decision"].dtype == clf.classes_.dtype
    table = bg.decide(clf, X, {0: {1: 1}, 1: {0: 1}}, reject=0.2)
    assert table["decision"].values.tolist() == [0, "reject", 1]
    assert table["action"].values.tolist() == [0, 1, "reject"]


def test_one_class_no_rows_pipelines_and_draws(iris):
    clf = bg.GaussianNB().fit([[0.0], [1.0]], ["only", "only"])
    table = bg.decide(clf, [[0.5]], [[2.0]])
    assert (table["decision"].item(), table["margin"].item()) == ("only", np.inf)
    assert bg.decide(clf, [[0.5]], [[2.0]], reject=1.0)["decision"].item() == "reject"

    clf, X = iris
    pipeline = make_pipeline(StandardScaler(), bg.GaussianNB()).fit(X, clf.predict(X))
    table = bg.decide(pipeline, X, 1 - np.eye(3))
    np.testing.assert_array_equal(table["decision"], pipeline.predict(X))

    drawn = clf.with_posterior(clf.draw_posterior(200, 2))
    table = bg.decide(drawn, X[:9], 1 - np.eye(3))
    np.testing.assert_array_equal(table["decision"], drawn.predict(X[:9]))


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (np.ones((3, 2)), r"shape \(3, 2\), but there are 3 classes: give .* or dict that names"),
        (np.ones(3), r"shape \(3,\)"),
        ([[0, 1, 1], [1, 0, np.nan], [1, 1, 0]], "cost of virginica where versicolor .* got nan"),
        ([[0, 1, 1], [1, 0, 1], [-2, 1, 0]], "cost of setosa where virginica .* got -2; for gains"),
        ([[0, 1, np.inf], [1, 0, 1], [2, 1, 0]], "cost of virginica where setosa .* got inf"),
        ("zero-one", r"cost has shape \(\), but there are 3 classes"),
        (pd.DataFrame(1 - np.eye(3)), r"the rows of cost must be the classes .* got \[0, 1, 2\]"),
        (pd.DataFrame(np.ones((3, 2)), NAMES, ["a", "a"]), "name each decision once"),
        (pd.DataFrame(np.ones((4, 1)), [*NAMES, "setosa"]), r"must be the classes .* 'setosa'\]"),
        (pd.DataFrame(np.ones((2, 1)), NAMES[1:]), "the rows of cost must be the classes"),
        (pd.DataFrame([["x"]] * 3, NAMES), "cost must be numbers"),
        ({"setosa": {}, "versicolor": {}, "virginica": {}}, "name each decision once, got"),
        ({"setosa": 1, "versicolor": 1, "virginica": 1}, "must be {class: {decision: cost}}"),
        (
            {"setosa": {"keep": 1}, "versicolor": {}, "virginica": {"keep": 1}},
            "cost of keep where versicolor is true must be a finite number >= 0, got nan",
        ),
        (pd.DataFrame(np.ones((3, 1)), NAMES, ["reject"]), "a decision 'reject' already"),
    ],
)
def test_costs_that_are_none(iris, cost, message):
    clf, X = iris
    with pytest.raises(ValueError, match=message):
        bg.decide(clf, X, cost, reject=1)


@pytest.mark.parametrize("reject", [-1, np.nan, np.inf, [0.1, 0.2], "no"])
def test_a_cost_of_rejection_that_is_none(iris, reject):
    with pytest.raises(ValueError, match="reject must be one finite number >= 0"):
        bg.decide(*iris, 1 - np.eye(3), reject=reject)


def test_classes_that_are_true_and_false():
    clf = bg.GaussianNB().fit([[0.0], [1.0], [3.0], [4.0]], [False, False, True, True])
    cost = [[0.0, 1.0], [50.0, 0.0]]
    for given_cost in (cost, pd.DataFrame(cost, [False, True], [False, True]).iloc[::-1]):
        table = bg.decide(clf, [[1.5], [-9.0]], given_cost)
        expected = clf.predict_proba([[1.5], [-9.0]]) @ np.array(cost)
        np.testing.assert_allclose(table["expected_cost"].values, expected)
