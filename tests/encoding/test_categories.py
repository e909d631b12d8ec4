"""Categories: what is learned, which codes, what is declared. Oracles are plain lists and `==`."""

import enum
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
from bayesgen.encoding.tables import read
from bayesgen.numerics import kernels
from tests.encoding.cases import NAN, column_of, encode, learn, same


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 1],
        np.array([3, 1, 1], np.int8),
        np.array([3, 1, 1], np.uint64),
        np.array([3, 1, 1], np.float16),
        np.array([3, 1, 1], np.longdouble),
        [3, 1.0, np.int8(1)],
        [Decimal(3), Fraction(1), None],
        [3, True, None],
        [3, 1, NAN],
        [3, 1, pd.NA],
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
    ids=lambda X: type(X).__name__,
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
        pd.DataFrame({"a": pd.array(cells, dtype="string[python]")}),
        pa.table({"a": pa.array(cells).dictionary_encode()}).to_pandas(types_mapper=pd.ArrowDtype),
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
        assert categories.n_categories == (1, 2)
        np.testing.assert_array_equal(encode(categories, table)[:, 0], [NAN, NAN])
        np.testing.assert_array_equal(encode(categories, [[5, 1]]), [[NAN, 0]])
        np.testing.assert_array_equal(encode(categories, [["x", 1]]), [[NAN, 0]])


CELLS = {"n": [0, 1, 7, None], "s": ["b", "a", "zz", None]}


@pytest.mark.parametrize(
    "X",
    [
        [[0, "b"], [1, "a"], [7, "zz"], [None, None]],
        pd.DataFrame(CELLS),
        pd.DataFrame(CELLS).astype({"n": "Int64", "s": "string"}),
        pl.DataFrame(CELLS, {"n": pl.UInt8, "s": pl.String}),
        pl.DataFrame(CELLS, {"n": pl.Int128, "s": pl.String}),
        pl.DataFrame(CELLS | {"n": [Decimal(0), Decimal(1), Decimal(7), None]}),
        pa.table(CELLS | {"s": pa.array(CELLS["s"]).dictionary_encode()}),
    ],
    ids=lambda X: type(X).__name__,
)
def test_missing_is_nan_and_unseen_is_minus_one(X):
    categories = learn([[0, "a"], [1, "b"]])
    codes = encode(categories, X)
    assert codes.dtype == np.float64
    np.testing.assert_array_equal(codes, [[0, 1], [1, 0], [-1, -1], [NAN, NAN]])


@pytest.mark.parametrize("dtype", [object, float, np.uint8, np.uint64, np.int8])
def test_numbers_compare_by_value_across_dtypes(dtype):
    X = np.array([0, 1, 2], dtype)[:, None]
    for known, codes in (
        ([0, 1], [0, 1, -1]),
        ([False, True], [0, 1, -1]),
        ([0.5, 1], [-1, 1, -1]),
    ):
        categories = learn([[value] for value in known])
        np.testing.assert_array_equal(encode(categories, X)[:, 0], codes)
        np.testing.assert_array_equal(encode(categories, [[True], [None]])[:, 0], [1, NAN])


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


numbers_ = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6) | st.booleans()


@settings(deadline=None, max_examples=40)
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


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("code", [-1, 2, 0.5])
def test_decode_names_the_code_that_is_no_category(code, kind):
    with pytest.raises(
        ValueError, match=rf"column 1: code {code:g} in row 1 is no category.*0 \.\. 1"
    ):
        learn([[0, 0], [4, 3]]).decode(kind([[0, 0], [0, code]]))


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


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ({"size": ["S", "M"]}, ValueError, r"column 'size' holds 'L' in row 2"),
        ({"n": [0, 1]}, ValueError, r"column 'n' holds 2 in row 1, .*declared.*\(0, 1\)"),
        ({"size": 3}, ValueError, r"column 'size' holds 'S' in row 0, .*declared.*\(0, 1, 2\)"),
        ({"syze": 3}, ValueError, r"categories: no column 'syze'; did you mean 'size'\?"),
        ([3], ValueError, r"categories has 1 entries for 2 columns"),
        ("SM", TypeError, r"categories must be None, a number, a list .* not 'SM'"),
        (["SML", None], TypeError, r"categories of column 'size': give a number or a list"),
        ([None, True], TypeError, r"categories of column 'n'.*not True"),
        ([None, []], ValueError, r"categories of column 'n': there must be at least one category"),
        ([["S", 1], None], TypeError, r"categories of column 'size': text and numbers are mixed"),
        ([["S", None], None], TypeError, r"categories of column 'size': None \(NoneType\) cannot"),
        ([None, [0, NAN]], TypeError, r"categories of column 'n': nan \(float\) cannot"),
        ([None, [1, 2, 1.0]], ValueError, r"categories of column 'n': 1\.0 is given twice"),
    ],
)
def test_errors_about_declared_categories(declared, error, message):
    X = pd.DataFrame({"size": ["S", "M", "L"], "n": [0, 2, 1]})
    with pytest.raises(error, match=message):
        learn(X, declared)


def test_refuse_unseen_names_column_value_and_row():
    X = pl.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    categories = learn(X)
    categories.refuse_unseen(read(X))
    with pytest.raises(
        ValueError, match=r"column 'b' holds 3 in row 1, .*its categories \(1, 2\); give unseen="
    ):
        categories.refuse_unseen(read(pl.DataFrame({"a": ["x", None], "b": [1, 3]})))


def test_small_whole_numbers_are_looked_up_as_they_are_read(monkeypatch):
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)  # as if there were many
    X = np.array([[0, 5], [NAN, 7], [3, NAN]])
    categories = learn(X)
    assert categories.values == ((0, 3), (5, 7))
    codes = categories.read_codes(read(X))
    np.testing.assert_array_equal(codes[np.arange(3)], encode(categories, X))
    for other in (X + 1, X / 2, [["a", "b"]]):  # unseen; no whole numbers; text
        assert categories.read_codes(read(other)) is None
