"""`linear_form`: where a rule is linear in the features, and where not."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.families.errors import NotLinearError
from bayesgen.families.names import METHODS
from tests.estimators.cases import CASES, PLUG_INS, fitted, sample

LINEAR = [
    ("BernoulliNB", METHODS),
    ("MultinomialNB", PLUG_INS),
    ("PoissonNB rate", PLUG_INS),
    ("GaussianNB tied", PLUG_INS),
    ("GaussianNB spherical", PLUG_INS),
    ("LinearDiscriminant", PLUG_INS),
    ("LinearDiscriminant full", PLUG_INS),
    ("LinearDiscriminant diagonal", PLUG_INS),
    ("LinearDiscriminant spherical", PLUG_INS),
    ("GenerativeClassifier", PLUG_INS),
]


@pytest.mark.parametrize("name", [name for name, _ in LINEAR])
def test_linear_form_is_the_decision_function(name):
    case, methods = CASES[name], dict(LINEAR)[name]
    X, codes, y = sample(case)
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    for rows in (complete, complete[codes[complete] < 2]):
        clf = case.make().fit(X[rows], y[rows])
        for method in methods:
            w, w0 = clf.linear_form(method)
            if method == "mle" and not np.isfinite(w).all():  # a bit that a class never varies
                continue
            joint = clf.predict_joint_log_proba(X[rows], method=method)
            if len(clf.classes_) == 2:
                assert w.shape == (X.shape[1],)
                assert isinstance(w0, float)
                d = clf.decision_function(X[rows], method=method)
                np.testing.assert_allclose(X[rows] @ w + w0, d, rtol=1e-8, atol=1e-8)
            else:
                assert w.shape == (3, X.shape[1])
                rest = joint - (X[rows] @ w.T + w0)  # a constant of the row
                np.testing.assert_allclose(rest, rest[:, :1] * np.ones(3), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "method", "reason"),
    [
        ("MultinomialNB", "posterior_predictive", "Dirichlet-multinomial"),
        ("PoissonNB", "posterior_predictive", "negative binomial"),
        ("GaussianNB", "posterior_predictive", "Student t"),
        ("GaussianNB", "map", "own variances and the rule is quadratic"),
        ("GaussianNB tied", "posterior_predictive", "Student t"),
        ("LinearDiscriminant", "posterior_predictive", "curved unless"),
        ("QuadraticDiscriminant", "mle", "LinearDiscriminant is linear"),
        ("CategoricalNB", "posterior_mean", "indicator for each category"),
        ("MixedNB", "map", "quadratic|indicator"),
        ("MarkovNB 2", "posterior_mean", "not linear"),
    ],
)
def test_rules_that_are_not_linear_say_why(name, method, reason):
    clf, _, _ = fitted(CASES[name])
    with pytest.raises(NotLinearError, match=reason):
        clf.linear_form(method)


def test_mixed_bits_and_tied_normals_are_linear():
    X, _, y = sample(CASES["MixedNB"])
    X = X[["wild", "length"]].dropna()
    clf = bg.MixedNB(variance="tied").fit(X, y[X.index])
    w, w0 = clf.linear_form("map")
    rest = clf.predict_joint_log_proba(X, "map") - (X.to_numpy(dtype=float) @ w.T + w0)
    np.testing.assert_allclose(rest, rest[:, :1] * np.ones(3), rtol=1e-8)
