"""Laws of the first example of each family once more, every kernel compiled.

The star imports bring every law into this module, where kernels follow another rule.
"""

import pytest

from bayesgen.numerics import kernels
from tests.laws import cases
from tests.laws.test_cgf import *  # noqa: F403
from tests.laws.test_estimates import *  # noqa: F403
from tests.laws.test_evidence import *  # noqa: F403
from tests.laws.test_missing_cells import *  # noqa: F403
from tests.laws.test_statistics import *  # noqa: F403

pytestmark = pytest.mark.slow


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.config.getoption("markexpr") != "not slow":  # items that none would run
        cases.pytest_generate_tests(metafunc, first_alone=True)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
