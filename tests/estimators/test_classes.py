"""Labels of any type, and class weights by position and by label."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import bayesgen as bg
from tests.estimators.cases import CASES, LABELS, sample

X, CODES, Y = sample(CASES["GaussianNB"])
DAYS = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")
TYPES = [["p", "qq", "rrr"], [-3, 0, 12], [0.0, 1.0, 2.0], [False, True]]
TYPES = [*map(np.array, TYPES), DAYS]


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


@pytest.mark.parametrize("labels", TYPES, ids=lambda labels: labels.dtype.name)
def test_labels_and_class_weights_of_any_type_and_container(labels):
    codes = CODES % len(labels)
    plain = labels.tolist() if labels is not DAYS else list(labels)
    y, reference = labels[codes], bg.GaussianNB().fit(X, codes)
    p, weights = reference.predict_proba(X), np.array([0.7, 0.1, 0.2])[: len(labels)]
    weights /= weights.sum()
    shifted = reference.predict_proba(X, class_prior=weights)
    for column in (y, [plain[k] for k in codes], pd.Series(y), pl.Series(y), pd.Categorical(y)):
        clf = bg.GaussianNB().fit(X, column)
        assert clf.predict(X).dtype.kind == clf.classes_.dtype.kind
        np.testing.assert_array_equal(clf.classes_.astype(labels.dtype), labels)
        np.testing.assert_array_equal(clf.predict_proba(X), p)
        assert clf.score(X, column) > 0.6
    clf = bg.GaussianNB().fit(X, y)
    assert clf.classes_.dtype.kind == labels.dtype.kind
    by_label = pd.Series(weights, index=labels)[::-1]  # as y.value_counts(normalize=True)
    for prior in (
        dict(zip(plain, weights, strict=True)),
        by_label,
        pd.Series(by_label.values, index=pd.CategoricalIndex(by_label.index)),
        xr.DataArray(weights[::-1], {"class": labels[::-1]}),
        tuple(weights),
        pl.Series(weights),
        xr.DataArray(weights),
    ):
        np.testing.assert_array_equal(clf.predict_proba(X, class_prior=prior), shifted)
    rounded = clf.predict_proba(X, class_prior=weights.astype(np.float32))
    np.testing.assert_allclose(rounded, shifted, rtol=1e-6)


def test_whole_numbers_of_pandas_stay_whole_and_categories_that_do_not_occur_are_no_classes():
    nullable = pd.Series(CODES, dtype="Int64")
    assert bg.GaussianNB().fit(X, nullable).classes_.tolist() == [0, 1, 2]
    y = pd.Categorical(Y, categories=["yew", *LABELS[::-1]])
    assert bg.GaussianNB().fit(X, y).classes_.tolist() == LABELS.tolist()


def test_labels_of_two_types_do_not_become_strings():
    clf = bg.GaussianNB().fit(X, CODES)
    with pytest.raises(TypeError, match="labels of one type"):
        clf.partial_fit(X, Y)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert bg.GaussianNB().fit(X, CODES > 0).partial_fit(X, CODES).classes_.tolist() == [0, 1, 2]
