"""One table for all that is computed twice: closed form, draws, graph.

A line is one number by two routes: its stage, variable and place (``check``); ``value`` by
``source`` and ``expected`` by ``against``; their ``difference``, and what is ``allowed``.

- Of draws the difference is a z-score, and what all of them together exceed with a stated
  probability is allowed (Bonferroni).
- Numbers without draws differ by rounding: the difference is relative to the magnitudes that were
  added up, and some digits are allowed. Such a line is an identity; it has the worst of all places.

A quantity that cannot be compared has no difference and a ``note`` that says why.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm, rankdata

from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import effective_sample_size

if TYPE_CHECKING:
    import pandas as pd

# ------------------------------------------------------------------------------------------------
# Test whether draws have the distribution of others, or the mean that is known.
#
# Each quantity of two sets of draws is put on one scale: its rank among all of them, turned into a
# normal score g. If both come from one distribution, g has the same mean in both, whatever the
# quantity: a variance without moments is compared as soundly as a probability. So have
#
# - mean: g;
# - sd: :math:`g^2`;
# - quantiles: whether a draw lies below the p-quantile of all draws.
#
# Each has a z-score: the difference of the two means over the root of two variances, that of a
# Markov chain with its effective sample size, and that of independent draws with their number.
# Source: Vehtari et al. (2021), "Rank-normalization, folding, and localization", for the scale;
# the effective sample size is never taken to be more than the number of draws, though chains of
# NUTS can be that good.
#
# Against a number that is known exactly (`compare_mean`) the mean itself is compared, and only
# where its error is nearly Normal: the skewness of the draws over the root of their number, the
# first term of the Edgeworth expansion, must be small. Draws of an inverse Gamma with few degrees
# of freedom, or of a probability that is almost always 0, say nothing of their expectation.
#
# The error of each z-score is kept: it says which shift the comparison would have seen. On normal
# scores it is that of a Normal quantity, in standard deviations. A quantity of any other form
# needs no larger shift for that z-score (Chernoff and Savage, 1958, Annals of Mathematical
# Statistics 29).

PROBS = (0.05, 0.5, 0.95)
STATISTICS = ("mean", "sd", *(f"q{100 * p:02.0f}" for p in PROBS))
_SKEWNESS = 0.04  # of a mean: at |z| = 5 the tail is then at most twice that of the Normal
_BLOCK = 1 << 22  # draws worked on at a time: 32 MB a temporary


class Scores(NamedTuple):
    """One statistic of K quantities, by draws and as expected."""

    value: Array  # (K,) in the quantity's own unit
    expected: Array  # (K,)
    difference: Array  # (K,) z-score
    # (K,) standard error of its numerator: sd of the draws (mean), relative (sd), probability
    error: Array
    ess: Array  # (K,) effective number of draws behind it


def compare(chain: Array, reference: Array) -> dict[str, Scores]:
    """Compare draws of K quantities: {statistic: scores}.

    Parameters
    ----------
    chain : (chain, draw, K)
    reference : (R, K)
        Independent draws.
    """
    n_draws = chain.shape[0] * chain.shape[1] + len(reference)
    blocks = [
        _compare(np.moveaxis(chain[..., some], -1, 0), reference[:, some].T)
        for some in row_blocks(chain.shape[-1], n_draws, _BLOCK)
    ]
    return {name: Scores(*np.concatenate([b[name] for b in blocks], axis=1)) for name in STATISTICS}


def _compare(chain: Array, reference: Array) -> dict[str, Scores]:
    """`compare` of (K, chain, draw) and (K, R)."""
    flat = chain.reshape(len(chain), -1)
    n_draws, n_reference = flat.shape[1], reference.shape[1]
    pooled = np.concatenate([flat, reference], axis=1)
    is_constant = np.ptp(pooled, axis=1) <= 1e-12 * np.abs(pooled).max(axis=1)
    pooled[is_constant] = 0.0  # but for rounding
    rank = rankdata(pooled, axis=1) / (pooled.shape[1] + 1)
    score = ndtri(rank)
    series = [score, np.square(score), *((rank < p) * 1.0 for p in PROBS)]
    shown = zip(_in_own_unit(flat), _in_own_unit(reference), strict=True)
    scores = {}
    for name, values, both in zip(STATISTICS, series, shown, strict=True):
        mine, other = values[:, :n_draws], values[:, n_draws:]
        ess = np.minimum(effective_sample_size(mine.reshape(chain.shape)), n_draws)
        error = np.sqrt(values.var(axis=1) * (1 / ess + 1 / n_reference))
        gap = mine.mean(axis=1) - other.mean(axis=1)
        z = np.divide(gap, error, out=np.zeros(len(gap)), where=error > 0)
        # a spread that is larger by a small share e adds 2 e to the square
        scores[name] = Scores(*both, z, error / 2 if name == "sd" else error, ess)
    return scores


def _in_own_unit(draws: Array) -> Array:
    """Return the `STATISTICS` (5, K) of draws (K, n)."""
    moments = [draws.mean(axis=1), draws.std(axis=1)]
    return np.concatenate([moments, np.quantile(draws, PROBS, axis=1)])


def compare_mean(chain: Array, exact: Array, independent: bool = False) -> dict[str, Scores]:
    """Compare the means of K quantities with what they should be: {"mean": scores}.

    Parameters
    ----------
    chain : (chain, draw, K)
    exact : (K,)
    independent : bool
        Whether all draws are independent.

    Returns
    -------
    dict
        The difference is NaN where the error of the mean is not Normal.
    """
    exact = np.asarray(exact, dtype=np.float64)
    series = np.ascontiguousarray(np.moveaxis(chain, -1, 0))
    n = series[0].size
    with np.errstate(all="ignore"):
        mean, sd = series.mean(axis=(1, 2)), series.std(axis=(1, 2))
        ess = np.full(len(exact), float(n))
        if not independent:
            ess = np.minimum(effective_sample_size(series), n)
        step = (series - mean[:, None, None]) / sd[:, None, None]
        skewness = np.abs((step**3).mean(axis=(1, 2))) / np.sqrt(ess)
        z = (mean - exact) / (sd / np.sqrt(ess))
        z[~(skewness <= _SKEWNESS)] = np.nan
    constant = sd <= 1e-12 * np.abs(mean)
    z[constant] = np.where(np.isclose(mean, exact, rtol=1e-9, atol=0)[constant], 0.0, np.inf)
    return {"mean": Scores(mean, exact, z, 1 / np.sqrt(ess), ess)}


def r_hat(chain: Array) -> Array:
    """Return (K,) rank-normalised split R-hat of (chain, draw, K), by ArviZ.

    NaN for a constant, and for fewer than 2 chains or 4 draws.
    """
    from arviz_stats.base import array_stats

    n_chains, n_draws, k = chain.shape
    if n_chains < 2 or n_draws < 4:
        return np.full(k, np.nan)
    series = np.moveaxis(chain, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):  # of a constant
        largest: Array = array_stats.rhat(series, chain_axis=-2, draw_axis=-1)
    return largest


# ------------------------------------------------------------------------------------------------
# The table.

PARAMETERS, DENSITIES, PROBABILITIES = "parameters", "densities", "probabilities"
INTERVALS, ESTIMATES, EXPLANATIONS = "intervals", "plug-in estimates", "explanations"
SIMULATED, LEFT_OUT, MERGED = "simulated rows", "leave-one-out", "merged statistics"
# each is computed from those before it: the first that is wrong is where to look
STAGES = [PARAMETERS, DENSITIES, PROBABILITIES, INTERVALS, ESTIMATES]
STAGES += [EXPLANATIONS, SIMULATED, LEFT_OUT, MERGED]
NUTS, INDEPENDENT = "NUTS", "independent draws"
IDENTITY = "identity"  # statistic of a number without draws
DIGITS = 1e-8  # of an identity
_TEXT = ("stage", "variable", "check", "statistic", "source", "against", "unit", "note")
_NUMBERS = ("value", "expected", "difference", "allowed", "error", "ess", "r_hat")


def drawn(
    stage: str,
    variable: str,
    labels: list[str],
    scores: Mapping[str, Scores],
    source: str,
    against: str = "closed form",
    unit: str = "sd",
    r_hat: Array | float = np.nan,
) -> "pd.DataFrame":
    """Return a line for each of K quantities and each statistic; those that are NaN are left out.

    `unit` is that of the error of a mean.
    """
    import pandas as pd

    words = {"stage": stage, "variable": variable, "source": source, "against": against}
    lines = [
        pd.DataFrame({"check": labels, "statistic": statistic, "r_hat": r_hat, **one._asdict()})
        for statistic, one in scores.items()
    ]
    return pd.concat(lines).dropna(subset="difference").assign(**words, unit=unit)


def identity(
    stage: str,
    variable: str,
    routes: Mapping[str, Any],
    size: Any = None,
    place: Callable[..., str] = lambda *_: "",
    digits: float = DIGITS,
    note: str = "",
) -> "pd.DataFrame":
    """Return the line of an array that two routes {name: values} give, at its worst place.

    Parameters
    ----------
    size : array, optional
        Magnitudes of the terms behind the values, whose rounding is no error. Default: the values.
    place : callable
        Indices into the array to words.
    note : str
        What is wrong if they differ.
    """
    import pandas as pd

    (source, value), (against, expected) = routes.items()
    value, expected = np.broadcast_arrays(np.asarray(value, np.float64), expected)
    with np.errstate(invalid="ignore"):
        relative = np.abs(value - expected) / (1 + np.abs(expected if size is None else size))
    # the same infinity is no difference; one infinity is
    difference = np.where(value == expected, 0.0, np.nan_to_num(relative, nan=np.inf))
    worst = np.unravel_index(difference.argmax(), difference.shape)
    line = {"stage": stage, "variable": variable, "check": place(*worst), "statistic": IDENTITY}
    line |= {"source": source, "against": against, "note": note}
    numbers = {"value": value, "expected": expected, "difference": difference}
    return pd.DataFrame([line | {k: v[worst] for k, v in numbers.items()} | {"allowed": digits}])


def skipped(stage: str, variable: str, why: object) -> "pd.DataFrame":
    """Return the line of a quantity that could not be compared."""
    import pandas as pd

    return pd.DataFrame([{"stage": stage, "variable": variable, "note": str(why)}])


def table(lines: Iterable["pd.DataFrame"], false_alarm: float) -> "pd.DataFrame":
    """Join lines, and allow what right draws exceed anywhere with probability `false_alarm`."""
    import pandas as pd

    joined = pd.concat(lines, ignore_index=True).reindex(columns=[*_TEXT, *_NUMBERS])
    joined = joined.astype(dict.fromkeys(_TEXT, object)).fillna(dict.fromkeys(_TEXT, ""))
    by_draws = of_draws(joined)
    joined.loc[by_draws, "allowed"] = norm.isf(false_alarm / (2 * max(1, by_draws.sum())))
    return joined


def of_draws(lines: "pd.DataFrame") -> "pd.Series":
    """Return which lines compare draws."""
    return lines["difference"].notna() & (lines["statistic"] != IDENTITY)


def failed(lines: "pd.DataFrame") -> "pd.DataFrame":
    """Return the lines that differ by more than is allowed."""
    return lines[lines["difference"].abs() > lines["allowed"]]


def place(line: Any) -> str:
    """Return what a line of `table` is of: variable and element."""
    if line.variable in line.check:
        return str(line.check)
    return f"{line.variable} of {line.check}" if line.check else str(line.variable)


def sentence(line: Any) -> str:
    """Return what a line of `table` says, with both numbers."""
    if line.statistic != IDENTITY:
        return (
            f"{line.statistic} of {place(line)}: {line.value:.6g} by {line.source}, "
            f"{line.expected:.6g} by {line.against} (|z| = {abs(line.difference):.1f})"
        )
    routes = f"{line.value:.10g} by {line.source}, {line.expected:.10g} by {line.against}"
    return ": ".join(filter(None, [place(line), routes, line.note]))
