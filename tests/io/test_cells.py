"""What the cells of a column stand for."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bayesgen.encoding.literals import MISSING, parse_boolean, parse_number
from bayesgen.errors import InputError
from bayesgen.io.tabular import Cells, joined


def written(cells):
    """A column of a CSV file, in two parts."""
    k = len(cells) // 2
    return Cells("x", pa.chunked_array([cells[:k], cells[k:]], pa.string()), True)


def typed(cells, dtype=None):
    """A column of a Parquet file."""
    return Cells("x", pa.chunked_array([pa.array(cells, dtype)]), False)


KINDS = [
    (["1", "2.5", "NA", ""], "number"),
    (["True", "FALSE", ""], "boolean"),
    (["True", "1"], "text"),
    (["1_000", "2"], "text"),
    ([" ", "NA", "None"], "empty"),
    ([], "empty"),
    (["1", "x"], "text"),
    (["1e300"], "number"),
    (["inf", " +2 ", "1"], "number"),
    ([str(2**53 - 1), "2"], "number"),
    ([str(2**53), "2"], "text"),  # from here on float64 does not tell neighbours apart
    ([str(2**53 + 1), "2"], "text"),
    ([" " + str(10**20), "2"], "text"),
    (["1e20", "2"], "number"),
]


@pytest.mark.parametrize(("cells", "kind"), KINDS)
def test_what_a_column_of_a_csv_file_holds(cells, kind):
    assert written(cells).holds() == kind
    parts = {written(cells[k : k + 1]).holds() for k in range(len(cells))}
    assert joined(parts) == kind


@pytest.mark.parametrize(("cells", "dtype", "kind"), [
    ([1, None], None, "number"),
    ([True, None], None, "boolean"),
    ([np.nan, np.nan], pa.float64(), "empty"),
    ([None, None], pa.int8(), "empty"),
    ([None], pa.null(), "empty"),
    ([1, 2**60], None, "text"),
    ([1, 2**64 - 1], pa.uint64(), "text"),
    ([1.5], pa.float32(), "number"),
    (["1", "2"], None, "text"),
    (["NA"], pa.large_string(), "text"),
    (["NA", "true"], pa.dictionary(pa.int8(), pa.string()), "text"),
    ([3, 1], pa.dictionary(pa.int8(), pa.int64()), "number"),
])  # fmt: skip
def test_what_a_column_of_a_parquet_file_holds(cells, dtype, kind):
    assert typed(cells, dtype).holds() == kind


def test_numbers_are_read_as_python_reads_them():
    cells = ["0.1", " 2 ", "NA", "", "1e-320", "True", "-0", "\t7", "+5", "1E2", ".5"]
    expected = [0.1, 2, np.nan, np.nan, 1e-320, 1, 0, 7, 5, 100, 0.5]
    np.testing.assert_array_equal(written(cells).numbers(), expected)
    assert written(["1", "x", "NA"]).numbers(unknown=9.0)[:2].tolist() == [1, 9]


@pytest.mark.parametrize(("cells", "read", "cell", "row"), [
    (["1", "1_0", "x"], lambda c: c.numbers(), "1_0", 2),
    (["1", "TRUE"], lambda c: c.numbers(booleans=False), "TRUE", 2),
    (["1", "", "-Infinity"], lambda c: c.numbers(), "-Infinity", 3),
    (["true", "", "2"], lambda c: c.booleans(), "2", 3),
])  # fmt: skip
def test_a_refused_cell_is_named_by_facts(cells, read, cell, row):
    with pytest.raises(InputError, match=re.escape(f"column 'x' holds {cell!r} in row {row}")) as e:
        read(written(cells))
    assert (e.value.row, e.value.column) == (row, "x")


def test_only_text_is_a_document():
    with pytest.raises(InputError, match="column 'x' holds 1 in row 1, which is no text"):
        typed([1]).documents()
    assert typed(["a", "NA"]).documents().tolist() == ["a", "NA"]


@pytest.mark.parametrize(("cells", "kind", "labels"), [
    (["1.0", "", "2"], "number", [1, 2]),
    (["true", "NA", "false"], "boolean", [True, False]),
    (["a", "", "1"], "text", ["a", "1"]),
])  # fmt: skip
def test_labels_of_the_rows_that_have_one(cells, kind, labels):
    keep, found = written(cells).labelled(kind)
    assert keep.tolist() == [True, False, True]
    assert found.tolist() == labels
    assert found.dtype.kind == {"number": "i", "boolean": "b", "text": "U"}[kind]


def test_many_numbers_are_the_floats_that_python_makes_of_them():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63, 3000).view(np.float64)
    values = np.concatenate([bits[np.isfinite(bits)], rng.normal(size=3000)])
    cells = [f"{v:.{d}g}" for v, d in zip(values, rng.integers(1, 25, len(values)), strict=True)]
    np.testing.assert_array_equal(written(cells).numbers(), [float(c) for c in cells])


def test_missing_cells_are_those_of_pandas_and_blanks(tmp_path):
    cells = [*sorted(MISSING), " ", "\t ", "x", "0", "none", "NaT", "-", "?"]
    path = tmp_path / "cells.csv"
    pd.DataFrame({"x": cells, "y": 1}).to_csv(path, index=False)
    expected = pd.read_csv(path)["x"].isna().to_numpy().copy()
    expected[len(MISSING) : len(MISSING) + 2] = True  # blanks are missing here
    assert written(cells).missing.tolist() == expected.tolist()
    assert expected.sum() == len(MISSING) + 2
    assert [v is None for v in written(cells).texts()] == expected.tolist()
    assert typed(["NA", "", None]).missing.tolist() == [False, False, True]


def test_texts_write_whole_numbers_without_a_point():
    assert typed([1.0, 2.5, np.nan, None]).texts().tolist() == ["1", "2.5", None, None]
    assert typed([2**60, None]).texts().tolist() == [str(2**60), None]
    assert typed([True, None]).texts().tolist() == ["True", None]
    assert written(["1.0", "NA"]).texts().tolist() == ["1.0", None]


def test_values_and_labels():
    assert written(["true", "FALSE"]).values("boolean").tolist() == [True, False]
    assert written(["true", "FALSE"]).values("boolean").dtype == bool
    assert written(["true", ""]).values("boolean").tolist() == [True, None]
    assert written(["1.0", "2"]).labels("number").dtype == np.int64
    assert written(["1.5", "2"]).labels("number").tolist() == [1.5, 2]
    assert written(["1", ""]).labels("number").dtype == np.float64
    assert written(["a", "NA"]).labels("text").tolist() == ["a", None]


def test_other_types_are_refused():
    with pytest.raises(InputError, match=r"column 'x' holds timestamp\[us\]: make it numbers"):
        typed([None], pa.timestamp("us"))


@pytest.mark.parametrize(("text", "number"), [
    ("1", 1), (" 1e3\n", 1000), ("1_0", None), ("", None), ("NA", None), ("0x10", None), ("١", 1)
])  # fmt: skip
def test_one_parser_of_numbers(text, number):
    assert parse_number(text) == number


def test_one_parser_of_truth_values():
    assert [parse_boolean(t) for t in ("true", " FALSE ", "1", "yes")] == [True, False, None, None]


def test_labels_that_are_no_integers_stay_what_they_are():
    assert written(["3", "-1"]).labels("number").dtype == np.int64
    assert written(["1e300", "1"]).labels("number").tolist() == [1e300, 1.0]
