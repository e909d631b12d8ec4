"""fit_dask: the numbers of one fit, wherever the blocks are; every classifier: laws."""

import sys

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import bayesgen as bg

N = 600


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    y = np.sort(rng.choice(["a", "b", "c"], N, p=[0.5, 0.4, 0.1]))  # "c" in the last block only
    return 1e6 + rng.normal(size=(N, 4)) + (y == "b")[:, None], y


def agree(a, b, X):
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.n_rows_seen_ == b.n_rows_seen_
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=1e-10)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-7)


def same_bits(a, b):
    assert a.log_evidence_ == b.log_evidence_
    for (_, mine), (_, theirs) in zip(
        a.stats_.features.arrays().values(), b.stats_.features.arrays().values(), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("chunks", [(37, 3), (N, 2)], ids=str)
def test_arrays(rows, chunks):
    X, y = rows
    weight = np.arange(N) % 3 * 1.0
    blocks, labels = da.from_array(X, chunks=chunks), da.from_array(y, chunks=41)
    clf = bg.LinearDiscriminant()
    whole = bg.LinearDiscriminant().fit(X, y, sample_weight=weight)
    assert bg.fit_dask(clf, blocks, labels, weight) is clf
    agree(clf, whole, X)
    agree(bg.fit_dask(clf, xr.DataArray(blocks), xr.DataArray(labels), weight), whole, X)


def test_unknown_sizes_and_empty_blocks(rows):
    X, y = rows
    blocks, labels = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    keep = labels != "a"  # the first blocks are empty now
    clf = bg.fit_dask(bg.GaussianNB(), blocks[keep], labels[keep])
    agree(clf, bg.GaussianNB().fit(X[y != "a"], y[y != "a"]), X)


def test_sparse_blocks():
    kind = sparse.csr_matrix
    rng = np.random.default_rng(0)
    counts, y = rng.poisson(0.3, size=(N, 30)), rng.integers(0, 3, N)
    blocks = da.from_array(counts, chunks=(150, 30)).map_blocks(kind, meta=kind((0, 0)))
    whole = bg.MultinomialNB().fit(kind(counts), y)
    agree(bg.fit_dask(bg.MultinomialNB(), blocks, y), whole, counts)


def test_data_frames_and_documents(rows):
    X, y = rows
    words = np.array(["red", "green", "blue", "grey"], dtype=object)
    colour = words[np.random.default_rng(4).integers(0, 3, N) + (y == "c")]
    frame = pd.DataFrame({"length": X[:, 0], "colour": colour, "label": y})
    frame.loc[::7, "length"] = np.nan
    blocks, columns = dd.from_pandas(frame, npartitions=7), ["length", "colour"]
    clf = bg.fit_dask(bg.MixedNB(), blocks[columns], blocks["label"])
    agree(clf, bg.MixedNB().fit(frame[columns], y), frame[columns])
    with pytest.raises(TypeError, match=r"X.map_partitions\(clf.predict_proba\)"):
        clf.predict(blocks[columns])
    lazy = blocks[columns].map_partitions(clf.predict_proba, meta=np.empty((0, 3)))
    np.testing.assert_array_equal(lazy.compute(), clf.predict_proba(frame[columns]))
    clf = bg.fit_dask(bg.MarkovNB(), blocks["colour"], blocks["label"])
    agree(clf, bg.MarkovNB().fit(frame["colour"], y), frame["colour"])


def test_what_is_shared_is_computed_once(rows):
    X, _ = rows
    calls = []

    def load(k):
        calls.append(k)
        return X[k * 100 : (k + 1) * 100]

    parts = [da.from_delayed(dask.delayed(load)(k), (100, 4), float) for k in range(6)]
    blocks = da.concatenate(parts)
    bg.fit_dask(bg.GaussianNB(), blocks, blocks[:, 0] > 1e6)
    assert sorted(calls) == list(range(6))


def test_schedulers_agree_bit_for_bit(rows):
    X, y = rows
    blocks = da.from_array(X, chunks=(29, 4))  # 21 blocks: three levels
    with dask.config.set(scheduler="synchronous"):
        one = bg.fit_dask(bg.GaussianNB(), blocks, y)
    with dask.config.set(scheduler="threads"):
        same_bits(bg.fit_dask(bg.GaussianNB(), blocks, y), one)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(rows, tmp_path):
    from dask.distributed import Client, LocalCluster

    X, y = rows
    mark = str(tmp_path / "died")

    def dies_once(block, block_info=None):
        """Whoever gets the block in the middle first is killed."""
        import os
        import signal

        if block_info[0]["chunk-location"][0] == 3 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    plain = da.from_array(X, chunks=(100, 4))
    alone = bg.fit_dask(bg.GaussianNB(), plain, y)
    cluster = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(**cluster, processes=True) as machines,
        Client(machines),
    ):
        blocks = plain.map_blocks(dies_once, dtype=float)
        same_bits(bg.fit_dask(bg.GaussianNB(), blocks, y), alone)
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda X, y: (X.compute(), y), TypeError, "X must be a dask array or data frame, got nd"),
        (lambda X, y: (X, y[:-1]), ValueError, "X has 600 rows and y has 599"),
        (lambda X, y: (X[y != "a"], y.compute()), ValueError, "X has 6 blocks .* y has 1: give"),
        (lambda X, y: (X[y != "a"], y.rechunk(50)), ValueError, "X has 6 blocks of rows and y has"),
        (lambda X, y: (X[y != "a"], y), ValueError, r"block \d of X has \d+ rows and that of y"),
        (lambda X, y: (X[:0], y[:0]), ValueError, "X has no rows"),
        (lambda X, y: (X + np.inf, y), ValueError, r"block \d .*holds inf"),
    ],
)
def test_refusals(rows, make, error, match):
    X, y = rows
    X, y = make(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    clf = bg.GaussianNB()
    with pytest.raises(error, match=match):
        bg.fit_dask(clf, X, y)
    assert not hasattr(clf, "stats_")


def test_a_classifier_without_statistics_is_refused():
    with pytest.raises(ValueError, match=r"works on sufficient statistics, and .* has none"):
        bg.fit_dask(bg.StudentTNB(), da.zeros((4, 2)), [0, 0, 1, 1])


def test_without_dask_it_says_so(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r'pip install "bayesgen\[dask\]"'):
        bg.fit_dask(bg.GaussianNB(), *rows)
