"""What cannot be a category, or a table of categories."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import read
from tests.encoding.cases import NAN, encode, learn


@pytest.mark.parametrize(
    ("cells", "error", "message"),
    [
        ([1, "a"], TypeError, r"column 0 mixes text \('a' in row 1\) and numbers \(1 in row 0\)"),
        ([1, {"a": 1}], TypeError, r"column 0 holds \{'a': 1\} \(dict\) in row 1: argument"),
        ([b"a"], TypeError, r"column 0 holds b'a' \(bytes\) in row 0"),
        ([dt.date(2020, 1, 1)], TypeError, r"column 0 holds .*\(date\) in row 0"),
        ([1, pd.Timestamp("2020")], TypeError, r"column 0 holds .*\(Timestamp\) in row 1"),
        ([np.timedelta64(1, "D")], TypeError, r"column 0 holds .*\(timedelta64\) in row 0"),
        ([1j], TypeError, r"column 0 holds 1j \(complex\) in row 0"),
        ([1.0, np.inf], ValueError, r"column 0 holds inf in row 1; make it finite, or NaN"),
        ([10**30], ValueError, r"column 0 holds integers beyond 64 bits; turn it into text"),
        ([2**60 + 1, None], ValueError, r"column 0 holds integers of 2\*\*53 and beyond"),
    ],
)
def test_cells_that_cannot_be_categories(cells, error, message):
    X = np.empty((len(cells), 1), dtype=object)
    for i, cell in enumerate(cells):
        X[i, 0] = cell
    with pytest.raises(error, match=message):
        learn(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"d": pd.to_datetime(["2020"])}), TypeError, "column 'd' holds Datetime"),
        (pl.DataFrame({"d": [dt.date(2020, 1, 1)]}), TypeError, "column 'd' holds Date"),
        (pl.DataFrame({"d": [[1]]}), TypeError, "column 'd' holds List"),
        (
            pd.DataFrame({"d": pd.period_range("2020", periods=1, freq="M")}),
            TypeError,
            "column 'd' holds .*Period",
        ),
        (pd.DataFrame({"d": pd.cut([1, 2, 3], 2)}), TypeError, "dtype of column 'd': Interval"),
        (pd.DataFrame({"d": pd.Categorical([1, "a"])}), TypeError, "dtype of column 'd': text"),
        (np.array([["2020"]], dtype="M8[D]"), TypeError, "column 0 holds datetime64"),
        (np.array([[1j]]), ValueError, "Complex data not supported: column 0"),
        (pl.DataFrame({"d": [1.0, -np.inf]}), ValueError, "column 'd' holds -inf in row 1"),
        (pl.DataFrame({"d": [2**60 + 1, None]}), ValueError, r"column 'd' holds integers"),
    ],
)
def test_columns_that_cannot_be_read(X, error, message):
    with pytest.raises(error, match=message):
        learn(X)
    with pytest.raises(error, match=message):
        TableSchema.learn(X).encode(X)


def test_text_and_numbers_do_not_meet_in_encode():
    categories = learn(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    with pytest.raises(
        TypeError, match="categories of column 'a' are numbers, but row 1 holds '1'"
    ):
        encode(categories, pd.DataFrame({"a": [None, "1"], "b": ["x", "x"]}))
    with pytest.raises(TypeError, match="categories of column 'b' are text, but row 0 holds 5"):
        encode(categories, pd.DataFrame({"a": [1], "b": [5]}))
    # what a reader makes of an empty column is no contradiction
    blank = pd.DataFrame({"a": [1], "b": [NAN]})
    np.testing.assert_array_equal(encode(categories, blank), [[0, NAN]])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, r"Expected 2D array, got 1D array instead. Reshape your data"),
        (pd.Series([1]), ValueError, r"Reshape your data"),
        (5, ValueError, r"Expected 2D array, got 0D"),
        (np.ones((2, 2, 2)), ValueError, r"got 3D"),
        (np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1"),
        (pd.DataFrame(), ValueError, r"0 feature\(s\)"),
        ([[1, 2], [3]], ValueError, r"rows differ in length"),
        (pl.LazyFrame({"a": [1]}), TypeError, r"X is lazy.*collect"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, r"more than one column 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), TypeError, r"all input features have string"),
        (sparse.csr_array((3, 0)), ValueError, r"0 feature\(s\)"),
        (sparse.csr_array([[1j]]), ValueError, r"Complex data not supported"),
        (sparse.csr_array([[0, 1.0], [0, np.inf]]), ValueError, r"column 1 holds inf in row 1"),
        (sparse.csr_array([[2**60]]), ValueError, r"integers of 2\*\*53"),
    ],
)
def test_what_is_not_a_table(X, error, message):
    with pytest.raises(error, match=message):
        read(X)


def test_nothing_is_learned_from_no_rows():
    for X in (np.empty((0, 2)), pl.DataFrame({"a": [], "b": []}), sparse.csr_array((0, 2))):
        with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
            learn(X)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        TableSchema.learn(np.empty((0, 2)))


def test_the_number_of_columns_must_agree():
    categories = learn([[1, 2]])
    for X in ([[1, 2, 3]], sparse.csr_array((1, 3))):
        with pytest.raises(ValueError, match="X has 3 features, but there are categories of 2"):
            encode(categories, X)
        with pytest.raises(ValueError, match="X has 3 features"):
            categories.refuse_unseen(read(X))
    with pytest.raises(ValueError, match="X has 3 features"):
        categories.decode(np.zeros((1, 3)))
