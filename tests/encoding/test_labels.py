"""Labels to codes: what is looked up or counted is what sorting finds."""

import enum
import uuid
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

import bayesgen as bg
from bayesgen.encoding.labels import code_labels, codes_of, is_labelled, labels_of

RNG, NAN = np.random.default_rng(1), np.nan
SAMPLED_OR_NOT = (bg.GaussianNB, bg.StudentTNB)


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
    in_order, places = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(labels, in_order, strict=True)
    np.testing.assert_array_equal(codes, places)
    np.testing.assert_array_equal(labels[codes], y)


OPTIONAL = {"unlabelled": True}  # where -1 marks a row without a label


@pytest.mark.parametrize(
    ("y", "options", "known"),
    [
        ([0.0, 1.0, NAN], {}, [1, 1, 0]),
        (["a", None, "b"], {}, [1, 0, 1]),
        ([1, None, -1], {}, [1, 0, 1]),
        (np.ma.masked_array(["a", "b", "b"], [False, True, False]), {}, [1, 0, 1]),
        (pd.Series(["a", None, "b"], dtype="string"), {}, [1, 0, 1]),
        (pd.Series([0, None, 1], dtype="Int64"), {}, [1, 0, 1]),
        ([True, False], {}, [1, 1]),
        ([-1, 1, 1], {}, [1, 1, 1]),  # two classes, as many write them
        ([-1.0, 3.0, 2.0], {}, [1, 1, 1]),
        ([-1, 0, 1], OPTIONAL, [0, 1, 1]),
        ([-1.0, 3.0, 2.0], OPTIONAL, [0, 1, 1]),
        (np.array([2, 0, -1], dtype=object), OPTIONAL, [1, 1, 0]),
        (["-1", "a", "b"], OPTIONAL, [1, 1, 1]),
        (np.ma.masked_array([-1, 1, 2], mask=False), OPTIONAL, [1, 1, 1]),
        (np.ma.masked_array([-1, 1, -1], [False, False, True]), OPTIONAL, [1, 1, 0]),
        (np.array([3, 255], dtype=np.uint8), OPTIONAL, [1, 1]),
    ],
)
def test_which_rows_have_a_label(y, options, known):
    assert is_labelled(labels_of(y, **options)).tolist() == [bool(k) for k in known]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (partial(labels_of, y, unlabelled=True), "is -1 a label, or a row without one")
            for y in ([-1, 2, 2], [-1, 1, 1], [-1, -2, 3], [-1, 0, 1, NAN], [-1, 0, 1, None])
        ),
        (lambda: is_labelled(labels_of([-1, -1], **OPTIONAL)), "no row of y has a label"),
        *(
            (partial(fit, y), r"no label in 1 row\(s\), the first is row 1.*unlabelled='ignore'")
            for fit in (partial(make().fit, [[1.0], [2.0], [3.0]]) for make in SAMPLED_OR_NOT)
            for y in (
                ["a", None, "b"],
                ("a", NAN, "b"),
                np.ma.masked_array([1, 0, 1], [False, True, False]),
                [0.0, NAN, 1.0],
                np.array(["a", None, "b"], np.dtypes.StringDType(na_object=None)),
            )
        ),
    ],
)
def test_rows_without_a_label_are_refused_where_they_are_not_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("clf", [bg.GaussianNB(), bg.LogLinearPool([bg.GaussianNB()])])
def test_a_column_of_labels_is_warned_of_once(clf):
    X, y = np.arange(8.0)[:, None], np.arange(8)[:, None] % 2
    with pytest.warns(DataConversionWarning) as caught:
        clf.fit(X, y)
    assert len(caught) == 1


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
    clf = bg.GaussianNB().fit(X, y, unlabelled="ignore")
    assert clf.classes_.tolist() == ["ash", "birch"]
    with pytest.raises(ValueError, match="nan is not a class"):
        bg.label_errors(clf, X, y)
