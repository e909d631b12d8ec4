"""Planted errors that the fast tests must refuse: what `tools/mutants.toml` lists, one at a time.

Each error is put into a copy of the tree, never into the tree itself; the fast tests that its
entry names run there until the first fails. `killed`: a test failed, or none could be collected.
`survived`: all passed. `slow`: the time limit came first. `stale`: the text to change is no longer
there, or there more than once: write the entry anew.

    .venv/bin/python tools/mutants.py                       # all, with two processes
    .venv/bin/python tools/mutants.py --only to_pymc        # one subject
    .venv/bin/python tools/mutants.py --tree ../older       # the same errors in another tree

An entry gives a file, but its text is looked for in the whole package if it is not there, so that
the list holds for trees with another layout; tests are patterns of file names for that reason.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

HERE = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "docs", "notebooks", "build", "dist", "*.log"
)
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
FAILED, NOTHING_COLLECTED = (1, 2), 5


def place(tree: Path, entry: dict) -> Path | None:
    """The one file of the package that has the text to change once."""
    file, old = tree / entry["file"], entry["old"]
    if file.exists() and file.read_text().count(old) == 1:
        return file
    found = [p for p in sorted((tree / "bayesgen").rglob("*.py")) if old in p.read_text()]
    named = [p for p in found if p.stem == file.stem or p.stem == file.parent.name]
    for some in (found, named):
        if len(some) == 1 and some[0].read_text().count(old) == 1:
            return some[0]
    return None


def tests_of(tree: Path, entry: dict) -> list[str]:
    """Files that the patterns of an entry name, in whatever folder they are."""
    root = tree / "tests"
    found = {p for pattern in entry["tests"] for p in root.rglob(pattern)}
    kept = {p for p in found if "kernels" not in p.parts or p.name != "test_laws.py"}
    return sorted(str(p.relative_to(tree)) for p in kept)


def run(tree: Path, entry: dict, limit: float) -> tuple[str, float, str]:
    """State, seconds, and the test that failed first."""
    file = place(tree, entry)
    tests = tests_of(tree, entry)
    if file is None or not tests:
        return "stale", 0.0, "no such text" if file is None else "no such test"
    before = file.read_text()
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "-rN"]
    if "family" in entry:
        options += ["--family", entry["family"]]
    start = time.monotonic()
    try:
        write(file, before.replace(entry["old"], entry["new"]))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=tree,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return "slow", time.monotonic() - start, ""
    finally:
        write(file, before)
    seconds = time.monotonic() - start
    if done.returncode in FAILED:
        return "killed", seconds, ""
    if done.returncode == NOTHING_COLLECTED:
        return "stale", seconds, "no such test"
    return "survived" if done.returncode == 0 else "killed", seconds, ""


def write(file: Path, text: str) -> None:
    """Change a module, and leave no compiled form of what it was."""
    file.write_text(text)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=HERE, help="the tree to copy")
    parser.add_argument("--only", default="", help="subjects or files that contain this text")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each error")
    given = parser.parse_args()
    entries = [
        e
        for e in tomllib.loads(LIST.read_text())["mutant"]
        if given.only in e["subject"] or given.only in e["file"]
    ]
    counts: dict[str, Counter] = {}
    with tempfile.TemporaryDirectory() as scratch:
        trees: Queue[Path] = Queue()
        for k in range(given.workers):
            shutil.copytree(given.tree, copy := Path(scratch, str(k)), ignore=LEFT_OUT)
            trees.put(copy)

        def one(entry: dict) -> None:
            tree = trees.get()
            try:
                state, seconds, why = run(tree, entry, given.limit)
            finally:
                trees.put(tree)
            counts.setdefault(entry["subject"], Counter())[state] += 1
            file = entry["file"].removeprefix("bayesgen/")
            what = " ".join(f"{entry['old']}  ->  {entry['new']}".split())
            print(f"{state:8} {seconds:5.0f} s  {file}: {what} {why}", flush=True)

        with ThreadPoolExecutor(given.workers) as pool:
            list(pool.map(one, entries))
    states = ("killed", "survived", "slow", "stale")
    print(f"\n{'subject':12}" + "".join(f"{s:>10}" for s in states))
    total: Counter = Counter()
    for subject, found in counts.items():
        print(f"{subject:12}" + "".join(f"{found[s]:10}" for s in states))
        total.update(found)
    print(f"{'all':12}" + "".join(f"{total[s]:10}" for s in states))
    return int(total["survived"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
