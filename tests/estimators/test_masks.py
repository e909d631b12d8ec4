"""Masks of weights, labels and cells: refused or honoured, and never passed over."""

import numpy as np
import pytest

import bayesgen as bg

N = 24
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = np.arange(N) % 2
WEIGHT = np.ma.masked_array(np.full(N, 1000.0), np.arange(N) == 3)
MASKED = "sample_weight is masked in row 3"
PLOTS = (
    bg.plots.plot_regions,
    bg.plots.plot_effects,
    bg.plots.plot_densities,
    bg.plots.plot_reliability,
)
LABELS = np.ma.masked_array(Y, np.arange(N) == 3)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (bg.QuadraticDiscriminant, X),
        (bg.TreeAugmentedNB, X > 0),
        (bg.MixedNB, X),
        (lambda: bg.LogLinearPool([bg.GaussianNB(), bg.QuadraticDiscriminant()]), X),
    ],
)
def test_a_masked_weight_is_refused(make, rows):
    with pytest.raises(ValueError, match=MASKED):
        make().fit(rows, Y, sample_weight=WEIGHT)


def test_a_masked_weight_is_refused_wherever_rows_are_read():
    clf = bg.GaussianNB().fit(X, Y, np.full(N, 1000.0))
    for call in (
        lambda: bg.GaussianNB().partial_fit(X, Y, sample_weight=WEIGHT),
        lambda: clf.loo(X, Y, sample_weight=WEIGHT),
        lambda: clf.typicality(X, training=(X, Y, WEIGHT)),
        lambda: bg.label_errors(clf, X, Y, WEIGHT),
        lambda: bg.compare_models({"a": clf}, X, Y, WEIGHT),
        lambda: bg.validate(clf, X, Y, WEIGHT),
        lambda: bg.fit_stream(bg.GaussianNB(), [(X, Y, WEIGHT)]),
    ):
        with pytest.raises(ValueError, match=MASKED):
            call()
    nowhere = np.ma.masked_array(np.full(N, 1000.0), False)  # a mask that hides nothing
    np.testing.assert_array_equal(
        bg.GaussianNB().fit(X, Y, nowhere).predict_proba(X), clf.predict_proba(X)
    )


def test_masks_reach_the_blocks_of_dask():
    da = pytest.importorskip("dask.array")
    blocks = da.from_array(X, chunks=(12, 2))
    for weight in (WEIGHT, da.from_array(WEIGHT, chunks=12)):
        with pytest.raises(ValueError, match=MASKED):
            bg.fit_dask(bg.GaussianNB(), blocks, Y, weight)
    hidden = np.ma.masked_array(np.zeros(N), True)
    with pytest.raises(ValueError, match="no rows"):  # 0 behind a mask is no row either way
        bg.fit_dask(bg.GaussianNB(), blocks, Y, hidden)
    with pytest.raises(ValueError, match="no label in 1 row"):
        bg.fit_dask(bg.GaussianNB(), blocks, LABELS)


def test_a_masked_label_is_not_scored():
    clf = bg.GaussianNB().fit(X, Y)
    for call in (
        lambda: bg.compare_predictives(clf, X, LABELS),
        lambda: clf.simulate(N, y=LABELS),
        lambda: bg.report(clf, X, LABELS),
        *(lambda plot=plot: plot(clf, X, LABELS) for plot in PLOTS),
    ):
        with pytest.raises(ValueError, match="masked in row 3"):
            call()
    with pytest.raises(ValueError, match="no label in 1 row"):
        bg.plots.plot_reliability(clf.predict_proba(X), None, LABELS)


@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.parametrize("make", [bg.GaussianNB, bg.MixedNB, bg.TreeAugmentedNB])
def test_masked_cells_are_missing(make, dtype):
    masked = np.ma.masked_array(X.astype(dtype), X > 1)
    missing = np.where(X > 1, np.nan, X)
    found = make().fit(masked, Y).predict_proba(masked)
    np.testing.assert_array_equal(found, make().fit(missing, Y).predict_proba(missing))
