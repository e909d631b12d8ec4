"""Conjugate classifiers against sampled variants, on data that call for the variant.

    python -m tests.benchmarks.variants    # about 15 minutes, two cores

Mean log score of held-out rows (log p(y | x, training rows), nats a row; higher is better) and the
paired difference. Where rows are many each third of them is held out in turn, and the standard
error is over rows. Where they are to be few, twenty training sets of ten rows a class are drawn,
all other rows are the test, and the standard error is over training sets. Both classifiers are at
their defaults, except for four components of the mixture.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import bayesgen as bg
from bayesgen.inference.nuts import diagnose
from tests.benchmarks import run, sets


class Case(NamedTuple):
    """Rows that call for a variant."""

    why: str
    conjugate: Callable[..., Any]
    variant: Callable[..., Any]
    X: np.ndarray
    y: np.ndarray
    few: int | None = None  # training rows of a class; None: two thirds of all
    trained: np.ndarray | None = None  # X as the training rows have it, where it differs

    def splits(self) -> Iterator[np.ndarray]:
        """Yield whether a row is held out, (N,)."""
        rows = np.arange(len(self.y))
        if self.few is None:
            yield from (rows % 3 == k for k in (2, 0, 1))
            return
        rng = np.random.default_rng(0)
        for _ in range(20):
            rows_of_class = [np.flatnonzero(self.y == c) for c in np.unique(self.y)]
            train = np.concatenate([rng.choice(r, self.few, replace=False) for r in rows_of_class])
            yield ~np.isin(rows, train)


def cases(args: run.Arguments) -> Iterator[Case]:
    """Yield outliers, over-dispersion, few rows, several modes."""
    X, y = sets.numbers("penguins")
    slipped = np.where(np.random.default_rng(0).random(X.shape) < 0.03, 10 * X, X)
    why = "outliers: penguins, 3 % of the training cells with a slipped decimal point"
    yield Case(why, bg.GaussianNB, bg.StudentTNB, X, y, trained=slipped)
    why = "over-dispersion: Pokémon, six stats as counts"
    yield Case(why, bg.PoissonNB, bg.NegativeBinomialNB, *sets.numbers("pokemon"))
    if documents := sets.load(args.data).get(sets.X_WINDOWS):
        bits = documents.X[:900].to_numpy(np.uint8)
        bits = bits[:, np.argsort(-bits.mean(axis=0), kind="stable")[:100]]
        why = "few rows: X-windows, the 100 most frequent words, 10 documents a class"
        yield Case(why, bg.BernoulliNB, bg.HierarchicalBernoulliNB, bits, documents.y[:900], 10)
    digits = sets.load(args.data)["digits"]
    centred = digits.X.to_numpy() - digits.X.to_numpy().mean(axis=0)
    plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    yield Case(
        "several modes: digits in two principal components, odd against even",
        bg.QuadraticDiscriminant,
        partial(bg.MixtureDiscriminant, n_components=4),
        plane[:600],
        digits.y[:600] % 2,
    )


def compared(case: Case) -> dict[str, Any]:
    """Return log scores of both, their paired difference, and whether the draws are sound."""
    scores, diagnoses = [], []
    for seed, test in enumerate(case.splits()):
        X, y = (case.X if case.trained is None else case.trained)[~test], case.y[~test]
        conjugate = case.conjugate().fit(X, y)
        clf = case.variant(random_state=seed).fit(X, y, progressbar=False)
        tree = clf.posterior_
        diagnoses.append(
            diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset())
        )
        codes = np.searchsorted(clf.classes_, case.y[test])
        log_p = [c.predict_log_proba(case.X[test]) for c in (conjugate, clf)]
        scores.append([p[np.arange(len(codes)), codes] for p in log_p])
    if case.few is None:
        mine, theirs = np.concatenate(scores, axis=1)
    else:
        mine, theirs = np.mean(scores, axis=-1).T
    gap = theirs - mine
    return {
        "variant": type(clf).__name__,
        "scores": [float(mine.mean()), float(theirs.mean())],
        "difference": [float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))],
        "divergences": sum(f.divergences for f in diagnoses),
        "r_hat": max(f.r_hat for f in diagnoses),
        "ess": min(f.ess for f in diagnoses),
    }


def measure(record: run.Record, args: run.Arguments) -> None:
    """Compare each case."""
    for case in cases(args):
        record.measure(f"{case.conjugate.__name__}|{case.why}", partial(compared, case))


def table(record: run.Record) -> str:
    """Return a line for each case."""
    body = [
        [why, f"`{conjugate}`", f"`{v['variant']}`", *(f"{s:.3f}" for s in v["scores"]),
         "{:+.3f} ± {:.3f}".format(*v["difference"])]
        for (conjugate, why), v in record.frame("conjugate why").iterrows()
    ]  # fmt: skip
    head = ["data", "conjugate", "variant", "score", "score", "difference"]
    return run.markdown(head, body, left=3)


TABLES = {"variants": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
