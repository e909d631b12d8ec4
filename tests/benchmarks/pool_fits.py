"""Do the chains of a pool agree, and how long does it take? R-hat of ranks, ESS, seconds of a fit.

    python -m tests.benchmarks.pool_fits

ArviZ computes R-hat and ESS of every exponent and intercept; the result has the largest R-hat and
the smallest ESS of bulk and tail. One split of each open set, two thirds of the rows and 20 per
class. On sets of real columns, a pool of four members in turn with StackingClassifier(cv=5) of the
same members: the least of three fits.
"""

import argparse
import sys
import time
from functools import partial
from typing import Any

import arviz as az
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression

import bayesgen as bg
from tests.benchmarks import run, sets

MEMBERS = [
    bg.GaussianNB(),
    bg.GaussianNB(variance="tied"),
    bg.LinearDiscriminant(),
    bg.QuadraticDiscriminant(),
]


def mixing(X: Any, y: np.ndarray) -> list[float]:
    """Return R-hat, ESS, and processor seconds of the fit."""
    start = time.process_time()
    pool = bg.LogLinearPool().fit(X, y)
    seconds = time.process_time() - start
    draws = pool.posterior_["posterior"].to_dataset()
    r_hat = az.rhat(draws, method="rank")
    ess = [az.ess(draws, method=method) for method in ("bulk", "tail")]
    largest = max(float(np.nanmax(r_hat[v])) for v in r_hat.data_vars)
    smallest = min(float(np.nanmin(e[v])) for e in ess for v in e.data_vars)
    return [round(largest, 5), round(smallest), round(seconds, 3)]


def stacking(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return processor seconds of a pool and of stacking the same members."""
    named = [(f"m{k}", member) for k, member in enumerate(MEMBERS)]
    stack = StackingClassifier(named, LogisticRegression(max_iter=2000), cv=5)
    seconds = []
    for _ in range(3):
        for model in (bg.LogLinearPool(MEMBERS), stack):
            start = time.process_time()
            clone(model).fit(X, y)
            seconds.append(time.process_time() - start)
    return np.round([min(seconds[::2]), min(seconds[1::2])], 4).tolist()


def measure(record: run.Record, args: argparse.Namespace) -> None:
    """Measure each open set."""
    for name, s in sets.load(args.data).items():
        for size, _, rows, _ in sets.splits(s.y, 1):
            call = partial(mixing, sets.take(s.X, rows), s.y[rows])
            record.measure(f"mixing|{name}|{size}", call)
        if s.kind == "real":
            record.measure(f"stacking|{name}", partial(stacking, s.X.to_numpy(float), s.y))


def details(record: run.Record) -> str:
    """Return every line, the worst of all, and the mean ratio of seconds."""
    chains = record.frame("what set size", "r_hat ess seconds", start="mixing|").droplevel("what")
    seconds = record.frame("what set", "pool stacking", start="stacking|").droplevel("what")
    ratio = run.geometric(seconds["stacking"] / seconds["pool"])[0]
    worst = f"R-hat at most {chains['r_hat'].max():.4f}, ESS at least {chains['ess'].min():.0f}"
    return (
        f"{chains.to_string()}\n{seconds.to_string()}\n\n{len(chains)} splits: {worst}\n"
        f"stacking takes {ratio:.1f} times as long"
    )


TABLES = {None: details}

if __name__ == "__main__":
    sys.exit(run.run(run.parser(__doc__, __file__).parse_args(), measure, TABLES))
