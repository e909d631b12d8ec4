"""What every public function says of any rows: drawn by hypothesis, for every closed form.

The same whatever the order of the rows of the fit and of those asked for, whatever the labels are
called, asked again, and of a model that was copied; neither rows nor model change by being asked.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given

import bayesgen as bg
from tests.estimators.test_properties import ALL, CLOSE, FEW, data

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
    out = {}
    for name, ask in (BY_CLASS | BY_ROW | OF_THE_MODEL).items():
        try:
            out[name] = np.asarray(ask(clf, X, y), float)
        except bg.UndefinedEstimateError:  # averages over structures have no posterior mean
            assert name in ("posterior means", "information")
    return out


def same(found, expected, errors, rows=slice(None), classes=slice(None)):
    """Each array, with its rows and classes in the order of the other."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name not in OF_THE_MODEL:
            value = value[rows]
        if name in BY_CLASS:
            value = value[:, classes]
        close = {"rtol": 0, "atol": 1e-6 + 7 * errors[name]} if name in errors else CLOSE
        np.testing.assert_allclose(found[name], value, **close, err_msg=name)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
@pytest.mark.slow
@pytest.mark.parametrize("case", ALL)
def test_every_public_function_of_any_rows(case):
    kind, estimator = case

    @FEW
    @given(data(kind))
    def law(drawn):
        X, y, order = drawn
        before = X.copy(), y.copy()
        clf = estimator().fit(X, y)
        state = pickle.dumps(clf)
        whole = said(clf, X, y)
        errors = {name: float(error(clf, X)) for name, error in ERROR.items()}
        same(said(clf, X[order], y[order]), whole, errors, rows=order)
        same(said(estimator().fit(X[order], y[order]), X, y), whole, errors)
        renamed = said(estimator().fit(X, -y), X, -y)
        same(renamed, whole, errors, classes=slice(None, None, -1))
        for other in (clf, pickle.loads(state)):
            for name, again in said(other, X, y).items():
                np.testing.assert_array_equal(again, whole[name], err_msg=name)
        p = np.exp(whole["log probabilities"])
        assert np.abs(p.sum(axis=1) - 1).max() <= 1e-12
        assert (whole["interval"][..., 0] <= whole["interval"][..., 1]).all()
        for name in ("typicality", "typicality of any class", "interval"):
            assert (whole[name] >= 0).all(), name
            assert (whole[name] <= 1).all(), name
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(y, before[1])

    law()
