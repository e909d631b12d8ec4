"""Memory of `fit_stream`: rows made on the fly, 10^8 of them unless told otherwise.

    .venv/bin/python tests/benchmarks/stream_memory.py [--rows 1e8] [--features 10] [--chunk 1e6]

Prints rows a second, with and without the time that making the rows takes, and the high-water mark
of resident memory (VmHWM, Linux): after the imports and one chunk, and at the end. The limit that
it is held to is 1 GiB.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import bayesgen as bg

LIMIT = 1 << 30


def chunks(n_rows: int, n_features: int, size: int, spent: list[float]) -> Iterator[tuple]:
    """Normal rows of five classes; `spent` gets the seconds that each chunk took to make."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, n_features))
    for start in range(0, n_rows, size):
        began = time.perf_counter()
        n = min(size, n_rows - start)
        y = rng.integers(0, 5, n, dtype=np.int8)
        X = rng.standard_normal((n, n_features), dtype=np.float32)
        for c, mean in enumerate(means.astype(np.float32)):
            np.add(X, mean, out=X, where=(y == c)[:, None])
        spent.append(time.perf_counter() - began)
        yield X, y


def high_water_mark() -> int:
    """Bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("rows", 1e8), ("features", 10), ("chunk", 1e6)):
        parser.add_argument(f"--{name}", type=float, default=default)
    told = parser.parse_args()
    n, d, size = int(told.rows), int(told.features), int(told.chunk)

    bg.fit_stream(bg.GaussianNB(), chunks(min(n, size), d, size, []), progressbar=False)
    before, spent = high_water_mark(), []
    start = time.perf_counter()
    clf = bg.fit_stream(bg.GaussianNB(), chunks(n, d, size, spent))
    took = time.perf_counter() - start
    peak = high_water_mark()
    assert clf.n_rows_seen_ == n
    assert np.all(np.abs(clf.stats_.features.scatter / clf.stats_.features.n - 1) < 0.1)

    learning = took - sum(spent)
    print(f"GaussianNB, {n:.0e} rows x {d} columns of float32, chunks of {size:.0e} rows")
    print(f"{n / took:.3g} rows/s; {n / learning:.3g} rows/s without making them")
    print(
        f"high-water mark: {before / 2**20:.0f} MiB after the first chunk, {peak / 2**20:.0f} MiB"
    )
    print("within 1 GiB" if peak <= LIMIT else "MORE THAN 1 GiB")


if __name__ == "__main__":
    main()
