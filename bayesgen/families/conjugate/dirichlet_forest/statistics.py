"""Counts of pairs of categories: all that the average over forests needs of rows."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bayesgen.families.contract import Stats
from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import CATEGORY, CATEGORY_BIS, CLASS, FEATURE, FEATURE_BIS
from bayesgen.families.records import array
from bayesgen.numerics.rows import remainder, row_blocks
from bayesgen.numerics.special import Array

_MOST_CELLS = 1 << 30  # of the tables of all classes: 8.6 GB of counts


@dataclass(frozen=True, eq=False)
class ForestStats(Stats):
    """Weighted counts of each pair of categories of each pair of features.

    The table of a feature and itself is diagonal: the counts of its categories.
    """

    pairs: Array = array(CLASS, FEATURE, FEATURE_BIS, CATEGORY, CATEGORY_BIS)

    def merge(self, other: Self) -> Self:
        """Statistics of the rows of both, which may know different numbers of categories."""
        k = max(self.pairs.shape[-1], other.pairs.shape[-1])
        return replace(self, pairs=padded(self.pairs, k) + padded(other.pairs, k))

    def remove(self, other: Self) -> Self:
        """Statistics after forgetting the rows of `other`; the categories stay."""
        k = max(self.pairs.shape[-1], other.pairs.shape[-1])
        before, removed = padded(self.pairs, k), padded(other.pairs, k)
        refuse_negative("pairs", before - removed, before)
        return replace(self, pairs=remainder(before, removed))


def padded(pairs: Array, k: int) -> Array:
    """With zeros up to `k` categories."""
    more = k - pairs.shape[-1]
    return pairs if more <= 0 else np.pad(pairs, [(0, 0)] * 3 + [(0, more)] * 2)


def n_pairs(levels: Array) -> float:
    """Number of counts in the tables of all pairs of columns, per class."""
    return (len(levels) * float(np.max(levels))) ** 2


def count_pairs(codes: Array, y: Array, n_classes: int, k: int, weight: Array | None) -> Array:
    """(C, D, D, k, k) weighted counts of codes (N, D) in 0 .. k-1."""
    n_features = codes.shape[1]
    n = n_classes * (n_features * k) ** 2
    if n > _MOST_CELLS:
        raise ValueError(
            f"the pairs of {n_features} columns of up to {k} categories need {n:.1e} counts, "
            f"{8e-9 * n:.1f} GB; the limit is {_MOST_CELLS:.1e}. Use fewer columns, or fewer bins "
            "and categories"
        )
    out = np.zeros((n_classes, n_features * k, n_features * k))
    for c in range(n_classes):
        own = np.flatnonzero(y == c)
        for block in row_blocks(len(own), n_features * k):
            rows = own[block]
            cells = np.zeros((len(rows), n_features, k))
            np.put_along_axis(cells, codes[rows][..., None], 1.0, axis=2)
            flat = cells.reshape(len(rows), -1)
            out[c] += (flat if weight is None else flat * weight[rows, None]).T @ flat
    shape = (n_classes, n_features, k, n_features, k)
    return np.ascontiguousarray(out.reshape(shape).transpose(0, 1, 3, 2, 4))
