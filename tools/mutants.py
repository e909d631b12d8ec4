"""Planted errors that the fast tests must refuse: what `tools/mutants.toml` lists, one at a time.

Each error is put into a copy of the tree; the fast tests that its entry names run there until the
first fails.

killed: a test failed, or none could be collected. survived: all passed. slow: the limit of
processor time came first. stale: the text to change is not there, or there more than once: write
the entry anew. broken: the tests could not be run. With --control nothing is planted, and all must
survive.

    .venv/bin/python tools/mutants.py                       # all, with two processes
    .venv/bin/python tools/mutants.py --only to_pymc        # one subject

An entry gives a file, the text to change there, and patterns of the names of test files.
"""

import argparse
import importlib
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
LAWS = ("laws/test_pymc.py", "laws/test_*.py", "test_log_density.py")
LEFT_OUT = shutil.ignore_patterns(".*", "docs", "notebooks", "build", "dist", "*.log")
# what the tests load that is none of ours: once, before each error has a process of its own
LOADED = "numpy pandas polars pymc arviz numba sklearn scipy.stats xarray hypothesis pytest"
STATES = ("killed", "survived", "slow", "stale", "broken")
# codes of pytest: no test failed; one failed; one could not be collected
OUTCOMES = {0: "survived", 1: "killed", 2: "killed", -signal.SIGXCPU: "slow"}
OUTCOMES |= {-signal.SIGKILL: "slow"}


def planted(entry: dict, limit: float) -> tuple[str, float]:
    """Plant one error in a copy of the tree; return the state and the seconds it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        shutil.copytree(HERE, tree, symlinks=True, ignore=LEFT_OUT)
        file = tree / entry["file"]
        source = file.read_text() if file.exists() else ""
        patterns = [*(LAWS if "family" in entry else ()), *entry["tests"]]
        tests = [path for pattern in patterns for path in sorted((tree / "tests").rglob(pattern))]
        if source.count(entry["old"]) != 1 or not tests:
            return "stale", 0.0
        file.write_text(source.replace(entry["old"], entry["new"]))
        options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "-rN"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is loaded already
        if "family" in entry:
            options += ["--family", entry["family"]]
        child = multiprocessing.get_context("fork").Process(
            target=run_tests, args=(tree, [*options, *map(str, dict.fromkeys(tests))], limit)
        )
        child.start()
        child.join()
    return OUTCOMES.get(child.exitcode, "broken"), time.monotonic() - start


def run_tests(tree: Path, arguments: list[str], limit: float) -> None:
    """Run the tests of a tree silently, and end this process with the code of pytest."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    import pytest

    try:
        code = int(pytest.main(arguments))
    except BaseException:  # noqa: BLE001 - of the tool or of pytest: says nothing of the error
        code = 70
    os._exit(code)


def main() -> int:
    """Print the state of each error and their counts by subject; return 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="subjects or files that contain this text")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="processor seconds")
    parser.add_argument("--control", action="store_true", help="plant nothing: all must survive")
    arguments = parser.parse_args()
    entries = [
        entry | ({"new": entry["old"]} if arguments.control else {})
        for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["mutant"]
        if arguments.only in entry["subject"] or arguments.only in entry["file"]
    ]
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    os.environ["PYTENSOR_FLAGS"] = "cxx="  # as in tests/conftest.py, before PyTensor is loaded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LOADED.split():
            importlib.import_module(name)
    counts: dict[str, Counter] = {}
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(arguments.workers, fork) as pool:
        outcomes = pool.map(planted, entries, [arguments.limit] * len(entries))
        for entry, (state, seconds) in zip(entries, outcomes, strict=True):
            counts.setdefault(entry["subject"], Counter())[state] += 1
            path = entry["file"].removeprefix("bayesgen/")
            what = " ".join(f"{entry['old']}  ->  {entry['new']}".split())  # on one line
            print(f"{state:8} {seconds:5.0f} s  {path}: {what}", flush=True)
    print(f"\n{'subject':12}" + "".join(f"{state:>10}" for state in STATES))
    counts["all"] = sum(counts.values(), Counter())
    for subject, count in counts.items():
        print(f"{subject:12}" + "".join(f"{count[state]:10}" for state in STATES))
    return int(counts["all"]["survived"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
