r"""What is asked of an interval, and its ends from draws.

*Equal tails*, "eti": half of what the interval leaves out is on either side.

*Highest density*, "hdi": the shortest interval that holds so many draws. Quantiles go through the
sigmoid, lengths do not: a highest-density interval of log odds is none of the probability.
"""

from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
from scipy.special import expit

from bayesgen.families.errors import refuse_unknown
from bayesgen.numerics.special import Array

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
        refuse_unknown("kind", self.kind, get_args(KindName))

    @classmethod
    def of(cls, prob: float | None = None, kind: KindName | None = None) -> Self:
        """Return the user's request, with ArviZ's settings where prob or kind is None."""
        if prob is None or kind is None:
            from arviz_base import rcParams

            prob = rcParams["stats.ci_prob"] if prob is None else prob
            kind = rcParams["stats.ci_kind"] if kind is None else kind
        return cls(prob, kind)

    def ends_of_draws(self, draws: Array) -> Ends:
        """Return (...) each, from draws (..., S) on their own scale."""
        return (equal_tails if self.kind == "eti" else shortest)(draws, self.prob)

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
