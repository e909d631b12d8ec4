"""The licences of bayesgen and all that it installs, extras left out: python tools/licences.py."""

from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


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
    for name in sorted(names, key=str.lower):
        print(f"{name} {distribution(name).version}: {licence(name)}")
