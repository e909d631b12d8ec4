"""A column without values at prediction."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.encoding.suspects import ColumnWarning
from tests.estimators.cases import CASES, FULL, NAN, PSI, defined, fitted, sample


@pytest.mark.parametrize(
    "name",
    ["BernoulliNB", "PoissonNB rate", "GaussianNB class", "GaussianNB tied", "CategoricalNB"],
)
def test_a_missing_column_at_prediction_is_a_column_less(name):
    case = CASES[name]
    X, _, y = sample(case)
    clf = case.make()
    hyper = {
        k: np.asarray(v)[1:]
        for k, v in clf.get_params(deep=False).items()
        if np.ndim(v) == 1 and np.size(v) == X.shape[1]
    }
    less = case.make().set_params(**hyper).fit(X[:, 1:], y)
    missing = X.copy()
    missing[:, 0] = None if X.dtype == object else NAN
    clf.fit(X, y)
    for method, joint in defined(less, X[:, 1:]).items():
        got = clf.predict_joint_log_proba(missing, method=method)
        np.testing.assert_allclose(got, joint, rtol=1e-10)


@pytest.mark.parametrize("estimator", [bg.LinearDiscriminant, bg.QuadraticDiscriminant])
def test_a_missing_column_of_a_discriminant_is_a_margin(estimator):
    X, _, y = sample(CASES["LinearDiscriminant"])
    clf = estimator(**FULL).fit(X, y)
    margin = {"mu0": FULL["mu0"][1:], "nu0": FULL["nu0"] - 1, "psi0": PSI[1:, 1:]}
    less = estimator(**(FULL | margin)).fit(X[:, 1:], y)
    missing = np.column_stack([np.full(len(X), NAN), X[:, 1:]])
    np.testing.assert_allclose(
        clf.predict_joint_log_proba(missing), less.predict_joint_log_proba(X[:, 1:]), rtol=1e-10
    )
    only_some = np.vstack([X[:30], missing[30:]])  # several patterns in one table
    np.testing.assert_allclose(clf.predict_proba(only_some)[:30], clf.predict_proba(X[:30]))
    np.testing.assert_allclose(clf.predict_proba(only_some)[30:], less.predict_proba(X[30:, 1:]))


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if n.split()[0] != "MarkovNB"])
def test_a_row_without_cells_has_the_class_weights(name):
    case = CASES[name]
    clf, X, _ = fitted(case)
    empty = pd.DataFrame({n: [None] for n in X}) if isinstance(X, pd.DataFrame) else X[:1].copy()
    if name.startswith("MultinomialNB"):
        empty[:] = 0  # no words; missing counts are refused
    elif not isinstance(X, pd.DataFrame):
        empty[:] = None if X.dtype == object else NAN
    weights = clf.model_.alpha / clf.model_.alpha.sum()
    np.testing.assert_allclose(clf.predict_proba(empty), weights[None], rtol=1e-12)
    np.testing.assert_allclose(clf.score_samples(empty), 0, atol=1e-12)


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None], ids=str)
@pytest.mark.parametrize("estimator", [bg.BernoulliNB, bg.PoissonNB, bg.GaussianNB, bg.HistogramNB])
def test_missing_cells_among_objects(estimator, missing):
    X, y = np.array([[0.0, NAN], [1, 0], [1, 1], [0, 2]]), [0, 0, 1, 1]
    cells = X.astype(object)
    cells[0, 1] = missing
    expected = estimator().fit(X, y).predict_proba(X)
    frame = pd.DataFrame(cells, columns=["a", "b"])
    part = frame.assign(a=frame["a"].astype("Int64"))
    for given in (cells, cells.tolist(), frame, part):
        found = estimator().fit(given, y).predict_proba(given)
        np.testing.assert_array_equal(found, expected)


EMPTY = {
    "object": pd.Series([None] * 40, dtype=object),
    "string": pd.Series([None] * 40, dtype="string"),
    "category": pd.Series([None] * 40, dtype="category"),
    "float": pd.Series([NAN] * 40),
}


@pytest.mark.parametrize("dtype", EMPTY)
@pytest.mark.parametrize(
    "make",
    [
        bg.MixedNB,
        bg.CategoricalNB,
        bg.TreeAugmentedNB,
        bg.AnDE,
        lambda: bg.LogLinearPool({"a": bg.MixedNB(), "b": bg.AnDE()}),
    ],
)
def test_a_column_without_cells_in_training_is_left_out(make, dtype, tmp_path):
    rng = np.random.default_rng(5)
    y = np.arange(40) % 2
    less = pd.DataFrame({"a": rng.choice(list("uvw"), 40), "b": rng.choice(list("st"), 40)})
    X = less.assign(empty=EMPTY[dtype])
    with pytest.warns(ColumnWarning, match="'empty' holds nothing but missing cells"):
        clf = make().fit(X, y)
    if make is bg.TreeAugmentedNB:  # whose prior over forests counts its columns
        less = less.assign(empty=0.0)
    without = make().fit(less, y)
    expected = without.predict_proba(less)
    later = less.assign(empty=1.5 if dtype == "float" else "new")
    for rows in (X, later):
        np.testing.assert_allclose(clf.predict_proba(rows), expected, rtol=1e-8)
    clf.save(tmp_path / "m.nc")
    np.testing.assert_array_equal(
        bg.load(tmp_path / "m.nc").predict_proba(later), clf.predict_proba(later)
    )
    if not isinstance(clf, bg.LogLinearPool):
        assert clf.log_evidence_ == pytest.approx(without.log_evidence_, rel=1e-12)
        simulated = clf.simulate(4, random_state=0)[0]
        if dtype != "float":
            assert pd.DataFrame(simulated).iloc[:, 2].isna().all()
        clf.predict_interval(later[:3])
        clf.explain(later[:3])


@pytest.mark.parametrize("make", [bg.MixedNB, bg.CategoricalNB])
def test_a_column_without_cells_in_the_first_part_is_learned_later(make):
    X = pd.DataFrame({"a": list("uvuvuv"), "b": [None, None, "s", "t", "s", None]})
    y = np.array([0, 1, 0, 1, 1, 0])
    parts = make().partial_fit(X[:2], y[:2], classes=[0, 1]).partial_fit(X[2:], y[2:])
    np.testing.assert_allclose(parts.predict_proba(X), make().fit(X, y).predict_proba(X))
    merged = make().fit(X[2:], y[2:])
    with pytest.warns(ColumnWarning):
        merged = merged.merge(make().fit(X[:2], y[:2]))
    np.testing.assert_allclose(merged.predict_proba(X), parts.predict_proba(X))
