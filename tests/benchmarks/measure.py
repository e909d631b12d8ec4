"""Time of two calls in turn, and memory of one in a process of its own.

Time: ours and the peer's alternate (A B A B ...) in one process, without garbage collection; the
first call of each, which loads or compiles kernels, does not count. Before each there is a pause,
in which idle threads of the call before go to sleep. Load of the machine then meets both, and the
ratio of the medians is worth more than either. Calls of less than 20 ms are repeated.

Memory: the high-water mark of resident memory (VmHWM), which the kernel keeps and which sees NumPy,
BLAS and compiled code alike; tracemalloc sees NumPy alone. In a fresh process, after one call that
loads what stays loaded, the mark is reset (clear_refs) and the call made again. Large blocks go
back to the system as soon as they are freed (MALLOC_MMAP_THRESHOLD_), so that no call lives on what
the one before it left. Linux only.
"""

import ctypes
import gc
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

MIB = 1 << 20
Call = Callable[[], Any]


def clocks(call: Call, n: int = 1) -> tuple[float, float]:
    """Return seconds of a call and of processors that it kept busy, means of n calls.

    Results outlive the clocks.
    """
    time.sleep(0.1)  # BLAS's threads spin after a product, and are not the next call's load
    busy, start = time.process_time(), time.perf_counter()
    results = [call() for _ in range(n)]
    took = time.perf_counter() - start, time.process_time() - busy
    del results
    return took[0] / n, took[1] / n


def in_turn(peer: Call, ours: Call, by_processor: bool) -> dict[str, float]:
    """Return the median seconds of both, and their ratio."""
    gc.collect()
    gc.disable()
    try:
        peer(), ours()
        pair = [clocks(call)[0] for call in (peer, ours)]
        repeats = [int(np.clip(0.02 / seconds, 1, 1000)) for seconds in pair]
        runs = 3 if sum(pair) > 8 else int(np.clip(4 / sum(pair), 5, 15))
        times = []
        for _ in range(runs):
            times.append([clocks(c, n) for c, n in zip((peer, ours), repeats, strict=True)])
            gc.collect()  # a large result may be part of a cycle, as a DataTree is
    finally:
        gc.enable()
    theirs, ours_took = np.median(times, axis=0)[:, int(by_processor)]
    return {"theirs": theirs, "ours": ours_took, "ratio": theirs / ours_took, "runs": runs}


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a function in a process of its own, where nothing was freed before."""
    os.environ |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "65536"}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *args).result()


def peak(call: Call, first: Call) -> tuple[int, Any]:
    """Return the bytes of a call at its peak above those before it, and its result.

    A first call loads what stays loaded.
    """
    first()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the mark starts again from what is resident
    result = call()
    return max(0, _memory("VmHWM") - before), result


def _memory(field: str) -> int:
    """Return VmRSS or VmHWM of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))
