"""Rows of a class that was never seen, against IsolationForest; sets of labels.

    .venv/bin/python -m tests.benchmarks.typicality             # prints; a few minutes
    .venv/bin/python -m tests.benchmarks.typicality --update    # and keeps the record
    .venv/bin/python -m tests.benchmarks.typicality --alike     # the pool on rows drawn alike

Held-out classes: the classifier and the forest learn two thirds of the rows of all classes but one;
the others, and all rows of that one, are told apart by ``clf.typicality`` (1 - overall, and 1 - the
largest of any class) and by the forest's score. AUROC, a mean over the classes.

Prediction sets: two thirds of the rows to learn from, ten splits; coverage of the others, mean
number of labels, and share of empty sets at coverage .9. The kept record has the sets of MAPIE too
(split conformal, and cross-conformal with 5 folds), measured once on the same splits.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import bayesgen as bg
from tests.benchmarks import tables
from tests.benchmarks.open_sets import numbers, real_sets, split

KEPT = Path(__file__).with_name("typicality.json")
KINDS = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant")
COVERAGE = 0.9
SPLITS = 10


def held_out_classes(X: np.ndarray, y: np.ndarray, seed: int = 0) -> dict[str, list[float]]:
    """Return {score: AUROC with each class held out}."""
    areas: dict[str, list[float]] = {}
    for c in np.unique(y):
        inside = np.flatnonzero(y != c)
        train, others = split(y[inside], seed)
        test = np.concatenate([inside[others], np.flatnonzero(y == c)])
        A, b, Z = X[inside][train], y[inside][train], X[test]
        forest = IsolationForest(n_estimators=300, random_state=seed).fit(A)
        scores = {"IsolationForest": -forest.score_samples(Z)}
        for kind in (*KINDS, "LogLinearPool"):
            table = getattr(bg, kind)().fit(A, b).typicality(Z)
            scores[f"{kind}, overall"] = -table["overall"].values
            scores[f"{kind}, by class"] = -table["by_class"].values.max(axis=1)
        for name, value in scores.items():
            areas.setdefault(name, []).append(float(roc_auc_score(y[test] == c, value)))
    return areas


def drawn_alike(per_class: int, repeats: int = 25) -> None:
    """Print shares of new rows that the pool finds at most so typical, with errors.

    Two Normal classes in four columns, 80 new rows of the same for each of the training sets.
    """
    rng, limits, shares = np.random.default_rng(0), np.array([0.01, 0.05, 0.1, 0.5, 0.9]), []
    for _ in range(repeats):
        mean = rng.normal(size=(2, 4))
        y, codes = np.repeat([0, 1], per_class), rng.integers(2, size=80)
        pool = bg.LogLinearPool().fit(mean[y] + rng.normal(size=(len(y), 4)), y)
        tail = pool.typicality(mean[codes] + rng.normal(size=(80, 4)))["overall"].values
        shares.append((tail[:, None] <= limits).mean(axis=0))
    error = np.std(shares, axis=0, ddof=1) / np.sqrt(repeats)
    print(f"{per_class} rows per class")
    for limit, share, se in zip(limits, np.mean(shares, axis=0), error, strict=True):
        print(f"  at most {limit}: {share:.3f} +- {se:.3f}")


def summary(included: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return coverage, mean size and share of empty ones of sets (N, C) bool."""
    size = included.sum(axis=1)
    hit = included[np.arange(len(y)), y]
    return {"coverage": hit.mean(), "size": size.mean(), "empty": np.mean(size == 0)}


def sets(X: np.ndarray, y: np.ndarray, kind: str) -> dict[str, dict[str, float]]:
    """Return {method: means over splits, and their standard errors}."""
    numbers_of = {}
    for name, by_class in (("predict_set", False), ("predict_set, by class", True)):
        rows = []
        for train, test in (split(y, seed) for seed in range(SPLITS)):
            clf = getattr(bg, kind)().fit(X[train], y[train])
            included = clf.predict_set(X[test], COVERAGE, by_class)["included"].values
            rows.append(list(summary(included, y[test]).values()))
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(SPLITS)
        names = ("coverage", "size", "empty")
        numbers_of[name] = dict(zip(names, mean.tolist(), strict=True)) | {
            f"{name}_se": value for name, value in zip(names, error.tolist(), strict=True)
        }
    return numbers_of


def show(record: dict[str, Any]) -> None:
    """Print both tables."""
    methods = list(next(iter(record["auroc"].values())))
    rows = [[s, *(np.mean(row[m]) for m in methods)] for s, row in record["auroc"].items()]
    rows.append(["mean", *np.mean([row[1:] for row in rows], axis=0)])
    print("\nAUROC of rows of a held-out class, mean over the classes\n")
    lines = [[name, *(f"{value:.3f}" for value in values)] for name, *values in rows]
    print(tables.markdown(("data", *methods), lines, 1))
    print(f"\nPrediction sets at coverage {COVERAGE}: coverage / mean size / share of empty sets\n")
    lines = [
        [name, kind, method, f"{v['coverage']:.3f} / {v['size']:.2f} / {v['empty']:.2f}"]
        for name, kinds in record["sets"].items()
        for kind, of_methods in kinds.items()
        for method, v in of_methods.items()
        if method != "failed"
    ]
    print(tables.markdown(("data", "classifier", "method", "sets"), lines, 3))


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and keep with ``--update``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=real_sets(), metavar="NAME")
    parser.add_argument("--update", action="store_true", help="keep the record")
    parser.add_argument("--alike", action="store_true", help="only: the pool on rows drawn alike")
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    if args.alike:
        for per_class in (40, 200):
            drawn_alike(per_class)
        return
    record = json.loads(KEPT.read_text(encoding="utf-8"))
    record |= {"surroundings": tables.surroundings(), "auroc": {}}
    for name in args.only:
        X, y = numbers(name)
        record["auroc"][name] = held_out_classes(X, y)
        for kind in KINDS:
            record["sets"].setdefault(name, {}).setdefault(kind, {}).update(sets(X, y, kind))
    show(record)
    if args.update:
        KEPT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
