"""Coverage of `predict_interval` where the model is right, at 89 %.

    python -m tests.benchmarks.interval_coverage              # 60 data sets a cell, some minutes
    python -m tests.benchmarks.interval_coverage --sets 25

Theta is drawn from the prior of each classifier, the training rows from theta, with as many rows of
each class, and the new rows from another theta. An interval covers if it holds p(y = c | x, theta)
under the theta that made the training rows. The standard error of a cell is that of a mean over its
data sets, since the intervals of one data set err together.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bayesgen as bg
from bayesgen.numerics.special import softmax

PROB = 0.89
N_CLASSES = (2, 3, 6)
ROWS_PER_CLASS = (5, 20, 100)
N_COLUMNS, N_NEW = 4, 20
NORMAL = {"mu0": 0.0, "kappa0": 0.5, "nu0": 5.0, "sigma2_0": 1.0}
WISHART = {"mu0": 0.0, "kappa0": 0.5, "nu0": 8.0, "psi0": 4.0}
VARIANCES = ("class", "tied", "class_spherical", "spherical")
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "BernoulliNB": lambda: bg.BernoulliNB(1.0, 1.0),
    "CategoricalNB": lambda: bg.CategoricalNB(1.0, categories=3),
    "MultinomialNB": lambda: bg.MultinomialNB(1.0),
    "PoissonNB": lambda: bg.PoissonNB(2.0, 0.5),
    **{f"GaussianNB, {v}": lambda v=v: bg.GaussianNB(**NORMAL, variance=v) for v in VARIANCES},
    "LinearDiscriminant": lambda: bg.LinearDiscriminant(**WISHART),
    "LinearDiscriminant, diagonal": lambda: bg.LinearDiscriminant(**WISHART, covariance="diagonal"),
    "QuadraticDiscriminant": lambda: bg.QuadraticDiscriminant(**WISHART),
    "QuadraticDiscriminant, spherical": lambda: bg.QuadraticDiscriminant(
        **WISHART, covariance="spherical"
    ),
}


def prior_of(make: Callable[[], Any], n_classes: int) -> Any:
    """Return the resolved prior of the columns' parameters, which no row changes."""
    X = np.arange(n_classes * N_COLUMNS).reshape(n_classes, N_COLUMNS) % 3
    return make().fit(X, np.arange(n_classes)).prior_.family


def coverage(make: Callable[[], Any], prior: Any, n_classes: int, n: int, seed: int) -> float:
    """Return the share of intervals of one data set that hold the probability."""
    rng = np.random.default_rng([n_classes, n, seed])
    drawn = prior.draw(rng, 2)
    theta, other = ({name: value[k] for name, value in drawn.items()} for k in range(2))
    codes = np.repeat(np.arange(n_classes), n)
    clf = make().fit(prior.simulate(rng, theta, codes), codes)
    new = prior.simulate(rng, other, rng.integers(n_classes, size=N_NEW))
    equal = np.full(n_classes, 1 / n_classes)
    interval = clf.predict_interval(new, prob=PROB, class_prior=equal)["interval"].to_numpy()
    probability = softmax(prior.log_likelihood(new, theta))
    return float(((interval[..., 0] <= probability) & (probability <= interval[..., 1])).mean())


def cells(n_sets: int) -> Iterator[tuple[str, int, int, float, float]]:
    """Yield (classifier, classes, rows per class, coverage, standard error)."""
    for name, make in CLASSIFIERS.items():
        for n_classes in N_CLASSES:
            prior = prior_of(make, n_classes)
            for n in ROWS_PER_CLASS:
                each = [coverage(make, prior, n_classes, n, seed) for seed in range(n_sets)]
                yield name, n_classes, n, np.mean(each), np.std(each, ddof=1) / np.sqrt(n_sets)


def main() -> None:
    """Print a row for each classifier, and the mean over all cells."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=60, help="data sets of a cell")
    n_sets = parser.parse_args().sets
    columns = [f"C {c}, {n}" for c in N_CLASSES for n in ROWS_PER_CLASS]
    print("| classifier |", " | ".join(columns), "|")
    print("|---|" + "---|" * len(columns))
    row, every = [], []
    for name, _, _, mean, error in cells(n_sets):
        row.append(f"{mean:.2f}".lstrip("0"))
        every.append((mean, error))
        if len(row) == len(columns):
            print(f"| {name} |", " | ".join(row), "|", flush=True)
            row = []
    mean, error = np.array(every).T
    deviation = (mean - PROB) / np.maximum(error, 1e-3)
    print(f"\nmean {mean.mean():.3f} +- {np.sqrt(np.square(error).sum()) / len(mean):.3f}")
    print(f"lowest deviation {deviation.min():.1f} standard errors, of {len(mean)} cells")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
