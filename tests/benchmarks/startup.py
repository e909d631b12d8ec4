"""Seconds of fresh processes, ours beside scikit-learn's in turn: import, a small fit, --help."""

import subprocess
import sys
import time

import numpy as np

from tests.benchmarks.measure import ROOT

_ROWS = "import numpy as np; r = np.random.default_rng(0); X = r.normal(size=(150, 4)); "
_SMALL = _ROWS + "y = np.arange(150) % 3; GaussianNB().fit(X, y).predict_proba(X)"

PROCESSES = {
    "import": (
        ["-c", "from sklearn.naive_bayes import GaussianNB"],
        ["-c", "from bayesgen import GaussianNB"],
    ),
    "import, GaussianNB fit and predict of 150 rows": (
        ["-c", "from sklearn.naive_bayes import GaussianNB; " + _SMALL],
        ["-c", "from bayesgen import GaussianNB; " + _SMALL],
    ),
    "command line, bayesgen --help": (  # scikit-learn has no command line: its import stands in
        ["-c", "import sklearn.naive_bayes"],
        ["-m", "bayesgen", "--help"],
    ),
    "import alone, beside import numpy": (
        ["-c", "import numpy"],
        ["-c", "import bayesgen"],
    ),
}


def _seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measured(name: str, runs: int = 5) -> dict:
    """Medians of both; the first pair, which fills the file cache, is left out."""
    peer, ours = PROCESSES[name]
    times = np.array([[_seconds(peer), _seconds(ours)] for _ in range(runs + 1)])[1:]
    medians = np.median(times, axis=0)
    return {
        "name": f"start-up: {name}",
        "size": "",
        "peer": "NumPy" if peer == ["-c", "import numpy"] else "scikit-learn",
        "goal": None,
        "peer_s": float(medians[0]),
        "ours_s": float(medians[1]),
        "ratio": float(medians[0] / medians[1]),
        "runs": runs,
    }
