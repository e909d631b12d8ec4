r"""Test whether dependent draws have the distribution of independent draws.

Each quantity of a Markov chain is put on the scale of the reference: its rank among R independent
draws, turned into a normal score g. If both come from one distribution, g is standard Normal,
whatever the quantity: a variance without moments is compared as soundly as a probability. Then

- mean: the mean of g is 0;
- sd: the mean of :math:`g^2` is that of R normal scores (nearly 1);
- quantiles: a share p of the chain lies below the reference's p-quantile.

Each has a z-score: deviation over the root of two variances, that of the chain with its effective
sample size, and that of the reference with R. Source: Vehtari et al. (2021), "Rank-normalization,
folding, and localization", for the scale; the effective sample size is never taken to be more
than the number of draws, though chains of NUTS can be that good.

Against a number that is known exactly (`compare_mean`) the mean itself is compared, and only where
its error is nearly Normal: the skewness of the draws over the root of their number, the first term
of the Edgeworth expansion, must be small. Draws of an inverse Gamma with few degrees of freedom, or
of a probability that is almost always 0, say nothing of their expectation.

The error of each z-score is kept: it says which shift the comparison would have seen. On normal
scores it is that of a Normal quantity, in standard deviations. A quantity of any other form needs
no larger shift for that z-score (Chernoff and Savage, 1958, Annals of Mathematical Statistics 29).
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2, rankdata

from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import effective_sample_size

PROBS = (0.05, 0.5, 0.95)
STATISTICS = ("mean", "sd", *(f"q{100 * p:02.0f}" for p in PROBS))
_SKEWNESS = 0.04  # of a mean: at |z| = 5 the tail is then at most twice that of the Normal
_BLOCK = 1 << 22  # numbers of the chain worked on at a time: 32 MB a temporary


class Agreement(NamedTuple):
    """K quantities and 5 statistics of each, in the order of `STATISTICS`."""

    chain: Array  # (K, 5) in the quantity's own unit
    reference: Array  # (K, 5)
    z: Array  # (K, 5)
    ess: Array  # (K,) effective sample size of the normal scores' mean
    # (K, 5) standard error of z's numerator: sd of the draws (mean), relative (sd), probability
    error: Array
    slack: Array  # (K,) difference that counts as none, in the unit of `error`

    @classmethod
    def of(cls, ess: Array, slack=0.0, **statistics: tuple[Any, Any, Any, Any]) -> Self:
        """Make one of statistics {name: (chain, reference, z, error)}; others are NaN."""
        table = np.full((4, ess.size, len(STATISTICS)), np.nan)
        for name, values in statistics.items():
            for field, value in zip(table, values, strict=True):
                field[:, STATISTICS.index(name)] = np.broadcast_to(value, ess.shape).ravel()
        chain, reference, z, error = table
        slack = np.broadcast_to(slack, ess.shape).ravel()
        return cls(chain, reference, z, ess.ravel(), error, slack)


def compare(chain: Array, reference: Array) -> Agreement:
    """Compare draws of K quantities.

    Parameters
    ----------
    chain : (chain, draw, K)
    reference : (R, K)
        Independent draws.
    """
    k = chain.shape[-1]
    a, b, c, d = (np.empty((k, len(STATISTICS))) for _ in range(4))
    agreement = Agreement(a, b, c, np.empty(k), d, np.empty(k))
    step = max(1, _BLOCK // (chain.shape[0] * chain.shape[1]))
    for start in range(0, k, step):
        elements = slice(start, start + step)
        block = np.ascontiguousarray(np.moveaxis(chain[..., elements], -1, 0))
        for field, value in zip(agreement, _compare(block, reference[:, elements].T), strict=True):
            field[elements] = value
    return agreement


def compare_mean(chain: Array, exact: Array, independent: bool = False) -> Agreement:
    """Compare the means of K quantities with what they should be.

    Parameters
    ----------
    chain : (chain, draw, K)
    exact : (K,)
    independent : bool
        Whether all draws are independent.

    Returns
    -------
    Agreement
        The statistics but the mean are NaN, and z is where the error of the mean is not Normal.
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
    return Agreement.of(ess, mean=(mean, exact, z, 1 / np.sqrt(ess)))


def _compare(chain: Array, reference: Array) -> Agreement:
    """`compare` of (K, chain, draw) and (K, R)."""
    flat = chain.reshape(len(chain), -1)
    n_draws, n_reference = flat.shape[1], reference.shape[1]
    ordered = np.sort(reference, axis=1)
    score = _normal_scores(flat, ordered).reshape(chain.shape)

    grid = ndtri((np.arange(n_reference) + 0.5) / n_reference)
    expected = np.tile([0.0, 1.0, float(np.mean(grid * grid)), 2.0], (len(flat), 1))
    tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if tied.size:  # scores of atoms are not Normal: as the reference's own are
        normal_scores = _normal_scores(ordered[tied], ordered[tied])
        square = normal_scores * normal_scores
        moments = (
            normal_scores.mean(axis=1),
            normal_scores.var(axis=1),
            square.mean(axis=1),
            square.var(axis=1),
        )
        expected[tied] = np.stack(moments, axis=1)

    def z_of(series: Array, target: Array, variance: Array) -> tuple[Array, Array, Array]:
        ess = np.minimum(effective_sample_size(series), n_draws)
        error = np.sqrt(np.maximum(variance, 1e-300) * (1 / ess + 1 / n_reference))
        return (series.mean(axis=(1, 2)) - target) / error, error, ess

    columns: list[tuple[Array, Array, Array, Array]] = []
    z, error, ess = z_of(score, expected[:, 0], expected[:, 1])
    columns.append((flat.mean(axis=1), reference.mean(axis=1), z, error))
    z, error, _ = z_of(np.square(score), expected[:, 2], expected[:, 3])
    # a spread that is larger by a small share e adds 2 e to the square
    columns.append((flat.std(axis=1), reference.std(axis=1), z, error / 2))
    for p in PROBS:
        ends = np.quantile(ordered, p, axis=1)
        # a tie counts half: an atom of the distribution is on both sides
        below = (flat < ends[:, None]) + 0.5 * (flat == ends[:, None])
        target = (ordered < ends[:, None]).mean(axis=1) + 0.5 * (ordered == ends[:, None]).mean(
            axis=1
        )
        ess_p = np.minimum(effective_sample_size(below.reshape(chain.shape)), n_draws)
        error = np.sqrt(p * (1 - p) * (1 / ess_p + 1 / n_reference))
        z = (below.mean(axis=1) - target) / error
        columns.append((np.quantile(flat, p, axis=1), ends, z, error))
    constant = (ordered[:, 0] == ordered[:, -1]) & (flat.min(axis=1) == flat.max(axis=1))
    chains, references, scores, errors = (np.stack(c, axis=1) for c in zip(*columns, strict=True))
    equal = np.isclose(flat[:, 0], ordered[:, 0], rtol=1e-12, atol=0)
    scores[constant] = np.where(equal[constant], 0.0, np.inf)[:, None]
    ess[constant] = n_draws
    return Agreement(chains, references, scores, ess, errors, np.zeros(len(flat)))


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


def r_hat_limit(chain: Array, false_alarm: float, n_compared: int) -> Array:
    """Return (K,) R-hat that chains of one distribution exceed with a probability of `false_alarm`.

    That is the probability for any of `n_compared` quantities, and for any of the two R-hats, of
    ranks and of distances from the median, of which `r_hat` is the larger (Bonferroni).

    The square of R-hat is 1 - 1/n plus the variance of the means of m half chains of n draws, in
    units of the variance within them. That variance is chi squared with m - 1 degrees of freedom,
    over m - 1, times m/ESS; the effective sample size is that within half chains, which a
    difference between them does not lower. It is estimated: with some hundred effective draws,
    a probability of 5 in 10 000 is in truth 30 in 10 000.

    Parameters
    ----------
    chain : (chain, draw, K)
    """
    n_chains, n_draws, k = chain.shape
    m, n = 2 * n_chains, n_draws // 2
    if n_chains < 2 or n < 2:
        return np.full(k, np.nan)
    series = np.moveaxis(chain, -1, 0)[..., : 2 * n]
    folded = np.abs(series - np.median(series, axis=(1, 2), keepdims=True))
    limit = np.zeros(k)
    for values in (series, folded):
        rank = rankdata(values.reshape(k, -1), axis=1)
        score = ndtri((rank - 0.375) / (rank.shape[1] + 0.25)).reshape(k, n_chains, 2, n)
        centred = (score - score.mean(axis=-1, keepdims=True)).reshape(k, n_chains, 2 * n)
        ess = np.minimum(effective_sample_size(centred), centred[0].size)
        chance = chi2.isf(false_alarm / (2 * max(1, n_compared)), m - 1) / (m - 1)
        limit = np.maximum(limit, np.sqrt(1 - 1 / n + chance * m / ess))
    return limit


def _normal_scores(values: Array, ordered: Array) -> Array:
    """Normal scores of `values` (K, S) by their ranks among `ordered` (K, R)."""
    return ndtri((_twice_rank(values, ordered) / 2 + 0.5) / (ordered.shape[1] + 1))


def _twice_rank(values: Array, ordered: Array) -> Array:
    """Count twice the smaller ones among `ordered` (K, R), and once the equal ones: (K, S)."""
    rank = np.empty(values.shape)
    order = np.argsort(values, axis=1)  # what is searched for in order is found sooner
    for k, (v, r, ordering) in enumerate(zip(values, ordered, order, strict=True)):
        smaller = np.searchsorted(r, v[ordering], "left")
        twice = 2 * smaller
        equal = r[np.minimum(smaller, len(r) - 1)] == v[ordering]
        if equal.any():
            twice[equal] += np.searchsorted(r, v[ordering][equal], "right") - smaller[equal]
        rank[k, ordering] = twice
    return rank
