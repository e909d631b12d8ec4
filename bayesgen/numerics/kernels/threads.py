"""Blocks of rows, shared among threads.

The threads are Python's own: they end with the call, so that a process may fork between two calls
and any other library may have its threads beside ours.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any

import numba
from threadpoolctl import ThreadpoolController

_BLOCK_CELLS = 1 << 18


def n_threads() -> int:
    """How many threads a kernel may use: the least of numba's limit and those of threadpoolctl.

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


def blocks(n_rows: int, n_columns: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    """(start, stop) of fixed blocks of rows: about 2 MiB of float64 each, or `most` of them."""
    step = max(1, _BLOCK_CELLS // max(1, n_columns), -(-n_rows // most) if most else 0)
    for start in range(0, n_rows, step):
        yield start, min(start + step, n_rows)


def over_blocks(
    function: Callable[[int, int], Any], n_rows: int, n_columns: int, most: int | None = None
) -> Iterator[Any]:
    """``function(start, stop)`` of each block, in the order of the rows.

    Parameters
    ----------
    function : compiled, or calls what is compiled
        Blocks write to disjoint rows of an output, or return partial sums for the caller to add
        in the order given.
    most : int, optional
        No more blocks than that, where partial sums are large or adding them up takes long.
    """
    parts = list(blocks(n_rows, n_columns, most))
    threads = min(n_threads(), len(parts)) if len(parts) > 1 else 1
    if threads == 1:
        yield from (function(*part) for part in parts)
    else:
        yield from shared(lambda part: function(*part), parts, threads)


def shared(task: Callable[[Any], Any], items: Iterable[Any], threads: int) -> list[Any]:
    """``task(item)`` of each item, in the order given, by so many threads, the caller's among them.

    An executor takes about as long to hand one item over as a kernel takes for 10 000 cells; here
    each thread takes the next item that is left. The error of the first item that fails is raised.
    """
    items = list(items)
    left, results = deque(range(len(items))), [None] * len(items)
    failed: list[tuple[int, BaseException]] = []

    def work() -> None:
        while True:
            try:
                k = left.popleft()  # of one thread alone
            except IndexError:
                return
            try:
                results[k] = task(items[k])
            except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                left.clear()
                failed.append((k, error))

    others = [threading.Thread(target=work) for _ in range(threads - 1)]
    try:
        for other in others:
            other.start()
        work()
        for other in others:
            other.join()
    finally:
        left.clear()  # where Ctrl-C comes between two items
    if failed:
        raise min(failed, key=itemgetter(0))[1]
    return results
