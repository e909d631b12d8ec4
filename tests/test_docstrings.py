"""Public docstrings are read by numpydoc as they are meant."""

import inspect
import re
from collections.abc import Iterator

import pytest

import bayesgen as bg

# a section that is unknown or out of order, a summary that is missing or no imperative, a parameter
# that does not exist
REFUSED = {"GL06", "GL07", "GL08", "SS05", "PR02"}


def public_names() -> Iterator[str]:
    """Yield the public functions and classes, and the methods that a class defines itself."""
    for name in bg.__all__:
        value = getattr(bg, name)
        if inspect.ismodule(value):
            continue
        yield f"bayesgen.{name}"
        if inspect.isclass(value):
            for member, method in vars(value).items():
                if inspect.isfunction(method) and not member.startswith("_"):
                    yield f"bayesgen.{name}.{member}"


@pytest.mark.parametrize("name", list(public_names()))
def test_numpydoc_reads_it(name: str) -> None:
    validate = pytest.importorskip("numpydoc.validate").validate
    answer = validate(name)
    assert not [error for error in answer["errors"] if error[0] in REFUSED]
    assert not re.search(r"\w -{3,}|-{3,} \w", answer["docstring"])  # a heading within a paragraph
