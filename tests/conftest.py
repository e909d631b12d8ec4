"""Options and surroundings of the test run."""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

gc.disable()  # until all is collected, which makes millions of objects that stay

# PyTensor folds the constants of graphs in Python: seconds less for each operation that is new. Nor
# does it note for each node which lines made it: a third of the time of a graph.
_FLAGS = "cxx=,traceback__limit=0"
os.environ["PYTENSOR_FLAGS"] = f"{os.environ.get('PYTENSOR_FLAGS', '')},{_FLAGS}".lstrip(",")

# modules of shared cases that are no tests themselves, but assert
pytest.register_assert_rewrite("tests.laws.cases", "tests.estimators.cases", "tests.encoding.cases")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--family NAME`` runs the laws of one family only; may be given several times."""
    parser.addoption(
        "--family",
        action="append",
        default=[],
        metavar="NAME",
        help="run the family laws for this class of bayesgen.families only",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Tests hold no examples: two seconds of each process would go into looking for them."""
    return [each for each in (yield) if type(each) is pytest.Module]


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the collector need not look at it again and again."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)  # it has little to find, and hypothesis measures each look


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """The tests' matrices are tiny: BLAS threads on a busy machine make them 40 times slower."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture(autouse=True, scope="module")
def stated_priors() -> Iterator[None]:
    """Fits have the stated prior, as fits in parts and closed forms have, unless they ask for more.

    Modules that test the prior that `fit` chooses have a fixture of this name that does nothing.
    """
    from bayesgen.estimators import classifier

    stated = classifier.states_prior
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            classifier, "states_prior", lambda clf: not hasattr(clf, "strength") or stated(clf)
        )
        yield


@pytest.fixture
def few_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools draw their exponents a few times: for tests that hold whatever these are."""
    from tests.drawn import draw_few_exponents

    draw_few_exponents(monkeypatch)
