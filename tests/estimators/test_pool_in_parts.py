"""A pool that learns from rows in parts: a sample decides, all rows are counted."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import bayesgen as bg
from bayesgen.encoding.labelled import RowSample, labelled
from bayesgen.families.errors import NoClosedFormError

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
MEMBERS = {
    "mixed": bg.MixedNB(),
    "forest": bg.TreeAugmentedNB(missing="category", prior="default"),
    "trees": bg.MetaTreeForest(random_state=0, n_trees=8),
}


def parts(rows=X, labels=Y, step=60):
    return [(rows[i : i + step], labels[i : i + step]) for i in range(0, len(labels), step)]


def new(rows=40):
    return X.sample(rows, random_state=3)


def test_few_rows_in_parts_are_one_fit():
    in_parts = bg.fit_stream(bg.LogLinearPool(MEMBERS), parts())
    at_once = bg.LogLinearPool(MEMBERS).fit(X, Y)
    np.testing.assert_array_equal(in_parts.predict_proba(new()), at_once.predict_proba(new()))


@pytest.fixture(scope="module")
def streamed():
    return bg.fit_stream(bg.LogLinearPool(MEMBERS, max_rows=SOME), parts())


def test_members_count_all_rows(streamed):
    assert streamed.n_rows_seen_ == N
    assert streamed.n_rows_ == SOME
    whole = bg.MixedNB().fit(X, Y)
    mine = streamed.members_["mixed"]
    assert mine.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
    np.testing.assert_allclose(mine.predict_proba(new()), whole.predict_proba(new()), rtol=1e-9)
    np.testing.assert_array_equal(streamed.members_["forest"].stats_.count, np.bincount(Y))
    assert streamed.members_["trees"].n_rows_seen_ == N


def test_as_good_as_a_fit_to_all_rows(streamed):
    at_once = bg.LogLinearPool(MEMBERS, max_rows=SOME).fit(X, Y)
    rows = np.arange(N)
    gain = [np.log(clf.predict_proba(X)[rows, Y]) for clf in (streamed, at_once)]
    assert abs(gain[0].mean() - gain[1].mean()) < 0.05 * abs(gain[1].mean())


def test_a_file_holds_it(streamed, tmp_path):
    streamed.save(tmp_path / "pool.nc")
    found = bg.load(tmp_path / "pool.nc").predict_proba(new())
    np.testing.assert_allclose(found, streamed.predict_proba(new()), rtol=1e-12)


@pytest.mark.slow
def test_workers_are_a_stream():
    import dask.dataframe as dd

    frame = dd.from_pandas(X, npartitions=5), dd.from_pandas(pd.Series(Y), npartitions=5)
    found = [bg.fit_dask(bg.LogLinearPool(MEMBERS, max_rows=SOME), *frame) for _ in range(2)]
    assert found[0].n_rows_seen_ == N
    np.testing.assert_array_equal(*(clf.predict_proba(new()) for clf in found))
    whole = bg.MixedNB().fit(X, Y).log_evidence_
    assert found[0].members_["mixed"].log_evidence_ == pytest.approx(whole, rel=1e-9)


def test_chosen_members_of_texts_and_counts():
    texts = [" ".join(RNG.choice([f"w{k}" for k in range(9)], 6)) + f" c{c}" for c in Y[:200]]
    some = [(texts[i : i + 50], Y[i : i + 50]) for i in range(0, 200, 50)]
    clf = bg.fit_stream(bg.LogLinearPool([bg.MarkovNB(tokens="word")], max_rows=60), some)
    whole = bg.MarkovNB(tokens="word").fit(texts, Y[:200])
    (mine,) = clf.members_.values()
    np.testing.assert_allclose(mine.predict_proba(texts), whole.predict_proba(texts), rtol=1e-9)
    counts = sparse.csr_matrix(RNG.poisson(0.5 + Y[:, None], (N, 4)))
    clf = bg.fit_stream(bg.LogLinearPool([bg.MultinomialNB()], max_rows=90), parts(counts))
    whole = bg.MultinomialNB().fit(counts, Y)
    (mine,) = clf.members_.values()
    np.testing.assert_allclose(mine.predict_proba(counts), whole.predict_proba(counts), rtol=1e-9)


def test_what_the_sample_does_not_show():
    """A category counts as a missing cell, a class by its rows."""
    rows, labels = X.copy(), Y.astype("U1")
    pool = bg.LogLinearPool([bg.MixedNB()], max_rows=SOME)
    first = pool.__bayesgen_learner__()
    state = None
    for chunk in parts(rows, labels):
        state = first.gather(state, *chunk)
    outside = rows.index.difference(state.X.index)
    rows.loc[outside[0], "letter"] = "new"
    emptied = rows.copy()
    emptied.loc[outside[0], "letter"] = None
    found = [bg.fit_stream(clone(pool), parts(r, labels)) for r in (rows, emptied)]
    evidence = [f.members_["MixedNB"].log_evidence_ for f in found]
    assert evidence[0] == pytest.approx(evidence[1], rel=1e-12)
    labels[outside[1]] = "9"  # which moves no key of the other parts
    found = bg.fit_stream(clone(pool), parts(rows, labels))
    assert found.classes_.tolist() == ["0", "1", "2", "9"]
    assert found.predict_proba(new()).shape == (40, 4)


def clone(pool):
    return copy.deepcopy(pool)


def test_each_row_is_as_often_in_the_sample():
    n, most, times = 60, 15, 400
    hits = np.zeros(n)
    for seed in range(times):
        state = []
        for start in range(0, n, 12):
            own = labelled(np.arange(start, start + 12)[:, None], np.zeros(12, int), None)
            state.append(RowSample.of_rows(own, seed, start))
            state = [RowSample.of_parts(state, most)]
        hits[state[0].X.ravel()] += 1
    assert hits.sum() == times * most
    expected = times * most / n
    assert stats.chi2.sf(((hits - expected) ** 2 / (expected * 0.75)).sum(), n - 1) > 1e-4


def test_what_is_refused():
    pool = bg.LogLinearPool([bg.MixedNB()], max_rows=SOME)
    with pytest.raises(ValueError, match="iterator ends after the first time"):
        bg.fit_stream(pool, iter(parts()))
    with pytest.raises(ValueError, match="classes= is not for a pool"):
        bg.fit_stream(pool, parts(), classes=[0, 1, 2])
    with pytest.raises(ValueError, match="checkpoint= is not for a pool"):
        bg.fit_stream(pool, parts(), checkpoint="no.nc")
    with pytest.raises(NoClosedFormError, match=r"member .MixedNB.*sufficient statistics"):
        bg.fit_stream(bg.LogLinearPool([bg.MixedNB(prior="loo")], max_rows=SOME), parts())
    with pytest.raises(NoClosedFormError, match="without prefit=True"):
        bg.fit_stream(bg.LogLinearPool([bg.MixedNB().fit(X, Y)], prefit=True), parts())

    class Other:
        """Other rows each time."""

        times = 0

        def __iter__(self):
            self.times += 1
            return iter(parts()[self.times - 1 :])

    with pytest.raises(ValueError, match="others when they were read again"):
        bg.fit_stream(pool, Other())
    assert not hasattr(pool, "fitted_")
