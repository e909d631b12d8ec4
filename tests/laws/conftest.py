"""The laws run for two example priors of each family."""

from tests.laws.cases import pytest_generate_tests  # noqa: F401 - pytest calls it
