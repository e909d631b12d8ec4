"""The pool of texts against tf-idf with linear classifiers, and what each of its members brings.

    python -m tests.benchmarks.language_models

Log loss of texts that were not fitted, one split of each set. Docstrings are those of the packages
of this environment, and the class is the package. Members: leave-one-out log loss of the pool
without each of its members, over that of the pool, on the training rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import bayesgen as bg
from bayesgen.posterior.pooled import Scored
from tests.benchmarks import run, scoring, sets

POOL = "LogLinearPool()"


def texts(args: run.Arguments) -> Iterator[tuple[sets.OpenSet, list[int], int]]:
    """Yield sets, training texts of each class, and test texts of each; of messages, of all."""
    yield sets.docstrings()._replace(name="docstrings per package"), [100, 36], 60
    yield sets.addresses()._replace(name="addresses per president"), [33], 17
    if messages := sets.load(args.data).get("sms"):
        yield messages._replace(name="messages"), [1500, 100], 1500


def split(sizes: list[int], n_test: int, y: np.ndarray) -> Iterator[sets.Split]:
    """Yield one split of each size."""
    for n in sizes:
        rng = np.random.default_rng(0)
        of_all = n_test > 1000
        groups = [np.ones(len(y), bool)] if of_all else [y == c for c in np.unique(y)]
        orders = [rng.permutation(np.flatnonzero(group)) for group in groups]
        train = np.concatenate([order[:n] for order in orders])
        yield str(n), 0, train, np.concatenate([order[n : n + n_test] for order in orders])


def models(s: sets.OpenSet, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return {name: unfitted classifier of texts}."""
    linear = LogisticRegression(C=10, max_iter=1000)
    svc = CalibratedClassifierCV(LinearSVC(), cv=3)
    return {
        "tf-idf, logistic regression": make_pipeline(TfidfVectorizer(), linear),
        "tf-idf, calibrated linear SVC": make_pipeline(TfidfVectorizer(), svc),
        "MarkovNB()": bg.MarkovNB(),
        "LogLinearPool([MarkovNB()])": bg.LogLinearPool([bg.MarkovNB()]),
        POOL: bg.LogLinearPool(),
    }


def without_members(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the leave-one-out log loss of the pool without each member, over that of the pool."""
    posterior = bg.LogLinearPool().fit(X, y).fitted_.posterior
    evidence, codes, weight, _ = posterior.scored

    def loss(members: np.ndarray) -> float:
        scored = Scored(replace(evidence, scores=evidence.scores[members]), codes, weight)
        exponents = posterior.sample(*scored)
        log_p = exponents.without_each_row(*scored, posterior.sample)[0]
        return -log_softmax(log_p, axis=1)[np.arange(len(codes)), codes].mean()

    every = np.arange(len(posterior.members))
    whole, members = loss(every), zip(every, posterior.members, strict=True)
    return {m.name: round(loss(np.delete(every, k)) / whole, 4) for k, m in members}


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure models, then members."""
    for s, sizes, n_test in texts(args):
        scoring.losses(record, [s], partial(split, sizes, n_test), models)
        for size, _, train, _ in split(sizes, n_test, s.y):
            call = partial(without_members, s.X[train], s.y[train])
            record.measure(f"{s.name}|{size}|members", call)


def losses(record: run.Record) -> str:
    """Return a line for each split."""
    results = scoring.frame(record)
    body = []
    for (name, size), of in results.groupby(["set", "size"], sort=False):
        of = of.droplevel(["set", "size", "seed"])
        seconds = f"{of['seconds'].get(POOL, np.nan):.0f} s"
        body.append([f"{name}, {size}", *(f"{loss:.3f}" for loss in of["loss"]), seconds])
    names = [*dict.fromkeys(results.index.get_level_values("model"))]
    return run.markdown(["texts", *names, "fit and prediction of the pool"], body)


def members(record: run.Record) -> str:
    """Return a line for each training set."""
    ratios = record.frame("set size what")
    body = [
        [f"{name}, {size}", *(run.short(ratio, 3) for ratio in row)]
        for (name, size, _), *row in ratios.itertuples()
    ]
    return run.markdown(["texts", *ratios.columns], body)


TABLES = {"texts": losses, "members": members}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
