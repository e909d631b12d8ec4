"""What extremes lead to: a right result, or an error of a class and with a message.

Each entry of `TABLE` is tried by `fit` and `predict_proba`; a result is right if its rows are
probabilities and the evidence is finite. Warnings are errors, NumPy's among them.
"""

import re
import warnings
from typing import Any, NamedTuple

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
    cells = of.copy()
    cells[0, 0] = value
    return cells


def weights(value):
    return np.where(np.arange(N) == 0, value, 1.0)


REAL = (bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant())
COUNT = (bg.PoissonNB(), bg.MultinomialNB())
ALL = [*((clf, X) for clf in REAL), *((clf, C) for clf in COUNT), (bg.BernoulliNB(), B)]
ALL += [(bg.CategoricalNB(), B), (bg.MixedNB(), X), (bg.TreeAugmentedNB(), B)]


class Entry(NamedTuple):
    """What is tried, and the class and message of its error: FINE without one."""

    name: str
    clf: Any
    X: Any
    outcome: tuple[Any, str] | None = FINE
    y: Any = Y
    weight: Any = None
    new: Any = None


def of_real_cells():
    tied, diagonal = bg.GaussianNB(variance="tied"), bg.LinearDiscriminant(covariance="diagonal")
    for clf in (*REAL, tied, diagonal):
        for value in (1e100, 5e-324):
            yield Entry(f"cell {value}", clf, cell(value))
        for value in (1.1e151, -1e155, 1.7e308):
            yield Entry(f"cell {value}", clf, cell(value), LARGE)
        for scale, outcome in ((1e-100, FINE), (1e100, FINE), (1e155, LARGE), (1e-160, SMALL)):
            yield Entry(f"scale {scale}", clf, X * scale, outcome)
        yield Entry("infinite", clf, cell(np.inf), (ValueError, "holds inf in row"))
        far = type(clf)(mu0=-1e155)
        yield Entry("mu0 -1e155", far, X, (ValueError, "mu0 must be <= 1e[+]152 in size"))
    for clf, outcome in zip(REAL, (FINE, LARGE, LARGE), strict=True):
        yield Entry("cell to predict", clf, X, outcome, new=cell(1e200))
    for clf in COUNT:
        yield Entry("count 1e15", clf, cell(1e15, C))
        yield Entry("count 1e100", clf, cell(1e100, C), LARGE)
        yield Entry("count to predict", clf, C, LARGE, new=cell(1.7e308, C))
    far = F.assign(a=np.where(F.index == 3, 1e200, F["a"]))
    beyond = (ValueError, "column 'a' holds 1e[+]200 in row 3, beyond")
    yield Entry("column", bg.MixedNB(), far, beyond)


def of_weights_and_priors():
    for clf, rows in ALL:
        for value in (0.0, 0.5, 1e15):
            yield Entry(f"weight {value:g}", clf, rows, weight=weights(value))
        for value, outcome in {
            1e17: WEIGHT,
            1.7e308: WEIGHT,
            1e-310: (ValueError, "sample_weight holds 1e-310 in row 0, below"),
            -1.0: (ValueError, "[Nn]egative"),
        }.items():
            yield Entry(f"weight {value:g}", clf, rows, outcome, weight=weights(value))
        none = (ValueError, "0 for every row|non-zero")
        yield Entry("weights 0", clf, rows, none, weight=np.zeros(N))
        small, large = (type(clf)(class_alpha=a) for a in (1e-320, 1e308))
        yield Entry("class_alpha 1e-320", small, rows, (ValueError, "must be >= 2.225e-308"))
        yield Entry("class_alpha 1e308", large, rows, (ValueError, "must be <= 1e[+]152 in size"))
    heavy = bg.TreeAugmentedNB(class_alpha=2.0**53)  # the first row leaves nothing of the second
    yield Entry("weight 2**53", heavy, X[:2], y=[1, 1], weight=[2.0**53, 0.5])
    yield Entry("beta 1e-320", bg.BernoulliNB(beta=1e-320), B, (ValueError, "beta must be"))


def of_containers_and_sizes():
    for clf, rows in ALL:
        dates = rows.astype("datetime64[D]")
        yield Entry("cells that are dates", clf, dates, (TypeError, r"holds datetime64"))
        yield Entry("one row", clf, rows[:1], y=Y[:1])
        yield Entry("constant", clf, np.ones((N, 3)))
        yield Entry("Arrow", clf, pa.table({name: rows[:, j] for j, name in enumerate("abc")}))
    missing = np.full((N, 3), np.nan)
    yield Entry("all missing", bg.GaussianNB(), missing)
    yield Entry("all missing", bg.CategoricalNB(), missing)
    yield Entry("nullable", bg.GaussianNB(), F.astype("Float64"))
    for kind in ("csr", "csc", "lil", "dok", "bsr", "dia"):
        yield Entry(kind, bg.MultinomialNB(), getattr(sparse, f"{kind}_array")(C))
    yield Entry("matrix", bg.MultinomialNB(), sparse.csr_matrix(C))
    yield Entry("sparse", bg.GaussianNB(), sparse.csr_array(X), (TypeError, "dense"))
    structured = np.zeros(N, dtype=[("a", float), ("b", float)])
    yield Entry("structured", bg.GaussianNB(), structured, (ValueError, "structured array.: give"))
    hidden = np.ma.masked_array(C, C > 4)
    yield Entry("masked", bg.MultinomialNB(), hidden, (ValueError, "NaN|missing"))
    text = pd.DataFrame(B.astype(str), columns=[*"abc"]).astype("category")
    for clf in (bg.BernoulliNB(), bg.GaussianNB(), bg.PoissonNB()):
        yield Entry("numbers as categories of text", clf, text)
    unseen, none = bg.CategoricalNB(unseen="raise"), (ValueError, "not among its categories")
    yield Entry("unseen category", unseen, B, none, new=cell(7, B))
    large, mixed = np.where(Y, 1e308, -1.0), np.array([1, "a"] * 10, dtype=object)
    yield Entry("labels 1e308", bg.BernoulliNB(), B, (ValueError, "continuous"), y=large)
    yield Entry("labels mixed", bg.LogLinearPool(), B, (ValueError, "Unknown label"), y=mixed)
    many, labels = rng.normal(size=(20_000, 1)), np.arange(20_000) % 10_000
    yield Entry("1e4 classes", bg.GaussianNB(), many, y=labels, new=X[:2, :1])
    yield Entry("1e6 columns", bg.BernoulliNB(), np.tile(B[:4], (1, 333_334)), y=Y[:4])
    limit = (ValueError, r"need .* counts, .* GB; the limit is")
    yield Entry("n_bins 1e6", bg.TreeAugmentedNB(n_bins=10**6), X, limit)
    limit = (ValueError, "(covariances|pairs) of 50000 columns need")
    for clf in (*REAL[1:], bg.TreeAugmentedNB()):
        yield Entry("5e4 columns", clf, np.zeros((4, 50_000)), limit, y=Y[:4])


TABLE = [*of_real_cells(), *of_weights_and_priors(), *of_containers_and_sizes()]


def outcome_of(entry):
    """Probabilities, or the error."""
    clf, new = entry.clf, entry.X if entry.new is None else entry.new
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", bg.UnknownCategoryWarning)
        warnings.filterwarnings("ignore", "all labels are|column .* is (above|a model)")
        try:
            p = clf.fit(entry.X, entry.y, sample_weight=entry.weight).predict_proba(new)
        except (ValueError, TypeError) as error:
            return error
        assert np.isfinite(clf.log_evidence_)
    return p


@pytest.mark.parametrize("entry", TABLE, ids=[f"{one.name}-{one.clf}" for one in TABLE])
def test_extremes(entry):
    outcome = outcome_of(entry)
    if entry.outcome is not None:
        assert isinstance(outcome, entry.outcome[0])
        assert re.search(entry.outcome[1], str(outcome))
        return
    if isinstance(outcome, Exception):
        raise outcome
    assert ((outcome >= 0) & (outcome <= 1)).all()
    np.testing.assert_allclose(outcome.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("members", [None, [bg.TreeAugmentedNB(prior="default")]])
@pytest.mark.usefixtures("few_exponents")
@pytest.mark.filterwarnings("ignore::bayesgen.encoding.suspects.ColumnWarning")
def test_beside_a_row_that_is_a_wall_a_pool_has_probabilities(members):
    pool = bg.LogLinearPool() if members is None else bg.LogLinearPool(members)
    rows = X[:5] if members is None else C[:5]
    p = pool.fit(rows, Y[:5], sample_weight=[1.0, 1e15, 1.0, 1.0, 1.0]).predict_proba(rows)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_beside_pseudo_counts_of_1e15_the_mode_has_probabilities():
    p = bg.BernoulliNB(alpha=9e15).fit(B[:5], Y[:5]).predict_proba(B[:5], method="map")
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_many_features_do_not_underflow():
    bits = np.random.default_rng(0).random((20, 100_000)) < 0.5
    clf = bg.BernoulliNB().fit(bits, Y)
    assert clf.predict_joint_log_proba(bits).max() < -10_000
    np.testing.assert_allclose(clf.predict_proba(bits).sum(axis=1), 1, rtol=1e-14)
