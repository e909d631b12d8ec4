"""Averaged forests beside naive Bayes on the same bins, on the open sets.

    .venv/bin/python -m tests.benchmarks.forests [--only german,votes] [--splits 5]
    .venv/bin/python -m tests.benchmarks.forests --table    # forests.json (--update: the page)

One line for each set, size, split and model: log loss, expected calibration error, the paired
difference from naive Bayes with its standard error, and the processor seconds of the fit. A model
loses where it is worse by more than 2 % and two standard errors. "TAN" is the classifier of
Friedman et al. (1997) with posterior means: one tree for all classes, by mutual information given
the class. Logistic regression, random forests and boosting are those of ``pool_peers.json``, on the
columns as they are.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.metrics import mutual_info_score

import bayesgen as bg
from tests.benchmarks import pool_peers
from tests.benchmarks.open_sets import SHARED, keep, load, results, scores, splits, take
from tests.benchmarks.tables import markdown, write_between

FILE = Path(__file__).with_name("forests.json")
FOREST = partial(bg.TreeAugmentedNB, missing="category")
MODELS = {
    "naive": lambda X, y: FOREST(structure="fixed", edges=np.zeros((X.shape[1],) * 2)),
    "best tree": lambda X, y: FOREST(structure="tree"),
    "TAN": lambda X, y: FOREST(structure="fixed", edges=tan(X, y)),
    "forest by evidence": lambda X, y: FOREST(prior="default"),
    "forest": lambda X, y: FOREST(),
    "forest, exponent": lambda X, y: bg.LogLinearPool([FOREST()]),
}
PEERS = ("LR-CV", "RF", "HGB")
SETS = (
    "banana,breast_cancer,german,ionosphere,iris,letter,penguins,pokemon,segment,splice,tictactoe,"
    "vehicle,votes,wine"
)
CATEGORIES = ("german", "splice", "tictactoe", "votes")
SIZES = ("two thirds", "20 per class")


def tan(X, y):
    """(D, D) edges of the tree of the largest mutual information of pairs given the class."""
    codes = MODELS["naive"](X, y).fit(X, y).fitted_.encoded(X)
    n = codes.shape[1]
    information = np.zeros((n, n))
    for u in range(n):
        for v in range(u):
            for label in np.unique(y):
                own = codes[y == label]
                part = mutual_info_score(own[:, u], own[:, v])
                information[u, v] += len(own) / len(y) * part + 1e-9  # zero is no edge to SciPy
    tree = minimum_spanning_tree(-information).toarray() != 0
    return (tree | tree.T).astype(float)


def measure(folder, only, n_splits):
    """Add what is not in the file."""
    known = results(FILE)
    every = load(folder)
    for s in (every[name] for name in only if name in every):
        for size, seed, rows, test in splits(s.y, n_splits):
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            codes, naive = np.searchsorted(np.unique(y), s.y[test]), None
            for name, make in MODELS.items():
                key = f"{s.name}|{size}|{seed}|{name}"
                if key in known and name != "naive":
                    continue
                start = time.process_time()
                clf = make(X, y).fit(X, y)
                seconds = time.process_time() - start
                loss, error = scores(clf.predict_proba(T), codes)
                naive = loss if naive is None else naive
                gap = loss - naive
                numbers = loss.mean(), error, gap.mean(), gap.std() / np.sqrt(len(gap)), seconds
                known[key] = [round(float(v), 5) for v in numbers]
            keep(FILE, known)
            print(s.name, size, seed, flush=True)


def means(known, peers, size):
    """{set: {model: (log loss, calibration error, splits lost to naive Bayes, set lost)}}."""
    out = {}
    for s in sorted({key.split("|")[0] for key in known}):
        seeds = sorted({k.split("|")[2] for k in known if k.startswith(f"{s}|{size}|")})
        out[s] = {}
        for name in (*MODELS, *PEERS):
            every = peers | known  # boosting of 26 letters was not measured
            own = [every.get(f"{s}|{size}|{seed}|{name}", [np.nan] * 2) for seed in seeds]
            lost = (0, False) if name in PEERS else (sum(_loses(*v) for v in own), _lost(own))
            out[s][name] = *np.mean([v[:2] for v in own], axis=0), *lost
    return out


def _lost(splits):
    """Whether the mean over splits loses, by the larger of the errors of splits and of rows."""
    loss, _, gap, _, _ = np.mean(splits, axis=0)
    _, _, gaps, errors, _ = np.transpose(splits)
    of_splits = gaps.std(ddof=1) if len(gaps) > 1 else 0.0
    error = max(of_splits, np.sqrt(np.mean(errors**2))) / np.sqrt(len(gaps))
    return _loses(loss, 0.0, gap, error, 0.0)


def _loses(loss, _, gap, se, __):
    return gap > max(0.02 * (loss - gap), 2 * se)


def table():
    """Summaries over the sets; `means` has the log loss of each."""
    known, peers = results(FILE), results(pool_peers.FILE)
    names = (*MODELS, *PEERS)
    summary = {n: [n] for n in names}
    for size in SIZES:
        found = means(known, peers, size)
        for n in names:
            own = [of[n] for of in found.values()]
            summary[n] += [
                f"{_over('naive', found, n, found):.2f}",
                "" if n in PEERS else f"{sum(v[3] for v in own)}",
                f"{np.nanmean([error for _, error, *_ in own]):.3f}",
                f"{_over('LR-CV', found, n, CATEGORIES):.2f}",
            ]
    head = ("over naive", "sets lost", "error", "over LR-CV")
    head = tuple(f"{what}, {size}" for size in SIZES for what in head)
    return markdown(("classifier", *head), list(summary.values()), 1)


def _over(base, found, name, sets):
    """Geometric mean over sets that both were measured on."""
    return np.exp(np.nanmean([np.log(found[s][name][0] / found[s][base][0]) for s in sets]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=SETS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args()
    if not (given.table or given.update):
        measure(given.shared, given.only.split(","), given.splits)
    if given.update:
        write_between("forests", table())
    print(table())
