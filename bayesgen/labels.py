"""Class labels of any type: to codes 0 .. C-1 and back, and weights given by label."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from bayesgen.numerics import Array


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ == "NAType" or label != label


def refuse_mixed(y: Any) -> None:
    """NumPy would turn [1, "a"] into ["1", "a"] without a word."""
    if not isinstance(y, list | tuple):
        return
    labelled = [(i, v) for i, v in enumerate(y) if not _is_missing(v)]
    text = [isinstance(v, str) for _, v in labelled]
    if any(text) and not all(text):
        (i, a), (k, b) = labelled[0], labelled[text.index(not text[0])]
        raise TypeError(f"labels must be of one type, got {a!r} in row {i} and {b!r} in row {k}")


def _label_type(labels: Array) -> str:
    """What NumPy must not mix: it would turn numbers and dates into strings."""
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


def code_labels(y: Array) -> tuple[Array, Array]:
    """(sorted labels, code of each row)."""
    unlabelled = [_is_missing(v) for v in y.tolist()] if y.dtype.kind in "fOM" else []
    missing = np.flatnonzero(unlabelled)
    if missing.size:
        raise ValueError(
            f"y has no label in {len(missing)} row(s), the first is row {missing[0]} "
            "(Input contains NaN): drop the unlabelled rows"
        )
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(f"y holds an infinite label in row {int(np.isinf(y).argmax())}")
    check_classification_targets(y)
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in y})
        raise TypeError(f"labels must be of one sortable type, got {', '.join(kinds)}") from None
    return labels, codes.ravel()


def codes_of(labels: Any, classes: Array) -> Array:
    """Codes of known labels, of the shape of `labels`; an error names one that is no class."""
    values = np.asarray(labels)
    codes = np.searchsorted(classes, values).clip(max=len(classes) - 1)
    strange = classes[codes] != values
    if np.any(strange):
        raise ValueError(
            f"{values[strange].tolist()[0]!r} is not a class; the classes are {classes.tolist()}"
        )
    return codes


def weights_by_class(class_prior: Any, classes: Array) -> Array:
    """(C,) weights from an array, a {label: weight} mapping or a pandas Series by label."""
    by_label = hasattr(class_prior, "items")
    if by_label:
        class_prior = dict(class_prior.items())
        codes = [int(codes_of(label, classes)) for label in class_prior]
        absent = np.setdiff1d(np.arange(len(classes)), codes)
        if absent.size:
            raise ValueError(f"class_prior has no weight for {classes[absent].tolist()}")
    try:
        given = list(class_prior.values()) if by_label else class_prior
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "class_prior must be one weight a class, or a dict {label: weight}, got "
            f"{class_prior!r}"
        ) from None
    if by_label:
        weights = weights[np.argsort(codes)]
    if weights.shape != classes.shape:
        raise ValueError(
            f"class_prior has shape {weights.shape}, but there are {len(classes)} "
            f"classes: {classes.tolist()}"
        )
    if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-8):
        raise ValueError(
            f"class_prior must be non-negative and sum to 1, got {weights.tolist()} "
            f"(sum {weights.sum():.10g}); divide by the sum if that is what you mean"
        )
    return weights
