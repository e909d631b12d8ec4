"""Probabilities, joint densities and class priors agree."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy.special import logsumexp, softmax
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.estimators import ESTIMATORS, MetaTreeForest, TreeAugmentedNB
from bayesgen.estimators.sampled import SampledClassifier
from tests.estimators.cases import CASES, NAN, defined, every_case, fitted, sample

# what these tests ask for (plug-in means, parts with further categories) they do not have
# test_binned, test_meta_trees
WITH_TESTS_OF_ITS_OWN = {TreeAugmentedNB, MetaTreeForest}


def test_every_estimator_has_a_case():
    closed = {estimator for estimator in ESTIMATORS if not issubclass(estimator, SampledClassifier)}
    closed -= WITH_TESTS_OF_ITS_OWN
    assert {type(case.make()) for case in CASES.values()} == closed


@every_case
def test_probabilities_joint_densities_and_row_densities_agree(case):
    clf, X, y = fitted(case)
    for method, joint in defined(clf, X).items():
        possible = np.isfinite(joint).any(axis=1)
        if not possible.all():
            assert method == "mle" or method == "map"
            X, y, joint = take(X, possible.nonzero()[0]), y[possible], joint[possible]
        log_x = logsumexp(joint, axis=1)
        p = clf.predict_proba(X, method=method)
        np.testing.assert_allclose(p, softmax(joint, axis=1), rtol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(clf.score_samples(X, method=method), log_x, rtol=1e-12)
        log_p = clf.predict_log_proba(X, method=method)
        np.testing.assert_allclose(log_p, joint - log_x[:, None], rtol=1e-10, atol=1e-12)
        best = clf.classes_[joint.argmax(axis=1)]
        np.testing.assert_array_equal(clf.predict(X, method=method), best)
        np.testing.assert_array_equal(clf.decision_function(X, method=method), log_p)
    assert clf.score(X, y) == np.mean(clf.predict(X) == y) > 0.5


@every_case
def test_another_class_prior_is_an_exact_label_shift(case):
    clf, X, _ = fitted(case)
    new = np.array([0.7, 0.1, 0.2])
    for method in ("posterior_predictive", "posterior_mean"):
        old = clf.predict_proba(X, method=method)
        shifted = old * new / clf.model_.class_weights(method, clf.stats_)
        expected = shifted / shifted.sum(axis=1, keepdims=True)
        got = clf.predict_proba(X, method=method, class_prior=new)
        np.testing.assert_allclose(got, expected, rtol=1e-9)
        log_x = clf.score_samples(X, method=method, class_prior=new)
        joint = clf.predict_joint_log_proba(X, method=method, class_prior=new)
        np.testing.assert_allclose(log_x, logsumexp(joint, axis=1), rtol=1e-12)


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


def test_a_class_with_weight_zero_is_impossible():
    clf, X, _ = fitted(CASES["GaussianNB"])
    p = clf.predict_proba(X, class_prior={"ash": 0, "birch": 0.5, "cedar": 0.5})
    assert np.all(p[:, 0] == 0)
    np.testing.assert_allclose(p.sum(axis=1), 1)


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


@every_case
def test_decision_function_of_two_classes_is_the_log_odds_of_the_second(case):
    X, codes, y = sample(case)
    two = np.flatnonzero(codes < 2)
    X, y = take(X, two), y[two]
    clf = case.make().fit(X, y)
    p = clf.predict_proba(X)
    d = clf.decision_function(X)
    assert d.shape == (len(two),)
    np.testing.assert_allclose(d, np.log(p[:, 1]) - np.log(p[:, 0]), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(d > 0, clf.predict(X) == "birch")
