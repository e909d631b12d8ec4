"""How small the calibration error of few rows can be, for one who knows model and prior.

    .venv/bin/python -m tests.benchmarks.calibration_floor

Rows of each class are Normal around its mean with a known covariance, means are Normal: 20 rows per
class are learned from by the exact predictive under the model and the prior that made them. Nobody
can do better on average; but given these 20 rows the probabilities are off, in one direction for
all test rows, and the expected calibration error shows it. Beside it what chance alone makes:
the calibration error of labels drawn from the probabilities themselves. Log loss is there to
compare with sets of the same difficulty.

At last the pool: the calibration error of labels drawn from its own posterior of the class
probabilities (parameters and exponents), means over open sets with 20 rows per class.
"""

import argparse
import warnings

import numpy as np
from scipy.special import log_softmax

import bayesgen as bg
from tests.benchmarks.open_sets import SHARED, least_ece, load, scores, splits, take

PER_CLASS, TEST = 20, 600


def known_model(rng, n_classes, n_columns, spread):
    """Log loss, calibration error, and that of chance, of one draw of means and rows."""
    mean = rng.normal(0, spread, (n_classes, n_columns))
    y = np.repeat(np.arange(n_classes), PER_CLASS)
    X = mean[y] + rng.normal(size=(len(y), n_columns))
    codes = rng.integers(n_classes, size=TEST)
    T = mean[codes] + rng.normal(size=(TEST, n_columns))
    precision = PER_CLASS + spread**-2
    found = np.stack([X[y == c].sum(axis=0) for c in range(n_classes)]) / precision
    distance = np.square(T[:, None] - found).sum(axis=2)
    p = np.exp(log_softmax(-distance / (2 * (1 + 1 / precision)), axis=1))
    loss, error = scores(p, codes)
    return loss.mean(), error, least_ece(p)


def of_pool(s, n_splits, draws=60):
    """Calibration errors, means over splits: of the test labels, of chance, of the posterior."""
    rng, out = np.random.default_rng(0), []
    for size, _, train, test in splits(s.y, n_splits):
        if size != "20 per class":
            continue
        test = test[:800]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pool = bg.LogLinearPool().fit(take(s.X, train), s.y[train])
            T = take(s.X, test)
            p = pool.predict_proba(T)
            tree = pool.predict_posterior(T, draws=draws)
        every = tree["predictions"]["class_probability"].values.reshape(-1, *p.shape)[:draws]
        drawn = [scores(p, _labels(rng, q))[1] for q in every]
        codes = np.searchsorted(pool.classes_, s.y[test])
        out.append((scores(p, codes)[1], least_ece(p), np.mean(drawn)))
    return np.mean(out, axis=0)


def _labels(rng, p):
    """One label for each row."""
    return np.minimum((rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1), p.shape[1] - 1)


def with_error(values, digits):
    """Means of (repeat, number), each with its standard error."""
    error = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
    pairs = zip(np.mean(values, axis=0), error, strict=True)
    return ", ".join(f"{m:.{digits}f} +- {e:.{digits}f}" for m, e in pairs)


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print("classes columns spread   log loss, calibration error, by chance")
    for n_classes in (2, 3):
        for n_columns in (2, 10, 30):
            for spread in (0.2, 0.4, 0.8):
                case = n_classes, n_columns, spread
                found = [known_model(rng, *case) for _ in range(options.repeats)]
                print(*case, "  ", with_error(found, 3))
    print("set: calibration error of the pool, by chance, by its own posterior")
    found = {s.name: of_pool(s, options.splits) for s in load(SHARED).values()}
    for name, errors in found.items():
        print(f"{name:15s}", errors.round(3))
    print(f"{'mean over sets':15s}", with_error([*found.values()], 4))


if __name__ == "__main__":
    main()
