"""Conjugate classifier against its variant, on data that call for the variant.

    .venv/bin/python tests/benchmarks/variants.py               # about 15 minutes, two cores
    .venv/bin/python tests/benchmarks/variants.py --only burst

Mean log score of held-out rows (log p(y | x, training rows), nats a row; higher is better), the
paired difference with its standard error over rows, and what the variant costs: seconds with and
without compilation, the least effective sample size, effective draws a second, divergences.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import bayesgen as bg
from bayesgen.datasets import POKEMON_STATS, load_penguins, load_pokemon
from bayesgen.inference.diagnostics import diagnose

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
MEASURED = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


class Case(NamedTuple):
    """Rows that call for a variant."""

    why: str
    conjugate: Callable[[], Any]
    variant: Callable[..., Any]
    X: np.ndarray
    y: np.ndarray
    test: np.ndarray  # bool


def cases() -> Iterator[Case]:
    """Outliers, over-dispersion, few rows, several modes, bursts, correlations."""
    X, y = load_penguins()
    X = X[MEASURED].dropna()
    y = np.asarray(y[X.index])
    third = np.arange(len(y)) % 3 == 2
    slipped = X.to_numpy(float)
    rng = np.random.default_rng(0)
    keyed = (rng.random(slipped.shape) < 0.03) & ~third[:, None]
    slipped[keyed] *= 10
    yield Case(
        "outliers: penguins, 3 % of the training cells with a slipped decimal point",
        bg.GaussianNB, bg.StudentTNB, slipped, y, third,
    )  # fmt: skip

    P, kind = load_pokemon()
    two = np.asarray(kind.isin(["water", "normal"]))
    counts, kind = P.loc[two, list(POKEMON_STATS)].to_numpy(int), np.asarray(kind[two])
    yield Case(
        "over-dispersion: Pokémon, six stats as counts",
        bg.PoissonNB, bg.NegativeBinomialNB, counts, kind, np.arange(len(kind)) % 3 == 2,
    )  # fmt: skip

    if (SHARED / "xwindows.npz").exists():
        with np.load(SHARED / "xwindows.npz") as file:
            bits = np.unpackbits(file["train_bits"], axis=1)[:, :600]
            label = file["train_label"]
        bits = bits[:, np.argsort(-bits.mean(axis=0), kind="stable")[:100]]
        few = np.zeros(len(label), dtype=bool)
        for c in np.unique(label):
            few[np.flatnonzero(label == c)[:10]] = True
        yield Case(
            "few rows: X-windows, the 100 most frequent words, 10 documents a class",
            bg.BernoulliNB, bg.HierarchicalBernoulliNB, bits, label, ~few,
        )  # fmt: skip

    digits, number = datasets.load_digits(return_X_y=True)
    centred = digits - digits.mean(axis=0)
    plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    yield Case(
        "several modes: digits in two principal components, odd against even",
        bg.QuadraticDiscriminant,
        lambda **o: bg.MixtureDiscriminant(n_components=4, **o),
        plane[:600], np.array(["even", "odd"])[number[:600] % 2], np.arange(600) % 3 == 2,
    )  # fmt: skip

    if (SHARED / "sms_spam.tsv").exists():
        words, label = sms()
        yield Case(
            "bursts: SMS, 200 words, 1500 messages",
            bg.MultinomialNB, bg.DirichletCompoundMultinomialNB, words, label,
            np.arange(len(label)) % 3 == 2,
        )  # fmt: skip
        yield Case(
            "correlated words: SMS, 200 words, 1500 messages",
            bg.MultinomialNB, bg.LogisticNormalNB, words, label, np.arange(len(label)) % 3 == 2,
        )  # fmt: skip

    wine, cultivar = datasets.load_wine(return_X_y=True)
    few = np.zeros(len(cultivar), dtype=bool)
    for c in np.unique(cultivar):
        few[np.flatnonzero(cultivar == c)[:12]] = True
    yield Case(
        "scales and correlations apart: wine, first 6 columns, 12 rows a class",
        bg.QuadraticDiscriminant,
        lambda **o: bg.LKJDiscriminant(covariance="class", **o),
        wine[:, :6], cultivar, ~few,
    )  # fmt: skip


def sms() -> tuple[np.ndarray, np.ndarray]:
    """Counts of the 200 most frequent words of 1500 messages."""
    from sklearn.feature_extraction.text import CountVectorizer

    lines = (SHARED / "sms_spam.tsv").read_text(encoding="utf-8").splitlines()
    label, text = zip(*(line.split("\t", 1) for line in lines[1:1501]), strict=True)
    counts = CountVectorizer(max_features=200).fit_transform(text)
    return np.asarray(counts.todense()), np.array(label)


def log_score(clf: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(N,) log probability of the label that is true."""
    log_p = clf.predict_log_proba(X)
    return log_p[np.arange(len(y)), np.searchsorted(clf.classes_, y)]


def main(only: str) -> None:
    head = "| data | conjugate | | variant | | difference | s | compiling | ESS | ESS/s | div |"
    print(head)
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for why, conjugate, variant, X, y, test in cases():
        if only not in why:
            continue
        own = conjugate().fit(X[~test], y[~test])
        clf = variant(random_state=0)
        start = time.perf_counter()
        clf.fit(X[~test], y[~test], progressbar=False)
        first = time.perf_counter() - start
        start = time.perf_counter()
        clf.fit(X[~test], y[~test], progressbar=False)
        again = time.perf_counter() - start
        tree = clf.posterior_
        found = diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset())
        mine, theirs = (log_score(c, X[test], y[test]) for c in (own, clf))
        gap = theirs - mine
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        print(
            f"| {why} | `{type(own).__name__}` | {mine.mean():.3f} | `{type(clf).__name__}` "
            f"| {theirs.mean():.3f} | {gap.mean():+.3f} ± {error:.3f} | {first:.0f} "
            f"| {first - again:.0f} | {found.ess:.0f} | {found.ess / again:.0f} "
            f"| {found.divergences} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="")
    warnings.filterwarnings("ignore")
    main(parser.parse_args().only)
