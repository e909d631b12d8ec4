"""Files written whole or not at all: tables chunk by chunk, in CSV or Parquet."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from bayesgen.cli.console import UserError, blamed_on
from bayesgen.io import storage
from bayesgen.io.formats import file_format


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work, a place where no file can be made, or where an input is.

    An input is the same file under whatever name: another path, a symbolic or a hard link.
    """
    try:
        storage.check_target(path)
    except (ValueError, OSError) as mistake:
        raise UserError(str(mistake)) from None
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            same = "" if path == source else f", {source}"
            raise UserError(f"-o {path} is the file to be read{same}; name another")


class Writer(Protocol):
    """Takes columns chunk by chunk."""

    def write(self, columns: Sequence[Any]) -> None:
        """Append rows, given as columns: NumPy arrays or arrow columns."""
        ...


@contextmanager
def open_writer(
    path: Path, names: Sequence[str], make_schema: Callable[[], Any]
) -> Iterator[Writer]:
    """Write a table atomically; `make_schema` gives the arrow schema of a Parquet file."""
    kind = file_format(path)
    with blamed_on(f"cannot write {path}", (OSError,)), storage.replacing(path) as temporary:
        if kind == "csv":
            with open(temporary, "w", encoding="utf-8", newline="") as file:
                yield _CsvWriter(file, names, tabs=path.suffix.lower() == ".tsv")
        else:
            from pyarrow.parquet import ParquetWriter

            with ParquetWriter(temporary, make_schema()) as parquet:
                yield _ParquetWriter(parquet)


class _CsvWriter:
    def __init__(self, file: Any, names: Sequence[str], tabs: bool) -> None:
        options: dict[str, Any] = {"lineterminator": "\n"}
        if tabs:
            options |= {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}
        self._writer = csv.writer(file, **options)
        self._writer.writerow(names)

    def write(self, columns: Sequence[Any]) -> None:
        lists = [
            column.tolist() if hasattr(column, "tolist") else column.to_pylist()
            for column in columns
        ]
        try:
            self._writer.writerows(zip(*lists, strict=True))
        except csv.Error as mistake:
            raise UserError(f"a cell cannot be written to a .tsv file ({mistake})") from mistake


class _ParquetWriter:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, columns: Sequence[Any]) -> None:
        import pyarrow

        schema = self._writer.schema
        arrays = [
            column
            if isinstance(column, pyarrow.ChunkedArray)
            else pyarrow.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
