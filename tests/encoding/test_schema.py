"""Schemas: the kind of each column, and what does not fit."""

from contextlib import nullcontext
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import bayesgen as bg
from bayesgen.encoding.schema import KINDS, TableSchema
from bayesgen.encoding.suspects import ColumnWarning
from bayesgen.encoding.tables import feature_names
from tests.encoding.cases import NAN, birds


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
    ids=lambda X: type(X).__name__,
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


def test_a_column_of_missing_objects_is_left_out():
    X = pl.DataFrame({"a": [1, 2], "b": [None, None]})
    schema = TableSchema.learn(X)
    assert schema.kinds == ("gaussian", "categorical")
    assert schema.categories.values == ((),)
    new = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    np.testing.assert_array_equal(schema.encode(new), [[1, NAN], [2, NAN]])
    assert schema.relearn(new).categories.values == (("x",),)
    with pytest.raises(ValueError, match=r"column 'b' held nothing .*name its kind in columns="):
        schema.relearn(pl.DataFrame({"a": [1, 2], "b": [0.5, None]}))
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


def test_columns_that_are_not_named_are_inferred():
    schema = TableSchema.learn(birds(), {"poisson": ["eggs"]})
    assert schema.kinds == ("categorical", "gaussian", "poisson", "bernoulli")
    schema = TableSchema.learn(birds(), {"drop": "island", "bernoulli": []}, {"eggs": [0, 1, 2]})
    assert schema.names == ("bill", "eggs", "male")
    assert schema.kinds == ("gaussian", "categorical", "bernoulli")
    assert schema.categories.values == ((0, 1, 2),)
    assert schema.chosen({"drop": "island"}, {"eggs": [0, 1, 2]}) == {"eggs"}
    assert schema.chosen({"gaussian": [1]}, None) == {"bill"}
    with pytest.raises(ValueError, match="categories: column 'eggs' is not categorical; name it"):
        TableSchema.learn(birds(), {"poisson": "eggs"}, {"eggs": [0, 1, 2]})


@pytest.mark.parametrize("make", [bg.MixedNB, bg.TreeAugmentedNB, bg.MetaTreeForest])
def test_a_column_of_codes_with_declared_categories(make):
    """As if the column were text; nothing is said of what the user has named."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 30)
    codes = pd.DataFrame({"ward": rng.integers(1, 4, 30), "x": rng.normal(size=30) + y})
    named = {"ward": [1, 2, 3]}
    clf = make(categories=named, columns={"gaussian": "x"}).fit(codes, y)
    text = make().fit(codes.assign(ward=codes["ward"].astype(str)), y)
    new = codes.assign(ward=codes["ward"].astype(str))
    np.testing.assert_allclose(clf.predict_proba(codes), text.predict_proba(new), rtol=1e-12)
    bits = codes.assign(ward=(codes["ward"] > 1).astype(int))
    with pytest.warns(ColumnWarning, match="'ward'") if make is bg.MixedNB else nullcontext():
        make(columns={"gaussian": "x"}).fit(bits, y)
    make(columns={"gaussian": "ward"}).fit(bits, y)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"gaussian": ["bill", "egs"]}, ValueError, r"columns\['gaussian'\]: no column 'egs'"),
        ({"poison": ["bill"]}, ValueError, r"no kind 'poison'; did you mean 'poisson'\?"),
        ({"gaussian": ["bill", "bill"]}, ValueError, r"column 'bill' is named twice, as gaussian"),
        ({"drop": range(4)}, ValueError, r"every column is dropped"),
        ({"gaussian": [4]}, ValueError, r"no column 4"),
        ({"gaussian": [True]}, ValueError, r"no column True"),
        (["bill"], TypeError, r"columns must be a dict \{kind: list of columns\} or None"),
    ],
)
def test_errors_about_columns(columns, error, message):
    with pytest.raises(error, match=message):
        TableSchema.learn(birds(), columns)
    with pytest.raises(TypeError, match="categories must be a dict"):
        TableSchema.learn(birds(), categories=[["Dream"]])


@pytest.mark.parametrize(
    ("kind", "cells", "message"),
    [
        ("bernoulli", [0, 1, 2], r"column 'x' holds 2 in row 2, but a bernoulli"),
        ("bernoulli", [0.5, 1, 0], r"column 'x' holds 0.5 in row 0, but a bernoulli"),
        ("bernoulli", ["no", "1", "0"], r"column 'x' holds 'no' in row 0, but a bernoulli"),
        ("poisson", [3, None, -2], r"column 'x' holds -2 in row 2, but a poisson"),
        ("multinomial", [3.0, -0.5, 1], r"column 'x' holds -0.5 in row 1, but a multinomial"),
        ("lognormal", [3.0, None, 0], r"column 'x' holds 0 in row 2, but a lognormal .* positive"),
        ("gaussian", ["1", "2", "c"], r"column 'x' holds 'c' in row 2, but a gaussian"),
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
    last = [float(kind == "lognormal") for kind in KINDS]  # which 0 does not fit
    X = pl.DataFrame({k: [1.0, None, v] for k, v in zip(KINDS, last, strict=True)})
    schema = TableSchema.learn(X, {kind: [kind] for kind in KINDS})
    every = np.ones(len(KINDS))
    np.testing.assert_array_equal(schema.encode(X), [every, every * NAN, last])


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


def test_numbers_for_names_are_not_guessed_about():
    X = pd.DataFrame([[1.0, 2.0]], columns=[1, 0])
    with pytest.raises(ValueError, match=r"called 1, 0: .*rename them"):
        TableSchema.learn(X, {"gaussian": [0, 1]})
    assert TableSchema.learn(X).kinds == ("gaussian", "gaussian")
    assert TableSchema.learn(
        X[[0, 1]].set_axis([0, 1], axis=1), {"gaussian": [0], "drop": 1}
    ).positions == (0,)
