"""Pipelines that end in a classifier of this package."""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, 40)
X = RNG.normal(size=(40, 2)) * 3 + Y[:, None]
FITS_ANEW = {"validate", "fit_dask"}


@pytest.fixture(scope="module")
def pipe():
    return make_pipeline(StandardScaler(), bg.GaussianNB()).fit(X, Y)


CALLS = {
    "compare_predictives": lambda clf, X: bg.compare_predictives(clf, X, Y),
    "compare_models": lambda clf, X: bg.compare_models({"a": clf}, X, Y).table,
    "each its rows": lambda clf, X: (
        bg.compare_models({"a": clf, "b": clf}, {"a": X, "b": X}, Y).table
    ),
    "label_errors": lambda clf, X: bg.label_errors(clf, X, Y),
    "estimate_class_prior": lambda clf, X: bg.estimate_class_prior(clf, X)["summary"].dataset,
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_a_pipeline_are_those_of_its_last_step(pipe, name):
    clf, rows = pipe[-1], pipe[:-1].transform(X)
    of_pipeline, expected = (CALLS[name](*one) for one in ((pipe, X), (clf, rows)))
    xr.testing.assert_identical(of_pipeline, expected)


def test_final_estimator(pipe):
    clf, rows = bg.final_estimator(pipe, X)
    assert clf is pipe[-1]
    np.testing.assert_array_equal(clf.predict_proba(rows), pipe.predict_proba(X))
    assert bg.final_estimator(clf, rows) == (clf, rows)
    alone = make_pipeline(bg.GaussianNB()).fit(X, Y)
    assert bg.final_estimator(alone, X) == (alone[-1], X)


def test_every_function_of_a_classifier_and_rows_takes_pipelines():
    public = [getattr(bg, name) for name in bg.__all__]
    public += [getattr(bg.plots, name) for name in bg.plots.__all__]
    for function in filter(inspect.isfunction, public):
        first = list(inspect.signature(function).parameters)[:2]
        if first in (["clf", "X"], ["models", "X"]) and function is not bg.final_estimator:
            assert hasattr(function, "__wrapped__") or function.__name__ in FITS_ANEW, function


def test_pictures_and_reports(pipe):
    ax = bg.plots.plot_regions(pipe, X, Y)
    clf, rows = bg.final_estimator(pipe, X)
    assert ax.get_xlim() == bg.plots.plot_regions(clf, rows, Y).get_xlim()
    plt.close("all")
    with pytest.raises(TypeError, match="nor a pipeline that ends in one"):
        bg.report(StandardScaler(), X, Y)


@pytest.mark.slow
def test_a_report_of_a_pipeline(pipe):
    assert "GaussianNB on 40 training rows" in bg.report(pipe, X, Y, training=(X, Y)).title
