"""Prediction by tree-augmented naive Bayes: rows a second of a processor, ours and two packages'.

    .venv/bin/python tests/benchmarks/forest_speed.py ours --columns 20,40,80,150,300
    python forest_speed.py pgmpy     in an environment that has pgmpy, likewise pyagrum

Bits of which each depends on one other, two classes, 2000 training rows.
"""

import argparse
import logging
import time
import warnings

import numpy as np


def rows(n_columns, n, seed):
    """(n, D) bits and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.zeros((n, n_columns), dtype=int)
    X[:, 0] = rng.random(n) < 0.3 + 0.4 * y
    for j in range(1, n_columns):
        X[:, j] = rng.random(n) < 0.2 + 0.3 * X[:, j // 2] + 0.3 * (y == j % 2)
    return X, y


def models(who, X, y):
    """{name: function of rows that predicts}."""
    if who == "ours":
        import bayesgen as bg

        made = {"one tree": bg.TreeAugmentedNB(structure="tree", prior="default")}
        if X.shape[1] <= 150:
            made["average"] = bg.TreeAugmentedNB(prior="default")
        fits = {name: clf.fit(X.astype(bool), y) for name, clf in made.items()}
        return {name: lambda T, f=f: f.predict_proba(T.astype(bool)) for name, f in fits.items()}
    import pandas as pd

    names = [f"x{j}" for j in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    if who == "pyagrum":
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        options = {"prior": "Smoothing", "priorWeight": 1, "learningMethod": "TAN"}
        clf = BNClassifier(type_processor=DiscreteTypeProcessor(), **options)
        clf.fit(X=table.astype(str), y=y.astype(str))
        return {who: lambda T: clf.predict_proba(pd.DataFrame(T, columns=names).astype(str))}
    from pgmpy.estimators import TreeSearch
    from pgmpy.models import DiscreteBayesianNetwork

    table["y"] = y
    search = TreeSearch(table, root_node="x0", n_jobs=1)
    graph = search.estimate(estimator_type="tan", class_node="y", show_progress=False)
    model = DiscreteBayesianNetwork(graph.edges())
    model.fit(table)
    return {who: lambda T: model.predict_probability(pd.DataFrame(T, columns=names))}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("who", choices=("ours", "pgmpy", "pyagrum"))
    parser.add_argument("--columns", default="20,60")
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for d in map(int, options.columns.split(",")):
        X, y = rows(d, 2000, 0)
        T, _ = rows(d, options.rows, 1)
        for name, predict in models(options.who, X, y).items():
            predict(T[:50])  # compiles
            seconds = []
            for _ in range(3):
                start = time.process_time()
                predict(T)
                seconds.append(time.process_time() - start)
            each = len(T) / np.median(seconds)
            print(f"{name:14s} {d:4d} columns {each:10.0f} rows a second", flush=True)


if __name__ == "__main__":
    main()
