"""Rows with labels and weights: what takes part in a fit, and what is refused."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from bayesgen.encoding.labels import (
    code_labels,
    has_no_label,
    is_labelled,
    labels_of,
    refuse_two_types,
)
from bayesgen.encoding.literals import shown
from bayesgen.encoding.reader import Rows
from bayesgen.encoding.tables import refuse_elsewhere
from bayesgen.errors import InputError
from bayesgen.families.shared.hyperparameters import SMALLEST
from bayesgen.numerics.special import LARGEST_COUNT, Array


class Labelled(NamedTuple):
    """Rows of a positive weight."""

    X: Any
    labels: Array  # (N,) as given
    weight: Array | None
    positions: Array | None  # (N,) among the rows given; None: these are all of them
    unlabelled: bool  # whether some may have no label
    codes: tuple[Array, Array] | None = None  # what `coded` returns, once it is
    groups: Array | None = None  # (N,) codes of rows that leave-one-out leaves out together

    def coded(self) -> tuple[Array, Array]:
        """Return distinct labels (C,) and the code (N,) of each row; -1 where there is no label."""
        if self.codes is not None:
            return self.codes
        if not self.unlabelled:
            return code_labels(self.labels)
        has_label = is_labelled(self.labels)
        codes = np.full(len(self.labels), -1)
        distinct, codes[has_label] = code_labels(self.labels[has_label])
        return distinct, codes

    def weight_of_each(self) -> Array:
        """Return the weights (N,), 1 where none are given."""
        return np.ones(len(self.labels)) if self.weight is None else self.weight


def labelled(
    X, y, sample_weight, *, unlabelled: bool = False, groups: Array | None = None
) -> Labelled:
    """Return rows, labels, weights and groups of any fit; with `unlabelled` some may have no label.

    Rows of weight 0 are no rows: they teach neither a label nor a category.

    Raises
    ------
    ValueError
        For lengths that differ, missing labels, and weights that are negative, too large or all 0.
    """
    if not isinstance(X, Rows):
        refuse_elsewhere(X)
    labels = labels_of(y, unlabelled=unlabelled)
    check_consistent_length(X, labels)
    if sample_weight is None:
        return Labelled(X, labels, None, None, unlabelled, None, groups)
    weight = weights(sample_weight, len(labels))
    if (small := (weight > 0) & (weight < SMALLEST)).any():
        raise InputError(
            f"sample_weight holds {weight[small][0]:g}",
            f", below {SMALLEST:.4g}, where its inverse overflows",
            row=small.argmax(),
            advice="multiply all weights by one number",
        )
    if weight.max(initial=0.0) > LARGEST_COUNT:
        raise InputError(
            f"sample_weight holds {weight.max():g}",
            f", beyond {LARGEST_COUNT:.4g}, where one row more is lost",
            row=weight.argmax(),
            advice="divide all weights by one number",
        )
    positions = np.flatnonzero(weight > 0)
    if not len(positions):
        raise ValueError("sample_weight is 0 for every row: there is nothing to fit")
    if len(positions) < len(weight):
        X = X.take(positions) if isinstance(X, Rows) else _safe_indexing(X, positions)
        labels, weight = labels[positions], weight[positions]
        groups = None if groups is None else groups[positions]
    return Labelled(X, labels, weight, positions, unlabelled, None, groups)


def group_codes(groups, n: int) -> Array:
    """Return the codes (N,) of groups that are left out whole, from labels or a number of folds.

    Raises
    ------
    ValueError, TypeError
        For another number of rows, a row without a group, and names that cannot be hashed.
    """
    import pandas as pd

    if isinstance(groups, int | np.integer):
        if not 2 <= groups <= n:
            raise ValueError(f"groups must be at least 2 folds and at most {n} rows, got {groups}")
        return np.arange(n) % int(groups)
    listed = isinstance(groups, list | tuple)
    names = np.fromiter(groups, object, len(groups)) if listed else np.asarray(groups)
    if names.shape != (n,):
        raise ValueError(f"groups must have one entry for each of {n} rows, got {names.shape}")
    try:
        codes, _ = pd.factorize(names)
    except TypeError:
        raise TypeError("groups must be labels that can be hashed: texts or numbers") from None
    if isinstance(groups, np.ma.MaskedArray):
        codes[np.ma.getmaskarray(groups)] = -1
    for row in np.flatnonzero(codes < 0)[:1]:
        raise InputError(
            "groups has no name",
            row=row,
            advice="give a row that belongs to no other a name of its own",
        )
    return codes


def rows_with_label(X, y, sample_weight) -> tuple:
    """Return rows, labels and weights without the rows that have no label."""
    labels = labels_of(y, unlabelled=True)
    check_consistent_length(X, labels)
    positions = np.flatnonzero(is_labelled(labels))
    weight = None if sample_weight is None else weights(sample_weight, len(labels))[positions]
    X = X.take(positions) if isinstance(X, Rows) else _safe_indexing(X, positions)
    return X, labels[positions], weight


def weights(sample_weight, n_rows: int) -> Array:
    """Return the weights (N,) of rows as float64: where every weight is read.

    Raises
    ------
    TypeError
        For weights by class.
    ValueError
        For a weight that is masked, missing, infinite or negative, and for another number of them.
    """
    if isinstance(sample_weight, str | Mapping):
        raise TypeError(
            f"sample_weight must be {n_rows} numbers, one for each row, got {sample_weight!r}; for "
            "a weight of each class give [weights[label] for label in y]"
        )
    if np.ma.is_masked(sample_weight):
        raise InputError(
            "sample_weight is masked",
            ": a row counts by a known weight",
            row=np.ma.getmaskarray(sample_weight).ravel().argmax(),
            advice="give 0 to leave a row out",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite one is refused
        return _check_sample_weight(
            sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
        )


def among(classes, labels: Array, codes: Array) -> tuple[Array, Array]:
    """Return all labels that may come, and the codes of rows among them."""
    if np.ndim(classes) != 1:  # one label, a set, a table
        raise ValueError(f"classes must be a list of labels, got {shown(classes)}")
    declared = labels_of(classes)
    if (none := has_no_label(declared)).any():
        raise ValueError(f"classes holds {declared[none].tolist()[0]!r}, which is no label")
    classes = np.unique(declared)
    refuse_two_types(labels, classes)
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(
            f"y holds labels that are not in classes: {unknown.tolist()}; the classes are "
            f"{classes.tolist()}"
        )
    return classes, np.searchsorted(classes, labels)[codes]


# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowSample:
    """What is known of rows that come in parts: their number, their classes, a uniform sample.

    `key` (n,) are uniform numbers of the rows of the sample, the smallest of all.
    """

    X: Any
    labels: Array
    weight: Array
    key: Array
    classes: Array
    n_rows: int

    @property
    def parts(self) -> tuple[Any, Array, Array]:
        """Return rows, labels and weights of the sample."""
        return self.X, self.labels, self.weight

    @classmethod
    def of_rows(cls, rows: Labelled, seed: int, first: int) -> Self:
        """Take all rows of a part; keys by a seed, the rows before (`first`) and the labels."""
        classes, codes = rows.coded()
        rng = np.random.default_rng([seed, first, zlib.crc32(codes.tobytes())])
        X = rows.X.X if isinstance(rows.X, Rows) else rows.X
        n, weight = len(codes), rows.weight_of_each()
        return cls(X, rows.labels, weight, rng.random(n), classes, n)

    @classmethod
    def of_parts(cls, parts: Sequence[Self], most: int) -> Self:
        """Merge samples; at most so many rows are in the new one."""
        for sample in parts[1:]:
            refuse_two_types(sample.classes, parts[0].classes)
        keys = np.concatenate([sample.key for sample in parts])
        limit = np.partition(keys, most - 1)[most - 1] if len(keys) > most else np.inf
        kept = [(sample, np.flatnonzero(sample.key <= limit)) for sample in parts]
        labels, weight, key = (
            np.concatenate([getattr(sample, name)[rows] for sample, rows in kept])
            for name in ("labels", "weight", "key")
        )
        X = _stacked([_safe_indexing(sample.X, rows) for sample, rows in kept if len(rows)])
        classes = np.unique(np.concatenate([sample.classes for sample in parts]))
        return cls(X, labels, weight, key, classes, sum(sample.n_rows for sample in parts))


def _stacked(parts: list):
    """Stack rows of one kind: data frames, sparse matrices, lists or arrays."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [row for piece in parts for row in piece]
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    frames = [nw.from_native(piece, pass_through=True, allow_series=True) for piece in parts]
    if isinstance(frames[0], nw.DataFrame):
        names = frames[0].columns
        return nw.concat([frame.select(names) for frame in frames]).to_native()
    if isinstance(frames[0], nw.Series):
        return [row for frame in frames for row in frame.to_list()]
    return np.concatenate(parts)
