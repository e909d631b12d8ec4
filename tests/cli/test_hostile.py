"""Files that are damaged or made to do harm: one short line, and no control of the terminal."""

import re
import subprocess
import sys
import unicodedata

import numpy as np
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
    assert "?[2Jp 20" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "\x1b[2Jp" in (tmp_path / "out.csv").read_text()  # the result has the labels themselves


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x" * 5_000_000, "column 'a' holds 'xxx.*xxx...' in row 40, which is not a number"),
        ("TRUE", "column 'a' holds 'TRUE' in row 40, which is not a number"),
    ],
    ids=["long", "TRUE"],
)
def test_cells_that_are_no_numbers(cell, message, model, tmp_path):
    new = table(tmp_path / "new.csv", [*ROWS[:-1], (cell, "1", "p")])
    line = refused("predict", model, new, "-o", tmp_path / "out.csv")
    assert len(line) < 300
    assert re.search(message, line)


def test_a_cell_too_large_for_any_class(tmp_path):
    run("fit", table(tmp_path / "ok.csv"), "-t", "y", "-m", "lda", "-o", tmp_path / "m.nc")
    new = table(tmp_path / "new.csv", [*ROWS[:4], ("1e200", "1", "p")])
    line = refused("predict", tmp_path / "m.nc", new, "-o", tmp_path / "o.csv")
    assert "column 'a' holds 1e+200 in row 5" in line


def test_null_characters_are_blamed_on_the_table(tmp_path):
    data = table(tmp_path / "data.csv", [("x\0z" if y == "p" else a, b, y) for a, b, y in ROWS])
    line = refused("fit", "-m", "mixed", data, "-t", "y", "-o", tmp_path / "m.nc")
    assert "data.csv has a null character in its first rows" in line


def test_a_long_name(model, tmp_path):
    new = table(tmp_path / "new.csv", ROWS, ("a" * 200_000, "b", "y"))
    line = refused("predict", model, new, "-o", tmp_path / "o.csv")
    assert "lacks a column of the model: 'a'" in line
    assert len(line) < 3000


def test_long_labels_are_shown_in_part(tmp_path):
    data = table(tmp_path / "data.csv", [(a, b, y * 100_000) for a, b, y in ROWS])
    assert len(run("fit", "-m", "mixed", data, "-t", "y", "-o", tmp_path / "m.nc").output) < 1000


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


@pytest.mark.parametrize("model_name", ["mixed", "auto"])
def test_what_the_library_refuses_has_the_row_of_the_file(model_name, monkeypatch, tmp_path):
    monkeypatch.setattr(tabular, "_CELLS", 30)  # rows come in parts
    rows = [(a, b, "" if i == 4 else y) for i, (a, b, y) in enumerate(ROWS)]
    data = table(tmp_path / "data.csv", [*rows[:31], ("1e200", "1", "p"), *rows[32:]])
    line = refused("fit", data, "-t", "y", "-m", model_name, "-o", tmp_path / "m.nc")
    assert "column 'a' holds 1e+200 in row 32, beyond" in line


def test_a_row_that_is_refused_in_prediction_has_its_number(model, monkeypatch, tmp_path):
    monkeypatch.setattr(tabular, "_CELLS", 30)
    new = table(tmp_path / "new.csv", [*ROWS[:31], ("1e100", "1", "p"), *ROWS[32:]])
    line = refused("predict", model, new, "--interval", "0.9", "-o", tmp_path / "out.csv")
    assert "column 'a' holds 1e+100 in row 32, more than" in line


def test_a_result_keeps_its_mode_and_a_read_only_one_stays(model, tmp_path):
    data, out = table(tmp_path / "t.csv"), tmp_path / "out.csv"
    out.write_text("old")
    out.chmod(0o444)
    line = refused("predict", model, data, "-o", out)
    assert line == (
        f"error: cannot write {out}: it is read-only; allow writing, or name another file"
    )
    assert out.read_text() == "old"
    out.chmod(0o600)
    run("predict", model, data, "-o", out)
    assert out.stat().st_mode & 0o777 == 0o600


def test_names_that_no_file_has(model, tmp_path):
    data, loop = table(tmp_path / "t.csv"), tmp_path / "loop.csv"
    loop.symlink_to(loop)
    long = tmp_path / f"{'n' * 300}.csv"
    assert "File name too long" in refused("predict", model, data, "-o", long)
    assert "File name too long" in refused("predict", model, long, "-o", tmp_path / "o.csv")
    assert "File name too long" in refused("predict", long, data, "-o", tmp_path / "o.csv")
    assert "levels of symbolic links" in refused("predict", model, data, "-o", loop)
    assert "no file " in refused("predict", model, loop, "-o", tmp_path / "o.csv")
    longest = tmp_path / f"{'n' * 251}.csv"
    run("predict", model, data, "-o", longest)
    assert sorted(tmp_path.iterdir()) == sorted([data, loop, longest])


@pytest.mark.parametrize("command", [["fit"], ["fit", "--test", "0.5"], ["compare", "-m", "mixed"]])
def test_a_column_of_long_texts_is_no_target(command, tmp_path):
    """11 GiB and a traceback."""
    text = [f"{i} {'word ' * (2000 * (i == 3))}" for i in range(30_000)]
    pd.DataFrame({"a": range(30_000), "text": text}).to_csv(tmp_path / "t.csv", index=False)
    out = [] if command[0] == "compare" else ["-o", tmp_path / "m.nc"]
    line = refused(command[0], tmp_path / "t.csv", *command[1:], "-t", "text", *out)
    assert "column 'text' holds texts of up to 10002 characters, which are too long" in line


@pytest.mark.filterwarnings("ignore:look at this column")  # one value in most cells
def test_errors_name_options(tmp_path):
    rows = [("1.5" if y == "p" else a, b, y) for a, b, y in ROWS]
    run("fit", "-m", "mixed", table(tmp_path / "t.csv", rows), "-t", "y", "-o", tmp_path / "m.nc")
    new = ["predict", tmp_path / "m.nc", tmp_path / "t.csv", "-o", tmp_path / "o.csv"]
    line = refused(*new, "--method", "mle")
    assert "--method mle is undefined" in line
    assert "method=" not in line
    found = run(
        "compare", tmp_path / "m.nc", tmp_path / "t.csv", "-t", "y", "--rows=held-out"
    ).output
    assert "--method mle is undefined" in " ".join(found.split())
    assert "method=" not in found


def test_a_report_shows_no_character_that_steers(tmp_path):
    rows = [(a, b, {"p": "\x1bp\u202e", "q": "q\x07\u2066"}[y]) for a, b, y in ROWS]
    data = table(tmp_path / "t.csv", rows, ("a", "b\u202e", "y"))
    run("fit", "-m", "mixed", data, "-t", "y", "-o", tmp_path / "m.nc")
    for name in ("r.html", "r.md"):
        out = tmp_path / name
        run("report", tmp_path / "m.nc", data, "-t", "y", "--title", "t\u202e\x9b", "-o", out)
        page = out.read_text()
        assert "?p?" in page
        steering = {c for c in set(page) - {"\n"} if unicodedata.category(c)[0] == "C"}
        assert not steering


@pytest.mark.slow
@pytest.mark.parametrize("delay", ["0", "0.1", "0.4"])
def test_sigterm_is_143_to_a_shell_at_any_time(delay, model, tmp_path):
    data = table(tmp_path / "t.csv", ROWS * 20_000)
    code = '"$0" -m bayesgen predict "$1" "$2" -o "$3" & sleep "$4"; kill $!; wait $!; echo $?'
    command = ["sh", "-c", code, sys.executable, model, data, tmp_path / "o.csv", delay]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "143\n"
    assert "Traceback" not in ended.stderr
    assert sorted(tmp_path.iterdir()) == [data]


@pytest.mark.filterwarnings("ignore:look at this column")  # one value in most cells
def test_a_row_that_a_name_mentions_stays_as_it_is(tmp_path):
    """Only the number of the row is that of the file: nothing in quotes is rewritten."""
    rows = [(a, b, {"p": "row 0", "q": "row 1"}[y]) for a, b, y in ROWS]
    data = table(tmp_path / "t.csv", [*rows[:4], ("1e200", "1", "row 0")], ("row 2", "b", "y"))
    line = refused("fit", "-m", "mixed", data, "-t", "y", "-o", tmp_path / "m.nc")
    assert "column 'row 2' holds 1e+200 in row 5, beyond" in line
    assert "leave it out by --drop" in line
    rows = [("1.5" if y == "row 0" else a, b, y) for a, b, y in rows]
    run("fit", "-m", "mixed", table(tmp_path / "t.csv", rows), "-t", "y", "-o", tmp_path / "m.nc")
    arguments = (tmp_path / "m.nc", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    line = refused("predict", *arguments, "--method", "mle")
    assert "--method mle is undefined: class 'row 0', feature 'a'" in line
