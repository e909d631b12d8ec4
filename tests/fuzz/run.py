"""Inputs at random, each of which must give the right result or one clear error.

``make fuzz ARGS="--cases 1000 --kind csv"``; ``--only 123`` runs one case again. A kind is a
function of `KINDS`: it makes a case from a generator, tries it, and returns what happened in a
word. `refused` is the only way in which a case may fail; whatever else it raises, a limit of time
or memory that it exceeds, and a process that dies are defects. One process has imported everything
and fitted the models; it forks a process for each 500 cases. Model files are kept in memory, but
for one case in twenty and for the kinds whose subject they are.
"""

import argparse
import collections
import io
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import nullcontext, redirect_stdout, suppress
from pathlib import Path

import numpy as np

from tests.fuzz import arrays, model_files, processes, tables
from tests.fuzz.judge import RefusedError

KINDS = {
    f.__name__: f
    for f in (
        *(model_files.damaged, tables.csv, tables.parquet, arrays.python),
        *(processes.disk, processes.kill, processes.kill_sampling),
    )
}
IN_MEMORY = ("csv", "parquet", "python")
SECONDS, BYTES = 60, 4 << 30  # of one case
BATCH = 500


def one_case(name, seed, number, folder):
    """What happened in a word."""
    rng = np.random.default_rng([*name.encode(), seed, number])
    in_memory = name in IN_MEMORY and number % 20
    with model_files.in_memory() if in_memory else nullcontext():
        return KINDS[name](rng, folder)


def run_cases(name, seed, numbers, pipe):
    """In a child: try cases one by one, and write what happened to a pipe."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))
    memory = Path("/dev/shm")  # where fsync takes no time
    above = memory if os.access(memory, os.W_OK) else None
    for number in numbers:
        os.write(pipe, (json.dumps([number, None, "", 0.0]) + "\n").encode())
        folder = Path(tempfile.mkdtemp(prefix="fuzz", dir=above))
        what, detail, began = "defect", "", time.process_time()
        try:
            with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", RuntimeWarning)
                what = one_case(name, seed, number, folder)
        except RefusedError as error:
            what, detail = "refused", str(error)
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            lines = traceback.format_exception(error)
            detail = "".join(lines)[-3000:] + f"{type(error).__name__}: {str(error)[:200]}"
        shutil.rmtree(folder, ignore_errors=True)
        told = [number, what, detail[-3000:], time.process_time() - began]
        os.write(pipe, (json.dumps(told) + "\n").encode())


def cpu_seconds(process):
    """Time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def try_all(name, seed, numbers, deadline):
    """Yield (number, what happened, detail, seconds) of cases, in processes of their own."""
    numbers = list(numbers)
    while numbers and time.monotonic() < deadline:
        batch, there, here = numbers[:BATCH], *os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            try:
                os.close(there)
                os.setpgrp()
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                run_cases(name, seed, batch, here)
            finally:
                os._exit(0)
        os.close(here)
        running, text, why, used = None, b"", "the process died", []
        while True:
            if not select.select([there], [], [], SECONDS)[0]:
                used.append(cpu_seconds(child))  # the machine may be busy with other things
                stands = len(used) > 1 and used[-1] < used[-2] + 0.1
                if stands or used[-1] > used[0] + SECONDS or time.monotonic() > deadline:
                    why = f"it took more than {SECONDS} s"
                    break
                continue
            used = []
            part = os.read(there, 1 << 16)
            if not part:
                break
            *lines, text = (text + part).split(b"\n")
            for line in lines:
                number, what, detail, seconds = json.loads(line)
                running = number if what is None else None
                if what is not None:
                    numbers.remove(number)
                    yield number, what, detail, seconds
            if time.monotonic() > deadline:
                break
        late = time.monotonic() > deadline
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(there)
        if running is not None and not late:
            numbers.remove(running)
            yield running, "defect", f"{why} (status {status})", 0.0


def main():
    """Run cases and count what happened; exit code 1 if there is a defect."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=100, help="of each kind")
    parser.add_argument("--kind", choices=[*KINDS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="number of a case")
    parser.add_argument("--seconds", type=float, default=np.inf, help="in all, at most")
    parser.add_argument("--sampled", action="store_true", help="damage files of NUTS fits too")
    parser.add_argument("--verbose", action="store_true", help="show every error")
    options = parser.parse_args()
    names = options.kind or [name for name in KINDS if name != "kill_sampling"]  # it compiles
    n_defects = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model_files.make_models(options.sampled)
    ends = [time.monotonic() + options.seconds * (k + 1) / len(names) for k in range(len(names))]
    for name, end in zip(names, ends, strict=True):
        counts, seen, total = collections.Counter(), set(), 0.0
        numbers = range(options.cases) if options.only is None else [options.only]
        for number, what, detail, seconds in try_all(name, options.seed, numbers, end):
            counts[what] += 1
            total += seconds
            if what == "defect":
                n_defects += 1
                key = detail.rstrip().rsplit("\n", 1)[-1]
                if key not in seen or options.verbose:
                    print(f"--- {name} {number}: {detail}", flush=True)
                seen.add(key)
            elif options.verbose:
                print(f"{name} {number}: {what} {detail}")
        told = ", ".join(f"{what} {n}" for what, n in counts.most_common())
        print(f"{name}: {counts.total()} cases in {total:.0f} s: {told}", flush=True)
    return 1 if n_defects else 0


if __name__ == "__main__":
    sys.exit(main())
