"""Planted errors that the fast tests must refuse: what `tools/mutants.toml` lists, one at a time.

Each error is put into a copy of the tree, never into the tree itself; the fast tests that its
entry names run there until the first fails.

killed: a test failed, or none could be collected. survived: all passed. slow: the limit of
processor time came first. stale: the text to change is not there, or there more than once: write
the entry anew. broken: the tests could not be run. With --control nothing is planted, and all must
survive.

    .venv/bin/python tools/mutants.py                       # all, with two processes
    .venv/bin/python tools/mutants.py --only to_pymc        # one subject
    .venv/bin/python tools/mutants.py --log found.jsonl     # keeps outcomes, and runs the rest
    .venv/bin/python tools/mutants.py --auto 1 --only predict  # one line of each module, at random

An entry gives a file, the text to change there, and patterns of the names of test files.

With --auto the errors are not those of the list: statements of the modules of `AUTOMATIC` are
drawn, and one operator, number or ``not`` of each is changed, or the statement left out. They meet
the tests of its name, then those that import it, then those of its folder. What survived is kept
in `tools/survivors.toml`, with the test that was added or the reason why there is none.
"""

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import random
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
LIST = Path(__file__).with_suffix(".toml")
LAWS = ("laws/test_pymc.py", "laws/test_*.py", "test_log_density.py")
LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "docs", "notebooks", "build", "dist", "*.log"
)
# what the tests load that is none of ours: once, before each error has a process of its own
LOADED = "numpy pandas polars pymc arviz numba sklearn scipy.stats xarray hypothesis pytest"
PASSED, FAILED, INTERRUPTED = 0, 1, 2
STATES = ("killed", "survived", "slow", "stale", "broken")


AUTOMATIC = ("families", "posterior", "predict", "checks")
SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
SWAPPED |= {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
SWAPPED |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def changed(statement: ast.stmt, rng: random.Random) -> ast.stmt | None:
    """The statement with one operator, number or ``not`` changed, or left out; None if none is."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    for node in rng.sample(nodes := list(ast.walk(copy)), len(nodes)):
        match node:
            case ast.BinOp(op=op) if type(op) in SWAPPED:
                node.op = SWAPPED[type(op)]()
            case ast.Compare(ops=[op]) if type(op) in SWAPPED:
                node.ops = [SWAPPED[type(op)]()]
            case ast.Constant(value=value) if type(value) in (int, float):
                node.value = value + 1
            case ast.UnaryOp(op=ast.Not()):
                node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
            case ast.AugAssign() | ast.Raise() | ast.Expr(value=ast.Call()):
                return ast.Pass()
            case _:
                continue
        return copy
    return None


def automatic(tree: Path, number: int, seed: int) -> list[dict]:
    """Entries as those of the list: `number` statements of each module, each changed once."""
    entries = []
    for file in sorted(p for name in AUTOMATIC for p in (tree / "bayesgen" / name).rglob("*.py")):
        path, source = file.relative_to(tree), file.read_text()
        rng = random.Random(f"{path} {seed}")
        simple = ast.Assign | ast.AugAssign | ast.Raise | ast.Return | ast.Expr
        lines = [s for s in ast.walk(ast.parse(source)) if isinstance(s, simple)]
        drawn = []
        for statement in rng.sample(lines, len(lines)):
            old, new = ast.get_source_segment(source, statement), changed(statement, rng)
            if new is not None and source.count(old) == 1 and len(drawn) < number:
                drawn.append({"old": old, "new": ast.unparse(new)})
        common = {"subject": path.parts[1], "file": str(path), "tests": mirror(tree, file)}
        entries += [common | one for one in drawn]
    return entries


def mirror(tree: Path, file: Path) -> list[str]:
    """Tests of a module, the nearest first: by its name, by what they import, in its folder."""
    path = file.relative_to(tree / "bayesgen").with_suffix("")
    module = ".".join(("bayesgen", *path.parts))
    tests = {
        p.relative_to(tree / "tests"): p.read_text() for p in (tree / "tests").rglob("test_*.py")
    }
    using = sorted(str(p) for p, text in tests.items() if f"from {module} import" in text)
    last = ["laws/test_*.py"] if path.parts[0] == "families" else [f"{path.parent}/**/test_*.py"]
    return [f"test_{path.name}.py", f"test_{path.name}_*.py", *using, *last]


def tests_of(tree: Path, entry: dict) -> list[str]:
    """Files that the patterns of an entry name, in any folder; those of laws first."""
    patterns = [*(LAWS if "family" in entry else ()), *entry["tests"]]
    found = (p for pattern in patterns for p in sorted((tree / "tests").rglob(pattern)))
    kept = (p for p in found if "kernels" not in p.parts or p.name != "test_laws.py")
    return list(dict.fromkeys(str(p.relative_to(tree)) for p in kept))


def run(tree: Path, entry: dict, limit: float) -> tuple[str, float]:
    """State and seconds."""
    file, tests = tree / entry["file"], tests_of(tree, entry)
    before = file.read_text() if file.exists() else ""
    if before.count(entry["old"]) != 1 or not tests:
        return "stale", 0.0
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=no", "-rN"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is loaded already
    if "family" in entry:
        options += ["--family", entry["family"]]
    start = time.monotonic()
    try:
        write(file, before.replace(entry["old"], entry["new"]))
        child = multiprocessing.get_context("fork").Process(
            target=test, args=(tree, [*options, *tests], limit)
        )
        child.start()
        child.join()
    finally:
        write(file, before)
    states = {PASSED: "survived", FAILED: "killed", INTERRUPTED: "killed"}  # or cannot be imported
    states |= {-signal.SIGXCPU: "slow", -signal.SIGKILL: "slow"}
    return states.get(child.exitcode, "broken"), time.monotonic() - start


def test(tree: Path, arguments: list[str], limit: float) -> None:
    """In a process of its own: the tests of a tree, without a word."""
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


def write(file: Path, text: str) -> None:
    """Change a module, and leave no compiled form of what it was."""
    file.write_text(text)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


TREE: Path | None = None  # of this process


def settle(trees: "multiprocessing.Queue[Path]") -> None:
    """Take one of the copies."""
    global TREE
    TREE = trees.get()


def one(entry: dict, limit: float) -> tuple[str, float]:
    """Plant one error in the copy of this process."""
    assert TREE is not None
    return run(TREE, entry, limit)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="subjects or files that contain this text")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="processor seconds")
    parser.add_argument("--auto", type=int, default=0, help="so many lines of each module")
    parser.add_argument("--seed", type=int, default=0, help="of --auto")
    parser.add_argument("--most", type=int, help="of --auto in all, at random")
    parser.add_argument("--control", action="store_true", help="plant nothing: all must survive")
    parser.add_argument("--log", type=Path, help="keep outcomes here; those it has are not run")
    given = parser.parse_args()
    listed = tomllib.loads(LIST.read_text())["mutant"]
    entries = [
        e
        for e in (automatic(HERE, given.auto, given.seed) if given.auto else listed)
        if given.only in e["subject"] or given.only in e["file"]
    ]
    if given.most is not None:
        entries = random.Random(given.seed).sample(entries, min(given.most, len(entries)))
    if given.control:
        entries = [e | {"new": e["old"]} for e in entries]
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    sys.dont_write_bytecode = False  # compiled once for all errors
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTENSOR_FLAGS"] = "cxx="  # as in tests/conftest.py, before PyTensor is loaded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LOADED.split():
            importlib.import_module(name)
    fork = multiprocessing.get_context("fork")
    log = given.log or Path(os.devnull)
    known = {
        key: outcome
        for line in (log.read_text().splitlines() if log.exists() else ())
        for key, *outcome in [json.loads(line)]
    }
    keys = [json.dumps([e["file"], e["old"], e["new"]]) for e in entries]
    left = [e for e, key in zip(entries, keys, strict=True) if key not in known]
    counts: dict[str, Counter] = {}
    with tempfile.TemporaryDirectory() as scratch:
        trees = fork.Queue()
        for k in range(given.workers):
            shutil.copytree(HERE, copy := Path(scratch, str(k)), ignore=LEFT_OUT)
            trees.put(copy)
        with ProcessPoolExecutor(given.workers, fork, settle, (trees,)) as pool:
            found = pool.map(one, left, [given.limit] * len(left))
            for entry, key in zip(entries, keys, strict=True):
                if key not in known:
                    known[key] = next(found)
                    with log.open("a") as file:
                        file.write(json.dumps([key, *known[key]]) + "\n")
                state, seconds = known[key]
                counts.setdefault(entry["subject"], Counter())[state] += 1
                path = entry["file"].removeprefix("bayesgen/")
                what = " ".join(f"{entry['old']}  ->  {entry['new']}".split())  # on one line
                print(f"{state:8} {seconds:5.0f} s  {path}: {what}", flush=True)
    print(f"\n{'subject':12}" + "".join(f"{s:>10}" for s in STATES))
    counts["all"] = sum(counts.values(), Counter())
    for subject, found in counts.items():
        print(f"{subject:12}" + "".join(f"{found[s]:10}" for s in STATES))
    return int(counts["all"]["survived"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
