"""What holds for every estimator in closed form and any data: drawn by hypothesis.

Answers do not depend on the order of rows or columns, on how rows arrive, on names, types or
containers; input is never changed; and a copy, or a file, is the same model.
"""

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from tests.estimators.cases import CASES, Case, fitted
from tests.selection import rest_is_slow

CLOSE = {"rtol": 1e-7, "atol": 1e-9}
FEW = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
KINDS = {
    "reals": (bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant),
    "counts": (bg.PoissonNB, bg.MultinomialNB),
    "bits": (bg.BernoulliNB, bg.CategoricalNB),
    # nothing that parts of the rows would choose otherwise: bins, strengths, a category of gaps
    "reals of a table": (bg.MixedNB,),
    "bits of a table": (
        bg.MixedNB,
        partial(bg.TreeAugmentedNB, prior="default", missing="refuse"),
    ),
}
ALL = [(kind, estimator) for kind, own in KINDS.items() for estimator in own]


@st.composite
def data(draw, kind):
    """(X, y, permutation of the rows) of 2 to 12 rows of 1 to 3 columns and up to 3 classes."""
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    reals = st.integers(-500, 500).map(lambda k: k / 64)
    cell = {
        "reals": reals,
        "counts": st.integers(0, 30).map(float),
        "bits": st.integers(0, 1).map(float),
        "reals of a table": reals,
        "bits of a table": st.booleans(),
    }[kind]
    X = np.array(draw(st.lists(st.lists(cell, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    y[:2] = 0, 1
    return X, y, np.array(draw(st.permutations(range(n))))


DRAWS = 4000


def percentiles(clf, X):
    """(row, class, bound) of the ends of intervals among draws of the posterior."""
    ends = clf.predict_interval(X)["interval"].transpose("bound", "obs_id", "class").values
    drawn = clf.predict_posterior(X, draws=DRAWS)["predictions"]["class_probability"].values[0]
    below = [(drawn < end).mean(axis=0) / 2 + (drawn <= end).mean(axis=0) / 2 for end in ends]
    return np.stack(below, axis=-1)


BY_CLASS = {  # (row, class, ...)
    "log probabilities": lambda clf, X, y: clf.predict_log_proba(X),
    "joint": lambda clf, X, y: clf.predict_joint_log_proba(X),
    "posterior means": lambda clf, X, y: clf.predict_proba(X, method="posterior_mean"),
    "without the row": lambda clf, X, y: clf.loo_log_joint(X, y),
    "typicality": lambda clf, X, y: clf.typicality(X, training=(X, y))["by_class"],
    "interval": lambda clf, X, y: percentiles(clf, X),
    "average over draws": lambda clf, X, y: clf.predict_uncertainty(X)["mean"],
}
BY_ROW = {
    "density": lambda clf, X, y: clf.score_samples(X),
    "label": lambda clf, X, y: clf.loo(X, y).elpd_i,
    "row and label": lambda clf, X, y: clf.loo(X, y, target="joint").elpd_i,
    "typicality of any class": lambda clf, X, y: clf.typicality(X, training=(X, y))["overall"],
    "wrong label": lambda clf, X, y: bg.label_errors(clf, X, y, form="one flip")["wrong"],
    "margin": lambda clf, X, y: bg.decide(clf, X, 1.0 - np.eye(len(clf.classes_)))["margin"],
    "entropy": lambda clf, X, y: clf.predict_uncertainty(X)["total"],
}
OF_THE_MODEL = {
    "evidence": lambda clf, X, y: clf.log_evidence_,
    "information": lambda clf, X, y: bg.mutual_information(clf),
    "log loss": lambda clf, X, y: bg.compare_predictives(clf, X, y)["log_loss"][0],
}
ERROR = {  # standard errors of what is found by quadrature or draws
    "interval": lambda clf, X: np.hypot(clf.predict_interval(X)["error"].max(), DRAWS**-0.5 / 2),
    "average over draws": lambda clf, X: clf.predict_uncertainty(X)["error"].max(),
    "entropy": lambda clf, X: clf.predict_uncertainty(X)["error"].max(),
}


def said(clf, X, y):
    """{function: array} of what the estimator defines."""
    answers = {}
    for name, ask in (BY_CLASS | BY_ROW | OF_THE_MODEL).items():
        try:
            answers[name] = np.asarray(ask(clf, X, y), float)
        except bg.UndefinedEstimateError:  # averages over structures have no posterior mean
            assert name in ("posterior means", "information")
    return answers


def same(answers, expected, errors, rows=slice(None), classes=slice(None)):
    """Each array, with its rows and classes in the order of the other."""
    assert answers.keys() == expected.keys()
    for name, value in expected.items():
        if name not in OF_THE_MODEL:
            value = value[rows]
        if name in BY_CLASS:
            value = value[:, classes]
        close = {"rtol": 0, "atol": 1e-6 + 7 * errors[name]} if name in errors else CLOSE
        np.testing.assert_allclose(answers[name], value, **close, err_msg=name)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("case", rest_is_slow(ALL, [ALL[0], ALL[4]]))
def test_probabilities_of_any_data(case):
    kind, estimator = case

    @FEW
    @given(data(kind))
    def law(drawn):
        X, y, order = drawn
        before = X.copy(), y.copy()
        clf = estimator().fit(X, y)
        p = clf.predict_proba(X)
        assert np.isfinite(p).all()
        assert (p >= 0).all()
        assert np.abs(p.sum(axis=1) - 1).max() <= 1e-12

        def same(other, columns=slice(None), rows=X):
            np.testing.assert_allclose(other.predict_proba(rows)[:, columns], p, **CLOSE)

        same(estimator().fit(X[order], y[order]))
        twice = np.concatenate([X, X]), np.concatenate([y, y])
        doubled = estimator().fit(*twice).predict_proba(X)
        weighted = estimator().fit(X, y, sample_weight=np.full(len(y), 2.0)).predict_proba(X)
        np.testing.assert_allclose(weighted, doubled, **CLOSE)
        backwards = slice(None, None, -1)
        same(estimator().fit(X[:, backwards], y), rows=X[:, backwards])
        same(estimator().fit(X, -y), columns=backwards)
        parts = estimator().partial_fit(X[:1], y[:1], classes=np.unique(y))
        same(parts.partial_fit(X[1:], y[1:]))
        one_by_one = [clf.predict_proba(X[i : i + 1]) for i in range(len(X))]
        np.testing.assert_allclose(np.concatenate(one_by_one), p, **CLOSE)
        names = [f"c{j}" for j in range(X.shape[1])]
        narrow = X if X.dtype == bool else X.astype(np.float32)
        for other in (narrow, np.asfortranarray(X), pd.DataFrame(X, columns=names)):
            same(estimator().fit(other, y), rows=other)
        np.testing.assert_array_equal(clone(clf).fit(X, y).predict_proba(X), p)
        with ThreadPoolExecutor(2) as pool:
            for at_once in pool.map(clf.predict_proba, [X, X]):
                np.testing.assert_array_equal(at_once, p)
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(y, before[1])

    law()


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
@pytest.mark.slow
@pytest.mark.parametrize("case", [(kind, own[0]) for kind, own in KINDS.items()])
def test_every_public_function_of_any_rows(case, tmp_path_factory):
    kind, estimator = case
    path = tmp_path_factory.mktemp("model") / "m.nc"

    @FEW
    @given(data(kind))
    def law(drawn):
        X, y, order = drawn
        clf = estimator().fit(X, y)
        state = pickle.dumps(clf)
        clf.save(path)
        whole = said(clf, X, y)
        errors = {name: float(error(clf, X)) for name, error in ERROR.items()}
        same(said(clf, X[order], y[order]), whole, errors, rows=order)
        same(said(estimator().fit(X[order], y[order]), X, y), whole, errors)
        renamed = said(estimator().fit(X, -y), X, -y)
        same(renamed, whole, errors, classes=slice(None, None, -1))
        for other in (clf, pickle.loads(state), copy.deepcopy(clf), bg.load(path)):
            for name, again in said(other, X, y).items():
                np.testing.assert_array_equal(again, whole[name], err_msg=name)
        assert (whole["interval"][..., 0] <= whole["interval"][..., 1]).all()
        for name in ("typicality", "typicality of any class", "interval"):
            assert (whole[name] >= 0).all(), name
            assert (whole[name] <= 1).all(), name

    law()


def digests():
    """{case: SHA-256 of what an estimator says of the same rows, draws and intervals included}."""
    hashes = {}
    cases = {name: CASES[name] for name in ("CategoricalNB", "MixedNB", "MarkovNB 1", "GaussianNB")}
    cases["pool"] = Case(bg.LogLinearPool, CASES["MixedNB"].rows)
    for name, case in cases.items():
        clf, X, _ = fitted(case, n=24)
        two = X[:2] if isinstance(X, list) else take(X, [0, 1])
        answers = [clf.predict_interval(two)["interval"], clf.predict_uncertainty(two)["mean"]]
        values = [clf.predict_proba(X), *(answer.values for answer in answers)]
        hashes[name] = hashlib.sha256(b"".join(v.tobytes() for v in values)).hexdigest()
    return hashes


@pytest.mark.slow
def test_another_process_comes_to_the_same_bits():
    """Whatever the hashes of strings are there, by which sets and dicts of names are ordered."""
    code = f"from {__name__} import digests; print(digests())"
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    )
    assert "GaussianNB" in first
    assert first == second
