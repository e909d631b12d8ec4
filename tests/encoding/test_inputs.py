"""Reading tables, categories and schemas: oracles are plain Python lists and `==`."""

import datetime as dt
import enum
import json
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bayesgen.encoding.categories import Categories
from bayesgen.encoding.schema import KINDS, TableSchema
from bayesgen.encoding.tables import Table, feature_names, is_table, n_rows, read

NAN = np.nan


def column_of(*cells):
    """A table of one column of Python objects."""
    return np.array([[cell] for cell in cells], dtype=object)


def learn(X, declared=None):
    return Categories.learn(read(X), declared)


def encode(categories, X):
    return categories.encode(read(X))


def same(a, b):
    """Equal in value and in type."""
    return a == b and [list(map(type, v)) for v in a] == [list(map(type, v)) for v in b]


# ------------------------------------------------------------------- categories: what is learned


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 1],
        [3.0, 1.0, 1.0],
        np.array([3, 1, 1], np.int8),
        np.array([3, 1, 1], np.uint64),
        np.array([3, 1, 1], np.float32),
        np.array([3, 1, 1], np.float16),
        np.array([3, 1, 1], np.longdouble),
        [3, 1.0, np.int8(1)],
        [Decimal(3), Fraction(1), None],
        [3, True, None],
        [3, 1, NAN],
        [3, 1, pd.NA],
        [3, 1, pd.NaT],
    ],
    ids=repr,
)
def test_whole_numbers_are_the_same_int_categories_whatever_their_dtype(values):
    array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    categories = learn(array.reshape(-1, 1))
    assert same(categories.values, ((1, 3),))


def test_other_numbers_are_floats():
    assert same(learn(column_of(2.5, 1, 1)).values, ((1.0, 2.5),))
    assert same(
        learn(np.array([[0.1], [-0.0]], np.float32)).values, ((0.0, float(np.float32(0.1))),)
    )
    assert same(learn(np.array([[1e300], [1.0]])).values, ((1.0, 1e300),))


@pytest.mark.parametrize(
    "X",
    [
        np.array([[True], [True]]),
        column_of(True, None),
        column_of(np.bool(True), NAN),
        column_of(True, pd.NA),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}),
        pl.DataFrame({"a": [True, None]}),
        sparse.csr_array(np.array([[True], [False]])),
    ],
)
def test_a_boolean_column_has_both_categories(X):
    assert same(learn(X).values, ((False, True),))


def test_text_is_sorted_by_code_point_whatever_holds_it():
    class Colour(enum.StrEnum):
        RED = "red"

    cells = ["é", "b", "B", None, "ab", ""]
    expected = (("", "B", "ab", "b", "é"),)
    frames = [
        column_of(*cells),
        pd.DataFrame({"a": cells}),
        pd.DataFrame({"a": pd.Series(cells, dtype=object)}),
        pd.DataFrame({"a": pd.array(cells, dtype="string[pyarrow]")}),
        pd.DataFrame({"a": pd.array(cells, dtype="string[python]")}),
        pl.DataFrame({"a": cells}),
        pl.DataFrame({"a": pl.Series(cells, dtype=pl.Categorical)}),
        pa.table({"a": cells}),
        pa.table({"a": pa.array(cells).dictionary_encode()}),
        nw.from_native(pl.DataFrame({"a": cells})),
        xr.DataArray(column_of(*cells)),
    ]
    for X in frames:
        categories = learn(X)
        assert same(categories.values, expected)
        np.testing.assert_array_equal(encode(categories, X)[:, 0], [4, 3, 1, NAN, 2, 0])
    for array in (
        np.array([["b"], ["a"]]),
        np.array([["b"], ["a"]], dtype=np.dtypes.StringDType()),
    ):
        assert same(learn(array).values, (("a", "b"),))
    assert same(learn(column_of(Colour.RED, np.str_("blue"))).values, (("blue", "red"),))


def test_numbers_in_nested_lists_stay_numbers_beside_text():
    assert same(learn([[1, "x"], [0, "y"]]).values, ((0, 1), ("x", "y")))


@pytest.mark.parametrize("ordered", [False, True])
def test_pandas_categories_are_kept_in_their_declared_order(ordered):
    dtype = pd.CategoricalDtype(["low", "mid", "high"], ordered=ordered)
    X = pd.DataFrame({"a": pd.Series(["high", None, "low"], dtype=dtype)})
    categories = learn(X)
    assert categories.values == (("low", "mid", "high"),)
    assert categories.names == ("a",)
    np.testing.assert_array_equal(encode(categories, X), [[2], [NAN], [0]])
    numbers = pd.DataFrame({"a": pd.Categorical([3, None], categories=[3.0, 2.0, 1.0])})
    assert same(learn(numbers).values, ((3, 2, 1),))
    assert learn(pd.DataFrame({"a": pd.Categorical([None, None])})).values == ((),)


def test_a_polars_enum_declares_and_a_polars_categorical_does_not():
    enum_ = pl.Series(["b", None], dtype=pl.Enum(["z", "b", "a"]))
    wide = pl.Series(["p", "q", "r"], dtype=pl.Categorical)[:2]
    X = pl.DataFrame({"e": enum_, "c": wide})
    categories = learn(X)
    assert categories.values == (("z", "b", "a"), ("p", "q"))
    np.testing.assert_array_equal(encode(categories, X), [[1, 0], [NAN, 1]])


def test_a_column_of_missing_cells_has_no_categories_yet():
    X = np.array([[NAN, 1.0], [NAN, 2.0]])
    for table in (X, X.astype(object), pl.DataFrame({"a": [None, None], "b": [1, 2]})):
        categories = learn(table)
        assert categories.values == ((), (1, 2))
        assert categories.n_categories == (0, 2)
        np.testing.assert_array_equal(encode(categories, table)[:, 0], [NAN, NAN])
        np.testing.assert_array_equal(encode(categories, [[5, 1], ["x", 1]][:1]), [[-1, 0]])
        np.testing.assert_array_equal(encode(categories, [["x", 1]]), [[-1, 0]])


def test_masked_cells_are_missing():
    X = np.ma.masked_equal(np.array([[1], [9], [2]]), 9)
    categories = learn(X)
    assert same(categories.values, ((1, 2),))
    np.testing.assert_array_equal(encode(categories, X), [[0], [NAN], [1]])


# --------------------------------------------------------------------------- categories: codes


@pytest.mark.parametrize(
    "X",
    [
        [[0, "b"], [1, "a"], [7, "zz"], [None, None]],
        pd.DataFrame({"n": [0, 1, 7, None], "s": ["b", "a", "zz", None]}),
        pd.DataFrame(
            {
                "n": pd.array([0, 1, 7, None], "Int64"),
                "s": pd.array(["b", "a", "zz", None], "string"),
            }
        ),
        pd.DataFrame(
            {
                "n": pd.array([0, 1, 7, None], "int64[pyarrow]"),
                "s": pd.Categorical(["b", "a", "zz", None]),
            }
        ),
        pl.DataFrame(
            {"n": pl.Series([0, 1, 7, None], dtype=pl.UInt8), "s": ["b", "a", "zz", None]}
        ),
        pl.DataFrame(
            {"n": pl.Series([0, 1, 7, None], dtype=pl.Int128), "s": ["b", "a", "zz", None]}
        ),
        pl.DataFrame(
            {"n": [Decimal(0), Decimal(1), Decimal(7), None], "s": ["b", "a", "zz", None]}
        ),
        pa.table({"n": [0, 1, 7, None], "s": pa.array(["b", "a", "zz", None]).dictionary_encode()}),
    ],
)
def test_missing_is_nan_and_unseen_is_minus_one(X):
    categories = learn([[0, "a"], [1, "b"]])
    codes = encode(categories, X)
    assert codes.dtype == np.float64
    np.testing.assert_array_equal(codes, [[0, 1], [1, 0], [-1, -1], [NAN, NAN]])


def test_numbers_compare_by_value_across_dtypes():
    of_ints, of_bools, of_floats = (
        learn([[v] for v in c]) for c in ([0, 1], [False, True], [0.5, 1])
    )
    for cells in (
        [0, 1, 2],
        [0.0, 1.0, 2.0],
        np.array([0, 1, 2], np.uint8),
        np.array([0, 1, 2], np.uint64),
    ):
        X = np.array(cells).reshape(-1, 1)
        for categories in (of_ints, of_bools):
            np.testing.assert_array_equal(encode(categories, X)[:, 0], [0, 1, -1])
        np.testing.assert_array_equal(encode(of_floats, X)[:, 0], [-1, 1, -1])
    np.testing.assert_array_equal(encode(of_ints, [[True], [False]])[:, 0], [1, 0])
    np.testing.assert_array_equal(encode(of_ints, [[0.5], [-1]])[:, 0], [-1, -1])
    np.testing.assert_array_equal(encode(of_floats, [[True], [None]])[:, 0], [1, NAN])


def test_integers_beyond_float64_are_told_apart():
    big = 2**53
    X = np.array([[big], [big + 1], [big + 3]])
    categories = learn(X)
    assert categories.values == ((big, big + 1, big + 3),)
    np.testing.assert_array_equal(encode(categories, X)[:, 0], [0, 1, 2])
    # float(big + 3) is big + 4: it must not meet the category big + 3
    np.testing.assert_array_equal(encode(categories, [[float(big)], [big + 4.0]])[:, 0], [0, -1])
    low, high = -(2**63), 2**64 - 1
    np.testing.assert_array_equal(encode(categories, np.array([[low], [big]])), [[-1], [0]])
    edge = learn(np.array([[high], [3]], np.uint64))
    assert edge.values == ((3, high),)
    np.testing.assert_array_equal(encode(edge, np.array([[3], [high]], np.uint64)), [[0], [1]])
    np.testing.assert_array_equal(encode(edge, np.array([[3], [-1]])), [[0], [-1]])


@pytest.mark.parametrize("values", [[5, 2**40, -(2**62)], [2**62, -(2**62)], [-3, 40_000, 60_000]])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_wide_and_narrow_ranges_agree_with_list_index(values, dtype):
    known = np.array(values, dtype).reshape(-1, 1)
    categories = learn(known)
    rng = np.random.default_rng(0)
    X = np.concatenate([known, known + 1, known - 1, rng.integers(-99, 99, (50, 1))]).astype(dtype)
    expected = [sorted(values).index(v) if v in values else -1 for v in X[:, 0].tolist()]
    np.testing.assert_array_equal(encode(categories, X)[:, 0], expected)


def test_small_integer_dtypes_do_not_wrap_around():
    categories = learn(np.array([[-128], [127]], np.int8))
    assert same(categories.values, ((-128, 127),))
    np.testing.assert_array_equal(
        encode(categories, np.array([[127], [-128], [0]], np.int8))[:, 0], [1, 0, -1]
    )
    top = np.iinfo(np.int64)
    np.testing.assert_array_equal(
        encode(categories, np.array([[top.max], [top.min]]))[:, 0], [-1, -1]
    )


def test_no_rows_can_be_encoded():
    categories = learn([[1, "a"]])
    assert encode(categories, np.empty((0, 2))).shape == (0, 2)
    assert encode(categories, np.empty((0, 2), dtype=object)).shape == (0, 2)


numbers_ = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6) | st.booleans()


@settings(deadline=None)
@given(cells=st.lists(st.text() | st.none(), min_size=1) | st.lists(numbers_, min_size=1))
def test_decode_undoes_encode(cells):
    X = column_of(*cells)
    categories = learn(X)
    values = list(categories.values[0])
    codes = encode(categories, X)[:, 0]
    assert values == sorted(values)
    assert len({*map(type, values)}) <= 1
    for cell, code in zip(cells, codes, strict=True):
        assert (cell is None) == np.isnan(code)
        if isinstance(cell, str):
            assert values[int(code)] == cell
        elif cell is not None:  # a column of integers and fractions is one of float64
            assert values[int(code)] == (float(cell) if type(values[0]) is float else cell)
    decoded = categories.decode(codes.reshape(-1, 1))
    again = categories.encode(read(decoded))
    np.testing.assert_array_equal(again[:, 0], codes)
    back = Categories.from_json(categories.to_json())
    assert same(back.values, categories.values)


def test_decode_has_the_narrowest_dtype():
    assert learn([[1], [2]]).decode([[0], [1]]).dtype == np.int64
    assert learn([[1], [2]]).decode([[0], [NAN]]).dtype == np.float64
    assert learn([[1.5], [2]]).decode([[0], [1]]).dtype == np.float64
    assert learn([[True], [False]]).decode([[0], [1]]).tolist() == [[False], [True]]
    mixed = learn([[1, "a"], [2, "b"]])
    decoded = mixed.decode([[0, 1], [1, NAN]])
    assert decoded.dtype == object
    assert decoded.tolist() == [[1, "b"], [2, None]]


@pytest.mark.parametrize("code", [-1, 2, 0.5])
def test_decode_names_the_code_that_is_no_category(code):
    with pytest.raises(
        ValueError, match=rf"column 1: code {code:g} in row 1 is no category.*0 \.\. 1"
    ):
        learn([[1, "a"], [2, "b"]]).decode([[0, 0], [0, code]])


# ------------------------------------------------------------------------- categories: declared


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (3, ((0, 1, 2), (0, 1, 2))),
        ([3, np.int64(2)], ((0, 1, 2), (0, 1))),
        ([[2, 0, 1], None], ((2, 0, 1), (0, 1))),
        ({"b": [1.0, 0.0, 5.0]}, ((0, 2), (1, 0, 5))),
        ({1: np.array([0, 1, 5])}, ((0, 2), (0, 1, 5))),
        ({"a": range(4), "b": 2}, ((0, 1, 2, 3), (0, 1))),
    ],
)
def test_declared_categories_are_kept_in_order(declared, expected):
    X = pd.DataFrame({"a": [0, 2], "b": [1, 0]})
    categories = learn(X, declared)
    assert same(categories.values, expected)
    decoded = categories.decode(encode(categories, X))
    np.testing.assert_array_equal(decoded, X.to_numpy())


def test_declared_categories_go_before_those_of_the_dtype():
    X = pd.DataFrame({"a": pd.Categorical(["x"], categories=["x", "y"])})
    assert learn(X, {"a": ["z", "x"]}).values == (("z", "x"),)


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        (
            {"size": ["S", "M"]},
            ValueError,
            r"column 'size' holds 'L' in row 2, .*declared.*\('S', 'M'\)",
        ),
        ({"n": [0, 1]}, ValueError, r"column 'n' holds 2 in row 1, .*declared.*\(0, 1\)"),
        ({"n": ["0", "1", "2"]}, ValueError, r"column 'n' holds 0 in row 0, .*declared"),
        ({"size": 3}, ValueError, r"column 'size' holds 'S' in row 0, .*declared.*\(0, 1, 2\)"),
        (
            {"syze": 3},
            ValueError,
            r"categories: no column 'syze', did you mean 'size'; known are size, n",
        ),
        ({7: 3}, ValueError, r"categories: no column 7.*known are size, n"),
        ([3], ValueError, r"categories has 1 entries for 2 columns"),
        ("SM", TypeError, r"categories must be None, a number, a list .* not 'SM'"),
        (
            ["SML", None],
            TypeError,
            r"categories of column 'size': give a number or a list .* not 'SML'",
        ),
        ([None, True], TypeError, r"categories of column 'n'.*not True"),
        (
            [None, 0],
            ValueError,
            r"categories of column 'n': there must be at least one category, got 0",
        ),
        ([None, []], ValueError, r"categories of column 'n': there must be at least one category"),
        ([["S", 1], None], TypeError, r"categories of column 'size': text and numbers are mixed"),
        (
            [["S", None], None],
            TypeError,
            r"categories of column 'size': None \(NoneType\) cannot be",
        ),
        (
            [None, [0, NAN]],
            TypeError,
            r"categories of column 'n': nan \(float\) cannot be a category",
        ),
        ([None, [1, 2, 1.0]], ValueError, r"categories of column 'n': 1\.0 is given twice"),
    ],
)
def test_errors_about_declared_categories(declared, error, message):
    X = pd.DataFrame({"size": ["S", "M", "L"], "n": [0, 2, 1]})
    with pytest.raises(error, match=message):
        learn(X, declared)


def test_an_array_has_positions_for_names():
    with pytest.raises(ValueError, match=r"column 1 holds 7 in row 1, .*declared"):
        learn(np.array([[0, 0], [0, 7]]), 3)
    with pytest.raises(ValueError, match=r"no column 'a'; columns are 0 \.\. 1"):
        learn(np.array([[0, 0], [0, 7]]), {"a": 3})
    with pytest.raises(ValueError, match=r"categories\[1\]: 2 is given twice"):
        learn(np.array([[0, 0], [0, 7]]), [None, [2, 2]])


def test_refuse_unseen_names_column_value_and_row():
    X = pl.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    categories = learn(X)
    categories.refuse_unseen(read(X))
    with pytest.raises(
        ValueError, match=r"column 'b' holds 3 in row 1, .*its categories \(1, 2\); give unseen="
    ):
        categories.refuse_unseen(read(pl.DataFrame({"a": ["x", None], "b": [1, 3]})))


# --------------------------------------------------------------- categories: what cannot be one


@pytest.mark.parametrize(
    ("cells", "error", "message"),
    [
        ([1, "a"], TypeError, r"column 0 mixes text \('a' in row 1\) and numbers \(1 in row 0\)"),
        (
            ["a", None, True],
            TypeError,
            r"column 0 mixes text \('a' in row 0\) and numbers \(True in row 2\)",
        ),
        (
            ["a", NAN, 1.5],
            TypeError,
            r"column 0 mixes text \('a' in row 0\) and numbers \(1.5 in row 2\)",
        ),
        (
            [1, {"a": 1}],
            TypeError,
            r"column 0 holds \{'a': 1\} \(dict\) in row 1: argument must be a string",
        ),
        (["a", [1]], TypeError, r"column 0 holds \[1\] \(list\) in row 1"),
        ([b"a"], TypeError, r"column 0 holds b'a' \(bytes\) in row 0"),
        ([dt.date(2020, 1, 1)], TypeError, r"column 0 holds .*\(date\) in row 0"),
        ([1, pd.Timestamp("2020")], TypeError, r"column 0 holds .*\(Timestamp\) in row 1"),
        ([np.timedelta64(1, "D")], TypeError, r"column 0 holds .*\(timedelta64\) in row 0"),
        ([1j], TypeError, r"column 0 holds 1j \(complex\) in row 0"),
        ([1.0, np.inf], ValueError, r"column 0 holds inf in row 1; make it finite, or NaN"),
        ([10**30], ValueError, r"column 0 holds integers beyond 64 bits; turn it into text"),
        ([10**400, None], ValueError, r"column 0 holds integers beyond 64 bits; turn it into text"),
        (
            [2**60 + 1, None],
            ValueError,
            r"column 0 holds integers of 2\*\*53 and beyond and missing",
        ),
    ],
)
def test_cells_that_cannot_be_categories(cells, error, message):
    X = (
        column_of(*cells)
        if not isinstance(cells[-1], list)
        else np.array([["a"], [None]], dtype=object)
    )
    if isinstance(cells[-1], list):
        X[1, 0] = cells[-1]
    with pytest.raises(error, match=message):
        learn(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"d": pd.to_datetime(["2020"])}), TypeError, "column 'd' holds Datetime"),
        (pl.DataFrame({"d": [dt.date(2020, 1, 1)]}), TypeError, "column 'd' holds Date"),
        (pl.DataFrame({"d": [dt.time(1)]}), TypeError, "column 'd' holds Time"),
        (pl.DataFrame({"d": [[1]]}), TypeError, "column 'd' holds List"),
        (pl.DataFrame({"d": [b"a"]}), TypeError, "column 'd' holds Binary"),
        (
            pd.DataFrame({"d": pd.period_range("2020", periods=1, freq="M")}),
            TypeError,
            "column 'd' holds .*Period",
        ),
        (
            pd.DataFrame({"d": pd.cut([1, 2, 3], 2)}),
            TypeError,
            "dtype of column 'd': Interval.* cannot be a category",
        ),
        (
            pd.DataFrame({"d": pd.Categorical([1, "a"])}),
            TypeError,
            "dtype of column 'd': text and numbers are mixed",
        ),
        (np.array([["2020"]], dtype="M8[D]"), TypeError, "column 0 holds datetime64"),
        (np.array([[1j]]), ValueError, "Complex data not supported: column 0"),
        (pl.DataFrame({"d": [1.0, -np.inf]}), ValueError, "column 'd' holds -inf in row 1"),
        (
            pl.DataFrame({"d": [2**60 + 1, None]}),
            ValueError,
            r"column 'd' holds integers of 2\*\*53",
        ),
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
        (
            np.ones((3, 0)),
            ValueError,
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required",
        ),
        (pd.DataFrame(), ValueError, r"0 feature\(s\)"),
        ([[1, 2], [3]], ValueError, r"rows differ in length"),
        (pl.LazyFrame({"a": [1]}), TypeError, r"X is lazy.*collect"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, r"more than one column 'a'"),
        (
            pd.DataFrame([[1, 2]], columns=["a", 1]),
            TypeError,
            r"all input features have string names.* 1;",
        ),
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


# ----------------------------------------------------------------------------- categories: sparse


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.uint8])
def test_sparse_codes_are_the_dense_ones_and_stay_sparse(form, dtype):
    rng = np.random.default_rng(0)
    dense = rng.choice([0, 0, 0, 2, 3, 7], (50, 8)).astype(dtype)
    X = getattr(sparse, form)(dense)
    categories = learn(X)
    assert same(
        categories.values,
        tuple(tuple(sorted({0, *column})) for column in dense.T.astype(int).tolist()),
    )
    new = rng.choice([0, 0, 2, 3, 7, 9], (40, 8)).astype(dtype)
    codes = encode(categories, sparse.csr_array(new))
    assert codes.format == "csr"
    assert codes.dtype == np.float64
    assert codes.nnz == np.count_nonzero(new)
    np.testing.assert_array_equal(codes.toarray(), encode(categories, new))
    assert (codes.toarray() == -1).sum() >= (new == 9).sum() > 0
    known = encode(categories, X)
    decoded = categories.decode(known)
    assert decoded.format == "csr"
    np.testing.assert_array_equal(decoded.toarray(), dense)


def test_sparse_nan_is_missing_and_explicit_zeros_are_category_0():
    X = sparse.csr_array((np.array([NAN, 0.0, 2.5]), np.array([0, 1, 1]), np.array([0, 2, 3])))
    categories = learn(X)
    assert same(categories.values, ((0,), (0.0, 2.5)))
    np.testing.assert_array_equal(encode(categories, X).toarray(), [[NAN, 0], [0, 1]])


def test_sparse_duplicates_are_summed_and_the_input_is_left_alone():
    X = sparse.csr_array((np.array([1, 2]), np.array([0, 0]), np.array([0, 2])))
    assert learn(X).values == ((0, 3),)
    assert X.nnz == 2


def test_sparse_with_many_columns_is_not_densified():
    n = 200_000  # dense, ten rows would take 16 MB and a million rows 1.6 TB
    X = sparse.csr_array(
        (np.array([4.0, 5.0]), (np.array([999_999, 0]), np.array([7, n - 1]))), (10**6, n)
    )
    categories = learn(X)
    assert categories.values[7] == (0, 4)
    codes = encode(categories, X)
    assert codes.data.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("X", "declared", "message"),
    [
        (
            [[0, 0], [0, -2]],
            None,
            r"column 1 holds -2 in row 1: in a sparse X the category 0 must be",
        ),
        ([[0, 1], [0, 5]], {1: 3}, r"column 1 holds 5 in row 1, .*declared.*\(0, 1, 2\)"),
        (
            [[0, 1], [0, 2]],
            {1: [1, 2, 0]},
            r"first category of every column must be 0, but that of column 1 is 1",
        ),
        (
            [[0, 1], [0, 2]],
            {1: ["a"]},
            r"first category of every column must be 0, .*column 1 is 'a'",
        ),
    ],
)
def test_errors_about_sparse_categories(X, declared, message):
    with pytest.raises(ValueError, match=message):
        learn(sparse.csr_array(X), declared)


def test_sparse_unseen_and_categories_learned_dense():
    categories = learn(np.array([[0, 1], [3, 0]]))
    X = sparse.csr_array([[3, 0], [0, 2]])
    np.testing.assert_array_equal(encode(categories, X).toarray(), [[1, 0], [0, -1]])
    with pytest.raises(ValueError, match="column 1 holds 2 in row 1"):
        categories.refuse_unseen(read(X))
    with pytest.raises(ValueError, match=r"column 0 is 1; pass X\.toarray"):
        encode(learn([[1, 0]]), X)


@pytest.mark.parametrize("code", [-1.0, 2.0, 0.5])
def test_sparse_decode_names_the_code_that_is_no_category(code):
    categories = learn(sparse.csr_array([[0, 3], [4, 0]]))
    with pytest.raises(ValueError, match=rf"column 1: code {code:g} in row 1 is no category"):
        categories.decode(sparse.csr_array([[1.0, 0], [0, code]]))


# ------------------------------------------------------------------------------ categories: merge


values_ = st.lists(st.integers(-5, 5), unique=True, min_size=1) | st.just([])


@settings(deadline=None)
@given(a=st.lists(values_, min_size=2, max_size=2), b=st.lists(values_, min_size=2, max_size=2))
def test_maps_lead_to_the_same_values(a, b):
    one, two = Categories(tuple(map(tuple, a))), Categories(tuple(map(tuple, b)))
    merged, mine, theirs = one.merge(two)
    for j in range(2):
        assert set(merged.values[j]) == {*a[j], *b[j]}
        assert [merged.values[j][k] for k in mine[j]] == a[j]
        assert [merged.values[j][k] for k in theirs[j]] == b[j]
        assert mine[j].dtype == np.intp
    assert two.merge(one)[0] == merged  # the order is the same whoever asks
    assert merged.merge(one)[0] == merged


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("a", "c"), ("b", "c"), ("a", "b", "c")),
        (("low", "mid", "high"), ("low", "high"), ("low", "mid", "high")),
        (("high",), ("low", "mid", "high"), ("low", "mid", "high")),
        (("low", "high"), ("high", "low"), ("high", "low")),
        ((1, 2), (1.5,), (1.0, 1.5, 2.0)),
        ((False, True), (1, 2), (0, 1, 2)),
        ((0, 1), (False, True), (0, 1)),
        ((), ("a",), ("a",)),
        ((), (), ()),
    ],
)
def test_merged_order_and_type(a, b, expected):
    assert same(Categories((a,)).merge(Categories((b,)))[0].values, (expected,))
    assert same(Categories((b,)).merge(Categories((a,)))[0].values, (expected,))


def test_merge_takes_names_from_either_side_and_refuses_others():
    bare, named = Categories(((1,),)), Categories(((1,),), ("a",))
    assert bare.merge(named)[0].names == named.merge(bare)[0].names == ("a",)
    with pytest.raises(ValueError, match="column 0 is 'a' on one side and 'b' on the other"):
        named.merge(Categories(((1,),), ("b",)))
    with pytest.raises(ValueError, match="X has 2 features"):
        named.merge(Categories(((1,), (1,))))
    with pytest.raises(
        TypeError, match="categories of column 'a' are numbers on one side and text"
    ):
        named.merge(Categories((("1",),), ("a",)))


# ------------------------------------------------------------------------------- categories: JSON


def test_json_keeps_every_type():
    values = ((1, 2), (1.0, 2.5, 1e300), (False, True), ("1", "é", "\ud800", ""), (2**64 - 1,), ())
    for names in (None, tuple("abcdef")):
        categories = Categories(values, names)
        text = categories.to_json()
        json.loads(text)
        back = Categories.from_json(text)
        assert same(back.values, values)
        assert back.names == names
        assert back == categories


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '{"names": null, "values": 5}'])
def test_json_of_something_else_is_refused(text):
    with pytest.raises(ValueError, match="not a record of categories"):
        Categories.from_json(text)
    with pytest.raises(ValueError, match="not a record of a table's schema"):
        TableSchema.from_json(text)


# -------------------------------------------------------------------------------------- schema


def birds(kind=pd.DataFrame):
    return kind(
        {
            "island": ["Dream", None, "Biscoe"],
            "bill": [39.1, 46.0, None],
            "eggs": [1, 2, 0],
            "male": [True, False, None],
        }
    )


@pytest.mark.parametrize(
    "X",
    [
        birds(),
        birds(pl.DataFrame),
        birds(pa.table),
        birds().convert_dtypes(),
        birds().astype({"island": "category"}),
        birds().astype(object),
        birds().to_numpy(dtype=object),
        birds().to_numpy(dtype=object).tolist(),
        nw.from_native(birds()),
    ],
)
def test_kinds_follow_from_the_columns(X):
    schema = TableSchema.learn(X)
    assert schema.kinds == ("categorical", "gaussian", "gaussian", "bernoulli")
    assert schema.categories.values == (("Biscoe", "Dream"),)
    assert {k: v.tolist() for k, v in schema.blocks.items()} == {
        "bernoulli": [3],
        "categorical": [0],
        "gaussian": [1, 2],
    }
    assert schema.names == (
        None if feature_names(X) is None else ("island", "bill", "eggs", "male")
    )
    expected = [[1, 39.1, 1, 1], [NAN, 46, 2, 0], [0, NAN, 0, NAN]]
    codes = schema.encode(X)
    assert codes.dtype == np.float64
    np.testing.assert_array_equal(codes, expected)
    back = TableSchema.from_json(schema.to_json())
    assert back == schema
    np.testing.assert_array_equal(back.encode(X), expected)


def test_dtypes_decide_before_values():
    X = pl.DataFrame(
        {
            "code": pl.Series(["b", "b"], dtype=pl.Enum(["a", "b"])),
            "zeros": [0, 1],
            "float": pl.Series([None, None], dtype=pl.Float64),
            "dec": [Decimal("1.5"), None],
        }
    )
    schema = TableSchema.learn(X)
    assert schema.kinds == ("categorical", "gaussian", "gaussian", "gaussian")
    np.testing.assert_array_equal(schema.encode(X), [[1, 0, NAN, 1.5], [1, 1, NAN, NAN]])
    numbers = pd.DataFrame({"a": pd.Categorical([5, 3])})
    assert TableSchema.learn(numbers).kinds == ("categorical",)
    assert TableSchema.learn(pd.DataFrame({"a": pd.arrays.SparseArray([0, 3])})).kinds == (
        "gaussian",
    )


def test_a_column_of_missing_objects_needs_a_kind():
    X = pl.DataFrame({"a": [1, 2], "b": [None, None]})
    with pytest.raises(
        ValueError, match=r"column 'b' holds nothing but missing cells.*name it in columns="
    ):
        TableSchema.learn(X)
    schema = TableSchema.learn(X, {"gaussian": ["a", "b"]})
    np.testing.assert_array_equal(schema.encode(X), [[1, NAN], [2, NAN]])


def test_the_user_chooses_kinds_by_name_or_position():
    X = birds().assign(when=pd.to_datetime(["2020"] * 3))
    columns = {
        "categorical": ["island", 2],
        "gaussian": "bill",
        "bernoulli": ["male"],
        "drop": ["when"],
    }
    schema = TableSchema.learn(X, columns)
    assert schema.kinds == ("categorical", "gaussian", "categorical", "bernoulli")
    assert schema.categories.names == ("island", "eggs")
    assert schema.dropped == ("when",)
    expected = [[1, 39.1, 1, 1], [NAN, 46, 2, 0], [0, NAN, 0, NAN]]
    np.testing.assert_array_equal(schema.encode(X), expected)
    np.testing.assert_array_equal(schema.encode(X.drop(columns="when")), expected)
    np.testing.assert_array_equal(schema.encode(X[X.columns[::-1]]), expected)  # by name
    np.testing.assert_array_equal(schema.encode(pl.from_pandas(X)), expected)
    again = TableSchema.from_json(schema.to_json())
    assert again == schema
    declared = TableSchema.learn(
        X, columns, {"island": ["Dream", "Torgersen", "Biscoe"], "eggs": 4}
    )
    assert declared.categories.values == (("Dream", "Torgersen", "Biscoe"), (0, 1, 2, 3))


def test_positions_of_an_array():
    X = np.array([[1.5, 0, 9, 3], [2.5, 1, 9, 0]])
    schema = TableSchema.learn(
        X, {"gaussian": [0], "bernoulli": [1], "drop": [2], "poisson": [np.int64(3)]}
    )
    assert schema.positions == (0, 1, 3)
    assert list(schema.blocks) == ["bernoulli", "poisson", "gaussian"]
    np.testing.assert_array_equal(schema.encode(X), X[:, [0, 1, 3]])
    with pytest.raises(ValueError, match="X has 3 features, but 4 are expected"):
        schema.encode(X[:, :3])


def test_numbers_written_as_text_are_numbers_where_the_user_says_so():
    X = np.array([["a", "1.5"], ["b", "nan"], ["a", "3"]])
    schema = TableSchema.learn(X, {"categorical": [0], "gaussian": [1]})
    np.testing.assert_array_equal(schema.encode(X), [[0, 1.5], [1, NAN], [0, 3]])
    assert TableSchema.learn(X).kinds == ("categorical", "categorical")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (
            {"gaussian": ["bill", "egs"]},
            ValueError,
            r"columns\['gaussian'\]: no column 'egs', did you mean 'eggs'; known are island, bill",
        ),
        (
            {"poison": ["bill"]},
            ValueError,
            r"no kind 'poison', did you mean 'poisson'; known are bernoulli, .*drop",
        ),
        (
            {"gaussian": ["bill", "bill"]},
            ValueError,
            r"column 'bill' is named twice, as gaussian and as gaussian",
        ),
        (
            {"gaussian": ["bill"], "poisson": [1]},
            ValueError,
            r"column 'bill' is named twice, as gaussian and as poisson",
        ),
        (
            {"gaussian": ["bill"]},
            ValueError,
            r"no kind for column 'island', column 'eggs', column 'male'; add .*drop",
        ),
        ({"drop": range(4)}, ValueError, r"every column is dropped"),
        ({"gaussian": [4]}, ValueError, r"no column 4"),
        ({"gaussian": [-1]}, ValueError, r"no column -1"),
        ({"gaussian": [True]}, ValueError, r"no column True"),
        ({"gaussian": 1.5}, ValueError, r"no column 1.5"),
        (
            ["bill"],
            TypeError,
            r"columns must be a dict \{kind: list of columns\} or None, not \['bill'\]",
        ),
    ],
)
def test_errors_about_columns(columns, error, message):
    with pytest.raises(error, match=message):
        TableSchema.learn(birds(), columns)


def test_numbers_for_names_are_not_guessed_about():
    X = pd.DataFrame([[1.0, 2.0]], columns=[1, 0])
    with pytest.raises(ValueError, match=r"called 1, 0: .*rename them"):
        TableSchema.learn(X, {"gaussian": [0, 1]})
    assert TableSchema.learn(X).kinds == ("gaussian", "gaussian")
    assert TableSchema.learn(
        X[[0, 1]].set_axis([0, 1], axis=1), {"gaussian": [0], "drop": 1}
    ).positions == (0,)


@pytest.mark.parametrize(
    ("kind", "cells", "message"),
    [
        (
            "bernoulli",
            [0, 1, 2],
            r"column 'x' holds 2 in row 2, but a bernoulli column must be 0, 1 or missing",
        ),
        ("bernoulli", [0.5, 1, 0], r"column 'x' holds 0.5 in row 0, but a bernoulli"),
        (
            "bernoulli",
            ["no", "1", "0"],
            r"column 'x' holds 'no' in row 0, but a bernoulli column must hold numbers",
        ),
        (
            "poisson",
            [3, None, -2],
            r"column 'x' holds -2 in row 2, but a poisson column must not be negative",
        ),
        ("multinomial", [3.0, -0.5, 1], r"column 'x' holds -0.5 in row 1, but a multinomial"),
        (
            "gaussian",
            ["1", "2", "c"],
            r"column 'x' holds 'c' in row 2, but a gaussian column must hold numbers",
        ),
        ("gaussian", ["1", "2", "inf"], r"column 'x' holds inf in row 2; make it finite"),
        ("gaussian", [1.0, 2.0, np.inf], r"column 'x' holds inf in row 2; make it finite"),
        ("categorical", [1.0, 2.0, np.inf], r"column 'x' holds inf in row 2; make it finite"),
    ],
)
def test_values_that_do_not_fit_their_kind(kind, cells, message):
    for frame in (pd.DataFrame, pl.DataFrame):
        X = frame({"x": cells})
        with pytest.raises(ValueError, match=message):
            TableSchema.learn(X, {kind: ["x"]}).encode(X)


def test_missing_cells_fit_every_kind():
    X = pl.DataFrame({kind: [1, None, 0] for kind in KINDS})
    schema = TableSchema.learn(X, {kind: [kind] for kind in KINDS})
    np.testing.assert_array_equal(
        schema.encode(X), np.repeat([[1], [NAN], [0]], len(KINDS), axis=1)
    )


def test_prediction_selects_columns_by_name():
    schema = TableSchema.learn(birds())
    with pytest.raises(ValueError, match="X lacks the columns 'bill', 'male'; add them"):
        schema.encode(birds().drop(columns=["bill", "male"]))
    with pytest.raises(ValueError, match="not there in training: 'mass', 'year'; drop them"):
        schema.encode(birds().assign(mass=1, year=2))
    np.testing.assert_array_equal(schema.encode(birds().to_numpy()), schema.encode(birds()))
    new = pd.DataFrame({"male": [1], "eggs": [3], "bill": ["40.5"], "island": ["Hobart"]})
    np.testing.assert_array_equal(schema.encode(new), [[-1, 40.5, 3, 1]])
    with pytest.raises(ValueError, match="column 'island' holds 'Hobart' in row 0"):
        schema.refuse_unseen(new)
    with pytest.raises(TypeError, match="sparse X is not supported"):
        schema.encode(sparse.csr_array((1, 4)))


def test_schema_decode_undoes_encode():
    schema = TableSchema.learn(
        birds(), {"categorical": ["island", "eggs"], "gaussian": "bill", "bernoulli": "male"}
    )
    island, bill, eggs, male = schema.decode([[1, 40.5, 2, 1], [0, 41, 0, 0]])
    assert island.tolist() == ["Dream", "Biscoe"]
    assert bill.tolist() == [40.5, 41]
    assert eggs.tolist() == [2, 0]
    assert male.tolist() == [True, False]
    assert male.dtype == bool
    assert schema.decode([[NAN, NAN, NAN, NAN]])[0].tolist() == [None]


def test_schemas_merge_by_categories():
    one = TableSchema.learn(birds())
    batch = birds().assign(island=["Torgersen", "Dream", "Alpha"])
    two = one.relearn(batch[batch.columns[::-1]])
    assert two.kinds == one.kinds
    assert two.categories.values == (("Alpha", "Dream", "Torgersen"),)
    merged, mine, theirs = one.merge(two)
    assert merged.categories.values == (("Alpha", "Biscoe", "Dream", "Torgersen"),)
    assert [m.tolist() for m in mine] == [[1, 2]]
    assert [m.tolist() for m in theirs] == [[0, 2, 3]]
    numeric = TableSchema.learn(np.ones((2, 2)))
    assert numeric.merge(numeric) == (numeric, (), ())
    bare = TableSchema.learn(birds().to_numpy())
    assert bare.merge(one)[0].names == one.names


def test_schemas_that_disagree_do_not_merge():
    one = TableSchema.learn(birds())
    with pytest.raises(
        ValueError, match="column 2 is 'eggs' on one side and 'chicks' on the other"
    ):
        one.merge(TableSchema.learn(birds().rename(columns={"eggs": "chicks"})))
    other = TableSchema.learn(
        birds(), {"categorical": [0], "gaussian": [1], "poisson": [2], "bernoulli": [3]}
    )
    with pytest.raises(
        ValueError, match="column 'eggs' is gaussian on one side and poisson on the other"
    ):
        one.merge(other)
    with pytest.raises(ValueError, match="one side uses 4 columns and the other 3"):
        one.merge(TableSchema.learn(birds().drop(columns="bill")))
    columns = {"drop": [0], "categorical": [1]}
    text, number = (TableSchema.learn(np.array([[0, v]], dtype=object), columns) for v in ("a", 1))
    with pytest.raises(TypeError, match="categories of column 1 are text on one side and numbers"):
        text.merge(number)


@pytest.mark.parametrize(
    ("categories", "error", "message"),
    [
        ({"bill": [1]}, ValueError, "categories: column 'bill' is not categorical"),
        ({"islands": ["x"]}, ValueError, "no column 'islands', did you mean 'island'"),
        ({"island": ["Dream"]}, ValueError, "column 'island' holds 'Biscoe' in row 2, .*declared"),
        ([["Dream"]], TypeError, "categories must be a dict"),
    ],
)
def test_errors_about_categories_of_a_schema(categories, error, message):
    with pytest.raises(error, match=message):
        TableSchema.learn(birds(), categories=categories)


@settings(max_examples=30, deadline=None)
@given(
    text=st.lists(st.text() | st.none(), min_size=3, max_size=3).filter(any),
    real=st.lists(st.floats(allow_infinity=False) | st.none(), min_size=3, max_size=3),
    bit=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_pandas_polars_and_numpy_agree(text, real, bit):
    cells = {"t": text, "r": [NAN if v is None else v for v in real], "b": bit}
    arrays = [np.array(v, dtype=object) for v in cells.values()]
    X = [pd.DataFrame(cells), pl.DataFrame(cells, strict=False), np.stack(arrays, axis=1)]
    columns = {"categorical": [0], "gaussian": [1], "bernoulli": [2]}
    schemas = [TableSchema.learn(table, columns) for table in X]
    assert schemas[0] == schemas[1]
    assert schemas[0].categories.values == schemas[2].categories.values
    encoded = [schema.encode(table) for schema, table in zip(schemas, X, strict=True)]
    np.testing.assert_array_equal(encoded[0], encoded[1])
    np.testing.assert_array_equal(encoded[0], encoded[2])
    island, number, flag = schemas[0].decode(encoded[0])
    assert [v or None for v in island] == [v or None for v in text]
    np.testing.assert_array_equal(number, np.array(cells["r"]))
    assert flag.tolist() == bit


# -------------------------------------------------------------------------------------- helpers


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
