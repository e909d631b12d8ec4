"""The log-linear pool on the open sets, beside what users call today (pool_peers.py).

    .venv/bin/python -m tests.benchmarks.pools [--only iris,wine] [--splits 5]   measure
    .venv/bin/python -m tests.benchmarks.pools --table                           show pools.json

One line for each set, size, split and model: log loss, calibration error, seconds to fit.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import log_softmax

import bayesgen as bg
from tests.benchmarks.open_sets import keep, least_ece, load, results, scores, splits, take

FILE = Path(__file__).with_name("pools.json")
PEERS = Path(__file__).with_name("pool_peers.json")
SIZES = ("two thirds", "20 per class")


def measure(only, n_splits):
    """Add what is not in the file."""
    known = results(FILE)
    for s in load().values():
        if only and s.name not in only:
            continue
        for size, seed, rows, test in splits(s.y, n_splits):
            key = f"{s.name}|{size}|{seed}"
            if f"{key}|pool" in known:
                continue
            X, y, T = take(s.X, rows), s.y[rows], take(s.X, test)
            codes = np.searchsorted(np.unique(y), s.y[test])

            def add(name, log_p, seconds, beside=None, codes=codes, key=key):
                """Loss, ECE, seconds; the pool's loss less this, its se; ECE by chance alone."""
                loss, ece = scores(np.exp(log_p), codes)
                gap = np.zeros(1) if beside is None else beside - loss
                known[f"{key}|{name}"] = [
                    round(float(loss.mean()), 6),
                    round(ece, 5),
                    round(seconds, 3),
                    round(float(gap.mean()), 6),
                    round(float(gap.std() / np.sqrt(len(gap))), 6),
                    round(least_ece(np.exp(log_p)), 5) if name == "pool" else 0.0,
                ]
                return loss

            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pool = bg.LogLinearPool().fit(X, y)
            loss = add("pool", pool.predict_log_proba(T), time.process_time() - start)
            rows, known_rows = pool.fitted_.encoded(T), pool.fitted_.encoded(X)
            for member in pool.fitted_.posterior.members:
                add(member.name, log_softmax(rows.log_joint(member), axis=1), 0.0, loss)
            first = pool.fitted_.posterior.members[0]
            one = bg.LogLinearPool([first.clf], prefit=True)
            one.fit(known_rows.seen(first), y)
            add("first + exponent", one.predict_log_proba(rows.seen(first)), 0.0)
            keep(FILE, known)
            print(key, known[f"{key}|pool"], pool.exponents_.round(2), flush=True)


def table():
    """Mean losses by set, and geometric means of ratios."""
    ours, peers = results(FILE), results(PEERS)
    for size in SIZES:
        print(f"\n{size}: log loss / ECE, means over splits")
        names = ("LR-CV", "RF", "HGB", "NB", "NB + temperature", "NB + isotonic")
        print(
            f"{'set':15s} {'pool':>12s} {'first':>12s} {'first + exp':>12s} {'best member':>12s}",
            *(f"{n:>16s}" for n in names),
        )
        ratios = {name: [] for name in (*names, "best member", "first")}
        eces, by_chance = [], []
        for name in sorted({k.split("|")[0] for k in ours}):
            own = {}
            for k, v in ours.items():
                data, of, seed, model = k.split("|")
                if (data, of) == (name, size):
                    own.setdefault(model, {})[seed] = v
            if "pool" not in own:
                continue
            seeds = sorted(own["pool"])
            mean = {m: np.mean([v[s] for s in v], axis=0)[:2] for m, v in own.items()}
            members = {m: v for m, v in mean.items() if m not in ("pool", "first + exponent")}
            best = min(members, key=lambda m: members[m][0])
            row = [
                mean["pool"],
                next(iter(members.values())),
                mean["first + exponent"],
                members[best],
            ]
            eces.append(mean["pool"][1])
            by_chance.append(np.mean([v[5] for v in own["pool"].values()]))
            ratios["best member"].append(mean["pool"][0] / members[best][0])
            ratios["first"].append(mean["pool"][0] / row[1][0])
            for peer in names:
                both = [s for s in seeds if f"{name}|{size}|{s}|{peer}" in peers]
                if not both:
                    row.append((np.nan, np.nan))
                    continue
                theirs = np.mean([peers[f"{name}|{size}|{s}|{peer}"] for s in both], axis=0)[:2]
                row.append(theirs)
                mine = np.mean([own["pool"][s][0] for s in both])
                ratios[peer].append(max(mine, 1e-3) / max(theirs[0], 1e-3))
            print(f"{name:15s}", *(f"{a:12.3f}/{b:.3f}" for a, b in row), best)
        for name, values in ratios.items():
            if values:
                mean = np.exp(np.mean(np.log(values)))
                print(f"pool / {name}: geometric mean {mean:.3f} over {len(values)} sets")
        print(f"mean ECE of the pool {np.mean(eces):.3f}; by chance {np.mean(by_chance):.3f}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        measure(options.only.split(",") if options.only else None, options.splits)
    table()


if __name__ == "__main__":
    main()
