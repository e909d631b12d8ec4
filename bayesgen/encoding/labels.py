"""Class labels of any type, to codes 0 .. C-1 and back, and the rows and weights beside them."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
)

from bayesgen.encoding.literals import is_missing, shortened, shown
from bayesgen.encoding.reader import Rows
from bayesgen.encoding.tables import refuse_elsewhere
from bayesgen.errors import InputError, InputTypeError, warn
from bayesgen.families.shared.hyperparameters import SMALLEST
from bayesgen.numerics.special import LARGEST_COUNT, Array

_MANY = 1 << 13  # labels that are hashed


def warn_of_one_class(classes: Array) -> None:
    """Warn if all training rows have the same label."""
    if len(classes) == 1:
        warn(f"all labels are {classes.tolist()[0]!r}: with one class every probability is 1")


def refuse_mixed(y) -> None:
    """Raise where NumPy would turn [1, "a"] into ["1", "a"], or cut names of enumerations."""
    if not isinstance(y, list | tuple):
        return
    labelled = [(i, v) for i, v in enumerate(y) if not is_missing(v)]
    text = [isinstance(v, str) for _, v in labelled]
    if any(text) and (row := next((i for i, v in labelled if _renamed(v)), None)) is not None:
        raise InputTypeError(
            "the label",
            f" is {y[row]!r}, text that NumPy reads as {str(y[row])!r} and cuts",
            row=row,
            advice="give the values, as [label.value for label in y]",
        )
    if any(text) and not all(text):
        (i, a), (k, b) = labelled[0], labelled[text.index(not text[0])]
        raise InputTypeError(f"labels must be of one type, got {a!r} in row {i} and {b!r}", row=k)


def _renamed(label) -> bool:
    """Tell whether a label is text and str() of it is another, as of class Colour(str, Enum)."""
    return isinstance(label, str) and type(label) is not str and str(label) != label


def _label_type(labels: Array) -> str:
    """Return the type that NumPy must not mix: it would make strings of numbers and dates."""
    kind = labels.dtype.kind
    if kind == "O":
        return "text" if all(isinstance(v, str) for v in labels.flat) else "other"
    return "text" if kind in "UT" else "date" if kind == "M" else "number"


def refuse_two_types(labels: Array, classes: Array) -> None:
    """Raise TypeError where numbers, text and dates would be mixed."""
    if _label_type(labels) != _label_type(classes):
        raise TypeError(
            f"labels {labels[:3].tolist()} cannot be mixed with the classes known before, "
            f"{classes[:3].tolist()}: use labels of one type"
        )


def array_of_labels(labels) -> Array:
    """Return labels as an array; NaN in a list of text stays a missing label, not "nan"."""
    is_text = (
        [isinstance(label, str) for label in labels] if isinstance(labels, list | tuple) else []
    )
    if any(is_text) and not all(is_text):
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array
    return np.asarray(labels)


def labels_of(y, *, unlabelled: bool = False) -> Array:
    """Return y as an array (N,), with None, NaN or NA where a row has no label.

    Parameters
    ----------
    y : (N,) labels as a user gives them
        Rows that are masked in a masked array have no label.
    unlabelled : bool
        Whether rows may have no label. Then -1 among numbers marks such a row, unless y is a
        masked array, whose mask decides.

    Raises
    ------
    ValueError
        If -1 is such a marker and may as well be a label: y holds another negative label, only
        one other label, or another marker.
    """
    mask = np.ma.getmaskarray(y).ravel() if isinstance(y, np.ma.MaskedArray) else None
    if not isinstance(y, np.ndarray) or y.dtype.names:
        refuse_elsewhere(y, "y")
    refuse_mixed(y)
    if isinstance(y, list | tuple):
        y = array_of_labels(y)
    dtype: Any = getattr(y, "dtype", None)
    if hasattr(dtype, "numpy_dtype") and dtype.kind in "iub" and not y.isna().any():
        y = y.to_numpy(dtype=dtype.numpy_dtype)  # scikit-learn would make floats of pandas' Int64
    plain = type(y) is np.ndarray and y.ndim == 1  # what scikit-learn returns unchanged
    values = y if plain else column_or_1d(y if mask is None else y.data, warn=True)
    if values.dtype.kind == "T":  # of which few functions of NumPy know the missing ones
        values = values.astype(object)
    if mask is None and unlabelled:
        mask = _is_minus_one(values)
    if mask is not None and mask.any():
        values = values.astype(values.dtype if values.dtype.kind in "fM" else object)
        values[mask] = None
    return values


def _is_minus_one(y: Array) -> Array:
    """Return where labels (N,) are -1; raise where -1 may be a label."""
    missing = has_no_label(y)
    labels = y[~missing]
    is_marker = np.zeros(len(y), dtype=bool)
    are_objects = y.dtype.kind == "O" and all(isinstance(label, Real) for label in labels)
    if y.dtype.kind not in "if" and not are_objects:
        return is_marker
    is_marker[~missing] = labels == -1
    others = np.unique(labels[labels != -1])
    is_sure = len(others) >= 2 and others[0] >= 0 and not missing.any()
    if is_marker.any() and len(others) and not is_sure:
        beside = [*others.tolist(), *["a missing label"] * bool(missing.any())]
        raise ValueError(
            f"y holds -1 beside {beside}: is -1 a label, or a row without one? Give "
            "np.ma.masked_array(y, mask), with True where there is no label (mask=False: "
            "every row has one)"
        )
    return is_marker


def is_labelled(labels: Array) -> Array:
    """Return where a label is known, (N,); ValueError if no row has one."""
    unlabelled = has_no_label(labels)
    if unlabelled.all():
        raise ValueError("no row of y has a label: a class must have at least one")
    return ~unlabelled


def has_no_label(y: Array) -> Array:
    """Return where a label is None, NaN or NA, (N,)."""
    if y.dtype.kind == "O":
        return np.array([is_missing(v) for v in y.tolist()], dtype=bool)
    return y != y if y.dtype.kind in "fM" else np.zeros(len(y), dtype=bool)


def code_labels(y: Array) -> tuple[Array, Array]:
    """Return sorted labels and the code of each row; objects become what they are of."""
    if y.dtype.kind in "biuU" or (len(y) >= _MANY and _is_text(y)):
        labels, codes = _sorted_labels(y)
        if 2 * len(labels) <= len(y):
            return labels, codes  # scikit-learn has a warning about that many
    refuse_unlabelled(y)
    if y.dtype.kind == "O" and all(isinstance(label, Real | np.bool) for label in y):
        y = np.array(y.tolist())
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError("y holds an infinite label", row=np.isinf(y).argmax())
    try:
        with np.errstate(invalid="ignore"):  # it asks whether 1e308 is a whole number
            check_classification_targets(y)
        return np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        if y.dtype.kind != "O":  # continuous, complex or bytes
            raise
        kinds = ", ".join(sorted({type(v).__name__ for v in y.tolist()}))
        raise type(error)(
            f"Unknown label type: labels must be of one sortable type, got {kinds}; give "
            "numpy.asarray(y).astype(str)"
        ) from None


def _is_text(y: Array) -> bool:
    import pandas as pd

    return y.dtype.kind == "O" and pd.api.types.infer_dtype(y, skipna=False) == "string"


def _sorted_labels(y: Array) -> tuple[Array, Array]:
    """Return the sorted labels and the codes of whole numbers or text; many are hashed."""
    if len(y) < _MANY or y.dtype == bool:
        return np.unique(y, return_inverse=True)
    import pandas as pd

    codes, labels = pd.factorize(y.astype(object) if y.dtype.kind == "U" else y, sort=True)
    return labels.astype(y.dtype), codes


def refuse_unlabelled(labels: Array) -> None:
    """Raise where a label is needed and is not there."""
    missing = np.flatnonzero(has_no_label(labels))
    if missing.size:
        raise InputError(
            f"y has no label in {len(missing)} row(s), the first is",
            " (Input contains NaN)",
            row=missing[0],
            advice="fit(X, y, unlabelled='ignore') leaves these rows out; 'weighted' learns from "
            "them as far as they help (classifiers with a closed form)",
            place=" row {}",
        )


def codes_of(labels, classes: Array, of_rows: bool = False) -> Array:
    """Return the codes of known labels, of the shape of `labels`.

    An error names the first one that is not a class, and with `of_rows` its row.
    """
    if np.ma.is_masked(labels):
        row = np.ma.getmaskarray(labels).ravel().argmax()
        raise InputError("y is masked", row=row, advice="leave out the rows without a label")
    values = array_of_labels(labels)
    try:
        codes = np.searchsorted(classes, values).clip(max=len(classes) - 1)
    except TypeError:  # None or another type: no order
        class_list = classes.tolist()
        strange = [is_missing(v) or v not in class_list for v in values.ravel().tolist()]
        raise _no_class(values, np.array(strange), classes, of_rows) from None
    unknown = classes[codes] != values
    if np.any(unknown):
        raise _no_class(values, np.ravel(unknown), classes, of_rows)
    return codes


def _no_class(labels: Array, unknown: Array, classes: Array, of_rows: bool) -> InputError:
    row, of_rows = int(unknown.argmax()), of_rows and labels.ndim == 1
    return InputError(
        f"{shown(labels.ravel().tolist()[row])} is not a class; the classes are "
        f"{shortened(str(classes.tolist()))}",
        row=row if of_rows else None,
        advice="leave rows with other labels out" if of_rows else None,
        place=" (row {})",
    )


def by_label(values) -> dict | None:
    """Return {label: value} of a mapping, Series or DataArray whose dim has labels; else None."""
    if hasattr(values, "items"):
        labels = values.index.to_numpy() if getattr(values, "ndim", 0) == 1 else list(values)
        return dict(zip(labels, (value for _, value in values.items()), strict=True))
    if len(getattr(values, "dims", ())) == 1 and values.dims[0] in values.coords:
        return dict(zip(values.coords[values.dims[0]].values, values.values, strict=True))
    return None


def by_name(values) -> dict | None:
    """Return {column: value} of a mapping, and of a Series or DataArray whose labels are text."""
    if isinstance(values, Mapping):
        return dict(values)
    named = by_label(values) if getattr(values, "ndim", 0) == 1 else None
    return named if any(isinstance(label, str) for label in named or ()) else None


def weights_by_class(class_prior, classes: Array) -> Array:
    """Return weights (C,) from an array, or by label from a mapping, Series or DataArray."""
    named = by_label(class_prior)
    if named is not None:
        codes = [int(codes_of(label, classes)) for label in named]
        absent = np.setdiff1d(np.arange(len(classes)), codes)
        if absent.size:
            raise ValueError(f"class_prior has no weight for {classes[absent].tolist()}")
    try:
        listed = np.asarray(class_prior if named is None else list(named.values()))
        weights = listed.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "class_prior must be one weight per class, or a dict {label: weight}, got "
            f"{class_prior!r}"
        ) from None
    if named is not None:
        weights = weights[np.argsort(codes)]
    if weights.shape != classes.shape:
        raise ValueError(
            f"class_prior has shape {weights.shape}, but there are {len(classes)} "
            f"classes: {classes.tolist()}"
        )
    short = listed.dtype.kind == "f" and listed.dtype.itemsize < 8  # rounds at its own place
    rounding = len(listed) * float(np.finfo(listed.dtype).eps) if short else 1e-8
    if not (np.all(weights >= 0) and abs(weights.sum() - 1) < rounding):
        raise ValueError(
            f"class_prior must be non-negative and sum to 1, got {weights.tolist()} "
            f"(sum {weights.sum():.10g}); divide by the sum if that is what you mean"
        )
    return weights


# ------------------------------------------------------------------------------------------------
# Rows with labels and weights: what takes part in a fit, and what is refused.


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
