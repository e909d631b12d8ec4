"""Time of two calls in turn, and memory of one in a process of its own.

Time: ours and the peer's alternate (A B A B ...) in one process, without garbage collection; the
first call of each, which loads or compiles kernels, is reported apart. There is a pause before
each, in which idle threads of the call before go to sleep. Load of the machine then
meets both, and the ratio of the medians is worth more than either. The record also has the seconds
that processors were busy, which load changes less.

Memory: the high-water mark of resident memory (VmHWM), which the kernel keeps and which sees NumPy,
BLAS and compiled code alike; tracemalloc sees NumPy alone. In a fresh process, after one call that
loads what stays loaded, the mark is reset (clear_refs) and the call made again. What is reported
is the mark minus the memory before (with the input) minus the bytes of the result. Large blocks
go back to the system as soon as they are freed (MALLOC_MMAP_THRESHOLD_), so that no call lives
on what the one before it left. Linux only; elsewhere no figure.
"""

import argparse
import ctypes
import gc
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.workloads import Workload, all_workloads

ROOT = Path(__file__).resolve().parents[2]
STATUS = Path("/proc/self/status")
SECONDS = 4.0  # spent on a workload, within the limits below
LEAST, MOST = 5, 15
FEWER = 3  # where a pair of calls takes longer than SLOW; there the peer's first call counts too
SLOW = 8.0
REST = 0.1  # seconds: BLAS's threads spin after a product, and are not the next call's load


@contextmanager
def no_garbage_collection():
    """Between calls it is run, during them never."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def clocks(call: Callable[[], Any], rest: float = REST) -> tuple[float, float]:
    """Seconds of one call and of processors that it kept busy; its result outlives the clocks."""
    time.sleep(rest)
    busy, start = time.process_time(), time.perf_counter()
    result = call()
    took = time.perf_counter() - start, time.process_time() - busy
    del result
    return took


def seconds(call: Callable[[], Any]) -> float:
    """Of one call."""
    return clocks(call)[0]


def repeats(pair: float, budget: float = SECONDS) -> int:
    """How often a pair of calls that takes so many seconds is timed."""
    return FEWER if pair > SLOW else int(np.clip(budget / pair, LEAST, MOST))


def in_turn(peer: Callable[[], Any], ours: Callable[[], Any], budget: float = SECONDS) -> dict:
    """Seconds of both: first calls, medians, the ratio with the quartiles of the pairs' ratios."""
    with no_garbage_collection():
        first = clocks(peer), clocks(ours)
        slow = first[0][0] > SLOW
        again = [[first[0] if slow else clocks(peer), clocks(ours)]]
        n = repeats(again[0][0][0] + again[0][1][0], budget)
        while len(again) < n:
            if n <= 2 * LEAST:
                gc.collect()  # a large result may be part of a cycle, as a DataTree is
            again.append([clocks(peer), clocks(ours)])
    wall, busy = np.moveaxis(np.array(again), -1, 0)  # (runs, peer and ours)
    medians, processors = np.median(wall, axis=0), np.median(busy, axis=0)
    return {
        "peer_s": float(medians[0]),
        "ours_s": float(medians[1]),
        "ratio": float(medians[0] / medians[1]),
        "ratio_quartiles": np.quantile(wall[:, 0] / wall[:, 1], [0.25, 0.75]).tolist(),
        "peer_processor_s": float(processors[0]),
        "ours_processor_s": float(processors[1]),
        "runs": len(wall),
        "first_peer_s": first[0][0],
        "first_ours_s": first[1][0],
    }


def floor(X: Any) -> float:
    """Seconds of one np.sum over the data: what reading them costs."""
    values = X.data if hasattr(X, "indptr") else X
    values.sum()
    return float(np.median([seconds(values.sum) for _ in range(5)]))


# ------------------------------------------------------------------------------------------- memory

MIB = 1 << 20


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a function in a process of its own, where nothing was freed before.

    Large blocks go back to the system as soon as they are freed.
    """
    os.environ |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "65536"}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *args).result()


def peak(call: Callable[[], Any], first: Callable[[], Any]) -> tuple[int, Any]:
    """Return the bytes of a call at its peak above those before it, and its result.

    A first call loads what stays loaded.
    """
    first()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = memory_of("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the mark starts again from what is resident
    result = call()
    return max(0, memory_of("VmHWM") - before), result


def memory_of(field: str) -> int:
    """VmRSS or VmHWM of this process in bytes."""
    (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith(field + ":")]
    return 1024 * int(line.split()[1])


def _result_bytes(result: Any) -> int:
    """What the caller keeps: arrays, or the fitted model with all it holds."""
    if hasattr(result, "nbytes"):
        return int(result.nbytes)
    return len(pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL))


def compiled_here() -> list[str]:
    """Kernels that this process compiled although others had: the disk cache did not serve."""
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("bayesgen.numerics.kernels."):
            for kernel in vars(module).values():
                stats = getattr(kernel, "stats", None)  # of a numba dispatcher
                if getattr(stats, "cache_misses", None):
                    found.add(f"{kernel.__module__}.{kernel.__name__}")
    return sorted(found)


def _peak(call: Callable[[], Any], before: Callable[[], Any] | None = None) -> dict:
    """Peak of one call in this process, after a first one, or `before`, that loads what stays."""
    first = seconds(before or call)
    compiled = compiled_here()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = memory_of("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    result = call()
    peak = memory_of("VmHWM")
    out = _result_bytes(result)
    return {
        "above": max(0, peak - before - out),
        "out": out,
        "first_s": first,
        "compiled": compiled,
    }


def memory(index: int, scale: float) -> dict:
    """`_peak` of ours, then of the peer, in a fresh process; empty where it cannot be measured."""
    if not STATUS.exists():
        return {}
    surroundings = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "65536"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.measure", str(index), str(scale)],
        cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode:
        raise RuntimeError(f"memory of workload {index}: {run.stderr.strip()[-800:]}")
    found: dict = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def whole(index: int, workload: Workload, scale: float, with_memory: bool = True) -> dict:
    """Everything about one workload."""
    X, y = workload.data(scale)
    row = {"name": workload.name, "size": workload.size, "peer": workload.peer_name}
    row |= {"goal": workload.goal}
    row |= in_turn(workload.peer(X, y), workload.ours(X, y))
    row["floor_s"] = floor(X)
    row["input_bytes"] = int(X.data.nbytes)
    if with_memory:
        row |= memory(index, scale)
    return row


if __name__ == "__main__":  # the child process of `memory`
    parser = argparse.ArgumentParser()
    parser.add_argument("index", type=int)
    parser.add_argument("scale", type=float)
    asked = parser.parse_args()
    chosen = all_workloads()[asked.index]
    rows = chosen.data(asked.scale)
    less = (each[: max(5000, len(rows[1]) // 10)] for each in rows)  # the peer's rehearsal
    found = {
        "ours": _peak(chosen.ours(*rows)),
        "peer": _peak(chosen.peer(*rows), chosen.peer(*less)),
    }
    print(json.dumps({f"memory_{s}_{k}": v for s in found for k, v in found[s].items()}))
