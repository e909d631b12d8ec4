"""Compiled tasks, shared among threads.

The threads end with the call: a process may fork between two calls, and any other library may have
its threads beside ours.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numba
from threadpoolctl import ThreadpoolController


def n_threads() -> int:
    """Return how many threads a kernel may use: the least of numba's limit and threadpoolctl's.

    That is ``NUMBA_NUM_THREADS``, ``OMP_NUM_THREADS`` and what stands in force of
    `numba.set_num_threads` and `threadpoolctl.threadpool_limits`; joblib sets the limit of its
    processes so. A thread other than the main one is a worker of something that is parallel
    already (joblib's threads, dask): it works alone.
    """
    if threading.current_thread() is not threading.main_thread():
        return 1
    limits = [pool["num_threads"] for pool in _pools().info() if pool.get("num_threads")]
    return max(1, min([numba.get_num_threads(), *limits]))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: once


def run_in_threads[T, R](task: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return ``task(item)`` of each item, in the order given."""
    items = list(items)
    if len(items) < 2 or (threads := min(n_threads(), len(items))) < 2:
        return [task(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(task, items))
