"""The distribution of p(y = c | x, theta) of rows, from either kind of posterior.

Each function is generic in the posterior (`functools.singledispatch`): what has a closed form is
computed, what is known by draws is estimated from them. Nothing above this page asks which it is.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, expit

from bayesgen.families.contract import Family, Theta
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array, log_odds_against_rest, log_softmax, softmax
from bayesgen.posterior.drawn import (
    DrawnPosterior,
    effective_sample_size,
    log_density_parts,
    log_joint_blocks,
    no_density,
    of_rows,
    warn_of_weights,
    weighted_sample_size,
)
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import log_class_weights, log_weights, split_chains
from bayesgen.posterior.pooled import Member, MemberRows, PooledPosterior, comparable
from bayesgen.predict.draws import Sample, log_joint_draws
from bayesgen.predict.intervals import Intervals, class_probability_intervals
from bayesgen.predict.left_out import log_odds as log_odds_of
from bayesgen.predict.request import IntervalRequest
from bayesgen.predict.uncertainty import entropies

# ------------------------------------------------------------------------------------------------
# The distribution of class probabilities from draws of theta, by whatever route they came.
#
# What a posterior without a closed form leaves: percentiles and averages of
# rho_sc = p(y = c | x, theta_s), with the error of a Markov chain.

_NUMBERS = 1 << 19  # log densities that are worked on at a time: 4 MiB
_DRAWS = 2000  # of a model that has class probabilities alone
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
        log_pi = of_rows(log_class_weights(family, theta), X)
    else:
        log_pi = log_weights(class_weights)[None]
    n_classes = out.shape[-1]
    each = log_pi.reshape(-1, *log_pi.shape[-2:])  # (S or 1, N or 1, C)
    each = np.broadcast_to(each, (len(out), *each.shape[1:]))
    for rows, draws, f in log_density_parts(family, theta, X, n_classes, "probability"):
        own = each[draws]
        out[draws, rows] = softmax(f + (own[:, rows] if own.shape[1] > 1 else own))
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


# ------------------------------------------------------------------------------------------------
# Draws of what a pool says: of members' parameters, exponents and intercepts.
#
# The members' scores vary by their parameters' posteriors as if all members erred together: they
# learn from the same rows, and independent errors would cancel. Each row's draws are shifted in log
# odds, so that their mean is the prediction.

_POOL_DRAWS = 1000  # of the members' parameters, with as many of exponents and intercepts
_MOST_DRAWS = 1 << 26  # bytes of a member's parameters that all rows share
_CENTRED = 1e-6  # largest difference of a mean probability and its prediction
_MOST_STEPS = 200


def _centred(joint: Array, log_p: Array) -> Array:
    """(S, n, C) with a constant for each row and class, so that mean probabilities are `log_p`."""
    p = np.exp(log_p)
    for _ in range(_MOST_STEPS):
        mean = np.exp(log_softmax(joint)).mean(axis=0)
        if np.abs(mean - p).max() < _CENTRED:
            break
        known = (mean > 0) & (p > 0)
        joint = joint + np.log(np.where(known, p, 1.0) / np.where(known, mean, 1.0))
    return joint


def _theta_of(member: Member, rng: np.random.Generator, draws: int) -> Theta:
    """{name: (1, draws, *dims)} of a member's posterior; {} where there is none."""
    own = member.fitted.posterior
    if own.prior.family.no_theta:
        return {}
    if own.exact:
        drawn: Theta = own.draw(rng, draws, 1)
        return drawn
    flat = {k: np.asarray(v).reshape(-1, *np.shape(v)[2:]) for k, v in own.theta.items()}
    at = rng.integers(len(next(iter(flat.values()))), size=draws)
    return {k: v[at][None] for k, v in flat.items()}


def _by_rows(member: Member, draws: int) -> bool:
    """Whether densities of rows are drawn: all parameters are too many for the memory, or none."""
    own = member.fitted.posterior
    if own.prior.family.no_theta:
        return True
    return own.exact and 8 * draws * own.model.family.n_parameters() > _MOST_DRAWS


def _scores_drawn(member: Member, X: MemberRows, theta: Theta) -> Array:
    """(draws, n, C) of rows under each draw; (1, n, C), the predictive, where there is none."""
    if not theta:
        return X.log_joint(member)[None]
    fitted = member.fitted
    rows, family = fitted.encoded(X.read(member)), fitted.posterior.model.family
    parts = [part[0] for _, part in log_joint_blocks(family, theta, rows)]
    return np.concatenate(parts, axis=1)


def _pooled_draws(
    own: PooledPosterior,
    X: MemberRows,
    rng: np.random.Generator,
    class_prior: Array | None,
    draws: int = _POOL_DRAWS,
    *,
    together: bool = False,
) -> Iterator[tuple[slice, Array]]:
    """(rows, (1, draws, n, C) pooled scores), blocks of rows.

    Members with very many parameters draw them anew for each block, unless all rows are to be
    taken `together`: of one row the distribution is the same.
    """
    n, shift = X.shape[0], own.shift(class_prior)
    anew = [_by_rows(m, draws) for m in own.members]
    thetas = [
        {} if each else _theta_of(m, rng, draws) for m, each in zip(own.members, anew, strict=True)
    ]
    at = rng.permutation(np.arange(draws) % own.n_draws)
    eta, b = (drawn[at] for drawn in own.exponents.flat)
    b = b + shift
    large = 128 if any(anew) else 8  # blocks of 256 or 16 MiB
    blocks = row_blocks(n, max(1, draws * len(shift) // large))
    for rows in [slice(0, n)] if together else blocks:
        part = X[rows]
        scores = own.scores(part)
        joint = np.einsum("sm,mnc->snc", eta, scores, optimize=True) + b[:, None]
        away, sd = np.zeros_like(joint), []
        for m, (member, theta, each) in enumerate(zip(own.members, thetas, anew, strict=True)):
            if each:
                encoded, model = part.read(member).encoded, member.fitted.posterior.model
                whole = together and encoded.ndim == 2
                drawn = log_joint_draws(model, encoded, rng, draws, by_theta=whole)
            else:
                drawn = _scores_drawn(member, part, theta)
            drawn = comparable(drawn)
            one = eta[:, m, None, None] * (drawn - drawn.mean(axis=0))
            away += one
            sd.append(np.sqrt((one - one.mean(axis=2, keepdims=True)).var(axis=0).mean(axis=1)))
        lost = np.sqrt(np.square(sd).sum(axis=0))  # of independent draws: some cancel
        away *= np.where(lost > 0, np.sum(sd, axis=0) / np.where(lost > 0, lost, 1), 1)[:, None]
        target = log_softmax(own.exponents.log_proba(scores) + shift)
        yield rows, _centred(joint + away, target)[None]


def _refuse_given_row(given: str) -> None:
    if given != "training":
        raise NotImplementedError(
            "given='training and row' needs a density of x, and a pool of predictives has "
            "none; ask a member: pool.members_[name].predict_interval(X, given=...)"
        )


_LEAST_SPARE, _MOST_SPARE = 1 << 26, 1 << 29  # bytes of the draws of theta held at a time
_ONE_THETA, _EACH_ROW = "one theta for all rows", "each row on its own"


def _independent_draws(own: ExactPosterior, X: Matrix, rng: Any) -> Iterable[tuple[slice, Array]]:
    """Rows and draws (4, S / 4, n, C) of a model that has class probabilities alone."""
    n_classes = len(own.model.alpha)
    seed = generator(rng).integers(2**63)
    step = max(1, 4 * _NUMBERS // (_DRAWS * n_classes))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        found = log_joint_draws(own.model, X[rows], np.random.default_rng(seed), _DRAWS)
        yield rows, found.reshape(4, -1, *found.shape[1:])


# ------------------------------------------------------------------------------------ intervals


@singledispatch
def credible_intervals(
    own: Any, X: Matrix, joint: Array, request: IntervalRequest, class_prior: Any, rng: Any
) -> Intervals:
    """Credible interval of each class probability of each row.

    Parameters
    ----------
    own : ExactPosterior, DrawnPosterior or PooledPosterior
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
    if own.model.family.discriminative:  # the row without its label says nothing
        return by_rows(partial(interval, request=request), _independent_draws(own, X, rng))
    return class_probability_intervals(own.model, X, request, class_prior, rng, joint=joint)


@credible_intervals.register
def _(own: DrawnPosterior, X: Any, joint: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    # p(y | x, theta) alone says nothing of theta where x has no density
    if request.given == "training" or own.model.family.discriminative:
        blocks = own.log_joint_draws(X, class_prior, "probability")
        return by_rows(partial(interval, request=request), blocks)
    blocks = own.log_joint_draws(X, class_prior, "density")
    found = by_rows(partial(weighted_interval, request=request), blocks)
    warn_of_weights(found.weight_ess)
    return found


@credible_intervals.register
def _(own: PooledPosterior, X: Any, joint: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    """Ends are moved to the prediction where it is outside."""
    _refuse_given_row(request.given)
    blocks = _pooled_draws(own, X, generator(rng), class_prior)
    found = by_rows(partial(interval, request=request), blocks)
    log_p = log_softmax(joint)
    p, odds = np.exp(log_p), log_odds_of(log_p)
    return replace(
        found,
        lower=np.minimum(found.lower, p),
        upper=np.maximum(found.upper, p),
        log_odds_lower=np.minimum(found.log_odds_lower, odds),
        log_odds_upper=np.maximum(found.log_odds_upper, odds),
    )


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
    own : ExactPosterior, DrawnPosterior or PooledPosterior
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
    if own.model.family.discriminative:
        return _of_averages(by_rows(averages, _independent_draws(own, X, rng)), unit)
    pairs: dict[str, Any] = {"training": "posterior", "training and row": "predictive"}
    found = entropies(own.model, X, pairs[given], unit, class_prior, rng)
    moments = found.mean, found.sd, found.top
    return Summary(found.total, found.aleatoric, *moments, found.method, found.error)


@summary.register
def _(own: DrawnPosterior, X: Any, given: str, unit: Any, class_prior: Any, rng: Any) -> Summary:
    if given != "training":
        raise ValueError("given='training and row' has no route from posterior draws")
    return _of_averages(by_rows(averages, own.log_joint_draws(X, class_prior, "probability")), unit)


@summary.register
def _(own: PooledPosterior, X: Any, given: str, unit: Any, class_prior: Any, rng: Any) -> Summary:
    _refuse_given_row(given)
    blocks = _pooled_draws(own, X, generator(rng), class_prior)
    return _of_averages(by_rows(averages, blocks), unit)


def _of_averages(found: Averages, unit: str) -> Summary:
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
    own : ExactPosterior, DrawnPosterior or PooledPosterior
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
def _(own: PooledPosterior, X: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    shape = request.chains, request.draws
    out, _ = _room(*shape, X.shape[0], len(own.model.alpha), request.max_memory)
    blocks = _pooled_draws(own, X, rng, class_prior, shape[0] * shape[1], together=True)
    for rows, joint in blocks:
        out[:, :, rows] = np.exp(log_softmax(joint)).reshape(*shape, *joint.shape[2:])
    return out, _ONE_THETA


@probability_draws.register
def _(own: ExactPosterior, X: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    model, shape = own.model, (request.chains, request.draws)
    out, spare = _room(*shape, X.shape[0], len(model.alpha), request.max_memory)
    flat = out.reshape(out.shape[0] * out.shape[1], *out.shape[2:])
    if request.per_row or model.family.discriminative:
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
