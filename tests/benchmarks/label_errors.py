"""Which labels are wrong? Labels flipped on purpose, and what `bayesgen.label_errors` says of them.

    .venv/bin/python tests/benchmarks/label_errors.py                   # 20 minutes
    .venv/bin/python tests/benchmarks/label_errors.py --models linear   # one of them

At most 1000 rows of each table. A share of the labels is changed to another class drawn from the
others ("random"), or, as often, to the runner-up of cross-validated logistic regression in rows
drawn by how doubtful it is of them ("near"). Log loss of "this label is wrong": `label_errors`, one
minus the exact leave-one-out probability of the label, and one minus that of logistic regression on
standardised columns in five folds. "precision": wrong labels among as many
rows as there are wrong labels, the most suspicious first.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesgen as bg
from tests.benchmarks.open_sets import numbers, real_sets

TABLES = [name for name in real_sets() if name not in ("banana", "letter")]
MOST_ROWS = 1000
NOISE = (("random", 0.0), ("random", 0.05), ("random", 0.2), ("near", 0.05), ("near", 0.2))
MODELS = {
    "pool": lambda: bg.LogLinearPool(
        [bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()]
    ),
    "naive": bg.GaussianNB,
    "linear": bg.LinearDiscriminant,
    "quadratic": bg.QuadraticDiscriminant,
}
METHODS = ("label_errors", "1 - loo", "1 - regression")


def flipped(y: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels with a share of them changed, and which."""
    chosen = rng.choice(len(y), size=round(share * len(y)), replace=False)
    out = y.copy()
    out[chosen] = (y[chosen] + rng.integers(1, len(np.unique(y)), size=len(chosen))) % len(
        np.unique(y)
    )
    return out, chosen


def flipped_near(
    y: np.ndarray, p: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The same to the runner-up, drawn by the probability (N, C) of not being what it is."""
    own = np.arange(len(y)), y
    doubt = 1 - p[own] + 1e-3
    chosen = rng.choice(len(y), size=round(share * len(y)), replace=False, p=doubt / doubt.sum())
    rest = p.copy()
    rest[own] = -1
    out = y.copy()
    out[chosen] = rest[chosen].argmax(axis=1)
    return out, chosen


def log_loss(p: np.ndarray, wrong: np.ndarray) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(-np.mean(np.where(wrong, np.log(p), np.log1p(-p))))


def precision(p: np.ndarray, wrong: np.ndarray) -> float:
    worst = np.argsort(-p, kind="stable")[: wrong.sum()]
    return float(wrong[worst].mean()) if wrong.any() else 1.0


def folds(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    split = StratifiedKFold(5, shuffle=True, random_state=0)
    p: np.ndarray = cross_val_predict(regression, X, y, cv=split, method="predict_proba")
    return p


def loo_of(clf: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(N,) leave-one-out probability of the label."""
    p: np.ndarray = np.exp(clf.loo(X, y).elpd_i.values)
    return p


def measured(X: np.ndarray, y: np.ndarray, kind: str, share: float, model: str, seed: int) -> Any:
    """One table, noise and model: losses, and the probabilities themselves."""
    rng = np.random.default_rng(seed)
    given, chosen = (
        flipped(y, share, rng) if kind == "random" else flipped_near(y, folds(X, y), share, rng)
    )
    wrong = np.isin(np.arange(len(y)), chosen)
    clf = MODELS[model]().fit(X, given)
    found = bg.label_errors(clf, X, given)
    regression = 1 - folds(X, given)[np.arange(len(y)), given]
    left_out = 1 - loo_of(clf, X, given)
    p = [found["wrong"].values, left_out, regression]
    return {
        "loss": {name: log_loss(own, wrong) for name, own in zip(METHODS, p, strict=True)},
        "precision": {name: precision(own, wrong) for name, own in zip(METHODS, p, strict=True)},
        "mean": float(p[0].mean()),
        "rate": float(found["noise_rate"]),
        "exponent": float(found["exponent"]),
        "passes": int(found.attrs["passes"]),
        "doubtful": [int((near := abs(p[0] - 0.5) <= 0.1).sum()), int(wrong[near].sum())],
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=TABLES, metavar="TABLE")
    parser.add_argument("--models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--repeats", type=int, default=1, metavar="N")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, metavar="N")
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    found: dict[str, Any] = {}
    head = [*METHODS, "mean", "exponent", "passes"]
    print("| data | model | noise | " + " | ".join(head) + " |\n" + "|---" * (len(head) + 3) + "|")
    for name in args.only:
        X, y = numbers(name)
        keep = np.sort(np.random.default_rng(0).permutation(len(y))[: args.rows])
        X, y = X[keep], y[keep]
        for model in args.models:
            for kind, share in NOISE:
                rows = [measured(X, y, kind, share, model, seed) for seed in range(args.repeats)]
                found.setdefault(name, {}).setdefault(model, {})[f"{kind} {share}"] = rows
                means = [np.mean([r["loss"][m] for r in rows]) for m in METHODS]
                means += [np.mean([r[k] for r in rows]) for k in ("mean", "exponent", "passes")]
                text = " | ".join(f"{v:.3f}" for v in means)
                print(f"| {name} | {model} | {kind} {share} | {text} |", flush=True)
    _verdict(found)


def _verdict(found: dict[str, Any]) -> None:
    """What was promised, per model over the tables."""
    for model in MODELS:
        of_model = {name: own[model] for name, own in found.items() if model in own}
        if not of_model:
            continue
        for noise in [f"{kind} {share}" for kind, share in NOISE if share]:
            loss = {
                m: np.array(
                    [np.mean([r["loss"][m] for r in own[noise]]) for own in of_model.values()]
                )
                for m in METHODS
            }
            ratio = loss["label_errors"] / loss["1 - loo"]
            beaten = loss["label_errors"] < loss["1 - regression"]
            print(
                f"{model}, {noise}: at most half of 1 - loo on {np.sum(ratio <= 0.5)} of "
                f"{len(ratio)}, worst {ratio.max():.2f}; regression beaten on {beaten.sum()}"
            )
        clean = [np.mean([r["mean"] for r in own["random 0.0"]]) for own in of_model.values()]
        random = [r for own in of_model.values() for n in own if n[0] == "r" for r in own[n]]
        number, wrong = np.sum([r["doubtful"] for r in random], axis=0)
        print(
            f"{model}: mean probability on clean labels {max(clean):.4f} at most; of {number} rows "
            f"with .4 to .6 (random flips) {wrong / max(number, 1):.2f} wrong"
        )


if __name__ == "__main__":
    main()
