"""The laws of families once more, every kernel compiled however little there is to do.

The star imports bring every law into this module, where kernels follow another rule.
"""

import pytest

from bayesgen.numerics import kernels
from tests.laws.cases import pytest_generate_tests  # noqa: F401 - pytest calls it
from tests.laws.test_cgf import *  # noqa: F403
from tests.laws.test_default_priors import *  # noqa: F403
from tests.laws.test_draws import *  # noqa: F403
from tests.laws.test_estimates import *  # noqa: F403
from tests.laws.test_evidence import *  # noqa: F403
from tests.laws.test_input_kinds import *  # noqa: F403
from tests.laws.test_missing_cells import *  # noqa: F403
from tests.laws.test_permutations import *  # noqa: F403
from tests.laws.test_records import *  # noqa: F403
from tests.laws.test_simulation import *  # noqa: F403
from tests.laws.test_statistics import *  # noqa: F403

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
