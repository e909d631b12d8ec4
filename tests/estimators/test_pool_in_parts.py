"""A pool that learns from rows in parts: it is fitted to a uniform sample of them."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.utils import shuffle

import bayesgen as bg
from bayesgen.encoding.labels import RowSample, labelled
from bayesgen.estimators import pool

X, Y = shuffle(*load_iris(return_X_y=True, as_frame=True), random_state=0)
SOME = 60


@pytest.fixture
def empty_pool(monkeypatch):
    monkeypatch.setattr(pool, "_SAMPLE", SOME)
    return bg.LogLinearPool([bg.GaussianNB()], random_state=3)


@pytest.mark.usefixtures("few_exponents")
def test_of_more_rows_a_sample_is_fitted(empty_pool):
    parts = [(X[i : i + 40], Y[i : i + 40]) for i in range(0, len(Y), 40)]
    with pytest.warns(UserWarning, match="uniform sample of 60 of 150 rows"):
        bg.fit_stream(empty_pool, parts)
    p, sample = empty_pool.predict_proba(X), None
    for rows, labels in parts:
        sample = empty_pool.__bayesgen_learner__().gather(sample, rows, labels)
    assert empty_pool.n_rows_seen_ == SOME
    at_once = empty_pool.fit(sample.X, sample.labels)
    np.testing.assert_array_equal(at_once.predict_proba(X), p)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the pool is fitted to a uniform sample")
def test_workers_make_the_same_sample_each_time(empty_pool):
    import dask.dataframe as dd

    frame = dd.from_pandas(X, npartitions=5), dd.from_pandas(Y, npartitions=5)
    p = [bg.fit_dask(empty_pool, *frame).predict_proba(X) for _ in range(2)]
    assert empty_pool.n_rows_seen_ == SOME
    np.testing.assert_array_equal(*p)


def test_each_row_is_as_often_in_the_sample():
    n, most, times = 60, 15, 400
    hits = np.zeros(n)
    for seed in range(times):
        state = []
        for start in range(0, n, 12):
            block = labelled(np.arange(start, start + 12)[:, None], np.zeros(12, int), None)
            state.append(RowSample.of_rows(block, seed, start))
            state = [RowSample.of_parts(state, most)]
        hits[state[0].X.ravel()] += 1
    assert hits.sum() == times * most
    expected = times * most / n
    assert stats.chi2.sf(((hits - expected) ** 2 / (expected * 0.75)).sum(), n - 1) > 1e-4
