"""Constructor arguments, labels and counts as plain JSON, and back: what a model file may hold."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesgen.encoding.literals import shown

_LONGEST = 1000  # characters of an argument that is text


def to_json(value: Any, name: str) -> Any:
    """A constructor argument as plain JSON; arrays and tuples are tagged."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": [to_json(v, name) for v in value.tolist()], "dtype": value.dtype.str}
    if isinstance(value, list):
        return [to_json(v, name) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [to_json(v, name) for v in value]}
    if isinstance(value, Mapping):
        return {"pairs": [[to_json(k, name), to_json(v, name)] for k, v in value.items()]}
    if hasattr(value, "__array__"):
        return to_json(np.asarray(value), name)
    raise TypeError(
        f"cannot save {name}={value!r}: a model file holds numbers, strings and arrays only"
    )


def from_json(value: Any) -> Any:
    """Inverse of `to_json`."""
    if isinstance(value, list):
        return [from_json(v) for v in value]
    if isinstance(value, dict):
        if "array" in value:
            return np.array([from_json(v) for v in value["array"]], dtype=_dtype(value["dtype"]))
        if "tuple" in value:
            return tuple(from_json(v) for v in value["tuple"])
        return {from_json(k): from_json(v) for k, v in value["pairs"]}
    return value


def arguments_from_json(record: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments; ValueError for a long text, because text names an option."""
    arguments = {name: from_json(value) for name, value in record.items()}
    for name, value in arguments.items():
        if isinstance(value, str) and len(value) > _LONGEST:
            raise ValueError(f"{name} is {shown(value)}, which is no option")
    return arguments


def labels_to_json(labels: np.ndarray) -> dict[str, Any]:
    """Class labels with their type."""
    kind = labels.dtype.kind
    if kind == "O" and all(isinstance(v, str) for v in labels):
        return {"labels": labels.tolist(), "dtype": "O"}
    if kind in "biufU" and labels.dtype.char != "g":  # JSON has no long double
        return {"labels": labels.tolist(), "dtype": labels.dtype.str}
    if kind == "M":
        return {"labels": labels.astype(str).tolist(), "dtype": labels.dtype.str}
    raise TypeError(
        f"cannot save class labels of type {labels.dtype}: use strings, numbers, booleans or dates"
    )


def labels_from_json(value: Mapping[str, Any]) -> np.ndarray:
    """Inverse of `labels_to_json`; ValueError if they are no labels of classes."""
    labels, dtype = value["labels"], _dtype(value["dtype"])
    text = all(isinstance(label, str) for label in labels)
    if not labels or (dtype.kind in "OUM") != text:
        raise ValueError(f"it has no classes, or their labels are not of type {dtype}")
    found = np.array(labels, dtype=dtype)
    if found.ndim != 1 or (len(found) > 1 and not np.all(found[:-1] < found[1:])):
        raise ValueError("the labels of its classes are not distinct and sorted")
    return found


def columns_from_json(state: Mapping[str, Any]) -> tuple[int | None, np.ndarray | None]:
    """Number and names of the columns of X, where the model knows them."""
    n, names = state["n_features"], state["feature_names"]
    if n is not None:
        n = whole(state, "n_features")
    if names is None:
        return n, None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its columns are not text")
    if n is not None and n != len(names):
        raise ValueError(f"it has {n} columns and {len(names)} names")
    return n, np.array(names, dtype=object)


def whole(state: Mapping[str, Any], name: str) -> int:
    """A count in a record; ValueError if it is none."""
    value = state[name]
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} is {shown(value)}, not a whole number >= 0")
    return value


def _dtype(name: Any) -> np.dtype:
    """A type of numbers, text or dates, of a size that text has."""
    dtype = np.dtype(name)
    if dtype.kind not in "biufOUM" or dtype.itemsize > 1 << 20:
        raise ValueError(f"a model file holds no values of type {dtype}")
    return dtype
