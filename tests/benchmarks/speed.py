"""Speed and memory next to scikit-learn's: `make bench` and `make bench-sizes`.

    make bench                                      large tables, about 12 minutes
    make bench ARGS="--scale .1"                    a tenth of the rows
    make bench ARGS="--only 'GaussianNB.fit'"       results with such a name
    make bench-sizes                                small and middling tables, three minutes
    make bench ARGS=--guard                         fail where a ratio fell below .7 of the one kept
    python -m tests.benchmarks.speed compiled       our kernels next to the same in NumPy
    make bench ARGS=--update                        into the record and docs/benchmarks/speed.md

A ratio is the peer's time by ours, in turn in one process in which kernels are loaded; ours is the
exact posterior predictive. Large tables go by the clock, the others by processor seconds. Each run
measures anew what it is asked for. Ratios are compared by the guard, as machines differ; one that
falls is measured twice more before it counts. It needs as many threads of BLAS (OMP_NUM_THREADS) as
the run that is kept: those that wait count as the peer's processor seconds.
"""

import pickle
import sys
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks import run, workloads
from tests.benchmarks.measure import MIB, apart, in_turn, peak
from tests.benchmarks.workloads import Workload

KEPT = "tests/benchmarks/speed_{}.jsonl"
LISTS = {"large": workloads.large, "sizes": workloads.sizes, "compiled": workloads.compiled}
FIELDS = "name call size peer"
LEAST_SHARE = 0.7  # of the ratio kept


def name_of(work: Workload) -> str:
    """Return the name of a result."""
    return "|".join((work.name, work.call, work.size, work.peer_name))


def measured(key: str, work: Workload, args: run.Arguments, kept: run.Record) -> dict:
    """Return seconds of both, their ratio and its goal, and MiB for a large table."""
    X, y = work.data(args.scale)
    calls = work.peer(X, y), work.ours(X, y)
    limit = LEAST_SHARE * kept.values.get(key, {"ratio": 0})["ratio"] if args.guard else 0
    for _ in range(3):
        row = in_turn(*calls, by_processor=args.table != "large")
        if row["ratio"] >= limit:
            break
    else:
        raise RuntimeError(f"ratio {row['ratio']:.2g}, {limit / LEAST_SHARE:.2g} before")
    memory = {}
    if args.table == "large" and X is not None and not args.no_memory:
        memory = apart(memory_of, key, args.scale)
    return {k: round(v, 7) for k, v in row.items()} | {"goal": work.goal} | memory


def memory_of(key: str, scale: float) -> dict[str, float]:
    """Return the MiB of both at their peak, above the input and without the result."""
    (work,) = (w for w in workloads.large() if name_of(w) == key)
    X, y = work.data(scale)
    mine = work.ours(X, y)
    rehearsal = work.peer(X[: max(5000, len(y) // 10)], y[: max(5000, len(y) // 10)])
    mib = {}
    for side, call, first in (("ours", mine, mine), ("theirs", work.peer(X, y), rehearsal)):
        above, result = peak(call, first)
        size = result.nbytes if hasattr(result, "nbytes") else len(pickle.dumps(result))
        mib[f"mib_{side}"] = round(max(0, above - size) / MIB, 1)
    return mib


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure a list of workloads."""
    kept = run.Record(run.ROOT / KEPT.format(args.table))
    for work in LISTS[args.table]():
        key = name_of(work)
        record.measure(key, partial(measured, key, work, args, kept))


# ------------------------------------------------------------------------------------------- tables


def ratio(row: Any) -> str:
    """Return a ratio in two digits."""
    return f"{row['ratio']:.2g}" if row["ratio"] < 10 else f"{row['ratio']:.0f}"


def goal(row: Any) -> str:
    """Return the goal of a ratio, and whether it was missed."""
    if row["goal"] is None or row["goal"] != row["goal"]:
        return ""
    return f"{row['goal']:g}" + " (missed)" * int(row["ratio"] < row["goal"])


def large(record: run.Record) -> str:
    """Return a line for each workload."""
    body = []
    for (name, call, size, peer), row in record.frame(FIELDS).iterrows():
        few = "*" if row["runs"] < 5 else ""
        times = run.duration(row["theirs"]) + few, run.duration(row["ours"])
        mib = [f"{row.get(f'mib_{s}', np.nan):.0f}".replace("nan", "") for s in ("theirs", "ours")]
        workload = ", ".join(filter(None, (f"{name} {call}", size)))
        body.append([workload, peer, *times, ratio(row), goal(row), *mib])
    head = ["workload", "peer", "theirs", "ours", "ratio", "goal", "MiB, theirs", "MiB, ours"]
    return f"""{run.markdown(head, body, left=2)}

{run.taken(record)} Theirs and ours in turn in one process, medians of 5 to 15 calls (*: of 3) \
after the first. MiB: peak of resident memory above input and result."""


def sizes(record: run.Record) -> str:
    """Return a line for fit and predict of each table."""
    body = []
    results = record.frame(FIELDS)
    for (name, size), calls in results.groupby(["name", "size"], sort=False):
        rows = [calls.xs(call, level="call").iloc[0] for call in ("fit", "predict")]
        cells = [(run.duration(r["theirs"]), run.duration(r["ours"]), ratio(r)) for r in rows]
        goals = [goal(row) for row in rows]
        body.append([name, size, *cells[0], *cells[1], " / ".join(goals) if any(goals) else ""])
    head = ["classifier", "rows", "fit: theirs", "ours", "ratio", "predict: theirs", "ours",
            "ratio", "goals of the ratios"]  # fmt: skip
    return f"{run.markdown(head, body, left=2)}\n\n{run.taken(record)}"


def compiled(record: run.Record) -> str:
    """Return the gains of kernels."""
    gains = record.frame(FIELDS)["ratio"].unstack("call", sort=False)
    body = [[f"{name}, {size}", *(f"{gain:.1f}" for gain in row)] for (name, size, _), row in
            gains.iterrows()]  # fmt: skip
    return run.markdown(["workload", "fit", "predict"], body)


TABLES = {"large": {"speed": large}, "sizes": {"sizes": sizes}, "compiled": {"compiled": compiled}}


def main(arguments: list[str] | None = None) -> int:
    """Measure a list and show it."""
    command = run.parser(__doc__, __file__)
    command.add_argument("table", choices=LISTS)
    command.add_argument("--scale", type=float, default=1.0, metavar="S", help="share of the rows")
    command.add_argument("--no-memory", action="store_true", help="skip what measures it")
    command.add_argument("--guard", action="store_true", help="compare with the ratios kept")
    command.set_defaults(record=None)
    args = command.parse_args(arguments)
    if args.update and (args.scale != 1 or args.no_memory):
        raise SystemExit("--update is for whole tables")
    kept = KEPT if args.update or args.show else ".benchmarks/speed_{}.jsonl"
    args.record = args.record or run.ROOT / kept.format(args.table)
    if not args.show:
        args.again = args.again or args.only or "."
    return run.run(args, measure, TABLES[args.table], threads=None)


if __name__ == "__main__":
    sys.exit(main())
