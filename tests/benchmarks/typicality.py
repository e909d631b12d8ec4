"""Rows of a class that was never seen, and sets of labels: against IsolationForest and MAPIE.

    .venv/bin/python tests/benchmarks/typicality.py                      # prints; a few minutes
    .venv/bin/python tests/benchmarks/typicality.py --mapie /tmp/mapie/bin/python --update

Held-out classes: the classifier and the forest learn two thirds of the rows of all classes but one;
the others, and all rows of that one, are told apart by ``clf.typicality`` (1 - overall, and 1 - the
largest of any class) and by the forest's score. AUROC, a mean over the classes.

Prediction sets: two thirds of the rows to learn from, ten splits; coverage of the others, mean
number of labels, and share of empty sets at coverage .9. MAPIE's split conformal sets (a third of
the training rows held out for calibration) and its cross-conformal sets (5 folds), both with the
same score ("lac") on scikit-learn's class of the same kind, on the same splits. MAPIE runs in an
interpreter of its own (``--mapie``), with scikit-learn and pandas beside it; without it its columns
stay empty.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tests.benchmarks.real_sets import SETS, split

KEPT = Path(__file__).with_name("typicality.json")
KINDS = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant")
COVERAGE = 0.9
SPLITS = 10


def held_out_classes(X: np.ndarray, y: np.ndarray, seed: int = 0) -> dict[str, list[float]]:
    """{score: AUROC with each class held out}."""
    from sklearn.ensemble import IsolationForest
    from sklearn.metrics import roc_auc_score

    import bayesgen as bg

    out: dict[str, list[float]] = {}
    for c in np.unique(y):
        inside = np.flatnonzero(y != c)
        train, rest = split(y[inside], seed)
        test = np.concatenate([inside[rest], np.flatnonzero(y == c)])
        new = y[test] == c
        A, b, Z = X[inside][train], y[inside][train], X[test]
        forest = IsolationForest(n_estimators=300, random_state=seed).fit(A)
        scores = {"IsolationForest": -forest.score_samples(Z)}
        for kind in (*KINDS, "LogLinearPool"):
            found = getattr(bg, kind)().fit(A, b).typicality(Z)
            scores[f"{kind}, overall"] = -found["overall"].values
            scores[f"{kind}, by class"] = -found["by_class"].values.max(axis=1)
        for name, value in scores.items():
            out.setdefault(name, []).append(float(roc_auc_score(new, value)))
    return out


def drawn_alike(per_class: int, repeats: int = 25) -> None:
    """Shares of new rows that the pool finds at most so typical, with errors over training sets.

    Two Normal classes in four columns, 80 new rows of the same for each of the training sets.
    """
    import bayesgen as bg

    rng, limits, out = np.random.default_rng(0), np.array([0.01, 0.05, 0.1, 0.5, 0.9]), []
    for _ in range(repeats):
        mean = rng.normal(size=(2, 4))
        y, codes = np.repeat([0, 1], per_class), rng.integers(2, size=80)
        pool = bg.LogLinearPool().fit(mean[y] + rng.normal(size=(len(y), 4)), y)
        found = pool.typicality(mean[codes] + rng.normal(size=(80, 4)))["overall"].values
        out.append((found[:, None] <= limits).mean(axis=0))
    error = np.std(out, axis=0, ddof=1) / np.sqrt(repeats)
    print(f"{per_class} rows per class")
    for limit, share, se in zip(limits, np.mean(out, axis=0), error, strict=True):
        print(f"  at most {limit}: {share:.3f} +- {se:.3f}")


def summary(included: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of sets (N, C) bool: coverage, mean size, share of empty ones."""
    size = included.sum(axis=1)
    hit = included[np.arange(len(y)), y]
    return {"coverage": hit.mean(), "size": size.mean(), "empty": np.mean(size == 0)}


def sets_of_ours(X: np.ndarray, y: np.ndarray, kind: str) -> dict[str, list[dict[str, float]]]:
    import bayesgen as bg

    out: dict[str, list[dict[str, float]]] = {"predict_set": [], "predict_set, by class": []}
    for seed in range(SPLITS):
        train, test = split(y, seed)
        clf = getattr(bg, kind)().fit(X[train], y[train])
        for name, by_class in zip(out, (False, True), strict=True):
            found = clf.predict_set(X[test], COVERAGE, by_class)["included"].values
            out[name].append(summary(found, y[test]))
    return out


def sets_of_mapie(X: np.ndarray, y: np.ndarray, kind: str) -> dict[str, list[dict[str, float]]]:
    """In the interpreter that has MAPIE."""
    from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
    from sklearn.discriminant_analysis import (
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )
    from sklearn.naive_bayes import GaussianNB

    make: Any = {
        "GaussianNB": GaussianNB,
        "LinearDiscriminant": LinearDiscriminantAnalysis,
        "QuadraticDiscriminant": QuadraticDiscriminantAnalysis,
    }[kind]
    out: dict[str, list[dict[str, float]]] = {"MAPIE split": [], "MAPIE cross": []}
    common = {"confidence_level": COVERAGE, "conformity_score": "lac"}
    for seed in range(SPLITS):
        train, test = split(y, seed)
        learn, calibrate = split(y[train], seed)
        own = make().fit(X[train][learn], y[train][learn])
        one = SplitConformalClassifier(own, prefit=True, **common)
        one.conformalize(X[train][calibrate], y[train][calibrate])
        many = CrossConformalClassifier(make(), cv=5, **common)
        many.fit_conformalize(X[train], y[train])
        for name, clf in zip(out, (one, many), strict=True):
            included = clf.predict_set(X[test])[1][:, :, 0]
            out[name].append(summary(included.astype(bool), y[test]))
    return out


def means(rows: list[dict[str, float]]) -> dict[str, float]:
    """Mean of each number, and its standard error over splits."""
    out = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        out[name] = float(values.mean())
        out[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
    return out


def measure(names: list[str], theirs: bool) -> dict[str, Any]:
    """{set: {kind: {method: numbers}}}."""
    sets = sets_of_mapie if theirs else sets_of_ours
    out: dict[str, Any] = {}
    for name in names:
        X, y = SETS[name]()
        out[name] = {}
        for kind in KINDS:
            try:
                found = sets(X, y, kind)
            except (ValueError, np.linalg.LinAlgError) as error:  # a singular covariance of theirs
                out[name][kind] = {"failed": str(error).splitlines()[0]}
                continue
            out[name][kind] = {method: means(rows) for method, rows in found.items()}
    return out


def show(record: dict[str, Any]) -> None:
    print("\nAUROC of rows of a held-out class, mean over the classes\n")
    methods = list(next(iter(record["auroc"].values())))
    print("| data | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 1) + "|")
    for name, row in record["auroc"].items():
        print(f"| {name} | " + " | ".join(f"{np.mean(row[m]):.3f}" for m in methods) + " |")
    average = [np.mean([np.mean(row[m]) for row in record["auroc"].values()]) for m in methods]
    print("| mean | " + " | ".join(f"{value:.3f}" for value in average) + " |")
    print(f"\nPrediction sets at coverage {COVERAGE}: coverage / mean size / share of empty sets\n")
    methods = ["predict_set", "predict_set, by class", "MAPIE split", "MAPIE cross"]
    print("| data | classifier | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 2) + "|")
    for name, kinds in record["sets"].items():
        for kind, row in kinds.items():
            text = [
                f"{row[m]['coverage']:.3f} / {row[m]['size']:.2f} / {row[m]['empty']:.2f}"
                if m in row
                else ""
                for m in methods
            ]
            print(f"| {name} | {kind} | " + " | ".join(text) + " |")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SETS), metavar="NAME")
    parser.add_argument("--mapie", metavar="PYTHON", help="an interpreter that has MAPIE")
    parser.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--update", action="store_true", help="keep the record")
    parser.add_argument("--alike", action="store_true", help="only: the pool on rows drawn alike")
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    if args.theirs:
        print(json.dumps(measure(args.only, theirs=True)))
        return
    if args.alike:
        for per_class in (40, 200):
            drawn_alike(per_class)
        return
    from tests.benchmarks import tables

    start = time.perf_counter()
    record: dict[str, Any] = {"surroundings": tables.surroundings(), "auroc": {}}
    for name in args.only:
        record["auroc"][name] = held_out_classes(*SETS[name]())
        print(name, {k: round(float(np.mean(v)), 3) for k, v in record["auroc"][name].items()})
    record["sets"] = measure(args.only, theirs=False)
    if args.mapie:
        command = [args.mapie, __file__, "--theirs", "--only", *args.only]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, kinds in json.loads(answer.stdout.splitlines()[-1]).items():
            for kind, row in kinds.items():
                record["sets"][name][kind] |= row
    record["seconds"] = time.perf_counter() - start
    show(record)
    if args.update:
        KEPT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
