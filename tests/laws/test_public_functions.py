"""Every public function of a classifier says the same of rows in any order, and after a file."""

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from tests.laws.test_classifiers import CASES, CODES

N = 12
Y = CODES[:N]


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
        close = (
            {"rtol": 0, "atol": 1e-6 + 7 * errors[name]}
            if name in errors
            else {"rtol": 1e-7, "atol": 1e-9}
        )
        np.testing.assert_allclose(answers[name], value, **close, err_msg=name)


@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["GaussianNB", "BernoulliNB", "PoissonNB", "MixedNB"])
def test_every_public_function_of_rows_in_any_order(name, tmp_path):
    make, X = CASES[name][0], take(CASES[name][1], np.arange(N))
    order = np.random.default_rng(1).permutation(N)
    X_other, y_other = take(X, order), Y[order]
    clf = make().fit(X, Y)
    state = pickle.dumps(clf)
    clf.save(tmp_path / "m.nc")
    whole = said(clf, X, Y)
    errors = {name: float(error(clf, X)) for name, error in ERROR.items()}
    same(said(clf, X_other, y_other), whole, errors, rows=order)
    same(said(make().fit(X_other, y_other), X, Y), whole, errors)
    same(said(make().fit(X, -Y), X, -Y), whole, errors, classes=slice(None, None, -1))
    for other in (clf, pickle.loads(state), copy.deepcopy(clf), bg.load(tmp_path / "m.nc")):
        for name, again in said(other, X, Y).items():
            np.testing.assert_array_equal(again, whole[name], err_msg=name)
    assert (whole["interval"][..., 0] <= whole["interval"][..., 1]).all()
    for name in ("typicality", "typicality of any class", "interval"):
        assert (whole[name] >= 0).all(), name
        assert (whole[name] <= 1).all(), name


def digests():
    """{case: SHA-256 of what an estimator says of the same rows, draws and intervals included}."""
    hashes = {}
    pool = bg.LogLinearPool, CASES["MixedNB"][1]
    for name in ("CategoricalNB", "MixedNB", "MarkovNB", "GaussianNB", "pool"):
        make, X = (CASES | {"pool": pool})[name]
        X = take(X, np.arange(N))
        clf, two = make().fit(X, Y), take(X, [0, 1])
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
