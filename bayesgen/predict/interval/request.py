"""What is asked of an interval: checked once, and honoured by every method that gives one."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit

from bayesgen.numerics.special import Array
from bayesgen.predict.draws import Sample
from bayesgen.predict.interval.kinds import (
    KINDS,
    Ends,
    KindName,
    Length,
    QuantileFunction,
    beyond,
    difference,
    in_probability,
)

Method = Literal["auto", "exact", "approx", "draws"]
Given = Literal["training", "training and row"]

_METHODS = ("auto", "exact", "approx", "draws")
_GIVEN = ("training", "training and row")


@dataclass(frozen=True)
class IntervalRequest:
    """Which intervals.

    Parameters
    ----------
    prob : float in (0, 1)
        Posterior probability of an interval.
    kind : {"eti", "hdi"}
        Equal tails, or the shortest interval; any name in `kinds.KINDS`.
    method : {"auto", "exact", "approx", "draws"}
        "exact" inverts characteristic functions; "auto" replaces that by Cornish-Fisher where its
        error is below .0015 in percentile; "approx" is Cornish-Fisher whatever its error; "draws"
        draws theta.
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
        for name, value, known in (
            ("kind", self.kind, tuple(KINDS)),
            ("method", self.method, _METHODS),
            ("given", self.given, _GIVEN),
        ):
            if value not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}"
                )

    @classmethod
    def of(cls, prob: float | None = None, kind: Any = None, **options: Any) -> Self:
        """The user's request; ArviZ's settings where prob or kind is None."""
        if prob is None or kind is None:
            from arviz_base import rcParams

            prob = rcParams["stats.ci_prob"] if prob is None else prob
            kind = rcParams["stats.ci_kind"] if kind is None else kind
        return cls(prob, kind, **options)

    @property
    def symmetric(self) -> bool:
        """Whether the interval of -x is that of x, mirrored."""
        return KINDS[self.kind].symmetric

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
