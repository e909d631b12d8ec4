"""Averaged forests, single trees and naive Bayes on the same bins, and methods that do not bin.

    python -m tests.benchmarks.forests

"TAN" is the classifier of Friedman et al. (1997) with posterior means: one tree for all classes, by
mutual information given the class. A set is lost where the log loss exceeds that of naive Bayes by
more than 2 %, and by a paired t test over splits at the level of 5 %.
"""

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import t
from sklearn.metrics import mutual_info_score

import bayesgen as bg
from tests.benchmarks import run, scoring, sets
from tests.benchmarks.peers import HGB, LR, RF, peers

SETS = ("banana", "breast_cancer", "german", "ionosphere", "iris", "letter", "penguins", "pokemon",
        "segment", "splice", "tictactoe", "vehicle", "votes", "wine")  # fmt: skip
CATEGORIES = ["german", "splice", "tictactoe", "votes"]
FOREST = partial(bg.TreeAugmentedNB, missing="category")


def naive(n_columns: int) -> Any:
    """Return the classifier without an edge."""
    return FOREST(structure="fixed", edges=np.zeros((n_columns, n_columns)))


class TAN:
    """The tree of the largest mutual information of pairs of columns given the class."""

    def fit(self, X: Any, y: np.ndarray) -> "TAN":
        """Learn tree and tables."""
        codes = naive(X.shape[1]).fit(X, y).fitted_.encoded(X)
        information = np.zeros((X.shape[1], X.shape[1]))
        for u, v in zip(*np.tril_indices(X.shape[1], -1), strict=True):
            for label in np.unique(y):
                of_class = codes[y == label]
                shared = mutual_info_score(of_class[:, u], of_class[:, v])
                information[u, v] += (
                    len(of_class) / len(y) * shared + 1e-9
                )  # zero is no edge to SciPy
        tree = minimum_spanning_tree(-information).toarray() != 0
        self.classifier = FOREST(structure="fixed", edges=(tree | tree.T).astype(float)).fit(X, y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities."""
        return self.classifier.predict_proba(X)


def models(s: sets.OpenSet, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return {name: unfitted classifier}; boosting of 26 letters takes hours."""
    classifiers = {
        "naive": naive(X.shape[1]),
        "best tree": FOREST(structure="tree"),
        "TAN": TAN(),
        "forest by evidence": FOREST(prior="default"),
        "forest": FOREST(),
        "forest, exponent": bg.LogLinearPool([FOREST()]),
    } | peers(X, y)
    return {name: classifiers[name] for name in classifiers if (s.name, name) != ("letter", HGB)}


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure five splits of each set."""
    every = sets.load(args.data)
    scoring.losses(record, [every[n] for n in SETS if n in every], sets.splits, models)


def table(record: run.Record) -> str:
    """Return geometric means over sets, sets that are lost, and calibration errors."""
    results = scoring.frame(record)
    names = [*dict.fromkeys(results.index.get_level_values("model"))]
    cells: dict[str, list[str]] = {name: [name] for name in names}
    for _, of_size in results.groupby("size", sort=False):
        by_split = of_size["loss"].unstack("model")
        gap = by_split.sub(by_split["naive"], axis=0).groupby("set")
        losses, errors = (
            of_size[what].groupby(["set", "model"]).mean().unstack() for what in ("loss", "error")
        )
        clear = gap.mean() > t.ppf(0.975, gap.size() - 1)[:, None] * gap.sem()
        lost = clear & gap.mean().gt(0.02 * losses["naive"], axis=0)
        of_categories = losses.loc[losses.index.isin(CATEGORIES)]
        for name in names:
            cells[name] += [
                f"{run.geometric(losses[name] / losses['naive'])[0]:.2f}",
                "" if name in (LR, RF, HGB) else f"{lost[name].sum()}",
                f"{errors[name].mean():.3f}",
                f"{run.geometric(of_categories[name] / of_categories[LR])[0]:.2f}",
            ]
    what = ("over naive", "sets lost", "error", "over logistic regression")
    head = [f"{text}, {size}" for size in ("two thirds", "20 per class") for text in what]
    return run.markdown(["classifier", *head], [*cells.values()])


TABLES = {"forests": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
