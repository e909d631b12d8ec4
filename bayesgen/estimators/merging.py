"""Whether two classifiers may be merged: equal constructor arguments."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesgen.families.records import Record


def refuse_other_arguments(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raise where the arguments of two classifiers differ."""
    for name, value in mine.items():
        if not _same(value, theirs[name]):
            raise ValueError(
                f"cannot merge models that differ in {name}: {value!r} and {theirs[name]!r}"
            )


def _same(a: Any, b: Any) -> bool:
    """Whether two constructor arguments are equal; two functions cannot be compared."""
    if a is b or (callable(a) and callable(b)):
        return True
    if isinstance(a, Record):
        same_type = type(a) is type(b)
        return same_type and all(
            _same(x, y) for x, y in ((a.settings(), b.settings()), (a.arrays(), b.arrays()))
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return np.array_equal(np.asarray(a), np.asarray(b))
