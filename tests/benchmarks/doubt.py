"""Which class probabilities by draws are named as doubtful, against the closed form.

    python -m tests.benchmarks.doubt    # about 10 seconds

Small fits of four kinds, 60 new rows each, 1000 draws. A probability is off if it differs by more
than .02 from the closed form, and far off by more than .1. `posterior/drawn.py` takes the least
width that leaves at most 1.5 % of those that are far off without a warning, by the first half of
the seeds; the second half tells what it is worth.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import bayesgen as bg
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior import drawn
from tests.benchmarks import run

WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4)
SEEDS = range(40)
CHOSEN_BY = 20
N_DRAWS = 1000


def fits(seed: int) -> Iterator[tuple[str, Any, Array]]:
    """Yield small fits, and new rows that are spread twice as widely as those of training."""
    rng = np.random.default_rng(seed)
    n_classes, n_columns = int(rng.integers(2, 5)), int(rng.integers(3, 25))
    y = np.repeat(np.arange(n_classes), rng.integers(3, 12))
    centres = rng.normal(size=(n_classes, n_columns))
    X = centres[y] + rng.normal(size=(len(y), n_columns))
    new = centres[rng.integers(n_classes, size=60)] + 2 * rng.normal(size=(60, n_columns))
    yield "GaussianNB", bg.GaussianNB(prior="default").fit(X, y), new
    few = min(n_columns, 4)
    yield "QDA", bg.QuadraticDiscriminant(prior="default").fit(X[:, :few], y), new[:, :few]
    counts = bg.PoissonNB(prior="default").fit(rng.poisson(np.exp(X)), y)
    yield "PoissonNB", counts, rng.poisson(np.exp(new))
    codes = (np.digitize(rows, [-1, 0, 1]).astype(float) for rows in (X, new))
    yield "CategoricalNB", bg.CategoricalNB(prior="default").fit(next(codes), y), next(codes)


def counted(seed: int) -> dict[str, list[int]]:
    """Return, for each width, rows that are off, of these named, far off, of these not, false."""
    counts = {str(width): np.zeros(6, dtype=int) for width in WIDTHS}
    for _, clf, rows in fits(seed):
        X, posterior = clf.fitted_.encoded(rows), clf.fitted_.posterior
        theta = posterior.draw(np.random.default_rng([seed, 1]), N_DRAWS // 4, 4)
        by_draws = posterior.with_draws(theta, exact_weights=True)
        exact = np.exp(log_softmax(posterior.log_joint(X)))
        for width in WIDTHS:
            with mock.patch.object(drawn, "_WIDTH", width):
                estimate = by_draws.monte_carlo(X)
            error = np.abs(estimate.probability - exact).max(axis=1)
            named = estimate.probability_in_doubt()
            off, far = error > 0.02, error > 0.1
            counts[str(width)] += [
                off.sum(), (off & named).sum(), far.sum(), (far & ~named).sum(),
                (~off).sum(), (~off & named).sum(),
            ]  # fmt: skip
    return {width: values.tolist() for width, values in counts.items()}


def measure(record: run.Record, args: run.Arguments) -> None:
    """Count each seed."""
    for seed in SEEDS:
        record.measure(f"seed|{seed}", partial(counted, seed))


def table(record: run.Record) -> str:
    """Return a line for each width, of the seeds that chose it and of the others."""
    frame = record.frame("what seed").reset_index()
    is_first = frame["seed"].astype(int) < CHOSEN_BY
    body = []
    for width in map(str, WIDTHS):
        cells = []
        for seeds in (is_first, ~is_first):
            n = np.sum(frame.loc[seeds, width].tolist(), axis=0)
            off, off_named, far, far_missed, right, false = n.tolist()
            cells += [f"{off_named / off:.0%} of {off}", f"{far_missed} of {far}",
                      f"{false / right:.0%} of {right}"]  # fmt: skip
        body.append([width, *cells])
    head = ["width", "off: named", "far off: not", "right: named", "other seeds, off: named",
            "far off: not", "right: named"]  # fmt: skip
    return run.markdown(head, body)


TABLES = {None: table}

if __name__ == "__main__":
    run.main(__doc__ or "", __file__, measure, TABLES)
