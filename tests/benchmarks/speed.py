"""Speed and memory beside scikit-learn's: `make bench`.

    make bench                                      all of it, about 12 minutes
    make bench ARGS="--scale .1"                    a tenth of the rows
    make bench ARGS="--only 'GaussianNB fit'"       workloads whose name matches (a regex)
    make bench ARGS="--profile 'QDA predict'"       where our time goes: cProfile, one thread
    make bench ARGS="--update"                      the whole, written into docs/benchmarks/speed.md
    make bench ARGS="--list"                        names only

The record (JSON: machine, versions, date, every figure) goes to ``--record``; Ctrl-C, or being
terminated, ends a run with what was measured until then. The exit code is 1 if a workload failed or
the run was cut short; a missed goal is shown, not punished: machines differ.
"""

import argparse
import cProfile
import json
import pstats
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from tests.benchmarks import measure, startup, tables
from tests.benchmarks.workloads import Workload, all_workloads

KEPT = Path(__file__).with_name("speed.json")  # of docs/benchmarks/speed.md
UNKEPT = measure.ROOT / ".benchmarks" / "speed.json"


def chosen(pattern: str | None) -> list[tuple[int, Workload]]:
    """Workloads by name, with their places in the whole list."""
    return [
        (k, w)
        for k, w in enumerate(all_workloads())
        if pattern is None or re.search(pattern, f"{w.label} {w.peer_name}", re.IGNORECASE)
    ]


def profile(workload: Workload, scale: float, lines: int = 15) -> None:
    """Where the time of our call goes, by own time, on one thread (the profiler sees only one)."""
    call = workload.ours(*workload.data(scale))
    with threadpool_limits(1):
        call()
        with cProfile.Profile() as found:
            call()
    pstats.Stats(found, stream=sys.stdout).strip_dirs().sort_stats("tottime").print_stats(lines)


def run(args: argparse.Namespace, screen: Console) -> dict[str, Any]:
    """Measure what was asked for."""
    workloads = chosen(args.only)
    starts = [n for n in startup.PROCESSES if _asked(args.only, f"start-up: {n}")]
    if not (workloads or starts):
        raise SystemExit(f"no workload matches {args.only!r}; `--list` names them")
    record: dict[str, Any] = {"scale": args.scale, "surroundings": tables.surroundings()}
    record |= {"whole": False, "workloads": []}
    tasks: list[tuple[str, Callable[[], dict]]] = []
    for k, w in workloads:
        name = f"{w.label} beside {w.peer_name}"
        tasks.append((name, partial(_safely, k, w, args, screen)))
    for start in starts:
        tasks.append((f"start-up: {start}", partial(startup.measured, start)))
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=screen, auto_refresh=False) as progress:  # no thread beside
        bar = progress.add_task("", total=len(tasks))
        try:
            for name, measured in tasks:
                progress.update(bar, refresh=True, description=name)
                row = measured()
                record["workloads"].append(row)
                progress.advance(bar)
                if not screen.is_terminal:  # no bar there: a line for each
                    screen.print(" | ".join(tables.cells(row)), markup=False, soft_wrap=True)
            record["whole"] = not args.only
        except KeyboardInterrupt:
            screen.print("interrupted: here is what was measured")
    record["surroundings"]["load_at_end"] = tables.load()
    return record


def _safely(k: int, workload: Workload, args: argparse.Namespace, screen: Console) -> dict:
    """One row, or the error in its place: the other workloads are still of interest."""
    try:
        return measure.whole(k, workload, args.scale, not args.no_memory)
    except Exception as mistake:  # noqa: BLE001 - whatever it is, it is reported
        screen.print(traceback.format_exc(), markup=False)
        row = {"name": workload.name, "size": workload.size, "peer": workload.peer_name}
        return row | {"error": f"{type(mistake).__name__}: {mistake}"}


def _asked(pattern: str | None, name: str) -> bool:
    return pattern is None or re.search(pattern, name, re.IGNORECASE) is not None


def show(record: dict[str, Any], out: Console) -> None:
    """Tables on the terminal."""
    rows = [tables.cells(row) for row in record["workloads"]]
    if rows:
        out.print(tables.on_terminal("Beside the peers", tables.HEAD, rows))
    again = {name for row in record["workloads"] for name in row.get("memory_ours_compiled", ())}
    if again:
        out.print(f"compiled anew in a second process: {', '.join(sorted(again))}", style="red")


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    out.add_argument("--only", metavar="PATTERN", help="workloads that match a regular expression")
    out.add_argument("--scale", type=float, default=1.0, metavar="S", help="share of the rows")
    out.add_argument("--no-memory", action="store_true", help="skip the processes that measure it")
    out.add_argument("--threads", type=int, metavar="N", help="most threads, theirs and ours")
    out.add_argument("--profile", metavar="PATTERN", help="profile our side instead of measuring")
    out.add_argument("--update", action="store_true", help="write the page (whole runs)")
    out.add_argument("--record", type=Path, metavar="FILE", help="where the JSON goes")
    out.add_argument("--list", action="store_true", help="names only")
    return out


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    if args.update and (args.only or args.scale != 1 or args.no_memory or args.threads):
        raise SystemExit("--update is for a whole run: the table comes from one run")
    if not 0 < args.scale <= 1:
        raise SystemExit(f"--scale must be above 0 and at most 1, got {args.scale:g}")
    warnings.simplefilter("ignore")  # the peers' opinions of random data
    out = Console(width=max(170, Console().width)) if not sys.stdout.isatty() else Console()
    if args.list:
        for _, workload in chosen(args.only):
            out.print(f"{workload.label}  [{workload.peer_name}]", markup=False)
        return 0
    if args.profile is not None:
        for _, workload in chosen(args.profile):
            out.print(workload.label, markup=False, style="bold")
            profile(workload, args.scale)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with threadpool_limits(args.threads):
        record = run(args, Console(stderr=True))
    show(record, out)
    path = args.record or (KEPT if args.update and record["whole"] else UNKEPT)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    out.print(f"record: {path}", markup=False)
    failed = any("error" in row for row in record["workloads"])
    if args.update and (failed or not record["whole"]):
        out.print("speed.md left as it was: something failed or was interrupted", style="red")
    elif args.update:
        tables.write_between("speed", tables.page(record))
    return int(failed or not (record["whole"] or args.only))


if __name__ == "__main__":
    sys.exit(main())
