"""What integrating the parameters out gains over plugging an estimate in, on open sets.

    .venv/bin/python tests/benchmarks/plug_ins.py             # some minutes, one thread
    .venv/bin/python tests/benchmarks/plug_ins.py --update    # and into docs/benchmarks/plug_ins.md

Log loss of held-out rows, averaged over random splits: with so many training rows per class, the
same classifier with its parameters integrated out, and with an estimate plugged in.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import bayesgen as bg
from bayesgen.datasets import load_languages
from tests.benchmarks.open_sets import numbers
from tests.benchmarks.tables import write_between

ROWS = (5, 20, 100)  # per class
SPLITS = 10
METHODS = ("posterior_predictive", "posterior_mean", "mle")
MOST = 1000  # held-out rows
OPEN = ("penguins", "iris", "wine", "breast_cancer", "digits")  # that anybody has


def _binned(X: np.ndarray) -> np.ndarray:
    cuts = np.quantile(X, [0.2, 0.4, 0.6, 0.8], axis=0)
    return np.stack([np.searchsorted(c, x) for c, x in zip(cuts.T, X.T, strict=True)], axis=1)


def _counts() -> tuple[np.ndarray, np.ndarray]:
    """Letters of the paragraphs of ten languages: documents of some hundred tokens."""
    texts, y = load_languages()
    letters = "abcdefghijklmnopqrstuvwxyz"
    X = np.array([[text.lower().count(letter) for letter in letters] for text in texts])
    return X, np.unique(y, return_inverse=True)[1]


def cases() -> dict[str, tuple[Callable, dict[str, Callable]]]:
    """{classifier: (how it is made, {set: rows and labels})}."""
    real = {name: partial(numbers, name) for name in OPEN}
    binned = {k: lambda load=v: (_binned(load()[0]), load()[1]) for k, v in real.items()}
    return {
        "GaussianNB": (bg.GaussianNB, real),
        "LinearDiscriminant": (bg.LinearDiscriminant, real),
        "QuadraticDiscriminant": (bg.QuadraticDiscriminant, real),
        "CategoricalNB, 5 bins": (lambda: bg.CategoricalNB(categories=5), binned),
        "MultinomialNB, letters of ten languages": (bg.MultinomialNB, {"letters": _counts}),
    }


def losses(make: Callable, X: np.ndarray, y: np.ndarray, n: int, seed: int) -> list[float]:
    """Mean log loss by method; infinite where an estimate does not exist or excludes the truth."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    train = np.concatenate([order[y[order] == c][:n] for c in np.unique(y)])
    rest = np.setdiff1d(order, train)
    rest = rng.permutation(rest)[:MOST]
    clf = make().fit(X[train], y[train])
    out = []
    for method in METHODS:
        try:
            log_p = clf.predict_log_proba(X[rest], method=method)
        except ValueError:
            out.append(np.inf)
        else:
            out.append(-log_p[np.arange(len(rest)), y[rest]].mean())
    return out


def row(name: str, n: int) -> str | None:
    """One line of the table, or None if no set has so many rows."""
    make, sets = cases()[name]
    ratios = []
    for load in sets.values():
        X, y = load()
        if np.bincount(y).min() < n + 5:
            continue
        mean = np.mean([losses(make, X, y, n, seed) for seed in range(SPLITS)], axis=0)
        ratios.append(mean[0] / mean[1:])
    if not ratios:
        return None
    over_mean, over_mle = np.array(ratios).T
    finite = over_mle[over_mle > 0]
    mle = f"{np.exp(np.log(finite).mean()):.2f}" if finite.size else ""
    kind, _, rest = name.partition(",")
    cells = [f"`{kind}`{rest and ',' + rest}", f"{n}", f"{np.exp(np.log(over_mean).mean()):.3f}"]
    cells += [f"{over_mean.max():.2f}", mle, f"{over_mle.max():.2f}"]
    return f"| {' | '.join(cells)} | {(over_mle == 0).sum()} of {len(ratios)} |"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and write with ``--update``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--update", action="store_true", help="write docs/benchmarks/plug_ins.md")
    args = parser.parse_args(arguments)
    head = ["classifier", "rows per class", "over posterior mean", "largest"]
    head += ["over maximum likelihood", "largest", "infinite or undefined"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for name in cases():
        for n in ROWS:
            line = row(name, n)
            if line:
                print(line, flush=True)
                lines.append(line)
    lines += ["", f"{SPLITS} random splits of each set; real-valued sets: {', '.join(OPEN)}."]
    if args.update:
        write_between("plug-ins", "\n".join(lines))


if __name__ == "__main__":
    main()
