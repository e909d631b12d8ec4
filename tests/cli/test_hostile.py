"""Files that are damaged or made to do harm: one short line, and no control of the terminal."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.cli.test_cli import refused, run

ROWS = [(f"{i % 7 + 0.5}", f"{i % 5}", "pq"[i % 2]) for i in range(40)]


def table(path, rows=ROWS, names=("a", "b", "y")):
    pd.DataFrame(rows, columns=list(names)).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    run("fit", table(folder / "ok.csv"), "-t", "y", "-o", folder / "ok.nc")
    return folder / "ok.nc"


def test_labels_and_names_do_not_steer_the_terminal(tmp_path):
    rows = [(a, b, {"p": "\x1b[2Jp", "q": "q\x07\u202e"}[y]) for a, b, y in ROWS]
    data = table(tmp_path / "data.csv", rows, ("a", "b\x1b]0;x\x07", "y"))
    out = run("fit", data, "-t", "y", "-o", tmp_path / "m.nc").output
    out += run("predict", tmp_path / "m.nc", data, "-o", tmp_path / "out.csv").output
    assert "?[2Jp 20" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "\x1b[2Jp" in (tmp_path / "out.csv").read_text()  # the result has the labels themselves


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x" * 5_000_000, "column 'a' holds 'xxx.*xxx...' in row 40, but the model needs a number"),
        ("TRUE", "column 'a' holds 'TRUE' in row 40, but the model needs a number there"),
    ],
    ids=["long", "TRUE"],
)
def test_cells_that_are_no_numbers(cell, message, model, tmp_path):
    new = table(tmp_path / "new.csv", [*ROWS[:-1], (cell, "1", "p")])
    line = refused("predict", model, new, "-o", tmp_path / "out.csv")
    assert len(line) < 300
    assert re.search(message, line)


def test_a_header_without_end(model, tmp_path):
    new = table(tmp_path / "new.csv", ROWS, ("a" * 200_000, "b", "y"))
    assert "its header cannot be read" in refused("predict", model, new, "-o", tmp_path / "o.csv")


def test_long_labels_are_shown_in_part(tmp_path):
    data = table(tmp_path / "data.csv", [(a, b, y * 100_000) for a, b, y in ROWS])
    assert len(run("fit", data, "-t", "y", "-o", tmp_path / "m.nc").output) < 1000


def test_a_damaged_parquet_body_is_blamed_on_the_file(model, tmp_path):
    path = tmp_path / "new.parquet"
    numbers = np.random.default_rng(0).normal(size=(2000, 2))
    pd.DataFrame(numbers, columns=["a", "b"]).to_parquet(path, index=False)
    raw = bytearray(path.read_bytes())
    raw[4:34] = b"\xff" * 30
    path.write_bytes(raw)
    for command in (["predict", model, path], ["fit", path, "-t", "a"]):
        line = refused(*command, "-o", tmp_path / "out.csv")
        assert "new.parquet is not a readable Parquet file" in line
