"""Fits in parts: what is merged, forgotten or refused, and that a refusal changes nothing."""

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
    X, _, y = sample(CASES["GaussianNB empirical"])
    best = bg.GaussianNB(prior="empirical").fit(X, y)
    assert best.log_evidence_ > bg.GaussianNB().fit(X, y).log_evidence_
    hyper = {"kappa0": "kappa", "nu0": "nu", "sigma2_0": "sigma2"}
    found = {name: getattr(best.prior_.family, own) for name, own in hyper.items()}
    for name, value in found.items():
        for factor in (0.8, 1.25):
            near = bg.GaussianNB(**(found | {name: factor * value})).fit(X, y)
            assert near.log_evidence_ < best.log_evidence_


LDA = CASES["LinearDiscriminant"]
MERGED = {
    "classifier": (bg.QuadraticDiscriminant(), "QuadraticDiscriminant into LinearDiscriminant"),
    "form": (bg.LinearDiscriminant(covariance="diagonal"), "covariance: 'full' and 'diagonal'"),
    "prior": (bg.LinearDiscriminant(nu0=9.0), "differ in nu0"),
}


@pytest.mark.parametrize(("other", "message"), MERGED.values(), ids=MERGED)
def test_other_models_are_not_merged(other, message):
    clf, X, y = fitted(LDA)
    with pytest.raises((TypeError, ValueError), match=message):
        clf.merge(other.fit(X, y))
    assert_same(clf, bg.LinearDiscriminant().fit(X, y), X)  # and nothing of it stayed


def test_other_columns_and_labels_are_not_merged():
    clf, X, y = fitted(LDA)
    with pytest.raises(ValueError, match="n_features_in_: 3 and 2"):
        clf.merge(bg.LinearDiscriminant().fit(X[:, :2], y))
    with pytest.raises(TypeError, match="labels of one type"):
        clf.merge(bg.LinearDiscriminant().fit(X, np.arange(len(y)) % 3))
    named = bg.LinearDiscriminant().fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="feature_names_in_"):
        named.merge(bg.LinearDiscriminant().fit(pd.DataFrame(X, columns=list("abd")), y))
    with pytest.raises(ValueError, match=r"binarize: 0\.0 and 0\.5"):
        bg.BernoulliNB().fit(X, y).merge(bg.BernoulliNB(binarize=0.5).fit(X, y))
    one, other = (NormalInverseGamma(variance=v) for v in ("class", "tied"))
    with pytest.raises(ValueError, match="differ in family"):
        bg.GenerativeClassifier(one).fit(X, y).merge(bg.GenerativeClassifier(other).fit(X, y))


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


# --------------------------------------------------------------------------------------- forget

RNG = np.random.default_rng(8)
N = 120
Y = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
REAL = RNG.normal(size=(N, 3)) + 1e6
COUNTS = RNG.poisson(2.0, size=(N, 4))
FRAME = pd.DataFrame(
    {"size": REAL[:, 0], "colour": RNG.choice(["red", "blue"], N), "wet": RNG.random(N) < 0.5}
)
TEXTS = np.array(["".join(RNG.choice(list("abc"), 6)) for _ in range(N)], dtype=object)


def test_a_class_that_is_forgotten_stays_known():
    clf = bg.PoissonNB().fit(COUNTS, Y).forget(COUNTS[Y == "b"], Y[Y == "b"])
    declared = bg.PoissonNB().partial_fit(COUNTS[Y != "b"], Y[Y != "b"], classes=["a", "b", "c"])
    assert clf.stats_.count[1] == 0
    np.testing.assert_allclose(clf.predict_proba(COUNTS), declared.predict_proba(COUNTS))


COLOURS = FRAME[["colour", "wet"]]
ROWS = {bg.GaussianNB: REAL, bg.CategoricalNB: COLOURS, bg.MarkovNB: TEXTS}
MANY = pd.concat([COLOURS[:1]] * 99), Y[:1].repeat(99)
NOT_LEARNED = [
    (bg.GaussianNB, REAL[:1], ["z"], r"labels that are not in classes: \['z'\]; the classes are"),
    (bg.GaussianNB, np.tile(REAL[:40], (9, 1)), ["a"] * 360, "would become negative"),
    (bg.GaussianNB, REAL[:2] + 1e5, ["a", "b"], "'scatter' would become negative"),
    (bg.GaussianNB, REAL, Y, "there are 120 .by weight., and this would leave none"),
    (bg.GaussianNB, REAL[:, :2], Y, "X has 2 features, but GaussianNB is expecting 3"),
    (bg.GaussianNB, np.full((50, 3), NAN), ["a"] * 50, "'count' would become negative"),
    (bg.CategoricalNB, COLOURS[:1].assign(colour="green"), ["a"], "or tokens that were never"),
    (bg.CategoricalNB, *MANY, "would become negative"),
    (bg.MarkovNB, ["xyz"], ["a"], "categories or tokens that were never learned"),
    (bg.MarkovNB, ["ab" * 300], ["a"], "would become negative"),
]


@pytest.mark.parametrize(("make", "X", "y", "message"), NOT_LEARNED)
def test_rows_that_were_never_learned_are_not_forgotten(make, X, y, message):
    clf = make().fit(ROWS[make], Y)
    before = clf.log_evidence_, clf.classes_.tolist(), clf.predict_proba(ROWS[make])
    with pytest.raises(ValueError, match=message):
        clf.forget(X, y)
    np.testing.assert_equal(
        (clf.log_evidence_, clf.classes_.tolist(), clf.predict_proba(ROWS[make])), before
    )
