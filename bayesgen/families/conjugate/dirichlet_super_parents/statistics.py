"""Counts of the cells of sets of columns, and where each set has its cells.

The tables of all sets of m columns stand one after the other in one array, the sets in
lexicographic order, the last column of a set innermost: columns with different numbers of
categories leave no cell unused.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bayesgen.families.contract import Stats
from bayesgen.families.names import CELL, CLASS, PARENT_CELL
from bayesgen.families.records import array
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class SuperParentStats(Stats):
    """Weighted counts of each cell of each set of n columns, and of each set of n + 1."""

    parents: Array = array(CLASS, PARENT_CELL)
    cells: Array = array(CLASS, CELL)


class Tables(NamedTuple):
    """All sets of m columns."""

    columns: Array  # (S, m) rising
    strides: Array  # (S, m) in cells
    first: Array  # (S,) first cell of each set
    share: Array  # (cells,) the inverse of the number of cells of the set

    def cells_of(self, codes: Array) -> Array:
        """(n, S) the cell of each set that rows of codes (n, D) are in."""
        out = np.repeat(self.first[None], len(codes), axis=0)
        for k in range(self.columns.shape[1]):
            out += codes[:, self.columns[:, k]] * self.strides[:, k]
        return out

    def part(self, sets: Array) -> "Tables":
        """Some of the sets, in the same array of cells."""
        return self._replace(
            columns=self.columns[sets], strides=self.strides[sets], first=self.first[sets]
        )

    def counts_of(self, codes: Array, y: Array, n_classes: int, weight: Array | None) -> Array:
        """(C, cells) weighted counts."""
        n = len(self.share)
        out = np.zeros((n_classes, n))
        for rows in row_blocks(len(codes), len(self.first)):
            at = self.cells_of(codes[rows])
            for c in range(n_classes):
                own = y[rows] == c
                w = None if weight is None else np.repeat(weight[rows][own], at.shape[1])
                out[c] += np.bincount(at[own].ravel(), w, n)
        return out

    def size(self, s: int) -> int:
        """Number of cells of a set."""
        return round(1 / self.share[self.first[s]])

    def sums(self, values: Array) -> Array:
        """(..., S) of values (..., cells)."""
        out: Array = np.add.reduceat(values, self.first, axis=-1)
        return out


class Layout(NamedTuple):
    """The sets of n columns, super-parents, and those of n + 1: with one of the others each."""

    parents: Tables
    wide: Tables
    above: Array  # (S, columns - n) the sets of n + 1 columns that hold a set of n
    below: Array  # (T, n + 1) the sets of n columns within a set of n + 1


def n_cells(levels: Array, n: int) -> float:
    """Of the tables of all sets of n + 1 columns: an elementary symmetric polynomial."""
    sizes = np.asarray(levels, dtype=np.float64)
    sizes = sizes[random_columns(sizes)]
    sums = np.zeros(min(n + 1, len(sizes)) + 1)
    sums[0] = 1.0
    for size in sizes:
        sums[1:] += size * sums[:-1]
    return float(sums[-1])


@lru_cache(maxsize=16)
def layout(levels: tuple[int, ...], n: int) -> Layout:
    """For columns with so many categories each.

    Columns of one category are in no set: they say nothing, and nothing depends on them. Of fewer
    columns than n + 1 all but one are super-parents.
    """
    sizes = np.array(levels)
    columns = random_columns(sizes)
    n = min(n, len(columns) - 1)
    parents, wide = (_tables(sizes, columns, m) for m in (n, n + 1))
    if n == 0:  # the empty set
        every = np.arange(len(columns))
        return Layout(parents, wide, every[None], 0 * every[:, None])
    place = np.zeros((len(levels),) * n, dtype=np.int64)
    place[tuple(parents.columns.T)] = np.arange(len(parents.columns))
    below = np.stack(
        [place[tuple(np.delete(wide.columns, k, axis=1).T)] for k in range(n + 1)], axis=1
    )
    order = np.argsort(below.ravel(), kind="stable")
    above = (order // (n + 1)).reshape(len(parents.columns), len(columns) - n)
    return Layout(parents, wide, above, below)


def random_columns(levels: Array) -> Array:
    """Positions of the columns with more than one category; if there is none, of all."""
    found = np.flatnonzero(levels > 1)
    return found if len(found) else np.arange(len(levels))


def _tables(levels: Array, among: Array, m: int) -> Tables:
    columns = np.array(list(combinations(among, m)), dtype=np.int64)
    sizes = levels[columns]  # (S, m)
    after = np.cumprod(sizes[:, ::-1], axis=1)[:, ::-1]
    size = after[:, 0] if m else np.ones(1, dtype=np.int64)
    strides = np.concatenate([after[:, 1:], np.ones((len(columns), 1), np.int64)], axis=1)[:, :m]
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    return Tables(columns, strides, first, np.repeat(1.0 / size, size))
