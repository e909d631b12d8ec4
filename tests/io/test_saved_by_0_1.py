"""Model files of version 0.1 are loaded by this version and predict what they predicted then."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg

FOLDER = Path(__file__).with_name("saved_by_0_1")
NAMES = sorted(path.stem for path in FOLDER.glob("*.nc"))


def told(name):
    """What version 0.1 said of a file, and the rows that it was asked about."""
    record = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    if record["columns"] is not None:
        rows = pd.DataFrame(record["rows"], columns=record["columns"])
    elif isinstance(record["rows"][0], str):
        rows = record["rows"]
    else:
        rows = np.array(record["rows"])
    return record, rows


def test_the_files_are_there():
    assert len(NAMES) == 7
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 400_000


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_version_0_1(name, tmp_path):
    record, rows = told(name)
    assert record["version"] == "0.1.0"
    first = bg.load(FOLDER / f"{name}.nc")
    first.save(tmp_path / "again.nc")
    for clf in (first, bg.load(tmp_path / "again.nc")):
        assert type(clf).__name__ == record["estimator"]
        assert clf.classes_.tolist() == record["classes"]
        if record["log_evidence"] is not None:
            assert clf.log_evidence_ == pytest.approx(record["log_evidence"], rel=1e-12)
        for method in ("posterior_predictive", "posterior_mean"):
            p = clf.predict_proba(rows, method=method)
            np.testing.assert_allclose(p, record[method], rtol=1e-9, atol=1e-300)


def test_draws_of_version_0_1():
    clf = bg.load(FOLDER / "gaussian_gibbs.nc")
    assert clf.inference_ == "gibbs"
    posterior = clf.posterior_["posterior"]
    assert posterior.sizes["chain"] == 2
    assert posterior.sizes["draw"] == 100
