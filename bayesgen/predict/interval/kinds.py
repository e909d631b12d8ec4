r"""The shortest interval of a probability, from the quantiles of its log-odds.

Quantiles go through the sigmoid, the length of an interval does not: a highest-density interval of
the log-odds is none of the probability. So the length in probability,

.. math:: W(u) = \sigma(Q(u + p)) - \sigma(Q(u)), \qquad 0 \le u \le 1 - p,

is minimised over u. At u = 0 and u = 1 - p the interval ends at 0 or 1, as it should where the
density of the probability grows without bound there. For a density with one mode this is the
interval of highest density; for one with a mode at either end it is the shortest interval, as in
ArviZ.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from bayesgen.numerics.special import Array

_START = 128  # intervals of u in the first pass
_ZOOM = 16


def in_probability(lower: Array, upper: Array) -> Array:
    """sigma(upper) - sigma(lower) without cancellation."""
    with np.errstate(invalid="ignore"):
        return expit(upper) * expit(-lower) * -np.expm1(np.minimum(lower - upper, 0.0))


def shortest(
    quantile: Callable[[Array], Array],
    n: int,
    prob: float,
    length: Callable[[Array, Array], Array] = in_probability,
) -> tuple[Array, Array]:
    """(n,) each: the lower tail probability u, and the length W(u).

    Parameters
    ----------
    quantile : p (n, Q) in (0, 1) -> (n, Q) log-odds
    n : int
        Rows.
    prob : float
    length : (lower, upper) -> length of the interval; default that of the probability
    """
    # denser at both ends, where the quantiles run away
    share = np.sin(np.linspace(0, np.pi / 2, _START + 1)) ** 2
    u = np.broadcast_to(share * (1 - prob), (n, len(share)))
    rows = np.arange(n)
    for _ in range(3):
        lengths = length(*_ends(quantile, u, prob))
        best = np.argmin(lengths, axis=1)
        low, high = u[rows, np.maximum(best - 1, 0)], u[rows, np.minimum(best + 1, u.shape[1] - 1)]
        found, width = u[rows, best], lengths[rows, best]
        u = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _ZOOM + 1)
    return found, width


def _ends(quantile: Callable[[Array], Array], u: Array, prob: float) -> tuple[Array, Array]:
    first, last = u <= 0, u >= (1 - prob) * (1 - 1e-12)
    inner = np.clip(u, 1e-12, (1 - prob) * (1 - 1e-12))
    lower = np.where(first, -np.inf, quantile(inner))
    upper = np.where(last, np.inf, quantile(inner + prob))
    return lower, upper


def interval_of_draws(draws: Array, prob: float, kind: str) -> tuple[Array, Array]:
    """(...) ends of the interval of draws (S, ...): equal tails "eti", or the shortest "hdi"."""
    if kind == "eti":
        lower, upper = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        return lower, upper
    ordered, size = np.sort(draws, axis=0), len(draws)
    inside = min(size - 1, int(np.ceil(prob * size)))
    with np.errstate(invalid="ignore"):  # infinite draws
        first = (ordered[inside:] - ordered[: size - inside]).argmin(axis=0)[None]
    lower, upper = (np.take_along_axis(ordered, first + k, axis=0)[0] for k in (0, inside))
    return lower, upper
