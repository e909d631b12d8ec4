"""How time grows: t ~ n^b, with b by least squares of log t on log n, and its standard error.

Each exponent is local: it belongs to the sizes stated, one of which varies while the others stand.
A constant part (validation, start of threads) pulls it below the order of the algorithm, caches
that overflow push it above. Sizes are such that all take the compiled form (`numerics.kernels`).
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import bayesgen as bg
from tests.benchmarks.measure import no_garbage_collection

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "GaussianNB": bg.GaussianNB,
    "BernoulliNB": bg.BernoulliNB,
    "LDA": bg.LinearDiscriminant,
    "QDA": bg.QuadraticDiscriminant,
}
STANDING = {
    "GaussianNB": {"N": 500_000, "D": 20, "C": 5},
    "BernoulliNB": {"N": 50_000, "D": 200, "C": 5},
    "LDA": {"N": 40_000, "D": 64, "C": 5},
    "QDA": {"N": 40_000, "D": 64, "C": 5},
}
VARYING = {
    "GaussianNB": {
        "N": (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000),
        "D": (10, 20, 40, 80, 160),
        "C": (2, 4, 8, 16, 32),
    },
    "BernoulliNB": {
        "N": (25_000, 50_000, 100_000, 200_000, 400_000),
        "D": (100, 200, 400, 800, 1600),
        "C": (2, 4, 8, 16, 32),
    },
    "LDA": {
        "N": (10_000, 20_000, 40_000, 80_000, 160_000),
        "D": (16, 32, 64, 128, 256),
        "C": (2, 4, 8, 16, 32),
    },
    "QDA": {
        "N": (10_000, 20_000, 40_000, 80_000, 160_000),
        "D": (16, 32, 64, 128, 256),
        "C": (2, 4, 8, 16, 32),
    },
}
DRAWS = (100, 200, 400, 800, 1600)
DRAWN = {"N": 1000, "D": 10, "C": 3}
RUNS = 5


class Growth(NamedTuple):
    """Exponent of the time of one operation in one size."""

    classifier: str
    operation: str
    size: str
    exponent: float
    se: float
    sizes: list[int]
    seconds: list[float]


def exponent(sizes: Any, times: Any) -> tuple[float, float]:
    """Slope of log time on log size, and its standard error.

    Examples
    --------
    >>> b, se = exponent([1, 2, 4, 8, 16], [3, 12, 48, 192, 768])
    >>> round(b, 9), bool(se < 1e-9)
    (2.0, True)
    """
    x, t = np.log(np.asarray(sizes, float)), np.log(np.asarray(times, float))
    x = x - x.mean()
    slope = float(x @ t / (x @ x))
    rest = t - t.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / max(1, len(x) - 2) / (x @ x)))


def _rows(name: str, n: int, d: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = np.arange(n) % c
    X = rng.standard_normal((n, d), np.float32).astype(np.float64)
    return ((X > 0).astype(np.float64) if name == "BernoulliNB" else X), y


def _least(calls: list[Callable[[], Any]]) -> list[float]:
    """Seconds of all sizes in turn, so that a change of the machine's load meets them all.

    The least of some runs, without a rest between them: processors that wake up, and other work,
    add what is much of a short call and nothing of a long one.
    """
    with no_garbage_collection():
        for call in calls:
            call()
        return np.min([[_seconds(call) for call in calls] for _ in range(RUNS)], axis=0).tolist()


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _calls(name: str, operation: str, size: dict[str, int]) -> Callable[[], Any]:
    make = CLASSIFIERS[name]
    X, y = _rows(name, size["N"], size["D"], size["C"])
    if operation == "fit":
        return lambda: make().fit(X, y)
    clf = make().fit(X[:5000], y[:5000])
    if operation == "predict":
        return lambda: clf.predict_proba(X)
    return lambda: clf.predict_posterior(X, draws=size["S"])


def cases(scale: float = 1.0) -> Iterator[tuple[str, str, str, list[dict[str, int]]]]:
    """(classifier, operation, size that varies, all sizes)."""
    for name in CLASSIFIERS:
        for operation in ("fit", "predict"):
            for size, values in VARYING[name].items():
                sizes = [STANDING[name] | {size: value} for value in values]
                yield (
                    name,
                    operation,
                    size,
                    [s | {"N": max(500, int(s["N"] * scale))} for s in sizes],
                )
        yield name, "draws", "S", [DRAWN | {"S": s} for s in DRAWS]


def measured(name: str, operation: str, varying: str, sizes: list[dict[str, int]]) -> Growth:
    """One exponent."""
    times = _least([_calls(name, operation, size) for size in sizes])
    values = [size[varying] for size in sizes]
    return Growth(name, operation, varying, *exponent(values, times), values, times)
