"""Sparse codes of categories; merging; JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import bayesgen as bg
from bayesgen.encoding.categories import Categories
from bayesgen.encoding.tables import read
from tests.encoding.cases import NAN, encode, learn, same


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("csr_array", np.int32), ("csc_array", np.float64), ("csr_matrix", np.uint8)],
)
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


@pytest.mark.parametrize("form", [sparse.bsr_array, sparse.dia_array])
@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_rows_without_weight_are_left_out_of_any_sparse_form(form):
    X, y = np.array([[0.0, 1], [2, 0], [1, 1], [2, 1]]), [0, 1, 0, 1]
    weight = [1.0, 1, 0, 1]
    found = bg.CategoricalNB().fit(form(X), y, weight).predict_proba(X)
    np.testing.assert_array_equal(found, bg.CategoricalNB().fit(X, y, weight).predict_proba(X))


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
        ([[0, 0], [0, -2]], None, r"column 1 holds -2 in row 1: in a sparse X the category 0"),
        ([[0, 1], [0, 5]], {1: 3}, r"column 1 holds 5 in row 1, .*declared.*\(0, 1, 2\)"),
        (
            [[0, 1], [0, 2]],
            {1: [1, 2, 0]},
            r"first category of every column must be 0, but that of column 1 is 1",
        ),
        ([[0, 1], [0, 2]], {1: ["a"]}, r"first category of every column must be 0, .*column 1"),
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
