"""Classes, their labels, and what cannot be a label."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesgen as bg
from tests.estimators.cases import CASES, LABELS, sample


@pytest.mark.parametrize(
    ("clf", "X", "y", "message"),
    [
        (bg.PoissonNB(), [[1, 2], [3, 0.5]], "ab", "'x1' holds 0.5 in row 1, and PoissonNB"),
        (bg.BernoulliNB(), [[0, 1.5], [1, 2]], "ab", "'x1' is above the threshold 0 in every row"),
        (bg.GaussianNB(), [[0.0], [1.0]], "aa", "all labels are 'a'"),
        (bg.LogLinearPool([bg.GaussianNB()]), [[0.0], [1.0]], "aa", "all labels are 'a'"),
    ],
)
def test_data_that_a_model_is_not_for_is_named(clf, X, y, message):
    with pytest.warns(UserWarning, match=message) as caught:
        clf.fit(X, list(y))
    assert len(caught) == 1


@pytest.mark.parametrize("labels", [["p", "qq", "rrr"], [-3, 0, 12], [0.0, 1.0, 2.0]])
def test_labels_of_any_type_and_container(labels):
    X, codes, _ = sample(CASES["GaussianNB"])
    y = np.asarray(labels)[codes]
    reference = bg.GaussianNB().fit(X, codes).predict_proba(X)
    for column in (y, y.tolist(), pd.Series(y), pl.Series(y.tolist()), pd.Categorical(y)):
        clf = bg.GaussianNB().fit(X, column)
        assert clf.classes_.tolist() == labels
        np.testing.assert_array_equal(clf.predict_proba(X), reference)
        assert clf.score(X, column) > 0.7


def test_boolean_and_date_labels():
    X, codes, _ = sample(CASES["GaussianNB"])
    clf = bg.GaussianNB().fit(X, codes == 1)
    assert clf.classes_.dtype == bool
    assert clf.predict(X).dtype == bool
    p = clf.predict_proba(X, class_prior={True: 0.25, False: 0.75})
    np.testing.assert_array_equal(p, clf.predict_proba(X, class_prior=[0.75, 0.25]))
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")
    assert bg.GaussianNB().fit(X, days[codes]).predict(X).dtype.kind == "M"
    nullable = pd.Series(codes, dtype="Int64")
    assert bg.GaussianNB().fit(X, nullable).classes_.tolist() == [0, 1, 2]


def test_pandas_categories_that_do_not_occur_are_no_classes():
    X, codes, _ = sample(CASES["GaussianNB"])
    y = pd.Categorical(LABELS[codes], categories=["yew", *LABELS[::-1]])
    assert bg.GaussianNB().fit(X, y).classes_.tolist() == LABELS.tolist()


def test_labels_of_two_types_do_not_become_strings():
    X, codes, y = sample(CASES["GaussianNB"])
    clf = bg.GaussianNB().fit(X, codes)
    with pytest.raises(TypeError, match="labels of one type"):
        clf.partial_fit(X, y)
    with pytest.raises(TypeError, match="labels of one type"):
        bg.GaussianNB().partial_fit(X, codes, classes=["0", "1", "2"])
    assert clf.classes_.tolist() == [0, 1, 2]
    assert bg.GaussianNB().fit(X, codes > 0).partial_fit(X, codes).classes_.tolist() == [0, 1, 2]
