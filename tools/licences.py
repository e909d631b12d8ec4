"""List the licences of bayesgen and all that it installs, extras left out; refuse others.

python tools/licences.py; exit code 1 if a licence is not in `ALLOWED`.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Permissive licences, as distributions spell them
ALLOWED = {
    "0BSD",
    "Apache Software License",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD",
    "BSD License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC License",
    "MIT",
    "MIT License",
    "PSF-2.0",
    "Zlib",
}


def is_allowed(expression: str) -> bool:
    """Return whether one alternative of a licence expression names allowed licences alone."""
    return any(
        all(name.strip("() ") in ALLOWED for name in alternative.split(" AND "))
        for alternative in expression.split(" OR ")
    )


def licence(name: str) -> str:
    """What a distribution says of itself, in one line."""
    own = distribution(name).metadata
    said = own.get("License-Expression") or own.get("License") or ""
    if not said or "\n" in said:
        kinds = [c for c in own.get_all("Classifier") or () if c.startswith("License ::")]
        said = ", ".join(c.rpartition(" :: ")[2] for c in kinds) or said.strip().split("\n")[0]
    return said or "not stated"


def installed(name: str, seen: set[str]) -> None:
    """Add a distribution and what it needs here to `seen`."""
    seen.add(name := canonicalize_name(name))
    for text in distribution(name).requires or ():
        need = Requirement(text)
        unused = need.marker is not None and not need.marker.evaluate({"extra": ""})
        if unused or canonicalize_name(need.name) in seen:
            continue
        try:
            installed(need.name, seen)
        except PackageNotFoundError:
            seen.discard(canonicalize_name(need.name))


if __name__ == "__main__":
    names: set[str] = set()
    installed("bayesgen", names)
    refused = [name for name in sorted(names) if not is_allowed(licence(name))]
    for name in sorted(names):
        print(f"{name} {distribution(name).version}: {licence(name)}")
    if refused:
        sys.exit(f"not in the list of licences of tools/licences.py: {', '.join(refused)}")
