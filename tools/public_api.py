"""The public API as text: one line for each name, with its parameters and their defaults.

    .venv/bin/python tools/public_api.py             # how the list and the package differ
    .venv/bin/python tools/public_api.py --update    # the list anew; read its diff

What is listed: the names of ``bayesgen.__all__``, of `bayesgen.datasets` and of `bayesgen.plots`;
the families by their constructors; the commands of the command line. Of a class: the constructor,
the public classes it derives from, the attributes that its docstring names, and the methods and
properties that this package defines. A method of a classifier stands with `GenerativeClassifier`,
and once more only where a classifier's own has other parameters. Annotations are left out: types
are held by tests/test_typing.py.
"""

import argparse
import dataclasses
import difflib
import importlib
import inspect
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

LIST = Path(__file__).parents[1] / "tests" / "public_api.txt"


def ours(value: Any) -> bool:
    """Whether a class or function is defined in this package."""
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "bayesgen"


def parameters(value: Any, without: Collection[str] = ()) -> str:
    """Parameters of a callable as they are written, without annotations."""
    every = inspect.signature(value).parameters.values()
    return str(
        inspect.Signature([p.replace(annotation=p.empty) for p in every if p.name not in without])
    )


def documented_attributes(cls: type) -> list[str]:
    """Names under "Attributes" in the class's own docstring."""
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(cls) or "", re.DOTALL | re.MULTILINE
    )
    entries = re.findall(r"^(\w[\w, ]*)(?= :|$)", section[1], re.MULTILINE) if section else []
    return [name for entry in entries for name in entry.split(", ")]


def members(cls: type) -> list[str]:
    """``.method(its parameters)`` and `` has attribute`` of all that this package defines."""
    names = [name for name in dir(cls) if not name.startswith("_")]
    static = {name: inspect.getattr_static(cls, name) for name in names}
    has_fields = dataclasses.is_dataclass(cls) and not issubclass(cls, BaseEstimator)
    fields = [f.name for f in dataclasses.fields(cls)] if has_fields else []
    properties = [name for name, value in static.items() if isinstance(value, property)]
    attributes = {*documented_attributes(cls), *properties, *fields}
    methods = [name for name in names if name not in attributes]
    return [
        *(f" has {name}" for name in sorted(attributes) if not name.startswith("_")),
        *(
            f".{name}{parameters(method)}"
            for name in methods
            if callable(method := getattr(cls, name)) and ours(method)
        ),
    ]


def class_lines(path: str, cls: type, parents: list[type]) -> Iterator[str]:
    """Of a public class; ``parents`` are the other public classes."""
    if issubclass(cls, Exception):  # raised and caught by name, never made by users
        yield f"{path} is a {cls.__mro__[1].__name__}"
        return
    yield f"{path}{parameters(cls)}"
    bases = [c for c in cls.__mro__[1:] if c in parents or c.__module__ == "sklearn.base"]
    names = [c.__name__ for c in bases if not c.__name__.startswith(("_", "ReprHTML"))]
    if names:
        yield f"{path} is a {', '.join(names)}"
    inherited = {member for c in bases if c in parents for member in members(c)}
    for member in members(cls):
        if member not in inherited:
            yield f"{path}{member}"


def module_lines(module: Any) -> Iterator[str]:
    """Of every name in ``__all__``."""
    path = module.__name__
    values = {name: getattr(module, name) for name in sorted(module.__all__)}
    classes = [value for value in values.values() if inspect.isclass(value)]
    for name, value in values.items():
        if inspect.ismodule(value):
            yield from module_lines(value)
        elif inspect.isclass(value):
            yield from class_lines(f"{path}.{name}", value, classes)
        elif callable(value):
            yield f"{path}.{name}{parameters(value)}"
            result = inspect.signature(value).return_annotation
            if inspect.isclass(result) and ours(result) and result not in classes:
                for member in members(result):
                    yield f"{path}.{name}() gives {result.__name__}{member}"
        else:
            yield f"{path}.{name} = {value!r}"


def family_lines() -> Iterator[str]:
    """The constructor of every prior-likelihood pair, without what only the rows fill in."""
    families = importlib.import_module("bayesgen.families").registry()
    for name, family in sorted(families.items()):
        guides = {f.name for f in dataclasses.fields(family) if "guide" in f.metadata}
        yield f"bayesgen.families.{name}{parameters(family, without=guides)}"


def command_lines() -> Iterator[str]:
    """The arguments and options of every command."""
    import typer

    group = typer.main.get_command(importlib.import_module("bayesgen.cli").app)
    for name, command in sorted({"": group, **group.commands}.items()):
        for parameter in command.params:
            if parameter.name != "help":
                spelt = [*parameter.opts, *parameter.secondary_opts]
                yield f"$ bayesgen {name} {', '.join(spelt)}".replace("  ", " ")


def public_api() -> list[str]:
    """Every line, sorted within its part."""
    return [*module_lines(importlib.import_module("bayesgen")), *family_lines(), *command_lines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the list")
    if parser.parse_args().update:
        LIST.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
    else:
        known = LIST.read_text(encoding="utf-8").splitlines()
        print("\n".join(line for line in difflib.ndiff(known, public_api()) if line[0] in "+-"))


if __name__ == "__main__":
    main()
