"""How heavy the structure of the package is: sizes, import levels, and what one call goes through.

    .venv/bin/python tools/structure.py            # of this checkout
    .venv/bin/python tools/structure.py --repo ../other-checkout
    .venv/bin/python tools/structure.py --json

Lines of code are those that hold a token of code: no blank lines, comments or docstrings. An import
level is one more than the highest level imported at module level. Calls are counted by
``sys.setprofile`` in the second of two equal calls; a file change is a call that runs in another
file of the package than the call before it: where somebody who follows the calls turns a page.
"""

import argparse
import ast
import functools
import inspect
import json
import sys
import tokenize
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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


def imports(path: Path, known: set[str]) -> set[str]:
    """Modules of the package that are imported when this one is."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                full if (full := f"{node.module}.{a.name}") in known else node.module
                for a in node.names
            }
    return found & known


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
    top = {p.relative_to(package).parts[0] for p in files} - {"__init__.py", "__main__.py"}
    code = {str(p.relative_to(package)): lines_of_code(p) for p in files}
    return {
        "modules": len(files),
        "folders and modules directly under the package": len(top),
        "lines of code": sum(code.values()),
        "lines in all": sum(len(p.read_text().splitlines()) for p in files),
        "import levels": levels(package),
        "longest file, lines": max(len(p.read_text().splitlines()) for p in files),
    }


def members(cls: type) -> int:
    """Names that a class and its bases in the package define, private ones too."""
    return len(
        {
            name
            for base in cls.__mro__
            if base.__module__.startswith("bayesgen")
            for name, value in vars(base).items()
            if not name.startswith("__")
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
        self.names: list[str] = []
        self.last = ""
        self.generators: set[Any] = set()

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or not file.startswith(self.root) or name.startswith("<"):
            return  # not ours, or a comprehension, a lambda, a module
        if frame in self.generators:
            return  # resumed, not called
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self.generators.add(frame)
        self.calls += 1
        self.changes += file != self.last
        self.last = file
        self.files.add(file)
        self.names.append(name)


def traced(package: Path, call: Callable[[], Any]) -> dict[str, int]:
    """Of the second of two equal calls."""
    call()
    trace = Trace(package)
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
    makes = sum(name == "_make_family" for name in trace.names)
    return {
        "calls": trace.calls,
        "file changes": trace.changes,
        "files": len(trace.files),
        "_make_family": makes,
    }


def journeys(package: Path, validate: bool) -> dict[str, dict[str, int]]:
    """What the main calls go through, for 40 rows."""
    import bayesgen as bg

    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 4)) + y[:, None]
    three = bg.GaussianNB().fit(X, y)
    two = bg.GaussianNB().fit(X, y > 0)
    out = {
        "fit": traced(package, lambda: bg.GaussianNB().fit(X, y)),
        "predict_proba": traced(package, lambda: three.predict_proba(X)),
        "predict_interval, C 2": traced(package, lambda: two.predict_interval(X)),
        "predict_interval, C 3": traced(package, lambda: three.predict_interval(X)),
    }
    if validate:
        options = {"draws": 100, "chains": 2, "random_seed": 0, "progressbar": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out["validate"] = traced(package, lambda: bg.validate(three, X, y, **options))
    return out


def family_members() -> dict[str, int]:
    """Members of the contract's classes, wherever this checkout keeps them."""
    try:
        from bayesgen.families import contract
    except ImportError:
        import bayesgen.family as contract
    import bayesgen as bg

    return {
        "members of Family": members(contract.Family),
        "members of ConjugateFamily": members(contract.ConjugateFamily),
        "lines of the contract": len(inspect.getsource(contract).splitlines()),
        "members of GaussianNB": members(bg.GaussianNB),
        "classes that GaussianNB inherits from": sum(
            c.__module__.startswith("bayesgen") for c in bg.GaussianNB.__mro__
        ),
    }


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repo", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-validate", action="store_true", help="skip the call that samples")
    arguments = parser.parse_args()
    package = arguments.repo.resolve() / "bayesgen"
    sys.path.insert(0, str(package.parent))
    found: dict[str, Any] = sizes(package) | family_members()
    found["journeys"] = journeys(package, not arguments.no_validate)
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if name != "journeys":
            print(f"{name:<50}{value:>8}")
    print()
    print(f"{'40 rows':<26}{'calls':>8}{'file changes':>14}{'files':>7}{'_make_family':>14}")
    for name, counts in found["journeys"].items():
        a, b, c, d = counts.values()
        print(f"{name:<26}{a:>8}{b:>14}{c:>7}{d:>14}")


if __name__ == "__main__":
    main()
