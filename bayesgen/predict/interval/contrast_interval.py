"""Credible intervals of a real variable of which the cumulant generating function is known.

The same routes as for class probabilities (`interval`), on the variable's own scale: a shortest
interval is the shortest of the variable, not of a probability.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.predict.interval import cornish_fisher
from bayesgen.predict.interval.contrast import Contrast, cumulants
from bayesgen.predict.interval.inversion import invert
from bayesgen.predict.interval.kinds import interval_of_draws, shortest


@dataclass(frozen=True)
class IntervalRequest:
    """Which intervals.

    Parameters
    ----------
    prob : float in (0, 1)
    kind : {"eti", "hdi"}
        Equal tails, or the shortest interval.
    method : {"auto", "exact", "approx", "draws"}
        As in `interval`.

    Raises
    ------
    ValueError
        If one is not one of these.
    """

    prob: float
    kind: Literal["eti", "hdi"] = "eti"
    method: Literal["auto", "exact", "approx", "draws"] = "auto"

    def __post_init__(self) -> None:
        """Refuse what is not one of these."""
        if not 0 < self.prob < 1:
            raise ValueError(f"prob must be between 0 and 1, got {self.prob}")
        for name, value, known in (
            ("kind", self.kind, ("eti", "hdi")),
            ("method", self.method, ("auto", "exact", "approx", "draws")),
        ):
            if value not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}"
                )

    def ends(
        self, n: int, quantile: Callable[[Array], Array], draft: Any = None
    ) -> tuple[Array, Array]:
        """(n,) each, from a quantile function (n, Q) -> (n, Q); `draft` is a cheaper one."""
        low: Any = (1 - self.prob) / 2
        if self.kind == "hdi":
            low = shortest(draft or quantile, n, self.prob, lambda lower, upper: upper - lower)[0]
        low = np.broadcast_to(low, n)
        lower, upper = quantile(np.stack([low, low + self.prob], axis=1)).T
        return lower, upper

    def ends_of_draws(self, draws: Array) -> tuple[Array, Array]:
        """(...) each, from draws (S, ...)."""
        return interval_of_draws(draws, self.prob, self.kind)


def contrast_interval(contrast: Contrast, request: IntervalRequest) -> tuple[Array, Array, Array]:
    """(n,) lower and upper ends, and the error of the probability beyond them."""
    k = cumulants(contrast)
    lower, upper, error = k.mean.copy(), k.mean.copy(), np.zeros(len(k.mean))
    varies = (k.sd > 0) | (k.error > 0)
    quick = varies & (request.method != "exact")
    good = cornish_fisher.applies(k)
    if request.method != "approx":
        quick &= good
    own = k.part(quick)
    lower[quick], upper[quick] = request.ends(
        int(quick.sum()), lambda p: cornish_fisher.quantile(own, p)
    )
    error[quick] = np.where(good[quick], cornish_fisher.ERROR, np.nan)
    for group in invert(contrast, k, np.flatnonzero(varies & ~quick)):
        for _, part in group.blocks(16 * group.phi.shape[1]):
            draft = part.table().quantile if request.kind == "hdi" else None
            ends = request.ends(len(part.rows), part.quantile, draft)
            lower[part.rows], upper[part.rows] = ends
            error[part.rows] = part.error
    return lower, upper, error
