"""How often 89 % intervals hold the class probabilities that made the rows.

    python -m tests.benchmarks.coverage

Conjugate classifiers: theta is drawn from the prior, the training rows from theta, with as many
rows of each class, and 20 new rows from another theta. An interval covers if it holds p(y = c | x,
theta) under the theta that made the training rows. 25 data sets of each cell.

Pools: truths are fixed, a common covariance, own covariances, and skewed columns (which no member
has); three tables of each, and one for label trees alone. The model that made the rows sees
logarithms of skewed columns. Results are coverage, mean width, and the share of predictions inside
their own interval.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import multivariate_normal

import bayesgen as bg
from tests.benchmarks import run

PROB = 0.89
N_COLUMNS = 4
N_CLASSES = (2, 3, 6)
ROWS_PER_CLASS = (5, 20, 100)
NORMAL = {"mu0": 0.0, "kappa0": 0.5, "nu0": 5.0, "sigma2_0": 1.0}
WISHART = {"mu0": 0.0, "kappa0": 0.5, "nu0": 8.0, "psi0": 4.0}
VARIANCES = ("class", "tied", "class_spherical", "spherical")
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "BernoulliNB": partial(bg.BernoulliNB, 1.0, 1.0),
    "CategoricalNB": partial(bg.CategoricalNB, 1.0, categories=3),
    "MultinomialNB": partial(bg.MultinomialNB, 1.0),
    "PoissonNB": partial(bg.PoissonNB, 2.0, 0.5),
    **{f"GaussianNB, {v}": partial(bg.GaussianNB, **NORMAL, variance=v) for v in VARIANCES},
    "LinearDiscriminant": partial(bg.LinearDiscriminant, **WISHART),
    "LinearDiscriminant, diagonal": partial(
        bg.LinearDiscriminant, **WISHART, covariance="diagonal"
    ),
    "QuadraticDiscriminant": partial(bg.QuadraticDiscriminant, **WISHART),
    "QuadraticDiscriminant, spherical": partial(
        bg.QuadraticDiscriminant, **WISHART, covariance="spherical"
    ),
}
SETTINGS = ((2, 5), (2, 80), (3, 20), (10, 20))  # classes, rows per class
TRUTHS = {"common": "a common covariance", "own": "own covariances", "skewed": "skewed columns"}
POOL, TREES, RIGHT = "pool", "label trees", "the model that made the rows"
LOGS = np.arange(N_COLUMNS) % 2 == 0  # columns that are exponentials in "skewed"


def of_prior(make: Callable[[], Any], n_classes: int, n: int) -> list[float]:
    """Return the mean coverage of 25 data sets, and its standard error."""
    shares = [of_data_set(make, n_classes, n, seed) for seed in range(25)]
    return [round(float(v), 5) for v in (np.mean(shares), np.std(shares, ddof=1) / 5)]


def of_data_set(make: Callable[[], Any], n_classes: int, n: int, seed: int) -> float:
    """Return the share of intervals that hold the probability."""
    rng = np.random.default_rng([n_classes, n, seed])
    X = np.arange(n_classes * N_COLUMNS).reshape(n_classes, N_COLUMNS) % 3
    prior = make().fit(X, np.arange(n_classes)).prior_.family  # no row changes it
    drawn = prior.draw(rng, 2)
    theta, other = ({name: value[k] for name, value in drawn.items()} for k in range(2))
    codes = np.repeat(np.arange(n_classes), n)
    clf = make().fit(prior.simulate(rng, theta, codes), codes)
    new = prior.simulate(rng, other, rng.integers(n_classes, size=20))
    equal = np.full(n_classes, 1 / n_classes)
    interval = clf.predict_interval(new, prob=PROB, class_prior=equal)["interval"].values
    p = softmax(prior.log_likelihood(new, theta), axis=-1)
    return float(((interval[..., 0] <= p) & (p <= interval[..., 1])).mean())


def of_truth(model: str, kind: str, n_classes: int, n: int, seed: int) -> list[float]:
    """Return coverage, mean width and share of predictions inside, of 60 new rows."""
    rng = np.random.default_rng([seed, n_classes, n, len(kind)])
    means = rng.normal(size=(n_classes, N_COLUMNS)) * 1.2
    common = _covariance(rng)
    covariances = [_covariance(rng) if kind == "own" else common for _ in range(n_classes)]

    def drawn(codes: np.ndarray) -> np.ndarray:
        return np.array([rng.multivariate_normal(means[c], covariances[c]) for c in codes])

    y = np.repeat(np.arange(n_classes), n)
    logs, T_logs = drawn(y), drawn(rng.integers(n_classes, size=60))
    normals = [multivariate_normal(m, s) for m, s in zip(means, covariances, strict=True)]
    p = softmax(np.stack([normal.logpdf(T_logs) for normal in normals], axis=-1), axis=-1)
    if model == RIGHT:
        clf = bg.QuadraticDiscriminant() if kind == "own" else bg.LinearDiscriminant()
        X, T = logs, T_logs
    else:
        clf = bg.LogLinearPool() if model == POOL else bg.MetaTreeForest()
        X, T = (np.where(LOGS, np.exp(z), z) if kind == "skewed" else z for z in (logs, T_logs))
    interval = clf.fit(X, y).predict_interval(T, prob=PROB)
    low, high = np.moveaxis(interval["interval"].values, -1, 0)
    predictive = interval["predictive"].values
    inside = (low - 1e-12 <= predictive) & (predictive <= high + 1e-12)
    values = ((low <= p) & (p <= high)).mean(), (high - low).mean(), inside.mean()
    return [round(float(value), 4) for value in values]


def _covariance(rng: np.random.Generator) -> np.ndarray:
    a = rng.normal(size=(N_COLUMNS, 2 * N_COLUMNS))
    return a @ a.T / (2 * N_COLUMNS)


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure both."""
    for name, make in CLASSIFIERS.items():
        for n_classes in N_CLASSES:
            for n in ROWS_PER_CLASS:
                call = partial(of_prior, make, n_classes, n)
                record.measure(f"prior|{name}|{n_classes}|{n}", call)
    for model in (POOL, RIGHT, TREES):
        for kind in TRUTHS:
            for n_classes, n in SETTINGS:
                for seed in range(1 if model == TREES else 3):
                    call = partial(of_truth, model, kind, n_classes, n, seed)
                    record.measure(f"{model}|{kind}|{n_classes}|{n}|{seed}", call)


def priors(record: run.Record) -> str:
    """Return the mean over cells with its standard error, and the lowest and highest cell."""
    cells = record.frame("what model classes rows", "mean sem", start="prior|")
    error = np.sqrt(np.square(cells["sem"]).sum()) / len(cells)
    return (
        f"{cells['mean'].groupby('model', sort=False).mean().round(3).to_string()}\n"
        f"mean {cells['mean'].mean():.3f} +- {error:.3f}\n"
        f"{cells.agg(['min', 'max']).round(2).to_string()}"
    )


def pools(record: run.Record) -> str:
    """Return a line for each truth and setting, and means."""
    values = "coverage width inside"
    tables = [
        record.frame("model truth classes rows seed", values, f"{model}|")
        .groupby(["truth", "classes", "rows"], sort=False)
        .mean()
        for model in (POOL, RIGHT)
    ]
    both = pd.concat(tables, axis=1)
    body = [
        [f"{TRUTHS[kind]}, C {c}, {n} rows per class", *map(run.short, row)]
        for (kind, c, n), *row in both.itertuples()
    ]
    head = ["truth", f"{POOL}: coverage", "width", "prediction inside", f"{RIGHT}: coverage",
            "width", "inside"]  # fmt: skip
    return run.markdown(head, [*body, ["mean", *map(run.short, both.mean())]])


def trees(record: run.Record) -> str:
    """Return the means of label trees."""
    results = record.frame("model truth classes rows seed", "coverage width inside", f"{TREES}|")
    return f"label trees: {results.mean().round(3).to_dict()}"


TABLES = {"pool-coverage": pools, None: lambda record: f"{priors(record)}\n{trees(record)}"}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
