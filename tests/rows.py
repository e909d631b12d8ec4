"""Rows of three classes, of each kind that a classifier reads: f(rng, codes of the classes)."""

from typing import Any

import numpy as np


def with_gaps(rng: np.random.Generator, X: Any) -> Any:
    """Return X without some cells; the first nine rows stay whole."""
    gaps = rng.random(X.shape) < 0.1
    gaps[:9] = False
    return np.where(gaps, np.nan, X)


def reals(rng: np.random.Generator, codes: Any) -> Any:
    mean = np.array([[0.0, 2.0, 5.0], [1.0, 0.0, 4.0], [3.0, 1.0, 9.0]])
    mix = np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    return (mean[codes] + rng.normal(size=(len(codes), 3))) @ mix


def reals_with_gaps(rng: np.random.Generator, codes: Any) -> Any:
    return with_gaps(rng, reals(rng, codes))


def bits(rng: np.random.Generator, codes: Any) -> Any:
    p = np.array([[0.2, 0.8, 0.5, 0.9], [0.7, 0.3, 0.5, 0.6], [0.5, 0.5, 0.1, 0.3]])
    return with_gaps(rng, (rng.random((len(codes), 4)) < p[codes]).astype(float))


def counts(rng: np.random.Generator, codes: Any) -> Any:
    rate = np.array([[2.0, 1.0, 7.0, 3.0], [5.0, 2.0, 1.0, 3.0], [1.0, 9.0, 2.0, 3.0]])
    return rng.poisson(rate[codes]).astype(float)


def counts_with_gaps(rng: np.random.Generator, codes: Any) -> Any:
    return with_gaps(rng, counts(rng, codes))


def categories(rng: np.random.Generator, codes: Any) -> Any:
    words = np.array(["red", "blue", "green"], dtype=object)
    sizes = np.array(["S", "M", "L", "XL"], dtype=object)
    colour = words[np.where(rng.random(len(codes)) < 0.6, codes, rng.integers(0, 3, len(codes)))]
    size = sizes[np.minimum(rng.integers(0, 3, len(codes)) + (codes == 2), 3)]
    X = np.stack([colour, size], axis=1)
    X[: len(sizes), 1] = sizes
    return X


def texts(rng: np.random.Generator, codes: Any) -> Any:
    letters = ["aab ", "abb ", "bccc "]
    return ["".join(rng.choice(list(letters[c]), 3 + rng.integers(6))) for c in codes]
