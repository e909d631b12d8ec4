"""Conjugate classifier against its variant, on data that call for the variant.

    .venv/bin/python tests/benchmarks/variants.py               # about 15 minutes, two cores
    .venv/bin/python tests/benchmarks/variants.py --only burst
    .venv/bin/python tests/benchmarks/variants.py --update      # and docs/benchmarks/nuts.md
    .venv/bin/python tests/benchmarks/variants.py --update --only X   # some of its rows anew

Mean log score of held-out rows (log p(y | x, training rows), nats a row; higher is better) and the
paired difference. Where rows are many each third of them is held out in turn, and the standard
error is over rows. Where they are to be few, twenty training sets of so many rows a class are
drawn (six where a fit takes a minute), all other rows are the test, and the standard error is over
training sets. Both classifiers are at their defaults, except for four components of the mixture.
"""

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from sklearn import datasets

import bayesgen as bg
from bayesgen.inference.nuts import diagnose
from tests.benchmarks import tables
from tests.benchmarks.sets import FOLDER as SHARED
from tests.benchmarks.sets import numbers

KEPT = Path(__file__).with_name("variants.json")
TRAINING_SETS = 20


class Case(NamedTuple):
    """Rows that call for a variant."""

    why: str
    conjugate: Callable[..., Any]
    variant: Callable[..., Any]
    X: np.ndarray
    y: np.ndarray
    few: int | None = None  # training rows of a class; None: two thirds of all
    n_sets: int = TRAINING_SETS  # of so few rows
    trained: np.ndarray | None = None  # X as the training rows have it, where it differs

    def splits(self) -> Iterator[np.ndarray]:
        """Whether a row is held out, (N,)."""
        at = np.arange(len(self.y))
        if self.few is None:
            yield from (at % 3 == k for k in (2, 0, 1))
            return
        rng = np.random.default_rng(0)
        for _ in range(self.n_sets):
            own = [np.flatnonzero(self.y == c) for c in np.unique(self.y)]
            train = np.concatenate([rng.choice(rows, self.few, replace=False) for rows in own])
            yield ~np.isin(at, train)


def cases() -> Iterator[Case]:
    """Outliers, over-dispersion, few rows, several modes."""
    X, y = numbers("penguins")
    rng = np.random.default_rng(0)
    slipped = np.where(rng.random(X.shape) < 0.03, 10 * X, X)
    yield Case(
        "outliers: penguins, 3 % of the training cells with a slipped decimal point",
        bg.GaussianNB, bg.StudentTNB, X, y, trained=slipped,
    )  # fmt: skip
    yield Case(
        "over-dispersion: Pokémon, six stats as counts",
        bg.PoissonNB, bg.NegativeBinomialNB, *numbers("pokemon"),
    )  # fmt: skip
    if (SHARED / "xwindows.npz").exists():
        with np.load(SHARED / "xwindows.npz") as file:
            bits, label = np.unpackbits(file["train_bits"], axis=1)[:, :600], file["train_label"]
        bits = bits[:, np.argsort(-bits.mean(axis=0), kind="stable")[:100]]
        yield Case(
            "few rows: X-windows, the 100 most frequent words, 10 documents a class",
            bg.BernoulliNB, bg.HierarchicalBernoulliNB, bits, label, 10,
        )  # fmt: skip
    digits, number = datasets.load_digits(return_X_y=True)
    centred = digits - digits.mean(axis=0)
    plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    yield Case(
        "several modes: digits in two principal components, odd against even",
        bg.QuadraticDiscriminant,
        lambda **o: bg.MixtureDiscriminant(n_components=4, **o),
        plane[:600], np.array(["even", "odd"])[number[:600] % 2],
    )  # fmt: skip


def log_score(clf: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(N,) log probability of the label that is true."""
    log_p = clf.predict_log_proba(X)
    return log_p[np.arange(len(y)), np.searchsorted(clf.classes_, y)]


def compared(case: Case) -> dict[str, Any]:
    """Log scores of both, their paired difference, and whether the draws are sound."""
    scores, found = [], []
    for seed, test in enumerate(case.splits()):
        X, y = (case.X if case.trained is None else case.trained)[~test], case.y[~test]
        own = case.conjugate().fit(X, y)
        clf = case.variant(random_state=seed).fit(X, y, progressbar=False)
        tree = clf.posterior_
        found.append(diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()))
        scores.append([log_score(c, case.X[test], case.y[test]) for c in (own, clf)])
    if case.few is None:
        mine, theirs = np.concatenate(scores, axis=1)
    else:
        mine, theirs = np.mean(scores, axis=-1).T
    gap = theirs - mine
    return {
        "data": case.why,
        "conjugate": type(own).__name__,
        "variant": type(clf).__name__,
        "of the conjugate": float(mine.mean()),
        "of the variant": float(theirs.mean()),
        "difference": float(gap.mean()),
        "error": float(gap.std(ddof=1) / np.sqrt(len(gap))),
        "differences": gap.tolist() if case.few else None,
        "divergences": sum(f.divergences for f in found),
        "r_hat": max(f.r_hat for f in found),
        "ess": min(f.ess for f in found),
    }


HEAD = ("data", "conjugate", "variant", "score", "score", "difference")


def cells(row: dict[str, Any]) -> list[str]:
    """In the order of `HEAD`."""
    return [
        row["data"],
        f"`{row['conjugate']}`",
        f"`{row['variant']}`",
        f"{row['of the conjugate']:.3f}",
        f"{row['of the variant']:.3f}",
        f"{row['difference']:+.3f} ± {row['error']:.3f}",
    ]


def page(record: dict[str, Any]) -> str:
    """The table as docs/benchmarks/nuts.md shows it."""
    return tables.markdown(HEAD, [cells(row) for row in record["rows"]], left=3)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="of the data")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="JSON whose rows of these data are replaced"
    )
    parser.add_argument(
        "--update", action="store_true", help="keep the record; write docs/benchmarks/nuts.md"
    )
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")  # what they say is in the table
    path = KEPT if args.update else args.record
    old = []
    if path is not None and path.exists():
        old = json.loads(path.read_text(encoding="utf-8"))["rows"]
    record: dict[str, Any] = {"surroundings": tables.surroundings(), "rows": old}
    order = [case.why for case in cases()]
    head = (*HEAD, "R-hat", "ESS", "divergences")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for case in cases():
        if re.search(args.only, case.why):
            row = compared(case) | {"commit": record["surroundings"]["commit"]}
            rows = [r for r in record["rows"] if r["data"] != case.why] + [row]
            record["rows"] = sorted(rows, key=lambda r: order.index(r["data"]))
            sampler = [f"{row['r_hat']:.3f}", f"{row['ess']:.0f}", str(row["divergences"])]
            print(f"| {' | '.join([*cells(row), *sampler])} |", flush=True)
            if path is not None:
                path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if args.update:
        tables.write_between("variants", page(record))


if __name__ == "__main__":
    main()
