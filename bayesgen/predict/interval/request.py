"""What is asked of an interval: checked once, and honoured by every method that gives one."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from bayesgen.numerics.special import Array
from bayesgen.predict.interval import kinds
from bayesgen.predict.interval.kinds import (
    Ends,
    KindName,
    Length,
    QuantileFunction,
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
    given : {"training"}
        Whose posterior of theta: p(theta | D).

    Raises
    ------
    ValueError
        If one is not one of these.
    NotImplementedError
        For ``given="training and row"``, p(theta | D, x).
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
            ("kind", self.kind, tuple(kinds.KINDS)),
            ("method", self.method, _METHODS),
            ("given", self.given, _GIVEN),
        ):
            if value not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}"
                )
        if self.given == "training and row":
            raise NotImplementedError(
                "an interval given='training and row', under p(theta | D, x), is not available; "
                "ask for given='training', or for predict_uncertainty(given='training and row')"
            )

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
        """(n,) each, of n distributions given by their quantile functions; see `kinds.ends`."""
        return kinds.ends(kinds.KINDS[self.kind], self.prob, n, quantile, pilot, length)

    def ends_of_draws(self, draws: Array) -> Ends:
        """(...) each, from draws (..., S) on their own scale."""
        return kinds.ends_of_draws(kinds.KINDS[self.kind], self.prob, draws)

    def ends_of_log_odds(self, draws: Array) -> Ends:
        """(...) each, as log-odds: intervals of probabilities, from draws (..., S) of log-odds."""
        return kinds.ends_of_log_odds(kinds.KINDS[self.kind], self.prob, draws)
