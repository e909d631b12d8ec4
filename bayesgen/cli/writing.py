"""Files written whole or not at all: tables chunk by chunk, in CSV or Parquet."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bayesgen.cli.console import UserError, blamed_on
from bayesgen.io.formats import file_format
from bayesgen.io.output import check_target, replacing


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work, a place where no file can be made, or where an input is."""
    try:
        check_target(path, *inputs)
    except (ValueError, OSError) as mistake:
        raise UserError(str(mistake)) from None


@contextmanager
def open_writer(
    path: Path, names: Sequence[str], make_schema: Callable[[], Any]
) -> Iterator[Callable[[Sequence[Any]], None]]:
    """Write a table atomically; what it yields appends rows.

    They are given as columns, each a NumPy array or an arrow column; `make_schema` gives the arrow
    schema of a Parquet file.
    """
    is_csv = file_format(path) == "csv"
    with blamed_on(f"cannot write {path}", (OSError,)), replacing(path) as temporary:
        if is_csv:
            with open(temporary, "w", encoding="utf-8", newline="") as file:
                yield partial(_append_lines, _csv_writer(file, names, path))
        else:
            from pyarrow.parquet import ParquetWriter

            with ParquetWriter(temporary, make_schema()) as parquet:
                yield partial(_append_table, parquet)


def _csv_writer(file: Any, names: Sequence[str], path: Path) -> Any:
    options: dict[str, Any] = {"lineterminator": "\n"}
    if path.suffix.lower() == ".tsv":
        options |= {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}
    writer = csv.writer(file, **options)
    writer.writerow(names)
    return writer


def _append_lines(writer: Any, columns: Sequence[Any]) -> None:
    lists = [c.tolist() if hasattr(c, "tolist") else c.to_pylist() for c in columns]
    try:
        writer.writerows(zip(*lists, strict=True))
    except csv.Error as mistake:
        raise UserError(f"a cell cannot be written to a .tsv file ({mistake})") from mistake


def _append_table(writer: Any, columns: Sequence[Any]) -> None:
    import pyarrow

    pairs = zip(columns, writer.schema, strict=True)
    arrays = [pyarrow.array(c, f.type) if hasattr(c, "tolist") else c for c, f in pairs]
    writer.write_table(pyarrow.Table.from_arrays(arrays, schema=writer.schema))
