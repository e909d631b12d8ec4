"""3 to 50 rows per class: log loss, calibration error and time.

    python -m tests.benchmarks.few_rows                    # 10 minutes of one processor
    python -m tests.benchmarks.few_rows --model tabpfn:TabPFNClassifier

``--model module:factory`` adds a method of yours: ``factory()`` returns an unfitted object with
``fit(X, y)`` and ``predict_proba(X)``, whose columns are the sorted labels. It gets arrays of
numbers: missing numbers are the mean of their column, categories are codes.
"""

import importlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

import bayesgen as bg
from tests.benchmarks import run, scoring, sets
from tests.benchmarks.peers import columns, naive_bayes, peers

ROWS = (3, 5, 10, 20, 50)  # per class; all that the training part has, if it has fewer
SETS = ("iris", "wine", "breast_cancer", "penguins", "pokemon", "banana", "german", "ionosphere",
        "segment", "splice", "tictactoe", "vehicle", "votes", "digits")  # fmt: skip
NAIVE = {"real": bg.GaussianNB, "mixed": bg.MixedNB, "categories": bg.CategoricalNB}
POOL = "LogLinearPool()"


def models(own: list[str], s: sets.OpenSet, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return {name: unfitted classifier}."""
    classifiers = {POOL: bg.LogLinearPool(), "naive Bayes of bayesgen": NAIVE[s.kind]()}
    classifiers |= {"GaussianNB of scikit-learn": naive_bayes(s, X)} | peers(X, y)
    for name in own:
        module, _, factory = name.partition(":")
        method = getattr(importlib.import_module(module), factory)()
        classifiers[name] = make_pipeline(columns(X, ordinal=True, scale=False), method)
    return classifiers


def few(y: np.ndarray) -> Iterator[sets.Split]:
    """Yield rows per class for training, and at most 400 for a test; fewer are part of more."""
    for size, seed, rows, test in sets.splits(y, 2):
        if size == "two thirds":
            rng = np.random.default_rng(seed)
            order, test = rng.permutation(rows), rng.permutation(test)[:400]
            for n in ROWS:
                first = [order[y[order] == c][:n] for c in np.unique(y)]
                yield str(n), seed, np.concatenate(first), test


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure two splits of each set."""
    every = sets.load(args.data)
    tables = [every[name] for name in SETS if name in every]
    scoring.losses(record, tables, few, partial(models, args.model))


def table(record: run.Record) -> str:
    """Return means over sets by method, then the pool over each method with errors over sets."""
    results = scoring.frame(record).groupby(["model", "size", "set"], sort=False).mean()
    by_method = {name: of.droplevel("model") for name, of in results.groupby("model", sort=False)}
    pool, body, over = by_method[POOL], [], []
    for name, of in by_method.items():
        means = of.groupby("size", sort=False).mean()
        cells = [f"{run.short(v['loss'])} / {run.short(v['error'])}" for _, v in means.iterrows()]
        seconds = of["seconds"].xs("20", level="size")
        body.append([name, *cells, run.duration(seconds.median())])
        if name != POOL:
            ratios = (pool["loss"] / of["loss"]).groupby("size", sort=False)
            pairs = [run.geometric(of_size) for _, of_size in ratios]
            over.append([name, *(f"{run.short(m)} +- {run.short(se)}" for m, se in pairs)])
    head = [f"{n} rows" for n in ROWS]
    return f"""{run.markdown(["method", *head, "fit and predict"], body)}

Means over {len(seconds)} sets, 2 splits each. Processor time is the median over \
sets with 20 rows per class and at most 400 test rows, first calls included.

Log loss of the pool over that of the other, geometric means +- standard errors over sets:

{run.markdown(["the pool over", *head], over)}"""


TABLES = {"few-rows": table}


def main() -> int:
    """Measure and show."""
    parser = run.parser(__doc__, __file__)
    parser.add_argument("--model", action="append", default=[], metavar="MODULE:FACTORY")
    return run.run(parser.parse_args(), measure, TABLES)


if __name__ == "__main__":
    sys.exit(main())
