"""Categories: which values are one, their codes and their order. Oracles are lists and `==`."""

import cProfile
import enum
import json
import pstats
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesgen as bg
from bayesgen.encoding.column import merge
from bayesgen.encoding.schema import TableSchema
from bayesgen.io import storage
from bayesgen.numerics import kernels
from tests.encoding.cases import CONTAINERS, NAN, WORDS, column_of


def learn(X, declared=None):
    return TableSchema.learn(X, None, declared, every="categorical")


def same(a, b):
    """Equal in value and in type."""
    return a == b and [list(map(type, v)) for v in a] == [list(map(type, v)) for v in b]


class Colour(enum.StrEnum):
    RED = "red"


TYPES = {  # what a column is: columns of that
    (1, 3): (
        *(np.array([[3], [1], [1]], t) for t in ("i1", "u8", "f2", np.longdouble)),
        column_of(3, 1.0, np.int8(1)),
        column_of(Decimal(3), Fraction(1), None),
        *(column_of(3, 1, missing) for missing in (None, NAN, pd.NA)),
        column_of(3, True, None),
    ),
    (1.0, 2.5): (column_of(2.5, 1, 1), np.array([[2.5], [1.0]])),
    (0.0, float(np.float32(0.1))): (np.array([[0.1], [-0.0]], np.float32),),
    (1.0, 1e300): (np.array([[1e300], [1.0]]),),
    (False, True): (
        np.array([[True], [True]]),
        *(column_of(np.bool(True), missing) for missing in (None, NAN, pd.NA)),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}),
        pl.DataFrame({"a": [True, None]}),
    ),
    ("blue", "red"): (
        *(np.array([["red"], ["blue"]], t) for t in ("U4", np.dtypes.StringDType())),
        column_of(Colour.RED, np.str_("blue")),
    ),
}


@pytest.mark.parametrize(("values", "X"), [(v, X) for v, columns in TYPES.items() for X in columns])
def test_categories_are_ints_floats_bools_or_text_whatever_the_dtype(values, X):
    assert same(learn(X).categories, (values,))


def texts(n: int, missing: bool) -> list[str | None]:
    rng = np.random.default_rng(n)
    cells: list[str | None] = np.array(WORDS, dtype=object)[rng.integers(0, 7, n)].tolist()
    for i in np.flatnonzero(rng.random(n) < 0.1) if missing else ():
        cells[i] = None
    return cells


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_codes_of_text(container, missing):
    cells = texts(40, missing)
    X = CONTAINERS[container]({"x": cells})
    schema = learn(X)
    assert schema.categories == (tuple(sorted({*cells} - {None})),)
    words = ["größer", "red", "blue"]
    expected = [NAN if c is None else float(words.index(c)) if c in words else -1 for c in cells]
    codes = learn(column_of(*words), [words]).encode(X)
    np.testing.assert_array_equal(codes[:, 0], expected)


@pytest.mark.parametrize("container", [name for name in CONTAINERS if "masked" not in name])
def test_calls_do_not_grow_with_the_rows(container):
    """Distinct values are judged, never cells."""

    def calls(n: int) -> int:
        X = CONTAINERS[container]({"x": texts(n, True)})
        y = np.array(["a", "b"])[np.arange(n) % 2]
        with cProfile.Profile() as profile:
            bg.MixedNB().fit(X, y).predict(X)
        return pstats.Stats(profile).total_calls

    calls(30_000)  # what is imported and cached
    assert calls(30_000) - calls(15_000) < 200


@pytest.mark.parametrize("ordered", [False, True])
def test_pandas_categories_are_kept_in_their_declared_order(ordered):
    dtype = pd.CategoricalDtype(["low", "mid", "high"], ordered=ordered)
    X = pd.DataFrame({"a": pd.Series(["high", None, "low"], dtype=dtype)})
    schema = learn(X)
    assert schema.categories == (("low", "mid", "high"),)
    np.testing.assert_array_equal(schema.encode(X), [[2], [NAN], [0]])
    numbers = pd.DataFrame({"a": pd.Categorical([3, None], categories=[3.0, 2.0, 1.0])})
    assert same(learn(numbers).categories, ((3, 2, 1),))
    assert learn(pd.DataFrame({"a": pd.Categorical([None, None])})).categories == ((),)


def test_a_polars_enum_declares_and_a_polars_categorical_does_not():
    enum_ = pl.Series(["b", None], dtype=pl.Enum(["z", "b", "a"]))
    wide = pl.Series(["p", "q", "r"], dtype=pl.Categorical)[:2]
    X = pl.DataFrame({"e": enum_, "c": wide})
    schema = learn(X)
    assert schema.categories == (("z", "b", "a"), ("p", "q"))
    np.testing.assert_array_equal(schema.encode(X), [[1, 0], [NAN, 1]])


@pytest.mark.parametrize("dtype", [object, float, np.uint8, np.uint64, np.int8])
def test_numbers_compare_by_value_across_dtypes(dtype):
    X = np.array([0, 1, 2], dtype)[:, None]
    for values, codes in (
        ([0, 1], [0, 1, -1]),
        ([False, True], [0, 1, -1]),
        ([0.5, 1], [-1, 1, -1]),
    ):
        schema = learn([[value] for value in values])
        np.testing.assert_array_equal(schema.encode(X)[:, 0], codes)
        np.testing.assert_array_equal(schema.encode([[True], [None]])[:, 0], [1, NAN])


def test_integers_beyond_float64_are_told_apart():
    big = 2**53
    X = np.array([[big], [big + 1], [big + 3]])
    schema = learn(X)
    assert schema.categories == ((big, big + 1, big + 3),)
    np.testing.assert_array_equal(schema.encode(X)[:, 0], [0, 1, 2])
    # float(big + 3) is big + 4: it must not meet the category big + 3
    np.testing.assert_array_equal(schema.encode([[float(big)], [big + 4.0]])[:, 0], [0, -1])
    low, high = -(2**63), 2**64 - 1
    np.testing.assert_array_equal(schema.encode(np.array([[low], [big]])), [[-1], [0]])
    edge = learn(np.array([[high], [3]], np.uint64))
    assert edge.categories == ((3, high),)
    np.testing.assert_array_equal(edge.encode(np.array([[3], [high]], np.uint64)), [[0], [1]])
    np.testing.assert_array_equal(edge.encode(np.array([[3], [-1]])), [[0], [-1]])


@pytest.mark.parametrize("values", [[5, 2**40, -(2**62)], [2**62, -(2**62)], [-3, 40_000, 60_000]])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_wide_and_narrow_ranges_agree_with_list_index(values, dtype):
    column = np.array(values, dtype).reshape(-1, 1)
    schema = learn(column)
    rng = np.random.default_rng(0)
    X = np.concatenate([column, column + 1, column - 1, rng.integers(-99, 99, (50, 1))]).astype(
        dtype
    )
    expected = [sorted(values).index(v) if v in values else -1 for v in X[:, 0].tolist()]
    np.testing.assert_array_equal(schema.encode(X)[:, 0], expected)


@pytest.mark.parametrize("limit", [0, 1 << 62])  # as if it were large or small
def test_an_array_of_codes_is_taken_as_it_is(monkeypatch, limit):
    monkeypatch.setattr(kernels, "COMPILE_FROM", limit)
    codes = np.array([[0, 1], [NAN, 0], [2, NAN], [1, 1]])
    schema = learn(codes)
    assert schema.categories == ((0, 1, 2), (0, 1))
    assert schema.encode(codes) is codes
    for X, expected in (
        ([[3, 0], [0, 2]], [[-1, 0], [0, -1]]),
        ([[2, 2]], [[2, -1]]),
        ([[0.5, 0]], [[-1, 0]]),
        ([[True, False]], [[1, 0]]),
    ):
        np.testing.assert_array_equal(schema.encode(np.array(X)), expected)
    others = np.array([[0, 5], [NAN, 7], [3, NAN]])
    schema = learn(others)
    assert schema.categories == ((0, 3), (5, 7))
    np.testing.assert_array_equal(schema.encode(others), [[0, 0], [NAN, 1], [1, NAN]])
    assert learn(np.zeros((2, 1), dtype=bool)).categories == ((False, True),)
    one = TableSchema.learn(codes, {"drop": [0], "categorical": [1]})
    np.testing.assert_array_equal(one.encode(codes), codes[:, 1:])


numbers_ = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6) | st.booleans()


@settings(deadline=None, max_examples=40)
@given(cells=st.lists(st.text() | st.none(), min_size=1) | st.lists(numbers_, min_size=1))
def test_decode_undoes_encode(cells):
    X = column_of(*cells)
    schema = learn(X)
    values = list(schema.categories[0])
    codes = schema.encode(X)
    assert values == sorted(values)
    assert len({*map(type, values)}) <= 1
    for cell, code in zip(cells, codes[:, 0], strict=True):
        assert (cell is None) == np.isnan(code)
        if isinstance(cell, str):
            assert values[int(code)] == cell
        elif cell is not None:  # a column of integers and fractions is one of float64
            assert values[int(code)] == (float(cell) if type(values[0]) is float else cell)
    decoded = schema.decode(codes)[0]
    np.testing.assert_array_equal(schema.encode(decoded[:, None]), codes)
    back = storage.from_json(json.loads(json.dumps(storage.to_json(schema, "schema"))))
    assert same(back.categories, schema.categories)


@pytest.mark.parametrize("code", [-1, 2, 0.5])
def test_decode_names_the_code_that_is_no_category(code):
    message = rf"column 1: code {code:g} in row 1 is no category.*0 \.\. 1"
    with pytest.raises(ValueError, match=message):
        learn([[0, 0], [4, 3]]).decode([[0, 0], [0, code]])


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
    schema = learn(X, declared)
    assert same(schema.categories, expected)
    np.testing.assert_array_equal(np.stack(schema.decode(schema.encode(X)), axis=1), X.to_numpy())


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
    if not isinstance(declared, dict):
        with pytest.raises(TypeError, match="categories must be a dict"):
            bg.MixedNB(categories=declared).fit(X, [0, 1, 0])
    with pytest.raises(ValueError, match="categories: column 'n' is not categorical; name it"):
        TableSchema.learn(X, {"poisson": "n"}, {"n": 3})


values_ = st.lists(st.integers(-5, 5), unique=True, min_size=1) | st.just([])


@settings(deadline=None)
@given(a=values_, b=values_)
def test_maps_lead_to_the_same_values(a, b):
    merged, mine, theirs = merge(tuple(a), tuple(b), "")
    assert set(merged) == {*a, *b}
    assert [merged[k] for k in mine] == a
    assert [merged[k] for k in theirs] == b
    assert mine.dtype == np.intp
    assert merge(tuple(b), tuple(a), "")[0] == merged  # the order is the same whoever asks
    assert merge(merged, tuple(a), "")[0] == merged


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
    assert same((merge(a, b, "")[0],), (expected,))
    assert same((merge(b, a, "")[0],), (expected,))
