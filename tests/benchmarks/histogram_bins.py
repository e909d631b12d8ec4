"""Number of bins and pseudo-count of HistogramNB on the open sets, beside GaussianNB.

    .venv/bin/python -m tests.benchmarks.histogram_bins [--only iris,wine] [--splits 2]

Real columns alone, rows of both sizes of `open_sets.splits`: for each number of bins and alpha the
geometric mean over sets of the log loss, over that of (2N)^(1/3) bins and alpha 0.5.
"""

import argparse
import warnings

import numpy as np

import bayesgen as bg
from tests.benchmarks.open_sets import load, scores, splits, take

BINS = {
    "5": lambda n: 5,
    "8": lambda n: 8,
    "12": lambda n: 12,
    "N^(1/3)": lambda n: int(np.clip(round(n ** (1 / 3)), 4, 20)),
    "(2N)^(1/3)": lambda n: int(np.clip(round((2 * n) ** (1 / 3)), 5, 20)),
    "N^(1/2)": lambda n: int(np.clip(round(n**0.5), 5, 40)),
}
ALPHAS = (0.25, 0.5, 1.0)
MOST_ROWS = 3000


def reals(only):
    """Sets with real columns, those alone."""
    for s in load().values():
        if s.kind in ("real", "mixed") and (not only or s.name in only):
            X = s.X.select_dtypes("number").astype(float)
            rows = np.random.default_rng(0).permutation(len(s.y))[:MOST_ROWS]
            yield s.name, take(X, rows), s.y[rows]


def measure(only, n_splits):
    """{(size, rule, alpha): {set: mean log loss}}."""
    out = {}
    for name, X, y in reals(only):
        for size, _, rows, test in splits(y, n_splits):
            codes = np.searchsorted(np.unique(y), y[test])
            found = {("GaussianNB", 0.0): bg.GaussianNB()}
            for rule, n_bins in BINS.items():
                for alpha in ALPHAS:
                    found[rule, alpha] = bg.HistogramNB(alpha, n_bins=n_bins(len(rows)))
            for key, clf in found.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    p = clf.fit(take(X, rows), y[rows]).predict_proba(take(X, test))
                loss = scores(p, codes)[0].mean()
                out.setdefault((size, *key), {}).setdefault(name, []).append(loss)
        print(name, X.shape, flush=True)
    return {key: {k: np.mean(v) for k, v in sets.items()} for key, sets in out.items()}


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args()
    out = measure(options.only.split(",") if options.only else None, options.splits)
    for size in ("two thirds", "20 per class"):
        base = out[size, "(2N)^(1/3)", 0.5]
        print(f"\n{size}: geometric mean of log loss, against (2N)^(1/3) and alpha 0.5")
        for (of, rule, alpha), loss in out.items():
            if of == size:
                ratio = np.exp(np.mean([np.log(loss[k] / base[k]) for k in base]))
                print(f"{rule:12s} alpha {alpha:<5} {ratio:.3f}")
        gauss = out[size, "GaussianNB", 0.0]
        print(*(f"{k}: {base[k]:.3f} (GaussianNB {gauss[k]:.3f})" for k in base), sep="\n")


if __name__ == "__main__":
    main()
