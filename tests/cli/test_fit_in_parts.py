"""`bayesgen fit` reads a file in parts: the model is that of all rows in memory."""

import re

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.cli import models
from bayesgen.io import tabular
from tests.cli.test_cli import refused, run
from tests.selection import crossed


def rows(n: int = 400) -> pd.DataFrame:
    """Columns whose first rows say too little, each in another way."""
    rng = np.random.default_rng(3)
    late = np.arange(n) >= n // 2
    text = np.array(["x", "y"], dtype=object)[rng.integers(0, 2, n)]
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "word": rng.choice(["b", "a", "c"], n),
            "number, then text": np.where(late, text, np.arange(n) % 4),
            "truth, then number": np.where(
                np.arange(n) >= 3 * n // 4, "7", np.array(["true", "false"])[np.arange(n) % 2]
            ),
            "truth": np.array(["TRUE", "false"])[rng.integers(0, 2, n)],
            "nothing, then text": np.where(late, text, None),
            "nothing, then code": np.where(late, np.arange(n) % 3, np.nan),
            "label": np.where(late, rng.choice([3, 4, 2], n), rng.choice([3, 4], n)),
        }
    )
    frame.loc[rng.random(n) < 0.1, "real"] = np.nan
    frame.loc[rng.random(n) < 0.1, "label"] = np.nan
    return frame


def fitted(tmp_path, data, *arguments):
    if "--model" not in arguments:
        arguments += ("--model", "mixed")
    run("fit", data, "--target", "label", "-o", tmp_path / "m.nc", *arguments)
    return bg.load(tmp_path / "m.nc")


@pytest.fixture
def parts(monkeypatch):
    """Makes later calls read so many cells at a time."""

    def set_cells(n: int) -> None:
        monkeypatch.setattr(tabular, "_CELLS", n)
        monkeypatch.setattr(models, "AT_ONCE", 0)

    return set_cells


ARGUMENTS = [
    (),
    ("--kind", "nothing, then code=categorical"),
    ("--drop-incomplete",),
    ("--model", "categorical", "--drop", "real"),
]


@pytest.mark.parametrize(("arguments", "ending"), crossed(ARGUMENTS, [".csv", ".parquet"]))
def test_the_same_as_in_memory(tmp_path, parts, ending, arguments):
    data = tmp_path / f"data{ending}"
    frame = rows()
    if ending == ".csv":
        frame.to_csv(data, index=False)
    else:
        frame.astype({"label": "Int64", **dict.fromkeys(frame.columns[2:6], "str")}).to_parquet(
            data
        )
    whole = fitted(tmp_path, data, *arguments)
    parts(150)
    found = fitted(tmp_path, data, *arguments)
    np.testing.assert_array_equal(found.classes_, whole.classes_)
    assert found.encoder_ == whole.encoder_
    assert found.n_rows_seen_ == whole.n_rows_seen_
    mine, theirs = found.stats_.features.arrays(), whole.stats_.features.arrays()
    for name, (_, value) in mine.items():
        counted = "real" not in name and "gaussian" not in name
        if counted:  # whole numbers add up without rounding
            np.testing.assert_array_equal(value, theirs[name][1])
        else:
            np.testing.assert_allclose(value, theirs[name][1], rtol=1e-12, atol=1e-12)
    assert found.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)


def test_what_is_told_is_of_all_rows(tmp_path, parts):
    data = tmp_path / "data.csv"
    rows().to_csv(data, index=False)
    told = [run("fit", "-m", "mixed", data, "--target", "label", "-o", tmp_path / "m.nc")]
    parts(150)
    told += [run("fit", "-m", "mixed", data, "--target", "label", "-o", tmp_path / "m.nc")]
    assert told[0].stdout == told[1].stdout
    assert told[0].stderr == told[1].stderr
    lines = [
        refused("fit", data, "--target", "label", "--model", model, "-o", tmp_path / "n.nc",
                *[f"--drop={name}" for name in rows().columns[1:7]])
        for model in ("lda", "poisson")
    ]  # fmt: skip
    first = int(np.argmax((rows()["real"].isna() & rows()["label"].notna()).to_numpy()))
    assert f"the first is row {first + 1} (column 'real')" in lines[0]
    assert re.search(r"counts must be >= 0, got -.* in row \d+, column 'real'; leave it", lines[1])
    late = rows()
    late["real"] = 1.0
    late.loc[350, "real"] = -2.0
    late.to_csv(data, index=False)
    assert "holds -2 in row 351" in refused(
        "fit", data, "--target", "label", "--kind", "real=poisson", "-o", tmp_path / "n.nc"
    )


def test_documents_in_parts(tmp_path, parts):
    data = tmp_path / "data.csv"
    pd.DataFrame(
        {"text": ["ab", "ba", "cd", "dc"] * 60, "label": ["u", "u", "v", "w"] * 60}
    ).to_csv(data, index=False)
    whole = fitted(tmp_path, data, "--model", "markov")
    parts(30)
    found = fitted(tmp_path, data, "--model", "markov")
    np.testing.assert_array_equal(
        found.predict_proba(["abc", "dd"]), whole.predict_proba(["abc", "dd"])
    )


def test_a_pool_in_parts(tmp_path, parts, monkeypatch):
    """The log loss is that of exact leave-one-out, stated with its rivals."""
    data, model = tmp_path / "data.csv", tmp_path / "m.nc"
    rows().to_csv(data, index=False)
    untrained = models.Plan.untrained

    def small(plan, features):
        clf = untrained(plan, features)
        return clf.set_params(max_rows=120) if "max_rows" in clf.get_params() else clf

    monkeypatch.setattr(models.Plan, "untrained", small)
    parts(300)
    told = " ".join(run("fit", data, "--target", "label", "-o", model).stdout.split())
    pool, n = bg.load(model), int(rows()["label"].notna().sum())
    assert pool.n_rows_seen_ == n
    assert pool.n_rows_ == 120
    whole = fitted(tmp_path, data)
    own = pool.members_["independent columns"]
    assert own.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
    frequencies = pool.summary().table.attrs["log_loss_of_frequencies"]
    assert f"of the class frequencies alone: {frequencies:.3f}" in told
