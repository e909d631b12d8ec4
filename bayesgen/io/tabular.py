"""Tables in files, CSV and Parquet, read in chunks by pandas and pyarrow.

A chunk is a data frame whose index is the number of each row in the file, from 1 and without the
header. The type of a column is decided once, from all rows (`kinds`), and every chunk is read as
that type (`rows`): how a cell is read does not depend on the chunk.

- ``"number"``: every cell that is not missing is a number, as people write them
  (`literals.parse_written`), or every one is a percentage. Whole numbers from 2**53 on are
  identifiers, hence text: float64 does not tell neighbours apart.
- ``"boolean"``: every cell that is not missing is true or false.
- ``"text"``: all others. ``"empty"``: all cells are missing.

A cell of a CSV file is missing if it is one of `literals.MISSING` (empty, NA, NaN, null, a question
mark, ...) or blank. In a Parquet file a cell has the type that the file says, and null, NaN and
blank text are missing. A column of numbers but for one text is a column of numbers, and that text
is missing, if it has no letter or digit ("-"), or no digit beside ten numbers that differ.
"""

import csv
import io
import lzma
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.encoding.column import EXACT
from bayesgen.encoding.literals import MISSING, parse_number, parse_written, shown
from bayesgen.errors import InputError, placed
from bayesgen.io.formats import Reading, TableError, content_format, decompressed, detect, rows_of
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

    type Chunks = Iterator[tuple[pd.DataFrame, float]]

_CELLS = 1_000_000  # of a chunk, unless the caller says how many rows
_BUFFER = 1 << 16  # bytes of a Parquet column read ahead, in place of whole row groups
_HEAD = 1 << 18  # characters of a CSV file that its dialect is detected on
_FEW = 10  # numbers that differ, from which a word among them is a missing cell
_LINES = 10_000  # read at once where comments are passed over
_AS_UTF8 = (  # advice, and what the command line says
    "save it as UTF-8",
    "save it as UTF-8, or name its encoding, such as --encoding cp1252 or utf-16-le",
)


def open_file(path: Path, reading: Reading | None = None) -> "CsvFile | ParquetFile":
    """Open a file, of the format that its first bytes show; TableError if it cannot be read."""
    try:
        kind = ParquetFile if content_format(path) == "parquet" else CsvFile
    except OSError as mistake:
        raise TableError(f"{path}: {mistake.strerror or mistake}") from mistake
    return kind(path, reading or Reading())


class FileRows(NamedTuple):
    """Successive rows of a file."""

    frame: "pd.DataFrame"  # the columns as their types
    done: float  # the share of the file that has been read after them
    copied: "pd.DataFrame"  # some columns as they stand in the file


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
    decimal = "."

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path, self.size, self.reading = path, path.stat().st_size, reading
        self._open()
        if repeated := [name for name, n in Counter(self.names).items() if n > 1]:
            raise TableError(
                f"{path} has more than one column {min(repeated)!r}; rename or remove one"
            )
        words = MISSING if self.schema is None else {""}
        self._missing = {*words, *reading.missing} - {*reading.present}
        codes = (parse_number(word) for word in reading.missing)
        self._codes = [code for code in codes if code is not None]

    def _open(self) -> None:
        raise NotImplementedError

    def _chunks(self, types: Mapping[str, str | None], n_rows: int) -> "Chunks":
        """Yield the columns of `types`, `n_rows` at a time, and the share of the file read.

        Columns of text are read as text, and those of type None as they stand.
        """
        raise NotImplementedError

    def kinds(self, names: Collection[str]) -> dict[str, str]:
        """Return the type of each of some columns, from all rows; {} if there are no rows."""
        held: dict[str, set[str]] = {name: set() for name in names}
        codes: dict[str, str] = {}
        n_rows = 0
        for frame, _ in self._chunks(dict.fromkeys(names, "any"), _rows_of_cells(len(names))):
            n_rows += len(frame)
            for name, kinds in held.items():
                if "text" not in kinds:
                    with placed(str(self.path)):
                        kinds |= self._kinds_of(frame[name], codes)
        types = {name: join_kinds(kinds) for name, kinds in held.items()}
        percent = {name for name, kind in types.items() if kind == "percent"}
        types |= dict.fromkeys(percent, "number")
        self.reading = replace(
            self.reading,
            codes=self.reading.codes
            | {k: code for k, code in codes.items() if types[k] == "number"},
            percent=tuple(sorted(percent.union(self.reading.percent))),
        )
        return types if n_rows else {}

    def _kinds_of(self, cells: "pd.Series", codes: dict[str, str]) -> set[str]:
        """Return the types of cells; InputError if there is another, such as dates.

        A text for missing numbers is put into `codes`, unless there is another one.
        """
        from pandas.api import types

        if (categories := getattr(cells.dtype, "categories", None)) is not None:
            cells = cells.astype(categories.dtype)
        cells = cells.dropna()
        if not len(cells):
            return set()
        held = types.infer_dtype(cells)
        if held == "integer" and not -EXACT < cells.min() <= cells.max() < EXACT:
            return {"text"}
        if held != "string":
            if held not in _KINDS:
                raise InputError(
                    f"column {cells.name!r} holds {held}: make it numbers, text or booleans, or "
                    "leave it out",
                    column=cells.name,
                )
            return {_KINDS[held]}
        texts = {cell.strip() for cell in cells.unique()} - self._missing
        if self.schema is not None:
            return {"text"} if texts else set()
        kinds = {text: self._kind_of(text) for text in texts}
        numbers = [kind for kind in kinds.values() if kind in ("number", "percent")]
        others = [text for text, kind in kinds.items() if kind == "text"]
        if len(others) == 1 and self._is_code(others[0], len(numbers)):
            same = codes.setdefault(cells.name, others[0]) == others[0]
            kinds[others[0]] = numbers[0] if same else "text"
        return set(kinds.values())

    def _is_code(self, text: str, n_numbers: int) -> bool:
        if text in self.reading.present or not n_numbers:
            return False
        is_word = any(map(str.isalnum, text))
        return not is_word or (n_numbers >= _FEW and not any(map(str.isdigit, text)))

    def _kind_of(self, text: str) -> str:
        if text.lower() in ("true", "false"):
            return "boolean"
        number = parse_written(text, self.decimal)
        if number is None or (abs(number) >= EXACT and text.lstrip("+-").isdigit()):
            return "text"
        return "percent" if text.endswith("%") else "number"

    def rows(
        self,
        types: Mapping[str, str | None],
        n_rows: int | None = None,
        copied: Collection[str] = (),
    ) -> "Iterator[FileRows]":
        """Yield the columns of `types` as those types.

        The type None is of cells as they stand: text of a CSV file, or what a Parquet file holds.

        Parameters
        ----------
        n_rows : int, optional
            Of a chunk; by default it has about a million cells.
        copied : names of columns, optional
            That are yielded as they stand, too.

        Raises
        ------
        TableError
            If the file cannot be read.
        InputError
            At a cell that is not of the type of its column, with file, row and column.
        """
        import pandas as pd

        first, read = 1, {**types, **dict.fromkeys(copied)}
        for frame, done in self._chunks(read, n_rows or _rows_of_cells(len(read))):
            frame.index = range(first, first + len(frame))
            first += len(frame)
            with placed(str(self.path)):
                columns = {name: self._typed(frame[name], kind) for name, kind in types.items()}
            yield FileRows(pd.DataFrame(columns, frame.index, copy=False), done, frame[[*copied]])

    def _typed(self, cells: "pd.Series", kind: str | None) -> "pd.Series":
        """Return cells as a type; InputError at the first that is not of it."""
        import pandas as pd
        from pandas.api import types

        if kind is None:
            return cells
        numeric = types.is_numeric_dtype(cells.dtype) and not types.is_bool_dtype(cells.dtype)
        if cells.name in self.reading.percent:
            kind, numeric = "percent", False
        if kind == "number" and numeric:
            values = cells.to_numpy(np.float64, na_value=np.nan)
        else:
            codes, distinct = pd.factorize(cells)
            missing = self._missing | {self.reading.codes.get(cells.name, "")}
            parsed = [self._value_of(cell, kind, missing) for cell in distinct.tolist()]
            if _WRONG in parsed:
                raise _refused(cells, codes == parsed.index(_WRONG), _NEEDS[kind])
            values = np.array([*parsed, None], dtype=object)[codes]
            if kind in ("number", "percent"):
                values = values.astype(np.float64)
            elif kind == "boolean" and (codes >= 0).all() and None not in parsed:
                values = values.astype(bool)
        if kind in ("number", "percent"):
            if self._codes:
                values = np.where(np.isin(values, self._codes), np.nan, values)
            if (infinite := np.isinf(values)).any():
                raise _refused(cells, infinite, "a finite number")
        return pd.Series(values, cells.index, dtype=values.dtype)

    def _value_of(self, cell: Any, kind: str, missing: set[str]) -> Any:
        """Return what a cell stands for, None if it is missing, `_WRONG` if not of the type."""
        whole = isinstance(cell, float) and cell.is_integer()
        cell = cell if isinstance(cell, str) else str(int(cell) if whole else cell)
        text = cell.strip()
        if text in missing:
            return None
        if kind == "text":
            return cell
        if kind == "boolean":
            return _TRUTH.get(text.lower(), _WRONG)
        number = parse_written(text, self.decimal)
        same_unit = text.endswith("%") == (kind == "percent")
        return number if number is not None and same_unit else _WRONG


_KINDS = {  # what pandas says of cells
    "boolean": "boolean", "integer": "number", "floating": "number", "decimal": "number",
}  # fmt: skip
_WRONG = object()
_TRUTH = dict.fromkeys(("true", "yes", "y", "t", "1"), True)
_TRUTH |= dict.fromkeys(("false", "no", "n", "f", "0"), False)
_NEEDS = {
    "number": "a number",
    "percent": "a percentage, as in the rows of the fit",
    "boolean": "true or false",
}


def _rows_of_cells(n_columns: int) -> int:
    return max(1, _CELLS // max(1, n_columns))


def _refused(cells: "pd.Series", wrong: Array, need: str) -> InputError:
    """Return the error that the first wrong cell is not what it needs to be."""
    i = int(np.argmax(wrong))
    what = f"column {cells.name!r} holds {shown(cells.iloc[[i]].tolist()[0])}"
    return InputError(what, f", which is not {need}", row=cells.index[i], column=cells.name)


def join_kinds(kinds: set[str]) -> str:
    """Return the type of a column whose cells, or whose files, have these types."""
    kinds = kinds - {"empty"}
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"


def labels(cells: "pd.Series") -> Array:
    """Return the labels of rows: text, booleans or numbers, whole ones as int64."""
    from pandas.api import types

    if not types.is_float_dtype(cells.dtype):
        return cells.to_numpy()
    values = cells.to_numpy(np.float64, na_value=np.nan)
    whole = (np.abs(values) < EXACT) & (np.trunc(values) == values)
    return values.astype(np.int64) if whole.all() else values


class CsvFile(_File):
    """A text of rows of cells, in the dialect of its first rows; blank lines are passed over."""

    def _open(self) -> None:
        marked = False
        with self._readable():
            with decompressed(self.path) as (_, content):
                marked = content.read(2) in (b"\xff\xfe", b"\xfe\xff")
            self._encoding = self.reading.encoding or ("utf-16" if marked else "utf-8-sig")
            with self._lines() as (_, text):
                head = text.read(_HEAD)
            if "\0" in head:
                raise TableError(f"{self.path} has a null character in its first rows", *_AS_UTF8)
            self.dialect = detect(self.path, head, len(head) < _HEAD, self.reading)
        self.decimal = self.dialect.decimal
        header = self.dialect.names
        self.names = [name for name in header if name]
        self.n_nameless = len(header) - len(self.names)
        self._header = [name or f"\0{k}" for k, name in enumerate(header)]
        self._checked = False

    @contextmanager
    def _lines(
        self, skip: int = 0, comment: str | None = None, errors: str = "strict"
    ) -> Iterator[tuple[Any, Any]]:
        """Open the file, whose position tells how much was read, and its text behind some lines."""
        with decompressed(self.path) as (file, content):
            try:
                text = io.TextIOWrapper(content, self._encoding, errors, newline="")
            except LookupError:
                raise TableError(f"{self._encoding!r} is no encoding of text") from None
            for _ in range(skip):
                text.readline()
            yield file, _Uncommented(text, comment) if comment else text

    def _chunks(self, types: Mapping[str, str | None], n_rows: int) -> "Chunks":
        import pandas as pd

        missing = sorted(self._missing)
        options: dict = {}
        if np.lib.NumpyVersion(pd.__version__) < "3.1.0":  # later ones read every number exactly
            options["float_precision"] = "round_trip"
        with self._readable(), self._lines(self.dialect.skip, self.dialect.comment) as (file, text):
            chunks = pd.read_csv(
                text,
                header=None,
                names=self._header,
                index_col=False,
                dtype={name: object for name, kind in types.items() if kind in ("text", None)},
                dtype_backend="numpy_nullable",
                keep_default_na=False,
                na_values={name: missing for name, kind in types.items() if kind is not None},
                chunksize=n_rows,
                low_memory=False,
                sep=r"\s+" if self.dialect.delimiter == " " else self.dialect.delimiter,
                decimal=self.decimal,
                skipinitialspace=self.dialect.spaced,
                quoting=csv.QUOTE_MINIMAL if self.dialect.quoted else csv.QUOTE_NONE,
                **options,
            )
            while (frame := self._next(chunks)) is not None:
                last = frame[self._header[-1]]
                if not self._checked and (last.isna() | (last == "")).fillna(True).any():
                    self._refuse_uneven_rows()
                    self._checked = True
                if len(frame):
                    yield frame, file.tell() / self.size

    @staticmethod
    def _next(chunks: "Iterator[pd.DataFrame]") -> "pd.DataFrame | None":
        import pandas as pd

        with warnings.catch_warnings():  # a first row with more cells than the header
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return next(chunks, None)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Make errors of pandas and of the csv module a TableError with the line."""
        try:
            yield
        except InputError:
            raise
        except UnicodeDecodeError:
            raise self._not_decoded() from None
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as mistake:
            why = getattr(mistake, "strerror", None) or mistake
            raise TableError(f"{self.path} cannot be read: {why}") from mistake
        except (ValueError, Warning, csv.Error) as mistake:  # ParserError, ParserWarning
            self._refuse_uneven_rows(unended="EOF inside string" in str(mistake))
            raise TableError(f"{self.path} cannot be read: {mistake}".strip()) from None

    def _refuse_uneven_rows(self, unended: bool = False) -> None:
        """Raise TableError at a row with more or fewer cells than columns.

        `unended`: only at a row without an end, in a quotation.
        """
        n_columns, skip = len(self._header), self.dialect.skip
        line = skip
        with self._lines(skip, self.dialect.comment) as (_, text):
            try:
                for row in rows_of(text, self.dialect, strict=unended):
                    blank = not "".join(row.cells).strip()
                    if len(row.cells) != n_columns and not (unended or blank):
                        raise TableError(
                            f"{self.path}: line {line + 1} has {len(row.cells)} cells, but there "
                            f"are {n_columns} columns"
                        )
                    line = skip + row.line
            except csv.Error:
                raise TableError(
                    f"{self.path}: the quotation that opens in line {line + 1} has no end"
                ) from None

    def _not_decoded(self) -> TableError:
        with self._lines(errors="replace") as (_, text):
            line = next((k for k, line in enumerate(text, 1) if "\ufffd" in line), 1)
        name = "UTF-8" if self._encoding == "utf-8-sig" else self._encoding
        return TableError(f"{self.path} is not {name} in line {line}", *_AS_UTF8)


class _Uncommented:
    """A text whose lines of comment are blank."""

    def __init__(self, text: Any, mark: str) -> None:
        self._lines = ("\n" if line.startswith(mark) else line for line in text)

    def __iter__(self) -> Iterator[str]:
        return self._lines

    def read(self, size: int = -1) -> str:
        """Return the next lines; `size` is ignored, as pandas allows."""
        return "".join(islice(self._lines, _LINES))


class ParquetFile(_File):
    """A Parquet file; an index without a name that pandas writes as a column is left out."""

    def _open(self) -> None:
        with self._reader() as file:
            schema = self.schema = file.schema_arrow
        self.names = [name for name in schema.names if not name.startswith("__index_level_")]
        self.nominal = frozenset(
            name for name in self.names if hasattr(schema.field(name).type, "value_type")
        )

    def _chunks(self, types: Mapping[str, str | None], n_rows: int) -> "Chunks":
        n_read = 0
        with self._reader() as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=[*types]):
                n_read += batch.num_rows
                batch.validate(full=True)  # text of a damaged file may be no UTF-8
                # pandas' own record in the file would make an index of a column, tuples of names
                frame = batch.to_pandas(types_mapper=_nullable, ignore_metadata=True)
                yield frame, n_read / file.metadata.num_rows

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile as Reader

        try:
            with Reader(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
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
