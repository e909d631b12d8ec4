"""What no input may lead to: the oracle of all kinds of cases."""

import linecache
import re
import traceback
from contextlib import contextmanager, suppress
from copy import deepcopy

import numpy as np
from sklearn.base import clone

REFUSALS = (ValueError, TypeError, OSError, NotImplementedError)


class DefectError(Exception):
    """What no input may lead to."""


class RefusedError(Exception):
    """A case that ended with one clear error."""


@contextmanager
def refusal():
    """Of a block that may refuse its input: one error of a user's class, readable and short."""
    try:
        yield
    except REFUSALS as error:
        text = str(error)
        if not text or len(text) > 2000:
            raise DefectError(f"{type(error).__name__} of {len(text)} characters") from error
        if by_accident(error):
            raise DefectError(f"{type(error).__name__} by accident: {text}") from error
        raise RefusedError(f"{type(error).__name__}: {text}") from error


def by_accident(error):
    """Whether nobody raised an error on purpose: NumPy or Python did, on what they were given.

    An error is raised on purpose where its last frame is a ``raise`` of this package, or of a
    package that reads tables and arrays for it.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    if "/bayesgen/" in last.filename:
        return "raise" not in linecache.getline(last.filename, last.lineno)
    return not re.search("sklearn|narwhals|pandas|polars|pyarrow|h5py|xarray", last.filename)


def check_probabilities(p, n_classes):
    """Rows of probabilities: finite, in [0, 1], of sum 1."""
    p = np.asarray(p)
    if p.shape[1] != n_classes or not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        raise DefectError(f"these are no probabilities: {p[:3]}")
    if np.abs(p.sum(axis=1) - 1).max(initial=0.0) > 1e-12:
        raise DefectError(f"probabilities add up to {p.sum(axis=1)[:5]}")


def check_evidence(clf):
    """The log evidence is a number where the model has one."""
    with suppress(NotImplementedError):
        if "stats_" in clf.__dict__ and not np.isfinite(clf.log_evidence_):
            raise DefectError(f"the log evidence is {clf.log_evidence_}")


def check_numbers(data, low=-np.inf, high=np.inf, slack=1e-9):
    """No NaN in a Dataset, an array or a table of them, and nothing beyond the bounds."""
    if hasattr(data, "to_dataset"):  # a group of a tree
        data = data.to_dataset()
    arrays = data.data_vars if hasattr(data, "data_vars") else {"it": data}
    for name, values in arrays.items():
        values = np.asarray(values)
        if values.dtype.kind != "f":
            continue
        if np.isnan(values).any():
            raise DefectError(f"{name} holds NaN")
        if (values < low - slack).any() or (values > high + slack).any():
            raise DefectError(f"{name} is not between {low} and {high}: {values.ravel()[:5]}")


def _posterior(clf, X, y, rng):
    groups = clf.predict_posterior(X[:2], draws=7)
    name = "posterior_predictive" if "posterior_predictive" in groups else "predictions"
    check_numbers(groups[name]["class_probability"].values, 0, 1)


def _partial_fit(clf, X, y, rng):
    again = clone(clf).partial_fit(X, y, classes=clf.classes_).partial_fit(X, y)
    check_probabilities(again.predict_proba(X), len(clf.classes_))
    with suppress(NotImplementedError):
        again.forget(X, y)
        check_probabilities(again.predict_proba(X), len(clf.classes_))


def _merge(clf, X, y, rng):
    both = deepcopy(clf).merge(clf)
    check_probabilities(both.predict_proba(X), len(clf.classes_))
    check_evidence(both)


def _methods(clf, X, y, rng):
    method = str(rng.choice(["mle", "map", "posterior_mean"]))
    check_numbers(clf.estimates(method))  # first: pools have neither
    check_probabilities(clf.predict_proba(X, method=method), len(clf.classes_))


def _scores(clf, X, y, rng):
    check_numbers(clf.score_samples(X))
    clf.decision_function(X)
    clf.score(X, y)


def _summary(clf, X, y, rng):
    text = str(clf.summary()) + clf.summary()._repr_html_()
    if "\x1b" in text:
        raise DefectError("the summary steers the terminal")


def _draws(clf, X, y, rng):
    clf.draw_posterior(draws=3, chains=1)
    clf.posterior_  # noqa: B018 - it is computed when asked for


def _prior(clf, X, y, rng):
    prior = rng.dirichlet(np.ones(len(clf.classes_)))
    check_probabilities(clf.predict_proba(X, class_prior=prior), len(clf.classes_))


QUESTIONS = (
    *(_posterior, _partial_fit, _merge, _methods, _scores, _summary, _draws, _prior),
    lambda clf, X, y, rng: check_numbers(
        clf.predict_interval(X[:2]).drop_vars("log_odds", errors="ignore"), 0, 1
    ),
    lambda clf, X, y, rng: check_numbers(clf.predict_uncertainty(X), 0),
    lambda clf, X, y, rng: check_numbers(clf.predict_set(X, training=(X, y))),
    lambda clf, X, y, rng: check_numbers(clf.typicality(X, training=(X, y)), 0, 1),
    lambda clf, X, y, rng: check_numbers(np.float64(clf.loo(X, y).elpd)),
    lambda clf, X, y, rng: clf.explain(X[:2]),
    lambda clf, X, y, rng: clf.simulate(2, random_state=0),
)


@contextmanager
def _answer(clf):
    """A right answer, a refusal as of `refusal`, or a method that the class does not have."""
    try:
        with refusal():
            yield
    except RefusedError:
        pass
    except AttributeError as error:
        if type(error.obj) is not type(clf) or hasattr(clf, error.name):
            raise


def ask(clf, X, y, rng, folder=None):
    """One or two further questions, and now and then a report."""
    repr(clf)
    X = X.tocsr() if hasattr(X, "tocsr") else X  # the first rows are asked for below
    for k in rng.choice(len(QUESTIONS), 2, replace=False):
        with _answer(clf):
            QUESTIONS[k](clf, X, y, rng)
    if folder is not None and rng.random() < 0.01:
        import bayesgen as bg

        with _answer(clf):
            bg.report(clf, X, y, folder / "report.json", max_rows=5)
