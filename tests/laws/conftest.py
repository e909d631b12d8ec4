"""The laws run once for each example prior of each family."""

import pytest

pytest.register_assert_rewrite("tests.laws.cases")

from tests.laws.cases import pytest_generate_tests  # noqa: E402, F401 - after the line above
