"""Tables in files: CSV and Parquet (`bayesgen.io.formats`), read in chunks.

Cells of a CSV file are text, those of a Parquet file have the type that the file says: what a
column holds is never guessed from a part of it.
"""

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bayesgen.cli.console import UserError, blamed_on, note
from bayesgen.io.formats import csv_dialect, file_format
from bayesgen.io.progress import row_progress

if TYPE_CHECKING:
    import numpy as np

    # text cells (a CSV file's, raw; None for a null), or numbers or booleans without nulls, or a
    # list of numbers or booleans with None for nulls
    Cells = list[Any] | np.ndarray

_CELLS = 1_000_000  # of a chunk, unless the user says how many rows


class Chunk(Protocol):
    """Successive rows of a table."""

    first: int  # number of the first row in the file, from 1, the header not counted
    n_rows: int
    done: float  # how much of the file has been read, in the unit of `Table.size`

    def cells(self, name: str) -> "Cells":
        """One column, as the models want it."""
        ...

    def copy(self, name: str) -> Any:
        """One column, as it stands in the file: a list or an arrow array."""
        ...


class Table(Protocol):
    """An open table."""

    path: Path
    names: tuple[str, ...]
    size: float

    def chunks(self, names: Sequence[str], rows: int | None = None) -> Iterator[Chunk]:
        """The named columns, `rows` at a time."""
        ...

    def is_nominal(self, name: str) -> bool:
        """Whether the file itself says that the column is categorical."""
        ...


def open_table(path: Path) -> Table:
    """A CSV or Parquet file by its ending, or one clear error."""
    if not path.exists():
        near = _near(path)
        raise UserError(f"no file {str(path)!r}" + (f"; did you mean {near!r}?" if near else ""))
    if not path.is_file():
        raise UserError(f"{path} is not a file")
    kind = check_format(path)
    with blamed_on(path):
        table: Table = CsvTable(path) if kind == "csv" else ParquetTable(path)
    if twice := {name for name in table.names if table.names.count(name) > 1}:
        raise UserError(f"{path} has more than one column {min(twice)!r}; rename or remove one")
    return table


def check_format(path: Path) -> str:
    """``"csv"`` or ``"parquet"``, by the ending."""
    try:
        return file_format(path)
    except (ValueError, ImportError) as mistake:
        raise UserError(str(mistake)) from None


def _near(path: Path) -> str | None:
    from difflib import get_close_matches

    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    return str(folder / near[0]) if near else None


# ------------------------------------------------------------------------------------- reading


class CsvChunk:
    """Rows of a CSV file; every cell is text."""

    def __init__(self, names: Sequence[str], rows: list[list[str]], first: int, done: float):
        self._at = {name: k for k, name in enumerate(names)}
        self._rows = rows
        self.first, self.n_rows, self.done = first, len(rows), done

    def cells(self, name: str) -> list[Any]:
        """One column as text, missing cells too."""
        k = self._at[name]
        return [row[k] for row in self._rows]

    copy = cells


class CsvTable:
    """A CSV file; columns without a name are left out."""

    def __init__(self, path: Path) -> None:
        csv.field_size_limit(sys.maxsize)  # a document may be longer than 128 kB
        self.path, self.size = path, float(path.stat().st_size)
        with self._open() as text, self._readable():
            head = text.readline()
        self._dialect = {"strict": True, **csv_dialect(path, head)}
        with self._open() as text:
            header = next(self._rows(text), None)
        if header is None or not any(name.strip() for name in header[1]):
            raise UserError(f"{path} is empty: its first line must name the columns")
        self._header = header[1]
        self.names = tuple(name for name in self._header if name.strip())
        if nameless := len(self._header) - len(self.names):
            note(
                f"{path}: {nameless} column(s) without a name left out, such as row numbers that "
                "another program wrote"
            )

    def chunks(self, names: Sequence[str], rows: int | None = None) -> Iterator[CsvChunk]:
        """All columns, whatever the `names`: a line has to be read whole anyhow."""
        width = len(self._header)
        most = rows or max(1, _CELLS // width)
        with self._open() as text:
            lines = self._rows(text)
            next(lines)
            first, block = 1, []
            for number, row in lines:
                if len(row) != width:
                    raise UserError(
                        f"{self.path}: line {number} has {len(row)} cells, but the header names "
                        f"{width} columns"
                    )
                block.append(row)
                if len(block) == most:
                    yield CsvChunk(self._header, block, first, _position(text))
                    first, block = first + most, []
            if block:
                yield CsvChunk(self._header, block, first, self.size)

    def is_nominal(self, name: str) -> bool:
        """Never: a CSV file says nothing about its columns."""
        return False

    def _open(self) -> io.TextIOWrapper:
        return open(self.path, encoding="utf-8-sig", newline="")

    def _rows(self, text: io.TextIOWrapper) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of every line that is not blank."""
        reader = csv.reader(text, **self._dialect)
        with self._readable():
            try:
                for row in reader:
                    if row:
                        yield reader.line_num, row
            except csv.Error as mistake:
                raise UserError(f"{self.path}: line {reader.line_num}: {mistake}") from mistake

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as mistake:
            raise UserError(
                f"{self.path} is not UTF-8 text (byte 0x{mistake.object[mistake.start]:02x}); "
                "save it as UTF-8"
            ) from mistake


def _position(text: io.TextIOWrapper) -> float:
    """Bytes read so far; a text file in a loop does not tell, the bytes below do."""
    return float(text.buffer.tell())  # type: ignore[attr-defined]


class ParquetChunk:
    """Rows of a Parquet file."""

    def __init__(self, batch: Any, first: int) -> None:
        self._batch = batch
        self.first, self.n_rows = first, batch.num_rows
        self.done = float(first + self.n_rows)

    def cells(self, name: str) -> "Cells":
        """One column by its type in the file."""
        return _from_arrow(self._batch.column(name), name)

    def copy(self, name: str) -> Any:
        """One column as an arrow array, categories as what they stand for."""
        from pyarrow import types

        array = self._batch.column(name)
        return array.dictionary_decode() if types.is_dictionary(array.type) else array


class ParquetTable:
    """A Parquet file; the index that pandas writes beside the columns is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.schema = file.schema_arrow
            self.size = float(file.metadata.num_rows)
        self.names = tuple(n for n in self.schema.names if not n.startswith("__index_level_"))

    def chunks(self, names: Sequence[str], rows: int | None = None) -> Iterator[ParquetChunk]:
        """The named columns, `rows` at a time; nothing else is read."""
        most = rows or max(1, _CELLS // max(1, len(names)))
        with self._open() as file:
            first = 1
            for batch in file.iter_batches(batch_size=most, columns=list(names)):
                yield ParquetChunk(batch, first)
                first += batch.num_rows

    def is_nominal(self, name: str) -> bool:
        """Whether the column is dictionary-encoded, as pandas and polars write categories."""
        import pyarrow

        return bool(pyarrow.types.is_dictionary(self.schema.field(name).type))

    def _open(self) -> Any:
        from pyarrow.parquet import ParquetFile

        try:
            return ParquetFile(self.path)
        except (ValueError, OSError) as mistake:
            raise UserError(f"{self.path} is not a readable Parquet file: {mistake}") from mistake


def _from_arrow(array: Any, name: str) -> "Cells":
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_floating(kind) or types.is_decimal(kind):
        return array.cast("float64").to_numpy(zero_copy_only=False)
    if types.is_integer(kind) or types.is_boolean(kind):
        if array.null_count:
            return array.to_pylist()
        return array.to_numpy(zero_copy_only=False)
    text = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    if any(is_kind(kind) for is_kind in text):
        return array.to_pylist()
    raise UserError(
        f"column {name!r} holds {kind}: make it numbers, text or booleans, or leave it out"
    )


class Whole:
    """All rows of some columns as one chunk."""

    first = 1

    def __init__(self, columns: "dict[str, Cells]", n_rows: int) -> None:
        self._columns = columns
        self.n_rows, self.done = n_rows, float(n_rows)

    def cells(self, name: str) -> "Cells":
        """One column, of all chunks together."""
        return self._columns[name]

    copy = cells


def read_whole(table: Table, names: Sequence[str]) -> Whole:
    """The named columns in full; an error if there are no rows."""
    parts: dict[str, list[Any]] = {name: [] for name in names}
    n_rows = 0
    with row_progress("reading", table.size) as advance:
        for chunk in table.chunks(names):
            for name in parts:
                parts[name].append(chunk.cells(name))
            n_rows += chunk.n_rows
            advance(chunk.done, n_rows)
    if not n_rows:
        raise UserError(f"{table.path} has a header and no rows")
    return Whole({name: _join(parts.pop(name)) for name in tuple(parts)}, n_rows)


def concatenate(parts: Sequence[Any]) -> Any:
    """Lists, arrays, data frames or arrow arrays one after the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, list):
        return [cell for part in parts for cell in part]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    import pyarrow

    return pyarrow.concat_arrays(parts)


def _join(parts: "Sequence[Cells]") -> "Cells":
    """One column from its chunks, which may differ in form."""
    if not any(isinstance(part, list) for part in parts):
        import numpy as np

        return np.concatenate(parts)
    out: list[Any] = []
    for part in parts:
        out.extend(part if isinstance(part, list) else part.tolist())
    return out
