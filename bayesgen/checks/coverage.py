"""Whether credible intervals of class probabilities hold the posterior probability they report."""

from typing import Any

import numpy as np

from bayesgen.checks.agreement import STATISTICS, Agreement
from bayesgen.checks.quantities import Comparisons
from bayesgen.numerics.special import Array
from bayesgen.posterior.monte_carlo import effective_sample_size

_PROB = 0.9


def add_coverage(
    into: Comparisons,
    fitted: Any,
    X: Any,
    odds: dict[str, Array],
    places: list[str],
) -> None:
    """Compare the tails of ``predict_interval`` with the share of draws in them.

    Intervals with equal tails at both ends, shortest ones as a whole. The ends are compared as
    log-odds, which tell probabilities apart that round to 1.

    Parameters
    ----------
    fitted : GenerativeClassifier
    X : N rows, as its methods take them
    odds : {source: (chain, draw, N, C)}
        Draws of the log-odds of each class.
    places : N * C words
    """
    for kind in ("eti", "hdi"):
        found = fitted.predict_interval(X, prob=_PROB, kind=kind)
        ends = found["log_odds"].transpose("obs_id", "class", "bound").values
        error = found["error"].values[:, None] * np.ones(ends.shape[1])
        for source, draws in odds.items():
            below, above = (
                _beyond(sign * draws, sign * ends[..., k]) for k, sign in ((0, 1), (1, -1))
            )
            table = np.full((3, error.size, len(STATISTICS)), np.nan)
            tail = (1 - _PROB) / 2
            parts = [("q05", below, tail, 1.0), ("q95", above, tail, 1.0)]
            if kind == "hdi":
                parts = [("mean", 1 - below - above, _PROB, 2.0)]
            for statistic, series, share, n_ends in parts:
                independent = source != "NUTS"
                mean, z, ess = _compare(series, share, n_ends * error, independent)
                z[~np.isfinite(ends).all(axis=-1)] = np.nan
                column = STATISTICS.index(statistic)
                for field, value in zip(table, (mean, np.full_like(z, share), z), strict=True):
                    field[:, column] = value.ravel()
            into.add(
                f"{100 * _PROB:.0f} % interval, {kind}"
                + ("" if source == "NUTS" else f", {source}"),
                places,
                Agreement(table[0], table[1], table[2], ess.ravel()),
                source=source,
            )


def _beyond(draws: Array, ends: Array) -> Array:
    """(chain, draw, N, C) 1 where a draw is below the end, 1/2 where it is there."""
    return (draws < ends) + 0.5 * (draws == ends)


def _compare(
    series: Array, share: float, error: Array, independent: bool
) -> tuple[Array, Array, Array]:
    """Mean over draws, its z-score against `share`, and how many draws it rests on; (N, C) each.

    `error` of the interval itself is a bound by one route and a standard error by another: it is
    taken for both.
    """
    n = series.shape[0] * series.shape[1]
    ess = np.full(series.shape[2:], float(n))
    if not independent:
        ess = np.minimum(effective_sample_size(np.moveaxis(series, (0, 1), (-2, -1))), n)
    mean = series.mean(axis=(0, 1))
    gap = mean - share
    beyond = np.sign(gap) * np.maximum(np.abs(gap) - error, 0.0)
    return mean, beyond / np.sqrt(share * (1 - share) / ess + error**2), ess
