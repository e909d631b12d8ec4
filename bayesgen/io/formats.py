"""Which files hold tables, and how CSV files separate their cells; imports nothing heavy.

A CSV file is UTF-8 text with a header. The comma separates; where the header line has none, the
semicolon, the tab or the bar does. In a ``.tsv`` file the tab separates and a quote is a character
like any other.
"""

import csv
from pathlib import Path
from typing import Any

from bayesgen.errors import InputError

CSV, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_SEPARATORS = ",;\t|"


class TableError(InputError):
    """A file that is no table, or not the one that is needed; the text names it."""


def file_format(path: Path) -> str:
    """``"csv"`` or ``"parquet"``, by the ending; TableError if it is another."""
    ending = path.suffix.lower()
    if ending in CSV:
        return "csv"
    if ending in PARQUET:
        return "parquet"
    more = "; decompress it first" if ending in _COMPRESSED else ""
    raise TableError(
        f"{path}: the name must end in .csv, .tsv or .parquet, to say what it holds{more}"
    )


def csv_dialect(path: Path, head: str) -> dict[str, Any]:
    """What `csv.reader` takes for the file whose first line is `head`."""
    if path.suffix.lower() == ".tsv":
        return {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return {"delimiter": next((s for s in _SEPARATORS if s in head), ",")}
