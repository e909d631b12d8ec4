"""Masks and missing cells: of weights, labels and whole columns, honoured or refused."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.encoding.suspects import ColumnWarning
from tests.estimators.cases import NAN

N = 24
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = np.arange(N) % 2
WEIGHT = np.ma.masked_array(np.full(N, 1000.0), np.arange(N) == 3)
LABELS = np.ma.masked_array(Y, np.arange(N) == 3)
HIDDEN = np.ma.masked_array(np.zeros(N), True)
CLF = bg.GaussianNB().fit(X, Y, np.full(N, 1000.0))


def in_dask(*rows, chunked=False):
    da = pytest.importorskip("dask.array")
    rows = [da.from_array(row, chunks=12) for row in rows] if chunked else rows
    return bg.fit_dask(bg.GaussianNB(), da.from_array(X, chunks=(12, 2)), *rows)


def plotted(name):
    return lambda: getattr(bg.plots, name)(CLF, X, LABELS)


REFUSED = {  # wherever rows are read
    "sample_weight is masked in row 3": [
        lambda: bg.QuadraticDiscriminant().fit(X, Y, sample_weight=WEIGHT),
        lambda: bg.TreeAugmentedNB().fit(X > 0, Y, sample_weight=WEIGHT),
        lambda: bg.LogLinearPool([CLF]).fit(X, Y, sample_weight=WEIGHT),
        lambda: bg.GaussianNB().partial_fit(X, Y, sample_weight=WEIGHT),
        lambda: CLF.loo(X, Y, sample_weight=WEIGHT),
        lambda: CLF.typicality(X, training=(X, Y, WEIGHT)),
        lambda: bg.label_errors(CLF, X, Y, WEIGHT),
        lambda: bg.compare_models({"a": CLF}, X, Y, WEIGHT),
        lambda: bg.validate(CLF, X, Y, WEIGHT),
        lambda: bg.fit_stream(bg.GaussianNB(), [(X, Y, WEIGHT)]),
        lambda: in_dask(Y, WEIGHT),
        lambda: in_dask(Y, WEIGHT, chunked=True),
    ],
    "masked in row 3": [  # which cannot be scored
        lambda: bg.compare_predictives(CLF, X, LABELS),
        lambda: CLF.simulate(N, y=LABELS),
        lambda: bg.report(CLF, X, LABELS),
        *map(plotted, ("plot_regions", "plot_effects", "plot_densities", "plot_reliability")),
    ],
    "no label in 1 row": [
        lambda: bg.plots.plot_reliability(CLF.predict_proba(X), None, LABELS),
        lambda: in_dask(LABELS),
    ],
    "no rows": [lambda: in_dask(Y, HIDDEN)],  # 0 behind a mask is no row either way
}


@pytest.mark.parametrize(
    ("message", "call"), [(message, call) for message in REFUSED for call in REFUSED[message]]
)
def test_what_is_masked_is_refused(message, call):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mask_that_hides_nothing_is_none():
    weight = np.full(N, 1000.0)
    fits = [bg.GaussianNB().fit(X, Y, w) for w in (weight, np.ma.masked_array(weight, False))]
    np.testing.assert_array_equal(*(clf.predict_proba(X) for clf in fits))


@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.parametrize("make", [bg.GaussianNB, bg.MixedNB, bg.TreeAugmentedNB])
def test_masked_cells_are_missing(make, dtype):
    masked = np.ma.masked_array(X.astype(dtype), X > 1)
    missing = np.where(X > 1, np.nan, X)
    p = make().fit(masked, Y).predict_proba(masked)
    np.testing.assert_array_equal(p, make().fit(missing, Y).predict_proba(missing))


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None], ids=str)
@pytest.mark.parametrize("estimator", [bg.BernoulliNB, bg.PoissonNB, bg.GaussianNB])
def test_missing_cells_among_objects(estimator, missing):
    X, y = np.array([[0.0, NAN], [1, 0], [1, 1], [0, 2]]), [0, 0, 1, 1]
    cells = X.astype(object)
    cells[0, 1] = missing
    expected = estimator().fit(X, y).predict_proba(X)
    frame = pd.DataFrame(cells, columns=["a", "b"])
    part = frame.assign(a=frame["a"].astype("Int64"))
    for rows in (cells, cells.tolist(), frame, part):
        np.testing.assert_array_equal(estimator().fit(rows, y).predict_proba(rows), expected)


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
