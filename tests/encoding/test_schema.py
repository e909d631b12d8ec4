"""Schemas: the kind of each column, its categories and codes, in any container."""

from contextlib import nullcontext
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesgen as bg
from bayesgen.encoding.schema import KINDS, TableSchema
from bayesgen.encoding.suspects import ColumnWarning
from tests.encoding.cases import BIRDS, CONTAINERS, NAMED, NAMES, NAN, birds, column_of


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_container_does_not_matter(container):
    X = CONTAINERS[container](birds())
    schema = TableSchema.learn(X)
    assert schema.kinds == ("categorical", "gaussian", "gaussian", "bernoulli")
    assert schema.categories == (("Biscoe", "Dream"), (), (), ())
    assert schema.names == (NAMES if container in NAMED else None)
    assert {k: v.tolist() for k, v in schema.blocks.items()} == {
        "bernoulli": [3],
        "categorical": [0],
        "gaussian": [1, 2],
    }
    cells = schema.encode(X)
    assert cells.dtype == np.float64
    np.testing.assert_array_equal(cells, BIRDS)
    island, *numbers = schema.decode(cells)
    assert island.tolist() == birds()["island"]
    np.testing.assert_array_equal(np.transpose(numbers), BIRDS[:, 1:])
    np.testing.assert_array_equal(schema.encode(CONTAINERS["NumPy"](birds())), BIRDS)
    new = CONTAINERS[container](birds() | {"island": ["Hobart", None, "Dream"]})
    np.testing.assert_array_equal(schema.encode(new)[:, 0], [-1, NAN, 1])
    name = "island" if container in NAMED else 0
    with pytest.raises(ValueError, match=f"column {name!r} holds 'Hobart' in row 0, .*its cat"):
        schema.refuse_unseen(new)
    (unknown,) = schema.unknown_cells(new, schema.encode(new))
    assert (unknown.column, unknown.value, unknown.row, unknown.n) == (name, "Hobart", 0, 1)


@pytest.mark.parametrize("container", CONTAINERS)
def test_codes_of_birds_as_categories(container):
    X = CONTAINERS[container](birds())
    schema = TableSchema.learn(X, every="categorical")
    values = (("Biscoe", "Dream"), (39.1, 46.0), (0, 1, 2), (False, True))
    assert schema.categories == values
    assert [*map(type, map(max, schema.categories))] == [str, float, int, bool]
    assert schema.n_categories == (2, 2, 3, 2)
    codes = schema.encode(X)
    np.testing.assert_array_equal(codes, [[1, 0, 1, 1], [NAN, 1, 2, 0], [0, NAN, 0, NAN]])
    island, bill, eggs, male = schema.decode(codes)
    assert island.tolist() == birds()["island"]
    np.testing.assert_array_equal(bill, [39.1, 46, NAN])
    assert eggs.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(male, [1, 0, NAN])


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
    assert schema.categories == ((), ())
    assert schema.n_categories == (1,)
    new = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    np.testing.assert_array_equal(schema.encode(new), [[1, NAN], [2, NAN]])
    assert schema.relearn(new).categories == ((), ("x",))
    numbers = pl.DataFrame({"a": [1, 2], "b": [0.5, None]})
    np.testing.assert_array_equal(schema.encode(numbers), [[1, NAN], [2, NAN]])
    with pytest.raises(ValueError, match=r"column 'b' held nothing .*name its kind in columns="):
        schema.relearn(numbers)
    assert TableSchema.learn(X, every="categorical").relearn(numbers).categories[1] == (0.5,)
    schema = TableSchema.learn(X, {"gaussian": ["a", "b"]})
    np.testing.assert_array_equal(schema.encode(X), [[1, NAN], [2, NAN]])


def test_the_user_chooses_kinds_by_name_or_position():
    X = pd.DataFrame(birds()).assign(when=pd.to_datetime(["2020"] * 3))
    columns = {"categorical": ["island", 2], "gaussian": "bill", "drop": ["when"]}
    schema = TableSchema.learn(X, columns)
    assert schema.kinds == ("categorical", "gaussian", "categorical", "bernoulli")
    assert schema.names == NAMES
    assert schema.chosen == {"island", "bill", "eggs"}
    np.testing.assert_array_equal(schema.encode(X), BIRDS)
    declared = TableSchema.learn(X, columns, {"island": ["Dream", "Nauru", "Biscoe"], "eggs": 4})
    assert declared.categories == (("Dream", "Nauru", "Biscoe"), (), (0, 1, 2, 3), ())
    inferred = TableSchema.learn(X, {"drop": ["island", 4], "bernoulli": []}, {"eggs": [0, 1, 2]})
    assert inferred.kinds == ("gaussian", "categorical", "bernoulli")
    assert inferred.chosen == {"eggs"}


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
        TableSchema.learn(pd.DataFrame(birds()), columns)


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
@pytest.mark.parametrize("container", ["pandas", "pandas, categories", "polars", "pyarrow"])
def test_values_that_do_not_fit_their_kind(kind, cells, message, container):
    X = CONTAINERS[container]({"x": cells})
    with pytest.raises(ValueError, match=message):
        TableSchema.learn(X, {kind: ["x"]}).encode(X)


def test_missing_cells_fit_every_kind():
    last = [float(kind == "lognormal") for kind in KINDS]  # which 0 does not fit
    X = pl.DataFrame({k: [1.0, None, v] for k, v in zip(KINDS, last, strict=True)})
    schema = TableSchema.learn(X, {kind: [kind] for kind in KINDS})
    every = np.ones(len(KINDS))
    np.testing.assert_array_equal(schema.encode(X), [every, every * NAN, last])


def test_new_rows_have_the_columns_of_training():
    schema = TableSchema.learn(pd.DataFrame(birds()))
    with pytest.raises(ValueError, match="X has 3 features, but 4 are expected"):
        schema.encode(pd.DataFrame(birds()).iloc[:, :3])
    new = pd.DataFrame({"island": ["Hobart"], "bill": ["40.5"], "eggs": [3], "male": [1]})
    np.testing.assert_array_equal(schema.encode(new), [[-1, 40.5, 3, 1]])


def test_text_and_numbers_do_not_meet_in_encode():
    schema = TableSchema.learn(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), every="categorical")
    with pytest.raises(
        TypeError, match="column 'a' holds '1' in row 1, but its categories are numbers"
    ):
        schema.encode(pd.DataFrame({"a": [None, "1"], "b": ["x", "x"]}))
    with pytest.raises(TypeError, match="column 'b' holds 5 in row 0, but its categories are text"):
        schema.encode(pd.DataFrame({"a": [1], "b": [5]}))
    # what a reader makes of an empty column is no contradiction
    blank = pd.DataFrame({"a": [1], "b": [NAN]})
    np.testing.assert_array_equal(schema.encode(blank), [[0, NAN]])


def test_schemas_merge_by_categories():
    one = TableSchema.learn(pd.DataFrame(birds()))
    two = one.relearn(pd.DataFrame(birds()).assign(island=["Torgersen", "Dream", "Alpha"]))
    assert two.kinds == one.kinds
    assert two.categories[0] == ("Alpha", "Dream", "Torgersen")
    merged, mine, theirs = one.merge(two)
    assert merged.categories[0] == ("Alpha", "Biscoe", "Dream", "Torgersen")
    assert [m.tolist() for m in mine] == [[1, 2]]
    assert [m.tolist() for m in theirs] == [[0, 2, 3]]
    numeric = TableSchema.learn(np.ones((2, 2)))
    assert numeric.merge(numeric) == (numeric, (), ())


def test_schemas_that_disagree_do_not_merge():
    X = pd.DataFrame(birds())
    one = TableSchema.learn(X)
    other = TableSchema.learn(X, {"poisson": [2]})
    with pytest.raises(
        ValueError, match="column 'eggs' is gaussian on one side and poisson on the other"
    ):
        one.merge(other)
    with pytest.raises(ValueError, match="one side uses 4 columns and the other 3"):
        one.merge(TableSchema.learn(X, {"drop": "bill"}))
    text, number = (TableSchema.learn(column_of(v), every="categorical") for v in ("a", 1))
    with pytest.raises(TypeError, match="categories of column 0 are text on one side and numbers"):
        text.merge(number)


def test_numbers_for_names_are_not_guessed_about():
    X = pd.DataFrame([[1.0, 2.0]], columns=[1, 0])
    with pytest.raises(ValueError, match=r"called 1, 0: .*rename them"):
        TableSchema.learn(X, {"gaussian": [0, 1]})
    assert TableSchema.learn(X).kinds == ("gaussian", "gaussian")
    assert TableSchema.learn(
        X[[0, 1]].set_axis([0, 1], axis=1), {"gaussian": [0], "drop": 1}
    ).positions == (0,)
