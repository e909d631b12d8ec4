"""Which values of a parameter the fast tests take."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def rest_is_slow(values: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """All values; those that are not in `fast` are left to the slow tests."""
    values = list(values)
    assert set(fast) <= set(values), f"no such value: {set(fast) - set(values)}"
    return [v if v in fast else pytest.param(v, marks=pytest.mark.slow) for v in values]
