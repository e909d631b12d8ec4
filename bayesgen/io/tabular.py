"""Tables in files, CSV and Parquet (`bayesgen.io.formats`): the one reader, of rows by the chunk.

Both formats are read by Arrow, in bounded memory. Nothing is guessed while reading: cells of a CSV
file are text, those of a Parquet file have the type that the file says; `bayesgen.io.tabular` tells
what they stand for.

A CSV file whose lines differ in length, with a quotation that does not end, or that is not UTF-8 is
refused with the line. Text behind a closing quote belongs to the cell, as in Arrow and pandas.
Blank lines are passed over, and columns without a name are left out.
"""

import csv
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.column import EXACT, of_arrow
from bayesgen.encoding.literals import MISSING, parse_boolean, parse_number, shown
from bayesgen.errors import InputError
from bayesgen.io.formats import TableError, csv_dialect, file_format
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pyarrow


# ------------------------------------------------------------------------------------------------
# One column of some rows of a file, and what its cells stand for.
#
# - Of a CSV file every cell is text. It is missing if it is one of `literals.MISSING` (empty, NA,
#   NaN, null, None, ..., as in pandas) or nothing but blanks, quoted or not.
# - In a Parquet file a cell has the type that the file says: text is text, also if it is "1" or
#   "NA", and only nulls and NaN are missing.
# - A column holds booleans if all cells that are not missing are true or false; numbers if all are
#   numbers; text otherwise. Whole numbers from 2**53 on are identifiers, hence text: as float64
#   they
#   would be others.
# - Where numbers are needed, text is parsed by `literals.parse_number`; true and false are 1 and
# 0,
#   but not among measurements and counts.

_MOST_BYTES = 1 << 30, 1 << 26  # of the labels of all rows, of the different ones


def decoded(array: "pyarrow.ChunkedArray") -> "pyarrow.ChunkedArray":
    """A column with categories replaced by what they stand for."""
    from pyarrow import types

    return array.cast(array.type.value_type) if types.is_dictionary(array.type) else array


class Cells:
    """One column of some rows.

    Parameters
    ----------
    name : str
        What errors call the column.
    array : pyarrow.ChunkedArray (N,)
    written : bool
        Whether the cells are text of a CSV file.
    first : int
        Number of the first row in the file.

    Raises
    ------
    InputError
        If they are neither numbers nor booleans nor text; later, at a cell that does not stand for
        what is asked for.
    """

    def __init__(
        self, name: str, array: "pyarrow.ChunkedArray", written: bool, first: int = 1
    ) -> None:
        from pyarrow import types

        array = decoded(array)
        t = array.type
        self._is_text = types.is_string(t) or types.is_large_string(t) or types.is_string_view(t)
        self._is_integer = types.is_integer(t)
        is_number = self._is_integer or types.is_floating(t) or types.is_decimal(t)
        if not (self._is_text or is_number or types.is_boolean(t) or types.is_null(t)):
            raise InputError(
                f"column {name!r} holds {t}: make it numbers, text or booleans, or leave it out",
                column=name,
            )
        self.name, self._array, self._written, self._first = name, array, written, first

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, i: int) -> Any:
        """One cell as it stands in the file."""
        return self._array[i].as_py()

    @cached_property
    def missing(self) -> Array:
        """(N,) bool: which cells hold nothing."""
        import pyarrow
        from pyarrow import compute

        if not self._written:
            return np.asarray(compute.is_null(self._array, nan_is_null=True))
        if self._plain is not None:
            return np.zeros(len(self), dtype=bool)
        none = pyarrow.array(sorted(MISSING), self._array.type)
        blank = compute.utf8_is_space(self._array)
        return np.asarray(compute.or_(compute.is_in(self._array, none), blank))

    def _refusal(self, i: int, why: str) -> InputError:
        """The error of cell i."""
        what = f"column {self.name!r} holds {shown(self[i])}"
        return InputError(what, why, row=self._first + i, column=self.name)

    def holds(self) -> str:
        """``"boolean"``, ``"number"``, ``"text"`` or, if every cell is missing, ``"empty"``."""
        from pyarrow import compute, types

        if self.missing.all():
            return "empty"
        if self._is_text:
            return self._written_kind() if self._written else "text"
        if types.is_boolean(self._array.type):
            return "boolean"
        if self._is_integer:
            extremes = compute.min_max(self._array).as_py().values()
            return "number" if all(-EXACT < value < EXACT for value in extremes) else "text"
        return "number"

    def padded(self, among: int = 10_000) -> str | None:
        """The first of some cells of a CSV file that is a number with zeros in front, as 007."""
        from pyarrow import compute

        if not (self._written and self._is_text):
            return None
        some = self._array.slice(0, among)
        found = compute.index(compute.match_substring_regex(some, r"^\s*0\d+\s*$"), True).as_py()
        return None if found < 0 else str(self[found]).strip()

    def holds_none(self, among: int = 10_000) -> bool:
        """Whether one of some cells of a CSV file is the word None, which may be a category."""
        from pyarrow import compute

        if not (self._written and self._is_text):
            return False
        some = compute.utf8_trim_whitespace(self._array.slice(0, among))
        return bool(compute.index(some, "None").as_py() >= 0)

    def _written_kind(self) -> str:
        """What text stands for that is not all missing."""
        from pyarrow import compute

        values = self._cast
        if values is not None:
            large = np.flatnonzero(np.abs(values) >= EXACT)
            return "text" if any(_is_identifier(self[i]) for i in large.tolist()) else "number"
        found = compute.unique(self._present).drop_null().to_pylist()
        if all(parse_boolean(text) is not None for text in found):
            return "boolean"
        if any(parse_number(text) is None or _is_identifier(text) for text in found):
            return "text"
        return "number"

    @cached_property
    def _present(self) -> "pyarrow.ChunkedArray":
        """The column with nulls for missing cells."""
        import pyarrow

        if not (self._written and self.missing.any()):
            return self._array
        return self._array.take(pyarrow.array(np.arange(len(self)), mask=self.missing))

    @cached_property
    def _plain(self) -> Array | None:
        """(N,) float64 of text if every cell is a number in the usual spelling."""
        values = _as_floats(self._array, safe=True) if self._is_text else None
        return None if values is None or np.isnan(values).any() else values

    @cached_property
    def _cast(self) -> Array | None:
        """(N,) float64 if all cells are numbers in the usual spelling, NaN where missing."""
        if self._plain is not None:
            return self._plain
        values = _as_floats(self._array, safe=self._is_text)
        return _as_floats(self._present, safe=True) if values is None and self._is_text else values

    def numbers(self, booleans: bool = True, unknown: float | None = None) -> Array:
        """(N,) float64, NaN for missing cells; 1 and 0 for true and false, if `booleans`.

        `unknown` is what stands for a cell that is no number; None: there may be none.
        """
        values = self._cast
        if values is None:
            codes, found = self._factorised()
            parsed = np.full(len(found) + 1, np.nan)  # the last for missing cells, of code -1
            for k, text in enumerate(found):
                value = parse_number(text)
                if value is None and booleans:
                    value = parse_boolean(text)
                if value is None and unknown is None:
                    raise self._refusal(int(np.argmax(codes == k)), ", which is not a number")
                parsed[k] = unknown if value is None else value
            values = parsed[codes]
        if (infinite := np.isinf(values)).any():
            raise self._refusal(int(infinite.argmax()), ", which is not a finite number")
        return values

    def booleans(self) -> Array:
        """(N,) bool; objects with None if cells are missing. 1 and 0 are true and false."""
        values = self.numbers()
        missing = np.isnan(values)
        if (wrong := ~missing & (values != 0) & (values != 1)).any():
            raise self._refusal(int(wrong.argmax()), ", which is neither true nor false")
        out: Array = values == 1
        if missing.any():
            out = out.astype(object)
            out[missing] = None
        return out

    def texts(self) -> Array:
        """(N,) object: str, None for missing cells. Whole numbers are written without a point."""
        codes, found = self._factorised()
        return np.array([*map(_as_text, found), None], dtype=object)[codes]

    def strings(self) -> Array:
        """(N,) `texts` of fixed length, of a column that has some; any where a cell is missing.

        Raises
        ------
        InputError
            If they would take more than 1 GiB, or the different ones 64 MiB: texts, not labels.
        """
        codes, found = self._factorised()
        texts = [*map(_as_text, found)]
        longest = max(map(len, texts), default=0)
        if any(
            4 * longest * n > most
            for n, most in zip((len(codes), len(texts)), _MOST_BYTES, strict=True)
        ):
            raise InputError(
                f"column {self.name!r} holds {len(texts)} different texts of up to {longest} "
                "characters, which are too long for labels of classes: name another column",
                column=self.name,
            )
        return np.array(texts, dtype=str)[codes]

    def raw(self) -> Array:
        """(N,) object: the cells as they stand in the file."""
        return np.array([*self._array.to_pylist(), None], dtype=object)[:-1]

    def documents(self) -> Array:
        """(N,) object: the cells as they stand in the file, which must be text."""
        texts = self.raw()
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise self._refusal(i, ", which is no text")
        return texts

    def values(self, kind: str) -> Array:
        """(N,) the cells of a column that holds what `kind` says: a number, a boolean or text.

        float64 with NaN for missing cells, bool (objects with None if cells are missing) or texts.
        """
        if kind == "text":
            return self.texts()
        return self.booleans() if kind == "boolean" else self.numbers()

    def labels(self, kind: str) -> Array:
        """As `values`, with int64 for numbers that are all whole."""
        return _whole(self.values(kind))

    def labelled(self, kind: str) -> tuple[Array, Array]:
        """(N,) bool: which rows have a label; and the labels of these, texts of fixed length."""
        keep = ~self.missing
        if kind == "text":
            return keep, self.strings()[keep]
        values = self.values(kind)[keep]
        return keep, values.astype(bool) if kind == "boolean" else _whole(values)

    def _factorised(self) -> tuple[Array, list[Any]]:
        """(N,) codes, -1 for missing cells, of the distinct cells."""
        try:
            codes, found = of_arrow(self._present)
        except UnicodeDecodeError as error:
            what = f"column {self.name!r} holds text that is no UTF-8: {error}"
            raise InputError(what, column=self.name) from None
        return np.where(self.missing, -1, codes), found  # NaN is a value to Arrow


def _as_floats(cells: "pyarrow.ChunkedArray", safe: bool) -> Array | None:
    """(N,) float64, if all cells can be made that."""
    import pyarrow

    try:
        values: Array = cells.cast(pyarrow.float64(), safe=safe).to_numpy()
    except pyarrow.ArrowInvalid:
        return None
    return values


def _whole(values: Array) -> Array:
    """Numbers that are all whole as int64."""
    if values.dtype != np.float64:
        return values
    whole = np.all(np.trunc(values) == values) and np.all(np.abs(values) < EXACT)
    return values.astype(np.int64) if whole else values


def joined(kinds: set[str]) -> str:
    """What a column holds whose parts hold these."""
    kinds = kinds - {"empty"}
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"


def _is_identifier(text: str) -> bool:
    """Whether a text is a whole number that float64 does not hold."""
    digits = text.strip().lstrip("+-")
    return len(digits) > 15 and digits.isdigit() and int(digits) >= EXACT


def _as_text(cell: Any) -> str:
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


_CELLS = 1_000_000  # of a chunk, unless it is said how many rows
_BLOCK = 1 << 20  # bytes of a CSV file that are parsed at a time
_LARGEST_BLOCK = (1 << 31) - 1
_BUFFER = 1 << 16  # bytes of a Parquet column read ahead, in place of whole row groups


@dataclass(frozen=True, eq=False)
class Rows:
    """Successive rows of a file."""

    table: "pyarrow.Table"
    written: bool  # whether the cells are text of a CSV file
    first: int  # number of the first row in the file, from 1, the header not counted
    done: float  # the share of the file that has been read after them
    _cells: dict[str, Cells] = field(default_factory=dict, init=False)

    @property
    def n_rows(self) -> int:
        """How many they are."""
        return int(self.table.num_rows)

    def cells(self, name: str) -> Cells:
        """One column, as models want it; InputError if its type is none for that."""
        if name not in self._cells:
            self._cells[name] = Cells(name, self.table[name], self.written, self.first)
        return self._cells[name]

    def copy(self, name: str) -> "pyarrow.ChunkedArray":
        """One column, as it stands in the file; categories as what they stand for."""
        return decoded(self.table[name])


def open_file(path: Path) -> "CsvFile | ParquetFile":
    """A file by the ending of its name; TableError if it cannot be read."""
    return CsvFile(path) if file_format(path) == "csv" else ParquetFile(path)


def concatenated(parts: Sequence[Rows]) -> Rows:
    """Rows that follow each other as one."""
    import pyarrow

    table = pyarrow.concat_tables([part.table for part in parts])
    return replace(parts[0], table=table, done=parts[-1].done)


class CsvFile:
    """A CSV file: its header, and its rows as text.

    Attributes
    ----------
    names : list of str
        Of the columns that have one, each of them once.
    n_nameless : int
        Columns that have none, such as row numbers that another program wrote.
    size : int
        In bytes.
    """

    schema = None  # the file says nothing about its columns

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, path.stat().st_size
        with self._readable(), open(path, encoding="utf-8-sig", newline="") as text:
            self._dialect = csv_dialect(path, text.readline())
            text.seek(0)
            lines = enumerate(csv.reader(text, **self._dialect), 1)
            self._n_head, header = next(((k, row) for k, row in lines if row), (0, []))
            self._has_rows = bool(text.read(1))
        self.names = _unique(path, [name for name in header if name.strip()])
        if not self.names:
            raise TableError(f"{path} is empty: its first line must name the columns")
        if any("\0" in name for name in header):  # Arrow would pass over the first row
            raise TableError(
                f"{path}: its header has a null character; is the file UTF-16? Save it as UTF-8"
            )
        self.n_nameless = len(header) - len(self.names)
        self._columns = [name if name.strip() else f"\0{k}" for k, name in enumerate(header)]

    def is_nominal(self, name: str) -> bool:
        """False: the file says nothing about its columns."""
        return False

    def rows(self, names: Sequence[str], n_rows: int | None = None) -> Iterator[Rows]:
        """The named columns, `n_rows` at a time (None: as many as make a million cells)."""
        if not self._has_rows:
            return
        most, first = n_rows or max(1, _CELLS // len(names)), 1
        with self._readable(), ExitStack() as files:
            for table in _regrouped(self._batches(files, names), most):
                yield Rows(table.select(names), True, first, self._file.tell() / self.size)
                first += table.num_rows

    def _batches(self, files: ExitStack, names: Sequence[str]) -> Iterator["pyarrow.RecordBatch"]:
        """All rows of the named columns, and of the last one, a block of bytes at a time.

        Each attempt opens the file anew, for `files` to close at the end: Arrow reads ahead in
        another thread, and one that was given up would move the position of the next.
        """
        import pyarrow

        block, n_given, last = _BLOCK, 0, ""
        while True:
            n_known = n_given
            self._file = file = files.enter_context(self.path.open("rb", buffering=0))
            try:
                with self._parsed(file, names, block) as reader:
                    for batch in reader:
                        new = batch.slice(n_known)
                        n_known = max(0, n_known - batch.num_rows)
                        if new.num_rows:
                            yield new
                            n_given += new.num_rows
                            last = new.column(self._columns[-1])[-1].as_py()
                break
            except pyarrow.ArrowInvalid as error:
                if "straddling" not in str(error) or block == _LARGEST_BLOCK:
                    self._refuse(f"it cannot be read: {error}")
                block = min(8 * block, _LARGEST_BLOCK)  # a cell may be longer than a block
        if self._may_end_within_quotes(file, last):
            self._refuse()

    def _parsed(self, file: Any, names: Sequence[str], block: int) -> Any:
        """Arrow's reader of the file, which yields record batches."""
        import pyarrow
        from pyarrow import csv as arrow

        quoted = "quoting" not in self._dialect
        return arrow.open_csv(
            file,
            arrow.ReadOptions(
                block_size=block, column_names=self._columns, skip_rows_after_names=self._n_head
            ),
            arrow.ParseOptions(
                delimiter=self._dialect["delimiter"],
                quote_char='"' if quoted else False,
                newlines_in_values=quoted,
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(self._columns, pyarrow.string()),
                include_columns=list({*names, self._columns[-1]}),
                null_values=[],
            ),
        )

    def _may_end_within_quotes(self, file: Any, last: str) -> bool:
        """Whether a quotation may not have ended, which Arrow takes for the `last` cell."""
        tail = ('"' + last.replace('"', '""')).encode()
        if "quoting" in self._dialect or len(tail) > self.size:
            return False
        file.seek(-len(tail), os.SEEK_END)
        return bool(file.read(len(tail)) == tail)

    def _refuse(self, otherwise: str | None = None) -> None:
        """Raise TableError with the line that is wrong, which Arrow does not know."""
        limit = csv.field_size_limit(sys.maxsize)
        try:
            with open(self.path, encoding="utf-8-sig", newline="") as text:
                lines = csv.reader(text, strict=True, **self._dialect)
                for row in lines:
                    if row and len(row) != len(self._columns):
                        raise TableError(
                            f"{self.path}: line {lines.line_num} has {len(row)} cells, but the "
                            f"header names {len(self._columns)} columns"
                        )
        except csv.Error as mistake:
            raise TableError(f"{self.path}: line {lines.line_num}: {mistake}") from None
        finally:
            csv.field_size_limit(limit)
        if otherwise is not None:
            raise TableError(f"{self.path}: {otherwise}")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as mistake:
            raise TableError(
                f"{self.path} is not UTF-8 text (byte 0x{mistake.object[mistake.start]:02x}); "
                "save it as UTF-8"
            ) from None
        except OSError as mistake:
            raise TableError(f"{self.path}: {mistake.strerror or mistake}") from mistake
        except csv.Error as mistake:
            raise TableError(f"{self.path}: its header cannot be read: {mistake}") from None


class ParquetFile:
    """A Parquet file; the index that pandas writes beside the columns is left out.

    Attributes
    ----------
    names : list of str
    n_nameless : int
        0: every column has a name.
    size : int
        In bytes.
    schema : pyarrow.Schema
    """

    n_nameless = 0

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, path.stat().st_size
        with self._open() as file:
            self.schema = file.schema_arrow
        names = [name for name in self.schema.names if not name.startswith("__index_level_")]
        self.names = _unique(path, names)

    def is_nominal(self, name: str) -> bool:
        """Whether the file itself says that a column is categorical.

        It is encoded by a dictionary then, as pandas and polars write categories.
        """
        from pyarrow import types

        return bool(types.is_dictionary(self.schema.field(name).type))

    def rows(self, names: Sequence[str], n_rows: int | None = None) -> Iterator[Rows]:
        """The named columns, `n_rows` at a time.

        None: as many as make a million cells, or fewer where a part of the file ends.
        """
        most, first = n_rows or max(1, _CELLS // len(names)), 1
        with self._open() as file, self._readable():
            n = max(1, file.metadata.num_rows)
            batches = file.iter_batches(batch_size=most, columns=list(names))
            # the positions of streams count the batches, which must remain what they were
            tables = _regrouped(batches, most) if n_rows else map(_table, batches)
            for table in tables:
                yield Rows(table.select(names), False, first, (first + table.num_rows - 1) / n)
                first += table.num_rows

    def _open(self) -> Any:
        from pyarrow.parquet import ParquetFile as Arrow

        with self._readable():
            return Arrow(self.path, pre_buffer=False, buffer_size=_BUFFER)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except TableError:
            raise
        except (ValueError, OSError, NotImplementedError, MemoryError) as mistake:
            raise TableError(f"{self.path} is not a readable Parquet file: {mistake}") from None


def _unique(path: Path, names: list[str]) -> list[str]:
    """`names`, if none occurs twice."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise TableError(f"{path} has more than one column {min(twice)!r}; rename or remove one")
    return names


def _table(*batches: "pyarrow.RecordBatch") -> "pyarrow.Table":
    import pyarrow

    return pyarrow.Table.from_batches(batches)


def _regrouped(batches: Iterable["pyarrow.RecordBatch"], most: int) -> Iterator["pyarrow.Table"]:
    """The same rows, `most` at a time."""
    held: list[Any] = []
    n_held = 0
    for batch in batches:
        rest = batch
        while n_held + rest.num_rows >= most:
            yield _table(*held, rest.slice(0, most - n_held))
            rest, held, n_held = rest.slice(most - n_held), [], 0
        if rest.num_rows:
            held.append(rest)
            n_held += rest.num_rows
    if held:
        yield _table(*held)
