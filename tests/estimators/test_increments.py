"""Fits in parts: what is merged, forgotten or refused, and that a refusal changes nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from tests.estimators.cases import CASES, NAN, assert_same, defined, sample


def test_the_empirical_prior_has_the_largest_evidence():
    X, _, y = sample(CASES["MultinomialNB"])
    best = bg.MultinomialNB(prior="empirical").fit(X, y)

    def loss(log_alpha):
        return -bg.MultinomialNB(alpha=np.exp(log_alpha)).fit(X, y).log_evidence_

    top = optimize.minimize_scalar(loss, bounds=(-10, 10), options={"xatol": 1e-6})
    assert best.log_evidence_ == pytest.approx(-top.fun, rel=1e-10)
    np.testing.assert_allclose(best.prior_.family.alpha, np.exp(top.x), rtol=1e-3)
    X, _, y = sample(CASES["GaussianNB empirical"])
    best = bg.GaussianNB(prior="empirical").fit(X, y)
    assert best.log_evidence_ > bg.GaussianNB().fit(X, y).log_evidence_
    hyper = {"kappa0": "kappa", "nu0": "nu", "sigma2_0": "sigma2"}
    found = {name: getattr(best.prior_.family, own) for name, own in hyper.items()}
    for name, value in found.items():
        for factor in (0.8, 1.25):
            near = bg.GaussianNB(**(found | {name: factor * value})).fit(X, y)
            assert near.log_evidence_ < best.log_evidence_


def test_equal_arguments_may_be_different_objects():
    X, _, y = sample(CASES["LinearDiscriminant"])
    make = [
        lambda: bg.LinearDiscriminant(mu0=np.zeros(3), psi0=[1, 1, 1]),
        lambda: bg.GenerativeClassifier(NormalInverseGamma(mu=np.zeros(3))),
        lambda: bg.MixedNB({"gaussian": [0, 1, 2]}),
    ]
    for case in make:
        assert_same(case().fit(X[:9], y[:9]).merge(case().fit(X[9:], y[9:])), case().fit(X, y), X)


RNG = np.random.default_rng(8)
N = 120
Y = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
REAL = RNG.normal(size=(N, 3)) + 1e6
COUNTS = RNG.poisson(2.0, size=(N, 4))
COLOURS = pd.DataFrame({"colour": RNG.choice(["red", "blue"], N), "wet": RNG.random(N) < 0.5})
TEXTS = np.array(["".join(RNG.choice(list("abc"), 6)) for _ in range(N)], dtype=object)
NAMED = pd.DataFrame(REAL, columns=list("abc"))


def test_a_class_that_is_forgotten_stays_known():
    clf = bg.PoissonNB().fit(COUNTS, Y).forget(COUNTS[Y == "b"], Y[Y == "b"])
    declared = bg.PoissonNB().partial_fit(COUNTS[Y != "b"], Y[Y != "b"], classes=["a", "b", "c"])
    assert clf.stats_.count[1] == 0
    np.testing.assert_allclose(clf.predict_proba(COUNTS), declared.predict_proba(COUNTS))


def merge(clf, X=REAL, y=Y):
    return lambda into: into.merge(clf.fit(X, y))


def forget(X, y):
    return lambda clf: clf.forget(X, y)


def learn(X, method="partial_fit"):
    return lambda clf: getattr(clf, method)(X, np.full(N, "yew"))


def of_variances(form):
    return bg.GenerativeClassifier(NormalInverseGamma(variance=form))


NB, LDA, QDA, WORDS = bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant, bg.MarkovNB
KINDS = bg.CategoricalNB
GAPS, COMPLEX = np.full((N, 4), NAN), COLOURS.assign(colour=1j)
GREEN, MANY = COLOURS[:1].assign(colour="green"), pd.concat([COLOURS[:1]] * 99)
CHOSEN = NB(prior="loo")
STATISTICS = "works on sufficient statistics, and prior='loo'.*fit all rows together"
REFUSED = [
    (LDA(), REAL, merge(QDA()), "QuadraticDiscriminant into LinearDiscriminant"),
    (LDA(), REAL, merge(LDA(covariance="diagonal")), "covariance: 'full' and 'diagonal'"),
    (LDA(), REAL, merge(LDA(nu0=9.0)), "differ in nu0"),
    (LDA(), REAL, merge(LDA(), REAL[:, :2]), "n_features_in_: 3 and 2"),
    (LDA(), REAL, merge(LDA(), y=np.arange(N) % 3), "labels of one type"),
    (LDA(), NAMED, merge(LDA(), NAMED.rename(columns={"c": "d"})), "feature_names_in_"),
    (bg.BernoulliNB(), REAL, merge(bg.BernoulliNB(binarize=0.5)), r"binarize: 0\.0 and 0\.5"),
    (of_variances("class"), REAL, merge(of_variances("tied")), "differ in family"),
    (KINDS(), COLOURS, learn(COMPLEX), "complex"),
    (bg.MultinomialNB(), COUNTS, learn(GAPS), "nan in row 0"),
    (QDA(), REAL, learn(GAPS[:, :3]), "NaN"),
    (QDA(), REAL, learn(GAPS[:, :3], "fit"), "NaN"),
    (CHOSEN, REAL, learn(REAL), f"partial_fit {STATISTICS}"),
    (CHOSEN, REAL, merge(CHOSEN), f"merge {STATISTICS}"),
    (CHOSEN, REAL, forget(REAL[:3], Y[:3]), f"forget {STATISTICS}"),
    (CHOSEN, REAL, lambda clf: bg.fit_stream(clf, [(REAL, Y)]), f"fit_stream {STATISTICS}"),
    (NB(), REAL, forget(REAL[:1], ["z"]), r"not in classes: \['z'\]; the classes are"),
    (NB(), REAL, forget(np.tile(REAL[:40], (9, 1)), ["a"] * 360), "would become negative"),
    (NB(), REAL, forget(REAL[:2] + 1e5, ["a", "b"]), "'scatter' would become negative"),
    (NB(), REAL, forget(REAL, Y), "there are 120 .by weight., and this would leave none"),
    (NB(), REAL, forget(REAL[:, :2], Y), "X has 2 features, but GaussianNB is expecting 3"),
    (NB(), REAL, forget(GAPS[:50, :3], ["a"] * 50), "'count' would become negative"),
    (KINDS(), COLOURS, forget(GREEN, ["a"]), "or tokens that were never learned"),
    (KINDS(), COLOURS, forget(MANY, Y[:1].repeat(99)), "would become negative"),
    (WORDS(), TEXTS, forget(["xyz"], ["a"]), "categories or tokens that were never learned"),
    (WORDS(), TEXTS, forget(["ab" * 300], ["a"]), "would become negative"),
]


@pytest.mark.parametrize(("clf", "X", "change", "message"), REFUSED)
def test_a_change_that_is_refused_changes_nothing(clf, X, change, message):
    def answers():
        return defined(clf, X), clf.log_evidence_, clf.n_rows_seen_, clf.classes_.tolist()

    clf.fit(X, Y)
    before = answers()
    with pytest.raises((TypeError, ValueError), match=message):
        change(clf)
    np.testing.assert_equal(answers(), before)
