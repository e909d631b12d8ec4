"""Every closed-form estimator with data of its kind.

Three classes, missing cells where they may be, a category (a word, a letter) that only the last
class knows.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from tests.rows import bits, counts, counts_with_gaps, reals, reals_with_gaps, texts, with_gaps

NAN = np.nan
LABELS = np.array(["ash", "birch", "cedar"])
PLUG_INS = METHODS[1:]


def unequal_reals(rng, c):
    """Of which each class has spreads of its own: the evidence has a maximum in nu."""
    return reals_with_gaps(rng, c) * np.array([[1.0, 2, 0.5], [0.5, 1, 2], [1, 1, 1]])[c]


def words(rng, c):
    colours = np.array(["red", "blue", "green"], dtype=object)
    sizes = np.array(["S", "M", "L", "XL"], dtype=object)
    colour = colours[np.where(rng.random(len(c)) < 0.6, c, rng.integers(0, 2, len(c)))]
    size = sizes[np.minimum(rng.integers(0, 3, len(c)) + (c == 2), 3)]
    X = np.stack([colour, size], axis=1)
    X[9 + np.flatnonzero(rng.random(len(c) - 9) < 0.1), 0] = None
    return X


def table(rng, c):
    real, word, count = reals_with_gaps(rng, c), words(rng, c), counts(rng, c)
    return pd.DataFrame(
        {
            "length": real[:, 0],
            "colour": word[:, 0],
            "eggs": count[:, 1],
            "wild": rng.random(len(c)) < np.array([0.2, 0.5, 0.9])[c],
            "weight": real[:, 2],
            "size": word[:, 1],
        }
    )


KINDS = {
    "gaussian": ["length", "weight"],
    "categorical": ["colour", "size"],
    "poisson": ["eggs"],
    "bernoulli": ["wild"],
}


def skewed(rng, c):
    x = reals(rng, c)
    x[:, 2] = np.exp(x[:, 2] / 2)
    return pd.DataFrame(with_gaps(rng, x), columns=["length", "rain", "income"])


REAL_KINDS = {"gaussian": ["length", "rain"], "lognormal": ["income"]}


class Case(NamedTuple):
    make: Callable[[], Any]
    rows: Callable[..., Any]
    tol: float = 1e-9


def gaussian(variance="class"):
    groups = {"class": 3, "tied": 1, "spherical": 1, "class_spherical": 1}[variance]
    return bg.GaussianNB(
        mu0=[1.0, 0.0, 4.0],
        kappa0=0.5,
        nu0=4.0,
        sigma2_0=np.array([1.5, 2.0, 1.0])[:groups] if groups == 3 else 1.5,
        variance=variance,
    )


PSI = np.array([[2.0, 0.5, 0.0], [0.5, 3.0, 1.0], [0.0, 1.0, 4.0]])
FULL = {"mu0": [1.0, 0.0, 4.0], "kappa0": 0.5, "nu0": 6.0, "psi0": PSI}
FLAT = {"mu0": 1.0, "kappa0": 0.5, "nu0": 4.0, "psi0": 2.0}

CASES = {
    "BernoulliNB": Case(lambda: bg.BernoulliNB(1.5, [2.0, 1, 1, 3]), bits),
    "CategoricalNB": Case(bg.CategoricalNB, words),
    "CategoricalNB declared": Case(
        lambda: bg.CategoricalNB(1.5, {0: ["red", "green", "blue"], 1: ["S", "M", "L", "XL"]}),
        words,
    ),
    "MultinomialNB": Case(lambda: bg.MultinomialNB(1.5, class_alpha=2.0), counts),
    "PoissonNB": Case(bg.PoissonNB, counts_with_gaps),
    "PoissonNB rate": Case(lambda: bg.PoissonNB(2.0, 0.5), counts_with_gaps),
    "GaussianNB": Case(bg.GaussianNB, reals_with_gaps),
    **{
        f"GaussianNB {v}": Case(lambda v=v: gaussian(v), reals_with_gaps)
        for v in ("class", "tied", "spherical", "class_spherical")
    },
    "MixedNB": Case(lambda: bg.MixedNB(KINDS), table),
    "MixedNB real": Case(lambda: bg.MixedNB(REAL_KINDS), skewed),
    "LinearDiscriminant": Case(bg.LinearDiscriminant, reals),
    "LinearDiscriminant full": Case(lambda: bg.LinearDiscriminant(**FULL), reals),
    "QuadraticDiscriminant": Case(bg.QuadraticDiscriminant, reals),
    "QuadraticDiscriminant full": Case(lambda: bg.QuadraticDiscriminant(**FULL), reals),
    **{
        f"{estimator.__name__} {v}": Case(
            lambda estimator=estimator, v=v: estimator(**FLAT, covariance=v), reals
        )
        for estimator in (bg.LinearDiscriminant, bg.QuadraticDiscriminant)
        for v in ("diagonal", "spherical")
    },
    "MarkovNB 1": Case(lambda: bg.MarkovNB(1, 1.5), texts),
    "MarkovNB 2": Case(lambda: bg.MarkovNB(2, 1.5, vocabulary=list("abc ")), texts),
    "GenerativeClassifier": Case(
        lambda: bg.GenerativeClassifier(NormalInverseGamma(variance="tied")), reals_with_gaps
    ),
    # the evidence is flat at its top: the optimum is known to about 1e-6
    "GaussianNB empirical": Case(lambda: bg.GaussianNB(prior="empirical"), unequal_reals, tol=1e-4),
    "MultinomialNB empirical": Case(lambda: bg.MultinomialNB(prior="empirical"), counts, tol=1e-4),
}
# one of each estimator, and settings that change what is read or how priors are found
EVERY = {type(case.make()): name for name, case in [*CASES.items()][::-1]}
EVERY = [*EVERY.values(), "LinearDiscriminant full", "MixedNB real", "GaussianNB empirical"]
every_case = pytest.mark.parametrize("case", [CASES[name] for name in EVERY], ids=EVERY)
# small parts often ask for a degenerate prior, which is what the warning says
degenerate = pytest.mark.filterwarnings("ignore:prior='empirical'. the evidence has no interior")


def sample(case, n=60, seed=7):
    """Rows, codes, labels: the classes one after another in turn, in random order after 9 rows."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    rng.shuffle(codes[9:])
    return case.rows(rng, codes), codes, LABELS[codes]


def fitted(case, **size):
    X, _, y = sample(case, **size)
    return case.make().fit(X, y), X, y


def defined(clf, X):
    """The methods whose estimate exists, and their log joint densities."""
    joint = {}
    for method in METHODS:
        with suppress(UndefinedEstimateError):
            joint[method] = clf.predict_joint_log_proba(X, method=method)
    assert "posterior_predictive" in joint
    return joint


def assert_same(a, b, X, tol=1e-9):
    """Two classifiers that learnt the same from the same rows, in whatever order."""
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.n_rows_seen_ == b.n_rows_seen_
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=tol)
    mine, theirs = defined(a, X), defined(b, X)
    assert mine.keys() == theirs.keys()
    for method in mine:
        np.testing.assert_allclose(mine[method], theirs[method], rtol=tol, atol=tol)


def densities_by_refits(clf, X, codes, new):
    """(n,) of a row's own class and of all, without the row; (N, C) and (N,) of new rows."""
    prior = clf.prior_

    def densities(keep, rows):
        posterior = prior.update(prior.stats(X[keep], codes[keep], len(clf.classes_)))
        log_x = posterior.family.log_predictive(rows)
        return log_x, np.logaddexp.reduce(log_x + np.log(posterior.mean_weights()), axis=1)

    of_class, of_all = np.empty(len(codes)), np.empty(len(codes))
    for i, c in enumerate(codes):
        log_x, overall = densities(np.arange(len(codes)) != i, X[i : i + 1])
        of_class[i], of_all[i] = log_x[0, c], overall[0]
    return of_class, of_all, *densities(np.full(len(codes), True), new)
