"""Files that the user names: tables (`bayesgen.io.tabular`) and models, or one clear error.

Files written whole or not at all: tables chunk by chunk, in CSV or Parquet.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesgen.cli.console import UserError, blamed_on, busy, note
from bayesgen.io import storage
from bayesgen.io.formats import TableError, file_format
from bayesgen.io.progress import row_progress

if TYPE_CHECKING:
    from bayesgen.io.tabular import CsvFile, ParquetFile, Rows

    type Table = CsvFile | ParquetFile


def open_table(path: Path) -> "Table":
    """A CSV or Parquet file by its ending, or one clear error."""
    from bayesgen.io.tabular import open_file

    if not path.exists():
        near = _near(path)
        raise UserError(f"no file {str(path)!r}" + (f"; did you mean {near!r}?" if near else ""))
    if not path.is_file():
        raise UserError(f"{path} is not a file")
    table = open_file(path)
    if table.n_nameless:
        note(
            f"{path}: {table.n_nameless} column(s) without a name left out, such as row numbers "
            "that another program wrote"
        )
    return table


def load_model(path: Path) -> Any:
    """A saved model, or one clear error."""
    with busy("loading"):
        from bayesgen.estimators import load

        try:
            return load(path)
        except (ValueError, TypeError, OSError) as mistake:
            raise UserError(str(mistake)) from mistake


def _near(path: Path) -> str | None:
    from difflib import get_close_matches

    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    return str(folder / near[0]) if near else None


def read_whole(table: "Table", names: Sequence[str]) -> "Rows":
    """The named columns in full; an error if there are no rows."""
    from bayesgen.io.tabular import concatenated

    parts = []
    n_rows = 0
    with row_progress("reading", 1.0) as advance:
        for rows in table.rows(names):
            parts.append(rows)
            n_rows += rows.n_rows
            advance(rows.done, n_rows)
    if not n_rows:
        raise TableError(f"{table.path} has a header and no rows")
    return concatenated(parts)


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


@contextmanager
def open_writer(
    path: Path, names: Sequence[str], make_schema: Callable[[], Any]
) -> Iterator[Callable[[Sequence[Any]], None]]:
    """Write a table atomically; what it yields appends rows.

    They are given as columns, each a NumPy array or an arrow column; `make_schema` gives the arrow
    schema of a Parquet file.
    """
    is_csv = file_format(path) == "csv"
    with blamed_on(f"cannot write {path}", (OSError,)), storage.replacing(path) as temporary:
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
