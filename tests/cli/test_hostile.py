"""Files that are damaged or made to do harm: one short line, and no control of the terminal."""

import re
import unicodedata
from base64 import b64decode

import pandas as pd
import pytest

from bayesgen.io import tabular
from tests.cli.test_cli import refused, run

ROWS = [(f"{i % 7 + 0.5}", f"{i % 5}", "pq"[i % 2]) for i in range(40)]


def table(path, rows=ROWS, names=("a", "b", "y")):
    pd.DataFrame(rows, columns=list(names)).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    run("fit", "-m", "mixed", table(folder / "ok.csv"), "-t", "y", "-o", folder / "ok.nc")
    return folder / "ok.nc"


def test_labels_and_names_do_not_steer_the_terminal(tmp_path):
    rows = [(a, b, {"p": "\x1b[2Jp", "q": "q\x07\u202e"}[y]) for a, b, y in ROWS]
    data = table(tmp_path / "data.csv", rows, ("a", "b\x1b]0;x\x07", "y"))
    out = run("fit", "-m", "mixed", data, "-t", "y", "-o", tmp_path / "m.nc").output
    out += run("predict", tmp_path / "m.nc", data, "-o", tmp_path / "out.csv").output
    assert "?[2Jp (20)" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "\x1b[2Jp" in (tmp_path / "out.csv").read_text()  # the result has the labels themselves


def test_a_long_cell_is_not_repeated_in_full(model, tmp_path):
    new = table(tmp_path / "new.csv", [*ROWS[:-1], ("x" * 5_000_000, "1", "p")])
    line = refused("predict", model, new, "-o", tmp_path / "out.csv")
    assert len(line) < 300
    assert re.search("column 'a' holds 'xxx.*xxx...' in row 40, which is not a number", line)


@pytest.mark.parametrize("model_name", ["mixed", "auto"])
def test_what_the_library_refuses_has_the_row_of_the_file(model_name, monkeypatch, tmp_path):
    monkeypatch.setattr(tabular, "_CELLS", 30)  # rows come in parts
    rows = [(a, b, "" if i == 4 else y) for i, (a, b, y) in enumerate(ROWS)]
    data = table(tmp_path / "data.csv", [*rows[:31], ("1e200", "1", "p"), *rows[32:]])
    line = refused("fit", data, "-t", "y", "-m", model_name, "-o", tmp_path / "m.nc")
    assert "column 'a' holds 1e+200 in row 32, beyond" in line
    assert "leave it out by --drop" in line


def test_a_row_that_is_refused_in_prediction_has_its_number(model, monkeypatch, tmp_path):
    monkeypatch.setattr(tabular, "_CELLS", 30)
    new = table(tmp_path / "new.csv", [*ROWS[:31], ("1e100", "1", "p"), *ROWS[32:]])
    line = refused("predict", model, new, "--interval", "0.9", "-o", tmp_path / "out.csv")
    assert "column 'a' holds 1e+100 in row 32, more than" in line


def test_a_report_shows_no_character_that_steers(tmp_path):
    rows = [(a, b, {"p": "\x1bp\u202e", "q": "q\x07\u2066"}[y]) for a, b, y in ROWS]
    data = table(tmp_path / "t.csv", rows, ("a", "b\u202e", "y"))
    run("fit", "-m", "mixed", data, "-t", "y", "-o", tmp_path / "m.nc")
    for name in ("r.html", "r.md"):
        out = tmp_path / name
        run("report", tmp_path / "m.nc", data, "-t", "y", "--title", "t\u202e\x9b", "-o", out)
        page = out.read_text()
        pictures = re.findall('base64,([^"]+)', page)
        page += "".join(b64decode(picture).decode() for picture in pictures)
        assert "?p?" in page
        steering = {c for c in set(page) - {"\n"} if unicodedata.category(c)[0] == "C"}
        assert not steering
