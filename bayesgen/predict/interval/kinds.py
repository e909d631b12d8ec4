r"""The kinds of credible interval: which part of a distribution an interval of probability p takes.

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
from typing import Literal

import numpy as np
from scipy.special import expit

from bayesgen.numerics.special import Array

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
