"""The laws run once for each example prior of each family."""

from tests.families.conftest import without_compiler  # noqa: F401 - a fixture
from tests.laws.cases import pytest_generate_tests  # noqa: F401 - pytest calls it
