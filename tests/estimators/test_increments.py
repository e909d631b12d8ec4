"""Parts, merges and weights are one fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from tests.estimators.cases import CASES, NAN, assert_same, defined, fitted, sample


def test_the_empirical_prior_has_the_largest_evidence():
    X, _, y = sample(CASES["MultinomialNB"])
    best = bg.MultinomialNB(prior="empirical").fit(X, y)

    def loss(log_alpha):
        return -bg.MultinomialNB(alpha=np.exp(log_alpha)).fit(X, y).log_evidence_

    top = optimize.minimize_scalar(loss, bounds=(-10, 10), options={"xatol": 1e-6})
    assert best.log_evidence_ == pytest.approx(-top.fun, rel=1e-10)
    np.testing.assert_allclose(best.prior_.family.alpha, np.exp(top.x), rtol=1e-3)
    X, _, y = sample(CASES["GaussianNB"])
    best = bg.GaussianNB(prior="empirical").fit(X, y)
    assert best.log_evidence_ > bg.GaussianNB().fit(X, y).log_evidence_
    hyper = {"kappa0": "kappa", "nu0": "nu", "sigma2_0": "sigma2"}
    found = {name: getattr(best.prior_.family, own) for name, own in hyper.items()}
    for name, value in found.items():
        for factor in (0.8, 1.25):
            near = bg.GaussianNB(**(found | {name: factor * value})).fit(X, y)
            assert near.log_evidence_ < best.log_evidence_


def test_merge_refuses_what_does_not_belong_together():
    X, _, y = sample(CASES["LinearDiscriminant"])
    clf = bg.LinearDiscriminant().fit(X, y)
    with pytest.raises(TypeError, match="QuadraticDiscriminant into LinearDiscriminant"):
        clf.merge(bg.QuadraticDiscriminant().fit(X, y))
    with pytest.raises(ValueError, match="differ in covariance: 'full' and 'diagonal'"):
        clf.merge(bg.LinearDiscriminant(covariance="diagonal").fit(X, y))
    with pytest.raises(ValueError, match="differ in nu0"):
        clf.merge(bg.LinearDiscriminant(nu0=9.0).fit(X, y))
    with pytest.raises(ValueError, match="n_features_in_: 3 and 2"):
        clf.merge(bg.LinearDiscriminant().fit(X[:, :2], y))
    with pytest.raises(TypeError, match="labels of one type"):
        clf.merge(bg.LinearDiscriminant().fit(X, np.arange(len(y)) % 3))
    named = bg.LinearDiscriminant().fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="feature_names_in_"):
        named.merge(bg.LinearDiscriminant().fit(pd.DataFrame(X, columns=list("abd")), y))
    with pytest.raises(ValueError, match=r"binarize: 0\.0 and 0\.5"):
        bg.BernoulliNB().fit(X, y).merge(bg.BernoulliNB(binarize=0.5).fit(X, y))
    with pytest.raises(ValueError, match="differ in family"):
        bg.GenerativeClassifier(NormalInverseGamma()).fit(X, y).merge(
            bg.GenerativeClassifier(NormalInverseGamma(variance="tied")).fit(X, y)
        )
    assert_same(clf, bg.LinearDiscriminant().fit(X, y), X)  # and nothing of it stayed


def test_equal_arguments_may_be_different_objects():
    X, _, y = sample(CASES["LinearDiscriminant"])
    make = [
        lambda: bg.LinearDiscriminant(mu0=np.zeros(3), psi0=[1, 1, 1]),
        lambda: bg.GenerativeClassifier(NormalInverseGamma(mu=np.zeros(3))),
        lambda: bg.MixedNB({"gaussian": [0, 1, 2]}),
    ]
    for case in make:
        assert_same(case().fit(X[:9], y[:9]).merge(case().fit(X[9:], y[9:])), case().fit(X, y), X)


@pytest.mark.parametrize("name", ["CategoricalNB", "MultinomialNB", "QuadraticDiscriminant full"])
def test_a_call_that_fails_changes_nothing(name):
    case = CASES[name]
    clf, X, y = fitted(case)
    bad = pd.DataFrame(X).map(lambda v: v if isinstance(v, str) else NAN).to_numpy()
    before = defined(clf, X), clf.log_evidence_, clf.n_rows_seen_, clf.classes_
    if name == "CategoricalNB":
        bad[:, 0] = [1j] * len(bad)
    for call in (clf.fit, clf.partial_fit):
        with pytest.raises((TypeError, ValueError)):
            call(bad, np.full(len(y), "yew"))
        after = defined(clf, X), clf.log_evidence_, clf.n_rows_seen_, clf.classes_
        np.testing.assert_equal(after, before)
