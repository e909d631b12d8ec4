"""One column from the cells that hold it: of a series of any data frame, an array, or objects.

Text and categories are judged by their distinct values; a cell of another type than text, number,
boolean or missing is refused with its column and row.
"""

import numbers
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from bayesgen.encoding.column import EXACT, Column, canonical
from bayesgen.encoding.factorised import MANY, Factorised, of_arrow, of_objects, of_strings
from bayesgen.numerics.special import Array


def from_series(series: Any, label: str) -> Column:
    """A column of a data frame, as narwhals shows it; `label` is what errors call it."""
    own = series.to_native()
    if isinstance(getattr(own, "dtype", None), np.dtype) and own.dtype.kind in "biufO":
        return from_array(own.to_numpy(), label)  # of pandas
    dtype = series.dtype
    if dtype.is_temporal():
        span = isinstance(dtype, nw.Duration | nw.Time)
        to = "to a number of seconds" if span else "to days since a first date"
        raise _unreadable(label, str(dtype), to=to)
    if dtype.is_nested() or isinstance(dtype, nw.Binary):
        raise _unreadable(label, str(dtype))
    if isinstance(dtype, nw.Categorical | nw.Enum):
        levels = None  # a polars Categorical or pyarrow dictionary encodes, it does not declare
        pandas = series.implementation.is_pandas_like() and hasattr(own.dtype, "categories")
        if isinstance(dtype, nw.Enum) or pandas:
            found = series.cat.get_categories().to_list()
            levels = canonical(found, f"the dtype of {label}") if found else None
        return replace(_from_dictionary(series, label), nominal=True, levels=levels)
    if dtype.is_integer() and not isinstance(dtype, nw.Int128 | nw.UInt128):
        if not series.null_count():
            return from_array(series.to_numpy(), label)
        return column_of_floats(series.cast(nw.Float64).to_numpy(), label, exact=True)
    if dtype.is_float() or dtype.is_decimal():
        return column_of_floats(series.cast(nw.Float64).to_numpy(), label)
    if isinstance(dtype, nw.Unknown) and series.null_count() < len(series):  # pandas' sparse, ...
        values = np.asarray(series.to_numpy())
        if values.ndim == 1:  # an interval has two ends
            return from_array(values, label)
    if isinstance(dtype, nw.String):
        return _from_dictionary(series, label)
    return _from_cells(series.to_list(), label)


def _from_dictionary(series: Any, label: str) -> Column:
    """A column of text or categories, judged by its distinct values."""
    import pyarrow

    try:
        codes, found = of_arrow(series.to_arrow())
        some_missing = codes.min(initial=0) < 0
        column = _from_cells([*found, None] if some_missing else found, label)
    except (TypeError, ValueError, pyarrow.ArrowException):
        return _from_cells(series.to_list(), label)  # which knows the row that is wrong
    if column.codes is None:
        return replace(column, values=column.values[codes])
    return replace(column, codes=column.codes[codes])


def _from_objects(values: Array, label: str) -> Column:
    """A column of Python objects."""
    if (texts := of_objects(values)) is not None:
        return _of_texts(texts, label)
    if len(values) >= MANY:
        import pandas as pd

        kind = pd.api.types.infer_dtype(values, skipna=True)
        if kind in ("floating", "mixed-integer-float"):
            try:
                return column_of_floats(values.astype(np.float64), label)
            except TypeError:  # pandas.NA
                pass
    return _from_cells(values.tolist(), label)


def _of_texts(texts: Factorised, label: str) -> Column:
    found = np.empty(len(texts.found), dtype=object)
    found[:] = [str.__str__(text) for text in texts.found]
    return Column(label, "text", found, codes=texts.codes)


def from_array(values: Array, label: str) -> Column:
    """A column of an array of any dtype; `label` is what errors call it."""
    match values.dtype.kind:
        case "b":
            return Column(label, "boolean", values)
        case "i" | "u":
            wide = values.dtype == np.uint64 and values.size > 0 and values.max() >= 2**63
            return Column(label, "integer", values.astype(np.uint64 if wide else np.int64))
        case "f":
            return column_of_floats(values, label)
        case "O":
            return _from_objects(values, label)
        case "U":
            return _of_texts(of_strings(values), label)
        case "T":
            return _from_cells(values.tolist(), label)
        case "c":
            raise ValueError(f"Complex data not supported: {label} holds complex numbers")
    raise _unreadable(label, str(values.dtype))


def column_of_floats(values: Array, label: str, exact: bool = False) -> Column:
    """A column of floats, NaN for missing; ValueError if a cell is infinite.

    With `exact`, of floats that were integers a moment ago, which float64 must tell apart.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    size = np.abs(values)
    if (infinite := np.isinf(size)).any():
        row = int(np.argmax(infinite))
        raise infinite_cell(label, values[row], row)
    if exact and (size >= EXACT).any():
        raise ValueError(
            f"{label} holds integers of 2**53 and beyond and missing cells: float64 cannot tell "
            "them apart, turn the column into text"
        )
    return Column(label, "real", values)


def _from_cells(cells: list[Any], label: str) -> Column:
    """A column of Python objects, by the types that occur in it."""
    types = set(map(type, cells))
    missing = {t for t in types if t is type(None) or t.__name__ in ("NAType", "NaTType")}
    text = {t for t in types if issubclass(t, str)}
    boolean = types & {bool, np.bool}
    number = {t for t in types if issubclass(t, numbers.Real | Decimal)} - boolean
    number.discard(np.timedelta64)  # NumPy counts it among the integers
    if foreign := types - missing - text - boolean - number:
        row = next(i for i, cell in enumerate(cells) if type(cell) in foreign)
        raise _unreadable(label, f"{cells[row]!r} ({type(cells[row]).__name__})", row)
    fractional = {t for t in number if not issubclass(t, numbers.Integral)}
    if fractional and all(cell != cell for cell in cells if type(cell) in fractional):  # NaN alone
        missing |= fractional
        number -= fractional
        fractional = set()
    if text and (number or boolean):
        i = next(i for i, cell in enumerate(cells) if type(cell) in text)
        k = next(
            i for i, cell in enumerate(cells) if type(cell) in number | boolean and cell == cell
        )
        raise TypeError(
            f"{label} mixes text ({str(cells[i])!r} in row {i}) and numbers ({cells[k]} in row "
            f"{k}); make it all text or all numbers"
        )
    if text:
        own = (cell if type(cell) in text else None for cell in cells)
        texts = of_objects(np.fromiter(own, dtype=object, count=len(cells)))
        assert texts is not None
        return _of_texts(texts, label)
    try:
        if missing or fractional or not types:
            floats = [np.nan if type(cell) in missing else float(cell) for cell in cells]
            column = column_of_floats(np.array(floats), label, exact=not fractional)
            return column if number else replace(column, kind="boolean" if boolean else "empty")
        values = np.array(cells, dtype=None if number else bool)
    except OverflowError:
        values = np.array(cells, dtype=object)
    if values.dtype.kind not in "biu":
        raise ValueError(f"{label} holds integers beyond 64 bits; turn it into text")
    return from_array(values, label)


def infinite_cell(label: str, value: Any, row: int) -> ValueError:
    """The error of a cell that is infinite."""
    return ValueError(
        f"{label} holds {value} in row {row}; make it finite, or NaN if it is missing"
    )


def _unreadable(label: str, what: str, row: int | None = None, to: str = "") -> TypeError:
    place = "" if row is None else f" in row {row}"
    convert = f"convert the column, as {to}," if to else "convert the column"
    return TypeError(
        f"{label} holds {what}{place}: argument must be a string, a number, a boolean or missing; "
        f"{convert} or leave it out"
    )
