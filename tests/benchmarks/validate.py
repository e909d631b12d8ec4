"""Every conjugate family against NUTS on real data, and what sampling costs.

    python -m tests.benchmarks.validate    # about 10 minutes

`bg.validate` on penguins, iris, Pokémon and X-windows (the 50 words with the most information about
the class). Each result has the largest of all |z|, and the limit that it exceeds with probability
.01 if the closed form is right. Ends: the largest error, in percentiles, of the ends of the 90 %
intervals of the class probabilities of 20 rows, by the share of NUTS draws beyond them, and in
standard errors.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils import _safe_indexing

import bayesgen as bg
from bayesgen.datasets import POKEMON_STATS, load_penguins, load_pokemon
from tests.benchmarks import run, sets
from tests.predict.against_nuts import percentile_errors

Case = tuple[str, Any, Any, Any]  # data, classifier, rows, labels


def cases(args: run.Arguments) -> Iterator[Case]:
    """Yield each family at least once."""
    X, y = load_penguins()
    measured = X[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]]
    complete = measured.dropna()
    yield "penguins", bg.GaussianNB(), measured, y
    yield "penguins", bg.LinearDiscriminant(), complete, y[complete.index]
    yield "penguins", bg.QuadraticDiscriminant(), complete, y[complete.index]
    yield "penguins", bg.CategoricalNB(), X[["island", "sex"]], y
    yield "penguins", bg.MixedNB(), X, y
    X, y = load_iris(return_X_y=True)
    yield "iris", bg.GaussianNB(variance="tied"), X, y
    yield "iris", bg.LinearDiscriminant(), X, y
    yield "iris", bg.QuadraticDiscriminant(), X, y
    X, y = load_pokemon()
    two = y.isin(["water", "normal"]) & (X["id"] < 400)
    stats, names, y = X.loc[two, list(POKEMON_STATS)], X.loc[two, "name"], y[two]
    yield "Pokémon", bg.PoissonNB(), stats, y
    yield "Pokémon", bg.QuadraticDiscriminant(), stats, y
    yield "Pokémon", bg.MarkovNB(order=1), names, y
    if documents := sets.load(args.data).get(sets.X_WINDOWS):
        bits, y = documents.X[:900].to_numpy(np.uint8), documents.y[:900]
        words = np.asarray(bg.MutualInformationSelector(n_features=50).fit_transform(bits, y))
        yield "X-windows", bg.BernoulliNB(), words, y
        yield "X-windows", bg.MultinomialNB(), words, y


def compared(clf: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return what `bg.validate` says, and the errors of the ends of intervals."""
    result = bg.validate(clf, X, y, progressbar=False)
    checks = result.checks
    rows = np.linspace(0, len(y) - 1, 20).astype(int)
    fitted = clone(clf).fit(X, y)
    off, mcse = percentile_errors(fitted, _safe_indexing(X, rows), result.tree)
    return {
        "numbers": int(checks["error"].count()),
        "z": round(float(result.largest_z), 2),
        "limit": round(float(result.threshold), 2),
        "r_hat": round(float(checks["r_hat"].max()), 3),
        "ess": round(float(checks.loc[checks["r_hat"].notna(), "ess"].min())),
        "divergences": result.run["divergences"],
        "ends": round(float(np.abs(off).max()), 3),
        "ends_z": round(float(np.abs(off / mcse).max()), 2),
    }


def measure(record: run.Record, args: run.Arguments) -> None:
    """Compare each case."""
    for data, clf, X, y in cases(args):
        record.measure(f"{data}|{type(clf).__name__}", partial(compared, clf, X, y))


def table(record: run.Record) -> str:
    """Return a line for each case."""
    body = [
        [data, f"`{name}`", f"{v['numbers']:.0f}", f"{v['z']} ({v['limit']})", f"{v['r_hat']:.3f}",
         f"{v['ess']:.0f}", f"{v['divergences']:.0f}", f"{v['ends']:.3f} ({v['ends_z']:.2f})"]
        for (data, name), v in record.frame("data classifier").iterrows()
    ]  # fmt: skip
    head = ["data", "classifier", "numbers", "largest z (limit)", "R-hat", "least ESS",
            "divergences", "interval ends (z)"]  # fmt: skip
    return run.markdown(head, body, left=2)


TABLES = {"validate": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
