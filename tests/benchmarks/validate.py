"""Every family against NUTS on real data, and what sampling costs.

    .venv/bin/python tests/benchmarks/validate.py    # about 10 minutes

`bg.validate` of every conjugate family on penguins, iris, Pokémon and X-windows (the 50
words with the most information about the class; skipped where ../shared/data is not there). Each
row has the largest of all |z|, and the threshold that it exceeds with probability 0.01 if the
closed form is right. Ends: the largest error, in percentiles, of the ends of the 90 % intervals of
the class probabilities of 20 rows, by the share of NUTS draws beyond them, and in standard errors.
Seconds: the whole call, and sampling alone on a second set of rows of the
same shape, for which nothing is compiled.
"""

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import bayesgen as bg
from bayesgen.datasets import POKEMON_STATS, load_penguins, load_pokemon
from tests.benchmarks.sets import FOLDER as SHARED
from tests.predict.against_nuts import percentile_errors

MEASURED = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


class Case(NamedTuple):
    """A classifier and the rows that it is checked on."""

    data: str
    clf: Any
    X: Any
    y: Any


def cases() -> Iterator[Case]:
    """Each family at least once."""
    from sklearn.datasets import load_iris

    X, y = load_penguins()
    complete = X[MEASURED].dropna()
    yield Case("penguins", bg.GaussianNB(), X[MEASURED], y)
    yield Case("penguins", bg.LinearDiscriminant(), complete, y[complete.index])
    yield Case("penguins", bg.QuadraticDiscriminant(), complete, y[complete.index])
    yield Case("penguins", bg.CategoricalNB(), X[["island", "sex"]], y)
    yield Case("penguins", bg.MixedNB(), X, y)
    X, y = load_iris(return_X_y=True)
    yield Case("iris", bg.GaussianNB(variance="tied"), X, y)
    yield Case("iris", bg.LinearDiscriminant(), X, y)
    yield Case("iris", bg.QuadraticDiscriminant(), X, y)
    X, y = load_pokemon()
    two = y.isin(["water", "normal"]) & (X["id"] < 400)
    stats, names, y = X.loc[two, list(POKEMON_STATS)], X.loc[two, "name"], y[two]
    yield Case("Pokémon", bg.PoissonNB(), stats, y)
    yield Case("Pokémon", bg.QuadraticDiscriminant(), stats, y)
    yield Case("Pokémon", bg.MarkovNB(order=1), names, y)
    if (SHARED / "xwindows.npz").exists():
        with np.load(SHARED / "xwindows.npz") as file:
            bits = np.unpackbits(file["train_bits"], axis=1)[:, :600]
            y = file["train_label"]
        selector = bg.MutualInformationSelector(n_features=50).fit(bits, y)
        words = np.asarray(selector.transform(bits))
        yield Case("X-windows", bg.BernoulliNB(), words, y)
        yield Case("X-windows", bg.MultinomialNB(), words, y)


def families() -> None:
    """Print the table of `bg.validate`."""
    head = ("data", "classifier", "family", "numbers", "max |z|", "beyond", "R-hat", "ESS", "div")
    head += ("ends", "|z|")
    print(f"{head[0]:10} {head[1]:22} {head[2]:22}", *(f"{h:>8}" for h in head[3:]), end=" ")
    print(f"{'first s':>8} {'again s':>8}  verdict")
    for case in cases():
        start = time.perf_counter()
        result = bg.validate(case.clf, case.X, case.y, progressbar=False)
        first = time.perf_counter() - start
        half = np.arange(len(case.y)) % 2 == 0
        fitted = result_of_half(case, half)
        start = time.perf_counter()
        fitted.sample_posterior(random_state=1, groups=(), progressbar=False)
        again = time.perf_counter() - start
        off, mcse = interval_ends(case, result.tree)
        checks = result.checks
        own = ~np.isnan(checks["r_hat"].values)
        print(
            f"{case.data:10} {type(case.clf).__name__:22} {result.tree.attrs['family']:22}"
            f" {checks.attrs['comparisons']:8d} {result.largest_z:8.2f} {result.threshold:8.2f}"
            f" {np.nanmax(checks['r_hat'].values):8.3f} {checks['ess'].values[own].min():8.0f}"
            f" {checks.attrs['divergences']:8d} {np.abs(off).max():8.4f}"
            f" {np.abs(off / mcse).max():8.2f} {first:8.1f} {again:8.2f}  {result.verdict}",
            flush=True,
        )
        for reason in result.reasons:
            print("   ", reason)


def interval_ends(case: Case, tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Errors in percentiles of the 90 % intervals of 20 rows, and their standard errors."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    rows = np.linspace(0, len(case.y) - 1, 20).astype(int)
    fitted = clone(case.clf).fit(case.X, case.y)
    return percentile_errors(fitted, _safe_indexing(case.X, rows), tree)


def result_of_half(case: Case, half: np.ndarray) -> Any:
    """The same classifier on every other row: a model of the same shape, if the schema is fixed."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    rows = np.flatnonzero(half)
    return clone(case.clf).fit(_safe_indexing(case.X, rows), np.asarray(case.y)[rows])


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    families()
