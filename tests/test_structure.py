"""What `tools/structure.py` counts, on a package of a few lines; and that its budgets hold."""

import importlib.util
from pathlib import Path
from textwrap import dedent

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "structure.py"


@pytest.fixture(scope="module")
def structure():
    spec = importlib.util.spec_from_file_location("structure", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.fixture
def package(tmp_path):
    files = {
        "p/__init__.py": "",
        "p/low/rows.py": """
            from typing import TYPE_CHECKING, Protocol
            if TYPE_CHECKING:
                from p.high.model import Model
            class Fitted(Protocol):
                def _codes(self): ...
            def codes(clf: "Model"):
                return clf._codes(), clf._fields, clf.__dict__
            """,
        "p/low/late.py": """
            def late():
                from p.high import model
            """,
        "p/high/model.py": """
            from p.low import late, rows
            class Model:
                def _codes(self):
                    return self._codes(), super()._codes()
            def here(clf):
                return clf._codes()
            """,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return tmp_path / "p"


def test_circles_by_annotations_and_by_imports_in_functions(structure, package):
    assert structure.circles(package) == [{"p.low.rows", "p.high.model", "p.low.late"}]


def test_private_calls_are_of_members_that_another_folder_has(structure, package):
    (call,) = structure.private_calls(package)
    assert call.endswith("low/rows.py:8 clf._codes")


def test_one_more_than_its_budget_is_named(structure):
    values = {name: figure.budget for name, figure in structure.FIGURES.items()}
    assert structure.over_budget(values) == []
    assert structure.over_budget(values | {"modules": values["modules"] + 1}) == ["modules"]
