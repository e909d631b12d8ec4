"""Errors planted in closed forms are refused by `bg.validate`; what is right is not.

In place of NUTS stand independent draws of the closed form, made before the error is planted.
"""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone

import bayesgen as bg
from bayesgen.checks import validate as module
from bayesgen.checks.quantities import STAGES, off_diagonal_score
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.capabilities import ThetaDensity
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from tests.checks.planted import BITS, CLASSIFIERS, DRAWN, EXACT, REALS, RNG, Y

SLOW = pytest.mark.slow
THREE_CLASSES = np.array(list("abc") * 15)
CORRELATED = RNG.normal(size=(45, 3)) @ (np.eye(3) + RNG.normal(size=(3, 3)))


def exact_words(clf: Any, X: Any, y: Any, weight: Any = None) -> list[str]:
    """What the identities say."""
    fitted = clone(clf).fit(X, y, sample_weight=weight)
    data = module._Data.of(fitted, X, y, weight)
    return [words for outcome in module._exact(fitted, data) for words in outcome.wrong]


def draws_in_place_of_nuts(monkeypatch: Any, clf: Any, X: Any, y: Any) -> None:
    """`sample_posterior` of the right closed form, drawn now."""
    tree = clone(clf).fit(X, y).draw_posterior(1000, 4, 3, groups=())
    diverging = np.zeros((4, 1000), dtype=bool)
    tree["sample_stats"] = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
    monkeypatch.setattr(GenerativeClassifier, "sample_posterior", lambda *_, **__: tree.copy())
    monkeypatch.setattr(module, "_SIMULATED", 5000)


def cases(errors: Any, fast: int | None = None) -> list[Any]:
    """Each error with each classifier that it is planted in; so many of them are fast."""
    return [
        pytest.param(
            *(error, name), id=f"{error}, {name}", marks=() if name in names[:fast] else SLOW
        )
        for error, (names, *_) in errors.items()
        for name in names
    ]


RIGHT = {name: case[:2] for name, case in CLASSIFIERS.items()}
RIGHT |= {
    "spherical": (bg.GaussianNB(variance="spherical"), REALS),
    "missing": (bg.GaussianNB(), np.where(RNG.random(REALS.shape) < 0.2, np.nan, REALS)),
    "MarkovNB": (bg.MarkovNB(), ["".join("ab"[b] for b in row) + "ab" for row in BITS]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_identities_hold_for_a_right_closed_form(name):
    clf, X = RIGHT[name]
    assert exact_words(clf, X, Y) == []
    assert exact_words(clf, X, Y, np.arange(15) % 3 + 0.5) == []


def test_identities_hold_with_three_classes_and_unequal_pseudo_counts():
    clf = bg.QuadraticDiscriminant(class_alpha=[1.0, 2.0, 5.0])
    assert exact_words(clf, CORRELATED, THREE_CLASSES) == []
    texts = ["abba", "baab", "aabb", "bbb", "ab", "ba"] * 4
    assert exact_words(bg.MarkovNB(order=1), texts, np.arange(24) % 2) == []
    assert exact_words(bg.GaussianNB(), CORRELATED, np.zeros(45)) == []  # one class
    rng = np.random.default_rng(0)
    many, y = rng.normal(size=(5000, 3)) * [1, 1e3, 1e-3] + 1e3, rng.integers(0, 2, 5000)
    assert exact_words(bg.LinearDiscriminant(), many, y) == []


@pytest.mark.parametrize(("error", "name"), cases(EXACT))
def test_an_error_that_identities_find(error, name, monkeypatch):
    _, plant, word = EXACT[error]
    clf, X, family = CLASSIFIERS[name]
    plant(monkeypatch, family)
    assert any(word in words for words in exact_words(clf, X, Y)), exact_words(clf, X, Y)


@pytest.mark.parametrize(("error", "name"), cases(DRAWN, 1))
def test_an_error_that_draws_find(error, name, monkeypatch):
    _, plant, word = DRAWN[error]
    clf, X, family = CLASSIFIERS[name]
    draws_in_place_of_nuts(monkeypatch, clf, X, Y)
    if error.startswith("simulated"):
        monkeypatch.setattr(module, "_SIMULATED", 100_000)
    plant(monkeypatch, family)
    result = bg.validate(clf, X, Y, progressbar=False)
    assert result.verdict == "disagree", str(result)
    assert any(word in reason for reason in result.reasons), result.reasons
    assert (np.abs(result.checks["z"].values) > result.threshold).any()
    covariances = family is NormalInverseWishart
    names = [str(name) for name in result.checks["variable"].values]
    found = any("density of" in name and name.endswith("Sigma") for name in names)
    assert found == covariances, names


@pytest.mark.slow
def test_off_diagonals_of_three_classes(monkeypatch):
    clf, X, y = bg.QuadraticDiscriminant(), CORRELATED, THREE_CLASSES
    draws_in_place_of_nuts(monkeypatch, clf, X, y)
    assert bg.validate(clf, X, y, progressbar=False).passed
    DRAWN["off-diagonal draws of Sigma times 0.97"][1](monkeypatch, NormalInverseWishart)
    assert not bg.validate(clf, X, y, progressbar=False).passed


@pytest.mark.parametrize("error", ["class_alpha ignored by prediction"])
def test_an_identity_that_fails_decides_the_verdict(error, monkeypatch):
    clf, X, family = CLASSIFIERS["BernoulliNB"]
    draws_in_place_of_nuts(monkeypatch, clf, X, Y)
    EXACT[error][1](monkeypatch, family)
    result = bg.validate(clf, X, Y, draws=200, progressbar=False)
    assert result.verdict == "disagree"
    assert EXACT[error][2] in " ".join(result.reasons)
    failed = result.failed()
    assert (failed["source"] == "identity").any()
    order = [STAGES.index(stage) for stage in failed["stage"]]
    assert order == sorted(order)
    assert result.reasons[0].startswith(f"{failed['stage'].iloc[0]}: ")
    assert failed["stage"].iloc[0] == "densities"


# ------------------------------------------------------------------------ what is not compared


def test_the_outcome_says_what_was_and_what_could_not_be_compared(monkeypatch):
    X = np.random.default_rng(0).normal(size=(8, 1))
    y = np.array([0, 1, 1, 1, 1, 1, 1, 1])  # one row of class 0
    clf = bg.GaussianNB(nu0=1.0)
    draws_in_place_of_nuts(monkeypatch, clf, X, y)
    result = bg.validate(clf, X, y, progressbar=False)
    assert result.passed, str(result)
    text = " ".join(result.not_compared)
    assert "method='mle': method='mle' is undefined for class 0" in text
    assert "method='posterior_mean' is undefined" in text
    assert "class weights" in result.exact
    assert "method='mle'" not in result.exact
    assert "Not compared: method='mle'" in str(result)
    assert "Compared to many digits: evidence and predictive" in str(result)
    assert result.failed().empty


def test_categories_that_do_not_exist_are_not_compared(monkeypatch):
    X = np.column_stack([np.arange(15) % 3, np.arange(15) % 2])
    clf = bg.CategoricalNB()
    draws_in_place_of_nuts(monkeypatch, clf, X, Y)
    result = bg.validate(clf, X, Y, progressbar=False)
    assert result.passed, str(result)
    variables = result.checks["variable"].values.tolist()
    assert variables.count("theta") == variables.count("E theta") == 2 * (3 + 2)


def test_a_family_without_a_log_density_is_named(monkeypatch):
    clf, X, family = CLASSIFIERS["BernoulliNB"]
    offered = family.capability
    monkeypatch.setattr(
        family, "capability", lambda f, kind: None if kind is ThetaDensity else offered(f, kind)
    )
    fitted = clone(clf).fit(X, Y)
    outcomes = module._exact(fitted, module._Data.of(fitted, X, Y, None))
    skipped = [outcome.skipped for outcome in outcomes if outcome.skipped]
    assert len(skipped) == 2
    assert "whether the densities fit together" in skipped[0]
    assert "method='map'" in skipped[1]
    for words in skipped:
        assert "ThetaDensity (log_density), which BetaBernoulli does not offer" in words
    assert not any(outcome.wrong for outcome in outcomes)


# -------------------------------------------------------------------------------- the score


def test_score_of_off_diagonals_is_that_of_scipys_density():
    from scipy.stats import invwishart

    psi = np.array([[2.0, 0.7], [0.7, 1.0]])
    family = NormalInverseWishart(
        mu=np.zeros((1, 2)),
        kappa=np.array([2.0]),
        nu=np.array([7.0]),
        psi=psi[None],
        shift=np.zeros(2),
        ignored=np.zeros(2, dtype=bool),
    )
    theta = family.draw(np.random.default_rng(0), 50)
    theta["mu"][:] = 0.0  # then mu given Sigma says log det Sigma / 2 of it
    found = off_diagonal_score(family, theta, "Sigma")

    def log_density(sigma: np.ndarray) -> float:
        wishart = invwishart.logpdf(sigma, df=7, scale=psi)
        return float(wishart - 0.5 * np.linalg.slogdet(sigma)[1])

    h, off = 1e-5, 1 - np.eye(2)
    for sigma, value in zip(theta["Sigma"][:, 0], found, strict=True):
        ahead, behind = (log_density(sigma * (1 + s * h * off)) for s in (1, -1))
        assert value == pytest.approx((ahead - behind) / (2 * h) + 1, rel=1e-4, abs=1e-4)
