"""Inputs at random, each of which must give the right result or one clear error.

``make fuzz ARGS="--cases 1000 --kind csv"``; ``--only 123`` runs one case again. A kind is a
function of `KINDS`: it makes a case from a generator, tries it, and returns what happened in a
word. `refused` is the only way in which a case may fail; whatever else it raises, a limit of time
or memory that it exceeds, and a process that dies are defects. One process has imported everything
and fitted the models; it forks a process for each 500 cases. Model files are kept in memory, but
for one case in twenty and for the kind whose subject they are.
"""

import argparse
import collections
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import numpy as np

from tests.fuzz import arrays, model_files, tables
from tests.fuzz.judge import RefusedError

KINDS = {f.__name__: f for f in (model_files.damaged, tables.csv, tables.parquet, arrays.python)}
SECONDS, BYTES = 60, 4 << 30  # of processor time and memory of one case
BATCH = 500
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where fsync takes no time


def one_case(name, seed, number):
    """Return what happened in a word, and the error."""
    rng = np.random.default_rng([*name.encode(), seed, number])
    in_memory = name != "damaged" and number % 20
    try:
        with (
            model_files.in_memory() if in_memory else nullcontext(),
            tempfile.TemporaryDirectory(prefix="fuzz", dir=MEMORY) as folder,
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            return KINDS[name](rng, Path(folder)), ""
    except RefusedError as error:
        return "refused", str(error)
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        lines = "".join(traceback.format_exception(error))
        return "defect", f"{lines[-2500:]}{type(error).__name__}: {str(error)[:200]}"


def run_cases(name, seed, numbers, deadline, pipe):
    """Try cases in a child process, and write what happened to a pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))
    for number in numbers:
        if time.monotonic() > deadline:
            return
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # its signal ends the process,
        signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)  # that of a case that waits, too
        os.write(pipe, (json.dumps([number, None, ""]) + "\n").encode())
        os.write(pipe, (json.dumps([number, *one_case(name, seed, number)]) + "\n").encode())


def try_all(name, seed, numbers, deadline):
    """Yield (number, what happened, detail) of cases, in processes of their own."""
    numbers = list(numbers)
    while numbers and time.monotonic() < deadline:
        there, here = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            try:
                run_cases(name, seed, numbers[:BATCH], deadline, here)
            finally:
                os._exit(0)
        os.close(here)
        running = None
        with open(there) as lines:
            for line in lines:
                running, what, detail = json.loads(line)
                if what is not None:
                    numbers.remove(running)
                    yield running, what, detail
                    running = None
        _, status = os.waitpid(child, 0)
        if running is not None:
            numbers.remove(running)
            yield running, "defect", f"the process died, or took {SECONDS} s (status {status})"


def main():
    """Run cases and count what happened; exit code 1 if there is a defect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=100, help="of each kind")
    parser.add_argument("--kind", choices=[*KINDS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="number of a case")
    parser.add_argument("--seconds", type=float, default=np.inf, help="in all, at most")
    parser.add_argument("--verbose", action="store_true", help="show every error")
    options = parser.parse_args()
    names = options.kind or [*KINDS]
    n_defects = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model_files.make_models()
    ends = [time.monotonic() + options.seconds * (k + 1) / len(names) for k in range(len(names))]
    for name, end in zip(names, ends, strict=True):
        counts, seen = collections.Counter(), set()
        numbers = range(options.cases) if options.only is None else [options.only]
        for number, what, detail in try_all(name, options.seed, numbers, end):
            counts[what] += 1
            last = detail.rstrip().rsplit("\n", 1)[-1]
            if options.verbose or (what == "defect" and last not in seen):
                print(f"--- {name} {number}: {what} {detail}", flush=True)
            seen.add(last)
        n_defects += counts["defect"]
        told = ", ".join(f"{what} {n}" for what, n in counts.most_common())
        print(f"{name}: {counts.total()} cases: {told}", flush=True)
    return 1 if n_defects else 0


if __name__ == "__main__":
    sys.exit(main())
