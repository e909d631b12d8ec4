"""Estimates by name, linear forms, scikit-learn's attributes and arguments, priors by column."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn import discriminant_analysis, naive_bayes

import bayesgen as bg
from bayesgen.families.errors import NotLinearError
from bayesgen.families.names import METHODS
from tests.estimators.cases import CASES, PLUG_INS, fitted, sample

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
REALS = RNG.normal(size=(90, 4)) + Y[:, None] * [1.0, 0.0, 2.0, -1.0]
COUNTS = RNG.poisson(1 + Y[:, None] * [0.0, 1.0, 2.0, 0.5])
TINY = 1e-10  # a prior that weighs nothing: posterior means are maximum likelihood


def test_attributes_are_those_of_scikit_learn_where_the_prior_weighs_nothing():
    ours = bg.GaussianNB(0.0, TINY, 2.0, TINY, class_alpha=TINY).fit(REALS, Y)
    theirs = naive_bayes.GaussianNB().fit(REALS, Y)
    for name in ("theta_", "var_", "class_count_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)
    np.testing.assert_allclose(ours.class_log_prior_, np.log(theirs.class_prior_), rtol=1e-9)
    for our_type, their_type, X in (
        (bg.MultinomialNB, naive_bayes.MultinomialNB, COUNTS),
        (bg.BernoulliNB, naive_bayes.BernoulliNB, COUNTS > 1),
        (bg.CategoricalNB, naive_bayes.CategoricalNB, np.minimum(COUNTS, 2)),
    ):
        a, b = our_type(class_alpha=TINY).fit(X, Y), their_type().fit(X, Y)
        for log_p, expected in zip(a.feature_log_prob_, b.feature_log_prob_, strict=True):
            np.testing.assert_allclose(log_p, expected, rtol=1e-9)
    flat = {"mu0": 0.0, "kappa0": TINY, "nu0": 5.0, "psi0": TINY, "class_alpha": TINY}
    lda = bg.LinearDiscriminant(**flat).fit(REALS, Y)
    peer = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True)
    peer.fit(REALS, Y)
    for name in ("means_", "covariance_", "coef_", "intercept_"):
        np.testing.assert_allclose(getattr(lda, name), getattr(peer, name), rtol=1e-6)
    two = Y < 2
    both = [clf.fit(REALS[two], Y[two]) for clf in (lda, peer)]
    np.testing.assert_allclose(both[0].coef_, both[1].coef_, rtol=1e-6)
    assert both[0].intercept_.shape == both[1].intercept_.shape == (1,)


TABLE = pd.DataFrame(REALS, columns=list("abcd"))
MEANS = {"d": 4.0, "a": 1.0, "c": 3.0, "b": 2.0}
ROW = [1.0, 2.0, 3.0, 4.0]
BY_NAME = {
    "dict": (bg.GaussianNB(mu0=MEANS), bg.GaussianNB(mu0=ROW)),
    "Series": (bg.GaussianNB(mu0=pd.Series(MEANS)), bg.GaussianNB(mu0=ROW)),
    "DataArray": (
        bg.GaussianNB(mu0=xr.DataArray([*MEANS.values()], {"column": [*MEANS]})),
        bg.GaussianNB(mu0=ROW),
    ),
    "by class": (
        bg.GaussianNB(mu0=MEANS | {"b": [2.0, 2.5, 1.5]}),
        bg.GaussianNB(mu0=[[1.0, b, 3.0, 4.0] for b in (2.0, 2.5, 1.5)]),
    ),
    "full": (bg.LinearDiscriminant(psi0=MEANS), bg.LinearDiscriminant(psi0=ROW)),
    "labels in order": (
        bg.GaussianNB(class_alpha=pd.Series({0: 1.0, 1: 4.0, 2: 9.0})),
        bg.GaussianNB(class_alpha=[1.0, 4.0, 9.0]),
    ),
    "no labels": (
        bg.GaussianNB(class_alpha=pd.Series([1.0, 4.0, 9.0], index=["x", "y", "z"])),
        bg.GaussianNB(class_alpha=[1.0, 4.0, 9.0]),
    ),
}


@pytest.mark.parametrize(("by_name", "by_position"), BY_NAME.values(), ids=BY_NAME)
def test_priors_by_name(by_name, by_position, tmp_path):
    expected = by_position.fit(TABLE, Y).log_evidence_
    assert by_name.fit(TABLE, Y).log_evidence_ == expected
    by_name.save(tmp_path / "model.nc")
    assert bg.load(tmp_path / "model.nc").fit(TABLE, Y).log_evidence_ == expected


def test_columns_without_names_have_positions():
    by_name = bg.GaussianNB(mu0=pd.Series(MEANS)).fit(REALS, Y)
    assert by_name.log_evidence_ == bg.GaussianNB(mu0=[4.0, 1, 3, 2]).fit(REALS, Y).log_evidence_


def test_positions_of_columns_have_no_mean_over_draws():
    """Parents 1 and 3 of a feature do not make parent 2."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (40, 4)).astype(float), np.arange(40) % 2
    clf = bg.TreeAugmentedNB().fit(X, y)
    draws = clf.draw_posterior(50, random_state=0)
    with pytest.raises(ValueError, match="differ from draw to draw"):
        clf.with_posterior(draws).predict_proba(X, method="posterior_mean")
    with pytest.warns(UserWarning, match="one draw"):
        one = clf.with_posterior(draws.isel(chain=[0], draw=[0]))
    assert np.isfinite(one.predict_proba(X, method="posterior_mean")).all()


# ----------------------------------------------------------------------------------- linear form

LINEAR = {
    "BernoulliNB": METHODS,
    "MultinomialNB": PLUG_INS,
    "GaussianNB tied": PLUG_INS,
    "LinearDiscriminant": PLUG_INS,
    "LinearDiscriminant full": PLUG_INS,
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_form_is_the_decision_function(name):
    X, codes, y = sample(CASES[name])
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    for rows in (complete, complete[codes[complete] < 2]):
        clf = CASES[name].make().fit(X[rows], y[rows])
        for method in LINEAR[name]:
            w, w0 = clf.linear_form(method)
            if method == "mle" and not np.isfinite(w).all():  # a bit that a class never varies
                continue
            if len(clf.classes_) == 2:
                assert w.shape == (X.shape[1],)
                assert isinstance(w0, float)
                expected = clf.decision_function(X[rows], method=method)
                np.testing.assert_allclose(X[rows] @ w + w0, expected, rtol=1e-8, atol=1e-8)
            else:
                assert w.shape == (3, X.shape[1])
                joint = clf.predict_joint_log_proba(X[rows], method=method)
                gap = joint - (X[rows] @ w.T + w0)  # a constant of the row
                np.testing.assert_allclose(gap, gap[:, :1] * np.ones(3), rtol=1e-8, atol=1e-8)
        w, w0 = clf.linear_form(LINEAR[name][0])  # the predictive where it is linear
        np.testing.assert_array_equal(clf.coef_, np.atleast_2d(w))
        np.testing.assert_array_equal(clf.intercept_, np.atleast_1d(w0))


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
    gap = clf.predict_joint_log_proba(X, "map") - (X.to_numpy(dtype=float) @ w.T + w0)
    np.testing.assert_allclose(gap, gap[:, :1] * np.ones(3), rtol=1e-8)
