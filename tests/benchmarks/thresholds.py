"""From what size on kernels pay: what loading costs a process, and the size where both forms meet.

    python -m tests.benchmarks.thresholds

The first part runs fresh processes, whose machine code is on disk. The second prints processor
seconds of predict_proba, by NumPy and compiled, over sizes: the first threshold of
`bayesgen.numerics.kernels` is where NumPy takes as long as loading the first kernel of a process,
the second where it takes as long as a kernel that is loaded. Five classes.
"""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from rich.console import Console

import bayesgen as bg
from bayesgen.numerics import kernels
from tests.benchmarks import tables
from tests.benchmarks.measure import ROOT
from tests.benchmarks.sizes import _clocks, _rows

KINDS = {
    "GaussianNB": "real",
    "CategoricalNB": "categories",
    "BernoulliNB": "bits",
    "PoissonNB": "counts",
    "MultinomialNB": "words",
    "LinearDiscriminant": "real",
}
SIZES = ((150, 4), (150, 20), (500, 20), (1500, 20), (6000, 20), (30_000, 20))
LOADING = """
import sys, time
import numpy as np, bayesgen as bg
{first}
from bayesgen.numerics import kernels
X = np.random.default_rng(0).standard_normal((1500, 20))
fitted = bg.GaussianNB().fit(X, np.arange(1500) % 5)
fitted.predict_proba(X)
kernels.COMPILE_FROM = 0
start = time.process_time()
fitted.predict_proba(X)
print(time.process_time() - start)
"""


def loading(first: str = "") -> float:
    """Processor seconds of the first compiled prediction of a fresh process, best of three."""
    command = [sys.executable, "-c", LOADING.format(first=first)]
    runs = [subprocess.check_output(command, cwd=ROOT, text=True) for _ in range(4)]
    return min(map(float, runs[1:]))


def measured() -> Iterator[list[str]]:
    """A line for each classifier and size: steps, NumPy's time, the kernel's, their ratio."""
    limit = kernels.COMPILE_FROM
    for name, kind in KINDS.items():
        for size in SIZES:
            X, y = _rows(kind, *size)
            fitted = getattr(bg, name)().fit(X, y)
            seconds = []
            for kernels.COMPILE_FROM in (1 << 62, 0):
                fitted.predict_proba(X)
                runs = [_clocks(lambda: fitted.predict_proba(X))[1] for _ in range(5)]  # noqa: B023
                seconds.append(float(np.median(runs)))
            kernels.COMPILE_FROM = limit
            steps = f"2^{np.log2(5 * X.size):.1f}"
            size_of = f"{size[0]:g} x {size[1]}"
            yield [
                name,
                size_of,
                steps,
                *map(tables.duration, seconds),
                f"{seconds[0] / seconds[1]:.2g}",
            ]


def main() -> None:
    """Print both parts."""
    print(f"first kernel of a process: {tables.duration(loading())}")
    print(f"of one with numba loaded: {tables.duration(loading('import numba'))}")
    head = ("classifier", "size", "steps", "NumPy", "kernel", "ratio")
    title = "Processor time of predict_proba in both forms"
    Console(width=100).print(tables.on_terminal(title, head, list(measured())))


if __name__ == "__main__":
    main()
