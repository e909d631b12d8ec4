"""What extremes lead to: a right result, or an error of a class and with a message.

Each entry of `TABLE` is tried by `fit` and `predict_proba`; a result is right if its rows are
probabilities and the evidence is finite. Warnings are errors, NumPy's among them.
"""

import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import bayesgen as bg

N = 20
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = np.arange(N) % 2
C = rng.poisson(3.0, (N, 3)).astype(float)
B = (C > 2).astype(float)
F = pd.DataFrame(X, columns=["a", "b", "c"])
FINE = None
LARGE = (ValueError, "column 'x0' holds .* in row 0, beyond")
SMALL = (ValueError, "column 'x0' varies by less than 1e-151")
WEIGHT = (ValueError, "sample_weight holds .* in row 0, beyond")


def cell(value, of=X):
    out = of.copy()
    out[0, 0] = value
    return out


def weights(value):
    return np.where(np.arange(N) == 0, value, 1.0)


REAL = (bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant())
COUNT = (bg.PoissonNB(), bg.MultinomialNB())
ALL = [*((clf, X) for clf in REAL), *((clf, C) for clf in COUNT), (bg.BernoulliNB(), B)]
ALL += [(bg.CategoricalNB(), B), (bg.MixedNB(), X), (bg.TreeAugmentedNB(), B)]


def entries():
    """(name, classifier, X, y, weight, rows to predict, outcome)."""
    tied, diagonal = bg.GaussianNB(variance="tied"), bg.LinearDiscriminant(covariance="diagonal")
    for clf in (*REAL, tied, diagonal):
        for value in (1e100, 5e-324):
            yield f"cell {value}", clf, cell(value), Y, None, None, FINE
        for value in (1.1e151, -1e155, 1.7e308):
            yield f"cell {value}", clf, cell(value), Y, None, None, LARGE
        for scale, outcome in ((1e-100, FINE), (1e100, FINE), (1e155, LARGE), (1e-160, SMALL)):
            yield f"scale {scale}", clf, X * scale, Y, None, None, outcome
        yield "infinite", clf, cell(np.inf), Y, None, None, (ValueError, "holds inf in row")
        far = type(clf)(mu0=-1e155)
        yield "mu0 -1e155", far, X, Y, None, None, (ValueError, "mu0 must be at most 1e[+]152")
    for clf, outcome in zip(REAL, (FINE, LARGE, LARGE), strict=True):
        yield "cell to predict", clf, X, Y, None, cell(1e200), outcome
    for clf in COUNT:
        yield "count 1e15", clf, cell(1e15, C), Y, None, None, FINE
        yield "count 1e100", clf, cell(1e100, C), Y, None, None, LARGE
        yield "count to predict", clf, C, Y, None, cell(1.7e308, C), LARGE
    beyond = (ValueError, "column 'a' holds 1e[+]200 in row 3, beyond")
    far = F.assign(a=np.where(F.index == 3, 1e200, F["a"]))
    yield "column", bg.MixedNB(), far, Y, None, None, beyond
    for clf, rows in ALL:
        dates = rows.astype("datetime64[D]")
        yield "cells that are dates", clf, dates, Y, None, None, (TypeError, r"holds datetime64")
        for value in (0.0, 0.5, 1e15):
            yield f"weight {value:g}", clf, rows, Y, weights(value), None, FINE
        for value in (1e17, 1.7e308):
            yield f"weight {value:g}", clf, rows, Y, weights(value), None, WEIGHT
        small = (ValueError, "sample_weight holds 1e-310 in row 0, below")
        yield "weight 1e-310", clf, rows, Y, weights(1e-310), None, small
        yield "weight -1", clf, rows, Y, weights(-1.0), None, (ValueError, "[Nn]egative")
        yield "weights 0", clf, rows, Y, np.zeros(N), None, (ValueError, "0 for every row|non-zero")
        small = type(clf)(class_alpha=1e-320)
        yield (
            "class_alpha 1e-320",
            small,
            rows,
            Y,
            None,
            None,
            (ValueError, "must be >= 2.225e-308"),
        )
        large, most = type(clf)(class_alpha=1e308), (ValueError, "must be at most 1e[+]152")
        yield "class_alpha 1e308", large, rows, Y, None, None, most
        yield "one row", clf, rows[:1], Y[:1], None, None, FINE
        yield "constant", clf, np.ones((N, 3)), Y, None, None, FINE
        table = pa.table({name: rows[:, j] for j, name in enumerate("abc")})
        yield "Arrow", clf, table, Y, None, None, FINE
    many, labels = rng.normal(size=(20_000, 1)), np.arange(20_000) % 10_000
    yield "1e4 classes", bg.GaussianNB(), many, labels, None, X[:2, :1], FINE
    missing = np.full((N, 3), np.nan)
    yield "all missing", bg.GaussianNB(), missing, Y, None, None, FINE
    yield "all missing", bg.CategoricalNB(), missing, Y, None, None, FINE
    yield "nullable", bg.GaussianNB(), F.astype("Float64"), Y, None, None, FINE
    for kind in ("csr", "csc", "lil", "dok", "bsr", "dia"):
        form = getattr(sparse, f"{kind}_array")(C)
        yield kind, bg.MultinomialNB(), form, Y, None, None, FINE
    yield "matrix", bg.MultinomialNB(), sparse.csr_matrix(C), Y, None, None, FINE
    yield "sparse", bg.GaussianNB(), sparse.csr_array(X), Y, None, None, (TypeError, "dense")
    structured = np.zeros(N, dtype=[("a", float), ("b", float)])
    kept = (ValueError, "structured array.: give")
    yield "structured", bg.GaussianNB(), structured, Y, None, None, kept
    heavy = bg.TreeAugmentedNB(class_alpha=2.0**53)  # the first row leaves nothing of the second
    yield "weight 2**53", heavy, X[:2], [1, 1], [2.0**53, 0.5], None, FINE
    yield "beta 1e-320", bg.BernoulliNB(beta=1e-320), B, Y, None, None, (ValueError, "beta must be")
    hidden = np.ma.masked_array(C, C > 4)
    yield "masked", bg.MultinomialNB(), hidden, Y, None, None, (ValueError, "NaN|missing")
    yield "1e6 columns", bg.BernoulliNB(), np.tile(B[:4], (1, 333_334)), Y[:4], None, None, FINE
    text = pd.DataFrame(B.astype(str), columns=[*"abc"]).astype("category")
    for clf in (bg.BernoulliNB(), bg.GaussianNB(), bg.PoissonNB()):
        yield "numbers as categories of text", clf, text, Y, None, None, FINE
    large = np.where(Y, 1e308, -1.0)
    yield "labels 1e308", bg.BernoulliNB(), B, large, None, None, (ValueError, "continuous")
    mixed = np.array([1, "a"] * 10, dtype=object)
    yield "labels mixed", bg.LogLinearPool(), B, mixed, None, None, (ValueError, "Unknown label")
    limit = (ValueError, r"need .* counts, .* GB; the limit is")
    yield "n_bins 1e6", bg.TreeAugmentedNB(n_bins=10**6), X, Y, None, None, limit
    wide, limit = np.zeros((4, 50_000)), (ValueError, "(covariances|pairs) of 50000 columns need")
    for clf in (*REAL[1:], bg.TreeAugmentedNB()):
        yield "5e4 columns", clf, wide, Y[:4], None, None, limit
    unseen, none = bg.CategoricalNB(unseen="raise"), (ValueError, "not among its categories")
    yield "unseen category", unseen, B, Y, None, cell(7, B), none


TABLE = list(entries())


def outcome_of(clf, rows, y, weight, new):
    """Probabilities, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", bg.UnknownCategoryWarning)
        warnings.filterwarnings("ignore", "all labels are|column .* is (above|a model)")
        try:
            clf.fit(rows, y, sample_weight=weight)
            p = clf.predict_proba(rows if new is None else new)
        except (ValueError, TypeError) as error:
            return error
        assert np.isfinite(clf.log_evidence_)
    return p


@pytest.mark.parametrize("entry", TABLE, ids=[f"{name}-{clf}" for name, clf, *_ in TABLE])
def test_extremes(entry):
    _, *case, expected = entry
    outcome = outcome_of(*case)
    if expected is not None:
        assert isinstance(outcome, expected[0])
        assert re.search(expected[1], str(outcome))
        return
    if isinstance(outcome, Exception):
        raise outcome
    assert ((outcome >= 0) & (outcome <= 1)).all()
    np.testing.assert_allclose(outcome.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("clf", "rows", "weight", "method"),
    [
        (bg.LogLinearPool(), X[:5], [1.0, 1e15, 1.0, 1.0, 1.0], None),  # one row is a wall
        (
            bg.LogLinearPool([bg.TreeAugmentedNB(prior="default")]),
            C[:5],
            [1.0, 1e15, 1.0, 1.0, 1.0],
            None,
        ),
        (bg.BernoulliNB(alpha=9e15), B[:5], None, "map"),
    ],
    ids=["weight of a row", "weight of codes", "pseudo-counts"],
)
@pytest.mark.usefixtures("few_exponents")
@pytest.mark.filterwarnings("ignore::bayesgen.encoding.suspects.ColumnWarning")
def test_beside_weights_and_priors_of_1e15_there_are_probabilities(clf, rows, weight, method):
    clf.fit(rows, Y[:5], sample_weight=weight)
    p = clf.predict_proba(rows) if method is None else clf.predict_proba(rows, method=method)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("method", ["score_samples", "typicality", "predict_set"])
def test_a_cell_without_a_density_is_refused_by_all_that_reads_densities(method):
    fitted = bg.LinearDiscriminant().fit(X[:, :2], Y)
    with pytest.raises(ValueError, match=r"column 'x0' holds 1e\+200 in row 1, beyond"):
        getattr(fitted, method)([[0.0, 0.0], [1e200, 0.0]])


def test_many_features_do_not_underflow():
    bits = np.random.default_rng(0).random((20, 100_000)) < 0.5
    clf = bg.BernoulliNB().fit(bits, Y)
    assert clf.predict_joint_log_proba(bits).max() < -10_000
    np.testing.assert_allclose(clf.predict_proba(bits).sum(axis=1), 1, rtol=1e-14)
