r"""Tables: whatever users keep their rows in, read one column at a time.

`Table` takes a NumPy array of any dtype, nested lists, any data frame that narwhals takes (pandas,
polars, pyarrow, ...) or a 2-D xarray DataArray. None, NaN, pandas.NA, NaT, null and a masked cell
are missing; infinity, dates and cells of other types are refused with the column and the row::

    >>> table = Table([["Biscoe", 39.1, True], ["Dream", None, False]])
    >>> [table.column(j).kind for j in range(table.n_columns)]
    ['text', 'real', 'boolean']
    >>> table.column(1).values
    array([39.1,  nan])
"""

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from bayesgen.encoding.column import Column, from_array, from_series
from bayesgen.encoding.literals import did_you_mean, shortened
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Rows and labels that NumPy cannot read as they are: lazy frames, arrays on a device, records.


def refuse_elsewhere(X, name: str = "X") -> None:
    """Raise TypeError, with what to do, unless X is in memory; ValueError for records."""
    if isinstance(X, np.ndarray | list | tuple):
        structured = isinstance(X, np.ndarray) and X.dtype.names is not None
        some = not isinstance(X, np.ndarray) or (X.ndim == 1 and X.dtype.kind == "O")
        if structured or (some and len(X) and isinstance(X[0], Mapping)):
            what = "a structured array" if structured else "dictionaries"
            raise ValueError(f"{name} holds records ({what}): give pandas.DataFrame({name})")
        return
    what = f"{name} is a {type(X).__name__} of {type(X).__module__.partition('.')[0]}"
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # SciPy's dictionary of keys has one
        rows = (
            f"{name}.to_dataframe()" if hasattr(X, "to_dataframe") else f"pandas.DataFrame({name})"
        )
        raise TypeError(f"{what}, variables by name: give {rows}")
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise TypeError(
            f"{what}, a query that has not been run: give {name}.collect(), or fit files too large "
            "for memory by fit_stream"
        )
    if not (hasattr(X, "__array_namespace__") or hasattr(X, "__dlpack__")):
        return
    try:
        readable = np.asarray(X).dtype.kind != "O" or hasattr(X, "__array__")  # or it is text
        why = "it has no __array__"
    except (TypeError, RuntimeError, ValueError, BufferError) as error:
        readable, why = False, str(error).rstrip(".")
    if not readable:
        raise TypeError(
            f"{what} that NumPy cannot read ({why}): classifiers compute with NumPy on the CPU; "
            f"give {name}.detach().cpu().numpy() (PyTorch), {name}.get() (CuPy) or "
            f"numpy.from_dlpack({name})"
        ) from None


# ------------------------------------------------------------------------------------------------
# Columns by name: found, compared between two tables, and proposed where a name is unknown.


def places_of(names: tuple[str, ...] | None) -> dict[str, int] | None:
    """Return positions of columns by name, for `find_column`."""
    return None if names is None else {name: j for j, name in enumerate(names)}


def find_column(key, places: dict[str, int] | None, n_columns: int, where: str) -> int:
    """Return the position of the column that a user calls `key`, a name or a position."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < n_columns:
        return int(key)
    if places is None:
        raise ValueError(f"{where}: no column {key!r}; columns are 0 .. {n_columns - 1}")
    if key in places:
        return places[key]
    raise ValueError(f"{where}: no column {key!r}{did_you_mean(key, places)}")


def refuse_other_order(argument: str, values, *labels: list) -> None:
    """Raise ValueError if a Series, frame or DataArray has the right labels in another order.

    It is read by position. `labels` are those of the last axes, [] where there are none.
    """
    for names, expected in zip(reversed(_labels_of(values)), reversed(labels), strict=False):
        if names != expected and set(names) == set(expected):
            raise ValueError(
                f"{argument} is labelled {shortened(str(names))}, and is read by position, in the "
                f"order {shortened(str(expected))}: bring it into that order"
            )


def _labels_of(values) -> list[list]:
    """Return the labels of each axis, [] where it has none."""
    if hasattr(values, "coords"):
        of = {d: values.coords[d].values.tolist() for d in values.dims if d in values.coords}
        return [of.get(d, []) for d in values.dims]
    axes: list = [getattr(values, name, None) for name in ("index", "columns")]
    axes = axes[: getattr(values, "ndim", 0)]
    return [a.tolist() if getattr(a, "nlevels", 0) == 1 else [] for a in axes]


def is_table(X) -> bool:
    """Tell whether X is a data frame: pandas, polars, pyarrow or another that narwhals takes."""
    return isinstance(_narwhals(X), nw.DataFrame)


def n_rows(X) -> int:
    """Return the number of rows of anything that `Table` takes."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def feature_names(X) -> list[str] | None:
    """Return names of the columns, or None if they have none, or if none of them is a string.

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


def _repeated(names: list) -> ValueError:
    twice = next(name for name, n in Counter(names).items() if n > 1)
    return ValueError(f"X has more than one column {twice!r}; rename or drop one")


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

    def __init__(self, X) -> None:
        if sparse.issparse(X):
            raise TypeError("sparse X is not supported here; pass X.toarray() or a data frame")
        frame, names = _narwhals(X), feature_names(X)
        self.names = None if names is None else tuple(names)
        self.numbered: list | None = None  # a data frame's names if they are not strings
        if isinstance(frame, nw.DataFrame):
            self.numbered = list(frame.columns) if names is None else None
            self._columns: Any = _cells_of_frame(frame)
        else:
            self._columns = _matrix(X)
        shape = self._columns.shape
        _refuse_shape(shape)
        self.n_rows, self.n_columns = shape
        self.occurring: dict[int, Array | None] = {}  # codes, as a schema has looked for them
        self._texts: dict[int, Column] = {}  # what takes longest to read, and is small when it is

    @property
    def numbers(self) -> Array | None:
        """Return all cells in one array of numbers or booleans, if that is how they were given."""
        cells = self._columns
        return cells if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf" else None

    def as_numbers(self, estimator: str) -> Array:
        """Return all cells (N, D) as numbers, NaN for missing ones; text that stands for a number.

        InputError at the first cell that is no number, for an estimator that takes numbers.
        """
        if self.numbers is not None:
            return self.numbers
        frame = self._columns
        native: Any = frame.to_native() if isinstance(frame, nw.DataFrame) else None
        if hasattr(native, "iloc") and all(dtype.kind in "biuf" for dtype in native.dtypes):
            return native.to_numpy(np.float64, na_value=np.nan)  # pandas takes series slowly
        cells = np.empty((self.n_rows, self.n_columns))
        for j in range(self.n_columns):
            cells[:, j] = self.column(j).numbers(
                f", and {estimator} takes numbers (could not convert string to float)",
                "MixedNB takes columns of several kinds, CategoricalNB categories alone; or leave "
                "the column out",
            )
        return cells

    def name(self, j: int):
        """Return the name of column j; j, where columns have no names."""
        return j if self.names is None else self.names[j]

    def column(self, j: int, /) -> Column:
        """Return column j; TypeError or ValueError if a cell cannot be read."""
        if j in self._texts:
            return self._texts[j]
        if isinstance(self._columns, nw.DataFrame):
            self._columns = list(self._columns.iter_columns())
        if isinstance(self._columns, np.ndarray):
            column = from_array(self._columns[:, j], self.name(j))
        else:
            column = from_series(self._columns[j], self.name(j))
        if column.codes is not None:
            self._texts[j] = column
        return column


def as_table(X) -> Table:
    """Return X as a `Table`, if it is none."""
    return X if isinstance(X, Table) else Table(X)


def _narwhals(X):
    if isinstance(X, np.ndarray) or sparse.issparse(X):  # which narwhals passes through, slowly
        return X
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError:
        raise _repeated(list(getattr(X, "column_names", X.columns))) from None
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is lazy ({type(X).__module__}); collect or compute it first")
    return frame


def _is_xarray(X) -> bool:
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
            f"X has no columns: 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )


def _cells_of_frame(frame: nw.DataFrame) -> Any:
    """Return a frame, or its cells in one array where all are of one type of numbers."""
    if frame.implementation.is_pandas():
        dtypes = set(frame.to_native().dtypes)
        alike = len(dtypes) == 1 and isinstance(dtype := dtypes.pop(), np.dtype)
        return frame.to_numpy() if alike and dtype.kind in "biuf" else frame
    dtypes = set(frame.schema.dtypes())
    if len(dtypes) == 1 and (dtype := dtypes.pop()).is_numeric():
        cells = frame.to_numpy()  # objects, or floats for integers, where some are missing
        if cells.dtype.kind in ("f" if dtype.is_float() else "iu"):
            return cells
    return frame


def _matrix(X) -> Array:
    """Return X as an array that keeps the type of every cell."""
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind == "f":
            return X.filled(np.nan)
        cells: Any = X.data.astype(object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
    try:
        cells = np.asarray(X.values if _is_xarray(X) else X)
    except ValueError:
        raise ValueError("X is not a table: its rows differ in length") from None
    if cells.dtype.kind == "U" and not hasattr(X, "dtype"):
        return np.array(X, dtype=object)  # of nested lists: NumPy has just turned 1 into "1"
    return cells if cells.dtype.isnative else cells.astype(cells.dtype.newbyteorder("="))


def refuse_no_rows(n_rows: int, n_columns: int) -> None:
    """Raise ValueError, in scikit-learn's words, if there is nothing to learn from."""
    if n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=({n_rows}, {n_columns})) while a minimum of 1 "
            "is required."
        )


# ------------------------------------------------------------------------------------------------
# Rows that are kept while they are in memory anyway.

_MOST = 64 << 20  # bytes: more are not kept alive
_LOOKED_AT = 200  # objects whose size is taken for that of all


class KeptRows(NamedTuple):
    """What `fit` was given, by reference."""

    X: Any
    y: Any
    sample_weight: Any = None


def kept(X, y, sample_weight) -> KeptRows | None:
    """Return a reference to rows of at most 64 MiB; None for more, and for unknown sizes."""
    size = sum(_size(values) for values in (X, y, sample_weight) if values is not None)
    return KeptRows(X, y, sample_weight) if size <= _MOST else None


def _size(values) -> float:
    """Return the bytes that a reference keeps alive, about; infinite where nothing tells."""
    if isinstance(values, list | tuple):
        return sys.getsizeof(values) + _size_of_objects(values)
    if isinstance(values, np.ndarray):
        base = values.base if isinstance(values.base, np.ndarray) else values  # a view keeps all
        objects = values.ravel() if values.dtype.kind == "O" else ()
        return base.nbytes + _size_of_objects(objects)
    if hasattr(values, "memory_usage"):  # pandas
        return float(np.sum(values.memory_usage(deep=True)))
    if hasattr(values, "estimated_size"):  # polars
        return float(values.estimated_size())
    if hasattr(values, "tocsr"):
        return 16.0 * values.nnz + 8.0 * values.shape[0]
    size = getattr(values, "nbytes", None)
    return float(size) if isinstance(size, int | np.integer) else np.inf


def _size_of_objects(values) -> float:
    """Return the bytes of Python objects, about, from some of them."""
    some = values[:: 1 + len(values) // _LOOKED_AT]
    sizes = [_size(v) if isinstance(v, list | tuple) else sys.getsizeof(v) for v in some]
    return float(np.mean(sizes)) * len(values) if sizes else 0.0
