"""How often `bg.validate` refuses a closed form that is right, and how its z-scores are spread.

    .venv/bin/python tests/benchmarks/false_alarms.py --runs 10         # of each classifier
    .venv/bin/python tests/benchmarks/false_alarms.py --runs 1 --nuts   # sampled by NUTS

Every conjugate family is fitted to rows of its own kind, new ones in each run. In place of NUTS
stand independent draws of the closed form, unless ``--nuts``: then the verdict rests on the sampler
too. With ``false_alarm=0.01`` a hundred runs should hold one "disagree" at most, more often none.
The last columns: the largest |z| of each kind of comparison over its threshold, in all runs.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

import bayesgen as bg

N = 45


def cases(rng: np.random.Generator) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, classifier, rows and labels; three classes, few rows of the last."""
    y = np.where(np.arange(N) < 30, np.where(np.arange(N) % 2, "a", "b"), "c")
    shift = (y == "b") * 1.0 - (y == "c") * 0.7
    mixed = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    reals = rng.normal(size=(N, 3)) @ mixed + shift[:, None]
    bits = (rng.random((N, 4)) < 0.2 + 0.2 * (y == "b")[:, None]).astype(int)
    counts = rng.poisson(1.0 + (y == "b")[:, None] * [2, 0, 1, 0], (N, 4))
    codes = rng.integers(0, 3, (N, 3))
    words = ["".join(rng.choice(list("aab"), 6)) for _ in range(N)]
    missing_cells = np.where(rng.random(reals.shape) < 0.1, np.nan, reals)
    frame = pd.DataFrame(reals[:, :2], columns=["u", "v"]).assign(
        bit=bits[:, 0], colour=np.array(list("rgb"))[codes[:, 0]]
    )
    two = y != "c"
    yield "BernoulliNB", bg.BernoulliNB(class_alpha=2.0), bits, y
    yield "CategoricalNB", bg.CategoricalNB(), codes, y
    yield "MultinomialNB", bg.MultinomialNB(alpha=0.5), counts, y
    yield "PoissonNB", bg.PoissonNB(), counts, y
    yield "GaussianNB", bg.GaussianNB(), missing_cells, y
    yield "GaussianNB tied", bg.GaussianNB(variance="tied"), reals, y
    yield "GaussianNB spherical", bg.GaussianNB(variance="spherical"), reals[two], y[two]
    yield "LinearDiscriminant", bg.LinearDiscriminant(), reals, y
    yield "QuadraticDiscriminant", bg.QuadraticDiscriminant(), reals, y
    yield "QuadraticDiscriminant 2", bg.QuadraticDiscriminant(), reals[two], y[two]
    yield "MixedNB", bg.MixedNB(), frame, y
    yield "MarkovNB", bg.MarkovNB(order=1), words, y


@contextmanager
def without_nuts() -> Iterator[None]:
    """Independent draws of the closed form in place of NUTS."""
    import xarray as xr
    from bayesgen.estimators.posterior import Posterior

    def sample(self: Any, draws: int, _: int, chains: int, seed: int, *__: Any, **___: Any) -> Any:
        tree = self.draw_posterior(draws, chains, seed + 77, groups=())
        diverging = np.zeros((chains, draws), dtype=bool)
        tree["sample_stats"] = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
        return tree

    with mock.patch.object(Posterior, "sample_posterior", sample):
        yield


def main() -> None:
    """Print one line a run that is no agreement, and one a classifier."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="data sets for each classifier")
    parser.add_argument("--nuts", action="store_true", help="sample")
    parser.add_argument("--only", default="", help="classifiers whose name holds this")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    total: dict[str, list[Any]] = {}
    worst: dict[str, float] = {}
    for run in range(args.runs):
        for name, clf, X, y in cases(np.random.default_rng(run)):
            if args.only not in name:
                continue
            start = time.perf_counter()
            if args.nuts:
                result = bg.validate(clf, X, y, random_seed=run, progressbar=False)
            else:
                with without_nuts():
                    result = bg.validate(clf, X, y, random_seed=run, progressbar=False)
            total.setdefault(name, []).append((result, time.perf_counter() - start))
            if result.verdict != "agree":
                print(f"run {run}, {name}\n{result}", flush=True)
            checks = result.checks
            for kind, z in zip(checks["variable"].values, checks["z"].values, strict=True):
                largest = float(np.nanmax(np.abs(z))) / result.threshold
                worst[kind] = max(worst.get(kind, 0.0), largest)
    verdicts = [result.verdict for results in total.values() for result, _ in results]
    for name, results in total.items():
        z = np.concatenate([r.checks["z"].values.ravel() for r, _ in results])
        z = z[np.isfinite(z)]
        found = {v: sum(r.verdict == v for r, _ in results) for v in sorted(set(verdicts))}
        seconds = np.mean([s for _, s in results])
        first = results[0][0]
        print(
            f"{name:24} {found} comparisons {first.checks.attrs['comparisons']}, sd of z "
            f"{z.std():.3f}, share beyond 3: {np.mean(np.abs(z) > 3):.5f} (0.0027), largest "
            f"{np.abs(z).max():.2f} of {first.threshold:.2f}; {seconds:.2f} s; "
            f"not compared: {len(first.not_compared)}"
        )
    print({v: verdicts.count(v) for v in sorted(set(verdicts))})
    for kind, value in sorted(worst.items(), key=lambda pair: -pair[1]):
        print(f"  {value:.2f} of the threshold: {kind}")


if __name__ == "__main__":
    main()
