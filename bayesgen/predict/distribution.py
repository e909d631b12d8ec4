"""The distribution of p(y = c | x, theta) of rows, from either kind of posterior.

Each function is generic in the posterior (`functools.singledispatch`): what has a closed form is
computed, what is known by draws is estimated from them. Nothing above this page asks which it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, expit

from bayesgen.families.contract import Family, Theta
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_odds_against_rest, softmax
from bayesgen.posterior.drawn import (
    DrawnPosterior,
    effective_sample_size,
    log_density_parts,
    no_density,
    warn_of_weights,
    weighted_sample_size,
)
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import log_class_weights, log_weights, split_chains
from bayesgen.predict.draws import Sample, log_joint_draws
from bayesgen.predict.intervals import Intervals, class_probability_intervals
from bayesgen.predict.request import IntervalRequest
from bayesgen.predict.uncertainty import entropies

# ------------------------------------------------------------------------------------------------
# The distribution of class probabilities from draws of theta, by whatever route they came.
#
# What a posterior without a closed form leaves: percentiles and averages of
# rho_sc = p(y = c | x, theta_s), with the error of a Markov chain.

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
    for rows, draws, f in log_density_parts(family, theta, X, n_classes, "probability"):
        out[draws, rows] = softmax(f + log_pi[draws, None])
        if np.isnan(f.min()):
            raise no_density(f, X, rows.start, draws.start)


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


_LEAST_SPARE, _MOST_SPARE = 1 << 26, 1 << 29  # bytes of the draws of theta held at a time
_ONE_THETA, _EACH_ROW = "one theta for all rows", "each row on its own"


# ------------------------------------------------------------------------------------ intervals


@singledispatch
def credible_intervals(
    own: Any, X: Matrix, joint: Array, request: IntervalRequest, class_prior: Any, rng: Any
) -> Intervals:
    """Credible interval of each class probability of each row.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X : (N, D) as the family takes it
    joint : (N, C)
        Log joint densities of the posterior predictive, which say what is impossible.
    request : IntervalRequest
    class_prior : (C,), optional
    rng : int, Generator
        Of routes that draw; a drawn posterior needs none.
    """
    raise NotImplementedError


@credible_intervals.register
def _(own: ExactPosterior, X: Any, joint: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    return class_probability_intervals(own.model, X, request, class_prior, rng, joint=joint)


@credible_intervals.register
def _(own: DrawnPosterior, X: Any, joint: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    # p(y | x, theta) alone says nothing of theta where x has no density
    if request.given == "training" or not own.model.generative:
        blocks = own.log_joint_draws(X, class_prior, "probability")
        return by_rows(partial(interval, request=request), blocks)
    blocks = own.log_joint_draws(X, class_prior, "density")
    found = by_rows(partial(weighted_interval, request=request), blocks)
    warn_of_weights(found.weight_ess)
    return found


# ------------------------------------------------------------------------------------ entropies


class Summary(NamedTuple):
    """Of N rows and C classes; entropies in the unit asked for."""

    total: Array  # (N,)
    aleatoric: Array  # (N,)
    mean: Array  # (N, C)
    sd: Array  # (N, C)
    top: Array  # (N, C)
    route: Array  # (N,)
    error: Array  # (N,)


@singledispatch
def summary(
    own: Any, X: Matrix, given: str, unit: str, class_prior: Array | None, rng: Any
) -> Summary:
    """Entropies and moments of the class probabilities.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X : (N, D) as the family takes it
    given : {"training", "training and row"}
        Whose posterior of theta; the second is not known by draws.
    unit : {"nats", "bits"}
    class_prior : (C,), optional
    rng : int, Generator
    """
    raise NotImplementedError


@summary.register
def _(own: ExactPosterior, X: Any, given: str, unit: Any, class_prior: Any, rng: Any) -> Summary:
    pairs: dict[str, Any] = {"training": "posterior", "training and row": "predictive"}
    found = entropies(own.model, X, pairs[given], unit, class_prior, rng)
    moments = found.mean, found.sd, found.top
    return Summary(found.total, found.aleatoric, *moments, found.method, found.error)


@summary.register
def _(own: DrawnPosterior, X: Any, given: str, unit: Any, class_prior: Any, rng: Any) -> Summary:
    if given != "training":
        raise ValueError("given='training and row' has no route from posterior draws")
    blocks = own.log_joint_draws(X, class_prior, "probability")
    found = by_rows(averages, blocks)
    scale = 1.0 if unit == "nats" else 1 / np.log(2)
    route = np.full(len(found.total), "draws")
    total, aleatoric = found.total * scale, found.aleatoric * scale
    return Summary(total, aleatoric, found.mean, found.sd, found.top, route, found.error)


# ---------------------------------------------------------------------------------------- draws


class DrawRequest(NamedTuple):
    """How many draws, of what, in how much memory.

    Parameters
    ----------
    draws, chains : int
        A drawn posterior has its own.
    per_row : bool
        Draw what each row's probabilities depend on in place of theta: rows are then not jointly
        distributed. A drawn posterior has theta alone.
    max_memory : float
        GiB for the result and what is held on the way.
    """

    draws: int
    chains: int
    per_row: bool
    max_memory: float


@singledispatch
def probability_draws(
    own: Any, X: Matrix, request: DrawRequest, class_prior: Array | None, rng: np.random.Generator
) -> tuple[Array, str]:
    """(chain, draw, N, C) draws of the class probabilities, and what a draw is.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X : (N, D) as the family takes it
    request : DrawRequest
    class_prior : (C,), optional
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If the result alone is larger than the memory allowed.
    """
    raise NotImplementedError


@probability_draws.register
def _(own: DrawnPosterior, X: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    chains, draws = own.shape
    out, _ = _room(chains, draws, X.shape[0], len(own.model.alpha), request.max_memory)
    flat = out.reshape(out.shape[0] * out.shape[1], *out.shape[2:])
    write_probabilities(flat, own.model.family, own.theta, X, class_prior)
    return out, _ONE_THETA


@probability_draws.register
def _(own: ExactPosterior, X: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    model, shape = own.model, (request.chains, request.draws)
    out, spare = _room(*shape, X.shape[0], len(model.alpha), request.max_memory)
    flat = out.reshape(out.shape[0] * out.shape[1], *out.shape[2:])
    if request.per_row:
        step = max(1, (1 << 23) // max(1, len(flat) * flat.shape[2]))
        for start in range(0, flat.shape[1], step):
            rows = slice(start, start + step)
            flat[:, rows] = softmax(log_joint_draws(model, X[rows], rng, len(flat), class_prior))
        return out, _EACH_ROW
    budget = min(max(spare, _LEAST_SPARE), _MOST_SPARE)
    step = max(1, int(budget / (8 * model.family.n_parameters())))
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        theta = split_chains(model.draw(rng, len(part)), 1)
        write_probabilities(part, model.family, theta, X, class_prior)
    return out, _ONE_THETA


def _room(
    chains: int, draws: int, n_rows: int, n_classes: int, max_memory: float
) -> tuple[Array, float]:
    """An array for the result, and the bytes that are left beside it."""
    size = 8 * chains * draws * n_rows * n_classes
    spare = max_memory * (1 << 30) - size
    if spare < 0:
        raise ValueError(
            f"{chains * draws} draws of {n_rows} rows and {n_classes} classes would take "
            f"{size / (1 << 30):.1f} GiB, more than max_memory: give fewer rows at a time or "
            "fewer draws, or use predict_interval, which keeps none"
        )
    return np.empty((chains, draws, n_rows, n_classes)), spare
