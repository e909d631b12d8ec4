"""forget: what is left is the fit of the other rows."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.families.errors import NoClosedFormError
from tests.drawn import drawn

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


def refused(clf, X, y, match, **options):
    before = clf.log_evidence_, clf.classes_.tolist(), clf.predict_proba(CASE_X[type(clf)])
    with pytest.raises(ValueError, match=match):
        clf.forget(X, y, **options)
    assert clf.log_evidence_ == before[0]
    assert clf.classes_.tolist() == before[1]
    np.testing.assert_array_equal(clf.predict_proba(CASE_X[type(clf)]), before[2])


CASE_X = {bg.GaussianNB: REAL, bg.CategoricalNB: FRAME[["colour", "wet"]], bg.MarkovNB: TEXTS}


def test_rows_that_were_never_learned_are_refused():
    clf = bg.GaussianNB().fit(REAL, Y)
    refused(clf, REAL[:1], ["z"], r"labels that are not in classes: \['z'\]; the classes are")
    refused(clf, np.tile(REAL, (2, 1)), np.tile(Y, 2), "this would leave none")
    refused(clf, np.tile(REAL[:40], (9, 1)), np.tile(["a"], 360), "would become negative")
    refused(clf, REAL[:2] + 1e5, ["a", "b"], "'scatter' would become negative")
    refused(clf, REAL, Y, "there are 120 .by weight., and this would leave none")
    refused(clf, REAL[:, :2], Y, "X has 2 features, but GaussianNB is expecting 3")
    X = FRAME[["colour", "wet"]]
    clf = bg.CategoricalNB().fit(X, Y)
    refused(clf, X[:1].assign(colour="green"), Y[:1], "categories or tokens that were never")
    refused(clf, X[:1], ["d"], r"labels that are not in classes: \['d'\]")
    refused(
        clf, pd.concat([X[:1]] * 99), Y[:1].repeat(99), "'count' would become negative|negative"
    )
    clf = bg.MarkovNB().fit(TEXTS, Y)
    refused(clf, ["xyz"], ["a"], "categories or tokens that were never learned")
    refused(clf, ["ab" * 300], ["a"], "would become negative")


def test_rows_of_missing_cells_count_too():
    missing_cells = np.full((50, 3), np.nan)
    clf = bg.GaussianNB().fit(REAL, Y)
    refused(clf, missing_cells, ["a"] * 50, "'count' would become negative")


def test_neither_unfitted_nor_of_draws():
    with pytest.raises(ValueError, match="not fitted yet"):
        bg.GaussianNB().forget(REAL, Y)
    clf = drawn(bg.GaussianNB(), REAL, Y)
    with pytest.raises(NoClosedFormError, match="forget works on sufficient statistics"):
        clf.forget(REAL[:1], Y[:1])
