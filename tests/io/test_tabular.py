"""Files of tables: what their cells stand for, the same whatever the chunks, and clear errors."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesgen.encoding.literals import MISSING, parse_number
from bayesgen.errors import InputError
from bayesgen.io.formats import TableError
from bayesgen.io.tabular import join_kinds, labels, open_file


def written(tmp_path, cells):
    """A CSV file with a column of such cells, beside one that is never missing."""
    path = tmp_path / "cells.csv"
    pd.DataFrame({"x": cells, "y": 1}).to_csv(path, index=False)
    return open_file(path)


def typed(tmp_path, cells, dtype=None):
    """A Parquet file with a column of such cells."""
    path = tmp_path / "cells.parquet"
    parquet.write_table(pa.table({"x": pa.array(cells, dtype)}), path)
    return open_file(path)


def read(file, kind, n_rows=None, name="x"):
    """All cells of a column as a type, and the sizes of the chunks."""
    frames, shares, _ = zip(*file.rows({name: kind}, n_rows), strict=True)
    rows = pd.concat(frames)
    assert rows.index.tolist() == list(range(1, len(rows) + 1))
    assert list(shares) == sorted(shares)
    assert 0 < shares[-1] <= 1
    return rows[name], [len(frame) for frame in frames]


@pytest.mark.parametrize(("cells", "kind"), [
    (["1", "2.5", "NA", ""], "number"),
    (["True", "FALSE", ""], "boolean"),
    ([" true", "false"], "boolean"),
    (["True", "1"], "text"),
    (["1", "x"], "text"),
    (["inf", " +2 ", "1"], "number"),
    ([str(2**53 - 1), "2"], "number"),
    ([str(2**53), "2"], "text"),  # from here on float64 does not tell neighbours apart
    ([str(2**53 + 1), "", "2"], "text"),
    ([" " + str(10**20), "2"], "text"),
    (["1e20", "2"], "number"),
])  # fmt: skip
def test_what_a_column_of_a_csv_file_holds(tmp_path, cells, kind):
    assert written(tmp_path, cells).kinds(["x"]) == {"x": kind}
    parts = {written(tmp_path, [cell]).kinds(["x"])["x"] for cell in cells}
    assert join_kinds(parts) == kind


@pytest.mark.parametrize(("cells", "dtype", "kind"), [
    ([1, None], None, "number"),
    ([True, None], None, "boolean"),
    ([np.nan, np.nan], pa.float64(), "empty"),
    ([None, None], pa.int8(), "empty"),
    ([None], pa.null(), "empty"),
    ([1, 2**60], None, "text"),
    ([1, 2**64 - 1], pa.uint64(), "text"),
    ([1.5], pa.float32(), "number"),
    (["1", "NA"], None, "text"),
    (["NA", "true"], pa.dictionary(pa.int8(), pa.string()), "text"),
])  # fmt: skip
def test_what_a_column_of_a_parquet_file_holds(tmp_path, cells, dtype, kind):
    assert typed(tmp_path, cells, dtype).kinds(["x"]) == {"x": kind}


def test_many_numbers_are_the_floats_that_python_makes_of_them(tmp_path):
    rng = np.random.default_rng(0)
    cells = [
        f"{v:.{d}g}" for v, d in zip(rng.normal(size=999), rng.integers(1, 18, 999), strict=True)
    ]
    values, _ = read(written(tmp_path, cells), "number")
    np.testing.assert_allclose(values, [float(cell) for cell in cells], rtol=3e-16)


@pytest.mark.parametrize(("cells", "kind", "cell", "row"), [
    (["1", "1_0", "x"], "number", "'1_0'", 2),
    (["1", "TRUE"], "number", "'TRUE'", 2),
    (["true", "FALSE"], "number", "True", 1),
    (["1", "", "-Infinity"], "number", "-inf", 3),
    (["true", "", "2"], "boolean", "2", 3),
])  # fmt: skip
def test_a_refused_cell_is_named_by_facts(tmp_path, cells, kind, cell, row):
    match = re.escape(f"cells.csv: column 'x' holds {cell} in row {row}, which is not ")
    with pytest.raises(InputError, match=match) as error:
        read(written(tmp_path, cells), kind, n_rows=2)
    assert (error.value.row, error.value.column) == (row, "x")


def test_missing_cells_are_those_of_pandas_and_blanks(tmp_path):
    cells = [*sorted(MISSING), " ", "\t ", "x", "0", "none", "NaT", "-"]
    file = written(tmp_path, cells)
    expected = pd.read_csv(file.path)["x"].isna() | pd.Series(cells).str.strip().isin(["", "?"])
    assert [cell is None for cell in read(file, "text")[0]] == expected.tolist()
    assert read(file, None)[0].tolist() == cells
    assert read(typed(tmp_path, ["NA", "", None]), "text")[0].tolist() == ["NA", None, None]


def test_texts_write_whole_numbers_without_a_point(tmp_path):
    def texts(cells):
        return read(typed(tmp_path, cells), "text")[0].tolist()

    assert texts([1.0, 2.5, None]) == ["1", "2.5", None]
    assert texts([2**60, None]) == [str(2**60), None]
    assert texts([True, None]) == ["True", None]
    assert read(written(tmp_path, ["1.0", "NA", "007"]), "text")[0].tolist() == ["1.0", None, "007"]


@pytest.mark.parametrize(("cells", "kind", "expected", "dtype"), [
    (["1.0", "2"], "number", [1, 2], "i"),
    (["1.5", "2"], "number", [1.5, 2], "f"),
    (["1e300", "1"], "number", [1e300, 1], "f"),
    (["true", "FALSE"], "boolean", [True, False], "b"),
    (["a", "1"], "text", ["a", "1"], "O"),
    (["a", "NA"], "text", ["a", None], "O"),
])  # fmt: skip
def test_labels(tmp_path, cells, kind, expected, dtype):
    values = labels(read(written(tmp_path, cells), kind)[0])
    assert (values.tolist(), values.dtype.kind) == (expected, dtype)


def test_other_types_are_refused(tmp_path):
    file = typed(tmp_path, [1, None], pa.timestamp("us"))
    with pytest.raises(InputError, match=r"column 'x' holds datetime64: make it numbers"):
        file.kinds(["x"])


@pytest.mark.parametrize(("text", "number"), [
    ("1", 1), (" 1e3\n", 1000), ("1_0", None), ("", None), ("NA", None), ("0x10", None), ("١", 1)
])  # fmt: skip
def test_one_parser_of_numbers(text, number):
    assert parse_number(text) == number


# ------------------------------------------------------------------------------------------ files

AWKWARD = (
    '\ufeffa,"b\nb",c\r\n1,"x, ""y""",\r\n\r\n"two\nlines",, NA \n\n3,äü,"\r\n"\n,,\n'
    + "".join(f'{k},"{k}\n",z\n' for k in range(200))
    + '"","last, without a line end","x"'
)


@pytest.mark.parametrize("n_rows", [1, 7, 1000])
def test_a_csv_file_is_what_the_csv_module_reads(tmp_path, n_rows):
    import csv
    import io

    path = tmp_path / "a.csv"
    path.write_bytes(AWKWARD.encode())
    header, *rows = (row for row in csv.reader(io.StringIO(AWKWARD[1:], newline="")) if row)
    file = open_file(path)
    assert file.names == header
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        values, sizes = read(file, None, n_rows, name)
        assert values.tolist() == list(cells)
        assert sizes[:-1] == [n_rows] * (len(rows) // n_rows - (len(rows) % n_rows == 0))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["a;b", "1;2", "", "3;4", ""]).encode())
    assert read(open_file(path), "number", name="b")[0].tolist() == [2, 4]


def test_quotes_are_characters_in_tsv(tmp_path):
    (tmp_path / "a.tsv").write_text('text\ty\n"Hey" he said\ta\n"\tb\n', encoding="utf-8")
    values, _ = read(open_file(tmp_path / "a.tsv"), None, name="text")
    assert values.tolist() == ['"Hey" he said', '"']


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\n\r\n"])
def test_no_rows(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert open_file(tmp_path / "a.csv").kinds(["a", "b"]) == {}


@pytest.mark.parametrize(("text", "message"), [
    (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but there are 2 columns"),
    (b'a,b\n1,"x\ny"\n\n3\n', "line 5 has 1 cells, but there are 2 columns"),
    (b'a,b\n1,2\n1,"x', "the quotation that opens in line 3 has no end"),
    (b"a,b,a\n1,2,3\n", "more than one column 'a'"),
    (b"", "is empty: its first line must name the columns"),
    (b" ,\n1,2\n", "is empty: its first line must name the columns"),
    (b"\xe9,b\n", "a.csv is not UTF-8 in line 1; save it as UTF-8"),
    (b"a,b\n1,2\n\xe9,b\n", "a.csv is not UTF-8 in line 3; save it as UTF-8"),
    (b"a\0,b\n1,2\n", "has a null character"),
])  # fmt: skip
def test_what_is_no_table(tmp_path, text, message):
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(TableError, match=message):
        open_file(tmp_path / "a.csv").kinds(["a", "b"])


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": range(10), "c": list("uvuvuvuvuv")}, index=list("abcdefghij"))
    frame["c"] = frame["c"].astype("category")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=4)
    file = open_file(tmp_path / "a.parquet")
    assert (file.names, file.nominal) == (["a", "c"], {"c"})
    assert read(file, "text", 3, "c")[0].tolist() == list("uvuvuvuvuv")
    assert read(file, "number", 3, "a")[0].tolist() == list(range(10))
    frame.set_index("c").to_parquet(tmp_path / "d.parquet")
    assert read(open_file(tmp_path / "d.parquet"), "text", 3, "c")[0].tolist() == list("uvuvuvuvuv")
    latin = pa.array([b"\xf1", b"a"]).buffers()
    table = pa.table({"x": pa.Array.from_buffers(pa.string(), 2, latin)})
    parquet.write_table(table, tmp_path / "c.parquet")
    with pytest.raises(TableError, match=r"is not a readable Parquet file: .*UTF8"):
        open_file(tmp_path / "c.parquet").kinds(["x"])
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableError, match="is not a readable Parquet file"):
        open_file(tmp_path / "b.parquet")
