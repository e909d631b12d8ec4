"""Errors say what, where, and what to do; estimates that do not exist are named."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import bayesgen as bg
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS
from bayesgen.predict.probabilities import ImpossibleRowError, log_class_probability
from tests.estimators.cases import NAN, PSI


def frame(X, names="bill wing mass"):
    return pd.DataFrame(X, columns=names.split()[: np.shape(X)[1]])


def prior_of_pymc():
    import pymc as pm

    return pm.Normal.dist(0, 1)


def query():
    import polars as pl

    return pl.LazyFrame({"bill": [1.0, 2.0]})


class OnDevice:
    """As a tensor of a graphics card: NumPy is refused by its owner."""

    shape, ndim = (2, 1), 2

    def __dlpack__(self): ...

    def __len__(self):
        return 2

    def __array__(self, *args, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")


WORDS = pd.DataFrame({"bill": [1.0, 2.0], "place": ["sea", "lake"]})
TWO, PLANE = [[0.0], [1]], [[0, 1], [1, 0]]
FITTED = bg.GaussianNB().fit(TWO, [0, 1])
SPARSE = sparse.csr_matrix
DAYS = pd.to_datetime("2026-11-23")
# what is asked of fit: classifier, rows, the message; labels are 0, 1, 1
FITS = [
    (
        bg.GaussianNB(),
        WORDS,
        "'place' holds 'sea' in row 0, and GaussianNB takes numbers",
    ),
    (
        bg.PoissonNB(),
        WORDS.astype({"place": "category"}),
        "column 'place' holds 'sea' in row 0, and PoissonNB .*; MixedNB takes",
    ),
    (bg.GaussianNB(), WORDS.assign(place=DAYS), "column 'place' holds Datetime.*: .* as to days"),
    (bg.GaussianNB(), WORDS.assign(place=[[1], [2, 3]]), r"'place' holds \[1\] \(list\) in row 0"),
    (bg.MixedNB(), WORDS.to_dict("records"), r"holds records \(dictionaries\): give pandas"),
    (
        bg.MixedNB(),
        WORDS[["bill"]].to_xarray(),
        r"a Dataset of xarray.* give X.to_dataframe\(\)",
    ),
    (bg.GaussianNB(), WORDS.assign(place=[1j, 2]), "column 'place' holds complex numbers"),
    (bg.GaussianNB(), pd.DataFrame(np.eye(2), columns=["bill"] * 2), "more than one column 'bill'"),
    (bg.GaussianNB(mu0=prior_of_pymc()), TWO, "mu0 must be a number or an array of .* a variable"),
    (bg.GaussianNB(mu0="normal"), TWO, "mu0 must be a number or an array of numbers, got"),
    (bg.GaussianNB(), query(), r"X is a LazyFrame of polars"),
    (
        bg.BernoulliNB(binarize=None),
        frame([[0, 1], [1, 0], [0, 2]]),
        "2 in row 2, column 'wing'",
    ),
    (bg.BernoulliNB(binarize=None), SPARSE([[0, 1], [0, 3]]), "got 3 in row 1, column 'x1'"),
    (bg.PoissonNB(), frame([[0, 1], [4, -2]]), "must be >= 0, got -2 in row 1, column 'wing'"),
    (bg.MultinomialNB(), SPARSE([[0, 1], [-4, 0]]), "got -4 in row 1, column 'x0'"),
    (bg.MultinomialNB(), frame([[0, 1], [4, NAN]]), "nan in row 1, column 'wing'; a document with"),
    (
        bg.LinearDiscriminant(),
        frame([[0, 1], [4, NAN], [2, 2]]),
        "column 'wing' in row 1.*covariance='diagonal' or GaussianNB",
    ),
    (
        bg.BernoulliNB(alpha=[1.0, 2, 3]),
        PLANE,
        r"alpha has shape \(3,\).*\(class, feature\) = \(2",
    ),
    (bg.MultinomialNB(alpha=0), PLANE, "alpha must be > 0, got 0: the prior would be improper"),
    (bg.GaussianNB(class_alpha=[1.0, 2, 3]), TWO, r"class_alpha has shape \(3,\)"),
    (bg.QuadraticDiscriminant(nu0=1.0), [[0.0, 1, 2], [1, 2, 5]], "nu0 must be > D - 1 = 2"),
    (bg.QuadraticDiscriminant(psi0=[[1.0, 2], [2, 1]]), PLANE, "psi0 must be symmetric positive"),
    (bg.LinearDiscriminant(psi0=PSI, covariance="diagonal"), np.eye(3), "off-diagonal elements"),
    (bg.GaussianNB(variance="shared"), TWO, "variance must be one of 'class'.*'shared'"),
    (
        bg.LinearDiscriminant(covariance="tied"),
        TWO,
        "covariance must be 'full', 'diagonal' or 'spherical', got 'tied'",
    ),
    (bg.GaussianNB(prior="flat"), TWO, "prior must be 'default', 'empirical' or 'loo', got 'flat'"),
    (
        bg.CategoricalNB(unseen="skip"),
        [["a"], ["b"]],
        "unseen must be one of 'prior', 'ignore', 'raise', got 'skip'",
    ),
    (bg.MarkovNB(tokens="line"), ["a", "b"], "'word part', or a callable, got 'line'"),
    (bg.MarkovNB(order=0), ["a", "b"], "order"),
    (bg.MarkovNB(), ["a", None], "document 1 is missing"),
    (
        bg.MarkovNB(),
        pd.DataFrame({"text": ["a b", "c d"]}),
        "the token 'a b', and X is a table of one column; give a sequence of texts",
    ),
    (bg.GenerativeClassifier(family="gaussian"), TWO, "must be an instance of a Family"),
]


@pytest.mark.parametrize(("clf", "X", "message"), FITS)
def test_errors_of_a_fit_say_what_where_and_what_to_do(clf, X, message):
    n = 2 if sparse.issparse(X) or not hasattr(X, "__len__") else len(X)
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}") as error:
        clf.fit(X, [0, 1, 1][:n])
    place = re.search(r"in row (\d+)", str(error.value))
    if place:  # which is a fact, not a word alone
        assert error.value.row == int(place[1])
        assert f"column {error.value.column!r}" in str(error.value)


ERRORS = {
    "no rows to draw for": (
        lambda: bg.LogLinearPool([FITTED]).fit(TWO, [0, 1]).predict_interval(np.empty((0, 1))),
        "Found array with 0 sample",
    ),
    "intervals of a category never seen": (
        lambda: (
            bg.TreeAugmentedNB()
            .fit([["a", "c"], ["b", "d"], ["a", "d"]], [0, 1, 1])
            .predict_interval([["a", "z"]])
        ),
        "column .x1. in row 0: missing, or a category that",
    ),
    "text at prediction": (
        lambda: FITTED.predict(np.array([["1"], ["big"]], dtype=object)),
        "column 0 holds 'big' in row 1",
    ),
    "lazy labels": (lambda: bg.GaussianNB().fit(TWO, query()), r"give y.collect\(\)"),
    "rows on a device": (lambda: FITTED.predict(OnDevice()), r"X is a OnDevice of tests that"),
    "labels on a device": (
        lambda: bg.CategoricalNB().fit([["a"], ["b"]], OnDevice()),
        "y is a OnDevice",
    ),
    "models without names": (
        lambda: bg.compare_predictives([FITTED], [[0.0]], [0]),
        "takes a classifier or {name: classifier}, got a list: give each model a name",
    ),
    "a model that is not fitted": (
        lambda: bg.compare_predictives({"a": FITTED, "b": bg.GaussianNB()}, [[0.0]], [0]),
        r"model 'b': compare_predictives needs a fitted classifier, and this GaussianNB is not",
    ),
    "texts in a table after texts": (
        lambda: bg.MarkovNB(tokens="word").fit(["a b", "c d"], [0, 1]).predict([["a b"]]),
        "the token 'a b', and the classifier was fitted to texts; give a sequence of texts",
    ),
    "groups without a name": (
        lambda: FITTED.loo(TWO, [0, 1], groups=pd.Series(["a", None])),
        "groups has no name in row 1",
    ),
    "groups that are lists": (
        lambda: FITTED.loo(TWO, [0, 1], groups=[["a"], 1]),
        "groups must be labels that can be hashed",
    ),
    "weights by label": (
        lambda: bg.GaussianNB().fit(TWO, [0, 1], sample_weight={0: 1, 1: 2}),
        r"\[weights\[label\] for label in y\]",
    ),
    "weights by word": (
        lambda: bg.GaussianNB().fit(TWO, [0, 1], sample_weight="balanced"),
        "one for each row, got 'balanced'",
    ),
    "class_weight": (
        lambda: bg.GaussianNB(class_weight="balanced"),
        "GaussianNB has no argument 'class_weight': use class_prior=",
    ),
    "n_components": (
        lambda: bg.LinearDiscriminant(n_components=1),
        "LinearDiscriminant has no argument 'n_components'",
    ),
    "a document is missing in a pool": (
        lambda: bg.LogLinearPool().fit(["a", "b", None, "c", "d", "e"], [0, 1] * 3),
        "document 2 is missing",
    ),
    "prob in words": (
        lambda: FITTED.predict_interval(TWO, prob="x"),
        "prob must be between 0 and 1",
    ),
    "merge with nothing": (
        lambda: FITTED.merge(None),
        "cannot merge NoneType .* a fitted GaussianNB",
    ),
    "no columns": (
        lambda: bg.GaussianNB().fit(pd.DataFrame(index=range(4)), [0, 1, 0, 1]),
        r"X has no columns: 0 feature\(s\) \(shape=\(4, 0\)\)",
    ),
    "words after characters": (
        lambda: bg.MarkovNB().fit(["a b", "c d"], [0, 1]).predict([["a"], ["ab", "c"]]),
        "document 1 .* the token 'ab', and the classifier",
    ),
}


@pytest.mark.parametrize(("call", "message"), ERRORS.values(), ids=ERRORS)
@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
def test_errors_say_what_where_and_what_to_do(call, message):
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        call()


ASH = ["ash", "ash", "birch", "birch"]
MIXED = pd.DataFrame({"bill": [1, 2, 3.0], "wild": [1, 0, 1], "wing": [1, 1, 2.0]})
FIVE = frame([[0, 1], [1, 3], [3, 1], [1, 2], [2, 4]])
# classifier, rows, labels, method; class, column and advice that the error names
UNDEFINED = {
    "constant column": (
        bg.GaussianNB(),
        frame([[1, 5], [2, 6], [3, 7], [4, 7]]),
        ASH,
        "mle",
        ("class 'birch'", "feature 'wing'"),
    ),
    "flat Beta": (
        bg.BernoulliNB(),
        frame([[0, NAN], [1, 1]]),
        ["ash", "birch"],
        "map",
        ("class 'ash'", "feature 'wing'"),
    ),
    "Gamma below 1": (
        bg.PoissonNB(shape=0.5, rate=1.0),
        frame([[3, 1], [2, 0]]),
        ["ash", "birch"],
        "map",
        ("class 'birch'", "feature 'wing'", "shape >= 1"),
    ),
    "no words": (
        bg.MultinomialNB(),
        frame([[3, 1], [0, 0]]),
        ["ash", "birch"],
        "mle",
        ("class 'birch'", "0/0"),
    ),
    "singular covariance": (
        bg.QuadraticDiscriminant(),
        FIVE,
        ["ash", *ASH],
        "mle",
        ("class 'birch'", "singular", "method='map'"),
    ),
    "a block of a table": (
        bg.MixedNB({"bernoulli": ["wild"], "gaussian": ["bill", "wing"]}),
        MIXED,
        ["ash", "ash", "birch"],
        "mle",
        ("feature 'wing'", "class 'ash'"),
    ),
    "variance without expectation": (
        bg.GaussianNB(nu0=0.5),
        FIVE[:3],
        ["ash"] * 3,
        "posterior_mean",
        ("class 'birch'", "nu0 > 2"),
    ),
    "class weights": (
        bg.GaussianNB(class_alpha=0.5),
        FIVE[:2],
        ["ash", "ash"],
        "map",
        ("class 'birch'", "class_alpha"),
    ),
}


@pytest.mark.parametrize(("clf", "X", "y", "method", "said"), UNDEFINED.values(), ids=UNDEFINED)
def test_an_estimate_that_does_not_exist_is_named(clf, X, y, method, said):
    clf.partial_fit(X, y, classes=["ash", "birch"])
    for call in (clf.predict, clf.predict_proba, clf.score_samples):
        with pytest.raises(UndefinedEstimateError) as error:
            call(X.fillna(1), method=method)
        for word in (f"method={method!r} is undefined", *said):
            assert word in str(error.value)
        column = re.search(r"feature '(\w+)'", str(error.value))
        assert error.value.column == (column and column[1])
    assert np.isfinite(clf.predict_joint_log_proba(X)).all()  # the predictive always exists
    note = bg.compare_predictives(clf, X.fillna(1), y)["note"].sel(predictive=method)
    assert note == str(error.value)


def test_black_swan():
    """A bit that no class has shown: impossible by maximum likelihood, unlikely by the rest."""
    X, y = [[0, 1], [0, 0], [0, 1], [0, 0]], ["a", "a", "b", "b"]
    clf = bg.BernoulliNB(alpha=2.0, beta=2.0).fit(X, y)
    new = [[0, 1], [1, 1], [0, 0], [1, 0]]
    for call in (clf.predict, clf.predict_proba, clf.predict_log_proba, clf.decision_function):
        with pytest.raises(ImpossibleRowError, match=r"2 row\(s\), the first in row 1"):
            call(new, method="mle")
    joint = clf.predict_joint_log_proba(new, method="mle")
    assert np.isneginf(joint).all(axis=1).tolist() == [False, True, False, True]
    np.testing.assert_array_equal(np.isneginf(clf.score_samples(new, "mle")), [0, 1, 0, 1])
    for method in METHODS[:3]:
        np.testing.assert_allclose(clf.predict_proba(new, method=method), 0.5)
    assert issubclass(ImpossibleRowError, ValueError)


def test_impossible_rows_are_advised_what_there_is():
    for method, advice in (
        ("mle", "use method='posterior_predictive', or predict_joint_log_proba"),
        ("posterior_predictive", "more draws may reach it"),
    ):
        with pytest.raises(ImpossibleRowError, match=advice):
            log_class_probability(np.full((1, 2), -np.inf), method)


def test_a_row_that_one_class_alone_can_produce_is_certain_by_maximum_likelihood():
    clf = bg.BernoulliNB().fit([[0], [1], [0], [0]], ["a", "a", "b", "b"])
    np.testing.assert_array_equal(clf.predict_proba([[1]], method="mle"), [[1.0, 0.0]])
    assert clf.decision_function([[1]], method="mle").tolist() == [-np.inf]
