"""Small and middling tables beside scikit-learn, by processor seconds: `make bench-sizes`.

    make bench-sizes                                 all of it, about three minutes
    make bench-sizes ARGS="--only 'MixedNB|150'"     rows of the table by a regular expression
    make bench-sizes ARGS="--update"                 into sizes.json and docs/benchmarks/speed.md
    make bench-sizes ARGS="--guard"                  exit 1 if a ratio fell below .7 of the one kept

A ratio is the peer's time by ours, both fitted to the same rows, in turn in one process in which
kernels are loaded; ours is the exact posterior predictive. Where cells are missing, the peer is
ours on the same table without missing cells. The guard compares ratios, as machines
differ; a cell that falls is measured twice more before it counts. It needs as many threads of BLAS
(OMP_NUM_THREADS) as the table kept: those that wait count as the peer's processor seconds.
"""

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from scipy import sparse
from sklearn import discriminant_analysis as da
from sklearn import naive_bayes as nb
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import bayesgen as bg
from tests.benchmarks import measure, tables
from tests.benchmarks.workloads import new

KEPT = Path(__file__).with_name("sizes.json")
LEAST_SHARE = 0.7  # of the ratio kept
HEAD = (
    "classifier", "rows", "fit: theirs", "ours", "ratio", "predict: theirs", "ours", "ratio",
    "goals of the ratios",
)  # fmt: skip
N_CLASSES = 5
GAPS = " with gaps"  # a kind of rows of which a twentieth of the cells is missing


class Mixed:
    """What a user of scikit-learn writes: an encoder, a CategoricalNB and a GaussianNB."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "Mixed":
        """Learn both parts."""
        self.texts = [name for name in X if name.startswith("s")]
        self.encoder = OrdinalEncoder()
        self.words = nb.CategoricalNB().fit(self.encoder.fit_transform(X[self.texts]), y)
        self.numbers = nb.GaussianNB().fit(X.drop(columns=self.texts).to_numpy(), y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """The class weights count once."""
        words = self.words.predict_joint_log_proba(self.encoder.transform(X[self.texts]))
        numbers = self.numbers.predict_joint_log_proba(X.drop(columns=self.texts).to_numpy())
        joint = words + numbers - self.words.class_log_prior_
        p = np.exp(joint - joint.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)


def _counted() -> Any:
    bigrams = CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False)
    return make_pipeline(bigrams, nb.MultinomialNB())


def _rows(kind: str, n: int, d: int) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(n + d)
    if kind.endswith(GAPS):
        X, y = _rows(kind.removesuffix(GAPS), n, d)
        return np.where(rng.random(X.shape) < 0.05, np.nan, X), y
    y = np.arange(n) % N_CLASSES
    if kind == "real, text labels":
        return _rows("real", n, d)[0], np.array([f"class {c}" for c in range(N_CLASSES)])[y]
    if kind == "real":
        return rng.standard_normal((n, d)) + rng.standard_normal((N_CLASSES, d))[y], y
    if kind == "categories":
        return (rng.integers(0, 10, (n, d)) + y[:, None]) % 10, y
    if kind == "bits":
        return (rng.random((n, d)) < rng.random((N_CLASSES, d))[y]).astype(float), y
    if kind == "counts":
        return rng.poisson(rng.gamma(2.0, size=(N_CLASSES, d))[y]).astype(float), y
    if kind == "dense words":
        return rng.poisson(1.5 * rng.gamma(2.0, size=(N_CLASSES, d))[y]).astype(float), y
    if kind == "words":
        counts = rng.poisson(0.05 * rng.gamma(2.0, size=(N_CLASSES, d))[y])
        return sparse.csr_matrix(counts), y
    if kind == "texts":
        letters = np.array(list("abcdefgh ijklmnop"))
        at = rng.integers(0, 9, (n, d)) + 2 * y[:, None] % 9
        return ["".join(row) for row in letters[at]], y
    columns: dict[str, Any] = {f"r{j}": rng.standard_normal(n) + y for j in range(d // 2)}
    words = np.array([f"category {k}" for k in range(10)], dtype=object)
    for j in range(d - d // 2):
        columns[f"s{j}"] = words[(rng.integers(0, 8, n) + y) % 10]
    return pd.DataFrame(columns), y


Case = tuple[str, str, Callable[[], Any], Callable[[], Any], dict[tuple[int, int], tuple]]
CASES: list[Case] = [  # goals of fit and predict where there are any
    ("GaussianNB", "real", bg.GaussianNB, nb.GaussianNB,
     {(150, 4): (None, 0.8), (3000, 20): (None, 1), (30_000, 20): (None, 4),
      (400_000, 20): (18, None)}),
    ("CategoricalNB", "categories", bg.CategoricalNB, nb.CategoricalNB,
     {(150, 4): (None, 0.8), (3000, 200): (None, 2), (30_000, 20): (None, 4),
      (400_000, 20): (25, None)}),
    ("BernoulliNB", "bits", bg.BernoulliNB, nb.BernoulliNB,
     {(150, 4): (None, 0.8), (3000, 200): (None, 2), (30_000, 20): (None, 4)}),
    ("PoissonNB", "counts", bg.PoissonNB, nb.MultinomialNB,
     {(150, 4): (None, 0.8), (30_000, 20): (None, None)}),
    ("MultinomialNB", "words", bg.MultinomialNB, nb.MultinomialNB,
     {(3000, 1000): (1, 1), (30_000, 1000): (1, 1)}),
    ("MultinomialNB, dense", "dense words", bg.MultinomialNB, nb.MultinomialNB,
     {(3000, 1000): (None, 0.33)}),
    ("LDA", "real", bg.LinearDiscriminant, da.LinearDiscriminantAnalysis,
     {(150, 4): (None, 0.8), (30_000, 20): (None, 0.8)}),
    ("QDA", "real", bg.QuadraticDiscriminant, da.QuadraticDiscriminantAnalysis,
     {(150, 4): (None, 0.8), (30_000, 20): (None, None)}),
    ("MixedNB", "mixed", bg.MixedNB, Mixed,
     {(150, 20): (None, None), (30_000, 20): (3, 3)}),
    ("GaussianNB, text labels", "real, text labels", bg.GaussianNB, nb.GaussianNB,
     {(400_000, 20): (None, None)}),
    ("GaussianNB, 5 % missing", "real" + GAPS, bg.GaussianNB, bg.GaussianNB,
     {(30_000, 20): (None, 0.5)}),
    ("BernoulliNB, 5 % missing", "bits" + GAPS, bg.BernoulliNB, bg.BernoulliNB,
     {(30_000, 20): (None, 0.5)}),
    ("MarkovNB", "texts", bg.MarkovNB, _counted, {(30_000, 20): (None, 2)}),
]  # fmt: skip


def measured(case: Case, size: tuple[int, int]) -> dict[str, Any]:
    """Seconds of both sides, at fit and at predict: the processor's, and of the clock."""
    name, kind, ours, peer, goals = case
    X, y = _rows(kind, *size)
    whole, _ = _rows(kind.removesuffix(GAPS), *size)
    out: dict[str, Any] = {"name": name, "size": f"{size[0]:g} x {size[1]}"}
    fitted, theirs = new(ours).fit(X, y), new(peer).fit(whole, y)
    calls = {
        "fit": (lambda: new(peer).fit(whole, y), lambda: new(ours).fit(X, y)),
        "predict": (lambda: theirs.predict_proba(whole), lambda: fitted.predict_proba(X)),
    }
    for (what, pair), goal in zip(calls.items(), goals[size], strict=True):
        runs = np.array([[_clocks(call) for call in pair] for _ in range(6)])
        runs = runs[1:]  # without the first, which loads
        (peer_wall, peer_s), (ours_wall, ours_s) = np.median(runs, axis=0).tolist()
        out[what] = {"peer_s": peer_s, "ours_s": ours_s, "goal": goal}
        out[what] |= {"peer_wall_s": peer_wall, "ours_wall_s": ours_wall}
        out[what]["ratio"] = float(np.median(runs[:, 0, 1] / runs[:, 1, 1]))
    return out


def _clocks(call: Callable[[], Any], least: float = 0.02) -> tuple[float, float]:
    """Seconds of a call and of the processor, means of some calls where it is short."""
    n = 1
    while True:
        with measure.no_garbage_collection():
            wall, seconds = measure.clocks(lambda: [call() for _ in range(n)], rest=0.0)  # noqa: B023
        if seconds >= least:
            return wall / n, seconds / n
        n = max(2 * n, int(n * least / max(seconds, 1e-6)))


def fallen(row: dict[str, Any], kept: dict[str, Any]) -> list[str]:
    """Where a row's ratios are below the share of those kept."""
    return [
        f"{row['name']} {row['size']} {what}: ratio {row[what]['ratio']:.2g}, "
        f"{old[what]['ratio']:.2g} before"
        for old in kept.get("rows", [])
        if (old["name"], old["size"]) == (row["name"], row["size"])
        for what in ("fit", "predict")
        if row[what]["ratio"] < LEAST_SHARE * old[what]["ratio"]
    ]


def shown(row: dict[str, Any]) -> list[str]:
    """A line of the table; a goal that is missed is marked."""
    line, goals = [row["name"], row["size"]], []
    for what in ("fit", "predict"):
        one = row[what]
        line += [tables.duration(one[f"{side}_s"]) for side in ("peer", "ours")]
        line.append(f"{one['ratio']:.2g}")
        missed = one["goal"] is not None and one["ratio"] < one["goal"]
        goals.append("" if one["goal"] is None else f"{one['goal']:g}" + " (missed)" * missed)
    return [*line, " / ".join(goals) if any(goals) else ""]


def page(record: dict[str, Any]) -> str:
    """The record as docs/benchmarks/speed.md shows it."""
    table = tables.markdown(HEAD, [shown(row) for row in record["rows"]])
    return f"{table}\n\n{tables.taken(record['surroundings'])}."


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="make bench-sizes", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--only", metavar="PATTERN", default="")
    parser.add_argument("--update", action="store_true", help="write sizes.json, page (whole runs)")
    parser.add_argument("--guard", action="store_true", help="compare with sizes.json")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if args.guard else {}
    bg.GaussianNB().fit(*_rows("real", 400_000, 20))  # numba is loaded
    rows, found = [], []
    for case in CASES:
        for size in case[-1]:
            if not re.search(args.only, f"{case[0]} {size[0]:g} x {size[1]}"):
                continue
            for _ in range(3):
                row = measured(case, size)
                if not (lower := fallen(row, kept)):
                    break
            rows, found = [*rows, row], [*found, *lower]
            print(" | ".join(shown(row)), file=sys.stderr, flush=True)
    title = "Processor seconds of fit, then of predict, beside scikit-learn"
    Console(width=120).print(tables.on_terminal(title, HEAD, [shown(row) for row in rows]))
    if args.update and not args.only:
        record = {"surroundings": tables.surroundings(), "rows": rows}
        KEPT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        tables.write_between("sizes", page(record))
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
