"""Which labels are wrong? Labels flipped on purpose, and what `bayesgen.label_errors` says of them.

    python -m tests.benchmarks.label_errors    # 20 minutes

At most 1000 rows of each table. A share of the labels is changed to another class drawn from the
others ("random"), or, as often, to the runner-up of cross-validated logistic regression in rows
drawn by how doubtful it is of them ("near"). Log loss of "this label is wrong": `label_errors`, one
minus the exact leave-one-out probability of the label, and one minus that of logistic regression on
standardised columns in five folds.
"""

from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg
from tests.benchmarks import run, sets

NOISE = (("random", 0.0), ("random", 0.05), ("random", 0.2), ("near", 0.05), ("near", 0.2))
MODELS = {
    "pool of the three below": lambda: bg.LogLinearPool(
        [bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()]
    ),
    "`LinearDiscriminant`": bg.LinearDiscriminant,
    "`QuadraticDiscriminant`": bg.QuadraticDiscriminant,
    "`GaussianNB`": bg.GaussianNB,
}


def flipped(X: np.ndarray, y: np.ndarray, kind: str, share: float) -> np.ndarray:
    """Return labels with a share of them changed."""
    rng, of_labels, n_classes = np.random.default_rng(0), (np.arange(len(y)), y), len(np.unique(y))
    labels = y.copy()
    if kind == "random":
        rows = rng.choice(len(y), size=round(share * len(y)), replace=False)
        labels[rows] = (y[rows] + rng.integers(1, n_classes, size=len(rows))) % n_classes
    else:
        p = by_regression(X, y)
        doubt = 1 - p[of_labels] + 1e-3
        rows = rng.choice(len(y), round(share * len(y)), replace=False, p=doubt / doubt.sum())
        p[of_labels] = -1
        labels[rows] = p[rows].argmax(axis=1)
    return labels


def by_regression(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return class probabilities (N, C) of each row by a fit to other folds."""
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return cross_val_predict(regression, X, y, cv=folds, method="predict_proba")


def losses(X: np.ndarray, y: np.ndarray, model: str, kind: str, share: float) -> list[float]:
    """Return log losses of the three ways, and the mean probability of `label_errors`."""
    labels = flipped(X, y, kind, share)
    wrong = labels != y
    clf = MODELS[model]().fit(X, labels)
    p_wrong = bg.label_errors(clf, X, labels)["wrong"].values
    left_out = 1 - np.exp(clf.loo(X, labels).elpd_i.values)
    regression = 1 - by_regression(X, labels)[np.arange(len(y)), labels]
    values = [p_wrong.mean()]
    for p in (regression, left_out, p_wrong):
        q = np.clip(p, 1e-12, 1 - 1e-12)
        values.insert(0, -np.mean(np.where(wrong, np.log(q), np.log1p(-q))))
    return [round(float(value), 5) for value in values]


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure each table, model and kind of noise."""
    for name in sets.real_sets(args.data):
        if name not in ("banana", "letter"):
            X, y = sets.numbers(name, args.data)
            rows = np.sort(np.random.default_rng(0).permutation(len(y))[:1000])
            for model in MODELS:
                for kind, share in NOISE:
                    call = partial(losses, X[rows], y[rows], model, kind, share)
                    record.measure(f"{name}|{model}|{kind}|{share}", call)


def table(record: run.Record) -> str:
    """Return ratios of log loss over tables by model, with random noise."""
    results = record.frame("set model kind share", "found left_out regression mean")
    results["ratio"] = results["found"] / results["left_out"]
    results["ahead"] = results["found"] < results["regression"]
    body = []
    for name, of_model in results.groupby("model", sort=False):
        clean, *of = (
            of_model.query("kind == 'random' and share == @s") for s in ("0.0", "0.05", "0.2")
        )
        largest = [f"{run.short(v['ratio'].max())} ({v['ahead'].sum()})" for v in of]
        halved = " and ".join(str((v["ratio"] <= 0.5).sum()) for v in of)
        body.append([name, *largest, halved, run.short(clean["mean"].max(), 3)])
    head = ["classifier", "5 % wrong: largest ratio", "20 %: largest ratio", "ratios at most ½",
            "clean labels: largest mean"]  # fmt: skip
    return run.markdown(head, body)


def near(record: run.Record) -> str:
    """Return the range of the ratios where labels were changed to their runner-up."""
    results = record.frame("set model kind share", "found left_out regression mean")
    of = results.query("kind == 'near'")
    ratios = (of["found"] / of["left_out"]).groupby("share").agg(["min", "max"])
    return f"runner-up, log loss over that of one minus leave-one-out:\n{ratios.round(2)}"


TABLES = {"label-errors": table, None: near}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
