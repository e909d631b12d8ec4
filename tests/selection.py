"""Which values of a parameter the fast tests take."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def rest_is_slow(values: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """All values; those that are not in `fast` are left to the slow tests."""
    values = list(values)
    assert all(v in values for v in fast), f"no such value: {[v for v in fast if v not in values]}"
    return [v if v in fast else pytest.param(v, marks=pytest.mark.slow) for v in values]


def crossed(first: Iterable[Any], second: Collection[Any], fast: int = 1) -> list[Any]:
    """All pairs; fast are so many of each value of `first`, and each of `second` in its turn."""
    second = list(second)
    slow = pytest.mark.slow
    return [
        pytest.param(a, b, marks=() if (k - i) % len(second) < fast else slow)
        for i, a in enumerate(first)
        for k, b in enumerate(second)
    ]
