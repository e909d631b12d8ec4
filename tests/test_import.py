"""Nothing heavy is imported before it is needed."""

import subprocess
import sys

import pytest

import bayesgen as bg

HEAVY = ["pymc", "pytensor", "nutpie", "arviz", "numba", "dask", "matplotlib", "polars"]
AT_IMPORT = [*HEAVY, "pandas", "sklearn", "scipy", "xarray", "typer", "rich"]

FIT = """
import numpy as np, bayesgen as bg
X = np.array([[1.0, 2.0], [2.0, 1.0], [5.0, 5.0], [6.0, 4.0]])
bg.GaussianNB().fit(X, [0, 0, 1, 1]).predict_proba(X)
"""


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [("import bayesgen", AT_IMPORT), ("import bayesgen.cli", HEAVY), (FIT, [*HEAVY, "xarray"])],
    ids=["import", "cli", "fit and predict"],
)
def test_heavy_modules_stay_out(code, forbidden):
    report = f"{code}\nimport sys\nprint([m for m in {forbidden!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_public_name_resolves_and_is_documented():
    for name in bg.__all__:
        assert getattr(bg, name).__doc__, name
        assert name in dir(bg)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = bg.nonsense
