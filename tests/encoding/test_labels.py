"""Labels to codes: what is looked up or counted is what sorting finds."""

import enum
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bayesgen as bg
from bayesgen.encoding.labels import code_labels, codes_of, is_labelled, labels_of

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    "y",
    [
        RNG.choice(["b", "a", "ccc"], 50),
        RNG.choice(["b", "a", "ccc"], 50).astype(object),
        np.array([np.str_("b"), "b", "a", "ä", "Z", "a", "", ""] * 9, dtype=object),
        np.array(["x"] * 3),
        RNG.integers(-3, 3, 50),
        RNG.integers(0, 2, 50).astype(bool),
        RNG.choice([0.0, 2.0, 7.0], 50),
        RNG.choice(np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"), 50),
    ],
    ids=lambda y: f"{y.dtype.str}-{len(y)}",
)
def test_codes_are_those_of_sorted_labels(y):
    labels, codes = code_labels(y)
    known, places = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(labels, known, strict=True)
    np.testing.assert_array_equal(codes, places)
    np.testing.assert_array_equal(labels[codes], y)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_label_among_strings_is_refused(missing):
    with pytest.raises(ValueError, match=r"no label in 1 row\(s\), the first is row 2"):
        code_labels(np.array(["a", "b", missing, "a", "b"], dtype=object))


def test_minus_one_marks_a_row_without_a_label_where_these_are_expected():
    for y, known in (
        ([-1, 0, 1], [False, True, True]),
        ([-1.0, 3.0, 2.0], [False, True, True]),
        (np.array([2, 0, -1], dtype=object), [True, True, False]),
        (["-1", "a", "b"], [True, True, True]),
        (np.ma.masked_array([-1, 1, 2], mask=False), [True, True, True]),
        (np.ma.masked_array([-1, 1, -1], [False, False, True]), [True, True, False]),
        (np.array([3, 255], dtype=np.uint8), [True, True]),
    ):
        assert is_labelled(labels_of(y, unlabelled=True)).tolist() == known
    for y in ([-1, 0, 1], [-1, 1, -1], [-1.0, 3.0, 2.0]):  # and a label where they are not
        assert is_labelled(labels_of(y)).all()


@pytest.mark.parametrize(
    "y", [[-1, 2, 2], [-1, 1, 1], [-1, -2, 3], [-1, 0, 1, np.nan], [-1, 0, 1, None]]
)
def test_minus_one_that_may_be_a_label_is_refused(y):
    with pytest.raises(ValueError, match="is -1 a label, or a row without one"):
        labels_of(y, unlabelled=True)


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "UInt64"])
def test_nullable_integers_stay_integers(dtype):
    y = 2**60 + np.arange(3) % 2
    values = labels_of(pd.Series(y, dtype=dtype))
    assert values.dtype.kind in "iu"
    assert values.tolist() == y.tolist()
    truth = labels_of(pd.Series([True, False], dtype="boolean"))
    assert truth.tolist() == [True, False]


class Colour(str, enum.Enum):  # noqa: UP042 - str() of these is "Colour.RED", of StrEnum "red"
    RED = "red"
    BLUE = "blue"


def test_enumerations_of_text_do_not_become_one_class():
    """NumPy makes ["Col", "Colo"] of them."""
    with pytest.raises(TypeError, match=r"row 1 is .*: 'red'>.*label.value for label in y"):
        labels_of(["blue", Colour.RED])
    with pytest.raises(TypeError, match=r"label\.value for label in y"):
        bg.GaussianNB().partial_fit([[0.0]], ["red"], classes=list(Colour))
    labels = labels_of([np.str_("a"), enum.StrEnum("Size", "b").b])
    assert labels.tolist() == ["a", "b"]


@pytest.mark.parametrize("labels", [[1, 0], [True, False], [2.0, 1.0], ["b", "a"]])
def test_objects_become_what_they_are_of(labels):
    classes, codes = code_labels(np.array(labels, dtype=object))
    assert classes.tolist() == sorted(labels)
    assert codes.tolist() == [1, 0]
    assert type(classes.tolist()[0]) is type(labels[0])


@pytest.mark.parametrize("labels", [[uuid.UUID(int=1)] * 2, [1, "a"]])
def test_labels_of_other_types_are_refused(labels):
    with pytest.raises(ValueError, match=r"Unknown label type: .* of one sortable type.*astype"):
        code_labels(np.array(labels, dtype=object))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_labels_of_strings_of_numpy(missing):
    kind = np.dtypes.StringDType(na_object=missing)
    clf = bg.GaussianNB().fit([[0.0], [1.0]], np.array(["b", "a"], dtype=kind))
    p = clf.predict_proba([[0.0]], class_prior={"a": 0.25, "b": 0.75})
    np.testing.assert_array_equal(p, clf.predict_proba([[0.0]], class_prior=[0.25, 0.75]))
    with pytest.raises(ValueError, match=r"no label in 1 row\(s\), the first is row 1"):
        bg.GaussianNB().fit([[0.0], [1.0]], np.array(["b", missing], dtype=kind))


@pytest.mark.parametrize(
    "y", [pa.array(["b", "a", "b"]), pa.array(["b", "a", "b"]).dictionary_encode()]
)
def test_labels_of_arrow(y):
    clf = bg.GaussianNB().fit([[1.0], [0.0], [1.1]], y)
    assert clf.predict([[1.0]]) == ["b"]


@pytest.mark.parametrize("label", [None, np.nan, pd.NA, 3, ("a",)])
@pytest.mark.parametrize("dtype", [object, "U1"])
def test_what_has_no_order_with_the_classes_is_no_class(label, dtype):
    labels = np.empty(3, dtype=object)
    labels[:] = ["a", "b", "a"]
    labels[1] = label
    with pytest.raises(ValueError, match=r"is not a class; the classes are \['a', 'b'\]"):
        codes_of(labels, np.array(["a", "b"], dtype=dtype))


@pytest.mark.parametrize("container", [list, tuple])
def test_nan_in_a_list_of_text_is_no_label(container):
    y = container(["ash", "birch", np.nan, "ash"])
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match=r"no label in 1 row\(s\), the first is row 2"):
        bg.GaussianNB().fit(X, y)
    clf = bg.GaussianNB().fit(X, y, unlabelled="ignore")
    assert clf.classes_.tolist() == ["ash", "birch"]
    with pytest.raises(ValueError, match="nan is not a class"):
        bg.label_errors(clf, X, y)
