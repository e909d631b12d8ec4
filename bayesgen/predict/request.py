r"""What is asked of an interval, checked once and honoured by every method; and its kinds.

A kind is defined by the probability below its interval, u in [0, 1 - p]; the interval is from the
quantile at u to that at u + p. Distributions come as quantile functions (closed forms, densities on
a mesh) or as draws. To add a kind, add it to `KINDS`: all methods that give intervals then have it.

*Equal tails*, "eti": u = (1 - p)/2. Its ends go through every increasing function.

*Highest density*, "hdi": u minimises the length of the interval. Quantiles go through the sigmoid,
lengths do not: a highest-density interval of the log-odds is none of the probability. For a
probability with quantile function Q of its log-odds, the length

.. math:: W(u) = \sigma(Q(u + p)) - \sigma(Q(u))

is minimised. At u = 0 and u = 1 - p the interval ends at 0 or 1, as it should where the density of
the probability grows without bound there. For a density with one mode this is the interval of
highest density; for one with a mode at either end it is the shortest interval, as in ArviZ.

n rows, Q probabilities, S draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.special import expit

from bayesgen.families.errors import refuse_unknown
from bayesgen.numerics.special import Array
from bayesgen.predict.draws import Sample

QuantileFunction = Callable[[Array], Array]  # probabilities (n, Q) -> (n, Q)
Length = Callable[[Array, Array], Array]  # (lower, upper) -> length of the interval
Ends = tuple[Array, Array]  # lower, upper

_START = 128  # intervals of u in the first pass
_ZOOM = 16


@dataclass(frozen=True)
class Kind:
    """One kind of interval.

    Parameters
    ----------
    below : (quantile, n, prob, length) -> (n,)
        Probability below the interval of each of n distributions, from 0 to 1 - prob.
    of_draws : (draws (..., S), prob) -> (lower, upper), optional
        Interval of plain draws; default by `below` from their order statistics.
    invariant : bool
        Whether an increasing function takes intervals to intervals of the same kind, so that
        `length` does not matter.
    symmetric : bool
        Whether the interval of -x is that of x, mirrored.
    """

    below: Callable[[QuantileFunction, int, float, Length], Array]
    of_draws: Callable[[Array, float], Ends] | None = None
    invariant: bool = True
    symmetric: bool = True


# --------------------------------------------------------------------------------- equal tails


def equal_tails(quantile: QuantileFunction, n: int, prob: float, length: Length) -> Array:
    """(n,) half of what the interval leaves out."""
    return np.full(n, (1 - prob) / 2)


def equal_tails_of_draws(draws: Array, prob: float) -> Ends:
    """ArviZ's."""
    from arviz_stats.base import array_stats

    ends = array_stats.eti(draws, prob, axis=-1)
    return ends[..., 0], ends[..., 1]


# ------------------------------------------------------------------------------- highest density


def in_probability(lower: Array, upper: Array) -> Array:
    """Length in probability of intervals of log-odds: without cancellation."""
    with np.errstate(invalid="ignore"):
        return expit(upper) * expit(-lower) * -np.expm1(np.minimum(lower - upper, 0.0))


def difference(lower: Array, upper: Array) -> Array:
    """Length of intervals on the variable's own scale."""
    return upper - lower


def shortest(
    quantile: QuantileFunction, n: int, prob: float, length: Length = in_probability
) -> tuple[Array, Array]:
    """(n,) each: probability below the shortest interval, and its length; p is in (0, 1)."""
    # denser at both ends, where the quantiles run away
    part = np.sin(np.linspace(0, np.pi / 2, _START + 1)) ** 2
    u = np.broadcast_to(part * (1 - prob), (n, len(part)))
    rows = np.arange(n)
    for _ in range(3):
        first, last = beyond(u, prob)
        inner = np.clip(u, 1e-12, (1 - prob) * (1 - 1e-12))
        lower = np.where(first, -np.inf, quantile(inner))
        upper = np.where(last, np.inf, quantile(inner + prob))
        lengths = length(lower, upper)
        best = np.argmin(lengths, axis=1)
        low, high = u[rows, np.maximum(best - 1, 0)], u[rows, np.minimum(best + 1, u.shape[1] - 1)]
        found, least = u[rows, best], lengths[rows, best]
        u = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _ZOOM + 1)
    return found, least


def highest_density(quantile: QuantileFunction, n: int, prob: float, length: Length) -> Array:
    """(n,) probability below the shortest interval."""
    return shortest(quantile, n, prob, length)[0]


def beyond(u: Array, prob: float) -> tuple[Array, Array]:
    """Whether nothing is below an interval, and whether nothing is above it."""
    return u <= 0, u >= (1 - prob) * (1 - 1e-12)


def shortest_of_draws(draws: Array, prob: float) -> Ends:
    """ArviZ's: the nearest two draws that hold the probability."""
    from arviz_stats.base import array_stats

    with np.errstate(invalid="ignore"):  # infinite draws
        ends = array_stats.hdi(draws, prob, axis=-1)
    return ends[..., 0], ends[..., 1]


KindName = Literal["eti", "hdi"]
KINDS: dict[str, Kind] = {
    "eti": Kind(equal_tails, equal_tails_of_draws),
    "hdi": Kind(highest_density, shortest_of_draws, invariant=False),
}


# ------------------------------------------------------------------------------- the request

Method = Literal["auto", "exact", "draws"]
Given = Literal["training", "training and row"]


@dataclass(frozen=True)
class IntervalRequest:
    """Which intervals.

    Parameters
    ----------
    prob : float in (0, 1)
        Posterior probability of an interval.
    kind : {"eti", "hdi"}
        Equal tails, or the shortest interval; any name in `kinds.KINDS`.
    method : {"auto", "exact", "draws"}
        "exact" inverts characteristic functions; "auto" expands instead the laws of three classes
        and more that are nearly normal; "draws" draws theta.
    given : {"training", "training and row"}
        Whose posterior of theta: p(theta | D), or p(theta | D, x), to which the row itself has been
        added without its label.

    Raises
    ------
    ValueError
        If one is not one of these.
    """

    prob: float
    kind: KindName = "eti"
    method: Method = "auto"
    given: Given = "training"

    def __post_init__(self) -> None:
        """Refuse what is not one of these."""
        if not 0 < self.prob < 1:
            raise ValueError(f"prob must be between 0 and 1, got {self.prob}")
        refuse_unknown("kind", self.kind, KINDS)
        refuse_unknown("method", self.method, get_args(Method))
        refuse_unknown("given", self.given, get_args(Given))

    @classmethod
    def of(cls, prob: float | None = None, kind: Any = None, **options: Any) -> Self:
        """The user's request; ArviZ's settings where prob or kind is None."""
        if prob is None or kind is None:
            from arviz_base import rcParams

            prob = rcParams["stats.ci_prob"] if prob is None else prob
            kind = rcParams["stats.ci_kind"] if kind is None else kind
        return cls(prob, kind, **options)

    # -- intervals ---------------------------------------------------------------------------

    def ends(
        self,
        n: int,
        quantile: QuantileFunction,
        pilot: QuantileFunction | None = None,
        length: Length = in_probability,
    ) -> Ends:
        """(n,) each: the ends of the intervals of n distributions.

        Parameters
        ----------
        quantile : p (n, Q) -> (n, Q)
        pilot : as `quantile`, optional
            Costs less, and is good enough to find the probability below the interval.
        length : (lower, upper) -> length
            Default that of the probability whose log-odds the distributions are of.

        Returns
        -------
        lower, upper : (n,)
            Infinite where nothing is beyond an end.
        """
        u = KINDS[self.kind].below(pilot or quantile, n, self.prob, length)
        first, last = beyond(u, self.prob)
        middle = (1 - self.prob) / 2
        p = np.stack([np.where(first, middle, u), np.where(last, middle, u) + self.prob], axis=1)
        lower, upper = quantile(p).T
        return np.where(first, -np.inf, lower), np.where(last, np.inf, upper)

    def ends_of_draws(self, draws: Array) -> Ends:
        """(...) each, from draws (..., S) on their own scale."""
        kind = KINDS[self.kind]
        if kind.of_draws is not None:
            return kind.of_draws(draws, self.prob)
        flat = draws.reshape(-1, draws.shape[-1])
        sample = Sample(flat)
        u = kind.below(sample.quantile, len(flat), self.prob, difference)
        found = sample.quantile(np.stack([u, u + self.prob], axis=1)).T
        lower, upper = found.reshape(2, *draws.shape[:-1])
        return lower, upper

    def ends_of_log_odds(self, draws: Array) -> Ends:
        """(...) each, as log-odds: intervals of probabilities, from draws (..., S) of log-odds.

        Where an end is one of several draws that round to one probability, the interval holds them
        all.
        """
        if KINDS[self.kind].invariant:
            return self.ends_of_draws(draws)
        # rho, or rho - 1 where it is near 1: it has the digits
        near_one = np.median(draws, axis=-1, keepdims=True) > 0
        rho = np.where(near_one, -expit(-draws), expit(draws))
        lower, upper = (end[..., None] for end in self.ends_of_draws(rho))
        low = np.where(rho >= lower, draws, np.inf).min(axis=-1)
        return low, np.where(rho <= upper, draws, -np.inf).max(axis=-1)
