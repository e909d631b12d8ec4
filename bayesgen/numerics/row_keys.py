"""Keys of labelled rows that do not depend on names, units, or the order of rows and columns.

Equal rows have equal keys, and different rows different ones. Random choices that are hashes of
such keys are the same after classes, categories or columns were renamed, after rows or columns
changed places, and after any rising map of a column of numbers.

A key is refined as a colour in the algorithm of Weisfeiler and Leman: rows tell columns and classes
apart, and these tell rows apart. A number enters by its rank, a category by the rows that have it.

Source: Weisfeiler and Leman (1968), The reduction of a graph to canonical form; Steele, Lea and
Flood (2014), Fast splittable pseudorandom number generators (the hash, splitmix64).
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from bayesgen.numerics.special import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ROUNDS = 3  # the first tells rows apart, the second columns and classes; one to spare
_MISSING = np.uint64(1 << 63)  # instead of a rank


def mixed(x: Array) -> Array:
    """Return hashes of 64-bit numbers."""
    x = x + _STEP
    x = (x ^ (x >> np.uint64(30))) * _FACTORS[0]
    x = (x ^ (x >> np.uint64(27))) * _FACTORS[1]
    return np.asarray(x ^ (x >> np.uint64(31)))


def _sums(codes: Array, values: Array, n: int) -> Array:
    """Add up values (N,) by codes (N,), modulo 2^64: the order of the rows does not matter."""
    total = np.zeros(n, np.uint64)
    np.add.at(total, codes, values)
    return total


class Ranked(NamedTuple):
    """Training rows in terms that names and units do not change.

    Parameters
    ----------
    codes : (N, D) position of each cell among the values of its column, which rise
    keys : (N,) of the rows
    columns : (D,) positions of the columns in an order that their content alone decides
    classes : (C,) place of each class in such an order
    """

    codes: Array
    keys: Array
    columns: Array
    classes: Array


@dataclass(frozen=True, eq=False)
class RowKeys:
    """Keys of values and classes, of which a row's key is made.

    Parameters
    ----------
    value, value_key : (value,)
        Values of the training rows, rising within each column; a missing cell is the last.
    n_values : (feature,)
    class_key : (class,)
    """

    value: Array
    value_key: Array
    n_values: Array
    class_key: Array

    @classmethod
    def learn(cls, X: Array, y: Array, nominal: Array, n_classes: int) -> tuple[Self, Ranked]:
        """Learn from training rows (N, D); `nominal` (D,) is 1 for codes of categories."""
        split = [np.unique(column, return_inverse=True) for column in X.T]
        value = [v for v, _ in split]
        codes = np.array([k for _, k in split]).reshape(X.shape[1], len(X))
        rank = [_ranks(v) for v in value]
        column_key = np.zeros(X.shape[1], np.uint64)
        row = mixed(np.bincount(y, minlength=n_classes).astype(np.uint64))[y]
        for _ in range(_ROUNDS):
            value_key, cells = [], np.zeros(len(X), np.uint64)
            for j, code in enumerate(codes):
                key = mixed(_sums(code, row, len(rank[j]))) if nominal[j] else rank[j]
                column_key[j] = mixed(key[code] + row).sum()
                key = mixed(key + column_key[j])
                value_key.append(key)
                cells += key[code]
            class_key = mixed(_sums(y, mixed(cells), n_classes))
            row = mixed(cells + class_key[y])
        n_values = np.array([len(v) for v in value], np.int64)
        all_values, all_keys = (
            np.concatenate(arrays) if value else np.zeros(0) for arrays in (value, value_key)
        )
        keys = cls(all_values, all_keys, n_values, class_key)
        place = np.argsort(np.argsort(class_key, kind="stable"))
        return keys, Ranked(codes.T, row, np.argsort(column_key, kind="stable"), place)

    def of_rows(self, X: Array, y: Array) -> Array:
        """Return the keys (N,) of rows; a value that no training row has is hashed as it is."""
        cells, start = np.zeros(len(X), np.uint64), 0
        for x, n in zip(X.T, self.n_values, strict=True):
            value, key = self.value[start : start + n], self.value_key[start : start + n]
            code = np.minimum(np.searchsorted(value, x), n - 1)
            is_same = (value[code] == x) | (np.isnan(x) & np.isnan(value[code]))
            bits = np.ascontiguousarray(x + 0.0).view(np.uint64)  # 0.0 is -0.0
            cells += np.where(is_same, key[code], mixed(key[code] + bits))
            start += n
        return mixed(cells + self.class_key[y])


def _ranks(value: Array) -> Array:
    """Hash the ranks of rising values."""
    rank = np.arange(len(value), dtype=np.uint64)
    rank[np.isnan(value)] = _MISSING
    return mixed(rank)


def key_groups(keys: Array, weight: Array, groups: Array | None) -> tuple[Array, Array]:
    """Return the key of the group of each row, and which of the groups with this key it is.

    Parameters
    ----------
    keys, weight : (N,)
    groups : (N,) int, optional
        None: each row is a group of its own.
    """
    codes = np.arange(len(keys))
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1].ravel()
    n_groups = int(codes.max(initial=-1)) + 1
    group_key = mixed(_sums(codes, mixed(keys), n_groups))
    order = np.lexsort((np.bincount(codes, weight, n_groups), group_key))
    first = np.append(True, np.diff(group_key[order]) != 0)[:n_groups]
    place = np.arange(n_groups)
    copy = np.empty(n_groups, np.int64)
    copy[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return group_key[codes], copy[codes]
