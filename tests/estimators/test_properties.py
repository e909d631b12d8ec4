"""What holds for every estimator in closed form and any data: drawn by hypothesis.

Class probabilities are probabilities; they do not depend on the order of rows, on how rows arrive,
on names, types or containers; input is never changed; and a copy is the same model.
"""

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import bayesgen as bg
from tests.selection import rest_is_slow

CLOSE = {"rtol": 1e-7, "atol": 1e-9}
FEW = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
KINDS = {
    "reals": (bg.GaussianNB, bg.LinearDiscriminant, bg.QuadraticDiscriminant),
    "counts": (bg.PoissonNB, bg.MultinomialNB),
    "bits": (bg.BernoulliNB, bg.CategoricalNB),
    # nothing that parts of the rows would choose otherwise: bins, strengths, a category of gaps
    "reals of a table": (bg.MixedNB,),
    "bits of a table": (
        bg.MixedNB,
        partial(bg.TreeAugmentedNB, prior="default", missing="refuse"),
    ),
}
ALL = [(kind, estimator) for kind, own in KINDS.items() for estimator in own]


@st.composite
def data(draw, kind):
    """(X, y, permutation of the rows) of 2 to 12 rows of 1 to 3 columns and up to 3 classes."""
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    reals = st.integers(-500, 500).map(lambda k: k / 64)
    cell = {
        "reals": reals,
        "counts": st.integers(0, 30).map(float),
        "bits": st.integers(0, 1).map(float),
        "reals of a table": reals,
        "bits of a table": st.booleans(),
    }[kind]
    X = np.array(draw(st.lists(st.lists(cell, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    y[:2] = 0, 1
    return X, y, np.array(draw(st.permutations(range(n))))


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("case", rest_is_slow(ALL, [ALL[0], ALL[4]]))
def test_laws_of_any_data(case, tmp_path_factory):
    kind, estimator = case
    path = tmp_path_factory.mktemp("model") / "m.nc"

    @FEW
    @given(data(kind))
    def law(drawn):
        X, y, order = drawn
        before = X.copy(), y.copy()
        clf = estimator().fit(X, y)
        p = clf.predict_proba(X)
        assert np.isfinite(p).all()
        assert (p >= 0).all()
        assert np.abs(p.sum(axis=1) - 1).max() <= 1e-12

        def same(other, columns=slice(None), rows=X):
            np.testing.assert_allclose(other.predict_proba(rows)[:, columns], p, **CLOSE)

        same(estimator().fit(X[order], y[order]))
        twice, two = np.concatenate([X, X]), np.full(len(y), 2.0)
        doubled = estimator().fit(twice, np.concatenate([y, y])).predict_proba(X)
        weighted = estimator().fit(X, y, sample_weight=two).predict_proba(X)
        np.testing.assert_allclose(weighted, doubled, **CLOSE)
        backwards = slice(None, None, -1)
        same(estimator().fit(X[:, backwards], y), rows=X[:, backwards])
        same(estimator().fit(X, -y), columns=backwards)
        parts = estimator().partial_fit(X[:1], y[:1], classes=np.unique(y))
        same(parts.partial_fit(X[1:], y[1:]))
        rows = np.concatenate([clf.predict_proba(X[i : i + 1]) for i in range(len(X))])
        np.testing.assert_allclose(rows, p, **CLOSE)
        names = [f"c{j}" for j in range(X.shape[1])]
        narrow = X if X.dtype == bool else X.astype(np.float32)
        for other in (narrow, np.asfortranarray(X), pd.DataFrame(X, columns=names)):
            same(estimator().fit(other, y), rows=other)
        clf.save(path)
        for again in (copy.deepcopy(clf), pickle.loads(pickle.dumps(clf)), bg.load(path)):
            np.testing.assert_array_equal(again.predict_proba(X), p)
        np.testing.assert_array_equal(clone(clf).fit(X, y).predict_proba(X), p)
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(clf.predict_proba, [X, X]):
                np.testing.assert_array_equal(found, p)
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(y, before[1])

    law()


def digests():
    """SHA-256 of what each estimator says of the same rows, draws and intervals included."""
    rng = np.random.default_rng(0)
    y = np.array(["ash", "birch", "cedar"])[np.arange(24) % 3]
    reals = rng.normal(size=(24, 3)) + np.arange(24)[:, None] % 3
    counts = rng.poisson(3.0, (24, 3)).astype(float)
    words = np.array(["red", "blue", "green"])[rng.integers(0, 3, (24, 2))].astype(object)
    table = pd.DataFrame(words, columns=["p", "q"]).assign(r=reals[:, 0], s=reals[:, 1] > 1)
    texts = ["".join(row) for row in rng.choice(list("abc "), (24, 6))]
    rows = {
        **dict.fromkeys(KINDS["reals"], reals),
        **dict.fromkeys(KINDS["counts"] + (bg.LogLinearPool,), counts),
        **dict.fromkeys((bg.CategoricalNB, bg.TreeAugmentedNB), words),
        bg.BernoulliNB: counts > 3,
        bg.MixedNB: table,
        bg.MarkovNB: texts,
    }
    out = {}
    for estimator, X in rows.items():
        clf, found = estimator().fit(X, y), hashlib.sha256()
        found.update(clf.predict_proba(X).tobytes())
        for ask in (clf.predict_interval, clf.predict_uncertainty):
            try:
                answer = ask(X[:2] if not hasattr(X, "iloc") else X.iloc[:2])
            except NotImplementedError:
                continue
            for name in sorted(map(str, answer.data_vars)):
                found.update(np.ascontiguousarray(answer[name].values).astype(str).tobytes())
        out[estimator.__name__] = found.hexdigest()
    return out


@pytest.mark.slow
def test_another_process_comes_to_the_same_bits():
    """Whatever the hashes of strings are there, by which sets and dicts of names are ordered."""
    code = f"from {__name__} import digests; print(digests())"
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    )
    assert "GaussianNB" in first
    assert first == second
