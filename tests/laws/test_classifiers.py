"""Every classifier in closed form: the same fit however rows arrive, leave and are kept."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from tempfile import TemporaryDirectory

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from bayesgen.estimators import ESTIMATORS
from bayesgen.estimators.sampled import SampledClassifier
from tests.estimators.cases import CASES as PLAIN
from tests.estimators.cases import sample, table
from tests.laws.cases import is_exact

N = 48
_, CODES, Y = sample(PLAIN["GaussianNB"], N)
REAL = sample(PLAIN["LinearDiscriminant"], N)[0] * [1.0, 10.0, 0.1] + 50.0
TABLE = table(np.random.default_rng(7), CODES)
BINNED = {
    "categories": {"colour": ["red", "blue", "green"], "size": ["S", "M", "L", "XL"]},
    "cuts": {"length": [0.5, 1.5], "weight": [4.0, 7.0], "eggs": [2.0, 5.0]},
    "missing": "category",
    "strength": 4.0,
    "root_weight": 2.0,
}
# the prior of each is the same for any order of the columns
NAMES = ["GaussianNB", "PoissonNB", "CategoricalNB", "MixedNB", "MixedNB real"]
NAMES += ["LinearDiscriminant", "QuadraticDiscriminant"]
CASES = {name: (PLAIN[name].make, sample(PLAIN[name], N)[0]) for name in NAMES}
CASES |= {
    "GaussianNB tied": (partial(bg.GaussianNB, variance="tied"), REAL),
    "BernoulliNB": (partial(bg.BernoulliNB, binarize=1.0), CASES["PoissonNB"][1]),
    "MultinomialNB": (bg.MultinomialNB, sparse.csr_matrix(sample(PLAIN["MultinomialNB"], N)[0])),
    "MarkovNB": (partial(bg.MarkovNB, 3), sample(PLAIN["MarkovNB 1"], N)[0]),
    "TreeAugmentedNB": (partial(bg.TreeAugmentedNB, **BINNED), TABLE),
}
# of which the rows choose the structure: neither parts nor rows left out are a fit to others
FOREST = {"MetaTreeForest": (partial(bg.MetaTreeForest, 6, random_state=3), TABLE)}
# two parts: the last brings a class, and tokens, of its own
FIRST, LAST = np.split(np.argsort(Y, kind="stable"), [20])
FAST = ("GaussianNB", "MixedNB", "MixedNB real", "TreeAugmentedNB")


def parts(make, X):
    clf = make()
    for rows in (FIRST, LAST):
        clf.partial_fit(take(X, rows), Y[rows])
    return clf


def merged(make, X):
    one, other = (make().fit(take(X, rows), Y[rows]) for rows in (FIRST, LAST))
    return one.merge(other)


def forgotten(make, X):
    twice = np.r_[np.arange(N), FIRST]
    return make().fit(take(X, twice), Y[twice]).forget(take(X, FIRST), Y[FIRST])


def streamed(make, X):
    return bg.fit_stream(make(), [(take(X, rows), Y[rows]) for rows in (FIRST, LAST)])


def spread(make, X):
    if isinstance(X, pd.DataFrame):
        blocks, labels = dd.from_pandas(X, npartitions=2), dd.from_pandas(pd.Series(Y), 2)
    else:
        rows = X.toarray() if sparse.issparse(X) else X
        blocks, labels = da.from_array(rows, chunks=(20, *rows.shape[1:])), Y
    with dask.config.set(scheduler="synchronous"):
        return bg.fit_dask(make(), blocks, labels)


def weighted(make, X):
    rows = np.r_[FIRST, LAST, FIRST]  # half of each of the first, twice
    weight = np.r_[np.full(20, 0.5), np.ones(N - 20), np.full(20, 0.5)]
    return make().fit(take(X, rows), Y[rows], sample_weight=weight)


def reloaded(make, X):
    with TemporaryDirectory() as folder:
        make().fit(X, Y).save(f"{folder}/model.nc")
        return bg.load(f"{folder}/model.nc")


def pickled(make, X):
    return pickle.loads(pickle.dumps(make().fit(X, Y)))


def same(found, expected, X, tol=1e-8):
    for method in ("predict_log_proba", "score_samples"):
        if hasattr(expected, method):  # a forest of label trees has no density of rows
            here, there = (getattr(clf, method)(X) for clf in (found, expected))
            np.testing.assert_allclose(here, there, rtol=tol, atol=tol)
    if is_exact(type(expected.prior_.family)):
        assert found.log_evidence_ == pytest.approx(expected.log_evidence_, rel=tol)


def test_no_classifier_is_forgotten():
    closed = {one.__name__ for one in ESTIMATORS if not issubclass(one, SampledClassifier)}
    assert closed - {"GenerativeClassifier"} == {name.split()[0] for name in CASES | FOREST}


def permuted(make, X):
    rows = np.random.default_rng(1).permutation(N)
    return make().fit(take(X, rows), Y[rows])


HOW = [parts, merged, forgotten, streamed, spread, weighted, reloaded, pickled, permuted]
OF_ITS_OWN = [parts, reloaded, permuted]  # what a classifier adds to its family: its reader


@pytest.mark.parametrize(
    ("name", "how"),
    [(name, how) for name in CASES for how in (HOW if name in FAST else OF_ITS_OWN)]
    + [("MetaTreeForest", how) for how in (reloaded, pickled, permuted)],
)
def test_however_rows_arrive_the_fit_is_the_same(name, how):
    make, X = (CASES | FOREST)[name]
    clf = how(make, X)
    same(clf, make().fit(X, Y), X)
    assert how is weighted or clf.n_rows_seen_ == N


def in_reverse(X):
    """X with its columns in the other order, or its own if it has none."""
    if isinstance(X, list):
        return X
    return X[X.columns[::-1]] if isinstance(X, pd.DataFrame) else X[:, ::-1]


@pytest.mark.parametrize("name", CASES | FOREST)
def test_order_names_and_containers_change_no_probability(name):
    make, X = (CASES | FOREST)[name]
    p = make().fit(X, Y).predict_proba(X)
    turned = make().fit(in_reverse(X), Y).predict_proba(in_reverse(X))
    np.testing.assert_allclose(turned, p, rtol=1e-7, atol=1e-12)
    renamed = make().fit(X, -CODES).predict_proba(X)
    np.testing.assert_allclose(renamed[:, ::-1], p, rtol=1e-9, atol=1e-12)
    clf = make().fit(X, Y)
    with ThreadPoolExecutor(2) as pool:
        for at_once in pool.map(clf.predict_proba, [X, X]):
            np.testing.assert_array_equal(at_once, p)
    if isinstance(X, np.ndarray) and X.dtype == float:
        narrow = X.astype(np.float32)
        clf = make().fit(narrow.astype(float), Y)
        frame = pd.DataFrame(narrow, columns=[f"c{j}" for j in range(X.shape[1])])
        foreign = narrow.astype(">f4"), frame.astype(">f4")
        for rows in (narrow, np.asfortranarray(narrow), frame, *foreign):
            p_narrow = make().fit(rows, Y).predict_proba(rows)
            np.testing.assert_allclose(p_narrow, clf.predict_proba(narrow), rtol=1e-7, atol=1e-12)
