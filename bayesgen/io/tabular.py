"""Tables in files, CSV and Parquet, read in chunks by pandas and pyarrow.

A chunk is a data frame whose index is the number of each row in the file, from 1 and without the
header. The type of a column is decided once, from all rows (`kinds`), and every chunk is read as
that type (`rows`): how a cell is read does not depend on the chunk.

- ``"number"``: every cell that is not missing is a number. Whole numbers from 2**53 on are
  identifiers, hence text: float64 does not tell neighbours apart.
- ``"boolean"``: every cell that is not missing is true or false.
- ``"text"``: all others. ``"empty"``: all cells are missing.
- ``"document"``: text as it stands; nothing is missing.

A cell of a CSV file is missing if it is one of `literals.MISSING` (empty, NA, NaN, null, None, ...)
or blank. In a Parquet file a cell has the type that the file says, and null, NaN and blank text are
missing.
"""

import csv
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.encoding.column import EXACT
from bayesgen.encoding.literals import MISSING, parse_boolean, parse_number, shown
from bayesgen.errors import InputError, placed
from bayesgen.io.formats import TableError, csv_dialect, file_format
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

_CELLS = 1_000_000  # of a chunk, unless the caller says how many rows
_BUFFER = 1 << 16  # bytes of a Parquet column read ahead, in place of whole row groups


class Rows(NamedTuple):
    """Successive rows of a file."""

    frame: "pd.DataFrame"  # the columns as their types
    done: float  # the share of the file that has been read after them
    written: "pd.DataFrame"  # some columns as they stand in the file


def open_file(path: Path) -> "CsvFile | ParquetFile":
    """Open a file by the ending of its name; TableError if it cannot be read."""
    return CsvFile(path) if file_format(path) == "csv" else ParquetFile(path)


class _File:
    """A file of a table: its columns, and its rows as pandas reads them.

    Attributes
    ----------
    names : list of str
        Of the columns that have one, each of them once.
    n_nameless : int
        Columns that have none, such as row numbers that another program wrote.
    size : int
        In bytes.
    nominal : set of str
        Columns that the file itself calls categorical.
    schema : pyarrow.Schema or None
        None: the file says nothing about its columns.
    """

    names: list[str]
    n_nameless = 0
    nominal: frozenset[str] = frozenset()
    schema: "pyarrow.Schema | None" = None

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, path.stat().st_size

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return the type of each of some columns, from all rows; {} if there are no rows."""
        found: dict[str, set[str]] = {}
        for frame, *_ in self.rows(dict.fromkeys(names)):
            for name in names:
                kinds = found.setdefault(name, set())
                if "text" not in kinds:
                    with placed(str(self.path)):
                        kinds.add(_kind(frame[name], self.schema is None))
        return {name: join_kinds(kinds) for name, kinds in found.items()}

    def rows(
        self,
        types: Mapping[str, str | None],
        n_rows: int | None = None,
        copied: Sequence[str] = (),
    ) -> Iterator[Rows]:
        """Yield the columns of `types` as those types, `n_rows` at a time; None: as pandas reads.

        By default a chunk has about a million cells. Columns that are `copied` are yielded as they
        stand in the file, too.

        Raises
        ------
        TableError
            If the file cannot be read.
        InputError
            At a cell that is not of the type of its column, with file, row and column.
        """
        first = 1
        chunks = self._chunks(types, copied, n_rows or max(1, _CELLS // len(types)))
        for frame, done in chunks:
            frame.index = range(first, first + len(frame))
            first += len(frame)
            columns = {}
            for name, kind in types.items():
                cells = self._without_missing(frame[name]) if name in copied else frame[name]
                with placed(str(self.path)):
                    columns[name] = as_type(cells, kind)
            yield Rows(type(frame)(columns, copy=False), done, frame[list(copied)])

    def _chunks(
        self, types: Mapping[str, str | None], copied: Sequence[str], n_rows: int
    ) -> "Iterator[tuple[pd.DataFrame, float]]":
        raise NotImplementedError

    def _without_missing(self, cells: "pd.Series[Any]") -> "pd.Series[Any]":
        """Return cells as they stand in the file with those missing that stand for nothing."""
        return cells

    def _refuse_repeated(self) -> None:
        """Raise TableError if a name occurs twice."""
        if repeated := [name for name, n in Counter(self.names).items() if n > 1]:
            raise TableError(
                f"{self.path} has more than one column {min(repeated)!r}; rename or remove one"
            )


class CsvFile(_File):
    """A CSV file with a header; blank lines are passed over."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self._readable(), open(path, encoding="utf-8-sig", newline="") as text:
            self._dialect = csv_dialect(path, text.readline())
            text.seek(0)
            header: list[str] = next(filter(None, csv.reader(text, **self._dialect)), [])
        if any("\0" in name for name in header):
            raise TableError(
                f"{path}: its header has a null character; is the file UTF-16? Save it as UTF-8"
            )
        self.names = [name for name in header if name.strip()]
        self.n_nameless = len(header) - len(self.names)
        self._header = [name if name.strip() else f"\0{k}" for k, name in enumerate(header)]
        if not self.names:
            raise TableError(f"{path} is empty: its first line must name the columns")
        self._refuse_repeated()

    def _chunks(
        self, types: Mapping[str, str | None], copied: Sequence[str], n_rows: int
    ) -> "Iterator[tuple[pd.DataFrame, float]]":
        import pandas as pd

        texts = {name for name, kind in types.items() if kind == "text"}
        raw = {*copied, *(name for name, kind in types.items() if kind == "document")}
        missing = {name: sorted(MISSING) for name in self._header if name not in raw}
        options: dict[str, Any] = dict(self._dialect)
        if np.lib.NumpyVersion(pd.__version__) < "3.1.0":  # later ones read every number exactly
            options["float_precision"] = "round_trip"
        checked = False

        def read_next() -> "pd.DataFrame | None":
            with warnings.catch_warnings():  # a first row with more cells than the header
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return next(chunks, None)

        with self._readable(), open(self.path, "rb") as file:
            chunks = pd.read_csv(
                file,
                header=0,
                names=self._header,
                index_col=False,
                dtype=dict.fromkeys(texts | raw, object),
                dtype_backend="numpy_nullable",
                keep_default_na=False,
                na_values=missing,
                chunksize=n_rows,
                encoding="utf-8-sig",
                low_memory=False,
                **options,
            )
            while (frame := read_next()) is not None:
                last = frame[self._header[-1]]
                if not checked and (last.isna() | (last == "")).fillna(True).any():
                    self._refuse_short_lines()
                    checked = True
                if len(frame):
                    yield frame, file.tell() / self.size

    def _without_missing(self, cells: "pd.Series[Any]") -> "pd.Series[Any]":
        return cells.mask(cells.isin(MISSING))

    def _refuse_short_lines(self) -> None:
        """Raise TableError at a line with too few cells, which pandas fills."""
        limit = csv.field_size_limit(sys.maxsize)
        try:
            with open(self.path, encoding="utf-8-sig", newline="") as text:
                lines = csv.reader(text, **self._dialect)
                for cells in lines:
                    if len(cells) < len(self._header) and "".join(cells).strip():
                        raise TableError(
                            f"{self.path}: line {lines.line_num} has {len(cells)} cells, but the "
                            f"header names {len(self._header)} columns"
                        )
        finally:
            csv.field_size_limit(limit)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Make errors of pandas and of the csv module a TableError."""
        try:
            yield
        except TableError:
            raise
        except UnicodeDecodeError as mistake:
            raise TableError(
                f"{self.path} is not UTF-8 text (byte 0x{mistake.object[mistake.start]:02x}); "
                "save it as UTF-8"
            ) from None
        except OSError as mistake:
            raise TableError(f"{self.path}: {mistake.strerror or mistake}") from mistake
        except csv.Error as mistake:
            raise TableError(f"{self.path}: its header cannot be read: {mistake}") from None
        except (ValueError, Warning) as mistake:  # ParserError, ParserWarning
            if isinstance(mistake, InputError):
                raise
            raise TableError(f"{self.path} cannot be read: {mistake}".strip()) from None


class ParquetFile(_File):
    """A Parquet file; the index that pandas writes as a column is left out."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self._open() as file:
            self.schema = file.schema_arrow
        self.names = [name for name in self.schema.names if not name.startswith("__index_level_")]
        self.nominal = frozenset(
            name for name in self.names if hasattr(self.schema.field(name).type, "value_type")
        )
        self._refuse_repeated()

    def _chunks(
        self, types: Mapping[str, str | None], copied: Sequence[str], n_rows: int
    ) -> "Iterator[tuple[pd.DataFrame, float]]":
        n_read = 0
        with self._open() as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=[*{*types, *copied}]):
                n_read += batch.num_rows
                yield batch.to_pandas(types_mapper=_nullable), n_read / file.metadata.num_rows

    @contextmanager
    def _open(self) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile as Arrow

        try:
            with Arrow(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
                yield file
        except InputError:
            raise
        except (ValueError, OSError, NotImplementedError, MemoryError) as mistake:
            raise TableError(f"{self.path} is not a readable Parquet file: {mistake}") from None


def _nullable(dtype: "pyarrow.DataType") -> Any:
    """Return the pandas type that keeps integers, truth values and text with missing cells."""
    import pandas as pd
    from pyarrow import types

    if types.is_integer(dtype):
        return pd.UInt64Dtype() if types.is_uint64(dtype) else pd.Int64Dtype()
    if types.is_boolean(dtype):
        return pd.BooleanDtype()
    return pd.StringDtype() if types.is_string(dtype) or types.is_large_string(dtype) else None


# ------------------------------------------------------------------------------------------------
# What the cells of a column stand for.


def _kind(cells: "pd.Series[Any]", parse: bool) -> str:
    """Return the type of one column of a chunk; InputError if it has none.

    `parse`: text may stand for numbers and truth values, as in a CSV file.
    """
    from pandas.api import types

    cells = _readable(cells).dropna()
    if types.is_bool_dtype(cells.dtype):
        return "boolean" if len(cells) else "empty"
    if types.is_numeric_dtype(cells.dtype):
        exact = not types.is_integer_dtype(cells.dtype) or cells.between(1 - EXACT, EXACT - 1).all()
        return ("number" if exact else "text") if len(cells) else "empty"
    if not len(cells):
        return "empty"
    found = [cell for cell in cells.unique() if cell.strip()]
    if not found:
        return "empty"
    if not parse:
        return "text"
    if all(parse_boolean(cell) is not None for cell in found):
        return "boolean"
    number = all(parse_number(cell) is not None and not _is_identifier(cell) for cell in found)
    return "number" if number else "text"


def join_kinds(kinds: set[str]) -> str:
    """Return the type of a column whose chunks have these types."""
    kinds = kinds - {"empty"}
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"


def _is_identifier(text: str) -> bool:
    """Whether a text is a whole number that float64 does not hold."""
    digits = text.strip().lstrip("+-").lstrip("0")
    if not digits.isdigit() or len(digits) < 16:
        return False
    return len(digits) > 16 or int(digits) >= EXACT  # Python refuses integers of 4300 digits


def as_type(cells: "pd.Series[Any]", kind: str | None) -> "pd.Series[Any]":
    """Return one column of a chunk as a type; None: as it is.

    Raises
    ------
    InputError
        At the first cell that is not of this type; its row is the cell's label in the index.
    """
    if kind is None:
        return cells
    from pandas.api import types

    cells = _readable(cells)
    if kind == "document":
        return _checked(cells, [isinstance(cell, str) for cell in cells], "text")
    numeric = types.is_numeric_dtype(cells.dtype)  # truth values too
    if kind == "text":
        return _texts(cells)
    if not numeric:
        parsed = {cell: _parsed(cell, kind) for cell in cells.dropna().unique()}
        wrong = {cell for cell, value in parsed.items() if value is None}
        need = "a number" if kind == "number" else "true or false"
        cells = _checked(cells, ~cells.isin(wrong), need).map(parsed)
    elif kind == "number" and types.is_bool_dtype(cells.dtype):
        _checked(cells, cells.isna(), "a number")
    if kind == "boolean" and not types.is_bool_dtype(cells.dtype):
        _checked(cells, cells.isna() | cells.isin([0, 1]), "true or false")
    if kind == "boolean":
        return cells.astype(bool) if cells.notna().all() else _with_none(cells.astype("boolean"))
    numbers = cells.astype("Float64").to_numpy(np.float64, na_value=np.nan)
    series = type(cells)(numbers, cells.index, name=cells.name)
    return _checked(series, ~np.isinf(numbers), "a finite number")


def _parsed(cell: str, kind: str) -> float | None:
    """Return the number that a text stands for, 1 and 0 for truth values; NaN if it is blank."""
    if not cell.strip():
        return np.nan
    value = parse_boolean(cell) if kind == "boolean" else None
    return parse_number(cell) if value is None else float(value)


def _texts(cells: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return cells as text; whole numbers without a point, blank cells missing."""
    cells = cells.astype(object)
    written: dict[Any, str | None] = {}
    for cell in cells.dropna().unique():
        if not isinstance(cell, str):
            written[cell] = str(
                int(cell) if isinstance(cell, float) and cell.is_integer() else cell
            )
        elif not cell.strip():
            written[cell] = None
    if written:
        cells = cells.map(lambda cell: written.get(cell, cell), na_action="ignore").astype(object)
    return _with_none(cells)


def _with_none(cells: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return cells as objects, None where they are missing."""
    cells = cells.astype(object)
    return cells.where(cells.notna(), None)


def _readable(cells: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return numbers, truth values or text, in place of categories what they stand for.

    Raises
    ------
    InputError
        For another type, such as dates.
    """
    from pandas.api import types

    if (categories := getattr(cells.dtype, "categories", None)) is not None:
        cells = cells.astype(categories.dtype)
    if types.is_numeric_dtype(cells.dtype) or cells.dtype == "string":
        return cells
    held = types.infer_dtype(cells, skipna=True)
    if held == "decimal":
        return cells.astype("Float64")
    if held not in ("string", "empty"):
        raise InputError(
            f"column {cells.name!r} holds {held if cells.dtype == object else cells.dtype}: make "
            "it numbers, text or booleans, or leave it out",
            column=cells.name,
        )
    return cells


def _checked(cells: "pd.Series[Any]", right: Any, need: str) -> "pd.Series[Any]":
    """Return cells, or raise InputError at the first that is not right."""
    right = np.asarray(right, dtype=bool)
    if not right.all():
        i = int(np.argmin(right))
        what = f"column {cells.name!r} holds {shown(cells.iloc[[i]].tolist()[0])}"
        raise InputError(what, f", which is not {need}", row=cells.index[i], column=cells.name)
    return cells


_MOST_BYTES = 1 << 30  # of the labels of a chunk


def labels(cells: "pd.Series[Any]") -> Array:
    """Return the labels of rows: text, booleans or numbers, whole ones as int64.

    They are objects with None for a missing one, if there is any.

    Raises
    ------
    InputError
        If they are texts that would take more than 1 GiB.
    """
    from pandas.api import types

    if (categories := getattr(cells.dtype, "categories", None)) is not None:
        cells = cells.astype(categories.dtype)
    if cells.isna().any():
        return _with_none(cells).to_numpy()
    cells = cells.infer_objects()
    if types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(bool)
    if types.is_integer_dtype(cells.dtype):
        return cells.to_numpy(np.int64)
    if types.is_float_dtype(cells.dtype):
        values = cells.to_numpy(np.float64)
        whole = np.all(np.trunc(values) == values) and np.all(np.abs(values) < EXACT)
        return values.astype(np.int64) if whole else values
    if not types.is_string_dtype(cells.dtype):
        return cells.to_numpy()
    longest = int(cells.str.len().max()) if len(cells) else 0
    if 4 * longest * len(cells) > _MOST_BYTES:
        raise InputError(
            f"column {cells.name!r} holds texts of up to {longest} characters, which are too long "
            "for labels of classes: name another column",
            column=cells.name,
        )
    return cells.to_numpy(str)
