"""Does the generative model need less data? Log score against rows a class.

    .venv/bin/python tests/benchmarks/learning_curves.py            # about 15 minutes, two cores
    .venv/bin/python tests/benchmarks/learning_curves.py --quick    # 4 repeats

The pairs have the same features: a linear discriminant against a logistic regression on the
features, a quadratic one against a logistic regression on their squares and products as well. Both
integrate their parameters out under weak priors on standardised features. Every repeat draws a
training set of n rows of each class; all other rows are the test. Log loss in nats a row, lower is
better; the difference is paired over repeats, with its standard error over repeats, which share
test rows and so understate it a little.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import log_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import bayesgen as bg
from bayesgen.datasets import POKEMON_STATS, load_penguins, load_pokemon

SIZES = (4, 8, 16, 32, 64)
PAIRS = {
    "linear": (lambda: bg.LinearDiscriminant(), lambda **o: bg.BayesianLogisticRegression(**o)),
    "quadratic": (
        lambda: bg.QuadraticDiscriminant(),
        lambda **o: bg.BayesianLogisticRegression(features="quadratic", **o),
    ),
}


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{name: (X, y)} of real measurements."""
    X, y = load_penguins()
    X = X[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].dropna()
    out = {"penguins": (X.to_numpy(float), np.asarray(y[X.index]))}
    X, y = load_pokemon()
    two = y.isin(["water", "normal"])
    out["Pokémon"] = (X.loc[two, list(POKEMON_STATS)].to_numpy(float), np.asarray(y[two]))
    for name in ("iris", "wine"):
        out[name] = getattr(datasets, f"load_{name}")(return_X_y=True)
    return out


def split(y: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of n training rows of each class, and of all others."""
    train = np.concatenate(
        [rng.choice(np.flatnonzero(y == c), n, replace=False) for c in np.unique(y)]
    )
    return np.sort(train), np.setdiff1d(np.arange(len(y)), train)


def main(repeats: int, record: Path | None) -> None:
    rows: list[dict[str, Any]] = []
    print("| data | features | n a class | generative | discriminative | difference | |")
    print("|---|---|---|---|---|---|---|")
    for name, (X, y) in tables().items():
        most = min(np.unique(y, return_counts=True)[1]) - 8
        for pair, (generative, discriminative) in PAIRS.items():
            for n in [n for n in SIZES if n <= most]:
                rng = np.random.default_rng(n)
                loss = np.empty((repeats, 2))
                start = time.perf_counter()
                for r in range(repeats):
                    train, test = split(y, n, rng)
                    own = generative().fit(X[train], y[train])
                    other = discriminative(draws=500, tune=500, chains=2, random_state=r)
                    other.fit(X[train], y[train], progressbar=False)
                    for k, clf in enumerate((own, other)):
                        p = np.clip(clf.predict_proba(X[test]), 1e-300, None)
                        loss[r, k] = log_loss(y[test], p, labels=clf.classes_)
                gap = loss[:, 0] - loss[:, 1]
                mean, error = gap.mean(), gap.std(ddof=1) / np.sqrt(repeats)
                verdict = "generative" if mean < -2 * error else ""
                verdict = "discriminative" if mean > 2 * error else verdict
                g, d = loss.mean(axis=0)
                print(
                    f"| {name} | {pair} | {n} | {g:.3f} | {d:.3f} | {mean:+.3f} ± {error:.3f} "
                    f"| {verdict} |",
                    flush=True,
                )
                rows.append(
                    {
                        "data": name,
                        "features": pair,
                        "n": n,
                        "generative": float(g),
                        "discriminative": float(d),
                        "difference": float(mean),
                        "error": float(error),
                        "losses": loss.tolist(),
                        "seconds": time.perf_counter() - start,
                    }
                )
    if record is not None:
        record.write_text(json.dumps({"repeats": repeats, "rows": rows}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    main(4 if given.quick else 20, given.record)
