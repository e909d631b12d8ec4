"""Rows per second of `interval`, beside 1000 draws of theta: run it, it prints the table.

``python tests/benchmarks/interval_speed.py [rows]``; one thread. The draws are shared by all rows,
as a user would do it: theta is drawn once, its likelihood of every row is computed, quantiles are
taken. Their percentiles have a standard error of .007; those of "auto" are within .0015 for two
classes and about .001 for three, where classes share no parameter.
"""

import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy.special import log_softmax

from bayesgen.uncertainty.interval import interval
from tests.uncertainty.cases import FAMILIES, case

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
    """Calls until a second has passed; rows per second of the fastest."""
    best, end = np.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return len(args[1]) / best, result


def main(n_rows: int) -> None:
    head = f"{'family':20s}{'D':>6s}{'C':>3s}{'draws':>10s}{'auto':>10s}{'exact':>10s}{'ratio':>8s}"
    print(f"{head}  error    routes of auto")
    for n_classes, sizes in ((2, (10, 100, 1000)), (3, (10,))):
        for name in FAMILIES:
            for n_features in sizes:
                if n_features == 1000 and name in ("lda", "qda"):
                    continue  # one draw of theta is a million numbers
                rows = n_rows if n_features < 1000 and n_classes == 2 else n_rows // 5
                model, X = case(name, n_features, 50, n_classes=n_classes, new=rows)
                draws, _ = rate(by_draws, model, X[: min(rows, max(50, 20_000 // n_features))])
                auto, found = rate(interval, model, X)
                exact, _ = rate(interval, model, X, method="exact")
                routes = ", ".join(f"{k} {v}" for k, v in Counter(found.method.tolist()).items())
                print(
                    f"{name:20s}{n_features:6d}{n_classes:3d}{draws:10.0f}{auto:10.0f}{exact:10.0f}"
                    f"{auto / draws:8.1f}  {found.error.max():.4f}   {routes}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
