r"""One column of a table: its cells, the values that can be its categories, and their codes.

::

    >>> column = Column("size", "real", np.array([2.0, 1.0, np.nan, 2.0]))
    >>> column.learn()
    (1, 2)
    >>> column.encode((1, 2))
    array([ 1.,  0., nan,  1.])
    >>> column.encode(("1", "2"))
    array([-1., -1., nan, -1.])

- Numbers are compared by value: 1, 1.0, True and np.int8(1) are one category. A column of whole
  numbers has ints as categories, whatever its dtype; a column of booleans has False and True.
- Learned categories are sorted. Those that a dtype declares (pandas Categorical, polars Enum) are
  all kept in the order of the declaration, those without rows included.
"""

import numbers
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

import narwhals.stable.v2 as nw
import numpy as np

from bayesgen.encoding.cells import refuse_infinite
from bayesgen.encoding.literals import listed, parse_number, shown
from bayesgen.errors import Facts, InputError, InputTypeError
from bayesgen.numerics.special import Array

Values = tuple  # of str, int, float or bool, all of one of these types

EXACT = 2**53  # from here on float64 does not tell neighbouring integers apart


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table in one of five forms."""

    name: Hashable  # or its position, where columns have no names
    kind: str  # "boolean", "integer", "real", "text"; "empty" holds nothing but missing cells
    # (N,) bool, int64, uint64, float64 with NaN for missing; of text the K distinct ones, objects
    values: Array
    nominal: bool = False  # whether its dtype says that it is categorical
    levels: Values | None = None  # the categories that its dtype declares
    codes: Array | None = None  # (N,) of text: which of the values a cell holds, -1 where missing

    @property
    def label(self) -> str:
        """Return what errors call it."""
        return f"column {self.name!r}"

    @property
    def present(self) -> Array:
        """Return which cells are not missing, (N,) bool."""
        return self.values == self.values if self.codes is None else self.codes >= 0

    def cell(self, row: int):
        """Return a cell that is not missing, as a Python scalar."""
        place = row if self.codes is None else self.codes[row]
        return self.values[place : place + 1].tolist()[0]

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Return which distinct value each cell holds (N,), -1 where missing; and these values."""
        if self.codes is not None:
            return self.codes, self.values
        import pandas as pd

        return pd.factorize(self.values)

    def learn(self) -> Values:
        """Return its categories: those its dtype declares, or those that occur, sorted."""
        if self.levels is not None:
            return self.levels
        if self.kind in ("empty", "boolean"):
            return () if self.kind == "empty" else (False, True)
        values = tuple(sorted(self.factors[1].tolist()))
        if self.kind != "real":
            return values
        return of_one_type((value + 0.0 for value in values), values)  # -0.0 is 0

    def encode(self, categories: Values) -> Array:
        """Return the codes (N,): NaN where missing, -1 for what is not among `categories`."""
        codes, distinct = self.factors
        code = {value: float(k) for k, value in enumerate(categories)}  # 1, 1.0 and True are one
        return np.array([*(code.get(value, -1.0) for value in distinct.tolist()), np.nan])[codes]

    def codes_among(self, categories: Values) -> Array:
        """Return `encode`; all NaN for a column without categories.

        TypeError if the column holds text where its categories are numbers, or the reverse.
        """
        if not categories:
            return np.full(len(self.present), np.nan)
        if self.kind != "empty" and is_text(categories) != (self.kind == "text"):
            for row in np.flatnonzero(self.present)[:1]:
                why = f", but its categories are {form(categories)}"
                raise self.refused(row, why, "convert the column", InputTypeError)
        return self.encode(categories)

    def refuse_others(self, categories: Values, what: str, advice: str) -> None:
        """Raise ValueError at the first cell that is not among `categories`, which are `what`."""
        for row in np.flatnonzero(self.encode(categories) == -1)[:1]:
            why = f", which is not among {what} ({listed(map(shown, categories), 10)})"
            raise self.refused(row, why, f"{advice}, or make the cell missing")

    def numbers(self, why: str, advice: str) -> Array:
        """Return the cells as float64 (N,); InputError, as `refused`, at text that is no number."""
        if self.codes is None:
            return self.values.astype(np.float64)
        parsed = [parse_number(text) for text in self.values]
        wrong = np.array([*(number is None for number in parsed), False])[self.codes]
        for row in np.flatnonzero(wrong)[:1]:
            raise self.refused(row, why, advice)
        return np.array([*parsed, np.nan], dtype=np.float64)[self.codes]

    def refused(self, row: int, why: str, advice: str, error: type[Facts] = InputError) -> Facts:
        """Return the error that a cell cannot be used; `why` follows the cell and its row."""
        what = f"{self.label} holds {shown(self.cell(row))}"
        return error(what, why, row=row, column=self.name, advice=advice)


# ------------------------------------------------------------------------------------------------
# Text as codes: the distinct texts of a column, and which of them each cell holds.
#
# Text is compared and judged once for each distinct value, never cell by cell in Python.


def factorise(cells: Array) -> tuple[Array, list[str]] | None:
    """Return the codes (N,) of text, -1 where missing, and the distinct texts, in any order.

    None of an array that holds other things, or nothing but missing cells.
    """
    import pandas as pd

    cells = cells.astype(object, copy=False)
    if pd.api.types.infer_dtype(cells, skipna=True) != "string":
        return None
    codes, texts = pd.factorize(cells)
    return codes, texts.tolist()


# ------------------------------------------------------------------------------------------------
# One column from the cells that hold it: of a series of any data frame, an array, or objects.
#
# Text and categories are judged by their distinct values; a cell of another type than text,
# number, boolean or missing is refused with its column and row.


_DAYS = "to days since a first date"


def from_series(series, name: Hashable) -> Column:
    """Return a column of a data frame, as narwhals shows it; called `name`."""
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind in "biufO":
        return from_array(native.to_numpy(), name)  # of pandas
    dtype = series.dtype
    if dtype.is_temporal():
        span = isinstance(dtype, nw.Duration | nw.Time)
        raise _unreadable(name, str(dtype), to="to a number of seconds" if span else _DAYS)
    if dtype.is_nested() or isinstance(dtype, nw.Binary):
        raise _unreadable(name, str(dtype))
    if isinstance(dtype, nw.Categorical | nw.Enum):
        levels = None  # a polars Categorical or pyarrow dictionary encodes, it does not declare
        pandas = series.implementation.is_pandas_like() and hasattr(native.dtype, "categories")
        if isinstance(dtype, nw.Enum) or pandas:
            declared = series.cat.get_categories().to_list()
            levels = canonical(declared, f"the dtype of column {name!r}") if declared else None
        return replace(_from_dictionary(series, name), nominal=True, levels=levels)
    if dtype.is_integer() and not isinstance(dtype, nw.Int128 | nw.UInt128):
        if not series.null_count():
            return from_array(series.to_numpy(), name)
        return column_of_floats(series.cast(nw.Float64).to_numpy(), name, exact=True)
    if dtype.is_float() or dtype.is_decimal():
        return column_of_floats(series.cast(nw.Float64).to_numpy(), name)
    if isinstance(dtype, nw.Unknown) and series.null_count() < len(series):  # pandas' sparse, ...
        values = np.asarray(series.to_numpy())
        if values.ndim == 1:  # an interval has two ends
            return from_array(values, name)
    if isinstance(dtype, nw.String):
        return _from_dictionary(series, name)
    return _from_cells(series.to_list(), name)


def _from_dictionary(series, name: Hashable) -> Column:
    """Return a column of text or categories, judged by its distinct values."""
    import pandas as pd
    import pyarrow

    try:
        cells = series.to_arrow()
        if pyarrow.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        codes, distinct = pd.arrays.ArrowExtensionArray(cells).factorize()
        missing = [None] if codes.min(initial=0) < 0 else []  # which the code -1 takes: the last
        column = _from_cells([*distinct.tolist(), *missing], name)
    except (TypeError, ValueError, pyarrow.ArrowException):
        return _from_cells(series.to_list(), name)  # which knows the row that is wrong
    if column.codes is None:
        return replace(column, values=column.values[codes])
    return replace(column, codes=column.codes[codes])


def _from_objects(values: Array, name: Hashable) -> Column:
    """Return a column of Python objects."""
    import pandas as pd

    if (texts := factorise(values)) is not None:
        return _of_texts(*texts, name)
    if pd.api.types.infer_dtype(values, skipna=True) in ("floating", "mixed-integer-float"):
        try:
            return column_of_floats(values.astype(np.float64), name)
        except TypeError:  # pandas.NA
            pass
    return _from_cells(values.tolist(), name)


def _of_texts(codes: Array, texts: list[str], name: Hashable) -> Column:
    distinct = np.array([str.__str__(text) for text in texts], dtype=object)
    return Column(name, "text", distinct, codes=codes)


def from_array(values: Array, name: Hashable) -> Column:
    """Return a column of an array of any dtype; called `name`."""
    match values.dtype.kind:
        case "b":
            return Column(name, "boolean", values)
        case "i" | "u":
            wide = values.dtype == np.uint64 and values.size > 0 and values.max() >= 2**63
            return Column(name, "integer", values.astype(np.uint64 if wide else np.int64))
        case "f":
            return column_of_floats(values, name)
        case "O" | "U" | "T":
            return _from_objects(values, name)
        case "c":
            raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers")
    raise _unreadable(name, str(values.dtype), to=_DAYS if values.dtype.kind == "M" else "")


def column_of_floats(values: Array, name: Hashable, exact: bool = False) -> Column:
    """Return a column of floats, NaN for missing; ValueError if a cell is infinite.

    With `exact`, of floats that were integers a moment ago, which float64 must tell apart.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    refuse_infinite(values[:, None], lambda: [name])
    if exact and (np.abs(values) >= EXACT).any():
        raise InputError(
            f"column {name!r} holds integers of 2**53 and beyond and missing cells: float64 cannot "
            "tell them apart",
            column=name,
            advice="turn the column into text",
        )
    return Column(name, "real", values)


def _from_cells(cells: list, name: Hashable) -> Column:
    """Return a column of Python objects, by the types that occur in it."""
    types = set(map(type, cells))
    missing = {t for t in types if t is type(None) or t.__name__ in ("NAType", "NaTType")}
    text = {t for t in types if issubclass(t, str)}
    boolean = types & {bool, np.bool}
    number = {t for t in types if issubclass(t, numbers.Real | Decimal)} - boolean
    number.discard(np.timedelta64)  # NumPy counts it among the integers
    if foreign := types - missing - text - boolean - number:
        row = next(i for i, cell in enumerate(cells) if type(cell) in foreign)
        raise _unreadable(name, f"{cells[row]!r} ({type(cells[row]).__name__})", row)
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
        raise InputTypeError(
            f"column {name!r} mixes text ({str(cells[i])!r}",
            f") and numbers ({cells[k]} in row {k})",
            row=i,
            column=name,
            advice="make it all text or all numbers",
        )
    if text:
        texts = factorise(np.array([c if type(c) in text else None for c in cells], dtype=object))
        assert texts is not None
        return _of_texts(*texts, name)
    try:
        if missing or fractional or not types:
            floats = [np.nan if type(cell) in missing else float(cell) for cell in cells]
            column = column_of_floats(np.array(floats), name, exact=not fractional)
            return column if number else replace(column, kind="boolean" if boolean else "empty")
        values = np.array(cells, dtype=None if number else bool)
    except OverflowError:
        values = np.array(cells, dtype=object)
    if values.dtype.kind not in "biu":
        raise ValueError(f"column {name!r} holds integers beyond 64 bits; turn it into text")
    return from_array(values, name)


def _unreadable(name: Hashable, what: str, row: int | None = None, to: str = "") -> InputTypeError:
    convert = f"convert the column, as {to}," if to else "convert the column"
    return InputTypeError(
        f"column {name!r} holds {what}",
        ": argument must be a string, a number, a boolean or missing",
        row=row,
        column=name,
        advice=f"{convert} or leave it out",
    )


# ------------------------------------------------------------------------------------------------
# Categories of one column: which are declared, their codes 0 .. K-1 and back, and those of two.
#
# All are of one type: text and numbers do not mix, neither within a column nor between learning
# and encoding.


def canonical(values: Iterable, where: str) -> Values:
    """Return declared values as Python scalars of one type; errors begin with `where`."""
    scalars: list = []
    for value in values:
        if isinstance(value, str):
            scalars.append(str.__str__(value))
        elif isinstance(value, bool | np.bool):
            scalars.append(bool(value))
        elif isinstance(value, int | np.integer) and -(2**63) <= value < 2**64:
            scalars.append(int(value))
        elif isinstance(value, numbers.Real | Decimal) and np.isfinite(float(value)):
            scalars.append(float(value))
        else:
            raise TypeError(
                f"{where}: {value!r} ({type(value).__name__}) cannot be a category; "
                "give strings, as column.astype(str), finite numbers or booleans"
            )
    if not scalars:
        raise ValueError(f"{where}: there must be at least one category, got none")
    if len({isinstance(value, str) for value in scalars}) == 2:
        raise TypeError(f"{where}: text and numbers are mixed; make them all of one kind")
    if len(set(scalars)) < len(scalars):
        twice = next(value for k, value in enumerate(scalars) if value in scalars[:k])
        raise ValueError(f"{where}: {twice!r} is given twice; give each category once")
    return of_one_type(scalars, scalars)


def of_one_type(values: Iterable, among: Iterable) -> Values:
    """Return numbers as the narrowest of bool, int and float that holds `among`; text as it is."""
    among = list(among)
    if any(isinstance(v, str) for v in among) or all(isinstance(v, bool) for v in among):
        return tuple(values)
    if all(isinstance(v, int) or (v == int(v) and abs(v) < EXACT) for v in among):
        return tuple(int(v) for v in values)
    return tuple(float(v) for v in values)


def is_text(values: Values) -> bool:
    """Tell whether these categories are strings; False if there are none."""
    return bool(values) and isinstance(values[0], str)


def form(values: Values) -> str:
    """Return what errors call categories of this type."""
    return "text" if is_text(values) else "numbers"


def decode(codes: Array, values: Values, label: str) -> Array:
    """Return the values (N,) of codes, of the narrowest dtype; None or NaN where one is NaN.

    ValueError if a code is not NaN or one of 0 .. K-1.
    """
    missing = np.isnan(codes) if values else np.ones(len(codes), dtype=bool)
    k = np.where(missing, len(values), codes)
    bad = ~missing & ~((k >= 0) & (k < len(values)) & (k == np.trunc(k)))
    if bad.any():
        row = int(np.argmax(bad))
        why = f" is no category; codes are 0 .. {len(values) - 1}, or NaN for a missing cell"
        raise InputError(f"{label}: code {codes[row]:g}", why, row=row)
    if is_text(values):
        return np.array([*values, None], dtype=object)[k.astype(np.intp)]
    if missing.any() or not values:
        return np.array([*values, np.nan], dtype=np.float64)[k.astype(np.intp)]
    return np.array(values)[k.astype(np.intp)]


def merge(a: Values, b: Values, label: str) -> tuple[Values, Array, Array]:
    """Return the categories of both, and the codes among them of those of each.

    They are sorted, unless the order of one holds that of the other. TypeError for text and
    numbers.
    """
    if a and b and is_text(a) != is_text(b):
        raise TypeError(
            f"the categories of {label} are {form(a)} on one side and {form(b)} on the other; "
            "convert one of them"
        )
    merged = a if _within(b, a) else b if _within(a, b) else sorted({*a, *b})
    values = of_one_type(merged, a + b)
    code = {value: k for k, value in enumerate(values)}
    mine, theirs = (np.array([code[value] for value in each], dtype=np.intp) for each in (a, b))
    return values, mine, theirs


def _within(short: Values, long: Values) -> bool:
    """Tell whether `short` is `long` with values left out, in the same order."""
    remaining = iter(long)
    return all(value in remaining for value in short)
