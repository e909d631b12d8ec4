"""What NUTS costs and whether its draws are sound: every sampled classifier at its defaults.

    python -m tests.benchmarks.sampled    # about 40 minutes, two cores

Each classifier is fitted, as a user would without arguments (4 chains of 1000 draws after 1000),
to the data sets whose columns are of its kind. Bits are columns above their median, counts Pokémon
stats and SMS words. A first fit of one draw compiles; then one fit for each of two seeds.

Seconds are of processors, all chains together, which other work on the machine does not change; on
idle cores the wall clock shows them divided by min(cores, 4). ESS is the least effective sample
size of any parameter, bulk or tail, R-hat the largest.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import bayesgen as bg
from bayesgen.inference.nuts import Diagnosis, diagnose
from tests.benchmarks import run, sets

TABLES_OF = {"penguins": "penguins", "iris": "iris", "wine": "wine", "Pokémon": "pokemon"}


class Case(NamedTuple):
    """A classifier at its defaults, and rows of its kind."""

    name: str
    data: str
    make: Callable[..., Any]
    load: Callable[[], tuple[np.ndarray, np.ndarray]]


def bits(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return columns above their median; words are present or not."""
    X, y = sets.words() if name == "sms" else sets.numbers(name)
    return (np.median(X, axis=0) < X).astype(np.uint8), y


def cases() -> Iterator[Case]:
    """Yield every classifier on every data set of its kind."""
    every, some = "SMS, 5574 messages", "SMS, 1500 messages"
    there = "sms" in sets.load()
    regression = bg.BayesianLogisticRegression
    quadratic = partial(regression, features="quadratic")
    reals: dict[str, Callable[..., Any]] = {
        "StudentTNB": bg.StudentTNB,
        "BayesianLogisticRegression": regression,
        "BayesianLogisticRegression, quadratic": quadratic,
        "MixtureDiscriminant": bg.MixtureDiscriminant,
    }
    for name, make in reals.items():
        for data, table in TABLES_OF.items():
            yield Case(name, data, make, partial(sets.numbers, table))
    for data, table in TABLES_OF.items():
        name = "HierarchicalBernoulliNB"
        yield Case(name, data, bg.HierarchicalBernoulliNB, partial(bits, table))
    counts = partial(sets.numbers, "pokemon")
    yield Case("NegativeBinomialNB", "Pokémon", bg.NegativeBinomialNB, counts)
    if there:
        yield Case("BayesianLogisticRegression", some, regression, partial(sets.words, 1500))
        yield Case(
            "HierarchicalBernoulliNB", every, bg.HierarchicalBernoulliNB, partial(bits, "sms")
        )
        yield Case("NegativeBinomialNB", every, bg.NegativeBinomialNB, sets.words)


def measured(case: Case) -> dict[str, float]:
    """Compile apart, then fit once for each seed."""
    X, y = case.load()
    start = time.process_time()
    case.make(draws=4, tune=1, chains=1, random_state=0).fit(X, y, progressbar=False)
    compiling, seconds, diagnoses = time.process_time() - start, [], []
    for seed in (0, 1):
        start = time.process_time()
        clf = case.make(random_state=seed).fit(X, y, progressbar=False)
        seconds.append(time.process_time() - start)
        tree = clf.posterior_
        diagnoses.append(
            diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset())
        )
    return {"compile": round(compiling, 1), **worst(seconds, diagnoses)}


def worst(seconds: list[float], diagnoses: list[Diagnosis]) -> dict[str, float]:
    """Return the mean cost of some fits, and their worst diagnostics."""
    rates = [f.ess / s for f, s in zip(diagnoses, seconds, strict=True)]
    return {
        "seconds": round(float(np.mean(seconds)), 2),
        "ess": round(min(f.ess for f in diagnoses)),
        "rate": round(float(np.mean(rates)), 3),
        "r_hat": round(max(f.r_hat for f in diagnoses), 4),
        "divergences": sum(f.divergences for f in diagnoses),
    }


def measure(record: run.Record, args: run.Arguments) -> None:
    """Measure each classifier on each data set."""
    for case in cases():
        record.measure(f"{case.name}|{case.data}", partial(measured, case))


def table(record: run.Record) -> str:
    """Return a line per classifier: ranges over the data sets."""
    body = [
        [f"`{name}`", str(len(of)), between(of["compile"]), between(of["seconds"]),
         f"{of['ess'].min():.0f}", between(of["rate"]), f"{of['r_hat'].max():.3f}",
         f"{of['divergences'].sum():.0f}"]
        for name, of in record.frame("classifier data").groupby("classifier", sort=False)
    ]  # fmt: skip
    head = ["classifier", "data sets", "compile s", "sample s", "least ESS", "ESS/s",
            "largest R-hat", "divergences"]  # fmt: skip
    where = record.values[run.SURROUNDINGS]
    return f"""{run.markdown(head, body)}

{where["processor"]}, {where["cores"]} cores, nutpie {where["versions"]["nutpie"]}. Data sets: \
penguins, iris, wine, Pokémon, SMS messages (1500 or 5574). Two fits of 4 chains of 1000 draws \
each; ESS is bulk or tail, of any parameter. Seconds are of processors, all chains together."""


def between(values: pd.Series) -> str:
    """Return the smallest to the largest, in two digits."""
    ends = [f"{float(f'{v:.2g}'):g}" for v in (values.min(), values.max())]
    return " to ".join(dict.fromkeys(ends))


TABLES = {"sampled": table}

if __name__ == "__main__":
    run.main(__doc__, __file__, measure, TABLES)
