"""Tables as they come: file, options, what is said, what is read.

The files in the folder ``situations`` hold 24 days of an invented weather station.
"""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bayesgen.cli import files
from bayesgen.io.formats import Reading
from bayesgen.io.tabular import open_file
from tests.cli.test_cli import PENGUINS, refused, run

FOLDER = Path(__file__).with_name("situations")
PLAIN = {"temp": [19.4, 24.3, 22.3], "wind": [4.35, 5.87, 4.54], "sky": ["rain", "sun", "sun"]}
NAN = np.nan
READ = [  # file, options, what is said, the first cells of what is read
    ("semicolons.csv", [], ["read with semicolons, decimal comma"], PLAIN),
    ("excel_sep.csv", [], ["read with semicolons, decimal comma"], PLAIN),
    ("tabs.txt", [], ["read with tabs"], PLAIN),
    ("blanks.dat", [], ["read with blanks"], PLAIN),
    ("blanks_in_header.csv", [], [], PLAIN),
    ("comments.csv", [], ["read with comments by #"], PLAIN),
    ("title.csv", [], ["read with semicolons, the header in line 3"], {"temp": [19.4, 18.5]}),
    ("utf16.csv", [], [], PLAIN),
    ("windows.csv", ["--encoding", "cp1252"], [], {"sky": ["trüb", "schön"]}),
    ("r_row_names.txt", [], ["read with blanks", "1 column(s) without a name"], PLAIN),
    ("years.csv", [], [], {"2024": [19.4], "2025": [20.9]}),
    ("no_header.data", ["--no-header"], [], {"c1": [19.4, 24.3], "c3": ["rain", "sun"]}),
    ("no_header_words.data", ["--no-header"], [], {"c1": ["high", "high"], "c3": ["rain"]}),
    ("question_marks.csv", [], ["'wind' holds ?, read as a missing cell", "--not-missing ?"],
     {"temp": [19.4, NAN, 22.3], "wind": [None, "strong", "weak"]}),
    ("question_marks.csv", ["--not-missing", "?"], ["'temp' holds numbers as text but for '?'"],
     {"wind": ["?", "strong", "weak"]}),
    ("far_numbers.csv", [], ["'temp' holds -999 in 3 rows", "--missing -999"],
     {"temp": [19.4, -999]}),
    ("far_numbers.csv", ["--missing", "-999"], [], {"temp": [19.4, NAN, 22.3]}),
    ("one_word.csv", [], ["'temp' holds numbers, and 'broken', read as missing (if it is a "
     "category: --not-missing broken)", "'wind' holds numbers, and '-'"],
     {"temp": [19.4, NAN], "wind": [4.35, 5.87, NAN]}),
    ("countries.csv", [], ["'land' holds NA, read as a missing cell", "--not-missing NA"],
     {"land": [None, "ZA", "BW"]}),
    ("countries.csv", ["--not-missing", "NA"], [], {"land": ["NA", "ZA", "BW"]}),
    ("written_numbers.csv", [], ["'($4,350.00)', read as the number -4350", "'−24.3'",
     "'4.3 %', read as the number 0.043"],
     {"sales": [-4350, 5870], "humidity": [0.043, 0.059], "height": [2939], "temp": [19.4, -24.3]}),
    ("units.csv", [], ["'sales' holds numbers, dates or times as text, such as '178k'",
     "'time' holds numbers, dates or times as text"], {"sales": ["43k"], "time": ["0:00"]}),
    ("row_numbers.csv", [], ["'station' numbers the rows: leave it out by --drop station"],
     {"station": [101, 102]}),
    ("labels.csv", [], ["labels that differ by case or blanks are classes of their own",
     "'rain' (6)", "'RAIN ' (2)", "--fold-labels"], {"sky": ["RAIN ", "sun"]}),
    ("labels.csv", ["--fold-labels"], ["are one class"], {"sky": ["RAIN ", "sun"]}),
]  # fmt: skip


def target_of(path):
    return "c3" if path.name.startswith("no_header") else "sky"


def first_cells(path, model, encoding):
    """The cells of each column as the model file says that they are read."""
    file = open_file(path, files.stored_reading(model, Reading(encoding=encoding)))
    return next(file.rows(file.kinds(file.names))).frame


@pytest.mark.parametrize(("name", "options", "said", "cells"), READ)
def test_what_is_said_and_read(tmp_path, name, options, said, cells):
    path, model = FOLDER / name, tmp_path / "m.nc"
    target = target_of(path)
    result = run("fit", path, "-t", target, "-m", "mixed", *options, "-o", model)
    assert all(words in result.stderr for words in said), result.stderr
    assert said or result.stderr == ""
    again = options if "--encoding" in options else []
    frame = first_cells(path, model, *again[1:] or [None])
    for column, expected in cells.items():
        found = frame[column].iloc[: len(expected)]
        if isinstance(expected[-1], str) or None in expected:
            assert found.tolist() == expected
        else:
            np.testing.assert_allclose(found.astype(float), expected)
    out = tmp_path / "o.csv"
    run("predict", model, path, "-o", out, *again)
    assert len(pd.read_csv(out)) == 24


@pytest.mark.parametrize(("name", "options", "message"), [
    ("no_header.data", [], "its first row looks like the others ('19.4', '4.35', 'rain'); if the "
     "file has no header: --no-header, and the columns are c1, c2 and so on"),
    ("no_header_words.data", [], "its first row looks like the others"),
    ("header_in_comment.csv", [], "its first row looks like the others"),
    ("windows.csv", [], "is not UTF-8 in line 2; save it as UTF-8, or name its encoding, such "
     "as --encoding cp1252"),
    ("windows.csv", ["--encoding", "no"], "'no' is no encoding"),
    ("tabs.txt", ["--delimiter", "comma"], "has no column 'sky'"),
    ("tabs.txt", ["--delimiter", "words"], "--delimiter words"),
    ("tabs.txt", ["--decimal", "x"], "--decimal x: give . or ,"),
])  # fmt: skip
def test_what_stops(tmp_path, name, options, message):
    line = refused("fit", FOLDER / name, "-t", "sky", *options, "-o", tmp_path / "m.nc")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def compressed(folder):
    content = (FOLDER / "semicolons.csv").read_bytes()
    (folder / "a.csv.gz").write_bytes(gzip.compress(content))
    (folder / "a.zst").write_bytes(pa.compress(content, codec="zstd", asbytes=True))
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("station/a.csv", content)
    return [folder / name for name in ("a.csv.gz", "a.zst", "a.zip")]


def test_compressed_files_of_any_name(tmp_path):
    for path in compressed(tmp_path):
        file = open_file(path)
        assert file.names == list(PLAIN)
        *_, (frame, done, _) = file.rows(file.kinds(file.names), 5)
        assert 0 < done <= 1
        assert frame.index[-1] == 24


def test_new_files_are_read_by_the_rules_of_the_fit(tmp_path):
    """The delimiter as the new file has it; missing cells, labels and names as in the fit."""
    model = tmp_path / "m.nc"
    options = ["-m", "mixed", "--fold-labels", "--missing", "99.9"]
    run("fit", FOLDER / "labels.csv", "-t", "sky", *options, "-o", model)
    new = tmp_path / "new.txt"
    new.write_text("wind;temp;sky\n4,35;99,9;RAIN\n5,87;24,3; Sun\n")
    run("predict", model, new, "-o", tmp_path / "o.csv")
    expected = tmp_path / "same.csv"
    expected.write_text("temp,wind\n,4.35\n24.3,5.87\n")
    run("predict", model, expected, "-o", tmp_path / "p.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "o.csv"), pd.read_csv(tmp_path / "p.csv"))
    assert "MixedNB on 2 rows" in run("compare", model, new, "-t", "sky").stdout


def test_a_file_without_header_and_labels(tmp_path):
    model, new = tmp_path / "m.nc", tmp_path / "new.data"
    rows = (FOLDER / "no_header.data").read_text().splitlines()
    labelled = [",".join(row.split(",")[::-1]) for row in rows]
    (tmp_path / "train.data").write_text("\n".join(labelled))
    run("fit", tmp_path / "train.data", "-t", "c1", "-m", "mixed", "--no-header", "-o", model)
    new.write_text("\n".join(row.partition(",")[2] for row in labelled))
    run("predict", model, new, "-o", tmp_path / "o.csv")
    run("predict", model, tmp_path / "train.data", "-o", tmp_path / "p.csv")
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "p.csv").read_text()


@pytest.mark.parametrize(("model_name", "words"), [
    ("mixed", ("yes", "NO")), ("mixed", ("T", "F")), ("mixed", ("1", "0")), ("mixed", ("y", "n")),
    ("meta-trees", ("true", "FALSE")),
])  # fmt: skip
def test_truth_values_come_back_in_other_words(tmp_path, model_name, words):
    lines = [f"{k % 3 > 0},{'ab'[k % 2]}" for k in range(12)]
    data, model = tmp_path / "d.csv", tmp_path / "m.nc"
    data.write_text("x,y\n" + "\n".join(lines))
    run("fit", data, "-t", "y", "-m", model_name, "-o", model)
    run("predict", model, data, "-o", tmp_path / "o.csv")
    text = data.read_text().replace("True", words[0]).replace("False", words[1])
    (tmp_path / "new.csv").write_text(text)
    run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "p.csv").read_text()


def test_a_percentage_is_never_read_as_a_number_or_the_other_way(tmp_path):
    model, new = tmp_path / "m.nc", tmp_path / "new.csv"
    run("fit", FOLDER / "written_numbers.csv", "-t", "sky", "-m", "mixed", "-o", model)
    for cells, column, need in (
        ("5,0.2,100,3", "humidity", "holds 0.2 in row 1, which is not a percentage"),
        ("5,2%,100,3%", "temp", "holds '3%' in row 1, which is not a number"),
    ):
        new.write_text(f"sales,humidity,height,temp\n{cells}\n")
        line = refused("predict", model, new, "-o", tmp_path / "o.csv")
        assert f"column {column!r} {need}" in line


def test_the_examples_of_the_help_run_one_after_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line.strip() for line in run("--help", columns=200).stdout.splitlines()]
    examples = [line.split()[1:] for line in lines if line.startswith("bayesgen ")]
    penguins = pd.read_csv(PENGUINS)
    penguins[::8].to_csv("penguins.csv", index=False)
    penguins[1::16].to_csv("held_out.csv", index=False)
    penguins[2::40].drop(columns="species").to_csv("new.csv", index=False)
    assert [example[0] for example in examples] == [
        "demo", "fit", "predict", "predict", "compare", "report"
    ]  # fmt: skip
    for example in examples[1:]:  # the demo has tests of its own
        run(*example)
    assert {"penguins.nc", "out.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}
    assert pd.read_csv("out.csv").columns[-3:].tolist() == ["reason_1", "reason_2", "reason_3"]
