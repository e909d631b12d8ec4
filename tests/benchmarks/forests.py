"""Averaged forests and super-parents beside naive Bayes on the same bins, on the open sets.

    .venv/bin/python -m tests.benchmarks.forests [--only german,votes] [--splits 3]
    .venv/bin/python -m tests.benchmarks.forests --table                   show forests.json

One line for each set, size, split and model: log loss, and the paired difference from naive Bayes
with its standard error. A forest loses where it is worse by more than 2 % and two standard errors.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np

import bayesgen as bg
from tests.benchmarks.open_sets import SHARED, load, scores, splits, take

FILE = Path(__file__).with_name("forests.json")
FOREST = partial(bg.TreeAugmentedNB, missing="category")
MODELS = {
    "naive": partial(FOREST, structure="fixed"),
    "best tree": partial(FOREST, structure="tree"),
    "forest by evidence": partial(FOREST, prior="default"),
    "forest": FOREST,
    "A1DE": partial(bg.AnDE, missing="category"),
    "A1DE by evidence": partial(bg.AnDE, weights="evidence", missing="category"),
    "A2DE": partial(bg.AnDE, 2, missing="category"),
}
SETS = "breast_cancer,german,ionosphere,iris,penguins,splice,tictactoe,vehicle,votes,wine"


def measure(folder, only, n_splits):
    """Add what is not in the file."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    every = load(folder)
    for s in (every[name] for name in only if name in every):
        for size, seed, rows, test in splits(s.y, n_splits):
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            codes, naive = np.searchsorted(np.unique(y), s.y[test]), None
            for name, make in MODELS.items():
                key = f"{s.name}|{size}|{seed}|{name}"
                if key in known and name != "naive":
                    continue
                none = {"edges": np.zeros((X.shape[1],) * 2)} if name == "naive" else {}
                start = time.process_time()
                clf = make(**none).fit(X, y)
                seconds = time.process_time() - start
                loss, _ = scores(clf.predict_proba(T), codes)
                naive = loss if naive is None else naive
                gap = loss - naive
                numbers = loss.mean(), gap.mean(), gap.std() / np.sqrt(len(gap)), seconds
                known[key] = [round(float(v), 5) for v in numbers]
            lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in known.items())
            FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
            print(s.name, size, seed, flush=True)


def table():
    """Mean losses, splits lost to naive Bayes, and geometric means of ratios."""
    known = json.loads(FILE.read_text())
    for size in ("two thirds", "20 per class"):
        ratios = {name: [] for name in MODELS}
        print(f"\n{size}: log loss, mean over splits (splits that lose to naive Bayes)")
        print(f"{'set':14s}", *(f"{name:>20s}" for name in MODELS))
        for s in sorted({key.split("|")[0] for key in known}):
            line, base = [], None
            for name in MODELS:
                own = [
                    v
                    for k, v in known.items()
                    if k.startswith(f"{s}|{size}|") and k.endswith(f"|{name}")
                ]
                loss = np.mean([v[0] for v in own])
                base = loss if base is None else base
                ratios[name].append(loss / base)
                lost = sum(gap > max(0.02 * (v - gap), 2 * se) for v, gap, se, _ in own)
                line.append(f"{loss:.3f} ({lost})")
            print(f"{s:14s}", *(f"{cell:>20s}" for cell in line))
        means = [np.exp(np.mean(np.log(r))) for r in ratios.values()]
        print(f"{'geometric mean':14s}", *(f"{m:20.2f}" for m in means))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=SETS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        measure(given.shared, given.only.split(","), given.splits)
    table()
