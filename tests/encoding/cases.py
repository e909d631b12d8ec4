"""A table of a few cells of each kind, in every container that classifiers read."""

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import xarray as xr

NAN = np.nan
NAMES = ("island", "bill", "eggs", "male")
WORDS = ["red", "", "red ", "größer", "NA", "a\0b", "x" * 40]


def objects(columns):
    """An array of Python objects."""
    table = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for j, cells in enumerate(columns.values()):
        table[:, j] = cells
    return table


def masked(columns):
    """A masked array whose hidden cells hold a number."""
    cells = objects(columns)
    hidden = np.frompyfunc(lambda cell: cell is None, 1, 1)(cells).astype(bool)
    return np.ma.masked_array(np.where(hidden, 7, cells), hidden)


def arrow(columns):
    return pa.table({name: pa.array(cells) for name, cells in columns.items()})


def of_two_dictionaries(columns):
    """Columns of text in two parts with dictionaries of their own; one has values never used."""

    def parts(cells):
        if not any(isinstance(cell, str) for cell in cells):
            return pa.array(cells)
        first = pa.array(cells[:1], pa.string()).dictionary_encode()
        values = ["absent", *sorted({cell for cell in cells if cell is not None})]
        codes = [None if cell is None else values.index(cell) for cell in cells[1:]]
        codes = pa.array(codes, first.indices.type)
        return pa.chunked_array([first, pa.DictionaryArray.from_arrays(codes, values)])

    return pa.table({name: parts(cells) for name, cells in columns.items()})


def as_category(columns):
    frame = pd.DataFrame(columns)
    text = [name for name in frame if frame[name].dropna().map(type).eq(str).any()]
    return frame.astype(dict.fromkeys(text, "category"))


def as_polars_category(columns):
    return pl.DataFrame(columns).with_columns(pl.col(pl.String).cast(pl.Categorical))


NAMED = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas, strings of Python": lambda columns: pd.DataFrame(columns).convert_dtypes(
        dtype_backend="numpy_nullable"
    ),
    "pandas, Arrow": lambda columns: arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": as_category,
    "polars": pl.DataFrame,
    "polars, categories": as_polars_category,
    "pyarrow": arrow,
    "pyarrow, dictionaries": of_two_dictionaries,
    "narwhals": lambda columns: nw.from_native(pd.DataFrame(columns)),
    "xarray": lambda columns: xr.DataArray(
        objects(columns), dims=("row", "column"), coords={"column": list(columns)}
    ),
}
CONTAINERS = NAMED | {
    "NumPy": objects,
    "NumPy, masked": masked,
    "lists": lambda columns: objects(columns).tolist(),
    "pandas without names": lambda columns: pd.DataFrame(objects(columns)),
}


def birds():
    """{name: cells} of a few birds."""
    cells = (["Dream", None, "Biscoe"], [39.1, 46.0, None], [1, 2, 0], [True, False, None])
    return dict(zip(NAMES, cells, strict=True))


BIRDS = np.array([[1, 39.1, 1, 1], [NAN, 46, 2, 0], [0, NAN, 0, NAN]])  # encoded


def column_of(*cells):
    """A table of one column of Python objects."""
    return objects({"x": list(cells)})
