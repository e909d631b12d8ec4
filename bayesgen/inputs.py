r"""From what users have to what families take: reading tables, columns of several kinds.

`read` takes a NumPy array of any dtype, nested lists, a SciPy sparse matrix, any data frame that
narwhals takes (pandas, polars, pyarrow, ...) or a 2-D xarray DataArray. None, NaN, pandas.NA, NaT,
null and a masked cell are missing; infinity, dates and cells of other types are refused with the
column and the row. `TableSchema` decides which columns are of which kind, and codes them::

    >>> X = [["Biscoe", 39.1, True], ["Dream", None, False]]
    >>> schema = TableSchema.learn(X)
    >>> schema.kinds
    ('categorical', 'gaussian', 'bernoulli')
    >>> schema.encode(X)
    array([[ 0. , 39.1,  1. ],
           [ 1. ,  nan,  0. ]])
"""

import json
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from bayesgen.categories import (
    EXACT,
    Categories,
    Column,
    canonical,
    cell_of,
    common_names,
    did_you_mean,
    find_column,
    refuse_no_rows,
)
from bayesgen.numerics import Array, Matrix

KINDS = ("bernoulli", "categorical", "multinomial", "poisson", "gaussian")

# ----------------------------------------------------------------------------------- reading


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


def _repeated(names: list[Any]) -> ValueError:
    twice = next(name for j, name in enumerate(names) if name in names[:j])
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
        self._columns: Any
        if isinstance(frame, nw.DataFrame):
            self._columns, shape = list(frame.iter_columns()), frame.shape
            self.numbered = list(frame.columns) if names is None else None
        else:
            self._columns = _matrix(X)
            shape = self._columns.shape
        _refuse_shape(shape)
        self.n_rows, self.n_columns = shape

    def label(self, j: int) -> str:
        """What errors call column j."""
        return f"column {j if self.names is None else self.names[j]!r}"

    def column(self, j: int, /) -> Column:
        """Column j; TypeError or ValueError if a cell cannot be read."""
        if isinstance(self._columns, np.ndarray):
            return _from_array(self._columns[:, j], self.label(j))
        return _from_series(self._columns[j], self.label(j))


def _narwhals(X: Any) -> Any:
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError:
        raise _repeated(list(X.columns)) from None
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


def _unreadable(label: str, what: str, row: int | None = None) -> TypeError:
    place = "" if row is None else f" in row {row}"
    return TypeError(
        f"{label} holds {what}{place}: argument must be a string, a number, a boolean or missing; "
        "convert the column or leave it out"
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


def _from_series(series: Any, label: str) -> Column:
    dtype = series.dtype
    if dtype.is_temporal() or dtype.is_nested() or isinstance(dtype, nw.Binary):
        raise _unreadable(label, str(dtype))
    if isinstance(dtype, nw.Categorical | nw.Enum):
        levels = None  # a polars Categorical or pyarrow dictionary encodes, it does not declare
        if isinstance(dtype, nw.Enum) or series.implementation.is_pandas_like():
            found = series.cat.get_categories().to_list()
            levels = canonical(found, f"the dtype of {label}") if found else None
        return replace(_from_cells(series.to_list(), label), nominal=True, levels=levels)
    if dtype.is_integer() and not isinstance(dtype, nw.Int128 | nw.UInt128):
        if not series.null_count():
            return _from_array(series.to_numpy(), label)
        return _from_floats(series.cast(nw.Float64).to_numpy(), label, exact=True)
    if dtype.is_float() or dtype.is_decimal():
        return _from_floats(series.cast(nw.Float64).to_numpy(), label)
    if isinstance(dtype, nw.Unknown) and series.null_count() < len(series):  # pandas' sparse, ...
        return _from_array(np.asarray(series.to_numpy()), label)
    return _from_cells(series.to_list(), label)


def _from_array(values: Array, label: str) -> Column:
    match values.dtype.kind:
        case "b":
            return Column(label, "boolean", values)
        case "i" | "u":
            wide = values.dtype == np.uint64 and values.size > 0 and values.max() >= 2**63
            return Column(label, "integer", values.astype(np.uint64 if wide else np.int64))
        case "f":
            return _from_floats(values, label)
        case "O" | "U" | "T":
            return _from_cells(values.tolist(), label)
        case "c":
            raise ValueError(f"Complex data not supported: {label} holds complex numbers")
    raise _unreadable(label, str(values.dtype))


def _from_floats(values: Array, label: str, exact: bool = False) -> Column:
    """A column of floats; with `exact`, of floats that were integers a moment ago."""
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
    if all(cell != cell for cell in cells if type(cell) in fractional):  # NaN alone
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
        return Column(label, "text", np.fromiter(cells, dtype=object, count=len(cells)))
    try:
        if missing or fractional or not types:
            floats = [np.nan if type(cell) in missing else float(cell) for cell in cells]
            column = _from_floats(np.array(floats), label, exact=not fractional)
            return column if number else replace(column, kind="boolean" if boolean else "empty")
        values = np.array(cells, dtype=None if number else bool)
    except OverflowError:
        values = np.array(cells, dtype=object)
    if values.dtype.kind not in "biu":
        raise ValueError(f"{label} holds integers beyond 64 bits; turn it into text")
    return _from_array(values, label)


# ------------------------------------------------------------------------------------ schema


@dataclass(frozen=True)
class TableSchema:
    """Which columns a model of several kinds uses, and the categories of the categorical ones.

    Parameters
    ----------
    names : tuple of str, or None
        Names of the D columns in use, None if the table had none.
    kinds : tuple of str
        (D,) one of `KINDS` a column.
    positions : tuple of int
        (D,) where the columns stood in the table.
    n_columns : int
        Columns of the table, those left out included.
    dropped : tuple of str
        Names of the columns left out.
    categories : Categories
        Of the categorical columns, in order.
    """

    names: tuple[str, ...] | None
    kinds: tuple[str, ...]
    positions: tuple[int, ...]
    n_columns: int
    dropped: tuple[str, ...]
    categories: Categories

    @classmethod
    def learn(cls, X: Any, columns: Any = None, categories: Any = None) -> Self:
        """Decide the kind of every column and learn the categories.

        Parameters
        ----------
        X : table
        columns : mapping {kind or "drop": list of names or positions}, or None
            None: booleans are bernoulli; text and categorical dtypes are categorical; other
            numbers are gaussian. If given, every column must be named once.
        categories : mapping {name or position: categories or K}, or None
            Declared categories, as in `Categories.learn`.

        Raises
        ------
        ValueError, TypeError
            If a column or a kind is unknown, or a column is named twice or not at all; or if a
            column in use cannot be read.
        """
        table = Table(X)
        refuse_no_rows(table.n_rows, table.n_columns)
        kinds = _inferred(table) if columns is None else _chosen(columns, table)
        used = tuple(j for j, kind in enumerate(kinds) if kind != "drop")
        if not used:
            raise ValueError("columns: every column is dropped; keep at least one")
        names = table.names
        out = cls(
            names=None if names is None else tuple(names[j] for j in used),
            kinds=tuple(kinds[j] for j in used),
            positions=used,
            n_columns=table.n_columns,
            dropped=tuple(names[j] for j in range(len(kinds)) if j not in used) if names else (),
            categories=Categories(()),
        )
        return out._learn_categories(table, categories)

    def relearn(self, X: Any, categories: Any = None) -> Self:
        """The same columns and kinds with the categories of X, a further batch, for `merge`."""
        return self._learn_categories(Table(X), categories)

    @property
    def blocks(self) -> dict[str, Array]:
        """{kind: positions in `encode`'s matrix} of the kinds that occur, in the order of KINDS."""
        found = {kind: np.flatnonzero([k == kind for k in self.kinds]) for kind in KINDS}
        return {kind: block for kind, block in found.items() if len(block)}

    def encode(self, X: Any) -> Array:
        """(N, D) float64: codes, 0/1 and numbers, NaN for missing cells, -1 for unseen categories.

        Columns are selected by name if both X and the schema have names, else by position.

        Raises
        ------
        ValueError, TypeError
            If X lacks a column or has one too many; or if a cell does not fit its column's kind.
        """
        table = Table(X)
        where = self._locate(table)
        out = np.empty((table.n_rows, len(where)))
        nominal = 0
        for k, (j, kind) in enumerate(zip(where, self.kinds, strict=True)):
            column = table.column(j)
            if kind == "categorical":
                out[:, k] = self.categories.encode_column(column, nominal)
                nominal += 1
            else:
                out[:, k] = _numbers(column, kind)
        return out

    def refuse_unseen(self, X: Any) -> None:
        """Raise ValueError at the first value that is not among the categories of its column."""
        self.categories.refuse_unseen(self._nominal(Table(X)))

    def decode(self, rows: Array) -> list[Array]:
        """The D columns of `encode`'s matrix as values: categories, booleans, numbers."""
        out, nominal = [], 0
        for values, kind in zip(np.asarray(rows, dtype=np.float64).T, self.kinds, strict=True):
            if kind == "categorical":
                out.append(self.categories.decode_column(values, nominal))
                nominal += 1
            else:
                as_bool = kind == "bernoulli" and not np.isnan(values).any()
                out.append(values.astype(bool) if as_bool else values.copy())
        return out

    def merge(self, other: Self) -> tuple[Self, tuple[Array, ...], tuple[Array, ...]]:
        """The schema of both, and maps of the categorical columns' codes as in `Categories.merge`.

        Raises
        ------
        ValueError, TypeError
            If the columns in use differ in number, name or kind.
        """
        if len(self.kinds) != len(other.kinds):
            raise ValueError(
                f"one side uses {len(self.kinds)} columns and the other {len(other.kinds)}; "
                "merge models of the same columns"
            )
        names = common_names(self.names, other.names)
        labels = [
            f"column {j if names is None else names[k]!r}" for k, j in enumerate(self.positions)
        ]
        for j, (mine, theirs) in enumerate(zip(self.kinds, other.kinds, strict=True)):
            if mine != theirs:
                raise ValueError(
                    f"{labels[j]} is {mine} on one side and {theirs} on the other; "
                    "give columns= the same kinds"
                )
        nominal = [labels[j] for j in self.blocks.get("categorical", ())]
        categories, maps_self, maps_other = self.categories.merge(other.categories, nominal)
        return replace(self, names=names, categories=categories), maps_self, maps_other

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(record | {"categories": json.loads(self.categories.to_json())})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`; ValueError if `text` is something else."""
        try:
            record = json.loads(text)
            fields: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in record.items()
            }
            fields["categories"] = Categories.from_json(json.dumps(record["categories"]))
            return cls(**fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a record of a table's schema: {error!r}") from None

    def _learn_categories(self, table: Table, declared: Any) -> Self:
        if declared is not None and not isinstance(declared, Mapping):
            raise TypeError(f"categories must be a dict {{column: categories}}, not {declared!r}")
        part = self._nominal(table)
        entries: dict[Any, Any] = {}
        for key, entry in (declared or {}).items():
            j = find_column(key, table.names, table.n_columns, "categories")
            if j not in part.positions:
                raise ValueError(
                    f"categories: {table.label(j)} is not categorical; name it so in columns="
                )
            entries[part.positions.index(j)] = entry
        found = Categories.learn(part, entries) if part.positions else Categories(())
        return replace(self, categories=found)

    def _nominal(self, table: Table) -> "_Part":
        """The categorical columns."""
        where = zip(self._locate(table), self.kinds, strict=True)
        return _Part(table, [j for j, kind in where if kind == "categorical"])

    def _locate(self, table: Table) -> list[int]:
        """Where the columns in use stand in a table."""
        if self.names is None or table.names is None:
            if table.n_columns != self.n_columns:
                raise ValueError(
                    f"X has {table.n_columns} features, but {self.n_columns} are expected; "
                    "give the columns of the training data"
                )
            return list(self.positions)
        at = {name: j for j, name in enumerate(table.names)}
        if lost := [name for name in self.names if name not in at]:
            raise ValueError(
                f"X lacks the columns {', '.join(map(repr, lost))}; "
                "add them, with missing cells if they are not known"
            )
        known = {*self.names, *self.dropped}
        if extra := [name for name in table.names if name not in known]:
            raise ValueError(
                f"X has columns that were not there in training: {', '.join(map(repr, extra))}; "
                "drop them"
            )
        return [at[name] for name in self.names]


class _Part:
    """Some columns of a table."""

    def __init__(self, table: Table, positions: list[int]) -> None:
        self.table, self.positions = table, positions
        names = table.names
        self.names = None if names is None else tuple(names[j] for j in positions)
        self.n_rows, self.n_columns = table.n_rows, len(positions)

    def column(self, j: int, /) -> Column:
        return self.table.column(self.positions[j])


def _inferred(table: Table) -> list[str]:
    """The kind of every column by what it holds."""
    out = []
    for j in range(table.n_columns):
        column = table.column(j)
        if column.kind == "empty" and not column.nominal:
            raise ValueError(
                f"{column.label} holds nothing but missing cells, so its kind is not known; "
                "name it in columns=, or leave it out"
            )
        nominal = column.nominal or column.kind == "text"
        numeric = "bernoulli" if column.kind == "boolean" else "gaussian"
        out.append("categorical" if nominal else numeric)
    return out


def _chosen(columns: Any, table: Table) -> list[str]:
    """The kind of every column by the user's word, "drop" for those left out."""
    if not isinstance(columns, Mapping):
        raise TypeError(
            f"columns must be a dict {{kind: list of columns}} or None, not {columns!r}; kinds are "
            f"{', '.join(KINDS)} and drop"
        )
    if table.numbered is not None and table.numbered != list(range(table.n_columns)):
        raise ValueError(
            f"the columns of X are called {', '.join(map(str, table.numbered[:10]))}: a number in "
            "columns= could be a name or a position; rename them, as in df.columns.astype(str)"
        )
    out: dict[int, str] = {}
    for kind, keys in columns.items():
        if kind not in (*KINDS, "drop"):
            raise ValueError(f"columns: no kind {kind!r}{did_you_mean(kind, (*KINDS, 'drop'))}")
        single = isinstance(keys, str | numbers.Integral) or not isinstance(keys, Iterable)
        for key in [keys] if single else keys:
            j = find_column(key, table.names, table.n_columns, f"columns[{kind!r}]")
            if j in out:
                raise ValueError(
                    f"columns: {table.label(j)} is named twice, as {out[j]} and as {kind}; "
                    "name it once"
                )
            out[j] = kind
    if forgotten := [table.label(j) for j in range(table.n_columns) if j not in out]:
        raise ValueError(
            f"columns names no kind for {', '.join(forgotten)}; add each to a kind, or to "
            '"drop": [...] to leave it out'
        )
    return [out[j] for j in range(table.n_columns)]


def _numbers(column: Column, kind: str) -> Array:
    """(N,) float64 of a column that is not categorical, or an error with value and row."""
    if column.kind == "text":
        values = np.array([_parse(v, i, column.label, kind) for i, v in enumerate(column.values)])
        values = _from_floats(values, column.label).values
    else:
        values = column.values.astype(np.float64)
    if kind == "bernoulli":
        bad, need = ~((values == 0) | (values == 1) | np.isnan(values)), "must be 0, 1 or missing"
    elif kind in ("poisson", "multinomial"):
        bad, need = values < 0, "must not be negative"
    else:
        return values
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{column.label} holds {values[row]:g} in row {row}, but a {kind} column {need}; "
            "correct it or choose another kind in columns="
        )
    return values


def _parse(cell: Any, row: int, label: str, kind: str) -> float:
    """A number written as text, as in NumPy arrays of strings."""
    try:
        return float(cell) if isinstance(cell, str) else np.nan
    except ValueError:
        raise ValueError(
            f"{label} holds {str(cell)!r} in row {row}, but a {kind} column must hold numbers; "
            "correct it or choose another kind in columns="
        ) from None
