"""Measure the structure of the package: its size, its imports, and what one call goes through.

    make structure                                  # of this checkout; fails above a budget
    .venv/bin/python tools/structure.py --repo ../other-checkout
    .venv/bin/python tools/structure.py --walk explain   # the calls in order, * at each file change

`FIGURES` holds a budget for each figure: the value that the last change reached. A change that
lowers a figure lowers its budget with it; a change that needs more says why in its commit.

Lines of code hold a token of code: blank lines, comments and docstrings do not count. Lines of
tests are all lines. An import level is one more than the highest level imported at module level. A
circle is a set of modules that reach each other by imports, those for annotations alone included;
the second figure adds imports inside functions. A private call is ``x._name`` where x is neither
self nor cls, no class of the file's own top folder has that member, and a class of another has it.
Methods of a ``Protocol`` say what others have, and are none.

Calls are counted by ``sys.setprofile`` in the second of two equal calls, on 40 rows. A file change
is a call that runs in another file of the package than the call before it: where a reader who
follows the calls turns a page. A table is built where a `Table` is made, and encoded where a method
`encode` of ``encoding`` is called from outside such a method.
"""

import argparse
import ast
import functools
import inspect
import re
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Figure(NamedTuple):
    """What a figure was before the package was halved, is to be at the end, and may not exceed."""

    before: int | None
    goal: int | None
    budget: int


FIGURES = {
    "lines of code": Figure(42_669, 25_000, 30_300),
    "modules": Figure(213, 150, 167),
    "import levels": Figure(19, None, 19),
    "circles, annotations included": Figure(0, 0, 0),
    "circles, imports in functions included": Figure(0, 0, 0),
    "own classes of GaussianNB": Figure(2, 2, 2),
    "members of GaussianNB": Figure(64, 60, 62),
    "private calls across folders": Figure(0, 0, 0),
    "TAN fit: tables built": Figure(1, 1, 1),
    "TAN fit: encodings": Figure(1, 1, 1),
    "pool fit: tables built": Figure(2, 1, 1),
    "pool fit: encodings": Figure(6, 3, 3),
    "pool predict: tables built": Figure(2, 1, 1),
    "pool predict: encodings": Figure(2, 3, 2),
    "fit: file changes": Figure(52, 30, 53),
    "fit, prior chosen: file changes": Figure(None, None, 580),
    "predict_proba: file changes": Figure(16, 10, 15),
    "interval, C 2: file changes": Figure(42, 25, 40),
    "interval, C 3: file changes": Figure(64, 25, 40),
    "explain: file changes": Figure(122, 60, 43),
    "report: file changes": Figure(1751, 800, 490),
    "lines of tests": Figure(40_632, 20_000, 28_600),
}
APART = ("benchmarks", "fuzz")
TABLES = ("Table",)  # classes that hold a table as it was given, by name
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def lines_of_code(path: Path) -> int:
    """Lines with a token of code."""
    tree = ast.parse(path.read_text())
    strings = {
        line
        for node in ast.walk(tree)
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


def module_name(path: Path, package: Path) -> str:
    """Dotted name."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.Module, annotations: bool, functions: bool) -> Iterator[ast.AST]:
    """Statements of the module; those for annotations alone, and those in functions, if asked."""
    if functions:
        yield from ast.walk(tree)
        return
    for node in tree.body:
        yield node
        if annotations and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.body


def imports(
    path: Path, known: set[str], annotations: bool = False, functions: bool = False
) -> set[str]:
    """Modules of the package that are imported when this one is, or that it names besides."""
    found = set()
    for node in statements(ast.parse(path.read_text()), annotations, functions):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                full if (full := f"{node.module}.{a.name}") in known else node.module
                for a in node.names
            }
    return found & known


def circles(package: Path, functions: bool = False) -> list[set[str]]:
    """Sets of modules each of which imports, in some steps, all others of its set."""
    files = {module_name(p, package): p for p in package.rglob("*.py")}
    arrows = {m: imports(p, set(files), True, functions) - {m} for m, p in files.items()}

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        new = set(arrows[start])
        while new:
            found |= new
            new = {far for near in new for far in arrows[near]} - found
        return found

    reach = {m: reached(m) for m in files}
    sets = {frozenset(n for n in reach[m] if m in reach[n]) for m in files if m in reach[m]}
    return [set(one) for one in sets]


def private_calls(package: Path) -> list[str]:
    """``file:line x._name`` of members that only classes of other folders have."""
    homes: dict[str, set[str]] = {}
    uses = []
    for path in sorted(package.rglob("*.py")):
        folder = path.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.ClassDef):
                if "Protocol" not in " ".join(map(ast.unparse, node.bases)):
                    names = [n for statement in node.body for n in defined(statement)]
            elif isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr):
                own = ast.unparse(node.value) in ("self", "cls", "super()")
                if not own:
                    uses.append((node.attr, folder, f"{path}:{node.lineno} {ast.unparse(node)}"))
                elif isinstance(node.ctx, ast.Store):
                    names = [node.attr]
            for name in names:
                homes.setdefault(name, set()).add(folder)
    return [where for name, folder, where in uses if folder not in homes.get(name, {folder})]


def defined(statement: ast.stmt) -> list[str]:
    """Names that a statement of a class's body gives to the class."""
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def levels(package: Path) -> int:
    """Length of the longest chain of imports; modules that import each other share a level."""
    files = {module_name(p, package): p for p in package.rglob("*.py")}
    arrows = {m: imports(p, set(files)) - {m} for m, p in files.items()}

    @functools.cache
    def level(module: str) -> int:
        arrows_of, arrows[module] = arrows[module], set()  # a circle ends where it began
        found = 1 + max((level(m) for m in arrows_of), default=0)
        arrows[module] = arrows_of
        return found

    return max(map(level, files))


def sizes(package: Path) -> dict[str, Any]:
    """Of the package's source."""
    files = sorted(package.rglob("*.py"))
    return {
        "modules": len(files),
        "lines of code": sum(map(lines_of_code, files)),
        "import levels": levels(package),
        "circles, annotations included": len(circles(package)),
        "circles, imports in functions included": len(circles(package, functions=True)),
        "private calls across folders": len(private_calls(package)),
    }


def members(cls: type) -> int:
    """Names that a class and its bases in the package define, private ones too.

    Those that scikit-learn makes for metadata routing (``set_fit_request``) do not count.
    """
    return len(
        {
            name
            for base in cls.__mro__
            if base.__module__.startswith("bayesgen")
            for name, value in vars(base).items()
            if not re.match("__|set_[a-z_]+_request$", name)
            and (callable(value) or isinstance(value, property | classmethod | staticmethod))
        }
    )


class Trace:
    """Counts the package's calls."""

    def __init__(self, package: Path) -> None:
        self.root = str(package)
        self.calls = 0
        self.changes = 0
        self.files: set[str] = set()
        self.walk: list[str] = []
        self.last = ""
        self.generators: set[Any] = set()
        self.tables = 0
        self.encodings = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or not file.startswith(self.root) or name.startswith("<"):
            return  # not ours, or a comprehension, a lambda, a module
        if frame in self.generators:
            return  # resumed, not called
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self.generators.add(frame)
        if name == "__init__" and type(frame.f_locals.get("self")).__name__ in TABLES:
            self.tables += 1
        self.encodings += self.encodes(frame) and not self.within_another(frame)
        self.calls += 1
        mark = " " if file == self.last else "*"
        self.walk.append(f"{mark} {file.removeprefix(self.root)[1:]} {name}")
        self.changes += file != self.last
        self.last = file
        self.files.add(file)

    def encodes(self, frame: Any) -> bool:
        """Whether this is a call of an encoding's `encode`."""
        code = frame.f_code
        return code.co_name == "encode" and code.co_filename.startswith(f"{self.root}/encoding/")

    def within_another(self, frame: Any) -> bool:
        """Whether an encoding called it."""
        while frame := frame.f_back:
            if self.encodes(frame):
                return True
        return False


def followed(package: Path, call: Callable[[], Any]) -> Trace:
    """The second of two equal calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        trace = Trace(package)
        sys.setprofile(trace)
        try:
            call()
        finally:
            sys.setprofile(None)
    return trace


def traced(trace: Trace) -> dict[str, int]:
    """What a call goes through."""
    return {
        "calls": trace.calls,
        "file changes": trace.changes,
        "files": len(trace.files),
        "tables built": trace.tables,
        "encodings": trace.encodings,
    }


def main_calls() -> dict[str, Callable[[], Any]]:
    """The main calls, for 40 rows of 4 numbers."""
    import bayesgen as bg

    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 4)) + y[:, None]
    three = bg.GaussianNB().fit(X, y)
    two = bg.GaussianNB().fit(X, y > 0)
    pool = bg.LogLinearPool().fit(X, y)
    return {
        "fit": lambda: bg.GaussianNB(prior="default").fit(X, y),
        "fit, prior chosen": lambda: bg.GaussianNB().fit(X, y),
        "predict_proba": lambda: three.predict_proba(X),
        "interval, C 2": lambda: two.predict_interval(X),
        "interval, C 3": lambda: three.predict_interval(X),
        "explain": lambda: three.explain(X),
        "report": lambda: bg.report(three, X, y),
        "TAN fit": lambda: bg.TreeAugmentedNB().fit(X, y),
        "pool fit": lambda: bg.LogLinearPool().fit(X, y),
        "pool predict": lambda: pool.predict_proba(X),
    }


def classes() -> dict[str, int]:
    """Members of GaussianNB, and its classes in the package."""
    import bayesgen as bg

    own = [c for c in bg.GaussianNB.__mro__ if c.__module__.startswith("bayesgen")]
    return {"members of GaussianNB": members(bg.GaussianNB), "own classes of GaussianNB": len(own)}


def lines_of_tests(tests: Path) -> int:
    """All lines but those of benchmarks and of the inputs at random."""
    files = (p for p in tests.rglob("*.py") if p.relative_to(tests).parts[0] not in APART)
    return sum(len(p.read_text().splitlines()) for p in files)


def over_budget(found: dict[str, Any]) -> list[str]:
    """Figures above their budgets."""
    return [name for name, figure in FIGURES.items() if found[name] > figure.budget]


def show(found: dict[str, Any]) -> None:
    """Print the figures with goals and budgets, then what calls go through."""
    print(f"{'':<42}{'now':>8}{'budget':>9}{'before':>9}{'goal':>8}")
    for name, figure in FIGURES.items():
        before, goal, budget = ("" if v is None else v for v in figure)
        print(f"{name:<42}{found[name]:>8}{budget:>9}{before:>9}{goal:>8}")
    heads = list(found["journeys"]["fit"])
    print(f"\n{'40 rows':<20}" + "".join(f"{head:>14}" for head in heads))
    for name, counts in found["journeys"].items():
        print(f"{name:<20}" + "".join(f"{value:>14}" for value in counts.values()))


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repo", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--walk", help="one of the main calls, followed")
    parser.add_argument("--where", action="store_true", help="name circles and private calls")
    arguments = parser.parse_args()
    package = arguments.repo.resolve() / "bayesgen"
    sys.path.insert(0, str(package.parent))
    if arguments.walk:
        print(*followed(package, main_calls()[arguments.walk]).walk, sep="\n")
        return
    found: dict[str, Any] = sizes(package) | classes()
    found["lines of tests"] = lines_of_tests(package.parent / "tests")
    found["journeys"] = {k: traced(followed(package, call)) for k, call in main_calls().items()}
    for name, counts in found["journeys"].items():
        found |= {
            f"{name}: {what}": n for what, n in counts.items() if f"{name}: {what}" in FIGURES
        }
    show(found)
    if arguments.where:
        for circle in circles(package, functions=True):
            print("circle:", ", ".join(sorted(circle)))
        print(*private_calls(package), sep="\n")
    if exceeded := over_budget(found):
        sys.exit("above budget: " + ", ".join(exceeded))


if __name__ == "__main__":
    main()
