"""The columns of `predict`, the pages of `report`, and what `fit` says of columns."""

import errno
import json
import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from tests.cli.test_cli import PENGUINS, leftovers, penguin_model, refused, run

__all__ = ["penguin_model"]  # the fixture

PLAIN = "year"


@pytest.fixture(scope="module")
def clf(penguin_model):
    return bg.load(penguin_model)


@pytest.fixture(scope="module")
def rows():
    return pd.read_csv(PENGUINS, na_values=["NA"]).drop(columns=PLAIN)


# ---------------------------------------------------------------------------------------- predict


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_the_result(ending, penguin_model, clf, rows, tmp_path):
    """Decisions, probabilities, intervals and reasons are those of Python."""
    header, *lines = Path(PENGUINS).read_text().splitlines(keepends=True)
    (tmp_path / "few.csv").write_text("".join([header, *lines[3::12]]))
    costs = ("--cost", "Chinstrap,Adelie=50", "--cost", "Gentoo,Adelie=2.5", "--reject", 0.2)
    options = (*costs, "--interval", 0.9, "--explain", 2, "--keep", "year")
    out = tmp_path / f"o.{ending}"
    result = run("predict", penguin_model, tmp_path / "few.csv", "-o", out, *options)
    assert "'species' left out, not among the model's columns" in result.stderr
    found = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    ends = [f"{end}_{label}" for label in clf.classes_ for end in ("low", "high")]
    p_of = [f"p_{label}" for label in clf.classes_]
    reasons = ["reason_1", "reason_2"]
    assert list(found) == ["year", "prediction", "decision", *p_of, *ends, *reasons]
    X = rows.drop(columns="species")[3::12]
    np.testing.assert_allclose(found[p_of], clf.predict_proba(X), rtol=1e-9)
    intervals = clf.predict_interval(X, prob=0.9)["interval"].values
    np.testing.assert_allclose(found[ends], intervals.reshape(len(X), -1), atol=1e-9)
    cost = {c: {d: 1.0 for d in clf.classes_ if d != c} for c in clf.classes_}
    cost["Chinstrap"]["Adelie"], cost["Gentoo"]["Adelie"] = 50.0, 2.5
    want = bg.decide(clf, X, cost, reject=0.2)["decision"].values.astype(str)
    assert found["decision"].tolist() == want.tolist()
    assert {"Adelie", "reject"} < {*want}
    table = clf.explain(X)["predictive"].to_pandas()
    for (_, terms), told in zip(table.iterrows(), found[reasons].values.tolist(), strict=True):
        largest = terms.abs().sort_values(ascending=False, kind="stable").index[:2]
        expected = [f"{name}: {terms[name]:+.1f}" for name in largest if terms[name].round(1)]
        assert [text for text in told if isinstance(text, str) and text] == expected


def test_reasons_of_two_classes_speak_for_the_prediction(tmp_path):
    x = np.repeat([0.0, 4.0], 10) + np.tile([-1, 1], 10)
    pd.DataFrame({"x": x, "y": ["a"] * 10 + ["b"] * 10}).to_csv(tmp_path / "d.csv", index=False)
    run("fit", tmp_path / "d.csv", "-t", "y", "-m", "mixed", "-o", tmp_path / "m.nc")
    run("predict", tmp_path / "m.nc", tmp_path / "d.csv", "-o", tmp_path / "o.csv", "--explain", 3)
    found = pd.read_csv(tmp_path / "o.csv")
    assert found["reason_1"].str.startswith("x: +").all()
    assert found[["reason_2", "reason_3"]].isna().all(axis=None)


# ----------------------------------------------------------------------------------------- report


def test_report_writes_each_format(penguin_model, clf, rows, tmp_path):
    base = ("report", penguin_model, PENGUINS, "-t", "species")
    out = run(*base, "-o", tmp_path / "r.json", "--title", "Birds").stdout
    found = json.loads((tmp_path / "r.json").read_text())
    right = np.mean(clf.predict(rows.drop(columns="species")) == rows["species"])
    assert found["title"] == "Birds"
    assert found["sections"]["verdict"]["data"]["accuracy"] == pytest.approx(right)
    words = " ".join(out.split())
    assert words.startswith("These are the rows that the model was fitted to")
    assert f"the label in {right * 344:.0f} of 344 rows" in words
    first = found["sections"]["doubts"]["tables"][0]["rows"][0]  # named as in the file, from 1
    least = clf.predict_proba(rows.drop(columns="species")).max(axis=1).argmin()
    assert first["row"] == str(least + 1)
    costs = ("--cost", "Chinstrap,Adelie=50")
    run(*base, "-o", tmp_path / "r.md", "--max-rows", 50, *costs)
    assert (tmp_path / "r.md").read_text().startswith("# MixedNB on 344 training rows")
    assert "lowest expected cost" in (tmp_path / "r.md").read_text()
    assert leftovers(tmp_path) == []


def test_report_never_writes_over_its_inputs(penguin_model, tmp_path, monkeypatch):
    model, data = tmp_path / "m.json", tmp_path / "d.csv"
    shutil.copy(penguin_model, model)
    shutil.copy(PENGUINS, data)
    (tmp_path / "d.html").symlink_to(data)
    for output in (model, tmp_path / "d.html"):
        assert "name another" in refused("report", model, data, "-t", "species", "-o", output)
    assert "does not end in" in refused("report", model, data, "-t", "species", "-o", "r.pdf")
    assert "kind" in refused("report", model, data, "-t", "kind", "-o", tmp_path / "r.html")
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=full))
    page = ("-t", "species", "-o", tmp_path / "r.json", "--max-rows", 20)
    said = refused("report", model, data, *page)
    assert f"cannot write {tmp_path / 'r.json'}: No space left on device" in said
    assert data.read_bytes() == Path(PENGUINS).read_bytes()


# --------------------------------------------------------------------------------------------- fit


def test_the_only_column_is_read_as_texts(tmp_path):
    """Reasons are words then, and not the column."""
    rng = np.random.default_rng(0)
    words = np.array(["please", "call", "about", "the", "refund", "for", "your", "old", "order"])
    texts = [" ".join(rng.permutation(words)[:6]) + f" {i}" for i in range(60)]
    labels = ["complaint" if "refund" in text else "other" for text in texts]
    pd.DataFrame({"label": labels, "text": texts}).to_csv(tmp_path / "mail.csv", index=False)
    said = run("fit", tmp_path / "mail.csv", "--target", "label", "-o", tmp_path / "m.nc").stderr
    assert "'text', the only column, is read as texts" in said
    asked = ("--explain", 1, "--interval", 0.89, "-o", tmp_path / "out.csv")
    run("predict", tmp_path / "m.nc", tmp_path / "mail.csv", *asked)
    written = pd.read_csv(tmp_path / "out.csv")
    complaints = written[np.array(labels) == "complaint"]
    assert complaints["reason_1"].str.startswith("refund").all()
    assert (complaints["low_complaint"] > 0.5).all()
