"""Which labels are wrong? 5 % of the labels flipped, and the 5 % least probable looked at.

    .venv/bin/python tests/benchmarks/mislabels.py             # prints; a few minutes
    .venv/bin/python tests/benchmarks/mislabels.py --update    # and keeps the record

A random 5 % of the labels of all rows are changed to another class, drawn from the
others. The rows are ranked by the probability of the label that they have: exact leave-one-out
(what `bayesgen.row_influence` calls ``probability``), of each of our classes and of the one with
the best leave-one-out score of the flipped labels (`bayesgen.compare_models`); and, as confident
learning ranks by self-confidence (Northcutt et al. 2021), by 5-fold cross-validated logistic
regression on standardised columns. Precision among the 5 % least probable: 1 is perfect, .05
chance. Ten repeats.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg
from tests.benchmarks import tables
from tests.benchmarks.real_sets import SETS

KEPT = Path(__file__).with_name("mislabels.json")
KINDS = ("GaussianNB", "LinearDiscriminant", "QuadraticDiscriminant")
SHARE = 0.05
REPEATS = 10
MOST_ROWS = 2000  # of a set: the rest is left out at random, for the cross-validation's sake


def flipped(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a share of them changed, and which."""
    n_classes = len(np.unique(y))
    chosen = rng.choice(len(y), size=round(SHARE * len(y)), replace=False)
    out = y.copy()
    out[chosen] = (y[chosen] + rng.integers(1, n_classes, size=len(chosen))) % n_classes
    return out, chosen


def precision(probability: np.ndarray, wrong: np.ndarray) -> float:
    worst = np.argsort(probability, kind="stable")[: len(wrong)]
    return float(np.isin(worst, wrong).mean())


def repeat(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    keep = np.sort(rng.permutation(len(y))[:MOST_ROWS])
    X, (y, wrong) = X[keep], flipped(y[keep], rng)
    models = {kind: getattr(bg, kind)().fit(X, y) for kind in KINDS}
    found = bg.compare_models(models, X, y)
    out = {kind: precision(found.loo[kind].elpd_i.values, wrong) for kind in KINDS}
    best = found.table["model"].values[0]
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    p = cross_val_predict(regression, X, y, cv=folds, method="predict_proba")
    own = p[np.arange(len(y)), np.searchsorted(np.unique(y), y)]
    return out | {"best by elpd": out[best], "logistic regression, 5 folds": precision(own, wrong)}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SETS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N")
    parser.add_argument("--update", action="store_true", help="keep the record")
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    start = time.perf_counter()
    record: dict[str, Any] = {"surroundings": tables.surroundings(), "precision": {}}
    methods = [*KINDS, "best by elpd", "logistic regression, 5 folds"]
    print("| data | " + " | ".join(methods) + " |")
    print("|---" * (len(methods) + 1) + "|")

    def line(name: str, values: list[np.ndarray]) -> None:
        text = [f"{v.mean():.2f} ± {v.std(ddof=1) / np.sqrt(len(v)):.2f}" for v in values]
        print(f"| {name} | " + " | ".join(text) + " |", flush=True)

    for name in args.only:
        X, y = SETS[name]()
        rows = [repeat(X, y, seed) for seed in range(args.repeats)]
        record["precision"][name] = {m: [row[m] for row in rows] for m in methods}
        line(name, [np.array(record["precision"][name][m]) for m in methods])
    means = [np.array([np.mean(r[m]) for r in record["precision"].values()]) for m in methods]
    if len(args.only) > 1:
        line("mean", means)
    record["seconds"] = time.perf_counter() - start
    if args.update:
        KEPT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
