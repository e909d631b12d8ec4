r"""Statistics as they would be if the labels told nothing of the features.

A sufficient statistic of one common theta is the pooled one; given it, how rows fall to the classes
does not depend on theta (Fisher's exact test conditions on the same). So the statistics of each
class can be drawn anew, whatever theta is:

==============  =========================================================================
bits, categories  permuted labels: hypergeometric tables with the observed margins
counts            the classes' totals given the total: multinomial in the numbers of rows
words             tokens dealt to the classes: hypergeometric, lengths as observed
real features     means and scatters of Normal rows, moved and scaled to the pooled ones
==============  =========================================================================

Columns are drawn independently. Weights that are not whole numbers are rounded where tables are
drawn.
"""

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from bayesgen.families.conjugate.beta_bernoulli import BernoulliStats
from bayesgen.families.conjugate.columns import ColumnsStats
from bayesgen.families.conjugate.dirichlet_categorical import CategoricalStats
from bayesgen.families.conjugate.dirichlet_multinomial import MultinomialStats
from bayesgen.families.conjugate.gamma_poisson import PoissonStats
from bayesgen.families.conjugate.normal_inverse_gamma import GaussianStats
from bayesgen.numerics.special import Array

_MOST = 1e9  # NumPy's hypergeometric distribution refuses more


@singledispatch
def relabelled(stats: Any, rng: np.random.Generator) -> Any:
    """Statistics of the same pooled rows, in classes of the same sizes, by chance alone.

    Raises
    ------
    NotImplementedError
        For statistics that are not listed above.
    """
    raise NotImplementedError(f"{type(stats).__name__} cannot be relabelled")


@relabelled.register
def _columns(stats: ColumnsStats, rng: np.random.Generator) -> ColumnsStats:
    return replace(stats, parts=tuple(relabelled(p, rng) for p in stats.parts))


@relabelled.register
def _bits(stats: BernoulliStats, rng: np.random.Generator) -> BernoulliStats:
    ones, zeros = _dealt(rng, np.stack([stats.ones, stats.zeros], axis=-1)).transpose(2, 0, 1)
    return replace(stats, ones=ones, zeros=zeros)


@relabelled.register
def _categories(stats: CategoricalStats, rng: np.random.Generator) -> CategoricalStats:
    return replace(stats, counts=_dealt(rng, stats.counts))


@relabelled.register
def _words(stats: MultinomialStats, rng: np.random.Generator) -> MultinomialStats:
    return replace(stats, counts=_dealt(rng, stats.counts[:, None])[:, 0])


@relabelled.register
def _counts(stats: PoissonStats, rng: np.random.Generator) -> PoissonStats:
    left, rows = np.rint(stats.total.sum(axis=0)), stats.rows.sum(axis=0)
    total = np.empty_like(stats.total)
    for c, own in enumerate(stats.rows):
        share = np.divide(own, rows, out=np.ones_like(rows), where=rows > 0)
        total[c] = rng.binomial(left.astype(np.int64), np.clip(share, 0.0, 1.0))
        left, rows = left - total[c], rows - own
    return replace(stats, total=total)


@relabelled.register
def _reals(stats: GaussianStats, rng: np.random.Generator) -> GaussianStats:
    n = stats.n
    total = np.maximum(n.sum(axis=0), np.finfo(float).tiny)
    root = np.sqrt(np.where(n > 0, n, 1.0))
    z = np.where(n > 0, rng.standard_normal(n.shape) / root, 0.0)
    scatter = rng.chisquare(np.maximum(n - 1, 1e-9)) * (n > 1)
    z -= (n * z).sum(axis=0) / total

    centre = (n * stats.mean).sum(axis=0) / total
    pooled = (stats.scatter + n * np.square(stats.mean - centre)).sum(axis=0)
    drawn = (scatter + n * np.square(z)).sum(axis=0)
    scale = np.divide(pooled, drawn, out=np.zeros_like(pooled), where=drawn > 0)
    return replace(stats, mean=centre + z * np.sqrt(scale), scatter=scatter * scale)


def _dealt(rng: np.random.Generator, counts: Array) -> Array:
    """Tables (C, D, K) with the margins of `counts` over the classes and over the K values."""
    out = np.zeros(counts.shape)
    left = np.rint(counts.sum(axis=0))  # (D, K)
    sizes = np.rint(counts.sum(axis=-1))  # (C, D)
    for c in range(len(counts) - 1):
        rest, wanted = left.sum(axis=-1), np.minimum(sizes[c], left.sum(axis=-1))
        for k in range(left.shape[-1] - 1):
            rest = rest - left[:, k]
            out[c, :, k] = _hypergeometric(rng, left[:, k], rest, wanted)
            wanted = wanted - out[c, :, k]
        out[c, :, -1] = wanted
        left = left - out[c]
    out[-1] = left
    return out


def _hypergeometric(rng: np.random.Generator, good: Array, bad: Array, n: Array) -> Array:
    """How many of n draws without replacement are good; normal where there are 1e9 and more."""
    total = good + bad
    large = total >= _MOST
    if not large.any():
        return rng.hypergeometric(good.astype(np.int64), bad.astype(np.int64), n.astype(np.int64))
    few = [np.where(large, 0.0, v).astype(np.int64) for v in (good, bad, n)]
    out = rng.hypergeometric(*few).astype(np.float64)
    share = good[large] / total[large]
    spread = n[large] * share * (1 - share) * (total[large] - n[large]) / (total[large] - 1)
    draws = np.rint(n[large] * share + np.sqrt(spread) * rng.standard_normal(share.shape))
    low, high = np.maximum(0, n[large] - bad[large]), np.minimum(n[large], good[large])
    out[large] = np.clip(draws, low, high)
    return out
