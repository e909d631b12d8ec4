"""Tables of any library, and which libraries that loads."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from scipy import sparse

from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import Table, feature_names, find_column, is_table, n_rows, places_of

NAMED = xr.DataArray(np.ones((3, 2)), dims=("row", "col"), coords={"col": ["a", "b"]})
FRAME = pd.DataFrame({"a": [1, 2, 3], "b": 1})


@pytest.mark.parametrize(
    ("X", "names", "is_frame"),
    [
        (FRAME, ["a", "b"], True),
        (pl.from_pandas(FRAME), ["a", "b"], True),
        (pa.table({"a": [1, 2, 3]}), ["a"], True),
        (pd.DataFrame(np.ones((3, 2))), None, True),
        (np.ones((3, 1)), None, False),
        ([[1]] * 3, None, False),
        (sparse.csr_array((3, 1)), None, False),
        (NAMED, ["a", "b"], False),
        (xr.DataArray(np.ones((3, 2))), None, False),
    ],
)
def test_names_and_rows_of_anything(X, names, is_frame):
    assert (feature_names(X), is_table(X), n_rows(X)) == (names, is_frame, 3)


def test_names_of_an_array_that_repeat():
    with pytest.raises(ValueError, match="more than one column 'a'"):
        feature_names(NAMED.assign_coords(col=["a", "a"]))


def test_no_data_frame_library_is_imported():
    heavy = "{'pandas', 'polars', 'pyarrow', 'xarray'}"
    code = f"import sys, bayesgen.encoding.schema; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_wide_tables():
    """Many columns: what is done for each of them must not look at all the others."""
    names = [f"c{j}" for j in range(10_000)]
    X = np.zeros((2, len(names)))
    with pytest.raises(ValueError, match=r"no column 'c'; did you mean 'c9'"):
        Table(pd.DataFrame(X, columns=names)) and find_column("c", places_of(tuple(names)), 0, "x")
    with pytest.raises(ValueError, match="more than one column 'c9'"):
        feature_names(pa.table([[1]] * 10_001, names=[*names, "c9"]))
    columns = {"drop": names[1::2], "gaussian": names[::2]}
    assert len(TableSchema.learn(pl.DataFrame(X, names), columns).dropped) == 5_000
    numbers = np.arange(6000).reshape(2, 3000)
    for dtype in (np.float32, np.uint8, bool):
        frame = pd.DataFrame(numbers.astype(dtype), columns=names[:3000])
        assert (TableSchema.learn(frame).encode(frame) == frame.to_numpy()).all()
