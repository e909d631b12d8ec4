"""Surroundings of the families' own tests."""

from collections.abc import Iterator

import pytest

from tests.graphs import pytensor


@pytest.fixture(autouse=True)
def without_compiler() -> Iterator[None]:
    """No C for the constants of graphs that are evaluated once, in Python."""
    with pytensor.config.change_flags(cxx=""):
        yield
