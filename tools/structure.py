"""Measure the structure of the package: its size, its imports, and what one call goes through.

    make structure                                  # of this checkout; fails above a budget
    .venv/bin/python tools/structure.py --walk explain   # the calls in order, * at each file change

`FIGURES` holds a budget for each figure: the value that the last change reached. A change that
lowers a figure lowers its budget with it; a change that needs more says why in its commit.

Lines of code hold a token of code: blank lines, comments and docstrings do not count. Lines of
tests are all lines, without those of benchmarks and of inputs at random. A circle is a set of
modules that reach each other by imports, those for annotations and those in functions included. A
private call is ``x._name`` where x is neither self nor cls, no class of the file's own top folder
has that member, and a class of another has it.

Calls are counted by ``sys.setprofile`` in the second of two equal calls, on 40 rows. A file change
is a call that runs in another file of the package than the call before it: where a reader who
follows the calls turns a page. A table is built where a `Table` is made, and encoded where a method
`encode` of ``encoding`` is called from outside such a method.
"""

import argparse
import ast
import inspect
import re
import sys
import tokenize
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bayesgen"


class Figure(NamedTuple):
    """What a figure was before the package was halved, is to be at the end, and may not exceed."""

    before: int | None
    goal: int | None
    budget: int


FIGURES = {
    "lines of code": Figure(42_669, 25_000, 25_849),
    "modules": Figure(213, 150, 150),
    "circles": Figure(0, 0, 0),
    "private calls across folders": Figure(0, 0, 0),
    "pool fit: tables built": Figure(2, 1, 1),
    "pool fit: encodings": Figure(6, 3, 1),
    "pool predict: tables built": Figure(2, 1, 1),
    "pool predict: encodings": Figure(2, 3, 1),
    "fit: file changes": Figure(52, 30, 47),
    "fit, prior chosen: file changes": Figure(None, None, 566),
    "predict_proba: file changes": Figure(16, 10, 15),
    "interval: file changes": Figure(64, 25, 37),
    "explain: file changes": Figure(122, 60, 41),
    "report: file changes": Figure(1751, 800, 461),
    "lines of tests": Figure(40_632, 20_000, 23_360),
}
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def lines_of_code(path: Path) -> int:
    """Count the lines with a token of code."""
    strings = {
        line
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    with path.open("rb") as file:
        lines = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in (*LAYOUT, tokenize.ENCODING, tokenize.ENDMARKER)
            for line in range(token.start[0], token.end[0] + 1)
        }
    return len(lines - strings)


def circles(package: Path) -> list[set[str]]:
    """Find the sets of modules each of which imports, in some steps, all others of its set."""
    files = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path
        for path in package.rglob("*.py")
    }
    files = {module.removesuffix(".__init__"): path for module, path in files.items()}

    def imported(path: Path) -> set[str]:
        nodes = ast.walk(ast.parse(path.read_text()))
        import_froms = (n for n in nodes if isinstance(n, ast.ImportFrom) and n.module)
        pairs = ((n.module, f"{n.module}.{alias.name}") for n in import_froms for alias in n.names)
        return {full if full in files else module for module, full in pairs} & set(files)

    arrows = {module: imported(path) for module, path in files.items()}
    reach = {module: set(names) for module, names in arrows.items()}
    for middle, start in product(files, files):
        if middle in reach[start]:
            reach[start] |= reach[middle]
    sets = {frozenset(n for n in reach[m] if m in reach[n]) for m in files if m in reach[m]}
    return [set(circle) for circle in sets]


def private_calls(package: Path) -> list[str]:
    """List ``file:line x._name`` of members that only classes of other folders have."""
    homes: dict[str, set[str]] = {}
    uses = []
    for path in sorted(package.rglob("*.py")):
        folder = path.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.ClassDef):
                if "Protocol" not in " ".join(map(ast.unparse, node.bases)):
                    names = [name for statement in node.body for name in defined(statement)]
            elif isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr):
                if ast.unparse(node.value) not in ("self", "cls", "super()"):
                    uses.append((node.attr, folder, f"{path}:{node.lineno} {ast.unparse(node)}"))
                elif isinstance(node.ctx, ast.Store):
                    names = [node.attr]
            for name in names:
                homes.setdefault(name, set()).add(folder)
    return [where for name, folder, where in uses if folder not in homes.get(name, {folder})]


def defined(statement: ast.stmt) -> list[str]:
    """List the names that a statement of a class's body gives to the class."""
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


class Trace:
    """Counts the calls of the package while another call runs."""

    def __init__(self) -> None:
        self.root = str(PACKAGE)
        self.counts = dict.fromkeys(("calls", "file changes", "tables built", "encodings"), 0)
        self.walk: list[str] = []
        self.last = ""
        self.generators: set[FrameType] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or not file.startswith(self.root) or name.startswith("<"):
            return  # not ours, or a comprehension, a lambda, a module
        if frame in self.generators:
            return  # resumed, not called
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self.generators.add(frame)
        counts = self.counts
        counts["calls"] += 1
        counts["file changes"] += file != self.last
        counts["tables built"] += (
            name == "__init__" and type(frame.f_locals.get("self")).__name__ == "Table"
        )
        counts["encodings"] += self.encodes(frame) and not self.within_another(frame)
        mark = " " if file == self.last else "*"
        self.walk.append(f"{mark} {file.removeprefix(self.root)[1:]} {name}")
        self.last = file

    def encodes(self, frame: FrameType) -> bool:
        """Return whether a frame is a call of an encoding's `encode`."""
        folder = f"{self.root}/encoding/"
        return frame.f_code.co_name == "encode" and frame.f_code.co_filename.startswith(folder)

    def within_another(self, frame: FrameType) -> bool:
        """Return whether an encoding called it."""
        above = frame.f_back
        while above is not None and not self.encodes(above):
            above = above.f_back
        return above is not None


def followed(call: Callable[[], Any]) -> Trace:
    """Follow the second of two equal calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        trace = Trace()
        sys.setprofile(trace)
        try:
            call()
        finally:
            sys.setprofile(None)
    return trace


def main_calls() -> dict[str, Callable[[], Any]]:
    """Return the main calls, for 40 rows of 4 numbers."""
    import bayesgen as bg

    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 4)) + y[:, None]
    clf = bg.GaussianNB().fit(X, y)
    pool = bg.LogLinearPool().fit(X, y)
    return {
        "fit": lambda: bg.GaussianNB(prior="default").fit(X, y),
        "fit, prior chosen": lambda: bg.GaussianNB().fit(X, y),
        "predict_proba": lambda: clf.predict_proba(X),
        "interval": lambda: clf.predict_interval(X),
        "explain": lambda: clf.explain(X),
        "report": lambda: bg.report(clf, X, y),
        "pool fit": lambda: bg.LogLinearPool().fit(X, y),
        "pool predict": lambda: pool.predict_proba(X),
    }


def measured(traces: dict[str, Trace]) -> dict[str, int]:
    """Return the value of each figure, given what the main calls went through."""
    files = list(PACKAGE.rglob("*.py"))
    tests = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if not {"benchmarks", "fuzz"} & set(path.relative_to(ROOT).parts)
    ]
    per_call = {
        f"{call}: {name}": n for call, trace in traces.items() for name, n in trace.counts.items()
    }
    return per_call | {
        "lines of code": sum(map(lines_of_code, files)),
        "modules": len(files),
        "circles": len(circles(PACKAGE)),
        "private calls across folders": len(private_calls(PACKAGE)),
        "lines of tests": sum(len(path.read_text().splitlines()) for path in tests),
    }


def over_budget(values: dict[str, int]) -> list[str]:
    """List the figures above their budgets."""
    return [name for name, figure in FIGURES.items() if values[name] > figure.budget]


def main() -> None:
    """Print the figures with goals and budgets, then what the main calls go through."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--walk", help="one of the main calls, followed")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if arguments.walk:
        print(*followed(main_calls()[arguments.walk]).walk, sep="\n")
        return
    traces = {name: followed(call) for name, call in main_calls().items()}
    values = measured(traces)
    print(f"{'':<42}{'now':>8}{'budget':>9}{'before':>9}{'goal':>8}")
    for name, figure in FIGURES.items():
        before, goal, budget = ("" if v is None else v for v in figure)
        print(f"{name:<42}{values[name]:>8}{budget:>9}{before:>9}{goal:>8}")
    print(f"\n{'40 rows':<20}" + "".join(f"{head:>14}" for head in traces["fit"].counts))
    for name, trace in traces.items():
        print(f"{name:<20}" + "".join(f"{n:>14}" for n in trace.counts.values()))
    print(*(f"circle: {', '.join(sorted(circle))}" for circle in circles(PACKAGE)), sep="\n")
    print(*private_calls(PACKAGE), sep="\n")
    if exceeded := over_budget(values):
        sys.exit("above budget: " + ", ".join(exceeded))


if __name__ == "__main__":
    main()
