"""How often intervals of a pool hold the probability that made the rows, and how wide they are.

    .venv/bin/python -m tests.benchmarks.pool_coverage            12 settings, 3 tables of each
    .venv/bin/python -m tests.benchmarks.pool_coverage --trees    label trees alone, not the pool

Truths: a common covariance, own covariances, skewed columns (which no member has); classes and
rows per class as printed. Of each method the share of
true p(y = c | x) in the interval (nominal .89), its mean width, and the share of predictions
inside their own interval. The model that made the rows sees
logarithms of skewed columns.
"""

import argparse
import warnings

import numpy as np
from scipy.special import softmax
from scipy.stats import multivariate_normal

import bayesgen as bg

SETTINGS = [
    (k, c, n) for k in ("common", "own", "skewed") for c, n in ((2, 5), (2, 80), (3, 20), (10, 20))
]
D, TEST = 4, 60
LOGS = np.arange(D) % 2 == 0  # columns that are exponentials in "skewed"


def truth(kind, n_classes, rng):
    """(draw, p): rows of a class, and class probabilities of rows."""
    means = rng.normal(size=(n_classes, D)) * 1.2
    common = _covariance(rng)
    covariances = [_covariance(rng) if kind == "own" else common for _ in range(n_classes)]
    normals = [multivariate_normal(m, s) for m, s in zip(means, covariances, strict=True)]

    def draw(y):
        z = np.array([rng.multivariate_normal(means[c], covariances[c]) for c in y])
        return np.where(LOGS, np.exp(z), z) if kind == "skewed" else z

    def p(X):
        return softmax(np.stack([normal.logpdf(latent(kind, X)) for normal in normals], -1), -1)

    return draw, p


def latent(kind, X):
    """The columns that the model that made the rows sees."""
    return np.where(LOGS, np.log(np.where(LOGS, X, 1.0)), X) if kind == "skewed" else X


def _covariance(rng):
    a = rng.normal(size=(D, 2 * D))
    return a @ a.T / (2 * D)


def measure(clf, X, p):
    """Coverage, width, share of predictions inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clf.predict_interval(X, prob=0.89)
    low, high = found["interval"].values[..., 0], found["interval"].values[..., 1]
    own = found["predictive"].values
    slack = 1e-12
    inside = (low - slack <= own) & (own <= high + slack)
    return [((low <= p) & (p <= high)).mean(), (high - low).mean(), inside.mean()]


def settings(n_tables, make):
    """Print a line for each setting, and means."""
    every = []
    for kind, n_classes, n in SETTINGS:
        rows = []
        for seed in range(n_tables):
            rng = np.random.default_rng([seed, n_classes, n, len(kind)])
            draw, p = truth(kind, n_classes, rng)
            y = np.repeat(np.arange(n_classes), n)
            X, T = draw(y), draw(rng.integers(n_classes, size=TEST))
            right = bg.QuadraticDiscriminant() if kind == "own" else bg.LinearDiscriminant()
            model = right.fit(latent(kind, X), y)
            rows.append([measure(make().fit(X, y), T, p(T)), measure(model, latent(kind, T), p(T))])
        mean = np.mean(rows, axis=0)
        every.append(mean)
        print(f"{kind:10s} C {n_classes:2d} n {n:3d}", *(_line(m) for m in mean), flush=True)
    print(f"{'mean':20s}", *(_line(m) for m in np.mean(every, axis=0)))


def _line(values):
    return "  coverage {:.2f} width {:.2f} inside {:.3f}".format(*values)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--tables", type=int, default=3)
    options = parser.parse_args()
    make = bg.MetaTreeForest if options.trees else bg.LogLinearPool
    print(f"{'':20s}   {make.__name__:40s} the model that made the rows")
    settings(options.tables, make)


if __name__ == "__main__":
    main()
