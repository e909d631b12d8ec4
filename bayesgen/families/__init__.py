"""One file for one prior-likelihood pair. The folder is the registry: `find` walks it."""

import importlib
import pkgutil

from bayesgen.family import Family


def registry() -> dict[str, type[Family]]:
    """{class name: class} of every family in this folder, sorted by file name."""
    found: dict[str, type[Family]] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        namespace = vars(importlib.import_module(f"{__name__}.{module}"))
        for name, value in namespace.items():
            if (
                isinstance(value, type)
                and issubclass(value, Family)
                and value.__module__ == f"{__name__}.{module}"
            ):
                found[name] = value
    return found
