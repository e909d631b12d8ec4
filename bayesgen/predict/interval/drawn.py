"""Intervals of class probabilities from quasi-random draws of the log joint densities.

What is left where no law is known in closed form or by inversion.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_odds_against_rest
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import (
    REPLICATES,
    Sample,
    block_rows,
    log_joint_draws,
    percentile_error,
    replicates,
)
from bayesgen.predict.interval.contrast import LEAST, MANY, responsibilities, seen
from bayesgen.predict.interval.request import IntervalRequest

_FEWEST = 32  # draws of one label in one replicate


def by_draws(
    model: ClassModel,
    X: Matrix,
    classes: Array,
    request: IntervalRequest,
    class_prior: Array | None,
    rng: Any,
    n_draws: int,
) -> tuple[Array, Array, Array]:
    """Lower and upper ends of the log-odds of `classes` (n, C), and their error (n,), row by row.

    An integer `rng` gives every call the same draws.
    """
    with_row = request.given == "training and row"
    low, high = np.empty((2, X.shape[0], len(classes)))
    error = np.full(X.shape[0], LEAST if with_row else 0.0)
    draws: Any = _given_row if with_row else _given_training
    for row, l, weight in draws(model, X, classes, class_prior, rng, n_draws):
        flat = None
        if weight is not None:
            flat = np.broadcast_to(weight[:, None], l.shape).reshape(len(classes), -1)
        sample = Sample(l.reshape(len(classes), -1), flat)
        low[row], high[row] = request.ends(len(classes), sample.quantile)
        error[row] += max(percentile_error(l, e[row], weight).max() for e in (low, high))
    return low, high, error


def _given_training(
    model: ClassModel, X: Matrix, classes: Array, class_prior: Array | None, rng: Any, n_draws: int
) -> Iterator[tuple[int, Array, None]]:
    """(row, draws of its log-odds (C, draw, replicate), no weights)."""
    size = block_rows(n_draws, len(model.alpha))
    for start in range(0, X.shape[0], size):
        x = X[start : start + size]
        a = np.stack(
            [
                log_joint_draws(model, x, g, n_draws // REPLICATES, class_prior).T[classes]
                for g in replicates(np.random.default_rng(rng), n_draws)
            ],
            axis=-1,
        )  # (C, n, draw, replicate)
        for i in range(a.shape[1]):  # one row fits the cache
            yield start + i, log_odds_against_rest(a[:, i]), None


def _given_row(
    model: ClassModel, X: Matrix, classes: Array, class_prior: Array | None, rng: Any, n_draws: int
) -> Iterator[tuple[int, Array, Array]]:
    """The same under the mixture over the labels that the row may have, draws of each; weights."""
    each = n_draws // REPLICATES
    p = responsibilities(model, X, classes, class_prior)
    for row in range(X.shape[0]):
        labels = np.flatnonzero(p[row] > least_weight(p[[row]])[0])
        parts, weights = [], []
        for k in labels:
            own, x = seen(model, X[[row]], int(classes[k]))
            size = max(_FEWEST, each >> round(-np.log2(p[row, k])))  # about its part of `each`
            a = [
                log_joint_draws(own, x, g, size, class_prior)[:, 0, classes].T
                for g in replicates(np.random.default_rng(rng), size * REPLICATES)
            ]
            parts.append(log_odds_against_rest(np.stack(a, axis=-1)))
            weights.append(np.full(size, p[row, k] / p[row, labels].sum() / size))
        yield row, np.concatenate(parts, axis=1), np.concatenate(weights)


def least_weight(p: Array, total: float = LEAST) -> Array:
    """(n, 1) of labels with probabilities p (n, C): lighter ones have less than `total` in all."""
    if p.shape[1] <= MANY:
        return np.full((len(p), 1), total / p.shape[1])
    ordered = np.sort(p, axis=1)
    first = np.minimum((ordered.cumsum(axis=1) < total).sum(axis=1), p.shape[1] - 1)
    return np.nextafter(ordered[np.arange(len(p)), first], 0.0)[:, None]
