"""Blocks of rows and the threads that share them."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.numerics import kernels
from bayesgen.numerics.kernels import compiling, mixtures, threads


def test_size_alone_decides(monkeypatch):
    assert not kernels.pays(1000)
    monkeypatch.setattr(kernels, "COMPILE_FROM", 1000)
    assert kernels.pays(1000)


@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (1000, 1000), (10**6, 20), (7, 10**7)])
@pytest.mark.parametrize("most", [None, 1, 16])
def test_blocks_cover_the_rows_once(n, d, most):
    found = list(threads.blocks(n, d, most))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found)][: len(found)]
    assert not found or found[-1][1] == n
    assert most is None or len(found) <= most


@pytest.mark.parametrize("many", [1, 3])
def test_results_come_in_the_order_of_the_rows(many, monkeypatch):
    monkeypatch.setattr(threads, "n_threads", lambda: many)
    monkeypatch.setattr(threads, "_BLOCK_CELLS", 10)
    assert list(threads.over_blocks(lambda a, b: (a, b), 25, 1)) == [(0, 10), (10, 20), (20, 25)]


def test_an_error_in_a_block_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    monkeypatch.setattr(threads, "_BLOCK_CELLS", 10)
    with pytest.raises(ZeroDivisionError):
        list(threads.over_blocks(lambda a, b: a // 0, 25, 1))


def test_limits_of_threads_are_kept():
    with threadpool_limits(1):
        assert threads.n_threads() == 1
    found = []
    worker = threading.Thread(target=lambda: found.append(threads.n_threads()))
    worker.start()
    worker.join()
    assert found == [1]


def test_threads_change_no_bit(monkeypatch):
    """Four threads at once, each with two of its own."""
    monkeypatch.setattr(kernels, "COMPILE_FROM", 0)
    monkeypatch.setattr(threads, "_BLOCK_CELLS", 1 << 10)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 5)), rng.integers(0, 3, 4000)
    family = NormalInverseGamma()
    stats = family.stats(X, y, 3)
    expected = stats, family.resolve(stats).update(stats).log_predictive(X)

    def again():
        stats = family.stats(X, y, 3)
        return stats, family.resolve(stats).update(stats).log_predictive(X)

    def holds(found):
        return np.array_equal(found[1], expected[1]) and all(
            np.array_equal(getattr(found[0], name), getattr(expected[0], name))
            for name in ("n", "mean", "scatter")
        )

    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    found = []
    workers = [threading.Thread(target=lambda: found.append(again())) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    assert all(map(holds, found))


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(12).reshape(3, 4)[:, ::2],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.eye(3, dtype=bool),
    ],
    ids=["wide", "narrow", "integers", "Fortran order", "booleans"],
)
def test_rows_are_read_in_two_forms_and_never_written_to(x):
    parts = [compiling.as_rows(x[rows]) for rows in compiling.row_slices(x, 0, len(x))]
    found = np.concatenate(parts)
    np.testing.assert_array_equal(found, x)
    assert found.dtype in (np.float32, np.float64)
    assert not any(part.flags.writeable for part in parts)
    assert np.shares_memory(parts[0], x) == (x.flags.c_contiguous and x.dtype.kind == "f")
    assert compiling.as_data(np.eye(2, dtype=bool)).dtype == np.uint8


def test_a_kernel_on_disk_is_known_by_all_sources_that_it_may_call():
    stamp: object = mixtures.log_softmax._cache._cache_file._source_stamp
    assert stamp[1] == compiling._digest()
