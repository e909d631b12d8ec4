"""Exact leave-one-out beside refits, beside smoothed importance sampling, and what is held fixed.

    .venv/bin/python -m tests.benchmarks.loo

1. N = 5000 rows, C = 5 classes: seconds of a fit, a prediction and `loo_log_joint`, and N times
   the fit over the latter.
2. Label score by the closed form and by ArviZ from 4000 posterior draws of the same model.
3. What data-scaled default priors (and bins) that saw the row left out are worth: label score with
   the prior of all rows, and with the prior set anew without each row.
"""

import time
import warnings

import numpy as np
import pandas as pd
from scipy import sparse

import bayesgen as bg
from bayesgen.predict.leave_one_out import training_rows
from tests.benchmarks.open_sets import load

N = 5000


def workloads():
    """(name, classifier, X, y)."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=N)
    X = rng.normal(size=(N, 20)) + y[:, None] * 0.3
    yield "GaussianNB", bg.GaussianNB(), X, y
    yield "GaussianNB tied", bg.GaussianNB(variance="tied"), X, y
    yield "LinearDiscriminant", bg.LinearDiscriminant(), X, y
    yield "QuadraticDiscriminant", bg.QuadraticDiscriminant(), X, y
    yield "BernoulliNB", bg.BernoulliNB(), (X > 0).astype(int), y
    codes = np.digitize(X, [-1, 0, 1])
    yield "CategoricalNB", bg.CategoricalNB(), codes, y
    counts = rng.poisson(np.exp(X / 2))
    yield "PoissonNB", bg.PoissonNB(), counts, y
    yield "MultinomialNB", bg.MultinomialNB(), counts, y
    words = sparse.random(
        N, 2000, 0.01, "csr", random_state=0, data_rvs=lambda n: rng.poisson(1, n) + 1
    )
    yield "MultinomialNB, CSR", bg.MultinomialNB(), words, y
    texts = np.array(["".join(rng.choice(list("abcdefgh"), size=30)) for _ in range(N)])
    yield "MarkovNB, order 2", bg.MarkovNB(), texts.astype(object), y
    table = pd.DataFrame(X).rename(columns="c{}".format)
    table["s"], table["b"] = codes[:, 0].astype(str), X[:, 1] > 0
    yield "MixedNB", bg.MixedNB(), table, y


def timed(call, *arguments, repeats=3):
    """Least CPU seconds."""
    out = []
    for _ in range(repeats):
        start = time.process_time()
        call(*arguments)
        out.append(time.process_time() - start)
    return min(out)


def speed():
    """Part 1."""
    print(f"{'':22s} fit s   predict s  loo s   N fits / loo")
    for name, clf, X, y in workloads():
        fit = timed(clf.fit, X, y)
        predict = timed(clf.predict_log_proba, X)
        loo = timed(clf.loo_log_joint, X, y)
        print(f"{name:22s} {fit:.4f}  {predict:.4f}     {loo:.4f}  {N * fit / loo:8.0f}")


def smoothed():
    """Part 2."""
    sets = load()
    for name in ("iris", "wine", "breast_cancer", "pokemon"):
        s = sets[name]
        X = s.X.to_numpy(float)
        for clf in (bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()):
            exact = clf.fit(X, s.y).loo(X, s.y)
            own = training_rows(clf.fitted_, X, s.y)
            drawn = clf._drawn_posterior(clf.draw_posterior(draws=1000, chains=4, random_state=0))
            joint, k = drawn.log_joint_without(*own)
            rows = np.arange(len(s.y)), own.codes
            score = joint[rows] - np.logaddexp.reduce(joint, axis=1)
            print(
                f"{name:15s} {type(clf).__name__:22s} exact {exact.elpd:9.2f}",
                f"smoothed {score.sum():9.2f}  largest difference of a row",
                f"{np.abs(score - exact.elpd_i.values).max():.3f}, k > 0.7 in {(k > 0.7).sum()}",
            )


def held_fixed():
    """Part 3."""
    sets = load()
    for name in ("iris", "wine", "pokemon", "breast_cancer"):
        s = sets[name]
        X = s.X.to_numpy(float)
        codes = np.unique(s.y, return_inverse=True)[1]
        for clf in (bg.GaussianNB(), bg.LinearDiscriminant(), bg.QuadraticDiscriminant()):
            kept = clf.fit(X, s.y).loo(X, s.y).elpd
            anew = 0.0
            for i in range(len(X)):
                others = np.arange(len(X)) != i
                anew += clf.fit(X[others], s.y[others]).predict_log_proba(X[[i]])[0, codes[i]]
            print(
                f"{name:15s} {type(clf).__name__:22s} prior of all rows {kept:9.3f}",
                f"set anew {anew:9.3f}  a row {(kept - anew) / len(X):+.5f}",
            )


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        speed()
        smoothed()
        held_fixed()
