"""Fitting the pool beside StackingClassifier(cv=5) of the same members, interleaved.

.venv/bin/python -m tests.benchmarks.pool_speed
"""

import time

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression

import bayesgen as bg
from tests.benchmarks.open_sets import load

MEMBERS = (
    bg.GaussianNB(),
    bg.GaussianNB(variance="tied"),
    bg.LinearDiscriminant(),
    bg.QuadraticDiscriminant(),
)


def seconds(estimator, X, y, repeats=3):
    """Least CPU seconds of a fit."""
    out = []
    for _ in range(repeats):
        start = time.process_time()
        clone(estimator).fit(X, y)
        out.append(time.process_time() - start)
    return min(out)


def main():
    """Print a line for each set of real columns."""
    pool = bg.LogLinearPool(list(MEMBERS))
    named = [(f"m{k}", m) for k, m in enumerate(MEMBERS)]
    stack = StackingClassifier(named, LogisticRegression(max_iter=2000), cv=5)
    ratios = []
    for s in load().values():
        if s.kind != "real":
            continue
        X = s.X.to_numpy(float)
        a, b = seconds(pool, X, s.y), seconds(stack, X, s.y)
        ratios.append(b / a)
        print(
            f"{s.name:15s} {len(X):6d} x {X.shape[1]:<4d}",
            f"pool {a:.3f} s, stacking {b:.3f} s, {b / a:.1f}",
        )
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.1f}")


if __name__ == "__main__":
    main()
