"""Measure the next cell or a fixed order: total cost on open tables, and questions on splice.

    python -m tests.benchmarks.acquisition                      # about a minute of processor time
    python -m tests.benchmarks.acquisition --price .003 --only splice,votes

A wrong decision costs 1, a cell `--price`. Row i is tested if i % 3 == 2 (at most 300 rows of a
table). ``next`` stops by itself; the orders are read at the number of cells that is best for the
tested rows, in hindsight. The last columns are the cells until one class has probability .95.
"""

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

import bayesgen as bg
from tests.benchmarks import tables
from tests.benchmarks.open_sets import OpenSet, load, take

TABLES = "iris,wine,breast_cancer,penguins,pokemon,german,splice,tictactoe,vehicle,votes"
TEMPERS = (1.0, "loo")
_ROWS = 300


def curves(one: OpenSet, price: float) -> Iterator[Any]:
    """A curve for each exponent."""
    test = np.arange(len(one.y)) % 3 == 2
    X, X_test = take(one.X, np.flatnonzero(~test)), take(one.X, np.flatnonzero(test)[:_ROWS])
    y, y_test = one.y[~test], one.y[test][:_ROWS]
    categories = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    clf = (bg.MixedNB() if categories else bg.GaussianNB()).fit(X, y)
    wrong = 1 - np.eye(len(clf.classes_))
    for temper in TEMPERS:
        yield bg.acquisition_curve(
            clf, X_test, y_test, cost=price, decision_cost=wrong, temper=temper
        )


def main() -> None:
    """Print a line for each table and exponent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--price", type=float, default=0.01)
    parser.add_argument("--only", default=TABLES)
    options = parser.parse_args()
    sets, lines = load(), []
    better = dict.fromkeys(TEMPERS, 0)
    for name in options.only.split(","):
        if name not in sets:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for temper, curve in zip(TEMPERS, curves(sets[name], options.price), strict=True):
                fixed = (curve["measured"] + curve["decided"]).sel(policy="fixed order")
                hindsight = float(fixed.min())
                total, cells = curve["total_cost"].values, curve["cells_to_probability"].values
                better[temper] += bool(total[0] < total[1])
                exponent = f"{curve.attrs['exponent']:.2f}"
                lines.append([name, exponent, *(f"{v:.3f}" for v in (*total, hindsight))])
                lines[-1] += [f"{v:.1f}" for v in cells]
    head = ("table", "exponent", "next", "fixed", "random", "hindsight", "next", "fixed", "random")
    Console(width=100).print(tables.on_terminal("Total cost, and cells to .95", head, lines))
    print(f"next costs less than the fixed order (exponent 1, leave-one-out): {better}")


if __name__ == "__main__":
    main()
