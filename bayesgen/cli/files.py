"""Files that the user names: tables and models, read and written whole or not at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from bayesgen.cli.console import Advice, UserError, blamed_on, busy, note
from bayesgen.io.formats import Reading, TableError, file_format
from bayesgen.io.progress import row_progress

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

    from bayesgen.io.tabular import CsvFile, FileRows, ParquetFile

    type Table = CsvFile | ParquetFile

_ENTRY = "reading"  # of the state in a model file


def open_table(path: Path, reading: Reading | None = None) -> "Table":
    """Open a file of a table, or raise one clear error; say how it is read where that is odd."""
    from bayesgen.io.tabular import open_file

    with blamed_on(f"cannot read {path}", (OSError,)):  # a name that is too long
        is_file = path.is_file()
    if not is_file and path.exists():
        stream = "stream, and a table is read twice: write it to a file"
        what = "folder" if path.is_dir() else stream
        raise UserError(f"{path} is a {what}")
    if not is_file:
        raise UserError(f"no file {str(path)!r}{_near(path)}")
    table = open_file(path, reading)
    if style := str(getattr(table, "dialect", "")):
        note(f"{path}: read with {style}")
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


def load_model(path: Path):
    """Load a saved model, or raise one clear error."""
    from bayesgen.estimators import load

    with busy("loading"), blamed_on():
        return load(path)


def stored_reading(path: Path, reading: Reading) -> Reading:
    """Return how the fit of a model read its file, with what the options say."""
    from bayesgen.io import storage

    record = storage.read_entry(path, _ENTRY)
    return reading if record is None else reading.over(Reading.from_json(record))


def save_model(clf, path: Path, table: "Table", target: str, roles: dict[str, str]) -> None:
    """Write a model, with how its file was read, and the columns of documents and groups."""
    from bayesgen.io import storage

    header = table.reading.header is not False
    reading = replace(
        table.reading, delimiter=None, header=header, encoding=None, roles=roles,
        unnamed=() if header else tuple(name for name in table.names if name != target),
    )  # fmt: skip
    fit, state, draws = clf.__bayesgen_record__(clf.fitted_)
    storage.write(path, fit, {**state, _ENTRY: asdict(reading)}, draws)


def rows_of(
    table: "Table",
    types: Mapping[str, str | None],
    what: str,
    most: int | None = None,
    copied: Sequence[str] = (),
    advice: Advice | None = None,
) -> "Iterator[FileRows]":
    """Yield the columns as these types, `most` rows at a time, with a progress bar.

    `advice` says what to do about a wrong cell.
    """
    with row_progress(what, 1.0) as advance, blamed_on(advice=advice):
        for rows in table.rows(types, most, copied):
            yield rows
            advance(rows.done, rows.frame.index[-1])


def read_whole(
    table: "Table", types: Mapping[str, str | None], advice: Advice | None = None
) -> "pd.DataFrame":
    """Return all rows of the columns as these types; an error if there are none."""
    import pandas as pd

    chunks = [rows.frame for rows in rows_of(table, types, "reading", advice=advice)]
    if not chunks:
        raise TableError(f"{table.path} has a header and no rows")
    return pd.concat(chunks)


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work, a place where no file can be made, or where an input is."""
    from bayesgen.io.storage import check_target

    with blamed_on(errors=(ValueError, OSError)):
        check_target(path, *inputs)


@contextmanager
def open_writer(
    path: Path, names: Sequence[str], make_schema: "Callable[[], pyarrow.Schema]"
) -> "Iterator[Callable[[pd.DataFrame], None]]":
    """Write a table atomically; call what it yields with data frames of successive rows.

    `make_schema` gives the arrow schema of a Parquet file.
    """
    import pandas as pd

    from bayesgen.io.storage import replacing

    with blamed_on(f"cannot write {path}", (OSError,)), replacing(path) as temporary:
        if file_format(path) == "csv":
            with open(temporary, "w", encoding="utf-8", newline="") as file:
                options = {"index": False, "lineterminator": "\n"}
                pd.DataFrame(columns=list(names)).to_csv(file, **options)
                yield lambda rows: rows.to_csv(file, header=False, **options)
            return
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        schema = make_schema()
        with ParquetWriter(temporary, schema) as parquet:
            yield lambda rows: parquet.write_table(
                pyarrow.Table.from_pandas(rows, schema, preserve_index=False)
            )
