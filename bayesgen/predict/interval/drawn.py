"""Intervals of class probabilities from quasi-random draws of the log joint densities.

What is left where no law is known in closed form or by inversion: each function returns lower and
upper ends of the log-odds (n, C) and the standard error (n,) of the probability below an end.
"""

from typing import Any

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import (
    REPLICATES,
    Sample,
    block_rows,
    log_joint_draws,
    log_odds_against_rest,
    percentile_error,
    replicates,
)
from bayesgen.predict.interval.against_rest import LEAST
from bayesgen.predict.interval.contrast import responsibilities, seen
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
    """Given the training rows; an integer `rng` gives all blocks of rows the same draws."""
    low, high = np.empty((2, X.shape[0], len(classes)))
    error = np.empty(X.shape[0])
    size = block_rows(n_draws, len(model.alpha))
    for start in range(0, X.shape[0], size):
        rows = np.arange(start, min(start + size, X.shape[0]))
        a = np.stack(
            [
                log_joint_draws(model, X[rows], g, n_draws // REPLICATES, class_prior).T[classes]
                for g in replicates(np.random.default_rng(rng), n_draws)
            ],
            axis=-1,
        )  # (C, n, draw, replicate)
        for i, row in enumerate(rows):  # one row fits the cache
            l = log_odds_against_rest(a[:, i])
            sample = Sample(l.reshape(len(classes), -1))
            low[row], high[row] = request.ends(len(classes), sample.quantile)
            error[row] = max(percentile_error(l, e[row]).max() for e in (low, high))
    return low, high, error


def by_mixed_draws(
    model: ClassModel,
    X: Matrix,
    classes: Array,
    request: IntervalRequest,
    class_prior: Array | None,
    rng: Any,
    n_draws: int,
) -> tuple[Array, Array, Array]:
    """Given the row too: under the mixture over the labels that it may have, draws of each."""
    low, high = np.empty((2, X.shape[0], len(classes)))
    error = np.empty(X.shape[0])
    each = n_draws // REPLICATES
    p = responsibilities(model, X, classes, class_prior)
    for row in range(X.shape[0]):
        labels = np.flatnonzero(p[row] > LEAST / len(classes))
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
        l = np.concatenate(parts, axis=1)  # (C, draw, replicate)
        weight = np.concatenate(weights)
        flat = np.broadcast_to(weight[:, None], l.shape).reshape(len(classes), -1)
        sample = Sample(l.reshape(len(classes), -1), flat)
        low[row], high[row] = request.ends(len(classes), sample.quantile)
        error[row] = LEAST + max(percentile_error(l, e[row], weight).max() for e in (low, high))
    return low, high, error
