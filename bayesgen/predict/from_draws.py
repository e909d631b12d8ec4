"""The distribution of class probabilities from draws of theta, by whatever route they came.

What a posterior without a closed form leaves: percentiles and averages of
rho_sc = p(y = c | x, theta_s), with the error of a Markov chain.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit

from bayesgen.families.contract import Family, Theta
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_odds_against_rest, softmax
from bayesgen.posterior.model import log_class_weights, log_weights
from bayesgen.posterior.monte_carlo import (
    effective_sample_size,
    log_density_parts,
    no_density,
    weighted_sample_size,
)
from bayesgen.predict.draws import Sample
from bayesgen.predict.interval.engine import Intervals
from bayesgen.predict.interval.request import IntervalRequest

_NUMBERS = 1 << 19  # log densities that are worked on at a time: 4 MiB
_CERTAIN = 1e300  # log-odds of a class that no other draws away from


def log_odds(joint: Array) -> Array:
    """(N, C, chain, draw) log-odds of each class against the rest.

    Parameters
    ----------
    joint : (chain, draw, N, C)
        log p(c, x_i | theta), up to a term common to the classes.
    """
    return np.transpose(log_odds_against_rest(np.moveaxis(joint, -1, 0)), (3, 0, 1, 2))


def write_probabilities(
    out: Array, family: Family, theta: Theta, X: Matrix, class_weights: Array | None = None
) -> None:
    """p(c | x_i, theta) of all draws and rows, into `out` (S, N, C); draws of all chains in turn.

    Parameters
    ----------
    theta : {name: (chain, draw, *dims)}
    class_weights : (C,), optional
        In place of those of the draws.
    """
    if class_weights is None:
        log_pi = log_class_weights(family, theta)
    else:
        log_pi = log_weights(class_weights)
    n_classes = out.shape[-1]
    if log_pi.ndim == 1:
        log_pi = np.broadcast_to(log_pi, (len(out), n_classes))
    log_pi = np.ascontiguousarray(log_pi).reshape(len(out), n_classes)
    compiled = kernels.pays(8 * out.size)
    for rows, draws, f in log_density_parts(family, theta, X, n_classes, "probability"):
        if compiled:
            undefined = _softmax_of_draws(f, log_pi[draws], out, draws.start, rows.start)
        else:
            undefined = bool(np.isnan(f.min()))
            out[draws, rows] = softmax(f + log_pi[draws, None])
        if undefined:
            raise no_density(f, X, rows.start, draws.start)


def _softmax_of_draws(f: Array, log_pi: Array, out: Array, draw: int, row: int) -> bool:
    from bayesgen.numerics.kernels.softmax import softmax_of_draws
    from bayesgen.numerics.kernels.threads import over_blocks

    def part(start: int, stop: int) -> bool:
        return softmax_of_draws(f[start:stop], log_pi[start:stop], out, draw + start, row)

    return any(list(over_blocks(part, len(f), f[0].size)))


def interval(joint: Array, request: IntervalRequest) -> Intervals:
    """Credible interval of each class probability; ``error`` is a standard error in percentile.

    Given the training rows alone.

    Parameters
    ----------
    joint : (chain, draw, N, C)
    request : IntervalRequest
    """
    odds = np.clip(log_odds(joint), -_CERTAIN, _CERTAIN)  # infinities have no differences
    n, n_classes = odds.shape[:2]
    low, high = request.ends_of_log_odds(odds.reshape(n, n_classes, -1))
    error = np.zeros(n)
    for end in (low, high):
        below = odds <= end[..., None, None]
        share = below.mean(axis=(-2, -1))
        ess = effective_sample_size(below.astype(float))
        error = np.maximum(error, np.sqrt(share * (1 - share) / ess).max(axis=1))
    return Intervals(*_both_scales(low, high), error)


def _both_scales(low: Array, high: Array) -> tuple[Array, Array, Array, Array, Array]:
    """The fields of `Intervals` up to ``method`` from ends (N, C) as log-odds."""
    low, high = (np.where(np.abs(l) < _CERTAIN, l, np.copysign(np.inf, l)) for l in (low, high))
    method = np.full(len(low), "draws")
    return expit(low), expit(high), low, high, method


@dataclass(frozen=True)
class WeightedIntervals(Intervals):
    """From draws that do not count alike.

    Parameters
    ----------
    weight_ess : (N,)
        Number of draws that the weights leave.
    """

    weight_ess: Array


def weighted_interval(joint: Array, request: IntervalRequest) -> WeightedIntervals:
    r"""The same given the training rows and the row itself: draws weighted by p(x | theta).

    The weights are :math:`p(x | \theta_s) = \sum_c p(c, x | \theta_s)`; ``weight_ess`` is the
    number of draws that they leave. A row that no draw can produce has NaN, and an ESS of 0.

    Parameters
    ----------
    joint : (chain, draw, N, C)
        log p(c, x_i | theta), nothing left out.
    request : IntervalRequest
    """
    odds = np.clip(log_odds(joint), -_CERTAIN, _CERTAIN)
    n, n_classes = odds.shape[:2]
    log_x = np.moveaxis(np.logaddexp.reduce(joint, axis=-1), -1, 0)  # (N, chain, draw)
    top = log_x.max(axis=(1, 2), keepdims=True)
    possible = np.isfinite(top[:, 0, 0])
    weights = np.exp(log_x - np.where(np.isfinite(top), top, 0.0))
    weights[~possible] = 1.0
    weights /= weights.mean(axis=(1, 2), keepdims=True)
    flat = np.repeat(weights.reshape(n, 1, -1), n_classes, axis=1).reshape(n * n_classes, -1)
    sample = Sample(odds.reshape(n * n_classes, -1), flat)
    ends = request.ends(n * n_classes, sample.quantile)
    low, high = (np.where(possible[:, None], l.reshape(n, n_classes), np.nan) for l in ends)
    error = np.zeros(n)
    for end in (low, high):
        below = odds <= end[..., None, None]
        share = (below * weights[:, None]).mean(axis=(-2, -1), keepdims=True)
        influence = weights[:, None] * (below - share)
        mcse = np.sqrt(influence.var(axis=(-2, -1)) / effective_sample_size(influence))
        error = np.maximum(error, mcse.max(axis=1))
    ess = np.where(possible, weighted_sample_size(weights), 0.0)
    error = np.where(possible, error, np.nan)
    return WeightedIntervals(*_both_scales(low, high), error, ess)


def by_rows[T](summary: Callable[[Array], T], blocks: Iterable[tuple[slice, Array]]) -> T:
    """``summary(joint)`` of all rows, a record of arrays (N, ...), from blocks of them.

    A summary makes copies of what it is given: all draws of a few rows, here.
    """
    parts: list[T] = []
    for _, joint in blocks:
        step = max(1, _NUMBERS * joint.shape[2] // max(1, joint.size))
        starts = range(0, joint.shape[2], step)
        parts += [summary(joint[:, :, start : start + step]) for start in starts]
    whole = {k: np.concatenate([vars(part)[k] for part in parts]) for k in vars(parts[0])}
    return type(parts[0])(**whole)


@dataclass(frozen=True)
class Averages:
    """Of N rows and C classes, over draws; entropies in nats."""

    total: Array  # (N,) entropy of the mean probabilities, less its bias
    aleatoric: Array  # (N,) mean entropy
    mean: Array  # (N, C)
    sd: Array  # (N, C)
    top: Array  # (N, C) share of draws in which a class is the most probable
    error: Array  # (N,) largest Monte Carlo standard error of these


def averages(joint: Array) -> Averages:
    """Entropies and moments of the class probabilities; `joint` as in `interval`."""
    rho = np.ascontiguousarray(np.moveaxis(softmax(joint), (0, 1), (2, 3)))  # (N, C, chain, draw)
    entropy = entr(rho).sum(axis=1)
    mean, sd = rho.mean(axis=(2, 3)), rho.std(axis=(2, 3))
    ess = effective_sample_size(rho)
    noise = sd**2 / ess  # variance of the mean as an estimate
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.where(mean > 0, noise / (2 * mean), 0.0).sum(axis=1)
    top = (rho == rho.max(axis=1, keepdims=True)).astype(float)
    top /= top.sum(axis=1, keepdims=True)  # ties share
    spread = entropy.std(axis=(1, 2)) / np.sqrt(effective_sample_size(entropy))
    error = np.maximum(np.sqrt(noise).max(axis=1), spread)
    total = entr(mean).sum(axis=1) + bias
    return Averages(total, entropy.mean(axis=(1, 2)), mean, sd, top.mean(axis=(2, 3)), error)
