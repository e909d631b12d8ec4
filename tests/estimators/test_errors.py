"""Refusals say what, where, and what to do; estimates that do not exist are named."""

import re
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB as PlugInNB

import bayesgen as bg
from bayesgen.families.errors import NoClosedFormError, NoPosteriorError, UndefinedEstimateError
from bayesgen.families.names import METHODS
from bayesgen.predict.probabilities import ImpossibleRowError, log_class_probability
from tests.drawn import drawn
from tests.estimators.cases import CASES, NAN, PSI, fitted

pytestmark = pytest.mark.usefixtures("few_exponents")


@pytest.fixture(autouse=True, scope="module")
def stated_priors():
    """Fits choose their prior, as they do for users."""


def frame(X, names="bill wing mass"):
    return pd.DataFrame(X, columns=names.split()[: np.shape(X)[1]])


def prior_of_pymc():
    import pymc as pm

    return pm.Normal.dist(0, 1)


class OnDevice:
    """As a tensor of a graphics card: NumPy is refused by its owner."""

    shape, ndim = (2, 1), 2

    def __dlpack__(self): ...

    def __len__(self):
        return 2

    def __array__(self, *args, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")


QUERY = pl.LazyFrame({"bill": [1.0, 2.0]})
WORDS = pd.DataFrame({"bill": [1.0, 2.0], "place": ["sea", "lake"]})
TWO, PLANE = [[0.0], [1]], [[0, 1], [1, 0]]
SPARSE = sparse.csr_matrix
DAYS = pd.to_datetime("2026-11-23")
NB, LDA, QDA = bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant
BERNOULLI, POISSON, MARKOV, MIXED = bg.BernoulliNB, bg.PoissonNB, bg.MarkovNB, bg.MixedNB
# what is asked of fit: classifier, rows, the message; labels are 0, 1, 1
FITS = [
    (NB(), WORDS, "'place' holds 'sea' in row 0, and GaussianNB takes numbers"),
    (
        POISSON(),
        WORDS.astype({"place": "category"}),
        "column 'place' .* PoissonNB .*; MixedNB takes",
    ),
    (NB(), WORDS.assign(place=DAYS), "column 'place' holds Datetime.*: .* as to days"),
    (NB(), WORDS.assign(place=[[1], [2, 3]]), r"'place' holds \[1\] \(list\) in row 0"),
    (MIXED(), WORDS.to_dict("records"), r"holds records \(dictionaries\): give pandas"),
    (MIXED(), WORDS[["bill"]].to_xarray(), r"a Dataset of xarray.* give X.to_dataframe\(\)"),
    (NB(), WORDS.assign(place=[1j, 2]), "column 'place' holds complex numbers"),
    (NB(), pd.DataFrame(np.eye(2), columns=["bill"] * 2), "more than one column 'bill'"),
    (NB(mu0=prior_of_pymc()), TWO, "mu0 must be a number or an array of .* a variable"),
    (NB(mu0="normal"), TWO, "mu0 must be a number or an array of numbers, got"),
    (NB(), QUERY, r"X is lazy \(polars.*collect"),
    (BERNOULLI(binarize=None), frame([[0, 1], [1, 0], [0, 2]]), "2 in row 2, column 'wing'"),
    (BERNOULLI(binarize=None), SPARSE([[0, 1], [0, 3]]), "got 3 in row 1, column 'x1'"),
    (POISSON(), frame([[0, 1], [4, -2]]), "must be >= 0, got -2 in row 1, column 'wing'"),
    (bg.MultinomialNB(), SPARSE([[0, 1], [-4, 0]]), "got -4 in row 1, column 'x0'"),
    (bg.MultinomialNB(), frame([[0, 1], [4, NAN]]), "nan in row 1, column 'wing'; a document with"),
    (LDA(), frame([[0, 1], [4, NAN]]), "'wing' in row 1.*covariance='diagonal' or GaussianNB"),
    (BERNOULLI(alpha=[1.0, 2, 3]), PLANE, r"alpha has shape \(3,\).*\(class, feature\) = \(2"),
    (bg.MultinomialNB(alpha=0), PLANE, "alpha must be > 0, got 0: the prior would be improper"),
    (NB(class_alpha=[1.0, 2, 3]), TWO, r"class_alpha has shape \(3,\)"),
    (QDA(nu0=1.0), [[0.0, 1, 2], [1, 2, 5]], "nu0 must be > D - 1 = 2"),
    (QDA(psi0=[[1.0, 2], [2, 1]]), PLANE, "psi0 must be symmetric positive"),
    (QDA(psi0=PSI, covariance="diagonal"), np.eye(3), "off-diagonal elements"),
    (NB(variance="shared"), TWO, "variance must be one of 'class'.*'shared'"),
    (QDA(covariance="tied"), TWO, "must be one of 'full', 'diagonal', 'spherical', got 'tied'"),
    (NB(prior="flat"), TWO, "prior must be one of 'default', 'empirical', 'loo', got 'flat'"),
    (bg.CategoricalNB(unseen="skip"), [["a"], ["b"]], "'prior', 'ignore', 'raise', got 'skip'"),
    (MARKOV(tokens="line"), ["a", "b"], "'word part', or a callable, got 'line'"),
    (MARKOV(order=0), ["a", "b"], "order"),
    (MARKOV(), ["a", None], "document 1 is missing"),
    (MARKOV(), frame([["a b"], ["c d"]]), "the token 'a b', and X is a table of one column; give"),
    (bg.GenerativeClassifier(family="gaussian"), TWO, "must be an instance of a Family"),
    (NB(mu0={"bill": 1.0}), frame(PLANE), "mu0 has no value for column 'wing'"),
    (NB(mu0={"e": 1.0}), frame(PLANE), "mu0: no column 'e'"),
    (NB(mu0=frame(PLANE)[::-1]), frame(PLANE), r"mu0 is labelled \[1, 0\]"),
    (NB(class_alpha=pd.Series({1: 9.0, 0: 1.0})), TWO, r"labelled \[1, 0\]"),
    (NB(class_alpha=xr.DataArray([9.0, 1], {"class": [1, 0]})), TWO, r"labelled \[1, 0\]"),
    (bg.MixedNB(mu0=pd.Series({"wing": 1, "bill": 2.0})), frame(PLANE), r"\['wing', 'bill'\]"),
    (bg.LogLinearPool([PlugInNB()]), TWO, "no exact leave-one-out"),
    (bg.LogLinearPool([bg.LogLinearPool()]), TWO, "LogLinearPool has no exact leave-one-out"),
    (bg.LogLinearPool([]), TWO, "at least one"),
    (bg.LogLinearPool([("a", NB()), ("a", NB())]), TWO, "given twice"),
    (bg.LogLinearPool("all"), TWO, "members must be 'auto'"),
    (bg.MetaTreeForest(n_trees=0), TWO, "n_trees"),
    (bg.MetaTreeForest(split=1.0), TWO, "split"),
    (bg.MetaTreeForest(alpha=0.0), TWO, "alpha"),
    (bg.MetaTreeForest(candidates=0.0), TWO, "candidates"),
    (bg.TreeAugmentedNB(n_bins=1), frame(PLANE), "n_bins"),
    (bg.TreeAugmentedNB(missing="no"), frame(PLANE), "missing must be"),
    (bg.TreeAugmentedNB(missing="refuse"), frame([[0.5, 1], [1.5, NAN]]), r"'wing'.*missing"),
    (bg.TreeAugmentedNB(unseen="prior"), frame(PLANE), "unseen must be"),
    (bg.TreeAugmentedNB(cuts={"width": [1.0]}), frame(PLANE), "no column 'width'"),
    (bg.TreeAugmentedNB(cuts={"wing": [2.0, 1.0]}), frame(PLANE), "rising"),
    (bg.TreeAugmentedNB(cuts=[1.0]), frame(PLANE), r"cuts must be a dict .* got \[1\.0\]"),
    (bg.TreeAugmentedNB(columns={"poisson": ["wing"]}), frame(PLANE), "have no bins"),
]


def check_place(error):
    """Rows and columns are facts, not words alone."""
    rows = re.findall(r"(?:in row|is row|document) (\d+)", str(error))
    if len(rows) == 1:
        assert error.row == int(rows[0])
        assert error.column is None or f"column {error.column!r}" in str(error)


@pytest.mark.parametrize(("clf", "X", "message"), FITS, ids=[message for *_, message in FITS])
def test_errors_of_a_fit_say_what_where_and_what_to_do(clf, X, message):
    n = 2 if sparse.issparse(X) or not hasattr(X, "__len__") else len(X)
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}") as error:
        clf.fit(X, [0, 1, 1][:n])
    check_place(error.value)


FITTED, (CLF, X, Y) = NB().fit(TWO, [0, 1]), fitted(CASES["GaussianNB"])
POOL = bg.LogLinearPool([NB(), NB(variance="tied")])
WEIGHT = np.arange(60) % 5 + 0.5
UNSEEN = bg.MetaTreeForest(2, unseen="raise")


@cache
def forest():
    return bg.MetaTreeForest(4).fit(X, Y)


@cache
def given_draws():
    return drawn(NB(), X, Y, WEIGHT, draws=50)


def labelled(y):
    return lambda: NB().fit([[0.0], [1.0], [2.0]], y)


def declared(classes):
    return lambda: NB().partial_fit(TWO, [0, 1], classes=classes)


def weighted(class_prior, method="predict_proba"):
    return lambda: getattr(CLF, method)(X, class_prior=class_prior)


def grouped(groups, clf=FITTED):
    return lambda: clf.fit(X, Y, groups=groups)


def scored(X, y, weight=WEIGHT, partial=False):
    return lambda: given_draws().loo_log_joint(X, y, weight, partial=partial)


def of_texts(tokens, X):
    return lambda: MARKOV(tokens=tokens).fit(["a b", "c d"], [0, 1]).predict(X)


def far(method):
    return lambda: getattr(LDA().fit(PLANE, [0, 1]), method)([[0.0, 0.0], [1e200, 0.0]])


def of_trees(X, new):
    return lambda: bg.TreeAugmentedNB().fit(X, [0, 1, 1]).predict_interval(new)


BEYOND = r"column 'x0' holds 1e\+200 in row 1, beyond"
NO_LABEL = "no label in 1 row"
DATES = np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[D]")
MIXED_LABELS = np.array([1, "a", 2.5], dtype=object)
REFUSED = {
    ValueError: [
        # rows
        (lambda: POOL.fit(X, Y).predict_interval(X[:0]), "Found array with 0 sample"),
        (
            of_trees([["a", "c"], ["b", "d"], ["a", "d"]], [["a", "z"]]),
            "'x1' in row 0: missing, or",
        ),
        (
            lambda: NB().fit(frame(np.empty((4, 0))), [0, 1] * 2),
            r"X has no columns: 0 feature\(s\)",
        ),
        (lambda: FITTED.predict([["1"], ["big"]]), "column 0 holds 'big' in row 1"),
        (
            of_texts("word", [["a b"]]),
            "the token 'a b', .* fitted to texts; give a sequence of texts",
        ),
        (
            of_texts("char", [["a"], ["ab", "c"]]),
            "document 1 .* the token 'ab', and the classifier",
        ),
        (lambda: bg.LogLinearPool().fit(["a", None] * 3, [0, 1] * 3), "document 1 is missing"),
        (far("score_samples"), BEYOND),
        (far("typicality"), BEYOND),
        (far("predict_set"), BEYOND),
        (lambda: bg.TreeAugmentedNB().fit(np.eye(160), [0, 1] * 80), 'structure="tree"'),
        (lambda: UNSEEN.fit([["a"], ["b"]], [0, 1]).predict([["z"]]), "holds 'z' in row 0"),
        # labels
        (labelled([NAN, 1.0, 0.0]), NO_LABEL),
        (labelled(["a", None, "b"]), NO_LABEL),
        (labelled(pd.Series(["a", "b", pd.NA], dtype="string")), NO_LABEL),
        (labelled(pd.Series([True, False, None], dtype="boolean")), NO_LABEL),
        (labelled(pd.Categorical(["a", "b", None])), NO_LABEL),
        (labelled(pl.Series(["a", "b", None])), NO_LABEL),
        (labelled(DATES), NO_LABEL),
        (lambda: POOL.fit(X, np.where(Y == "ash", None, Y)), "no label in 20 row"),
        (labelled([0.0, np.inf, 1.0]), "infinite label in row 1"),
        (labelled([0.1, 0.2, 0.35]), "[Uu]nknown label type"),
        (labelled(MIXED_LABELS), "[Uu]nknown label type"),
        (labelled([0, 1]), "inconsistent numbers of samples"),
        (labelled(None), "requires y"),
        (labelled([[0, 1], [1, 0], [1, 1]]), "1d array"),
        (declared([1, 2]), r"not in classes: \[0\]"),
        (declared([0, 1, NAN]), "classes holds nan, which is no label"),
        (declared(np.array([0, 1, None])), "classes holds None"),
        (declared(np.ma.array([0, 1, 2], mask=[0, 0, 1])), "classes holds None"),
        (declared({0, 1}), r"classes must be a list of labels, got \{0, 1\}"),
        (declared([[0, 1]]), "list of labels"),
        (declared(1), "list of labels"),
        (lambda: bg.fit_stream(POOL, [(X, Y)], classes=[0, 1]), "classes= is not for a pool"),
        (lambda: bg.fit_stream(POOL, [(X, Y)], checkpoint="c.nc"), "checkpoint= is not for a pool"),
        # weights, groups, and the training rows
        (lambda: NB().fit(TWO, [0, 1], [1, 1e-320]), "sample_weight holds .* in row 1, below"),
        (grouped([1, 2]), "one entry for each of 60 rows"),
        (grouped([None, *range(59)]), "groups has no name in row 0"),
        (lambda: FITTED.loo(TWO, [0, 1], groups=pd.Series(["a", None])), "no name in row 1"),
        (lambda: forest().loo(X, Y, groups=3), "groups must be those of the fit"),
        (lambda: CLF.loo(X, Y, groups=WEIGHT[1:]), "one entry for each"),
        (lambda: CLF.loo(X[:30], Y[:30]), "got weights"),
        (lambda: CLF.loo(X + 1e-3, Y), "same classes and other features"),
        (lambda: CLF.loo(np.r_[X, X], np.r_[Y, Y], partial=True), "some of these were not"),
        (lambda: CLF.loo(X, Y, target="x"), "target must be"),
        (scored(X, Y, None), "got weights"),
        (scored(X, Y, WEIGHT[::-1]), "got weights"),
        (scored(X, Y, 3 * WEIGHT, partial=True), "got weights"),
        (scored(X, np.where(Y == "ash", "birch", Y)), "got weights"),
        (lambda: forest().loo(X[1:], Y[1:]), "training rows"),
        (lambda: POOL.fit(X, Y).loo(X + 1, Y), "training rows"),
        (lambda: CLF.typicality(X, training=(X[::3], Y[::3])), "needs the training rows"),
        (lambda: CLF.typicality(X, training=X), r"must be \(X, y\)"),
        (lambda: bg.StudentTNB().with_posterior({}), "not fitted: with_posterior needs X and y"),
        # class weights and methods
        (weighted([0.5, 0.5]), r"shape \(2,\), but there are 3 classes: \['ash', 'birch'"),
        (weighted(0.5), r"shape \(\)"),
        (weighted([[0.2, 0.3, 0.5]]), r"shape \(1, 3\)"),
        (weighted([0.5, 0.5, 0.5]), r"sum to 1.*1\.5.*divide by the sum"),
        (weighted([1.5, -0.5, 0.0]), "non-negative"),
        (weighted([NAN, 0.5, 0.5]), "sum to 1"),
        (weighted({"ash": 0.5, "birch": 0.5}), r"no weight for \['cedar'\]"),
        (weighted({"ash": 0.5, "birch": 0.3, "elm": 0.2}), "'elm' is not a class"),
        (weighted({0: 0.5, 1: 0.3, 2: 0.2}), "0 is not a class; the classes are"),
        (weighted("uniform"), "one weight per class.*'uniform'"),
        (weighted([1, 1, 1], "predict"), "sum to 1"),
        (weighted([1, 1, 1], "score_samples"), "sum to 1"),
        (weighted([1, 1, 1], "decision_function"), "sum to 1"),
        (weighted([1, 1, 1], "predict_interval"), "sum to 1"),
        (weighted([1, 1, 1], "predict_posterior"), "sum to 1"),
        (weighted([1, 1, 1], "predict_uncertainty"), "sum to 1"),
        (lambda: CLF.predict(X, method="x"), "_predictive', 'posterior_mean', 'map', 'mle'"),
        (lambda: CLF.linear_form("x"), "method must be one of"),
        (lambda: CLF.predict_interval(X, prob=1.0), "prob must be between 0 and 1"),
        (lambda: CLF.predict_interval(X, prob=0.0), "prob must be between 0 and 1"),
        (lambda: CLF.predict_interval(X, prob="x"), "prob must be between 0 and 1"),
        (lambda: CLF.predict_interval(X, kind="sd"), "kind must be one of 'eti', 'hdi'"),
        (lambda: CLF.predict_posterior(X, draws=1), "draws must be an integer >= 2, got 1"),
        (lambda: CLF.predict_posterior(X, draws=10**8), "GiB, more than 4: give fewer rows"),
        (lambda: CLF.predict_uncertainty(X, unit="dits"), "unit must be one of 'nats', 'bits'"),
        (lambda: CLF.predict_set(X, coverage=1.0), "coverage must be"),
        (lambda: bg.decide(CLF, X, 1 - np.eye(3), typicality=2), "typicality must be"),
        (lambda: CLF.simulate(3, "elm"), "'elm' is not a class"),
        (lambda: CLF.simulate(3, source="prior"), "one of 'predictive', 'draw'"),
        (lambda: CLF.simulate(-1), "n must be an integer >= 0"),
    ],
    TypeError: [
        (lambda: FITTED.predict(OnDevice()), "X is a OnDevice of tests that"),
        (lambda: NB().fit(TWO, OnDevice()), "y is a OnDevice"),
        (lambda: NB().fit(TWO, QUERY), r"give y.collect\(\)"),
        (labelled([1, "a", 2]), "of one type, got 1 in row 0 and 'a' in row 1"),
        (lambda: CLF.partial_fit(X, np.arange(60) % 3), "labels of one type"),
        (declared(["0", "1"]), "labels of one type"),
        (lambda: NB().fit(TWO, [0, 1], {0: 1}), r"\[weights\[label\] for label in y\]"),
        (lambda: NB().fit(TWO, [0, 1], "balanced"), "one for each row, got 'balanced'"),
        (grouped([[k] for k in range(60)]), "groups must be labels that can be hashed"),
        (grouped(5), "one name for each row"),
        (grouped(5, POOL), "one name for each row"),
        (lambda: POOL.fit(X, Y, draws=10), "takes no draws="),
        (lambda: bg.compare_predictives([FITTED], TWO, [0, 1]), "a list: give each model a name"),
        (lambda: FITTED.merge(None), "cannot merge NoneType .* a fitted GaussianNB"),
        # arguments of scikit-learn
        (lambda: NB(class_weight="x"), "has no argument 'class_weight': use class_prior="),
        (lambda: NB(priors=1.0), "GaussianNB has no argument 'priors': use class_prior="),
        (lambda: NB(var_smoothing=1.0), "sigma2_0="),
        (lambda: bg.CategoricalNB(min_categories=1.0), "categories="),
        (lambda: bg.MultinomialNB(fit_prior=1.0), "class_alpha="),
        (lambda: LDA(shrinkage=1.0), "psi0="),
        (lambda: LDA(n_components=1), "has no argument 'n_components'"),
        (lambda: NB(nonsense=1.0), "unexpected keyword"),
    ],
    AttributeError: [
        (lambda: forest().score_samples(X), "density of x"),
        (lambda: forest().simulate(2), "density of x"),
        (lambda: forest().typicality(X), "density of x"),
        (lambda: CLF.coef_, "quadratic.*estimates"),
        (lambda: QDA().fit(np.eye(4), [0, 0, 1, 1]).coef_, "LinearDiscriminant is linear"),
        (lambda: NB(nu0=1.0).fit(X[:4], Y[:4]).var_, "estimates"),
        (lambda: CLF.covariance_, "no parameter of NormalInverseGamma"),
    ],
    NoClosedFormError: [
        (grouped(WEIGHT, bg.StudentTNB()), "sampled by NUTS"),
        (lambda: given_draws().loo(X, Y, groups=5), "groups="),
        (lambda: given_draws().forget(X[:1], Y[:1]), "forget works on sufficient statistics"),
        (lambda: forest().merge(forest()), "chosen the structures"),
        (lambda: forest().forget(X, Y), "chosen the structures"),
    ],
    NotImplementedError: [
        (lambda: forest().predict_proba(X, class_prior=[0.2, 0.3, 0.5]), "density of x"),
        (lambda: POOL.fit(X, Y).loo(X, Y, target="joint"), "density of x"),
    ],
    NoPosteriorError: [
        (lambda: forest().log_evidence_, "posterior of none"),
        (lambda: forest().posterior_, "posterior of none"),
    ],
    NotFittedError: [
        (lambda: NB().forget(X, Y), "not fitted yet"),
        (lambda: bg.LogLinearPool().with_posterior({}), "not fitted"),
        (
            lambda: bg.compare_predictives({"a": FITTED, "b": NB()}, TWO, [0, 1]),
            "model 'b': compare_predictives needs a fitted classifier, and this",
        ),
    ],
}


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [(error, *entry) for error, entries in REFUSED.items() for entry in entries],
    ids=[message for entries in REFUSED.values() for _, message in entries],
)
@pytest.mark.filterwarnings("ignore::bayesgen.UnknownCategoryWarning")
@pytest.mark.filterwarnings("ignore::bayesgen.MonteCarloWarning")
def test_refusals_say_what_where_and_what_to_do(error, call, message):
    with pytest.raises(error, match=f"(?s){message}") as caught:
        call()
    check_place(caught.value)


ASH = ["ash", "ash", "birch", "birch"]
FIVE = frame([[0, 1], [1, 3], [3, 1], [1, 2], [2, 4]])
TABLE = pd.DataFrame({"bill": [1, 2, 3.0], "wild": [1, 0, 1], "wing": [1, 1, 2.0]})
BLOCKS = bg.MixedNB({"bernoulli": ["wild"], "gaussian": ["bill", "wing"]})
UNDEFINED = [  # classifier, rows, labels, method; class, column and advice that the error names
    (NB(), frame([[1, 5], [2, 6], [3, 7], [4, 7]]), ASH, "mle", "birch wing"),
    (BERNOULLI(), frame([[0, NAN], [1, 1]]), ASH[1:3], "map", "ash wing"),
    (POISSON(0.5, 1.0), frame([[3, 1], [2, 0]]), ASH[1:3], "map", "birch wing shape >= 1"),
    (bg.MultinomialNB(), frame([[3, 1], [0, 0]]), ASH[1:3], "mle", "birch  0/0"),
    (QDA(), FIVE, ["ash", *ASH], "mle", "birch  singular.*method='map'"),
    (BLOCKS, TABLE, ASH[:3], "mle", "ash wing"),
    (NB(nu0=0.5), FIVE[:3], ASH[:2] + ASH[:1], "posterior_mean", "birch bill nu0 > 2"),
    (NB(class_alpha=0.5), FIVE[:2], ASH[:2], "map", "birch  class_alpha"),
]


@pytest.mark.parametrize(("clf", "X", "y", "method", "said"), UNDEFINED)
def test_an_estimate_that_does_not_exist_is_named(clf, X, y, method, said):
    clf.partial_fit(X, y, classes=["ash", "birch"])
    label, column, advice = [*said.split(" ", 2), ""][:3]
    for call in (clf.predict, clf.predict_proba, clf.score_samples):
        with pytest.raises(UndefinedEstimateError, match=advice or None) as error:
            call(X.fillna(1), method=method)
        assert f"method={method!r} is undefined" in str(error.value)
        assert f"class {label!r}" in str(error.value)
        assert (error.value.column or "") == column
        assert not column or f"feature {column!r}" in str(error.value)
    assert np.isfinite(clf.predict_joint_log_proba(X)).all()  # the predictive always exists
    note = bg.compare_predictives(clf, X.fillna(1), y)["note"].sel(predictive=method)
    assert note == error.value.cause


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
        with pytest.raises(ImpossibleRowError, match=advice or None):
            log_class_probability(np.full((1, 2), -np.inf), method)


def test_a_row_that_one_class_alone_can_produce_is_certain_by_maximum_likelihood():
    clf = bg.BernoulliNB().fit([[0], [1], [0], [0]], ["a", "a", "b", "b"])
    np.testing.assert_array_equal(clf.predict_proba([[1]], method="mle"), [[1.0, 0.0]])
    assert clf.decision_function([[1]], method="mle").tolist() == [-np.inf]
