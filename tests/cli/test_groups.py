"""``--group COLUMN``: rows of one subject are left out together."""

import re

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from tests.cli.test_cli import refused, run


@pytest.fixture(scope="module")
def subjects():
    """Ten subjects with four almost equal rows each."""
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(10), 4)
    X = rng.normal(size=(10, 3))[subject] + 0.01 * rng.normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame.assign(subject=subject, y=np.where(subject % 2, "u", "v"))


@pytest.fixture
def data(subjects, tmp_path):
    subjects.to_csv(tmp_path / "d.csv", index=False)
    return tmp_path / "d.csv"


def log_loss(subjects, clf, groups):
    X, y = subjects[["a", "b", "c"]], subjects["y"]
    return -clf.fit(X, y, groups=groups).loo(X, y, groups=groups).elpd / 40


@pytest.mark.parametrize("model", ["gaussian", "lda"])
def test_fit_compare_and_report_leave_subjects_out(subjects, data, tmp_path, model):
    clf = {"gaussian": bg.GaussianNB(), "lda": bg.LinearDiscriminant()}[model]
    expected = log_loss(subjects, clf, subjects["subject"])
    assert expected > 1.5 * log_loss(subjects, clf, None)
    path = tmp_path / "m.nc"
    result = run("fit", data, "-t", "y", "-m", model, "--group", "subject", "-o", path)
    assert f"{expected:.3f} nats" in result.stdout
    assert bg.load(path).feature_names_in_.tolist() == ["a", "b", "c"]
    assert f" {expected:.3f} " in run("compare", path, data, "-t", "y").stdout
    run("report", path, data, "-t", "y", "-o", tmp_path / "r.json")
    losses = re.findall(r'"log_loss": ([\d.]+)', (tmp_path / "r.json").read_text())
    assert float(losses[0]) == pytest.approx(expected, rel=1e-4)
    assert "subject" not in run("predict", path, data, "-o", tmp_path / "o.csv").stdout


def test_a_pool_leaves_subjects_out(subjects, data, tmp_path):
    run("fit", data, "-t", "y", "--group", "subject", "-o", tmp_path / "m.nc")
    X, y = subjects[["a", "b", "c"]], subjects["y"]
    pool = bg.LogLinearPool().fit(X, y, groups=subjects["subject"])
    p = bg.load(tmp_path / "m.nc").predict_proba(X)
    np.testing.assert_allclose(p, pool.predict_proba(X), rtol=1e-9)


def test_refusals(subjects, data, tmp_path):
    fit = ["fit", data, "-t", "y", "-m", "mixed", "-o", tmp_path / "m.nc"]
    for arguments, message in (
        (["--group", "Subject"], "did you mean 'subject'?"),
        (["--group", "y"], "--group y: it is the target"),
        (["--group", "subject", "--kind", "subject=categorical"], "is the target or dropped"),
    ):
        assert message in refused(*fit, *arguments)
    frame = subjects.astype({"subject": object})
    frame.loc[6, "subject"] = None
    frame.to_csv(data, index=False)
    assert "groups has no name in row 7" in refused(*fit, "--group", "subject")
