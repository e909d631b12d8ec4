"""Which real columns MixedNB takes as spiked or lognormal: rules on the open sets.

    .venv/bin/python -m tests.benchmarks.spikes [--only iris,wine] [--splits 2]

A column is spiked if a share of its cells or more is one value and the others have a number of
values or more; else lognormal if it is positive, its sd above its mean, and the evidence of one
Normal larger for its logarithms. For each rule and both sizes of `open_sets.splits`: the geometric
mean over sets of the log loss, over that of Normal columns, and the sets where it differs.
"""

import argparse
import warnings

import numpy as np

import bayesgen as bg
from bayesgen.encoding.column import is_lognormal
from tests.benchmarks.open_sets import load, scores, splits, take

RULES = {  # least share, least number of other values, whether logarithms too
    f"{share:.0%}, {others} others{', logs' * logs}": (share, others, logs)
    for logs in (False, True)
    for share, others in ((2.0, 0), (0.1, 4), (0.2, 4), (0.3, 4), (0.5, 4), (0.3, 2), (0.3, 10))
}


def kinds(X, share, others, logs):
    """{kind: positions} of a table."""
    out = {}
    for j, name in enumerate(X):
        values = X[name].to_numpy()
        if values.dtype.kind not in "iuf":
            kind = "bernoulli" if values.dtype.kind == "b" else "categorical"
        else:
            seen = values[~np.isnan(values)].astype(float)
            count = np.unique(seen, return_counts=True)[1]
            spiked = count.max(initial=0) >= share * len(seen) and len(count) > others
            positive = "lognormal" if logs and is_lognormal(seen) else "gaussian"
            kind = "spiked" if spiked else positive
        out.setdefault(kind, []).append(j)
    return out


def measure(only, n_splits):
    """{(size, rule): {set: mean log loss}}."""
    found = {}
    for s in load().values():
        if s.kind not in ("real", "mixed") or (only and s.name not in only):
            continue
        X = s.X.astype({c: float for c in s.X if s.X[c].dtype.kind in "iu"})
        for size, _, rows, test in splits(s.y, n_splits):
            codes = np.searchsorted(np.unique(s.y), s.y[test])
            known = {}
            for rule, arguments in RULES.items():
                columns = kinds(take(X, rows), *arguments)
                if (key := str(columns)) not in known:
                    clf = bg.MixedNB(columns).fit(take(X, rows), s.y[rows])
                    known[key] = scores(clf.predict_proba(take(X, test)), codes)[0].mean()
                found.setdefault((size, rule), {}).setdefault(s.name, []).append(known[key])
    return {k: {name: np.mean(v) for name, v in of.items()} for k, of in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = measure({*filter(None, options.only.split(","))}, options.splits)
    for (size, rule), loss in found.items():
        plain = found[size, next(iter(RULES))]
        ratio = {name: value / plain[name] for name, value in loss.items()}
        differ = "  ".join(f"{name} {r:.2f}" for name, r in ratio.items() if r != 1)
        print(f"{size:13s} {rule:24s} {np.exp(np.mean(np.log([*ratio.values()]))):.3f}  {differ}")


if __name__ == "__main__":
    main()
