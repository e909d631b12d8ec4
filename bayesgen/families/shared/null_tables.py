"""Tables of counts as they would be if the labels told nothing: hypergeometric."""

import numpy as np

from bayesgen.numerics.special import Array

_MOST = 1e9  # NumPy's hypergeometric distribution refuses more


def deal(rng: np.random.Generator, counts: Array) -> Array:
    """Tables (C, D, K) with the margins of `counts` over the classes and over the K values.

    As if values were dealt to the classes; counts that are not whole are rounded.
    """
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
