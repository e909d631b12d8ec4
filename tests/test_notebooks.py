"""The notebooks run in a clean kernel, and what was committed is what they say today."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from nbclient import NotebookClient
from traitlets import default

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
SECONDS = 300
NUMBER = re.compile(r"\d+\.?\d*(?:e[-+]?\d+)?")  # the sign belongs to the words
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


class _ThisPython(KernelSpecManager):
    """Whatever kernels this machine has installed, ``python3`` is the interpreter of the tests."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        assert kernel_name == "python3", f"a notebook asks for the kernel {kernel_name!r}"
        return KernelSpec(**get_kernel_dict())


class _KernelManager(AsyncKernelManager):
    @default("kernel_spec_manager")
    def _this_python(self) -> KernelSpecManager:
        return _ThisPython(parent=self)


def outputs(notebook):
    """(cell number, output) of all outputs."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [(i, output) for i, cell in enumerate(code, 1) for output in cell.outputs]


def complaints(notebook):
    """Errors, and what was written to stderr: a reader would see a warning in the page."""
    return [
        (i, output.get("text") or output.get("evalue"))
        for i, output in outputs(notebook)
        if output.output_type == "error" or output.get("name") == "stderr"
    ]


def shown(notebook):
    """The text that each cell shows; of figures only that they are there."""
    text: dict[int, str] = {}
    for i, output in outputs(notebook):
        data = output.get("data", {})
        part = "<figure>" if "image/png" in data else data.get("text/plain", output.get("text"))
        text[i] = text.get(i, "") + part
    return text


def test_nine_notebooks_begin_with_a_quickstart_of_at_most_forty_lines():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"0{n}" for n in range(1, 10)]
    quickstart = nbformat.read(NOTEBOOKS[0], as_version=4)
    code = "\n".join(cell.source for cell in quickstart.cells if cell.cell_type == "code")
    assert len([line for line in code.splitlines() if line.strip()]) <= 40


@by_name
def test_committed_notebook_was_executed_from_top_to_bottom(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert complaints(notebook) == []
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "execute it anew: make notebooks"
    assert shown(notebook)


@by_name
@pytest.mark.slow
def test_notebook_runs_and_says_what_was_committed(path, tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))  # not the user's settings
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the kernel is another process than conftest limits
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(path, as_version=4)
    committed = shown(notebook)
    NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_manager_class=_KernelManager,
        coalesce_streams=True,
        resources={"metadata": {"path": os.fspath(tmp_path)}},
    ).execute()
    assert complaints(notebook) == []
    now = shown(notebook)
    assert now.keys() == committed.keys()
    for i, text in now.items():
        hint = f"cell {i} now shows\n{text}\nif that is right: make notebooks"
        assert words(text) == words(committed[i]), hint
        for number, before in zip(NUMBER.findall(text), NUMBER.findall(committed[i]), strict=True):
            assert float(number) == pytest.approx(
                float(before), rel=1e-12, abs=last_digit(before)
            ), hint


def words(text):
    """The text without its numbers and without its layout."""
    return NUMBER.sub("#", text).split()


def last_digit(number):
    """A unit of the last digit: as rounded on another machine. Whole numbers are exact."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 1.01 * 10.0 ** (int(exponent or 0) - decimals) if "." in mantissa else 0.0
