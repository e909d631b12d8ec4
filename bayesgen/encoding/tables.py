r"""Tables: whatever users keep their rows in, read one column at a time.

`read` takes a NumPy array of any dtype, nested lists, a SciPy sparse matrix, any data frame that
narwhals takes (pandas, polars, pyarrow, ...) or a 2-D xarray DataArray. None, NaN, pandas.NA, NaT,
null and a masked cell are missing; infinity, dates and cells of other types are refused with the
column and the row::

    >>> table = read([["Biscoe", 39.1, True], ["Dream", None, False]])
    >>> [table.column(j).kind for j in range(table.n_columns)]
    ['text', 'real', 'boolean']
    >>> table.column(1).values
    array([39.1,  nan])
"""

import difflib
import numbers
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from bayesgen.encoding.column import EXACT, Column, canonical
from bayesgen.encoding.factorised import MANY, Factorised, of_arrow, of_objects, of_strings
from bayesgen.encoding.literals import parse_number, shown
from bayesgen.numerics.rows import Matrix, cell_of
from bayesgen.numerics.special import Array

_MOST_NAMED = 100  # columns in an error
_WIDE = 1000  # columns of a frame whose cells are copied rather than taken one series at a time

# ----------------------------------------------------------------------------------- reading


class Columns(Protocol):
    """A table whose columns are read one at a time."""

    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    numbers: Array | None

    def column(self, j: int, /) -> Column:
        """Column j."""


def is_table(X: Any) -> bool:
    """Whether X is a data frame: pandas, polars, pyarrow or another that narwhals takes."""
    return isinstance(_narwhals(X), nw.DataFrame)


def n_rows(X: Any) -> int:
    """Number of rows of anything that `read` takes."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def feature_names(X: Any) -> list[str] | None:
    """Names of the columns, or None if they have none, or if none of them is a string.

    Raises
    ------
    TypeError
        If some names are strings and others are not.
    ValueError
        If a name occurs twice.
    """
    frame = _narwhals(X)
    if isinstance(frame, nw.DataFrame):
        names = list(frame.columns)
    elif _is_xarray(X) and X.ndim == 2 and X.dims[1] in X.coords:
        names = X.coords[X.dims[1]].values.tolist()
    else:
        return None
    text = [isinstance(name, str) for name in names]
    if not any(text):
        return None
    if not all(text):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but one of "
            f"X is {names[text.index(False)]!r}; rename, as in df.columns.astype(str)"
        )
    if len(set(names)) < len(names):
        raise _repeated(names)
    return [str(name) for name in names]


def refuse_text(X: Any, estimator: str) -> None:
    """Raise ValueError at the first cell that is no number, for an estimator that takes numbers."""
    table = Table(X)
    for j in range(table.n_columns):
        column = table.column(j)
        if column.codes is None:
            continue
        wrong = np.array([*(parse_number(text) is None for text in column.values), False])
        if wrong.any():
            row = int(np.argmax(wrong[column.codes]))
            raise ValueError(
                f"{column.label} holds {shown(column.cell(row))} in row {row}, and {estimator} "
                "takes numbers (could not convert string to float): MixedNB takes columns of "
                "several kinds, CategoricalNB categories alone; or leave the column out"
            ) from None


def _repeated(names: list[Any]) -> ValueError:
    twice = next(name for name, n in Counter(names).items() if n > 1)
    return ValueError(f"X has more than one column {twice!r}; rename or drop one")


def read(X: Any) -> "Table | Matrix":
    """X as a `Table`, or as a canonical CSR matrix of finite numbers and NaN if it is sparse."""
    if not sparse.issparse(X):
        return Table(X)
    _refuse_shape(X.shape)
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X is a sparse matrix of complex numbers")
    with np.errstate(invalid="ignore"):
        size = np.abs(X.data)
    if X.dtype.kind == "f" and np.isinf(size).any():
        at = int(np.argmax(np.isinf(size)))
        row, j = cell_of(X, at)
        raise _infinite(f"column {j}", X.data[at], row)
    if X.dtype.kind in "iu" and X.nnz and size.max() >= EXACT:
        raise ValueError("sparse X holds integers of 2**53 and beyond; pass X.toarray()")
    return X


class Table:
    """The columns of a dense table, read one at a time: nothing is converted before `column`.

    Attributes
    ----------
    names : tuple of str, or None if the columns have no names, or integers for names
    n_rows, n_columns : int

    Raises
    ------
    TypeError
        If X is sparse, lazy, or not a table.
    ValueError
        If X is not two-dimensional, has no columns, or repeats a name.
    """

    def __init__(self, X: Any) -> None:
        if sparse.issparse(X):
            raise TypeError("sparse X is not supported here; pass X.toarray() or a data frame")
        frame, names = _narwhals(X), feature_names(X)
        self.names = None if names is None else tuple(names)
        self.numbered: list[Any] | None = None  # a data frame's names if they are not strings
        self._columns: Any = frame
        if isinstance(frame, nw.DataFrame):
            shape = frame.shape
            self.numbered = list(frame.columns) if names is None else None
        else:
            self._columns = _matrix(X)
            shape = self._columns.shape
        _refuse_shape(shape)
        self.n_rows, self.n_columns = shape
        self._texts: dict[int, Column] = {}  # what takes longest to read, and is small when it is

    @property
    def numbers(self) -> Array | None:
        """All cells in one array of numbers or booleans, if that is how they were given."""
        cells = self._columns
        return cells if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf" else None

    def label(self, j: int) -> str:
        """What errors call column j."""
        return f"column {j if self.names is None else self.names[j]!r}"

    def column(self, j: int, /) -> Column:
        """Column j; TypeError or ValueError if a cell cannot be read."""
        if j in self._texts:
            return self._texts[j]
        if isinstance(self._columns, nw.DataFrame):
            self._columns = _columns_of(self._columns)
        if isinstance(self._columns, np.ndarray):
            column = _from_array(self._columns[:, j], self.label(j))
        else:
            own = self._columns[j]
            read = _from_array if isinstance(own, np.ndarray) else _from_series
            column = read(own, self.label(j))
        if column.codes is not None:
            self._texts[j] = column
        return column


def as_table(X: Any) -> Table:
    """X as a `Table`, if it is none."""
    return X if isinstance(X, Table) else Table(X)


def _narwhals(X: Any) -> Any:
    if isinstance(X, np.ndarray) or sparse.issparse(X):  # which narwhals passes through, slowly
        return X
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError:
        raise _repeated(list(getattr(X, "column_names", X.columns))) from None
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is lazy ({type(X).__module__}); collect or compute it first")
    return frame


def _is_xarray(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("dims", "coords", "values", "ndim"))


def _refuse_shape(shape: tuple[int, ...]) -> None:
    """Raise ValueError, close to scikit-learn's words, unless there are rows and columns."""
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
        )
    if shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )


def _infinite(label: str, value: Any, row: int) -> ValueError:
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


def _matrix(X: Any) -> Array:
    """X as an array that keeps the type of every cell."""
    if isinstance(X, np.ma.MaskedArray):
        cells: Any = X.data.astype(object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
    try:
        out = np.asarray(X.values if _is_xarray(X) else X)
    except ValueError:
        raise ValueError("X is not a table: its rows differ in length") from None
    if out.dtype.kind == "U" and not hasattr(X, "dtype"):
        return np.array(X, dtype=object)  # of nested lists: NumPy has just turned 1 into "1"
    return out


def _columns_of(frame: Any) -> list[Any]:
    """Columns of a data frame, as arrays if pandas would take longer to make each a series."""
    if frame.implementation.is_pandas() and frame.shape[1] >= _WIDE:
        own = frame.to_native()
        dtypes = set(own.dtypes)
        if (
            len(dtypes) == 1
            and isinstance(dtype := dtypes.pop(), np.dtype)
            and dtype.kind in "biuf"
        ):
            return list(own.to_numpy().T)
    return list(frame.iter_columns())


def _from_series(series: Any, label: str) -> Column:
    own = series.to_native()
    if isinstance(getattr(own, "dtype", None), np.dtype) and own.dtype.kind in "biufO":
        return _from_array(own.to_numpy(), label)  # of pandas
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
            return _from_array(series.to_numpy(), label)
        return column_of_floats(series.cast(nw.Float64).to_numpy(), label, exact=True)
    if dtype.is_float() or dtype.is_decimal():
        return column_of_floats(series.cast(nw.Float64).to_numpy(), label)
    if isinstance(dtype, nw.Unknown) and series.null_count() < len(series):  # pandas' sparse, ...
        return _from_array(np.asarray(series.to_numpy()), label)
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


def _from_array(values: Array, label: str) -> Column:
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
        raise _infinite(label, values[row], row)
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
    return _from_array(values, label)


# ------------------------------------------------------------------ columns and cells by name


def places_of(names: tuple[str, ...] | None) -> dict[str, int] | None:
    """Positions of columns by name, for `find_column`."""
    return None if names is None else {name: j for j, name in enumerate(names)}


def find_column(key: Any, places: dict[str, int] | None, n_columns: int, where: str) -> int:
    """Position of the column that a user calls `key`, a name or a position."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < n_columns:
        return int(key)
    if places is None:
        raise ValueError(f"{where}: no column {key!r}; columns are 0 .. {n_columns - 1}")
    if key in places:
        return places[key]
    raise ValueError(f"{where}: no column {key!r}{did_you_mean(key, places)}")


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """End of an error about an unknown word: the nearest known one, and all if they are few."""
    known = list(known)
    near = difflib.get_close_matches(str(word), known, n=1)
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    hint = f", did you mean {near[0]!r}" if near else ""
    return f"{hint}; known are {', '.join(known[:_MOST_NAMED])}{more}"


def refuse_no_rows(n_rows: int, n_columns: int) -> None:
    """Raise ValueError, in scikit-learn's words, if there is nothing to learn from."""
    if n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=({n_rows}, {n_columns})) while a minimum of 1 "
            "is required."
        )


def common_names(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Names that two tables agree in; where one has none, those of the other."""
    if a is None or b is None or a == b:
        return b if a is None else a
    j, (mine, theirs) = next((j, p) for j, p in enumerate(zip(a, b, strict=True)) if p[0] != p[1])
    raise ValueError(
        f"column {j} is {mine!r} on one side and {theirs!r} on the other; "
        "give both the same columns in the same order"
    )
