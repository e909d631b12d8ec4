"""How often intervals of a pool hold the probability that made the rows, and how wide they are.

    .venv/bin/python -m tests.benchmarks.pool_coverage            12 settings, 3 tables of each
    .venv/bin/python -m tests.benchmarks.pool_coverage --full     36 settings, 10 tables of each
    .venv/bin/python -m tests.benchmarks.pool_coverage --other    13 settings of other truths
    .venv/bin/python -m tests.benchmarks.pool_coverage --given    truths from a member's prior
    .venv/bin/python -m tests.benchmarks.pool_coverage --trees    label trees alone, not the pool

Truths: a common covariance, own covariances, skewed columns (which no member has); classes and
rows per class as printed. ``--other``: truths that chose no default: independent Normal columns,
independent bits, cubes of Normal columns with own covariances, and categories: eight independent
columns of four, and classes by a logistic regression on such columns. Of each method the share of
true p(y = c | x) in the interval (nominal .89), its mean width, and the share of predictions
inside their own interval. The model that made the rows sees logarithms of skewed columns and
roots of cubes.
"""

import argparse
import warnings

import numpy as np
from scipy.special import softmax
from scipy.stats import multivariate_normal

import bayesgen as bg

SMALL = [
    (k, c, n) for k in ("common", "own", "skewed") for c, n in ((2, 5), (2, 80), (3, 20), (10, 20))
]
FULL = [
    (k, c, n) for k in ("common", "own", "skewed") for c in (2, 3, 10) for n in (5, 20, 80, 200)
]
OTHER = [(k, c, n) for k in ("normal", "bits", "cubes") for c, n in ((2, 12), (4, 30), (6, 100))]
OTHER += [("categories", 2, 12), ("categories", 4, 50), ("logistic", 2, 20), ("logistic", 2, 100)]
D, TEST = 4, 60
LEVELS = np.array(list("abcd"), dtype=object)
LOGS = np.arange(D) % 2 == 0  # columns that are exponentials in "skewed"


def truth(kind, n_classes, rng):
    """(draw, p): rows of a class, and class probabilities of rows."""
    if kind == "bits":
        on = rng.beta(1.0, 1.0, size=(n_classes, 2 * D))

        def of_bits(X):
            return softmax(X @ np.log(on).T + (1 - X) @ np.log1p(-on).T, axis=1)

        return lambda y: (rng.random((len(y), 2 * D)) < on[y]).astype(float), of_bits
    if kind in ("categories", "logistic"):
        return _of_categories(kind, n_classes, rng)
    means = rng.normal(size=(n_classes, D)) * 1.2
    common = _covariance(rng)
    own = [_covariance(rng) if kind in ("own", "cubes") else common for _ in range(n_classes)]
    if kind == "normal":
        own = [np.diag(rng.gamma(3.0, 1 / 3.0, size=D)) for _ in range(n_classes)]

    def draw(y):
        z = np.array([rng.multivariate_normal(means[c], own[c]) for c in y])
        if kind == "cubes":
            return z**3
        return np.where(LOGS, np.exp(z), z) if kind == "skewed" else z

    def p(X):
        z = latent(kind, X)
        logs = [multivariate_normal(m, s).logpdf(z) for m, s in zip(means, own, strict=True)]
        return softmax(np.stack(logs, axis=-1), axis=-1)

    return draw, p


def _of_categories(kind, n_classes, rng):
    """As `truth`: columns of four categories; of "logistic" the frequencies are the same."""
    shape, one = (2 * D, len(LEVELS)), np.arange(2 * D)
    base = rng.dirichlet(np.full(len(LEVELS), 2.0), size=2 * D)
    if kind == "categories":
        theta = np.array([[rng.dirichlet(6 * b) for b in base] for _ in range(n_classes)])
        effect = np.log(theta)
    else:
        theta = np.array([base] * n_classes)
        effect = np.array([np.zeros(shape), rng.normal(size=shape) * 0.7])

    def p(X):
        codes = np.searchsorted(LEVELS, X)
        return softmax(effect[:, one, codes].sum(axis=2).T, axis=1)

    def draw(y):
        out = np.empty((len(y), 2 * D), dtype=object)
        for i, c in enumerate(y):
            while out[i, 0] is None:  # until the row is of that class
                x = LEVELS[[rng.choice(len(LEVELS), p=t) for t in theta[c]]]
                if kind == "categories" or rng.random() < p(x[None])[0, c]:
                    out[i] = x
        return out

    return draw, p


def latent(kind, X):
    """The columns that the model that made the rows sees."""
    if kind == "cubes":
        return np.cbrt(X)
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


def settings(grid, n_tables, make):
    """Print a line for each setting, and means."""
    right = {
        "own": bg.QuadraticDiscriminant,
        "cubes": bg.QuadraticDiscriminant,
        "normal": bg.GaussianNB,
        "bits": bg.BernoulliNB,
        "categories": bg.CategoricalNB,
        "logistic": bg.CategoricalNB,
    }
    every = []
    for kind, n_classes, n in grid:
        rows = []
        for seed in range(n_tables):
            rng = np.random.default_rng([seed, n_classes, n, len(kind)])
            draw, p = truth(kind, n_classes, rng)
            y = np.repeat(np.arange(n_classes), n)
            X, T = draw(y), draw(rng.integers(n_classes, size=TEST))
            model = right.get(kind, bg.LinearDiscriminant)().fit(latent(kind, X), y)
            rows.append([measure(make().fit(X, y), T, p(T)), measure(model, latent(kind, T), p(T))])
        mean = np.mean(rows, axis=0)
        every.append(mean)
        print(f"{kind:10s} C {n_classes:2d} n {n:3d}", *(_line(m) for m in mean), flush=True)
    print(f"{'mean':20s}", *(_line(m) for m in np.mean(every, axis=0)))


def _line(values):
    return "  coverage {:.2f} width {:.2f} inside {:.3f}".format(*values)


def given(n_tables):
    """Truths drawn from a member's prior, hyper-parameters given: the member, and a pool of it."""
    for n_classes, n in ((2, 10), (2, 50), (3, 20)):
        rows = []
        for seed in range(n_tables):
            rng = np.random.default_rng([seed, n_classes, n])
            sd = np.sqrt(1 / rng.gamma(3.0, 1 / 2.0, size=(n_classes, D)))
            mean = rng.normal(size=(n_classes, D)) * sd / np.sqrt(0.2)
            y = np.repeat(np.arange(n_classes), n)
            X, T = (
                mean[c] + sd[c] * rng.normal(size=(len(c), D))
                for c in (y, rng.integers(n_classes, size=TEST))
            )
            logs = -0.5 * ((T[:, None] - mean) / sd) ** 2 - np.log(sd)
            p = softmax(logs.sum(axis=2), axis=1)
            member = bg.GaussianNB(mu0=0.0, kappa0=0.2, nu0=6.0, sigma2_0=2 / 3)
            rows.append(
                [
                    measure(bg.LogLinearPool([member]).fit(X, y), T, p),
                    measure(member.fit(X, y), T, p),
                ]
            )
        print(
            f"prior      C {n_classes:2d} n {n:3d}",
            *(_line(m) for m in np.mean(rows, axis=0)),
            flush=True,
        )


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--other", action="store_true")
    parser.add_argument("--given", action="store_true")
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--tables", type=int, default=0)
    options = parser.parse_args()
    make = bg.MetaTreeForest if options.trees else bg.LogLinearPool
    print(f"{'':20s}   {make.__name__:40s} the model that made the rows")
    if options.given:
        return given(options.tables or 10)
    grid = FULL if options.full else OTHER if options.other else SMALL
    settings(grid, options.tables or (10 if options.full else 3), make)


if __name__ == "__main__":
    main()
