"""Errors planted in closed forms are refused by `bg.validate`; what is right is not.

In place of NUTS stand independent draws of the closed form, made before the error is planted.
"""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import bayesgen as bg
from bayesgen.checks import validate as module
from bayesgen.checks.comparison import STAGES, failed, sentence, table
from tests.checks.planted import (
    BITS,
    CLASSIFIERS,
    DRAWN,
    EXACT,
    REALS,
    RNG,
    Y,
    draws_in_place_of_nuts,
)

SLOW = pytest.mark.slow
THREE_CLASSES = np.array(list("abc") * 15)
CORRELATED = RNG.normal(size=(45, 3)) @ (np.eye(3) + RNG.normal(size=(3, 3)))


def identities(clf: Any, X: Any, y: Any, weight: Any = None) -> Any:
    """The table of identities."""
    fitted = clone(clf).fit(X, y, sample_weight=weight)
    return table(module._identities(fitted, module._case(fitted, X, y, weight), X), 0.01)


def sentences(*arguments: Any) -> list[str]:
    """What the identities that do not hold say."""
    return [sentence(line) for line in failed(identities(*arguments)).itertuples()]


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
    assert sentences(clf, X, Y) == []
    assert sentences(clf, X, Y, np.arange(15) % 3 + 0.5) == []


def test_identities_hold_with_three_classes_one_class_and_many_rows():
    clf = bg.QuadraticDiscriminant(class_alpha=[1.0, 2.0, 5.0])
    assert sentences(clf, CORRELATED, THREE_CLASSES) == []
    assert sentences(bg.GaussianNB(), CORRELATED, np.zeros(45)) == []
    rng = np.random.default_rng(0)
    many, y = rng.normal(size=(5000, 3)) * [1, 1e3, 1e-3] + 1e3, rng.integers(0, 2, 5000)
    assert sentences(bg.LinearDiscriminant(), many, y) == []


@pytest.mark.parametrize(("error", "name"), cases(EXACT))
def test_an_error_that_identities_find(error, name, monkeypatch):
    _, plant, word = EXACT[error]
    clf, X, family = CLASSIFIERS[name]
    plant(monkeypatch, family)
    found = sentences(clf, X, Y)
    assert any(word in words for words in found), found


@pytest.mark.parametrize(("error", "name"), cases(DRAWN, 1))
def test_an_error_that_draws_find(error, name, monkeypatch):
    _, plant, word = DRAWN[error]
    clf, X, family = CLASSIFIERS[name]
    n_made = 50_000 if error.startswith("simulated") else 2000
    draws_in_place_of_nuts(monkeypatch, clone(clf).fit(X, Y), n_made=n_made)
    plant(monkeypatch, family)
    result = bg.validate(clf, X, Y, progressbar=False)
    assert result.verdict == "disagree", str(result)
    assert any(word in reason for reason in result.reasons), result.reasons
    assert result.largest_z > result.threshold


def test_an_identity_that_fails_decides_the_verdict(monkeypatch):
    clf, X, family = CLASSIFIERS["BernoulliNB"]
    draws_in_place_of_nuts(monkeypatch, clone(clf).fit(X, Y))
    _, plant, word = EXACT["class_alpha ignored by prediction"]
    plant(monkeypatch, family)
    result = bg.validate(clf, X, Y, draws=200, progressbar=False)
    assert result.verdict == "disagree"
    assert word in " ".join(result.reasons)
    stages = result.failed()["stage"].tolist()
    order = [STAGES.index(stage) for stage in stages]
    assert order == sorted(order)
    assert stages[0] == "densities"
    assert result.reasons[0].startswith("densities: class weights of p(y = 'a' | D)")
