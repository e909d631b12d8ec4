"""What integrating the parameters out gains over plugging an estimate in, on sets anybody has.

    python -m tests.benchmarks.plug_ins    # some minutes

Log loss of at most 1000 held-out rows, averaged over random splits: with so many training rows per
class, the same classifier with its parameters integrated out, and with an estimate plugged in.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import bayesgen as bg
from tests.benchmarks import run, sets

ROWS = (5, 20, 100)  # per class
SPLITS = 10
METHODS = ("posterior_predictive", "posterior_mean", "mle")
OPEN = ("penguins", "iris", "wine", "breast_cancer", "digits")


def cases() -> Iterator[tuple[str, Callable[[], Any], str, np.ndarray, np.ndarray]]:
    """Yield (classifier, how it is made, set, rows, labels)."""
    for name in OPEN:
        X, y = sets.numbers(name)
        for make in (bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant):
            yield f"`{make.__name__}`", make, name, X, y
        cuts = np.quantile(X, [0.2, 0.4, 0.6, 0.8], axis=0)
        bins = np.array([np.searchsorted(c, x) for c, x in zip(cuts.T, X.T, strict=True)]).T
        yield "`CategoricalNB`, 5 bins", partial(bg.CategoricalNB, categories=5), name, bins, y
    texts = sets.languages()
    letters = "abcdefghijklmnopqrstuvwxyz"
    counts = np.array([[text.lower().count(letter) for letter in letters] for text in texts.X])
    y = np.unique(texts.y, return_inverse=True)[1]
    yield "`MultinomialNB`, letters of ten languages", bg.MultinomialNB, "letters", counts, y


def losses(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, n: int) -> list[float]:
    """Return log losses by method; infinite where one is undefined or excludes the truth."""
    of_splits = []
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train = np.concatenate([order[y[order] == c][:n] for c in np.unique(y)])
        test = rng.permutation(np.setdiff1d(order, train))[:1000]
        clf = make().fit(X[train], y[train])
        of_splits.append([log_loss(clf, X[test], y[test], method) for method in METHODS])
    return np.mean(of_splits, axis=0).tolist()


def log_loss(clf: Any, X: np.ndarray, y: np.ndarray, method: str) -> float:
    """Return the log loss of rows, infinite if the estimate is undefined."""
    try:
        log_p = clf.predict_log_proba(X, method=method)
    except ValueError:
        return np.inf
    return -log_p[np.arange(len(y)), y].mean()


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure each set that has so many rows."""
    for name, make, data, X, y in cases():
        for n in ROWS:
            if np.bincount(y).min() >= n + 5:
                record.measure(f"{name}|{n}|{data}", partial(losses, make, X, y, n))


def table(record: run.Record) -> str:
    """Return the ratios of log loss."""
    losses = record.frame("classifier rows set", " ".join(METHODS))
    full, mean, mle = (losses[method] for method in METHODS)
    ratios = (full / mean).to_frame("mean").assign(mle=full / mle)
    body = []
    for name, of_classifier in ratios.groupby("classifier", sort=False):
        for n in map(str, ROWS):
            of = of_classifier.query("rows == @n")
            if of.empty:
                continue
            finite = of["mle"][of["mle"] > 0]
            cells = f"{run.geometric(of['mean'])[0]:.3f}", f"{of['mean'].max():.2f}"
            over_mle = f"{run.geometric(finite)[0]:.2f}" if len(finite) else ""
            undefined = f"{len(of) - len(finite)} of {len(of)}"
            body.append([name, n, *cells, over_mle, f"{of['mle'].max():.2f}", undefined])
    head = ["classifier", "rows per class", "over posterior mean", "largest",
            "over maximum likelihood", "largest", "infinite or undefined"]  # fmt: skip
    return f"""{run.markdown(head, body)}

{SPLITS} random splits of each set; real-valued sets: {", ".join(OPEN)}."""


TABLES = {"plug-ins": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
