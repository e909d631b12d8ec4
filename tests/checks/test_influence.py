"""row_influence against posteriors of all pairs of rows, and what it finds and refuses."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.families.errors import NoClosedFormError
from tests.estimators.cases import CASES, sample
from tests.selection import crossed

NAMES = [
    "BernoulliNB",
    "CategoricalNB",
    "MultinomialNB",
    "PoissonNB",
    "GaussianNB class",
    "GaussianNB tied",
    "GaussianNB class_spherical",
    "MixedNB",
    "LinearDiscriminant",
    "QuadraticDiscriminant",
    "MarkovNB 2",
]


def label_scores(clf, X, codes, weight, out):
    """{j: log p(y_j | x_j, all rows but those in out and j)} one posterior at a time."""
    scores = {}
    for j in range(len(codes)):
        if j in out:
            continue
        rest = np.setdiff1d(np.arange(len(codes)), [*out, j])
        prior = clf.prior_
        stats = prior.stats(X[rest], codes[rest], len(clf.classes_), weight[rest])
        model = prior.update(stats)
        joint = (model.family.log_predictive(X[[j]]) + np.log(model.mean_weights()))[0]
        scores[j] = joint[codes[j]] - np.logaddexp.reduce(joint)
    return scores


@pytest.mark.parametrize(("name", "weighted"), crossed(NAMES, [True, False]))
def test_change_is_that_of_refits(name, weighted):
    X, codes, y = sample(CASES[name], n=21)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=21) if weighted else None
    clf = CASES[name].make().fit(X, y, sample_weight=weight)
    found = bg.row_influence(clf, X, y, weight)
    rows, w = clf.fitted_.encoded(X), np.ones(21) if weight is None else weight
    all_scores = label_scores(clf, rows, codes, w, [])
    np.testing.assert_allclose(
        np.log(found["probability"]), [*all_scores.values()], rtol=1e-8, atol=1e-12
    )
    for i in range(0, 21, 5):
        without = label_scores(clf, rows, codes, w, [i])
        want = sum(without[j] - all_scores[j] for j in without)
        assert float(found["change"][i]) == pytest.approx(want, rel=1e-6, abs=1e-8)


def test_the_other_label():
    X, y = load_iris(return_X_y=True)
    clf = bg.LinearDiscriminant().fit(X, y)
    found = bg.row_influence(clf, X, y, rows=[70, 3])
    joint = clf.loo_log_joint(X, y)[[70, 3]]
    p = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    assert found["obs_id"].values.tolist() == [70, 3]
    assert found["label"].values.tolist() == [1, 0]
    p[[0, 1], [1, 0]] = 0
    np.testing.assert_array_equal(found["other"], p.argmax(axis=1))
    np.testing.assert_allclose(found["other_probability"], p.max(axis=1))
    assert not np.isnan(found["change"]).any()


def test_wrong_labels_come_first():
    X, y = load_iris(return_X_y=True)
    y = y.copy()
    wrong = np.array([4, 60, 130])
    y[wrong] = [1, 2, 0]
    found = bg.row_influence(bg.QuadraticDiscriminant().fit(X, y), X, y)
    assert set(wrong) <= set(found["obs_id"].values[np.argsort(found["probability"].values)[:6]])
    assert found["obs_id"].values[np.argmax(found["change"].values)] == 4  # far from its label


def test_of_many_rows_the_least_probable(monkeypatch):
    X, y = load_iris(return_X_y=True)
    clf = bg.GaussianNB().fit(X, y)
    whole = bg.row_influence(clf, X, y)
    monkeypatch.setattr("bayesgen.checks.influence._SCORES", 150 * 7)
    found = bg.row_influence(clf, X, y)
    known = np.flatnonzero(~np.isnan(found["change"]))
    assert set(known) == set(np.argsort(found["probability"].values, kind="stable")[:7])
    np.testing.assert_allclose(found["change"][known], whole["change"][known], rtol=1e-9)
    assert found.sizes["obs_id"] == 150


def test_an_outlier_that_is_most_of_a_scatter():
    X = np.array([[0.0], [1.0], [0.5], [4.0], [5.0], [1e9]])
    y = np.array([0, 0, 0, 1, 1, 1])
    clf = bg.GaussianNB(0.0, 1.0, 3.0, 1.0).fit(X, y)
    found = bg.row_influence(clf, X, y)
    before, after = (label_scores(clf, X, y, np.ones(6), out) for out in ([], [5]))
    want = sum(after[j] - before[j] for j in after)
    assert float(found["change"][5]) == pytest.approx(want, rel=1e-6)


def test_rows_that_were_no_rows():
    X, y = load_iris(return_X_y=True)
    w = np.ones(150)
    w[:3] = 0
    clf = bg.GaussianNB().fit(X, y, w)
    found = bg.row_influence(clf, X, y, w)
    assert found["obs_id"].values.tolist() == list(range(3, 150))
    with pytest.raises(ValueError, match="row 1 has no label or no weight"):
        bg.row_influence(clf, X, y, w, rows=[1])
    with pytest.raises(ValueError, match="from 0 to 149"):
        bg.row_influence(clf, X, y, w, rows=[150])
    with pytest.raises(ValueError, match="positions"):
        bg.row_influence(clf, X, y, w, rows=[1.5])
    with pytest.raises(ValueError, match="needs the training rows"):
        bg.row_influence(clf, X, y)


def test_rows_have_the_names_of_a_frame():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.index = [f"flower {i}" for i in range(150)]
    w = np.ones(150)
    w[0] = 0
    found = bg.row_influence(bg.GaussianNB().fit(X, y, w), X, y, w, rows=[70, 3])
    assert found["obs_id"].values.tolist() == ["flower 70", "flower 3"]
    assert found["position"].values.tolist() == [70, 3]


def test_one_class():
    found = bg.row_influence(bg.PoissonNB().fit([[1], [4]], ["a", "a"]), [[1], [4]], ["a", "a"])
    assert "other" not in found
    np.testing.assert_array_equal(found["change"], [0, 0])


def test_draws_tell_the_probability_alone():
    X, y = load_iris(return_X_y=True)
    drawn = bg.GaussianNB().fit(X, y, inference="gibbs", random_state=0, progressbar=False)
    found = bg.row_influence(drawn, X, y)
    exact = bg.row_influence(bg.GaussianNB().fit(X, y), X, y, rows=np.arange(150))
    np.testing.assert_allclose(found["probability"], exact["probability"], atol=0.05)
    assert np.isnan(found["change"]).all()
    assert found["pareto_k"].max() < 1
    with pytest.raises(NoClosedFormError, match="pairs of rows"):
        bg.row_influence(drawn, X, y, rows=[0])
