"""`make bench-suite`: its option, and the machine's own number of threads."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--scale S`` measures with that share of the rows."""
    parser.addoption("--scale", type=float, default=1.0, help="share of the rows of a workload")


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> float:
    return request.config.getoption("--scale")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> None:
    """Replaces the tests' fixture of this name: here BLAS has all its threads."""
