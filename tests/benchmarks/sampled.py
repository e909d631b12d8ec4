"""What NUTS costs and whether its draws are sound: every sampled classifier at its defaults.

    .venv/bin/python tests/benchmarks/sampled.py                      # about 40 minutes, two cores
    .venv/bin/python tests/benchmarks/sampled.py --only 'Mixture.*wine'   # a regular expression
    .venv/bin/python tests/benchmarks/sampled.py --update             # and docs/benchmarks/nuts.md
    .venv/bin/python tests/benchmarks/sampled.py --update --only X    # some of its rows anew

Each classifier is fitted, as a user would without arguments (4 chains of 1000 draws after 1000),
to the data sets whose columns are of its kind. Bits are columns above their median, counts Pokémon
stats and SMS words. A first fit of one draw compiles; then one fit for each seed.

Seconds are of processors, all chains together, which other work on the machine does not change; on
idle cores the wall clock shows them divided by min(cores, 4). ESS is the least effective sample
size of any parameter, bulk or tail, R-hat the largest, both the worst of the seeds; divergences
are of all seeds.
"""

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import bayesgen as bg
from bayesgen.inference.nuts import LARGEST_R_HAT, diagnose
from tests.benchmarks import tables
from tests.benchmarks.sets import load, numbers, words

KEPT = Path(__file__).with_name("sampled.json")
FEWEST = 400  # effective draws asked for
SEEDS = (0, 1)
Rows = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A classifier at its defaults, and rows of its kind."""

    name: str
    data: str
    make: Callable[..., Any]
    load: Callable[[], Rows]

    @property
    def label(self) -> str:
        return f"{self.name} {self.data}"


# --------------------------------------------------------------------------------------------- data


def bits(rows: Callable[[], Rows]) -> Callable[[], Rows]:
    """Columns above their median; words present or not."""

    def found() -> Rows:
        X, y = rows()
        return (np.median(X, axis=0) < X).astype(np.uint8), y

    return found


SETS = {"penguins": "penguins", "iris": "iris", "wine": "wine", "Pokémon": "pokemon"}
TABLES = {data: partial(numbers, name) for data, name in SETS.items()}


def cases() -> Iterator[Case]:
    """Every classifier on every data set of its kind."""
    every, some = "SMS, 5574 messages", "SMS, 1500 messages"
    there = "sms" in load()
    reals: dict[str, Callable[..., Any]] = {
        "StudentTNB": bg.StudentTNB,
        "BayesianLogisticRegression": bg.BayesianLogisticRegression,
        "BayesianLogisticRegression, quadratic": lambda **o: bg.BayesianLogisticRegression(
            features="quadratic", **o
        ),
        "MixtureDiscriminant": bg.MixtureDiscriminant,
    }
    for name, make in reals.items():
        for data, rows in TABLES.items():
            yield Case(name, data, make, rows)
        if name == "BayesianLogisticRegression" and there:
            yield Case(name, some, make, partial(words, 1500))
    for data, rows in TABLES.items():
        yield Case("HierarchicalBernoulliNB", data, bg.HierarchicalBernoulliNB, bits(rows))
    if there:
        yield Case("HierarchicalBernoulliNB", every, bg.HierarchicalBernoulliNB, words)
    yield Case("NegativeBinomialNB", "Pokémon", bg.NegativeBinomialNB, TABLES["Pokémon"])
    if there:
        yield Case("NegativeBinomialNB", every, bg.NegativeBinomialNB, words)


# ---------------------------------------------------------------------------------------- measuring


def measured(case: Case, seeds: tuple[int, ...] = SEEDS) -> dict[str, Any]:
    """Compilation apart, then one fit for each seed."""
    X, y = case.load()
    busy = time.process_time()
    case.make(draws=4, tune=1, chains=1, random_state=0).fit(X, y, progressbar=False)
    row: dict[str, Any] = {
        "classifier": case.name,
        "data": case.data,
        "rows": len(y),
        "features": X.shape[1],
        "classes": len(np.unique(y)),
        "compile_s": time.process_time() - busy,
        "fits": [],
    }
    for seed in seeds:
        start, busy = time.perf_counter(), time.process_time()
        clf = case.make(random_state=seed).fit(X, y, progressbar=False)
        seconds, processor = time.perf_counter() - start, time.process_time() - busy
        tree = clf.posterior_
        found = diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset())
        stats = tree["sample_stats"].to_dataset()
        row["fits"].append(
            found._asdict()
            | {"seed": seed, "wall_s": seconds, "processor_s": processor}
            | {"steps": float(stats["n_steps"].mean()), "draws": int(stats["n_steps"].size)}
        )
    return row


def summary(row: dict[str, Any]) -> dict[str, Any]:
    """The worst of the fits, and their mean seconds."""
    fits = row["fits"]
    seconds = float(np.mean([f["processor_s"] for f in fits]))
    return {
        "seconds": seconds,
        "ess": min(f["ess"] for f in fits),
        "ess_of": min(fits, key=lambda f: f["ess"])["ess_of"],
        "rate": float(np.mean([f["ess"] / f["processor_s"] for f in fits])),
        "r_hat": max(f["r_hat"] for f in fits),
        "steps": float(np.mean([f["steps"] for f in fits])),
        "divergences": sum(f["divergences"] for f in fits),
        "draws": sum(f["draws"] for f in fits),
    }


def sound(row: dict[str, Any]) -> bool:
    """No divergence, R-hat and ESS as they should be."""
    s = summary(row)
    return s["divergences"] == 0 and s["r_hat"] <= LARGEST_R_HAT and s["ess"] >= FEWEST


HEAD = ("classifier", "data", "N x D, C", "compile s", "sample s", "steps", "ESS", "ESS/s",
        "R-hat", "divergences")  # fmt: skip


def cells(row: dict[str, Any]) -> list[str]:
    """Of one classifier and data set, in the order of `HEAD`."""
    s = summary(row)
    return [
        f"`{row['classifier']}`",
        row["data"],
        f"{row['rows']} x {row['features']}, {row['classes']}",
        f"{row['compile_s']:.0f}",
        f"{s['seconds']:.2g}" if s["seconds"] < 10 else f"{s['seconds']:.0f}",
        f"{s['steps']:.0f}",
        f"{s['ess']:.0f}",
        f"{s['rate']:.0f}" if s["rate"] >= 10 else f"{s['rate']:.2g}",
        f"{s['r_hat']:.3f}",
        str(s["divergences"]),
    ]


PER_CLASSIFIER = ("classifier", "data sets", "compile s", "sample s", "least ESS", "ESS/s",
                  "largest R-hat", "divergences")  # fmt: skip


def page(record: dict[str, Any]) -> str:
    """One row per classifier, as docs/benchmarks/nuts.md shows it: ranges over the data sets."""
    order = [case.label for case in cases()]
    rows = sorted(record["rows"], key=lambda row: order.index(_label(row)))
    body = []
    for name in dict.fromkeys(row["classifier"] for row in rows):
        own = [row for row in rows if row["classifier"] == name]
        found = [summary(row) for row in own]
        body.append(
            [
                f"`{name}`",
                str(len(own)),
                _range([row["compile_s"] for row in own]),
                _range([s["seconds"] for s in found]),
                f"{min(s['ess'] for s in found):.0f}",
                _range([s["rate"] for s in found]),
                f"{max(s['r_hat'] for s in found):.3f}",
                str(sum(s["divergences"] for s in found)),
            ]
        )
    where = record["surroundings"]
    return (
        f"{tables.markdown(PER_CLASSIFIER, body, 1)}\n\n{where['processor']}, {where['cores']} "
        f"cores, nutpie {where['versions']['nutpie']}. Data sets: penguins, iris, wine, Pokémon, "
        "SMS messages (1500 or 5574). Two fits of 4 chains of 1000 draws each; ESS is bulk or "
        "tail, of any parameter. Seconds are of processors, all chains together."
    )


def _range(values: list[float]) -> str:
    """The smallest to the largest, in two digits."""
    ends = [f"{float(f'{v:.2g}'):g}" for v in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


def _label(row: dict[str, Any]) -> str:
    return f"{row['classifier']} {row['data']}"


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Old rows, but for those measured anew."""
    again = {_label(row) for row in new}
    return [row for row in old if _label(row) not in again] + new


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="of classifier and data set")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), metavar="N", help="fits of each")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="JSON whose rows of these cases are replaced"
    )
    parser.add_argument(
        "--update", action="store_true", help="keep the record; write docs/benchmarks/nuts.md"
    )
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")  # what they say is in the table
    path = KEPT if args.update else args.record
    where = tables.surroundings()
    where["versions"] |= {name: metadata.version(name) for name in ("nutpie", "pymc")}
    kept = []
    if path is not None and path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))["rows"]
    rows: list[dict[str, Any]] = []
    record = {"surroundings": where, "rows": kept}
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    for case in cases():
        if re.search(args.only, case.label, re.IGNORECASE):
            rows.append(measured(case, tuple(range(args.seeds))) | {"commit": where["commit"]})
            print(f"| {' | '.join(cells(rows[-1]))} |{'' if sound(rows[-1]) else ' !'}", flush=True)
            record["rows"] = merged(kept, rows)
            if path is not None:
                path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if args.update:
        tables.write_between("sampled", page(record))
    return int(not all(sound(row) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
