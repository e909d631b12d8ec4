"""Tables of any library: names, what cannot be read, and which libraries that loads."""

import datetime as dt
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import Table, feature_names, find_column, is_table, n_rows, places_of
from tests.encoding.cases import CONTAINERS, NAMED, NAMES, birds, column_of


@pytest.mark.parametrize("container", CONTAINERS)
def test_names_and_rows_of_anything(container):
    X = CONTAINERS[container](birds())
    assert feature_names(X) == (list(NAMES) if container in NAMED else None)
    is_frame = container not in ("xarray", "NumPy", "NumPy, masked", "lists")
    assert (is_table(X), n_rows(X), Table(X).n_columns) == (is_frame, 3, 4)


REFUSED = {
    TypeError: [
        (column_of(1, "a"), r"column 0 mixes text \('a' in row 1\) and numbers \(1 in row 0\)"),
        (column_of(1, {"a": 1}), r"column 0 holds \{'a': 1\} \(dict\) in row 1: argument"),
        (column_of(b"a"), r"column 0 holds b'a' \(bytes\) in row 0"),
        (column_of(dt.date(2020, 1, 1)), r"column 0 holds .*\(date\) in row 0"),
        (column_of(1, pd.Timestamp("2020")), r"column 0 holds .*\(Timestamp\) in row 1"),
        (column_of(np.timedelta64(1, "D")), r"column 0 holds .*\(timedelta64\) in row 0"),
        (column_of(1j), r"column 0 holds 1j \(complex\) in row 0"),
        (pd.DataFrame({"d": pd.to_datetime(["2020"])}), "column 'd' holds Datetime"),
        (pl.DataFrame({"d": [dt.date(2020, 1, 1)]}), "column 'd' holds Date"),
        (pl.DataFrame({"d": [[1]]}), "column 'd' holds List"),
        (
            pd.DataFrame({"d": pd.period_range("2020", periods=1, freq="M")}),
            "column 'd' holds .*Period",
        ),
        (pd.DataFrame({"d": pd.cut([1, 2, 3], 2)}), "dtype of column 'd': Interval"),
        (pd.DataFrame({"d": pd.Categorical([1, "a"])}), "dtype of column 'd': text"),
        (np.array([["2020"]], dtype="M8[D]"), "column 0 holds datetime64"),
        (pl.LazyFrame({"a": [1]}), r"X is lazy.*collect"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), r"all input features have string"),
        (sparse.csr_array((3, 1)), "sparse X is not supported here"),
    ],
    ValueError: [
        (column_of(1.0, np.inf), r"column 0 holds inf in row 1; make it finite, or NaN"),
        (column_of(10**30), r"column 0 holds integers beyond 64 bits; turn it into text"),
        (column_of(2**60 + 1, None), r"column 0 holds integers of 2\*\*53 and beyond"),
        (np.array([[1j]]), "Complex data not supported: column 0"),
        (pl.DataFrame({"d": [1.0, -np.inf]}), "column 'd' holds -inf in row 1"),
        (pl.DataFrame({"d": [2**60 + 1, None]}), r"column 'd' holds integers"),
        (np.ones(3), r"Expected 2D array, got 1D array instead. Reshape your data"),
        (pd.Series([1]), r"Reshape your data"),
        (5, r"Expected 2D array, got 0D"),
        (np.ones((2, 2, 2)), r"got 3D"),
        (np.ones((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1"),
        (pd.DataFrame(), r"0 feature\(s\)"),
        ([[1, 2], [3]], r"rows differ in length"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"more than one column 'a'"),
    ],
}


@pytest.mark.parametrize(
    ("error", "X", "message"), [(error, *row) for error, rows in REFUSED.items() for row in rows]
)
def test_what_cannot_be_read(error, X, message):
    with pytest.raises(error, match=message):
        Table(X).column(0)


def test_nothing_is_learned_from_no_rows():
    for X in (np.empty((0, 2)), pl.DataFrame({"a": [], "b": []})):
        with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
            TableSchema.learn(X)


def test_names_of_an_array_that_repeat():
    named = CONTAINERS["xarray"](birds()).assign_coords(column=["a", "a", "b", "c"])
    with pytest.raises(ValueError, match="more than one column 'a'"):
        feature_names(named)


def test_no_data_frame_library_is_imported():
    heavy = "{'pandas', 'polars', 'pyarrow', 'xarray'}"
    code = f"import sys, bayesgen.encoding.schema; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_wide_tables():
    """Many columns: what is done for each of them must not look at all the others."""
    names = [f"c{j}" for j in range(10_000)]
    with pytest.raises(ValueError, match=r"no column 'c'; did you mean 'c9'"):
        find_column("c", places_of(tuple(names)), 0, "x")
    with pytest.raises(ValueError, match="more than one column 'c9'"):
        feature_names(pa.table([[1]] * 10_001, names=[*names, "c9"]))
    columns = {"drop": names[1::2], "gaussian": names[::2]}
    X = pl.DataFrame(np.zeros((2, 10_000)), names)
    assert len(TableSchema.learn(X, columns).kinds) == 5_000


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, bool])
def test_frames_of_narrow_numbers(dtype):
    frame = pd.DataFrame(np.arange(600).reshape(2, 300).astype(dtype)).add_prefix("c")
    assert (TableSchema.learn(frame).encode(frame) == frame.to_numpy()).all()
