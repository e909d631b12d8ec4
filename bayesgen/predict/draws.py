r"""Intervals and uncertainty of :math:`\rho_c = p(y = c \mid x, \theta)`, from the same draws.

A posterior gives draws of log p(y = c, x | theta) (`JointDraws`); everything on this page is a
function of them, row by row. None of it is p(y | x, D), which is a ratio of expectations and not
the mean of rho. With :math:`H` the entropy,

.. math:: \underbrace{H(E\rho)}_\text{total} = \underbrace{E\,H(\rho)}_\text{aleatoric}
          + \underbrace{I(y; \theta)}_\text{epistemic}

Source: Depeweg et al. (2018), Decomposition of uncertainty in Bayesian deep learning.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self, get_args

import numpy as np
from scipy.special import entr, expit

from bayesgen.errors import refuse_unknown
from bayesgen.io.progress import row_progress
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_odds_against_rest, softmax
from bayesgen.posterior.drawn import error_of_mean
from bayesgen.posterior.interface import JointDraws

_NUMBERS = 1 << 19  # log densities that are worked on at a time: 4 MiB
_CERTAIN = 1e300  # log odds of a class that no other draws away from
_SOON = 3.0  # seconds without a progress bar
_MOST = 4 << 30  # bytes of draws that are returned


# ------------------------------------------------------------------------------------------------
# What is asked of an interval, and its ends from draws.
#
# *Equal tails*, "eti": half of what the interval leaves out is on either side. *Highest density*,
# "hdi": the shortest interval that holds so many draws. Quantiles go through the sigmoid, lengths
# do not: a highest-density interval of log odds is none of the probability.

KindName = Literal["eti", "hdi"]
Ends = tuple[Array, Array]  # lower, upper


def equal_tails(draws: Array, prob: float) -> Ends:
    """Return (...) each, quantiles of draws (..., S), linear between them."""
    tails = np.array([1 - prob, 1 + prob]) / 2
    with np.errstate(invalid="ignore"):
        ends = np.quantile(draws, tails, axis=-1)
    if np.isnan(ends).any():  # between two infinite draws
        ends = np.where(np.isnan(ends), np.quantile(draws, tails, axis=-1, method="lower"), ends)
    return ends[0], ends[1]


def shortest(draws: Array, prob: float) -> Ends:
    """Return (...) each, the nearest two of the draws (..., S) that hold the probability."""
    n = draws.shape[-1]
    n_inside = min(int(np.floor(prob * n)), n - 1)
    ordered = np.sort(draws, axis=-1)
    with np.errstate(invalid="ignore"):
        width = ordered[..., n_inside:] - ordered[..., : n - n_inside]
    first = np.nan_to_num(width, nan=np.inf, posinf=np.inf).argmin(axis=-1)[..., None]
    low = np.take_along_axis(ordered, first, axis=-1)[..., 0]
    return low, np.take_along_axis(ordered, first + n_inside, axis=-1)[..., 0]


@dataclass(frozen=True)
class IntervalRequest:
    """Which intervals.

    Parameters
    ----------
    prob : float in (0, 1)
        Posterior probability of an interval.
    kind : {"eti", "hdi"}
        Equal tails, or the shortest interval.

    Raises
    ------
    ValueError
        If one is not one of these.
    """

    prob: float
    kind: KindName = "eti"

    def __post_init__(self) -> None:
        """Refuse what is not one of these."""
        is_number = isinstance(self.prob, float | int | np.number)
        if not is_number or not 0 < self.prob < 1:
            raise ValueError(f"prob must be between 0 and 1, got {self.prob!r}")
        if self.kind not in get_args(KindName):
            refuse_unknown("kind", self.kind, get_args(KindName))

    @classmethod
    def of(cls, prob: float | None = None, kind: KindName | None = None) -> Self:
        """Return the user's request, with ArviZ's settings where prob or kind is None."""
        if prob is None or kind is None:
            from arviz_base import rcParams

            prob = rcParams["stats.ci_prob"] if prob is None else prob
            kind = rcParams["stats.ci_kind"] if kind is None else kind
        return cls(prob, kind)

    def ends_of_log_odds(self, draws: Array) -> Ends:
        """Return intervals of probabilities as log odds (...), from draws (..., S) of log odds.

        Where an end is one of several draws that round to one probability, the interval holds them
        all.
        """
        if self.kind == "eti":
            return equal_tails(draws, self.prob)
        # rho, or rho - 1 where it is near 1: it has the digits
        near_one = np.median(draws, axis=-1, keepdims=True) > 0
        rho = np.where(near_one, -expit(-draws), expit(draws))
        lower, upper = (end[..., None] for end in shortest(rho, self.prob))
        low = np.where(rho >= lower, draws, np.inf).min(axis=-1)
        return low, np.where(rho <= upper, draws, -np.inf).max(axis=-1)


# ------------------------------------------------------------------------------------------------
# Intervals and averages of rows.


@dataclass(frozen=True)
class Intervals:
    """Credible intervals of N rows.

    Parameters
    ----------
    lower, upper : (N, C)
        Log odds. NaN for a row that is impossible under every class.
    error : (N,)
        Largest standard error of the probability below an end.
    """

    lower: Array
    upper: Array
    error: Array


@dataclass(frozen=True)
class Averages:
    """Of N rows and C classes, over draws; entropies in nats."""

    total: Array  # (N,) entropy of the mean probabilities, less its bias
    aleatoric: Array  # (N,) mean entropy
    mean: Array  # (N, C)
    sd: Array  # (N, C)
    top: Array  # (N, C) share of draws in which a class is the most probable
    error: Array  # (N,) largest Monte Carlo standard error of these


def intervals(draws: JointDraws, request: IntervalRequest) -> Intervals:
    """Return credible intervals of the log odds of each class against all others."""
    summary = partial(intervals_of_joint, request=request, independent=draws.independent)
    return _by_rows(summary, draws, "intervals")


def averages(draws: JointDraws) -> Averages:
    """Return entropies and moments of the class probabilities."""
    return _by_rows(partial(_averages, draws.independent), draws, "uncertainty")


def probabilities(draws: JointDraws) -> Array:
    """Return (chain, draw, N, C) class probabilities.

    Raises
    ------
    ValueError
        If they would take more than 4 GiB.
    """
    chains, length, n_rows, n_classes = draws.shape
    refuse_large(chains * length, n_rows, n_classes)
    rho = np.empty(draws.shape)
    for rows, joint in _shown(draws, "draws"):
        rho[:, :, rows] = softmax(joint)
    return rho


def refuse_large(n_draws: int, n_rows: int, n_classes: int) -> None:
    """Raise ValueError where the draws of `probabilities` would take too much memory."""
    size = 8 * n_draws * n_rows * n_classes
    if size > _MOST:
        raise ValueError(
            f"{n_draws} draws of {n_rows} rows and {n_classes} classes would take "
            f"{size / (1 << 30):.1f} GiB, more than 4: give fewer rows at a time or fewer draws, "
            "or use predict_interval, which keeps none"
        )


def _shown(draws: JointDraws, what: str) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks, with a progress bar where they take more than some seconds."""
    start, update, n_rows = time.monotonic(), None, draws.shape[2]
    with ExitStack() as stack:
        for rows, joint in draws.blocks:
            yield rows, joint
            if update is None and time.monotonic() - start > _SOON and rows.stop < n_rows:
                update = stack.enter_context(row_progress(what, n_rows))
            if update is not None:
                update(rows.stop, rows.stop)


def _by_rows[T](summary: Callable[[Array], T], draws: JointDraws, what: str) -> T:
    """Join ``summary(joint)`` of some rows at a time, records of arrays (n, ...)."""
    parts: list[T] = []
    for _, joint in _shown(draws, what):
        n = joint.shape[2]
        blocks = row_blocks(n, joint.size // max(1, n), _NUMBERS)
        parts += [summary(joint[:, :, rows]) for rows in blocks]
    if not parts:
        parts = [summary(np.zeros(draws.shape))]
    fields = {k: np.concatenate([vars(block)[k] for block in parts]) for k in vars(parts[0])}
    return type(parts[0])(**fields)


def intervals_of_joint(
    joint: Array, request: IntervalRequest, independent: bool = False
) -> Intervals:
    """Intervals from (chain, draw, n, C) log joint densities."""
    n_chains, length, n, n_classes = joint.shape
    n_draws = n_chains * length
    by_class = np.ascontiguousarray(joint.transpose(3, 2, 0, 1)).reshape(n_classes, n, n_draws)
    odds = np.clip(log_odds_against_rest(by_class), -_CERTAIN, _CERTAIN)  # inf has no differences
    if n_classes == 2:  # the second class is the mirror image of the first
        odds = odds[:1]
    low, high = request.ends_of_log_odds(odds)
    error = np.zeros(n)
    for end in (low, high):
        below = (odds <= end[..., None]).reshape(*odds.shape[:2], n_chains, length)
        error = np.maximum(error, _error(below.astype(float), independent).max(axis=0))
    low, high = (np.where(np.abs(e) < _CERTAIN, e, np.copysign(np.inf, e)).T for e in (low, high))
    if n_classes == 2:
        low, high = np.hstack([low, -high]), np.hstack([high, -low])
    impossible = np.isneginf(by_class).all(axis=(0, 2))
    low[impossible] = high[impossible] = np.nan
    return Intervals(low, high, error)


def _averages(independent: bool, joint: Array) -> Averages:
    """Averages over (chain, draw, n, C) log joint densities."""
    rho = np.ascontiguousarray(np.moveaxis(softmax(joint), (0, 1), (2, 3)))  # (n, C, chain, draw)
    entropy = entr(rho).sum(axis=1)
    mean, sd = rho.mean(axis=(2, 3)), rho.std(axis=(2, 3))
    noise = _error(rho, independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.where(mean > 0, noise**2 / (2 * mean), 0.0).sum(axis=1)
    top = (rho == rho.max(axis=1, keepdims=True)).astype(float)
    top /= top.sum(axis=1, keepdims=True)  # ties share
    # H(mean) is a curved function of the mean: its error by the delta method
    log_mean = np.log(np.where(mean > 0, mean, 1.0))[..., None, None]
    error = noise.max(axis=1)
    for series in (entropy, (log_mean * rho).sum(axis=1)):
        error = np.maximum(error, _error(series, independent))
    aleatoric = entropy.mean(axis=(1, 2))
    total = np.maximum(entr(mean).sum(axis=1) + bias, aleatoric)  # an information is not negative
    return Averages(total, aleatoric, mean, sd, top.mean(axis=(2, 3)), error)


def _error(series: Array, independent: bool) -> Array:
    """Return (...,) standard errors of the means of (..., chain, draw)."""
    if not independent:
        return error_of_mean(series)
    spread: Array = series.std(axis=(-2, -1))
    return spread / np.sqrt(series.shape[-2] * series.shape[-1])
