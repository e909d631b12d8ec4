"""typicality and predict_set: by refits, from draws, and what of the rows is kept."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.encoding.tables import kept
from tests.drawn import drawn
from tests.estimators.cases import densities_by_refits

NO_SCORES = "pass training="


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


# ------------------------------------------------------------------------------- against refits


def log_wrong(joint):
    """(N, C) log probability that the label is another one."""
    others = [np.logaddexp.reduce(np.delete(joint, c, axis=1), axis=1) for c in range(3)]
    return np.stack(others, axis=1) - np.logaddexp.reduce(joint, axis=1)[:, None]


def ranks(left_out, new):
    return np.array([(1 + np.sum(left_out <= s)) / (1 + len(left_out)) for s in new])


@pytest.mark.parametrize("make", [bg.GaussianNB, bg.LinearDiscriminant])
def test_ranks_and_sets_are_those_of_refits(iris, make):
    X, y = iris
    Z = X[::10] + np.random.default_rng(0).normal(scale=0.4, size=(15, 4))
    clf = make().fit(X, y)
    codes = np.searchsorted(clf.classes_, y)
    of_class, of_all, new, overall = densities_by_refits(clf, X, codes, Z)
    table = clf.typicality(Z)
    for c in range(3):
        np.testing.assert_allclose(table["by_class"][:, c], ranks(of_class[codes == c], new[:, c]))
    np.testing.assert_allclose(table["overall"], ranks(of_all, overall))
    error = log_wrong(clf.loo_log_joint(X, y))[np.arange(150), codes]
    wrong = log_wrong(clf.predict_joint_log_proba(Z))
    sets = clf.predict_set(Z, coverage=0.8)
    most = np.sort(error)[int(np.ceil(151 * 0.8)) - 1]
    np.testing.assert_array_equal(sets["included"], wrong <= most)
    np.testing.assert_array_equal(sets["size"], sets["included"].sum("class"))
    np.testing.assert_allclose(sets["limit"], -np.expm1(most))
    sets = clf.predict_set(Z, coverage=0.8, by_class=True)
    for c in range(3):
        most = np.sort(error[codes == c])[int(np.ceil(51 * 0.8)) - 1]
        np.testing.assert_array_equal(sets["included"][:, c], wrong[:, c] <= most)


# -------------------------------------------------------------------------------- what is kept


def test_fit_keeps_a_reference_and_no_copy(iris):
    X, y = iris
    rows = bg.GaussianNB().fit(X, y).fitted_.training.rows
    assert rows.X is X
    assert rows.y is y


def test_rows_that_changed_since_are_noticed(iris):
    X, y = iris[0].copy(), iris[1]
    clf = bg.GaussianNB().fit(X, y)
    X *= 2
    with pytest.raises(ValueError, match="were changed since then"):
        clf.predict_set(X)


def reloaded(clf, file):
    clf.save(file)
    return bg.load(file)


WITHOUT_ROWS = {
    "pickle": lambda clf, *_: pickle.loads(pickle.dumps(clf)),
    "copy": lambda clf, *_: copy.deepcopy(clf),
    "file": lambda clf, X, y, file: reloaded(clf, file),
    "partial_fit": lambda clf, X, y, _: (
        clone(clf).fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    ),
    "merge": lambda clf, X, y, _: clf.merge(clone(clf).fit(X[:2], y[:2])).forget(X[:2], y[:2]),
    "fit_stream": lambda clf, X, y, _: bg.fit_stream(clone(clf), [(X, y)]),
}


@pytest.mark.parametrize("way", WITHOUT_ROWS.values(), ids=WITHOUT_ROWS)
def test_a_model_without_its_rows_asks_for_them(iris, tmp_path, way):
    X, y = iris
    clf = way(bg.GaussianNB().fit(X, y), X, y, tmp_path / "model.nc")
    for ask in (clf.typicality, clf.predict_set):
        with pytest.raises(ValueError, match=NO_SCORES):
            ask(X)
    table = clf.typicality(X, (X[::3], y[::3]), partial=True)
    assert table["overall"].shape == (150,)
    table = clf.typicality(X, training=(X, y, None))
    xr.testing.assert_allclose(table, bg.GaussianNB().fit(X, y).typicality(X))
    assert clf.typicality(X).identical(table)  # scores once known are kept


def test_scores_once_known_are_kept_in_files(iris, tmp_path):
    X, y = iris
    clf = bg.GaussianNB().fit(X, y)
    table = clf.typicality(X)
    loaded = reloaded(clf, tmp_path / "scored.nc")
    again = reloaded(loaded, tmp_path / "again.nc"), pickle.loads(pickle.dumps(clf))
    for other in (loaded, *again):
        assert other.typicality(X).identical(table)
        assert other.predict_set(X).identical(clf.predict_set(X))
    assert (np.diff(clf.fitted_.training.scores.codes) >= 0).all()  # not the order of the rows
    with pytest.raises(ValueError, match=NO_SCORES):
        clf.partial_fit(X, y).predict_set(X)


def test_only_small_and_known_rows_are_kept():
    big, y = np.zeros((1 << 20, 9)), np.zeros(3)
    texts = ["x" * 1000 + str(i) for i in range(3)] * 30_000
    cells = pd.DataFrame({"a": ["x" * 2000] * 40_000}, dtype=object)
    for rows in (big, big[:3], iter([]), texts, cells):  # a view keeps all of it alive
        assert kept(rows, y, None) is None
    two = pd.DataFrame([["a", 1], ["b", 2], ["c", 3]], columns=["same", "same"])
    for rows in (big[:3].copy(), ["a text"] * 3, two, pl.from_numpy(np.eye(3)), np.eye(3) > 0):
        assert kept(rows, y, None) is not None
    for rows in (sparse.csr_matrix(np.eye(3)), sparse.coo_array(np.eye(3))):
        assert kept(rows, pd.Categorical(["a", "b", "c"]), y) is not None


# ------------------------------------------------------------------------------ other posteriors


@pytest.mark.filterwarnings("ignore::bayesgen.posterior.drawn.MonteCarloWarning")
def test_draws_give_nearly_the_same(iris):
    X, y = iris
    exact = bg.GaussianNB().fit(X, y)
    clf = drawn(bg.GaussianNB(), X, y, draws=1000)
    for name in ("by_class", "overall"):
        gap = exact.typicality(X)[name] - clf.typicality(X)[name]
        assert float(abs(gap).max()) < 0.06
    same = exact.predict_set(X)["included"] == clf.predict_set(X)["included"]
    assert float(same.mean()) > 0.98


def test_decisions_reject_what_is_not_typical(iris):
    X, y = iris
    clf = bg.GaussianNB().fit(X, y)
    Z = np.array([X[0], 40 + X[1]])
    cost = 1 - np.eye(3)
    decisions = bg.decide(clf, Z, cost, typicality=0.02)
    assert decisions["decision"].values.tolist() == ["setosa", "reject"]
    np.testing.assert_allclose(decisions["typicality"], clf.typicality(Z)["by_class"].max("class"))
    assert np.isnan(decisions["margin"][1])
    plain = bg.decide(clf, Z, cost)
    assert "typicality" not in plain
    np.testing.assert_array_equal(decisions["expected_cost"], plain["expected_cost"])
    both = bg.decide(clf, Z, cost, reject=0.2, typicality=0.02)
    assert both["decision"].values.tolist() == ["setosa", "reject"]
    with pytest.raises(ValueError, match=NO_SCORES):
        bg.decide(clone(clf).partial_fit(X, y), Z, cost, typicality=0.02)
