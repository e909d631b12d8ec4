"""Run a command of the documentation's figures: arguments, a record of results, tables of a page.

    python -m tests.benchmarks.NAME                   measure what the record lacks, print tables
    python -m tests.benchmarks.NAME --only PATTERN    results whose name has the regular expression
    python -m tests.benchmarks.NAME --again PATTERN   measure these anew
    python -m tests.benchmarks.NAME --show --update   measure nothing, write the tables of the page

A record is `tests/benchmarks/NAME.jsonl`, with a result on a line. A result is written as soon as
it is there, so the same command goes on after it was killed, and processes with different patterns
fill one record next to each other. A result that fails is reported, and measured by the next run.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from tests.benchmarks import sets

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "benchmarks"
SURROUNDINGS = "surroundings"
Arguments = argparse.Namespace


class Record:
    """Results by name, kept in a file of lines ``[name, result]``; the last of a name counts."""

    def __init__(self, path: Path, only: str = "", again: str | None = None):
        self.path, self.only, self.failed, self.measured = path, only, 0, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.values: dict[str, Any] = dict(json.loads(line) for line in lines)
        if again is not None:
            self.values = {k: v for k, v in self.values.items() if not re.search(again, k)}
            path.write_text("", encoding="utf-8")
            for key, value in self.values.items():
                self.keep(key, value)

    def measure(self, key: str, call: Callable[[], Any]) -> None:
        """Keep the result of a call, if it is not there and is asked for."""
        if key in self.values or not re.search(self.only, key):
            return
        try:
            value = call()
        except Exception as error:  # noqa: BLE001 - one failure does not stop the others
            self.failed += 1
            print(f"{key}: {error!r}"[:800], file=sys.stderr, flush=True)
        else:
            if not self.measured:
                self.keep(SURROUNDINGS, surroundings())
            self.measured += 1
            self.keep(key, value)
            print(f"{key}: {json.dumps(value)}", file=sys.stderr, flush=True)

    def keep(self, key: str, value: Any) -> None:
        """Add a result."""
        self.values[key] = value
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, value]) + "\n")

    def frame(self, fields: str, values: str | None = None, start: str = "") -> pd.DataFrame:
        """Return the results as a table, with the fields of their names ("set size seed") as index.

        Results have as many fields as asked for, between bars; their names may have a `start`.
        `values` names the numbers of a list; dictionaries have names.
        """
        names = fields.split()
        rows = {
            tuple(key.split("|")): value
            for key, value in self.values.items()
            if key.count("|") == len(names) - 1 and key.startswith(start)
        }
        index = pd.MultiIndex.from_tuples(rows, names=names)
        return pd.DataFrame([*rows.values()], index, values and values.split())


Measure = Callable[[Record, Arguments], None]
Tables = dict[str | None, Callable[[Record], str]]


def main(doc: str, record: str, measure: Measure, tables: Tables) -> None:
    """Run a command that has no arguments of its own, and end the process."""
    sys.exit(run(parser(doc, record).parse_args(), measure, tables))


def parser(doc: str, record: str) -> argparse.ArgumentParser:
    """Return the arguments of all commands; `record` is the path of the file to be kept."""
    command = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--data", type=Path, default=sets.FOLDER, help="folder of public tables")
    command.add_argument("--only", default="", metavar="PATTERN", help="results with such a name")
    command.add_argument("--again", metavar="PATTERN", help="results to be measured anew")
    command.add_argument("--show", action="store_true", help="measure nothing")
    command.add_argument("--update", action="store_true", help="write the tables of the page")
    command.add_argument("--record", type=Path, default=Path(record).with_suffix(".jsonl"))
    return command


def run(
    args: Arguments,
    measure: Measure,
    tables: Tables,
    threads: int | None = 1,
) -> int:
    """Measure, print each table and write it between its markers; return 1 if a result failed.

    What a table of no marker (None) says is printed only.
    """
    record = Record(args.record, args.only, args.again)
    if not args.show:
        with threadpool_limits(threads), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            measure(record, args)
    for marker, table in tables.items():
        try:
            text = table(record)
        except KeyError as lacking:
            print(f"the record lacks {lacking} for a table", file=sys.stderr)
            continue
        print(f"\n{text}")
        if args.update and marker:
            write_between(marker, text)
    return int(record.failed > 0)


def surroundings() -> dict[str, Any]:
    """Return machine, versions, commit and date of a result."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    cpu = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpu.read_text()) if cpu.exists() else []
    packages = ("numpy", "scipy", "scikit-learn", "numba", "pymc", "nutpie")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "processor": (names or [platform.machine()])[0],
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in packages},
    }


def taken(record: Record) -> str:
    """Return machine, versions, commit and date as a line below a table."""
    where = record.values[SURROUNDINGS]
    versions = where["versions"]
    busy = f", with a load of {where['load']:.0f}" if where["load"] > 1.5 * where["cores"] else ""
    return (
        f"{where['processor']}, {where['cores']} cores; scikit-learn {versions['scikit-learn']}, "
        f"NumPy {versions['numpy']}, numba {versions['numba']}, Python {where['python']}; "
        f"commit {where['commit']}, {where['date']}{busy}."
    )


def markdown(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Return a table whose first columns are words and the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *rows])


def duration(seconds: float) -> str:
    """Return 3 digits in the unit that suits."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.0f} us"


def short(value: float, digits: int = 2) -> str:
    """Return a number without the 0 before its point."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def geometric(ratios: pd.Series) -> tuple[float, float]:
    """Return the geometric mean of ratios and its standard error."""
    logs = np.log(ratios.dropna())
    mean = np.exp(logs.mean())
    return mean, mean * logs.std() / np.sqrt(len(logs))


def write_between(marker: str, text: str, folder: Path = PAGES) -> None:
    """Replace what stands between ``<!-- marker: ... -->`` and ``<!-- /marker -->`` on its page."""
    between = re.compile(rf"(<!-- {marker}: .*?-->\n).*?(<!-- /{marker} -->)", re.S)
    pages = [p for p in folder.glob("*.md") if between.search(p.read_text(encoding="utf-8"))]
    if len(pages) != 1:
        raise SystemExit(f"<!-- {marker}: ... --> is on {len(pages)} pages of {folder}, not on one")
    whole = pages[0].read_text(encoding="utf-8")
    pages[0].write_text(between.sub(lambda found: f"{found[1]}{text}\n{found[2]}", whole), "utf-8")
