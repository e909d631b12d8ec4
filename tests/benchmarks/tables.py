"""The record of a run as tables: on the terminal, in Markdown, and between the page's markers."""

import datetime
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table
from threadpoolctl import threadpool_info

from tests.benchmarks.measure import ROOT

PAGES = ROOT / "docs" / "benchmarks"
PACKAGES = ("bayesgen", "numpy", "scipy", "scikit-learn", "numba")
MIB = 1 << 20


def surroundings() -> dict[str, Any]:
    """Machine, versions, date: where the figures come from."""
    git = ["git", "-C", str(ROOT)]
    run = {"capture_output": True, "text": True, "check": False}
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], **run).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno"], **run).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit + (" with changes" if changed else ""),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": load(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "threads": {
            f"{pool['internal_api']} ({Path(pool['filepath']).name[:24]})": pool["num_threads"]
            for pool in threadpool_info()
        },
    }


def load() -> float | None:
    """Processes that want a core, on average over the last minute, the asking one among them."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1)
    except (AttributeError, OSError, ValueError):
        return None


# -------------------------------------------------------------------------------------------- cells


def duration(value: float | None) -> str:
    """3 digits, in the unit that suits."""
    if value is None:
        return ""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.0f} us"


def memory(row: dict, side: str) -> str:
    above = row.get(f"memory_{side}_above")
    return "" if above is None else f"{above / MIB:.0f}"


def reached(row: dict) -> bool | None:
    """Whether the goal is; None where there is none."""
    return None if row.get("goal") is None else row["ratio"] >= row["goal"]


def cells(row: dict) -> list[str]:
    """Of one workload, in the order of `HEAD`."""
    if "error" in row:
        return [_label(row), row["peer"], *[""] * (len(HEAD) - 3), row["error"]]
    goal = "" if row["goal"] is None else f"{row['goal']:g}"
    return [
        _label(row),
        row["peer"],
        duration(row["peer_s"]) + ("*" if row["runs"] < 5 else ""),
        duration(row["ours_s"]),
        f"{row['ratio']:.2g}" if row["ratio"] < 10 else f"{row['ratio']:.0f}",
        goal if reached(row) is not False else f"{goal} (missed)",
        duration(row.get("floor_s")),
        memory(row, "peer"),
        memory(row, "ours"),
        duration(row.get("memory_ours_first_s", row.get("first_ours_s"))),
    ]


HEAD = (
    "workload", "peer", "theirs", "ours", "ratio", "goal", "np.sum",
    "MiB, theirs", "MiB, ours", "first call",
)  # fmt: skip
SHOWN = (*HEAD[:6], *HEAD[7:9])  # on the page
LEFT = 2  # columns of words; the others are of numbers


def _label(row: dict) -> str:
    return ", ".join(part for part in (row["name"], row["size"]) if part)


# ------------------------------------------------------------------------------------------- tables


def on_terminal(title: str, head: tuple[str, ...], rows: list[list[str]]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for k, name in enumerate(head):
        table.add_column(name, justify="left" if k < LEFT else "right", no_wrap=k >= LEFT)
    for row in rows:
        table.add_row(*row, style="red" if any("(missed)" in cell for cell in row) else None)
    return table


def markdown(head: tuple[str, ...], rows: list[list[str]], left: int = LEFT) -> str:
    """A Markdown table, the first columns to the left and the others to the right."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = [head, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(record: dict) -> str:
    """The workloads in Markdown, as docs/benchmarks/speed.md shows them."""
    where = record["surroundings"]
    few = any(row.get("runs", 5) < 5 for row in record["workloads"])
    keep = [HEAD.index(name) for name in SHOWN]
    rows = [[line[k] for k in keep] for line in map(cells, record["workloads"])]
    return (
        f"{markdown(SHOWN, rows)}\n\n{taken(where)}"
        + (f"; {where['note']}" if where.get("note") else "")
        + (f", {record['scale']:g} of the rows" if record["scale"] != 1 else "")
        + ". Theirs and ours in turn in one process, medians of 5 to 15 calls"
        + (" (*: of 3)" if few else "")
        + " after the first. MiB: peak of resident memory above input and result."
    )


def taken(where: dict) -> str:
    """Machine, versions, commit and date of a record, for the line below its table."""
    versions = where["versions"]
    return (
        f"{where['processor']}, {where['cores']} cores, {where['memory_gib']:g} GiB; "
        f"scikit-learn {versions['scikit-learn']}, NumPy {versions['numpy']}, "
        f"numba {versions['numba']}, Python {where['python']}; commit {where['commit']}, "
        f"{where['date'][:10]}{_busy(where)}"
    )


def _busy(where: dict) -> str:
    """A word of warning where others wanted the cores."""
    most = max(where.get("load") or 0.0, where.get("load_at_end") or 0.0)
    return f", on a machine with a load of {most:.0f}" if most > 1.5 * where["cores"] else ""


def write_between(marker: str, text: str, folder: Path = PAGES) -> None:
    """Replace what stands between ``<!-- marker: ... -->`` and ``<!-- /marker -->`` on its page."""
    between = re.compile(rf"(<!-- {marker}: .*?-->\n).*?(<!-- /{marker} -->)", re.S)
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    found = [path for path, whole in pages.items() if between.search(whole)]
    if len(found) != 1:
        raise SystemExit(f"<!-- {marker}: ... --> is on {len(found)} pages of {folder}, not on one")
    whole = between.sub(lambda part: f"{part[1]}{text.strip()}\n{part[2]}", pages[found[0]])
    found[0].write_text(whole, encoding="utf-8")
