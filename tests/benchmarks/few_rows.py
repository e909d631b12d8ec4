"""3 to 50 rows per class: log loss, calibration error, time, size and licence.

    .venv/bin/python -m tests.benchmarks.few_rows                    # 10 minutes of one processor
    .venv/bin/python -m tests.benchmarks.few_rows --update           # docs/benchmarks/few_rows.md
    .venv/bin/python -m tests.benchmarks.few_rows --model tabpfn:TabPFNClassifier

``--model module:factory`` adds a method of yours: ``factory()`` returns an unfitted object with
``fit(X, y)`` and ``predict_proba(X)``, whose columns are the sorted labels. It gets arrays of
numbers: missing numbers are the mean of their column, categories are codes. Results are added to
few_rows.json, and ``--forget NAME`` takes those of a method out. Megabytes are those of its package
and of all that this requires, as installed here.
"""

import argparse
import importlib
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement
from sklearn.pipeline import make_pipeline

import bayesgen as bg
from tests.benchmarks import pool_peers
from tests.benchmarks.measure import ROOT
from tests.benchmarks.open_sets import fitted, keep, load, results, scores, splits, take
from tests.benchmarks.tables import duration, markdown, write_between

FILE = Path(__file__).with_name("few_rows.json")
ROWS = (3, 5, 10, 20, 50)  # per class; all that the training part has, if it has fewer
SETS = ("iris", "wine", "breast_cancer", "penguins", "pokemon", "banana", "german", "ionosphere",
        "segment", "splice", "tictactoe", "vehicle", "votes", "digits")  # fmt: skip
SPLITS = 2
MOST_TEST_ROWS = 400
NAIVE = {"real": bg.GaussianNB, "mixed": bg.MixedNB, "categories": bg.CategoricalNB}
PEERS = {
    "GaussianNB of scikit-learn": "NB",
    "logistic regression, CV": "LR-CV",
    "random forest": "RF",
    "boosting, tuned": "HGB",
}
OURS = ("LogLinearPool()", "naive Bayes of bayesgen")


def models(s, X, y, own) -> dict:
    """{name: unfitted classifier}."""
    known = pool_peers.peers(s, X, y)
    out = {OURS[0]: bg.LogLinearPool(), OURS[1]: NAIVE[s.kind]()}
    out |= {name: known[key] for name, key in PEERS.items()}
    for name, factory in own.items():
        out[name] = make_pipeline(pool_peers.table(X, ordinal=True, scale=False), factory())
    return out


def few(s) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """(rows per class, seed, training rows, test rows); fewer rows are part of more."""
    for size, seed, rows, test in splits(s.y, SPLITS):
        if size == "two thirds":
            rng = np.random.default_rng(seed)
            order, test = rng.permutation(rows), rng.permutation(test)[:MOST_TEST_ROWS]
            for n in ROWS:
                first = [order[s.y[order] == c][:n] for c in np.unique(s.y)]
                yield n, seed, np.concatenate(first), test


def measure(known: dict, own: dict) -> None:
    """Add what is not in the file: log loss, calibration error, seconds of fit and prediction."""
    sets = load()
    for s in (sets[name] for name in SETS if name in sets):
        for n, seed, rows, test in few(s):
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            codes = np.searchsorted(np.unique(y), s.y[test])
            for name, model in models(s, X, y, own).items():
                key = f"{s.name}|{n}|{seed}|{name}"
                if key in known:
                    continue
                proba, seconds = fitted(model, X, y, T)
                loss, error = scores(proba, codes)
                known[key] = [round(float(loss.mean()), 5), round(error, 5), round(seconds, 4)]
                keep(FILE, known)
        print(s.name, flush=True)


# ------------------------------------------------------------------------------------------- size


def installed(name: str) -> tuple[float, str]:
    """(MB of a distribution and of all that it requires here, its licence)."""
    seen, waiting = {}, [name]
    while waiting:
        found = metadata.distribution(waiting.pop())
        if (key := found.name.lower().replace("_", "-")) in seen:
            continue
        files = [Path(found.locate_file(file)) for file in found.files or ()]
        if key == "bayesgen":  # installed from here
            files = list((ROOT / "bayesgen").rglob("*.*"))
        seen[key] = sum(path.stat().st_size for path in files if path.is_file())
        for text in found.requires or ():
            required = Requirement(text)
            if required.marker is None or required.marker.evaluate({"extra": ""}):
                waiting.append(required.name)
    about = metadata.metadata(name)
    licence = about.get("License-Expression") or about.get("License") or ""
    return sum(seen.values()) / 1e6, licence.split("\n")[0]


def package_of(method: str) -> str:
    """The distribution that a method comes from."""
    if method in OURS:
        return "bayesgen"
    module = method.partition(":")[0].partition(".")[0] if ":" in method else "sklearn"
    return metadata.packages_distributions().get(module, [""])[0]


# ------------------------------------------------------------------------------------------- page


def page(known: dict) -> str:
    """Means over sets and splits by method; then the pool over each, with errors over sets."""
    names = list(dict.fromkeys(key.split("|")[3] for key in known))
    by = {name: {n: _by_set(known, n, name) for n in ROWS} for name in names}
    head = ("method", *(f"{n} rows" for n in ROWS), "fit and predict", "MB", "licence")
    body = []
    for name, of in by.items():
        cells = [
            f"{np.mean([v[0] for v in of[n].values()]):.2f} / "
            f"{np.mean([v[1] for v in of[n].values()]):.2f}".replace("0.", ".")
            for n in ROWS
        ]
        seconds = np.median([v[2] for v in of[20].values()])
        package = package_of(name)
        size, licence = installed(package) if package else (np.nan, "")
        body.append([name, *cells, duration(seconds), f"{size:.0f}", licence])
    ratios = [
        [name, *(_over(by[OURS[0]][n], of[n]) for n in ROWS)]
        for name, of in by.items()
        if name != OURS[0]
    ]
    return "\n\n".join(
        [
            markdown(head, body, 1),
            f"Means over {len(by[OURS[0]][20])} sets, {SPLITS} splits each. Processor time is the "
            "median over sets with 20 rows per class and at most "
            f"{MOST_TEST_ROWS} test rows, first calls included.",
            "Log loss of the pool over that of the other, geometric means +- standard errors over "
            "sets:",
            markdown(("the pool over", *(f"{n} rows" for n in ROWS)), ratios, 1),
        ]
    )


def _by_set(known: dict, n: int, name: str) -> dict[str, np.ndarray]:
    """{set: mean over splits of (log loss, calibration error, seconds)}."""
    out: dict[str, list] = {}
    for key, values in known.items():
        s, size, _, method = key.split("|")
        if method == name and int(size) == n:
            out.setdefault(s, []).append(values)
    return {s: np.mean(values, axis=0) for s, values in out.items()}


def _over(pool: dict, other: dict) -> str:
    """Geometric mean of the ratio of log losses, and its standard error."""
    logs = np.log([pool[s][0] / other[s][0] for s in pool.keys() & other.keys()])
    mean = np.exp(logs.mean())
    error = mean * logs.std(ddof=1) / np.sqrt(len(logs))
    return f"{mean:.2f} +- {error:.2f}".replace("0.", ".")


def main() -> None:
    """Measure what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", default=[], metavar="MODULE:FACTORY")
    parser.add_argument("--forget", default="", metavar="NAME", help="a method's results")
    parser.add_argument("--update", action="store_true", help="write the page from what is kept")
    options = parser.parse_args()
    known = results(FILE)
    known = {key: v for key, v in known.items() if key.split("|")[3] != options.forget}
    own = {}
    for name in options.model:
        module, _, factory = name.partition(":")
        own[name] = getattr(importlib.import_module(module), factory)
    if not options.update:
        measure(known, own)
        keep(FILE, known)
        print(re.sub(r" *\| *", "  ", page(known)))
    else:
        write_between("few-rows", page(known))


if __name__ == "__main__":
    main()
