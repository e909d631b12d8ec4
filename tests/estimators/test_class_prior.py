"""Class weights and methods that a user gives: forms of them, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import bayesgen as bg
from tests.estimators.cases import CASES, NAN, fitted


def test_class_prior_by_position_by_label_and_as_a_series():
    clf, X, _ = fitted(CASES["GaussianNB"])
    expected = clf.predict_proba(X, class_prior=[0.7, 0.1, 0.2])
    weights = {"cedar": 0.2, "ash": 0.7, "birch": 0.1}
    for prior in (
        weights,
        pd.Series(weights),  # such as y.value_counts(normalize=True): by label, not by position
        pd.Series(weights, index=pd.CategoricalIndex(weights)),
        np.array([0.7, 0.1, 0.2]),
        (0.7, 0.1, 0.2),
        pl.Series([0.7, 0.1, 0.2]),
        xr.DataArray([0.2, 0.7, 0.1], {"class": list(weights)}),
        xr.DataArray([0.7, 0.1, 0.2]),
    ):
        np.testing.assert_array_equal(clf.predict_proba(X, class_prior=prior), expected)
    rounded = clf.predict_proba(X, class_prior=np.array([0.7, 0.1, 0.2], dtype=np.float32))
    np.testing.assert_allclose(rounded, expected, rtol=1e-6)


def test_class_prior_by_date():
    days = np.array(["2021-01-01", "2020-01-01"], dtype="datetime64[D]")
    clf = bg.GaussianNB().fit([[0.0], [1.0]], days)
    expected = clf.predict_proba([[0.5]], class_prior=[0.75, 0.25])
    for prior in (pd.Series([0.25, 0.75], index=days), xr.DataArray([0.25, 0.75], {"class": days})):
        np.testing.assert_array_equal(clf.predict_proba([[0.5]], class_prior=prior), expected)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], r"shape \(2,\), but there are 3 classes: \['ash', 'birch', 'cedar'\]"),
        (0.5, r"shape \(\)"),
        ([0.5, 0.5, 0.5], r"sum to 1.*1\.5.*divide by the sum"),
        ([1.5, -0.5, 0.0], "non-negative"),
        ([NAN, 0.5, 0.5], "sum to 1"),
        ({"ash": 0.5, "birch": 0.5}, r"no weight for \['cedar'\]"),
        ({"ash": 0.5, "birch": 0.3, "elm": 0.2}, "'elm' is not a class"),
        ({0: 0.5, 1: 0.3, 2: 0.2}, "0 is not a class; the classes are"),
        ("uniform", "one weight per class.*'uniform'"),
        ([[0.2, 0.3, 0.5]], r"shape \(1, 3\)"),
    ],
)
def test_a_bad_class_prior_is_refused(prior, message):
    clf, X, _ = fitted(CASES["GaussianNB"])
    for predict in (clf.predict, clf.predict_proba, clf.score_samples, clf.decision_function):
        with pytest.raises(ValueError, match=message):
            predict(X, class_prior=prior)


def test_an_unknown_method_is_refused():
    clf, X, _ = fitted(CASES["GaussianNB"])
    with pytest.raises(ValueError, match="'posterior_predictive', 'posterior_mean', 'map', 'mle'"):
        clf.predict(X, method="bayes")
    with pytest.raises(ValueError, match="method must be one of"):
        clf.linear_form("bayes")


def test_simulate_refuses_what_it_cannot_do():
    clf, _, _ = fitted(CASES["GaussianNB"])
    with pytest.raises(ValueError, match="'elm' is not a class"):
        clf.simulate(3, "elm")
    with pytest.raises(ValueError, match="'predictive' or 'draw'"):
        clf.simulate(3, source="prior")
    with pytest.raises(ValueError, match="n must be >= 0"):
        clf.simulate(-1)
