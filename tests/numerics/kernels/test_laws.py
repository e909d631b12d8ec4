"""Laws of the first example of each family once more, every kernel compiled.

The star imports bring every law into this module, where kernels follow another rule.
"""

import numpy as np
import pytest

from bayesgen.families import registry
from bayesgen.numerics import kernels
from tests.laws import cases
from tests.laws.test_cgf import *  # noqa: F403
from tests.laws.test_estimates import *  # noqa: F403
from tests.laws.test_evidence import *  # noqa: F403
from tests.laws.test_missing_cells import *  # noqa: F403
from tests.laws.test_statistics import *  # noqa: F403

pytestmark = pytest.mark.slow
NO_KERNELS = ("ContextTree",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.config.getoption("markexpr") != "not slow":  # items that none would run
        cases.pytest_generate_tests(metafunc, without=NO_KERNELS, first_alone=True)


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)


class Refused:
    """A number of steps from which on to compile that nobody may ask for."""

    def __le__(self, steps: int) -> bool:
        raise AssertionError("a kernel was asked for")


@pytest.mark.parametrize("name", NO_KERNELS)
def test_what_is_left_out_asks_for_no_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases.Case(registry()[name], 0)
    monkeypatch.setattr(kernels, "COMPILE_FROM", Refused())
    posterior, X, y, stats = case.fitted(50)
    posterior.log_predictive(X)
    posterior.log_likelihood(X, posterior.draw(case.rng(), 2))
    posterior.cgf(X, 1j * np.ones(case.n_classes))
    case.prior.log_evidence(stats)
    posterior.simulate(case.rng(), cases.first(posterior.draw(case.rng(), 1)), y)
