"""The pool and the averaged forests on 111 tables on which no default was chosen.

    python -m tests.benchmarks.unseen_sets --data FOLDER    # sets.py says what is in the folder

One split of each table of the second list of `unseen_tables.txt`, two sizes: the pool, what users
call today, and the averaged forests next to naive Bayes on the same bins.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import bayesgen as bg
from tests.benchmarks import run, scoring, sets
from tests.benchmarks.peers import HGB, LR, RF, peers

MANY_ROWS = 1200  # of the table; where the table of results is cut in two
SIZES = {"two thirds": "two thirds of the rows", "20 per class": "20 rows per class"}
WIDEST = 40  # columns, of the average over forests: seconds beyond


def models(s: sets.OpenSet, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return {name: unfitted classifier}."""
    classifiers: dict[str, Any] = {"pool": bg.LogLinearPool()}
    if X.shape[1] <= WIDEST:
        none = np.zeros((X.shape[1],) * 2)
        classifiers["naive"] = bg.TreeAugmentedNB(structure="fixed", edges=none)
        classifiers["forest"] = bg.TreeAugmentedNB()
    return classifiers | peers(X, y)


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure a split of each table; `facts` of it are kind, rows, columns and classes."""
    for s in sets.unseen(args.data, "second"):
        facts = [s.kind, len(s.y), s.X.shape[1], len(np.unique(s.y))]
        record.measure(f"{s.name}|facts", lambda facts=facts: facts)
        scoring.losses(record, [s], partial(sets.splits, n=1), models)


def groups(record: run.Record) -> dict[str, list[str]]:
    """Return {name of a group: its tables}, the first of which is all of them."""
    facts = record.frame("set facts", "kind rows columns classes").droplevel("facts")
    tables = {"all": facts, **dict([*facts.groupby("kind")])}
    few = facts["rows"] <= MANY_ROWS
    tables |= {f"up to {MANY_ROWS} rows": facts[few], "more rows": facts[~few]}
    return {name: [*table.index] for name, table in tables.items()}


def table(record: run.Record) -> str:
    """Return ratios of log loss, of all tables and of groups."""
    losses = loss_of(scoring.frame(record)).unstack("model")
    body = []
    for size, all_of_size in SIZES.items():
        for name, tables in groups(record).items():
            of = losses.xs(size, level="size").reindex(tables)
            if len(of) > 1:
                pairs = [run.geometric(of["pool"] / of[peer]) for peer in (LR, RF, HGB)]
                cells = [f"{run.short(mean)} +- {run.short(error)}" for mean, error in pairs]
                body.append([all_of_size if name == "all" else name, *cells, str(len(of))])
    head = ["rows or tables", "logistic regression", "random forest", "tuned boosting", "tables"]
    return run.markdown(head, body)


def loss_of(results: pd.DataFrame) -> pd.Series:
    """Return log losses, of at least .001: ratios of smaller ones say nothing."""
    return results["loss"].droplevel("seed").clip(lower=1e-3)


def details(record: run.Record) -> str:
    """Return calibration errors, seconds, where the pool is behind, and the gain of forests."""
    text = ""
    for size, results in scoring.frame(record).groupby("size"):
        loss = loss_of(results).droplevel("size").unstack("model")
        for name, of in results.groupby("model"):
            above = (of["error"] - of["chance"]).mean()
            text += f"{size}: calibration error of {name} {of['error'].mean():.3f}, "
            text += f"less that of chance {above:.3f}; {of['seconds'].sum():.0f} s\n"
        mean, error = run.geometric(loss["forest"] / loss["naive"])
        text += f"{size}: forest over naive Bayes {mean:.2f} +- {error:.2f}\n"
        for peer in (LR, RF, HGB):
            behind = loss[loss["pool"] > 1.05 * loss[peer]]
            names = (f"{name} {v['pool']:.3f}/{v[peer]:.3f}" for name, v in behind.iterrows())
            text += f"{size}: behind {peer} by 5 % on {len(behind)}: {', '.join(names)}\n"
    return text


TABLES = {"unseen": table, None: details}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
