"""Rows per second of intervals, beside 1000 draws of theta: run it, it prints the table.

    .venv/bin/python tests/benchmarks/interval_speed.py             about 4 minutes, one thread
    .venv/bin/python tests/benchmarks/interval_speed.py --update    onto docs/benchmarks/speed.md

The draws are shared by all rows, as a user would do it: theta is drawn once, its likelihood of
every row is computed, quantiles are taken. Their percentiles have a standard error of .007; those
of two classes are exact, those of "auto" within .003 for three (or what the column "error" says).
Times are processor seconds.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy.special import log_softmax

from tests.predict.interval.cases import FAMILIES, SHARED, case, interval

N_DRAWS = 1000


def by_draws(model, X):
    """5 % and 95 % of each class probability from draws of theta, in blocks of rows."""
    theta = model.draw(np.random.default_rng(0), N_DRAWS)
    weights = np.log(theta["pi"])[:, None]
    size = max(1, (1 << 22) // (N_DRAWS * len(model.alpha)))
    return np.concatenate(
        [
            np.quantile(
                log_softmax(weights + model.family.log_likelihood(X[k : k + size], theta), axis=-1),
                [0.05, 0.95],
                axis=0,
            )
            for k in range(0, len(X), size)
        ],
        axis=1,
    )


def rate(function, *args, seconds=1.0, **kwargs):
    """Rows per second of the fastest call of a second, after a first call, which may compile."""
    function(*args, **kwargs)
    best, end = np.inf, time.process_time() + seconds
    while True:
        start = time.process_time()
        result = function(*args, **kwargs)
        now = time.process_time()
        best = min(best, now - start)
        if now > end:
            return len(args[1]) / best, result


class Speed(NamedTuple):
    """Rows per second of one posterior."""

    family: str
    n_features: int
    n_classes: int
    draws: float
    auto: float
    exact: float
    error: float
    routes: str

    @property
    def ratio(self) -> float:
        return self.auto / self.draws


def measured(n_rows: int, seconds: float = 1.0) -> Iterator[Speed]:
    """Every family, a size after the other."""
    for n_classes, sizes in ((2, (10, 100, 1000)), (3, (10,))):
        for name in FAMILIES:
            for n_features in sizes:
                if n_features == 1000 and name in ("lda", "qda"):
                    continue  # one draw of theta is a million numbers
                rows = n_rows if n_features < 1000 else n_rows // 5
                model, X = case(name, n_features, 50, n_classes=n_classes, new=rows)
                some = X[: min(rows, max(50, 20_000 // n_features))]
                draws, _ = rate(by_draws, model, some, seconds=seconds)
                auto, found = rate(interval, model, X, seconds=seconds)
                exact, _ = rate(interval, model, X[:200], seconds=seconds, method="exact")
                routes = ", ".join(f"{k} {v}" for k, v in Counter(found.method.tolist()).items())
                error = float(found.error.max())
                yield Speed(name, n_features, n_classes, draws, auto, exact, error, routes)


def by_family(found: list[Speed]) -> list[list[str]]:
    """Lines of the page's table: rows per second and, behind it, the ratio to the draws'."""
    sizes = list(dict.fromkeys((s.n_classes, s.n_features) for s in found))
    lines = []
    for family in dict.fromkeys(s.family for s in found):
        own = {(s.n_classes, s.n_features): s for s in found if s.family == family}
        cells = [
            f"{_rounded(own[k].auto)} ({_rounded(own[k].ratio)} x)" if k in own else ""
            for k in sizes
        ]
        name = family.replace("_", ", ") + (" (shared parameter)" if family in SHARED else "")
        lines.append([name, *cells])
    return lines


def _rounded(value: float) -> str:
    """Two digits."""
    return f"{float(f'{value:.2g}'):,.10g}".replace(",", " ")


def update(found: list[Speed]) -> None:
    """Write the table of docs/benchmarks/speed.md."""
    from tests.benchmarks import tables

    sizes = dict.fromkeys((s.n_classes, s.n_features) for s in found)
    head = ("posterior", *(f"C {c}, D {d}" for c, d in sizes))
    where = tables.surroundings()
    source = f"{where['processor']}, one thread, commit {where['commit']}, {where['date'][:10]}"
    table = tables.markdown(head, by_family(found), left=1)
    text = f"{table}\n\n{source}; 50 training rows per class."
    tables.write_between("intervals", text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows per second of intervals.")
    parser.add_argument("rows", nargs="?", type=int, default=1000, help="rows asked for")
    parser.add_argument("--update", action="store_true", help="write docs/benchmarks/speed.md")
    args = parser.parse_args()
    head = f"{'family':20s}{'D':>6s}{'C':>3s}{'draws':>10s}{'auto':>10s}{'exact':>10s}{'ratio':>8s}"
    print(f"{head}  error    routes of auto")
    found = []
    for s in measured(args.rows):
        found.append(s)
        print(
            f"{s.family:20s}{s.n_features:6d}{s.n_classes:3d}{s.draws:10.0f}{s.auto:10.0f}"
            f"{s.exact:10.0f}{s.ratio:8.1f}  {s.error:.4f}   {s.routes}",
            flush=True,
        )
    if args.update:
        update(found)


if __name__ == "__main__":
    main()
