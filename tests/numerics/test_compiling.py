"""How kernels are compiled, where machine code is kept, and what is said where it cannot be."""

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import bayesgen as bg
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import compiling


def test_no_kernel_takes_over_how_its_caller_rounds():
    """Else what a program of PyTensor compiled first, and numba kept, is what all calls get."""
    for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if hasattr(value, "targetoptions"):
                assert "fastmath" in value.targetoptions, (module.name, name)


def test_a_process_without_a_cache_says_so_once(monkeypatch):
    njit = numba.njit

    def without_cache(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", without_cache)
    compiling._say_that_nothing_is_kept.cache_clear()
    with pytest.warns(UserWarning, match="compiles it anew.*NUMBA_CACHE_DIR") as said:
        [compiling.compiled(lambda x: x) for _ in range(2)]
    assert len(said) == 1


ANEW = """
import numpy as np
import bayesgen as bg
from bayesgen.numerics.kernels import dense
X = np.random.default_rng(0).normal(size=(40, 2))
bg.GaussianNB().fit(X, np.arange(40) % 2).predict_proba(X)
print("right")
"""


@pytest.mark.slow
def test_a_read_only_installation_without_a_home(tmp_path):
    """Numba finds no folder to keep a kernel in: one line says so, and the result is there."""
    package = tmp_path / "bayesgen"
    shutil.copytree(
        Path(bg.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.csv")
    )
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").touch()  # a file: nothing can be written there, even by root
    environment = {"PATH": os.environ["PATH"], "HOME": "/dev/null", "PYTHONPATH": str(tmp_path)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": "/dev/null"}
    done = subprocess.run(
        [sys.executable, "-c", ANEW], env=environment, cwd="/", capture_output=True, text=True
    )
    assert done.stdout == "right\n", done.stderr
    assert done.stderr.count("compiles it anew") == 1


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("kept", [0, 20])
def test_a_truncated_cache_is_compiled_anew(tmp_path, monkeypatch, suffix, kept):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"kernel_{suffix}_{kept}"
    source = (
        "from bayesgen.numerics.kernels.compiling import compiled\n\n\n@compiled\ndef double(x):\n"
    )
    (tmp_path / f"{name}.py").write_text(source + "    return 2 * x\n")
    assert importlib.import_module(name).double(2.0) == 4.0
    (file,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    file.write_bytes(file.read_bytes()[:kept])
    assert importlib.reload(sys.modules[name]).double(2.0) == 4.0
