"""Rows of a class that was never seen, against IsolationForest; sets of labels; rows drawn alike.

    python -m tests.benchmarks.typicality    # a few minutes

Held-out classes: the classifier and the forest learn two thirds of the rows of all classes but one;
the others, and all rows of that one, are told apart by one minus ``clf.typicality`` and by the
forest's score. AUROC, a mean over the classes.

Prediction sets: two thirds of the rows to learn from, ten splits; coverage of the others and mean
number of labels at coverage .9. The record has the sets of MAPIE too (split conformal), measured
once on the same splits.

Rows drawn alike: two Normal classes in four columns, 80 new rows of the same for each of 25
training sets; shares of the new rows that the pool finds at most so typical.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import bayesgen as bg
from tests.benchmarks import run, sets

CLASSIFIERS = (
    bg.LogLinearPool,
    bg.QuadraticDiscriminant,
    bg.LinearDiscriminant,
    bg.GaussianNB,
)
FOREST = partial(IsolationForest, n_estimators=300, random_state=0)
LIMITS = (0.01, 0.05, 0.1, 0.5, 0.9)
Rows = tuple[np.ndarray, np.ndarray]


def held_out_classes(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> float:
    """Return the AUROC, a mean over classes that are held out."""
    areas = []
    for c in np.unique(y):
        inside = np.flatnonzero(y != c)
        train, others = sets.split(y[inside], 0)
        test = np.concatenate([inside[others], np.flatnonzero(y == c)])
        clf = make().fit(X[inside][train], y[inside][train])
        if isinstance(clf, IsolationForest):
            typical = clf.score_samples(X[test])
        else:
            typical = clf.typicality(X[test])["overall"].values
        areas.append(roc_auc_score(y[test] == c, -typical))
    return round(float(np.mean(areas)), 5)


def label_sets(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return coverage and mean size of prediction sets, means over splits."""
    rows = []
    for train, test in (sets.split(y, seed) for seed in range(10)):
        clf = make().fit(X[train], y[train])
        included = clf.predict_set(X[test], 0.9)["included"].values
        rows.append([included[np.arange(len(test)), y[test]].mean(), included.sum(axis=1).mean()])
    return dict(zip(("coverage", "size"), np.mean(rows, axis=0).round(5).tolist(), strict=True))


def drawn_alike(per_class: int, seed: int) -> list[float]:
    """Return shares of new rows that the pool finds at most so typical."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(2, 4))
    y, codes = np.repeat([0, 1], per_class), rng.integers(2, size=80)
    pool = bg.LogLinearPool().fit(mean[y] + rng.normal(size=(len(y), 4)), y)
    tail = pool.typicality(mean[codes] + rng.normal(size=(80, 4)))["overall"].values
    return (tail[:, None] <= LIMITS).mean(axis=0).tolist()


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure all three."""
    for name in sets.real_sets(args.data):
        rows = sets.numbers(name, args.data)
        for make in (*CLASSIFIERS, FOREST):
            method = getattr(make, "__name__", "IsolationForest")
            record.measure(f"auroc|{name}|{method}", partial(held_out_classes, make, *rows))
        for make in CLASSIFIERS[1:]:
            key = f"sets|{name}|{make.__name__}|predict_set"
            record.measure(key, partial(label_sets, make, *rows))
    for n in (40, 200):
        for seed in range(25):
            record.measure(f"alike|{n}|{seed}", partial(drawn_alike, n, seed))


def table(record: run.Record) -> str:
    """Return the mean AUROC of each method."""
    areas = record.frame("what set method", "area", start="auroc|")["area"].unstack("method")
    names = [make.__name__ for make in CLASSIFIERS]
    means = areas[[*names, "IsolationForest"]].mean()
    head = ["rank", *(f"`{name}`" for name in names), "IsolationForest"]
    return run.markdown(head, [["`typicality`, overall", *(run.short(v, 3) for v in means)]])


def details(record: run.Record) -> str:
    """Return the sets, and the shares of rows drawn alike with standard errors."""
    areas = record.frame("what set method", "area", start="auroc|")["area"].unstack("method")
    ahead = areas["LogLinearPool"] - areas["IsolationForest"]
    text = f"pool ahead of IsolationForest by {ahead.mean():.3f} +- {ahead.sem():.3f}\n"
    of = record.frame("what set classifier method", start="sets|").groupby("method")
    text += of.agg(["min", "max", "mean", "count"]).round(3).T.to_string()
    alike = record.frame("what rows seed", " ".join(map(str, LIMITS)), start="alike|")
    return f"{text}\n{alike.groupby('rows').agg(['mean', 'sem']).round(3).T.to_string()}"


TABLES = {"typicality": table, None: details}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
