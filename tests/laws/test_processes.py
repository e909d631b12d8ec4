"""Another process comes to the same bits."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import _safe_indexing as take

import bayesgen as bg
from tests.laws.test_classifiers import CASES, CODES

N = 12
Y = CODES[:N]


def digests():
    """{case: SHA-256 of what an estimator says of the same rows, draws and intervals included}."""
    hashes = {}
    pool = bg.LogLinearPool, CASES["MixedNB"][1]
    for name in ("CategoricalNB", "MixedNB", "MarkovNB", "GaussianNB", "pool"):
        make, X = (CASES | {"pool": pool})[name]
        X = take(X, np.arange(N))
        clf, two = make().fit(X, Y), take(X, [0, 1])
        answers = [clf.predict_interval(two)["interval"], clf.predict_uncertainty(two)["mean"]]
        values = [clf.predict_proba(X), *(answer.values for answer in answers)]
        hashes[name] = hashlib.sha256(b"".join(v.tobytes() for v in values)).hexdigest()
    return hashes


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
