"""How files hold tables: their format, and the dialect of a CSV file; imports nothing heavy.

What a file is, is seen from its first bytes: a Parquet file, or text, which gzip, bzip2, xz, zstd
or zip may have compressed. How the text is cut into cells is detected on its first rows, up to
256 kB, unless a `Reading` says otherwise:

- Excel's line ``sep=;`` and lines that begin with ``#`` are passed over. The last of these lines is
  the header if it has as many cells as the rows, which have no other.
- The delimiter is the semicolon, tab, bar or comma that cuts the header and most rows into equally
  many cells. Blanks separate where none of them does and most cells are numbers. In a ``.tsv`` file
  the tab separates and a quote is a character like any other.
- Numbers have a decimal comma if more cells need one ("1,5") than need a point ("1.5").
- Up to ten lines with a single filled cell above a table of three columns or more are passed over.
- The first row names the columns, unless it looks like the other rows (`looks_like_a_row`).
"""

import csv
import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from bayesgen.encoding.literals import (
    BLANKS,
    CURRENCIES,
    MISSING,
    Json,
    listed,
    parse_written,
    shown,
)
from bayesgen.errors import InputError

CSV, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
UNKNOWN = "?"  # a missing cell of the UCI repository
_DELIMITERS = ";\t|,"  # the first of those that cut rows equally well
_NAMES = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "blanks"}
_MOST_ROWS = 1000  # of the head that are looked at
_MOST = 0.9  # share of cells or rows that decides
_MOST_TITLES = 10  # lines above the header
_YEARS = (1800, 2100)
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
    other_encoding: str | None = None  # of a file that is not UTF-8
    missing: tuple[str, ...] = ()  # texts and numbers that stand for a missing cell
    present: tuple[str, ...] = ()  # texts such as NA that do not
    codes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # missing in one column
    percent: tuple[str, ...] = ()  # columns of percentages
    labels: dict[str, str] = field(default_factory=dict)  # {folded label: label}
    unnamed: tuple[str, ...] = ()  # the features, where the fit's file had no header
    roles: dict[str, str] = field(default_factory=dict)  # columns: "text" of documents, "group"

    @classmethod
    def from_json(cls, record: Json) -> Self:
        """Return the reading of which a model file holds `dataclasses.asdict`."""
        values: dict = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        values["codes"] = {name: tuple(texts) for name, texts in record["codes"].items()}
        return cls(**values)

    def over(self, other: Self) -> Self:
        """Return the other reading with what this one says."""
        said = {k: v for k, v in vars(self).items() if v not in (None, (), {})}
        return replace(other, **said)


def file_format(path: Path) -> str:
    """Return ``"csv"`` or ``"parquet"``, by the ending; TableError if it is another."""
    ending = path.suffix.lower()
    if ending in CSV:
        return "csv"
    if ending in PARQUET:
        return "parquet"
    raise TableError(f"{path}: the name must end in .csv, .tsv or .parquet, to say what it holds")


def content_format(path: Path) -> str:
    """Return ``"parquet"``, ``"text"``, or how the text is compressed, by the first bytes."""
    with open(path, "rb") as file:
        start = file.read(8)
    named = "parquet" if path.suffix.lower() in PARQUET else "text"
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), named)


# ------------------------------------------------------------------------------------------------
# The dialect of a CSV file, by its first rows.


@dataclass(frozen=True)
class Dialect:
    """How a text is cut into cells.

    Parameters
    ----------
    delimiter, decimal, comment
        As in `Reading`.
    names : list of str
        Of all columns; blank for a column without a name.
    skip : int
        Lines before the first row.
    quoted : bool
        Whether a quote encloses a cell.
    spaced : bool
        Whether a blank follows each delimiter and is not part of the cell.
    titles : int
        Lines above the header that hold no table.
    """

    delimiter: str
    decimal: str = "."
    comment: str | None = None
    names: list[str] = field(default_factory=list)
    skip: int = 0
    quoted: bool = True
    spaced: bool = False
    titles: int = 0

    def __str__(self) -> str:
        """Return what is not usual about it: ``"semicolons, decimal comma"``."""
        unusual = [] if self.delimiter == "," else [_NAMES.get(self.delimiter, self.delimiter)]
        unusual += ["decimal comma"] if self.decimal == "," else []
        unusual += [f"comments by {self.comment}"] if self.comment else []
        unusual += [f"the header in line {self.skip}"] if self.titles else []
        return ", ".join(unusual)


def cells_of(
    lines: Iterable[str], dialect: Dialect, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the last line of each row, from 1, and its cells, none of a blank line.

    `strict`: csv.Error at a quotation without an end.
    """
    if dialect.delimiter == " ":
        lines = (" ".join(line.split()) for line in lines)
    quoting: Any = csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE
    limit = csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(
            lines,
            delimiter=dialect.delimiter,
            quoting=quoting,
            skipinitialspace=dialect.spaced,
            strict=strict,
        )
        for cells in rows:
            yield rows.line_num, cells
    finally:
        csv.field_size_limit(limit)


def detect(path: Path, head: str, complete: bool, reading: Reading) -> Dialect:
    """Return the dialect of a text by its head.

    Raises
    ------
    TableError
        If there are no names, or the first row looks like all others.
    """
    lines = list(io.StringIO(head, newline=""))
    if not complete:
        lines = lines[:-1] or lines
    mark = re.fullmatch(r"sep=(.)\s*", lines[0], re.IGNORECASE) if lines else None
    skip = 1 if mark else 0
    comment = reading.comment or "#"
    while skip < len(lines) and (lines[skip].startswith(comment) or not lines[skip].strip()):
        skip += 1
    comments = [line for line in lines[:skip] if line.startswith(comment)]
    tabs = ".tsv" in (suffix.lower() for suffix in path.suffixes)
    delimiter = reading.delimiter or (mark and mark[1]) or ("\t" if tabs else None)
    body = lines[skip:]
    titles = _titles(body, delimiter, quoted=not tabs)
    skip, body = skip + titles, body[titles:]
    rows, dialect = _cut(body, delimiter, complete, quoted=not tabs)
    decimal = reading.decimal or _decimal(rows[1:], dialect.delimiter)
    header, first_row = reading.header, 1
    if comments and reading.comment is None:
        marked = next(iter(cells_of([comments[-1][1:].lstrip()], dialect)), (0, []))[1]
        if len(marked) == len(rows[0] if rows else []) > 1 and _is_data(rows, decimal):
            rows, header, first_row = [[marked[0] or "#", *marked[1:]], *rows], True, 0
            comments.pop()
    if not rows or not any(name.strip() for name in rows[0]):
        raise TableError(f"{path} is empty: its first line must name the columns")
    if header is None and _is_data(rows, decimal):
        cells = listed((shown(cell, 20) for cell in rows[0]), 4)
        raise TableError(
            f"{path}: its first row looks like the others ({cells})",
            "if it is no header, read the file by pandas.read_csv(header=None) and pass the frame",
            "if the file has no header: --no-header, and the columns are c1, c2 and so on; if this "
            "is the header: --header",
        )
    names = [name.strip() for name in rows[0]]
    if header is False:
        numbered = [f"c{j + 1}" for j in range(len(names))]
        names = list(reading.unnamed) if len(reading.unnamed) == len(names) else numbered
        first_row = 0
    elif len(rows) > 1 and all(len(row) == len(names) + 1 for row in rows[1:]):
        if not any(row[-1].strip() for row in rows[1:]):  # a delimiter ends each row
            names = [*names, ""]
        elif len({row[0] for row in rows[1:]}) == len(rows) - 1:  # R names rows without a header
            names = ["", *names]
    before = skip
    if first_row:
        ends = (line for line, cells in cells_of(body, dialect) if not _is_blank(cells))
        before += next(ends)
    return replace(
        dialect,
        decimal=decimal,
        comment=comment if reading.comment or comments else None,
        names=names,
        skip=before,
        titles=titles,
    )


def _titles(lines: list[str], delimiter: str | None, quoted: bool) -> int:
    """Return how many lines with a single filled cell stand above a table of three columns."""
    for n in range(_MOST_TITLES + 1):
        rows, _ = _cut(lines[n : n + _MOST_ROWS // 10], delimiter, False, quoted)
        sizes = [len(row) for row in rows]
        if len(rows) < 4 or sum(map(bool, map(str.strip, rows[0]))) < 2:
            continue
        if n == 0 and sizes[1] - sizes[0] in (0, 1):
            return 0
        if sizes[0] > 2 and len(set(sizes)) == 1:
            return n
    return 0


def _cut(
    lines: list[str], delimiter: str | None, complete: bool, quoted: bool
) -> tuple[list[list[str]], Dialect]:
    """Return the rows that are cut best, and how."""
    best: tuple[Any, list[list[str]], Dialect] | None = None
    for mark in [delimiter] if delimiter else [*_DELIMITERS, " "]:
        dialect = Dialect(mark, quoted=quoted)
        rows = _rows(lines, dialect, complete)
        sizes = [len(row) for row in rows]
        common = Counter(sizes[1:] or sizes).most_common(1)[0][0] if rows else 0
        share = sizes.count(common) / max(len(sizes), 1)
        score = (sizes[:1] == [common], share, common)
        fits = common > 1 and sizes[0] in (common, common - 1)
        if mark == " " and not delimiter:
            cells = [cell for row in rows[1:] for cell in row]
            fits &= best is None and share > _MOST and _numbers(cells, ".") >= len(cells) / 2
        if delimiter or (fits and (best is None or score > best[0])):
            best = score, rows, dialect
    if best is None:
        dialect = Dialect(",", quoted=quoted)
        return _rows(lines, dialect, complete), dialect
    _, rows, dialect = best
    later = [cell for row in rows for cell in row[1:] if cell]
    if later and dialect.delimiter != " " and all(cell.startswith(" ") for cell in later):
        dialect = replace(dialect, spaced=True)
        rows = _rows(lines, dialect, complete)
    return rows, dialect


def _rows(lines: list[str], dialect: Dialect, complete: bool) -> list[list[str]]:
    rows = [cells for _, cells in cells_of(lines, dialect) if not _is_blank(cells)]
    return (rows if complete or len(rows) < 3 else rows[:-1])[:_MOST_ROWS]


def _is_blank(cells: list[str]) -> bool:
    return len(cells) < 2 and not "".join(cells).strip()


_COMMA = re.compile(r"[-+]?(\d+,(\d{1,2}|\d{4,})|0?,\d+|\d{1,3}(\.\d{3})+,\d+)([eE][-+]?\d+)?")
_POINT = re.compile(r"[-+]?(\d+\.(\d{1,2}|\d{4,})|0?\.\d+|\d{1,3}(,\d{3})+\.\d+)([eE][-+]?\d+)?")
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """Return the mark that more cells need; "1,234" is 1.234 to whom semicolons separate."""
    strip = f"%()\N{MINUS SIGN}{CURRENCIES}{BLANKS}"
    cells = [cell.strip(strip) for row in rows for cell in row]
    commas = sum(_COMMA.fullmatch(cell) is not None for cell in cells)
    points = sum(_POINT.fullmatch(cell) is not None for cell in cells)
    if not commas and not points and delimiter == ";":
        commas = sum(_EITHER.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."


# --------------------------------------------------------------------------------- the header


def _is_data(rows: list[list[str]], decimal: str) -> bool:
    return bool(rows) and looks_like_a_row(rows[0], rows[1:], decimal)


def looks_like_a_row(first: Sequence[str], others: list[list[str]], decimal: str = ".") -> bool:
    """Tell whether the first row of a file holds cells, not names.

    A text above a column of numbers is a name. Numbers above columns of numbers are cells, unless
    they may be names: years, or whole numbers that count on by equal steps (0, 1, 2), not all
    of them between the numbers below. Then, and where no column has numbers, columns of texts that
    repeat decide: the first row holds cells if each of its texts occurs again below.
    """
    columns = list(zip(*(row for row in others if len(row) == len(first)), strict=True))
    if len(columns) != len(first) or len(columns[0]) < 2:
        return False
    texts, values, between = [], [], True
    for cell, column in zip(first, columns, strict=True):
        below = [other for other in column if not _is_missing(other)]
        if _mostly_numbers(below, decimal):
            number = parse_written(cell, decimal)
            if number is not None:
                numbers = [n[0] for other in below if (n := parse_written(other, decimal))]
                values.append(number[0])
                between &= min(numbers) <= number[0] <= max(numbers)
            elif not _is_missing(cell) and cell not in column:
                return False
        elif below and len(set(below)) <= len(below) / 2 and not _is_missing(cell):
            texts.append(cell in column)
    if values and (between or not _may_be_names(values)):
        return True
    return bool(texts) and all(texts)


def _may_be_names(values: list[float]) -> bool:
    if any(value % 1 != 0 for value in values):
        return False
    steps = {b - a for a, b in itertools.pairwise(values)}
    counted = len(steps) == 1 and 0 not in steps and (len(values) > 2 or steps == {1})
    return counted or all(_YEARS[0] <= value <= _YEARS[1] for value in values)


def _mostly_numbers(cells: Sequence[str], decimal: str) -> bool:
    numbers = _numbers(cells, decimal)
    return numbers > 0 and numbers >= _MOST * len(cells)


def _numbers(cells: Sequence[str], decimal: str) -> int:
    return sum(parse_written(cell, decimal) is not None for cell in cells)


def _is_missing(cell: str) -> bool:
    return not cell.strip() or cell.strip() in MISSING or cell.strip() == UNKNOWN


# ------------------------------------------------------------------------------------------------
# The bytes of a text, without their compression.


@contextmanager
def decompressed(path: Path, how: str) -> Iterator[tuple]:
    """Open the file itself, whose position tells how much was read, and the bytes it holds.

    Raises
    ------
    TableError
        If a zip file does not hold one table.
    """
    with open(path, "rb") as file:
        if how == "text":
            yield file, file
        elif how == "zip":
            import zipfile

            try:
                archive = zipfile.ZipFile(file)
            except zipfile.BadZipFile as mistake:
                raise TableError(f"{path} is not a readable zip file: {mistake}") from None
            names = [name for name in archive.namelist() if not name.endswith("/")]
            names = [name for name in names if not name.startswith("__MACOSX")]
            if "[Content_Types].xml" in names:
                raise TableError(f"{path} is an Excel workbook; save its sheet as CSV")
            if len(names) != 1:
                raise TableError(
                    f"{path} holds {len(names)} files; unpack it and name the table among them"
                )
            with archive.open(names[0]) as content:
                yield file, content
        else:
            import bz2
            import gzip
            import lzma

            if how == "zstd":
                import pyarrow

                content = pyarrow.input_stream(file, compression="zstd")
            else:
                opened: dict = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
                content = opened[how](file)
            with content:
                yield file, content
