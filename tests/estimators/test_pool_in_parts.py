"""A pool that learns from rows in parts: it is fitted to a uniform sample of them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesgen as bg
from bayesgen.encoding.labelled import RowSample, labelled
from bayesgen.estimators import pool

N, SOME = 420, 150
RNG = np.random.default_rng(7)
Y = RNG.integers(0, 3, N)
X = pd.DataFrame(
    {
        "real": RNG.normal(size=N) + Y,
        "spread": RNG.normal(size=N) * (1 + Y),
        "letter": np.array(list("uvwxyz"))[(Y + RNG.integers(0, 4, N)) % 6],
        "bit": RNG.random(N) < 0.3 + 0.1 * Y,
    }
)
X.loc[::17, "real"] = np.nan
MEMBERS = {"mixed": bg.MixedNB(), "trees": bg.MetaTreeForest(random_state=0, n_trees=8)}


def parts(rows=X, labels=Y, step=60):
    return [(rows[i : i + step], labels[i : i + step]) for i in range(0, len(labels), step)]


def new(rows=40):
    return X.sample(rows, random_state=3)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(pool, "_SAMPLE", SOME)


@pytest.mark.usefixtures("small_sample")
def test_of_more_rows_a_sample_is_fitted():
    clf = bg.LogLinearPool([bg.MixedNB()], random_state=3)
    with pytest.warns(UserWarning, match="uniform sample of 150 of 420 rows"):
        bg.fit_stream(clf, parts())
    drawn = None
    for rows, labels in parts():
        drawn = clf.__bayesgen_learner__().gather(drawn, rows, labels)
    at_once = bg.LogLinearPool([bg.MixedNB()], random_state=3).fit(drawn.X, drawn.labels)
    np.testing.assert_array_equal(clf.predict_proba(new()), at_once.predict_proba(new()))
    assert clf.n_rows_seen_ == SOME


@pytest.mark.slow
@pytest.mark.usefixtures("small_sample")
@pytest.mark.filterwarnings("ignore:the pool is fitted to a uniform sample")
def test_workers_make_the_same_sample_each_time():
    import dask.dataframe as dd

    frame = dd.from_pandas(X, npartitions=5), dd.from_pandas(pd.Series(Y), npartitions=5)
    fits = [bg.fit_dask(bg.LogLinearPool([bg.MixedNB()]), *frame) for _ in range(2)]
    assert fits[0].n_rows_seen_ == SOME
    np.testing.assert_array_equal(*(clf.predict_proba(new()) for clf in fits))


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
