"""Columns of text, in whatever they come, against a dictionary of Python; and what they cost."""

import cProfile
import pstats

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayesgen as bg
from bayesgen.encoding.labels import _MANY, code_labels
from bayesgen.encoding.tables import Table

WORDS = ["red", "", "red ", "größer", "NA", "a\0b", "x" * 40]


def texts(n: int, missing: bool) -> list[str | None]:
    rng = np.random.default_rng(n)
    cells: list[str | None] = np.array(WORDS, dtype=object)[rng.integers(0, 7, n)].tolist()
    for i in np.flatnonzero(rng.random(n) < 0.1) if missing else ():
        cells[i] = None
    return cells


def of_two_dictionaries(cells):
    """An Arrow column whose parts have dictionaries of their own, with values that do not occur."""
    half = len(cells) // 2
    first = pa.array(cells[:half], pa.string()).dictionary_encode()
    codes = [None if cell is None else 1 + WORDS.index(cell) for cell in cells[half:]]
    second = pa.DictionaryArray.from_arrays(
        pa.array(codes, first.indices.type), ["absent", *WORDS, "absent too"]
    )
    return pa.table({"x": pa.chunked_array([first, second])})


FORMS = {
    "NumPy objects": lambda cells: np.array(cells, dtype=object)[:, None],
    "np.str_": lambda cells: np.array(
        [None if cell is None else np.str_(cell) for cell in cells], dtype=object
    )[:, None],
    "pandas str": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype="str")}),
    "pandas object": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "pandas string": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype="string")}),
    "pandas category": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype="category")}),
    "polars": lambda cells: pl.DataFrame({"x": cells}),
    "polars category": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Categorical)}),
    "polars enum": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Enum(WORDS))}),
    "Arrow": lambda cells: pa.table({"x": pa.array(cells, pa.string())}),
    "Arrow dictionaries": of_two_dictionaries,
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_codes_of_text(form, missing):
    cells = texts(40, missing)
    column = Table(FORMS[form](cells)).column(0)
    assert column.kind == "text"
    assert sorted(column.learn()) == sorted({*cells} - {None})
    known = ["größer", "red", "blue"]
    expected = [np.nan if c is None else float(known.index(c)) if c in known else -1 for c in cells]
    np.testing.assert_array_equal(column.encode(tuple(known)), expected)
    np.testing.assert_array_equal(column.present, [cell is not None for cell in cells])
    assert column.cell(39 if cells[39] else 38) in cells


@pytest.mark.parametrize("n", [40, 2 * _MANY])  # many are hashed
def test_labels_of_fixed_length(n):
    y = np.array([word.replace("\0", "") for word in texts(n, False)])
    for labels in (y, y.astype(object), np.tile(y, (2, 1))[:, ::2].ravel()):
        found, codes = code_labels(labels)
        assert found.tolist() == sorted(set(labels.tolist()))
        np.testing.assert_array_equal(found[codes], labels)


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_cell_is_named_by_its_row(form):
    of_words = "enum" in form or "dictionaries" in form
    X = FORMS[form](["red", "NA"] if of_words else ["1", None, "2.5"] * 10 + ["two", "three"])
    row = len(X) - 2
    with pytest.raises(ValueError, match=rf"in row {row}, but a gaussian column must hold numbers"):
        bg.MixedNB(columns={"gaussian": [0]}).fit(X, np.arange(len(X)) % 2)


@pytest.mark.parametrize("form", FORMS)
def test_calls_do_not_grow_with_the_rows(form):
    """Distinct values are judged, never cells."""

    def calls(n: int) -> int:
        X, y = FORMS[form](texts(n, True)), np.array(["a", "b"])[np.arange(n) % 2]
        with cProfile.Profile() as profile:
            bg.MixedNB().fit(X, y).predict(X)
        return pstats.Stats(profile).total_calls

    calls(4 * _MANY)  # what is imported and cached
    assert calls(4 * _MANY) - calls(2 * _MANY) < 200
