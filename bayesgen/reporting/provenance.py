"""How a report was made: versions, seed, constructor, what was left out and why."""

import platform
import sys
from datetime import UTC, datetime
from importlib import metadata

from bayesgen.reporting.held_out import HeldOut
from bayesgen.reporting.parts import Section, Table, count, share
from bayesgen.version import __version__


def reproduction(held: HeldOut, left_out: list[str], seconds: float) -> Section:
    """Versions, seed, constructor, what was left out and why."""
    clf = held.clf
    names = ("bayesgen", "numpy", "scipy", "scikit-learn", "xarray", "arviz", "pymc", "matplotlib")
    versions = {"python": platform.python_version(), **{n: _version(n) for n in names}}
    created = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    seen = getattr(clf, "n_rows_seen_", getattr(clf, "n_rows_", None))
    rows = [
        ["classifier", " ".join(repr(clf).split())],
        ["fitted to", "" if seen is None else count(seen, "row")],
        [f"{held.what}s", f"{count(held.n, 'row')} of {count(held.n_given, 'row')}"],
        ["intervals", share(held.prob)],
        ["seed", str(held.seed)],
        ["made", f"{created}, in {seconds:.1f} s, on {sys.platform}"],
        ["versions", ", ".join(f"{k} {v}" for k, v in versions.items())],
        ["again", f"bg.report(clf, X, y, prob={held.prob:g}, random_state={held.seed})"],
    ]
    return Section(
        "reproduction",
        "How this was made",
        tables=[Table("What it takes to make it again", ["what", "value"], rows, 2)],
        notes=left_out,
        data={"created": created, "seconds": seconds, "versions": versions, "seed": held.seed,
              "classifier": repr(clf), "left_out": left_out},
    )  # fmt: skip


def _version(name: str) -> str:
    if name == "bayesgen":
        return __version__
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
