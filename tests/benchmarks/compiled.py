"""What kernels gain: processor time of NumPy's form over that of the compiled one.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.compiled

The rule of the package: a kernel stays where NumPy alone would be slower than scikit-learn on a
workload of the documentation, or half as fast as the kernel.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import bayesgen as bg
from bayesgen.numerics import kernels
from tests.benchmarks.sizes import _clocks, _rows

NEVER = 1 << 62
CASES: list[tuple[str, Callable[[], Any], str, int, int]] = [
    ("GaussianNB", bg.GaussianNB, "real", 400_000, 20),
    ("GaussianNB, 5 % missing", bg.GaussianNB, "real with gaps", 30_000, 20),
    ("CategoricalNB", bg.CategoricalNB, "categories", 400_000, 20),
    ("PoissonNB", bg.PoissonNB, "counts", 30_000, 20),
    ("MultinomialNB, sparse", bg.MultinomialNB, "words", 30_000, 1000),
    ("MultinomialNB, dense", bg.MultinomialNB, "dense words", 3000, 1000),
    ("MarkovNB", bg.MarkovNB, "texts", 30_000, 20),
]


def seconds(call: Callable[[], Any], limit: int) -> float:
    """Return processor seconds of a call with kernels from so many steps on."""
    with patch.object(kernels, "COMPILE_FROM", limit):
        call()
        return _clocks(call)[0]


def main() -> None:
    """Print a row of Markdown for each workload."""
    print("| workload | fit | predict |\n|---|---:|---:|")
    for name, make, kind, n, d in CASES:
        X, y = _rows(kind, n, d)
        clf = make().fit(X, y)
        calls = partial(clf.fit, X, y), partial(clf.predict_proba, X)
        gains = [seconds(call, NEVER) / seconds(call, 0) for call in calls]
        print(
            f"| `{name}` {n} x {d} |", " | ".join(f"{gain:.1f}" for gain in gains), "|", flush=True
        )


if __name__ == "__main__":
    main()
