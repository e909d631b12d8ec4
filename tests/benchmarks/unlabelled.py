"""Rows without a label: what they add to a few labels per class, and when they hurt.

    python -m tests.benchmarks.unlabelled    # half an hour

At most 500 rows of each table; 5 or 10 of each class have their label, a third of the others are
test rows, the rest has no label. Test log loss of the fit to the labelled rows; and over it that of
``unlabelled="weighted"``, of weight 1 (what Bayes' rule says if the model is right, by the same
passes), and of self-training (rows with a class of probability .75 and more get it as their label,
ten times).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import bayesgen as bg
from tests.benchmarks import run, sets
from tests.benchmarks.sets import OpenSet, take

MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "real": {"GaussianNB": bg.GaussianNB, "LinearDiscriminant": bg.LinearDiscriminant},
    "mixed": {"MixedNB": bg.MixedNB, "TreeAugmentedNB": bg.TreeAugmentedNB},
    "categories": {"CategoricalNB": bg.CategoricalNB, "TreeAugmentedNB": bg.TreeAugmentedNB},
    "bits": {"BernoulliNB": bg.BernoulliNB, "MultinomialNB": bg.MultinomialNB},
    "text": {"MarkovNB(1)": partial(bg.MarkovNB, 1), "MarkovNB(2)": partial(bg.MarkovNB, 2)},
}
WIDEST_TREE = 30  # columns; wider tables have naive Bayes of pooled strength in its place


def models(table: OpenSet) -> dict[str, Callable[[], Any]]:
    """Return {name: how a classifier of the columns is made}."""
    makers = dict(MODELS[table.kind])
    if "TreeAugmentedNB" in makers and table.X.shape[1] > WIDEST_TREE:
        del makers["TreeAugmentedNB"]
        makers["CategoricalNB(alpha=.5)"] = partial(bg.CategoricalNB, alpha=0.5)
    return makers


def self_trained(clf: Any, X: Any, y: np.ndarray) -> Any:
    """Return a classifier; rows without a label (-1) get one once it is probable enough."""
    labels = y.copy()
    for _ in range(10):
        labelled, others = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        clf.fit(take(X, labelled), labels[labelled])
        if not len(others):
            break
        p = clf.predict_proba(take(X, others))
        sure = p.max(axis=1) >= 0.75
        labels[others[sure]] = clf.classes_[p[sure].argmax(axis=1)]
        if not sure.any():
            break
    return clf


def losses(table: OpenSet, make: Callable[[], Any], n: int, seed: int) -> list[float]:
    """Return the test log losses of the four ways, and the weight of "weighted"."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(table.y))[:500]
    X, y = take(table.X, rows), np.unique(table.y[rows], return_inverse=True)[1]
    labelled = np.concatenate([np.flatnonzero(y == c)[:n] for c in range(y.max() + 1)])
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), labelled))
    test, train = others[: len(others) // 3], np.sort(np.r_[labelled, others[len(others) // 3 :]])
    X_train, labels = take(X, train), np.where(np.isin(train, labelled), y[train], -1)
    alone = make().fit(X_train, labels, unlabelled="ignore")
    weighted = make().fit(X_train, labels, unlabelled="weighted")
    whole = make()
    whole.fitted_ = whole._learner()._weighed(X_train, labels, None, (1.0,))
    of_labels, X_test = (np.arange(len(test)), y[test]), take(X, test)
    fits = (alone, weighted, whole, self_trained(make(), X_train, labels))
    values = [-np.maximum(clf.predict_log_proba(X_test)[of_labels], -690).mean() for clf in fits]
    return [round(float(value), 5) for value in (*values, weighted.unlabelled_weight_)]


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure four draws of each table and number of labels."""
    open_sets = sets.load(args.data)
    bits = open_sets["digits"]._replace(
        name="digits bits", X=open_sets["digits"].X > 7, kind="bits"
    )
    for table in (*open_sets.values(), bits, sets.languages()):
        for model, make in models(table).items():
            for n in (5, 10):
                for seed in range(4):
                    call = partial(losses, table, make, n, seed)
                    record.measure(f"{table.name}|{model}|{n}|{seed}", call)


def table(record: run.Record) -> str:
    """Return ratios to the fit to labelled rows, over pairs of table and model."""
    results = record.frame("set model labels seed", "alone weighted whole self weight")
    means = results.groupby(["set", "model", "labels"]).mean()
    names = {"weighted": '`unlabelled="weighted"`', "whole": "of weight 1", "self": "self-training"}
    body = []
    for way, name in names.items():
        ratios = means[way] / means["alone"]
        cells = f"{run.geometric(ratios)[0]:.2f}", str((ratios > 1.05).sum()), f"{ratios.max():.2f}"
        body.append([name, *cells])
    head = ["unlabelled rows are", "geometric mean", "pairs above 1.05", "largest"]
    return f"{run.markdown(head, body)}\n\n{len(means)} pairs of table and model."


TABLES = {"unlabelled": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
