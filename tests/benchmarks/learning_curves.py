"""Does the generative model need less data? Log score against rows a class.

    .venv/bin/python tests/benchmarks/learning_curves.py            # about 20 minutes, two cores
    .venv/bin/python tests/benchmarks/learning_curves.py --only 'linear 8$' --coef-scale 10
    .venv/bin/python tests/benchmarks/learning_curves.py --update   # keep the record

The pairs have the same features: a linear discriminant against a logistic regression on the
features, a quadratic one against a logistic regression on their squares and products as well. Both
integrate their parameters out under their default priors. Every repeat draws a training set of n
rows of each class; all other rows are the test. Log loss in nats a row, lower is better; the
difference is paired over repeats, with a 95 % t interval over them: it is about training sets of
these rows, and repeats share test rows, so of other rows it understates the uncertainty a little.

The kept record is what `make figures` draws.
"""

import argparse
import json
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy.stats import t
from sklearn.metrics import log_loss

import bayesgen as bg
from tests.benchmarks import tables
from tests.benchmarks.sampled import TABLES

KEPT = Path(__file__).with_name("learning_curves.json")
SIZES = (4, 8, 16, 32, 64)
DATA = ("penguins", "iris", "wine", "Pokémon")
PAIRS = {
    "linear": (lambda: bg.LinearDiscriminant(), lambda **o: bg.BayesianLogisticRegression(**o)),
    "quadratic": (
        lambda: bg.QuadraticDiscriminant(),
        lambda **o: bg.BayesianLogisticRegression(features="quadratic", **o),
    ),
}


def split(y: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of n training rows of each class, and of all others."""
    train = np.concatenate(
        [rng.choice(np.flatnonzero(y == c), n, replace=False) for c in np.unique(y)]
    )
    return np.sort(train), np.setdiff1d(np.arange(len(y)), train)


def losses(
    X: np.ndarray, y: np.ndarray, pair: str, n: int, repeats: int, **prior: float
) -> np.ndarray:
    """(repeats, 2) log loss of the generative and of the discriminative classifier."""
    generative, discriminative = PAIRS[pair]
    rng = np.random.default_rng(n)
    out = np.empty((repeats, 2))
    for r in range(repeats):
        train, test = split(y, n, rng)
        own = generative().fit(X[train], y[train])
        other = discriminative(draws=500, tune=500, chains=2, random_state=r, **prior)
        other.fit(X[train], y[train], progressbar=False)
        for k, clf in enumerate((own, other)):
            p = np.clip(clf.predict_proba(X[test]), 1e-300, None)
            out[r, k] = log_loss(y[test], p, labels=clf.classes_)
    return out


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean, and the half width of its 95 % t interval."""
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half)


def winner(mean: float, half: float) -> str:
    """Who has the smaller loss; nobody, if the interval has 0."""
    return "" if abs(mean) <= half else "generative" if mean < 0 else "discriminative"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help='as "iris linear 8"')
    parser.add_argument("--repeats", type=int, default=20, metavar="N")
    parser.add_argument(
        "--coef-scale", type=float, metavar="S", help="of the regression; intercept_scale is 2 S"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="where the JSON goes")
    parser.add_argument("--update", action="store_true", help="keep the record")
    args = parser.parse_args(arguments)
    changed = args.only or args.repeats != 20 or args.coef_scale
    if args.update and changed:
        raise SystemExit("--update is for a whole run")
    warnings.filterwarnings("ignore")
    scale = args.coef_scale
    prior = {} if scale is None else {"coef_scale": scale, "intercept_scale": 2 * scale}
    rows: list[dict[str, Any]] = []
    record = {"surroundings": tables.surroundings(), "repeats": args.repeats, "rows": rows}
    path = args.record or (KEPT if args.update else None)
    print("| data | features | n a class | generative | discriminative | difference | |")
    print("|---|---|---|---|---|---|---|")
    for name in DATA:
        X, y = TABLES[name]()
        X = X.astype(float)
        most = min(np.unique(y, return_counts=True)[1]) - 8
        for pair in PAIRS:
            for n in [n for n in SIZES if n <= most]:
                if not re.search(args.only, f"{name} {pair} {n}"):
                    continue
                start = time.perf_counter()
                loss = losses(X, y, pair, n, args.repeats, **prior)
                mean, half = interval(loss[:, 0] - loss[:, 1])
                g, d = loss.mean(axis=0)
                print(
                    f"| {name} | {pair} | {n} | {g:.3f} | {d:.3f} | {mean:+.3f} ± {half:.3f} "
                    f"| {winner(mean, half)} |",
                    flush=True,
                )
                row = {"data": name, "features": pair, "n": n, "losses": loss.tolist()}
                row["classes"] = len(np.unique(y))
                rows.append(row | {"seconds": time.perf_counter() - start})
                if path is not None:
                    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
