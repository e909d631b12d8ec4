"""The laws of families once more, every kernel compiled however little there is to do."""

import pytest

from bayesgen.numerics import kernels
from tests.laws.test_family_laws import *  # noqa: F403 - every law, under another rule for its size

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
