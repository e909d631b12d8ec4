"""How files hold tables: their format, their compression, and how cells are read.

What a file is, is seen from its first bytes: a Parquet file, or text, which gzip, bzip2, xz, zstd
or zip may have compressed. How text is cut into cells is detected on its first rows, unless a
`Reading` says it:

- Excel's line ``sep=;`` is passed over. Lines that begin with ``#`` are comments if the text begins
  with one.
- The delimiter is the semicolon, tab, bar or comma that cuts the rows into equally many cells.
  Blanks separate where none of them does and most cells are numbers. In a ``.tsv`` file the tab
  separates, and a quote is a character like any other.
- Up to ten lines with fewer cells, above a table of three columns or more, are titles.
- Numbers have a decimal comma if more cells need one ("1,5") than need a point ("1.5").
- The first row names the columns, unless it looks like the other rows (`looks_like_a_row`).

This module imports nothing heavy.
"""

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from bayesgen.encoding.literals import MISSING, Json, listed, parse_written, shown
from bayesgen.errors import InputError

CSV, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
_MAGIC = {
    b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip", b"PAR1": "parquet",
}  # fmt: skip


class TableError(InputError):
    """A file that is no table, or not the one that is needed; the text names it.

    Parameters
    ----------
    what : str
    advice : str, optional
        What to do, in terms of the library.
    option : str, optional
        The same in terms of the command line.
    """

    def __init__(self, what: str, advice: str | None = None, option: str | None = None) -> None:
        super().__init__(what, advice=advice)
        self.option = option or advice


@dataclass(frozen=True)
class Reading:
    """How cells are read, as the user has said or a fit has found; None: as the file looks."""

    delimiter: str | None = None  # " " stands for blanks
    decimal: str | None = None
    header: bool | None = None
    comment: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()  # texts and numbers that stand for a missing cell
    present: tuple[str, ...] = ()  # texts such as NA that do not
    codes: dict[str, str] = field(default_factory=dict)  # {column of numbers: text for missing}
    percent: tuple[str, ...] = ()  # columns of percentages
    labels: dict[str, str] = field(default_factory=dict)  # {folded label: label}
    unnamed: tuple[str, ...] = ()  # the features, where the fit's file had no header
    roles: dict[str, str] = field(default_factory=dict)  # columns: "text" of documents, "group"

    @classmethod
    def from_json(cls, record: Json) -> Self:
        """Return the reading of which a model file holds `dataclasses.asdict`."""
        values: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        return cls(**values)

    def over(self, other: Self) -> Self:
        """Return the other reading with what this one says."""
        said = {k: v for k, v in vars(self).items() if v not in (None, (), {})}
        return replace(other, **said)


def file_format(path: Path) -> str:
    """Return ``"csv"`` or ``"parquet"``, by the ending; TableError if it is another."""
    ending = path.suffix.lower()
    if ending == ".csv":
        return "csv"
    if ending in PARQUET:
        return "parquet"
    raise TableError(f"{path}: the name must end in .csv or .parquet, to say what it holds")


def content_format(path: Path) -> str:
    """Return ``"parquet"``, ``"text"``, or how the text is compressed, by the first bytes."""
    with open(path, "rb") as file:
        start = file.read(8)
    named = "parquet" if path.suffix.lower() in PARQUET else "text"
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), named)


@contextmanager
def decompressed(path: Path) -> Iterator[tuple[BinaryIO, Any]]:
    """Open a file, whose position tells how much was read, and the bytes of its text.

    Raises
    ------
    TableError
        If a zip file does not hold one table.
    """
    with open(path, "rb") as file, _text_of(path, file) as content:
        yield file, content


def _text_of(path: Path, file: BinaryIO) -> Any:
    compression = content_format(path)
    if compression in ("text", "parquet"):
        return file
    if compression == "xz":
        import lzma

        return lzma.open(file)
    if compression != "zip":
        import pyarrow

        return pyarrow.input_stream(file, compression=compression)
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as mistake:
        raise TableError(f"{path} is not a readable zip file: {mistake}") from None
    names = [name for name in archive.namelist() if not name.endswith("/")]
    names = [name for name in names if not name.startswith("__MACOSX")]
    if len(names) != 1:
        raise TableError(
            f"{path} is an archive of {len(names)} files; unpack it and name the table among them, "
            "or save the sheet of a workbook as CSV"
        )
    return archive.open(names[0])


# ------------------------------------------------------------------------------------------------
# The dialect of a text.

_DELIMITERS = ";\t|, "  # the first of those that cut rows equally well
_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_MOST_ROWS = 1000  # of the head that are looked at
_MOST = 0.9  # share of cells or rows that decides
_MOST_TITLES = 10


@dataclass(frozen=True)
class Dialect:
    """How a text is cut into cells.

    Parameters
    ----------
    delimiter, decimal, comment
        As in `Reading`.
    quoted : bool
        Whether a quote encloses a cell.
    spaced : bool
        Whether a blank follows each delimiter and is not part of the cell.
    names : tuple of str
        Of all columns; "" for a column without a name.
    skip : int
        Lines before the first row.
    titles : int
        Rows above the header that hold no table.
    """

    delimiter: str
    decimal: str = "."
    comment: str | None = None
    quoted: bool = True
    spaced: bool = False
    names: tuple[str, ...] = ()
    skip: int = 0
    titles: int = 0

    def __str__(self) -> str:
        """Return what is not usual about it: ``"semicolons, decimal comma"``."""
        unusual = [] if self.delimiter == "," else [_NAMES.get(self.delimiter, self.delimiter)]
        unusual += ["decimal comma"] if self.decimal == "," else []
        unusual += [f"comments by {self.comment}"] if self.comment else []
        unusual += [f"the header in line {self.skip}"] if self.titles else []
        return ", ".join(unusual)


class Row(NamedTuple):
    """The cells of a row, and its last line, from 1."""

    line: int
    cells: list[str]


def rows_of(lines: Iterable[str], dialect: Dialect, strict: bool = False) -> Iterator[Row]:
    """Yield the rows of a text without comments; a blank line has no cells, or a blank one.

    `strict`: csv.Error if a quotation has no end.
    """
    if dialect.delimiter == " ":
        lines = (" ".join(line.split()) for line in lines)
    quoting: Any = csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE
    csv.field_size_limit(sys.maxsize)  # of the process, as the module has it; pandas has none
    rows = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quoting=quoting,
        skipinitialspace=dialect.spaced,
        strict=strict,
    )
    for cells in rows:
        yield Row(rows.line_num, cells)


def detect(path: Path, head: str, complete: bool, reading: Reading) -> Dialect:
    """Return the dialect of a text by its head; `complete`: it is the whole text.

    Raises
    ------
    TableError
        If there are no names, or the first row looks like all others.
    """
    lines = list(io.StringIO(head, newline=""))
    if not complete:
        lines = lines[:-1] or lines
    mark = re.fullmatch(r"sep=(.)\s*", lines[0], re.IGNORECASE) if lines else None
    if mark:
        lines[0] = "\n"
    comment = reading.comment
    if comment is None and next(filter(str.strip, lines), "").startswith("#"):
        comment = "#"
    if comment:
        lines = ["\n" if line.startswith(comment) else line for line in lines]
    tabs = ".tsv" in (suffix.lower() for suffix in path.suffixes)
    delimiter = reading.delimiter or (mark and mark[1]) or ("\t" if tabs else None)
    dialect, rows = _cut(lines, delimiter, complete, quoted=not tabs)
    table = [row.cells for row in rows[dialect.titles :]]
    if not any(name.strip() for cells in table[:1] for name in cells):
        raise TableError(f"{path} is empty: its first line must name the columns")
    decimal = reading.decimal or _decimal(table[1:], dialect.delimiter)
    if reading.header is None and looks_like_a_row(table[0], table[1:], decimal):
        cells = listed((shown(cell, 20) for cell in table[0]), 4)
        raise TableError(
            f"{path}: its first row looks like the others ({cells})",
            "if it is no header, read the file by pandas.read_csv(header=None) and pass the frame",
            "if the file has no header: --no-header, and the columns are c1, c2 and so on; if this "
            "is the header: --header",
        )
    n_columns, header = len(table[0]), dialect.titles
    if reading.header is False:
        names = [f"c{j + 1}" for j in range(n_columns)]
        names = list(reading.unnamed) if len(reading.unnamed) == n_columns else names
        header -= 1
    else:
        names = [name.strip() for name in table[0]]
        if len(table) > 1 and all(len(cells) == n_columns + 1 for cells in table[1:]):
            if not any(cells[-1].strip() for cells in table[1:]):  # a delimiter ends each row
                names = [*names, ""]
            elif len({cells[0] for cells in table[1:]}) == len(table) - 1:  # R names the rows
                names = ["", *names]
    skip = rows[header].line if header >= 0 else bool(mark)
    return replace(dialect, decimal=decimal, comment=comment, names=tuple(names), skip=int(skip))


def _cut(
    lines: list[str], delimiter: str | None, complete: bool, quoted: bool
) -> tuple[Dialect, list[Row]]:
    """Return the dialect that cuts the lines best, and their rows."""
    best: tuple[Any, Dialect, list[Row]] | None = None
    for mark in [delimiter] if delimiter else _DELIMITERS:
        dialect = Dialect(mark, quoted=quoted)
        rows = _first_rows(lines, dialect, complete)
        sizes = [len(row.cells) for row in rows]
        common = Counter(sizes[1:] or sizes).most_common(1)[0][0] if rows else 0
        titles = 0
        if common > 2 and len(rows) > 3 and sizes[0] < common - 1:
            titles = sizes.index(common) if common in sizes[: _MOST_TITLES + 1] else 0
        share = sizes.count(common) / max(len(sizes) - titles, 1)
        fits = common > 1 and sizes[titles] in (common, common - 1)
        if mark == " " and not delimiter:
            cells = [cell for row in rows[1:] for cell in row.cells]
            fits &= best is None and share > _MOST and _n_numbers(cells, ".") >= len(cells) / 2
        score = fits and (sizes[titles] == common, share, common)
        if (fits or delimiter) and (best is None or score > best[0]):
            best = score, replace(dialect, titles=titles), rows
    if best is None:
        dialect = Dialect(",", quoted=quoted)
        return dialect, _first_rows(lines, dialect, complete)
    _, dialect, rows = best
    later = [cell for row in rows for cell in row.cells[1:] if cell]
    if later and dialect.delimiter != " " and all(cell.startswith(" ") for cell in later):
        dialect = replace(dialect, spaced=True)
        rows = _first_rows(lines, dialect, complete)
    return dialect, rows


def _first_rows(lines: list[str], dialect: Dialect, complete: bool) -> list[Row]:
    rows = [
        row for row in rows_of(lines, dialect) if len(row.cells) > 1 or "".join(row.cells).strip()
    ]
    return (rows if complete or len(rows) < 3 else rows[:-1])[:_MOST_ROWS]


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """Return the mark that more cells need; "1,234" is 1.234 to whom semicolons separate."""
    commas = points = either = 0
    for cell in (cell for row in rows for cell in row if "," in cell or "." in cell):
        comma, point = (parse_written(cell, mark) is not None for mark in ",.")
        commas += comma and not point
        points += point and not comma
        either += comma and point and "," in cell
    return "," if commas > points or (delimiter == ";" and either and not points) else "."


def looks_like_a_row(first: Sequence[str], others: list[list[str]], decimal: str = ".") -> bool:
    """Tell whether the first row of a file holds cells, not names.

    A text above a column of numbers is a name. Numbers above columns of numbers are cells, unless
    they are whole and differ, as years and counts do. Then columns of texts that repeat decide: the
    first row holds cells if each of its texts occurs again below.
    """
    columns = list(zip(*(row for row in others if len(row) == len(first)), strict=True))
    if len(columns) != len(first) or len(columns[0]) < 2:
        return False
    numbers, texts = [], []
    for cell, column in zip(first, columns, strict=True):
        below = [other for other in column if not _is_missing(other)]
        n_numbers = _n_numbers(below, decimal)
        if n_numbers and n_numbers >= _MOST * len(below):
            number = parse_written(cell, decimal)
            if number is not None:
                numbers.append(number)
            elif not _is_missing(cell) and cell not in column:
                return False
        elif below and len(set(below)) <= len(below) / 2 and not _is_missing(cell):
            texts.append(cell in column)
    if any(number % 1 != 0 for number in numbers) or len(set(numbers)) < len(numbers):
        return True
    return all(texts) and bool(texts or numbers)


def _n_numbers(cells: Iterable[str], decimal: str) -> int:
    return sum(parse_written(cell, decimal) is not None for cell in cells)


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING
