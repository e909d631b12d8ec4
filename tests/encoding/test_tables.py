"""Tables of any library, and which libraries that loads."""

import re
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
from tests.encoding.cases import birds, learn


def test_helpers():
    frame = birds()
    assert feature_names(frame) == ["island", "bill", "eggs", "male"]
    assert feature_names(pl.from_pandas(frame)) == feature_names(frame)
    assert feature_names(pd.DataFrame(np.ones((2, 2)))) is None
    assert feature_names(np.ones((2, 2))) is None
    assert feature_names([[1, 2]]) is None
    assert feature_names(sparse.csr_array((2, 2))) is None
    named = xr.DataArray(np.ones((2, 2)), dims=("row", "col"), coords={"col": ["a", "b"]})
    assert feature_names(named) == ["a", "b"]
    assert Table(named).label(1) == "column 'b'"
    with pytest.raises(ValueError, match="more than one column 'a'"):
        feature_names(named.assign_coords(col=["a", "a"]))
    assert feature_names(xr.DataArray(np.ones((2, 2)))) is None
    assert is_table(frame)
    assert is_table(pl.from_pandas(frame))
    assert is_table(pa.table({"a": [1]}))
    assert not is_table(np.ones((2, 2)))
    assert not is_table([[1]])
    assert not is_table(named)
    for X in (
        frame,
        pa.table({"a": [1, 2, 3]}),
        np.ones((3, 1)),
        [[1]] * 3,
        sparse.csr_array((3, 1)),
    ):
        assert n_rows(X) == 3


def test_no_data_frame_library_is_imported():
    heavy = "{'pandas', 'polars', 'pyarrow', 'xarray'}"
    code = f"import sys, bayesgen.encoding.schema; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_errors_are_one_sentence():
    with pytest.raises(ValueError, match="holds") as caught:
        learn(pd.DataFrame({"a": [1, 5]}), {"a": 2})
    assert re.fullmatch(r"column 'a' .*row 1.*[^.\n]", str(caught.value))


def test_wide_tables():
    """Many columns: what is done for each of them must not look at all the others."""
    names = [f"c{j}" for j in range(30_000)]
    X = np.zeros((2, len(names)))
    with pytest.raises(ValueError, match=r"no column 'c'; did you mean 'c9'"):
        Table(pd.DataFrame(X, columns=names)) and find_column("c", places_of(tuple(names)), 0, "x")
    with pytest.raises(ValueError, match="more than one column 'c9'"):
        feature_names(pa.table([[1]] * 30_001, names=[*names, "c9"]))
    columns = {"drop": names[1::2], "gaussian": names[::2]}
    assert len(TableSchema.learn(pl.DataFrame(X, names), columns).dropped) == 15_000
    numbers = np.arange(6000).reshape(2, 3000)
    for dtype in (np.float32, np.uint8, bool):
        frame = pd.DataFrame(numbers.astype(dtype), columns=names[:3000])
        assert (TableSchema.learn(frame).encode(frame) == frame.to_numpy()).all()
