"""Class weights and methods that a user gives: forms of them, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import xarray as xr

import bayesgen as bg
from tests.estimators.cases import CASES, fitted


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
