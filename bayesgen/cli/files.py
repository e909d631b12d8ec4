"""Files that the user names: tables and models, read and written whole or not at all."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesgen.cli.console import UserError, blamed_on, busy, note
from bayesgen.io.formats import TableError, file_format
from bayesgen.io.output import check_target, replacing
from bayesgen.io.progress import row_progress

if TYPE_CHECKING:
    from bayesgen.io.tabular import CsvFile, ParquetFile, Rows

    type Table = CsvFile | ParquetFile


def open_table(path: Path) -> "Table":
    """A CSV or Parquet file by its ending, or one clear error."""
    from bayesgen.io.tabular import open_file

    with blamed_on(f"cannot read {path}", (OSError,)):  # a name that is too long
        found = path.exists()
    if not found:
        raise UserError(f"no file {str(path)!r}{_near(path)}")
    if not path.is_file():
        raise UserError(f"{path} is not a file")
    table = open_file(path)
    if table.n_nameless:
        note(
            f"{path}: {table.n_nameless} column(s) without a name left out, such as row numbers "
            "that another program wrote"
        )
    return table


def _near(path: Path) -> str:
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1)
    return f"; did you mean {str(path.parent / near[0])!r}?" if near else ""


def load_model(path: Path) -> Any:
    """A saved model, or one clear error."""
    from bayesgen.estimators import load

    with busy("loading"), blamed_on():
        return load(path)


def rows_of(
    table: "Table", names: Sequence[str], what: str, most: int | None = None, least: int = 1
) -> Iterator["Rows"]:
    """The named columns, `most` rows at a time, with a progress bar; an error if there are none."""
    n_read = 0
    with row_progress(what, 1.0) as advance:
        for rows in table.rows(names, most):
            n_read += rows.n_rows
            yield rows
            advance(rows.done, n_read)
    if n_read < least:
        raise TableError(f"{table.path} has a header and no rows")


def read_whole(table: "Table", names: Sequence[str]) -> "Rows":
    """The named columns in full."""
    from bayesgen.io.tabular import concatenated

    return concatenated(list(rows_of(table, names, "reading")))


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work, a place where no file can be made, or where an input is."""
    with blamed_on(errors=(ValueError, OSError)):
        check_target(path, *inputs)


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
