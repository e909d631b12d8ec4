"""Prior-likelihood pairs: one file or folder each, in `conjugate` and `sampled`.

The folders are the registry. Each family is also a name of this package, loaded on first use:
``from bayesgen.families import NormalInverseGamma``.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesgen.families.contract import Family

_FOLDERS = ("conjugate", "sampled")


def registry() -> "dict[str, type[Family]]":
    """{class name: class} of every family in these folders, sorted by file name."""
    from bayesgen.families.contract import Family

    found: dict[str, type[Family]] = {}
    for folder in _FOLDERS:
        package = importlib.import_module(f"{__name__}.{folder}")
        for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
            home = f"{package.__name__}.{module}"
            for name, value in vars(importlib.import_module(home)).items():
                if (
                    isinstance(value, type)
                    and issubclass(value, Family)
                    and (value.__module__ + ".").startswith(home + ".")
                ):
                    found[name] = value
    return found


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and (family := registry().get(name)):
        return family
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
