"""How often intervals of `bayesgen.expected_score` hold the score that the labels then give.

    .venv/bin/python tests/benchmarks/expected_score.py           # a few minutes
    .venv/bin/python tests/benchmarks/expected_score.py --shift   # other frequencies of classes

Two thirds of at most 1000 rows of each table to learn from, the others without labels; nominal
coverage .9. With ``--shift`` rows of the first half of the classes are kept with probability 1/4
among the others, whose class weights `bayesgen.estimate_class_prior` then estimates; predictions
use the mean of its draws.
"""

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import bayesgen as bg
from tests.benchmarks.label_errors import MODELS, TABLES
from tests.benchmarks.real_sets import SETS, split

SCORES = ("log_loss", "accuracy", "brier")


def realised(log_p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """(3,) scores of known labels."""
    own = np.arange(len(codes)), codes
    p = np.exp(log_p)
    brier = np.square(p - np.eye(p.shape[1])[codes]).sum(axis=1).mean()
    return np.array([-log_p[own].mean(), np.mean(p.argmax(axis=1) == codes), brier])


def one(X: np.ndarray, y: np.ndarray, model: str, seed: int, *, shift: bool) -> np.ndarray:
    """(3,) whether the intervals hold the scores."""
    train, test = split(y, seed)
    rng = np.random.default_rng(seed)
    if shift:
        rare = y[test] < (y.max() + 1) / 2
        test = test[~rare | (rng.random(len(test)) < 0.25)]
    clf = MODELS[model]().fit(X[train], y[train])
    weights = bg.estimate_class_prior(clf, X[test]) if shift else None
    mean = None if weights is None else weights["summary"]["mean"].values
    truth = realised(clf.predict_log_proba(X[test], class_prior=mean), y[test])
    found = bg.expected_score(
        clf,
        X[test],
        class_prior=weights,
        training=(X[train], y[train]),
        prob=0.9,
        random_state=seed,
    )
    low, high = found["interval"].values.T
    return (low <= truth) & (truth <= high)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=TABLES, metavar="TABLE")
    parser.add_argument("--models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--repeats", type=int, default=10, metavar="N")
    parser.add_argument("--shift", action="store_true")
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    print("| model | data | " + " | ".join(SCORES) + " |\n" + "|---" * 5 + "|")
    for model in args.models if not args.shift else [m for m in args.models if m != "pool"]:
        every = []
        for name in args.only:
            X, y = SETS[name]()
            keep = np.sort(np.random.default_rng(0).permutation(len(y))[:1000])
            seeds = range(args.repeats)
            held = np.array([one(X[keep], y[keep], model, k, shift=args.shift) for k in seeds])
            every.append(held.mean(axis=0))
            _line(model, name, every[-1])
        _line(model, "all", np.mean(every, axis=0))


def _line(model: str, name: str, held: np.ndarray) -> None:
    print(f"| {model} | {name} | " + " | ".join(f"{v:.2f}" for v in held) + " |", flush=True)


if __name__ == "__main__":
    main()
