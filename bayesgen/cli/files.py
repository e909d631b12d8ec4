"""Files that the user names: tables (`bayesgen.io.tabular`) and models, or one clear error."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesgen.cli.console import UserError, blamed_on, busy, note
from bayesgen.io.formats import TableError
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
