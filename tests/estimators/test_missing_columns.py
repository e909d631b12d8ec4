"""Cells and columns without values: of any type, in training, in its first part."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.encoding.suspects import ColumnWarning
from tests.estimators.cases import NAN


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None], ids=str)
@pytest.mark.parametrize("estimator", [bg.BernoulliNB, bg.PoissonNB, bg.GaussianNB])
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


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (bg.MixedNB, "object"),
        (bg.MixedNB, "float"),
        (bg.CategoricalNB, "string"),
        (bg.TreeAugmentedNB, "category"),
        (lambda: bg.LogLinearPool({"a": bg.MixedNB(), "b": bg.MixedNB(variance="tied")}), "object"),
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
