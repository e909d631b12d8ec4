"""Files of tables: the same rows whatever the chunks, and clear errors."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from bayesgen.io import tabular
from bayesgen.io.formats import TableError
from bayesgen.io.tabular import concatenated, open_file


def columns_of(file, rows=None, names=None):
    """{name: cells as they stand} of a whole file, and the sizes of the chunks."""
    names = file.names if names is None else names
    parts = list(file.rows(names, rows))
    firsts = np.cumsum([1, *(part.n_rows for part in parts)])
    assert [part.first for part in parts] == firsts[:-1].tolist()
    assert [part.done for part in parts] == sorted(part.done for part in parts)
    if not parts:
        return {name: [] for name in names}, []
    whole = concatenated(parts)
    assert parts[-1].done == 1
    return {n: whole.cells(n).raw().tolist() for n in names}, [part.n_rows for part in parts]


def by_csv_module(text, **dialect):
    header, *rows = (row for row in csv.reader(io.StringIO(text, newline=""), **dialect) if row)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


AWKWARD = (
    'a,"b\nb",c\r\n1,"x, ""y""",\r\n\r\n"two\nlines",, NA \n\n3,\u00e4\u20ac,"\r\n"\n,,\n'
    + "".join(f'{k},"{k}\n",z\n' for k in range(200))
    + '"","last, without a line end","x"'
)


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_csv_file_is_what_the_csv_module_reads(tmp_path, monkeypatch, rows, block, mark):
    monkeypatch.setattr(tabular, "_BLOCK", block)
    path = tmp_path / "a.csv"
    path.write_bytes((mark + AWKWARD).encode())
    expected = by_csv_module(AWKWARD)
    found, sizes = columns_of(open_file(path), rows)
    assert found == expected
    n = len(expected["a"])
    assert sizes == [rows] * (n // rows) + [n % rows] * (n % rows > 0)
    assert columns_of(open_file(path), rows, ["c", "a"])[0] == {k: expected[k] for k in "ca"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["a;b", "1;2", "", "3;4", ""]).encode())
    assert columns_of(open_file(path))[0] == {"a": ["1", "3"], "b": ["2", "4"]}


def test_a_cell_longer_than_a_block(tmp_path):
    texts = ["short", "x" * 3_000_000, "y\n" * 2_000_000, "", "end"]
    pd.DataFrame({"text": texts, "y": range(5)}).to_csv(tmp_path / "a.csv", index=False)
    found, sizes = columns_of(open_file(tmp_path / "a.csv"), 2)
    assert found["text"] == texts
    assert found["y"] == list("01234")
    assert sizes == [2, 2, 1]


def test_quotes_are_characters_in_tsv(tmp_path):
    (tmp_path / "a.tsv").write_text('text\ty\n"Hey" he said\ta\n"\tb\n', encoding="utf-8")
    found, _ = columns_of(open_file(tmp_path / "a.tsv"))
    assert found == {"text": ['"Hey" he said', '"'], "y": ["a", "b"]}


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\n\r\n"])
def test_no_rows(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert columns_of(open_file(tmp_path / "a.csv"))[1] == []


@pytest.mark.parametrize("end", ["", "\n", "\r\n", '""\n', "\n,\n"])
@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_a_quotation_that_does_not_end(tmp_path, end, names):
    path = tmp_path / "a.csv"
    path.write_bytes(('a,b\n1,2\n1,"x' + end).encode())
    with pytest.raises(TableError, match=r"a.csv: line \d: unexpected end of data"):
        columns_of(open_file(path), names=names)


@pytest.mark.parametrize("end", ['"', '"\n', '""""', '"x"\n', 'x"', 'x""\n', '"\n"', '"\n"\n'])
def test_a_quotation_at_the_end(tmp_path, end):
    path = tmp_path / "a.csv"
    text = "a,b\n1,2\n1," + end
    path.write_bytes(text.encode())
    try:
        expected = by_csv_module(text, strict=True)
    except csv.Error:
        with pytest.raises(TableError, match="unexpected end of data"):
            columns_of(open_file(path))
    else:
        assert columns_of(open_file(path))[0] == expected


@pytest.mark.parametrize(("text", "message"), [
    ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the header names 2 columns"),
    ('a,b\n1,"x\ny"\n\n3\n', "line 5 has 1 cells, but the header names 2 columns"),
    ("a,b,a\n1,2,3\n", "more than one column 'a'"),
    ("", "is empty: its first line must name the columns"),
    (" ,\n1,2\n", "is empty: its first line must name the columns"),
])  # fmt: skip
def test_what_is_no_table(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(TableError, match=message):
        columns_of(open_file(tmp_path / "a.csv"))


@pytest.mark.parametrize("head", [b"", b"a,b\n1,2\n"])
def test_not_utf8(tmp_path, head):
    (tmp_path / "a.csv").write_bytes(head + b"\xe9,b\n")
    with pytest.raises(
        TableError, match=r"a.csv is not UTF-8 text \(byte 0xe9\); save it as UTF-8"
    ):
        columns_of(open_file(tmp_path / "a.csv"))


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": range(10), "c": list("uvuvuvuvuv")}, index=list("abcdefghij"))
    frame["c"] = frame["c"].astype("category")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=4)
    file = open_file(tmp_path / "a.parquet")
    assert file.names == ["a", "c"]
    assert [file.is_nominal(name) for name in file.names] == [False, True]
    found, sizes = columns_of(file, 3, ["c", "a"])
    assert found == {"c": list("uvuvuvuvuv"), "a": list(range(10))}
    assert max(sizes) <= 3
