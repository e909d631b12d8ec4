"""Tables in files, CSV and Parquet, read in chunks by pandas and pyarrow.

A chunk is a data frame whose index is the number of each row in the file, from 1 and without the
header. The type of a column is decided once, from all rows (`kinds`), and every chunk is read as
that type (`rows`): how a cell is read does not depend on the chunk.

- ``"number"``: every cell that is not missing is a number, as people write them
  (`literals.parse_written`). Whole numbers from 2**53 on are identifiers, hence text: float64 does
  not tell neighbours apart.
- ``"percent"``: every cell that is not missing is a percentage; ``5 %`` is 0.05.
- ``"boolean"``: every cell that is not missing is true or false.
- ``"text"``: all others. ``"empty"``: all cells are missing.
- ``"document"``: text as it stands; nothing is missing.

A cell of a CSV file is missing if it is one of `literals.MISSING` (empty, NA, NaN, null, ...),
blank, or a question mark. In a Parquet file a cell has the type that the file says, and null, NaN
and blank text are missing. A column of numbers but for one text is a column of numbers, and that
text is missing, if it has no letter or digit ("-"), or no digit beside ten numbers that differ.
"""

import csv
import io
import shlex
import warnings
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.encoding.column import EXACT
from bayesgen.encoding.literals import (
    MISSING,
    count,
    listed,
    parse_boolean,
    parse_number,
    parse_written,
    shown,
)
from bayesgen.errors import InputError, placed
from bayesgen.io.formats import (
    UNKNOWN,
    Reading,
    TableError,
    cells_of,
    content_format,
    decompressed,
    detect,
)
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

_CELLS = 1_000_000  # of a chunk, unless the caller says how many rows
_BUFFER = 1 << 16  # bytes of a Parquet column read ahead, in place of whole row groups
_HEAD = 1 << 18  # bytes of a CSV file that its dialect is detected on
_CLASSES = 1000  # spellings of labels that are counted
_FEW = 10  # numbers that differ, from which a word among them is a missing cell


class FileRows(NamedTuple):
    """Successive rows of a file."""

    frame: "pd.DataFrame"  # the columns as their types
    done: float  # the share of the file that has been read after them
    written: "pd.DataFrame"  # some columns as they stand in the file


def open_file(path: Path, reading: Reading | None = None) -> "CsvFile | ParquetFile":
    """Open a file, of the format that its first bytes show; TableError if it cannot be read."""
    reading = reading or Reading()
    try:
        how = content_format(path)
    except OSError as mistake:
        raise TableError(f"{path}: {mistake.strerror or mistake}") from mistake
    return ParquetFile(path, reading) if how == "parquet" else CsvFile(path, reading, how)


class _File:
    """A file of a table: its columns, and its rows as pandas reads them.

    Attributes
    ----------
    names : list of str
        Of the columns that have one, each of them once.
    n_nameless : int
        Columns that have none, such as row numbers that another program wrote.
    size : int
        In bytes.
    nominal : set of str
        Columns that the file itself calls categorical.
    schema : pyarrow.Schema or None
        None: the file says nothing about its columns.
    reading : Reading
        As given; after `kinds` with what was found in the columns.
    remarks : list of TableError
        What a user may doubt about the reading, after `kinds`.
    labels : Counter
        Spellings of the labels; after `kinds`.
    """

    names: list[str]
    n_nameless = 0
    nominal: frozenset[str] = frozenset()
    schema: "pyarrow.Schema | None" = None
    decimal = "."
    _missing: frozenset[str] = frozenset()  # texts

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path, self.size, self.reading = path, path.stat().st_size, reading
        self.remarks: list[TableError] = []
        self.labels: Counter[str] = Counter()

    def kinds(self, names: Sequence[str], target: str | None = None) -> dict[str, str]:
        """Return the type of each of some columns, from all rows; {} if there are no rows.

        The labels in the column `target` are not searched for missing numbers.
        """
        looks = {name: ColumnLook(self.reading.present) for name in names}
        n_rows = 0
        for frame, *_ in self.rows(dict.fromkeys(names), looked_at=True):
            n_rows += len(frame)
            for name, look in looks.items():
                with placed(str(self.path)):
                    look.add(frame[name], self.schema is None, self.decimal)
            if target in looks and len(self.labels) < _CLASSES:
                texts = frame[target].dropna().astype(str)
                self.labels.update(texts.value_counts().head(_CLASSES).to_dict())
        if not n_rows:
            return {}
        kinds = {name: look.kind(is_label=name == target) for name, look in looks.items()}
        self._keep(looks, kinds, target)
        return kinds

    def _keep(
        self, looks: "dict[str, ColumnLook]", kinds: dict[str, str], target: str | None
    ) -> None:
        """Keep what was found in the columns, and say what may be doubted."""
        codes = {}
        unknown = [name for name, look in looks.items() if look.n_unknown]
        if unknown:
            n = count(sum(looks[name].n_unknown for name in unknown), "cell")
            where = listed(map(repr, unknown), 5)
            self._remark(
                f"{n} of {where} with {UNKNOWN!r}, read as missing",
                f"if it is a category: --not-missing '{UNKNOWN}'",
            )
        for name, look in looks.items():
            if kinds[name] not in ("number", "percent"):
                continue
            if look.strays and name != target:
                (code,) = look.strays
                codes[name] = (code,)
                n = count(look.strays[code], "cell")
                self._remark(
                    f"column {name!r} holds numbers, and {shown(code)} in {n}, read as missing",
                    f"if it is a category: --not-missing {shlex.quote(code)}",
                )
            if look.example:
                value = parse_written(look.example, self.decimal)
                number = value[0] if value else np.nan
                self._remark(
                    f"column {name!r} holds {shown(look.example)}, read as the number {number:.12g}"
                )
        percent = {name for name, kind in kinds.items() if kind == "percent"}
        self.reading = replace(
            self.reading,
            codes=self.reading.codes | codes,
            percent=tuple(sorted(percent.union(self.reading.percent))),
        )

    def _remark(self, what: str, option: str | None = None) -> None:
        self.remarks.append(TableError(what, option=option))

    def rows(
        self,
        types: Mapping[str, str | None],
        n_rows: int | None = None,
        copied: Sequence[str] = (),
        *,
        looked_at: bool = False,
    ) -> Iterator[FileRows]:
        """Yield the columns of `types` as those types, `n_rows` at a time; None: as pandas reads.

        By default a chunk has about a million cells. Columns that are `copied` are yielded as they
        stand in the file, too. `looked_at`: a question mark is not yet missing.

        Raises
        ------
        TableError
            If the file cannot be read.
        InputError
            At a cell that is not of the type of its column, with file, row and column.
        """
        first = 1
        chunks = self._chunks(types, copied, n_rows or max(1, _CELLS // len(types)))
        unknown = () if looked_at or self.schema is not None else (UNKNOWN,)
        for frame, done in chunks:
            frame.index = range(first, first + len(frame))
            first += len(frame)
            columns = {}
            for name, kind in types.items():
                cells = frame[name]
                if name in copied:  # which was read as it stands
                    cells = cells.mask(cells.isin(self._missing))
                if kind != "document":
                    codes = (*unknown, *self.reading.missing, *self.reading.codes.get(name, ()))
                    codes = tuple(code for code in codes if code not in self.reading.present)
                    cells = _masked(cells, codes, self.decimal)
                with placed(str(self.path)):
                    columns[name] = as_type(cells, kind, self.decimal)
            yield FileRows(type(frame)(columns, copy=False), done, frame[list(copied)])

    def _chunks(
        self, types: Mapping[str, str | None], copied: Sequence[str], n_rows: int
    ) -> "Iterator[tuple[pd.DataFrame, float]]":
        raise NotImplementedError

    def _refuse_repeated(self) -> None:
        """Raise TableError if a name occurs twice."""
        if repeated := [name for name, n in Counter(self.names).items() if n > 1]:
            raise TableError(
                f"{self.path} has more than one column {min(repeated)!r}; rename or remove one"
            )


class CsvFile(_File):
    """A text of rows of cells, in the dialect of its first rows; blank lines are passed over."""

    def __init__(self, path: Path, reading: Reading, how: str) -> None:
        super().__init__(path, reading)
        self._how = how
        with self._readable():
            with decompressed(path, how) as (_, content):
                start = content.read(_HEAD)
                complete = len(start) < _HEAD
            head = self._decoded(start, complete)
            if "\0" in head:
                raise TableError(
                    f"{path} has a null character in its first rows",
                    "save it as UTF-8",
                    "if it is UTF-16: --encoding utf-16-le",
                )
            self.dialect = detect(path, head, complete, reading)
        self.decimal = self.dialect.decimal
        header = self.dialect.names
        self.names = [name for name in header if name]
        self.n_nameless = len(header) - len(self.names)
        self._header = [name or f"\0{k}" for k, name in enumerate(header)]
        self._missing = frozenset(MISSING) - {*reading.present}
        self._refuse_repeated()

    def _decoded(self, start: bytes, complete: bool) -> str:
        """Return the head of the text, and keep its encoding."""
        marked = start[:2] in (b"\xff\xfe", b"\xfe\xff")
        self.encoding = self.reading.encoding or ("utf-16" if marked else "utf-8-sig")
        for encoding in (self.encoding, self.reading.other_encoding):
            try:
                if encoding:
                    text = getincrementaldecoder(encoding)().decode(start, complete)
                    self.encoding = encoding
                    return text
            except UnicodeDecodeError:
                pass
            except LookupError:
                raise TableError(f"{encoding!r} is no encoding that Python knows") from None
        raise self._not_decoded()

    def _not_decoded(self) -> TableError:
        """Return the error that a byte is not of the encoding."""
        decoder, n_read, place = getincrementaldecoder(self.encoding)(), 0, 0
        with decompressed(self.path, self._how) as (_, content):
            try:
                while block := content.read(_HEAD):
                    decoder.decode(block)
                    n_read += len(block)
                decoder.decode(b"", True)
            except UnicodeDecodeError as mistake:
                place = n_read + mistake.start - (len(mistake.object) - len(block))
        name = "UTF-8" if self.encoding == "utf-8-sig" else self.encoding
        return TableError(
            f"{self.path} is not {name} at byte {place + 1}",
            "save it as UTF-8",
            "if it is Windows text: --encoding cp1252; or save it as UTF-8",
        )

    @contextmanager
    def _text(self, skip: int) -> Iterator[tuple]:
        """Open the file, whose position tells how much was read, and its text behind some lines."""
        with decompressed(self.path, self._how) as (file, content):
            text: Any = io.TextIOWrapper(content, self.encoding, newline="")
            for _ in range(skip):
                text.readline()
            yield file, _Uncommented(text, self.dialect.comment) if self.dialect.comment else text

    def _chunks(
        self, types: Mapping[str, str | None], copied: Sequence[str], n_rows: int
    ) -> "Iterator[tuple[pd.DataFrame, float]]":
        import pandas as pd

        texts = {name for name, kind in types.items() if kind == "text"}
        raw = {*copied, *(name for name, kind in types.items() if kind == "document")}
        missing = {name: sorted(self._missing) for name in self._header if name not in raw}
        options: dict = {}
        if np.lib.NumpyVersion(pd.__version__) < "3.1.0":  # later ones read every number exactly
            options["float_precision"] = "round_trip"
        checked = False

        def read_next() -> "pd.DataFrame | None":
            with warnings.catch_warnings():  # a first row with more cells than the header
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return next(chunks, None)

        with self._readable(), self._text(self.dialect.skip) as (file, text):
            chunks = pd.read_csv(
                text,
                header=None,
                names=self._header,
                index_col=False,
                dtype=dict.fromkeys(texts | raw, object),
                dtype_backend="numpy_nullable",
                keep_default_na=False,
                na_values=missing,
                chunksize=n_rows,
                low_memory=False,
                sep=r"\s+" if self.dialect.delimiter == " " else self.dialect.delimiter,
                decimal=self.decimal,
                skipinitialspace=self.dialect.spaced,
                quoting=csv.QUOTE_MINIMAL if self.dialect.quoted else csv.QUOTE_NONE,
                **options,
            )
            while (frame := read_next()) is not None:
                last = frame[self._header[-1]]
                if not checked and (last.isna() | (last == "")).fillna(True).any():
                    self._refuse_uneven_lines()
                    checked = True
                if len(frame):
                    yield frame, file.tell() / self.size

    def _refuse_uneven_lines(self) -> None:
        """Raise TableError at a row with more or fewer cells than columns, or without an end."""
        need, line = len(self._header), self.dialect.skip + 1
        with self._text(self.dialect.skip) as (_, text):
            for last_line, cells in cells_of(text, self.dialect):
                if len(cells) != need and "".join(cells).strip():
                    option = None
                    if (mark := cells[0][:1]) in ("#", "%", "/", "!"):
                        option = f"if it is a comment: --comment '{mark}'"
                    raise TableError(
                        f"{self.path}: line {line} has {len(cells)} cells, but there are "
                        f"{need} columns",
                        option=option,
                    )
                line = self.dialect.skip + last_line + 1

    def _open_quotation(self) -> TableError:
        """Return the error that a quotation has no end, with the line of its row."""
        line = self.dialect.skip + 1
        with self._text(self.dialect.skip) as (_, text):
            try:
                for last_line, _ in cells_of(text, self.dialect, strict=True):
                    line = self.dialect.skip + last_line + 1
            except csv.Error:
                pass
        return TableError(f"{self.path}: the quotation that opens in line {line} has no end")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Make errors of pandas and of the csv module a TableError."""
        try:
            yield
        except TableError:
            raise
        except UnicodeDecodeError:
            raise self._not_decoded() from None
        except (OSError, EOFError) as mistake:
            why = getattr(mistake, "strerror", None) or mistake
            raise TableError(f"{self.path} cannot be read: {why}") from mistake
        except (ValueError, Warning, csv.Error) as mistake:  # ParserError, ParserWarning
            if isinstance(mistake, InputError):
                raise
            if "EOF inside string" in str(mistake):
                raise self._open_quotation() from None
            self._refuse_uneven_lines()
            raise TableError(f"{self.path} cannot be read: {mistake}".strip()) from None


class _Uncommented:
    """A text whose lines of comment are blank."""

    def __init__(self, text, mark: str) -> None:
        self._text, self._mark = text, mark

    def read(self, size: int = -1) -> str:
        return "".join(map(self._cleared, self._text.readlines(size)))

    def __iter__(self) -> Iterator[str]:
        return map(self._cleared, self._text)

    def _cleared(self, line: str) -> str:
        return "\n" if line.startswith(self._mark) else line


class ParquetFile(_File):
    """A Parquet file; the index that pandas writes as a column is left out."""

    def __init__(self, path: Path, reading: Reading) -> None:
        super().__init__(path, reading)
        with self._open() as file:
            self.schema = file.schema_arrow
        self.names = [name for name in self.schema.names if not name.startswith("__index_level_")]
        self.nominal = frozenset(
            name for name in self.names if hasattr(self.schema.field(name).type, "value_type")
        )
        self._refuse_repeated()

    def _chunks(
        self, types: Mapping[str, str | None], copied: Sequence[str], n_rows: int
    ) -> "Iterator[tuple[pd.DataFrame, float]]":
        n_read = 0
        with self._open() as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=[*{*types, *copied}]):
                n_read += batch.num_rows
                yield batch.to_pandas(types_mapper=_nullable), n_read / file.metadata.num_rows

    @contextmanager
    def _open(self) -> Iterator:
        from pyarrow.parquet import ParquetFile as Arrow

        try:
            with Arrow(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
                yield file
        except InputError:
            raise
        except (ValueError, OSError, NotImplementedError, MemoryError) as mistake:
            raise TableError(f"{self.path} is not a readable Parquet file: {mistake}") from None


def _nullable(dtype: "pyarrow.DataType"):
    """Return the pandas type that keeps integers, truth values and text with missing cells."""
    import pandas as pd
    from pyarrow import types

    if types.is_integer(dtype):
        return pd.UInt64Dtype() if types.is_uint64(dtype) else pd.Int64Dtype()
    if types.is_boolean(dtype):
        return pd.BooleanDtype()
    return pd.StringDtype() if types.is_string(dtype) or types.is_large_string(dtype) else None


# ------------------------------------------------------------------------------------------------
# What the cells of a column stand for.


@dataclass
class ColumnLook:
    """What the cells of a column are, chunk by chunk."""

    present: tuple[str, ...] = ()  # texts that are no missing cell
    kinds: set[str] = field(default_factory=set)  # "boolean", "text", or "number" and its unit
    strays: Counter[str] = field(default_factory=Counter)  # texts that are no number, at most two
    numbers: set[float] = field(default_factory=set)  # some of those that differ
    example: str = ""  # of a number that is not written as Python does
    n_unknown: int = 0  # question marks

    def add(self, cells: "pd.Series", parse: bool, decimal: str) -> None:
        """Look at more cells; `parse`: text may stand for numbers, as in a CSV file.

        Raises
        ------
        InputError
            If they are of another type, such as dates.
        """
        from pandas.api import types

        cells = _readable(cells).dropna()
        if types.is_bool_dtype(cells.dtype):
            self.kinds |= {"boolean"} if len(cells) else set()
        elif types.is_numeric_dtype(cells.dtype):
            exact = not types.is_integer_dtype(cells.dtype)
            exact = exact or cells.between(1 - EXACT, EXACT - 1).all()
            self.kinds |= {"number" if exact else "text"} if len(cells) else set()
            self._count(cells.head(1000).unique().tolist())
        elif parse:
            self._add_texts(cells, decimal)
        elif any(cell.strip() for cell in cells.unique()):
            self.kinds.add("text")

    def _add_texts(self, cells: "pd.Series", decimal: str) -> None:
        counts = cells.value_counts(sort=False)
        for cell in counts.index.tolist():
            text = cell.strip()
            if not text:
                continue
            if text == UNKNOWN and UNKNOWN not in self.present:
                self.n_unknown += int(counts[cell])
            elif "text" in self.kinds or _is_identifier(text):
                self.kinds.add("text")
            elif parse_boolean(text) is not None:
                self.kinds.add("boolean")
            elif (number := parse_written(text, decimal)) is not None:
                self.kinds.add(f"number{number[1]}")
                self._count([number[0]])
                if not self.example and parse_number(text.replace(decimal, ".")) is None:
                    self.example = cell
            elif len({*self.strays, text}) <= 1:
                self.strays[text] += int(counts[cell])
            else:
                self.kinds.add("text")

    def _count(self, numbers: Iterable[float]) -> None:
        if len(self.numbers) < _FEW:
            self.numbers.update(numbers)

    def kind(self, is_label: bool = False) -> str:
        """Return the type of the column."""
        if not self.kinds and not self.strays:
            return "empty"
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "text"
        if not kind.startswith("number"):
            return "text" if self.strays else kind
        if is_label and (self.strays or self.example):
            return "text"
        if not all(map(self._stands_for_nothing, self.strays)):
            return "text"
        return "percent" if kind == "number%" else "number"

    def _stands_for_nothing(self, stray: str) -> bool:
        if stray in self.present:
            return False
        if not any(map(str.isalnum, stray)):
            return True
        return len(self.numbers) >= _FEW and not any(map(str.isdigit, stray))


def join_kinds(kinds: set[str]) -> str:
    """Return the type of a column whose files have these types."""
    kinds = kinds - {"empty"}
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"


def _masked(cells: "pd.Series", codes: Sequence[str], decimal: str) -> "pd.Series":
    """Return cells, those missing that are one of some codes, whether text or number."""
    if not codes:
        return cells
    from pandas.api import types

    if types.is_bool_dtype(cells.dtype):
        return cells
    parsed = [(parse_number(code), parse_written(code, decimal)) for code in codes]
    numbers = {plain for plain, _ in parsed if plain is not None}
    numbers |= {written[0] for _, written in parsed if written is not None}
    if types.is_numeric_dtype(cells.dtype):
        return cells.mask(cells.isin(numbers)) if numbers else cells

    def is_code(cell) -> bool:
        if not isinstance(cell, str) or cell.strip() in codes:
            return isinstance(cell, str)
        number = parse_written(cell, decimal) if numbers else None
        return number is not None and number[0] in numbers

    wrong = [cell for cell in cells.dropna().unique().tolist() if is_code(cell)]
    return cells.mask(cells.isin(wrong)) if wrong else cells


def _is_identifier(text: str) -> bool:
    """Tell whether a text is a whole number that float64 does not hold."""
    digits = text.strip().lstrip("+-").lstrip("0")
    if not digits.isdigit() or len(digits) < 16:
        return False
    return len(digits) > 16 or int(digits) >= EXACT  # Python refuses integers of 4300 digits


def as_type(cells: "pd.Series", kind: str | None, decimal: str = ".") -> "pd.Series":
    """Return one column of a chunk as a type; None: as it is.

    A truth value may be written as true, yes, y, t or 1, and false accordingly.

    Raises
    ------
    InputError
        At the first cell that is not of this type; its row is the cell's label in the index.
    """
    if kind is None:
        return cells
    from pandas.api import types

    cells = _readable(cells)
    if kind == "document":
        return _checked(cells, [isinstance(cell, str) for cell in cells], "text")
    numeric = types.is_numeric_dtype(cells.dtype)  # truth values too
    if kind == "text":
        return _texts(cells)
    if not numeric:
        parsed = {cell: _parsed(cell, kind, decimal) for cell in cells.dropna().unique()}
        wrong = {cell for cell, value in parsed.items() if value is None}
        cells = _checked(cells, ~cells.isin(wrong), _NEEDS[kind]).map(parsed)
    elif kind == "percent":
        _checked(cells, cells.isna(), _NEEDS[kind])
    elif kind == "number" and types.is_bool_dtype(cells.dtype):
        _checked(cells, cells.isna(), "a number")
    if kind == "boolean" and not types.is_bool_dtype(cells.dtype):
        _checked(cells, cells.isna() | cells.isin([0, 1]), "true or false")
    if kind == "boolean":
        return cells.astype(bool) if cells.notna().all() else _with_none(cells.astype("boolean"))
    numbers = cells.astype("Float64").to_numpy(np.float64, na_value=np.nan)
    series = type(cells)(numbers, cells.index, name=cells.name)
    return _checked(series, ~np.isinf(numbers), "a finite number")


_NEEDS = {
    "number": "a number",
    "percent": "a percentage, as in the rows of the fit",
    "boolean": "true or false",
}
_TRUTH = {"yes": True, "y": True, "t": True, "1": True}
_TRUTH |= {"no": False, "n": False, "f": False, "0": False}


def _parsed(cell: str, kind: str, decimal: str) -> float | None:
    """Return the number that a text stands for, 1 and 0 for truth values; NaN if it is blank."""
    text = cell.strip()
    if not text:
        return np.nan
    if kind == "boolean":
        value = parse_boolean(text)
        return _TRUTH.get(text.lower()) if value is None else value
    number = parse_written(text, decimal)
    if number is None or (number[1] == "%") != (kind == "percent"):
        return None
    return number[0]


def _texts(cells: "pd.Series") -> "pd.Series":
    """Return cells as text; whole numbers without a point, blank cells missing."""
    cells = cells.astype(object)
    written: dict[Any, str | None] = {}
    for cell in cells.dropna().unique():
        if not isinstance(cell, str):
            written[cell] = str(
                int(cell) if isinstance(cell, float) and cell.is_integer() else cell
            )
        elif not cell.strip():
            written[cell] = None
    if written:
        cells = cells.map(lambda cell: written.get(cell, cell), na_action="ignore").astype(object)
    return _with_none(cells)


def _with_none(cells: "pd.Series") -> "pd.Series":
    """Return cells as objects, None where they are missing."""
    cells = cells.astype(object)
    return cells.where(cells.notna(), None)


def _readable(cells: "pd.Series") -> "pd.Series":
    """Return numbers, truth values or text, in place of categories what they stand for.

    Raises
    ------
    InputError
        For another type, such as dates.
    """
    from pandas.api import types

    if (categories := getattr(cells.dtype, "categories", None)) is not None:
        cells = cells.astype(categories.dtype)
    if types.is_numeric_dtype(cells.dtype) or cells.dtype == "string":
        return cells
    held = types.infer_dtype(cells, skipna=True)
    if held == "decimal":
        return cells.astype("Float64")
    if held not in ("string", "empty"):
        raise InputError(
            f"column {cells.name!r} holds {held if cells.dtype == object else cells.dtype}: make "
            "it numbers, text or booleans, or leave it out",
            column=cells.name,
        )
    return cells


def _checked(cells: "pd.Series", right, need: str) -> "pd.Series":
    """Return cells, or raise InputError at the first that is not right."""
    right = np.asarray(right, dtype=bool)
    if not right.all():
        i = int(np.argmin(right))
        what = f"column {cells.name!r} holds {shown(cells.iloc[[i]].tolist()[0])}"
        raise InputError(what, f", which is not {need}", row=cells.index[i], column=cells.name)
    return cells


_MOST_BYTES = 1 << 30  # of the labels of a chunk


def labels(cells: "pd.Series") -> Array:
    """Return the labels of rows: text, booleans or numbers, whole ones as int64.

    They are objects with None for a missing one, if there is any.

    Raises
    ------
    InputError
        If they are texts that would take more than 1 GiB.
    """
    from pandas.api import types

    if (categories := getattr(cells.dtype, "categories", None)) is not None:
        cells = cells.astype(categories.dtype)
    if cells.isna().any():
        return _with_none(cells).to_numpy()
    cells = cells.infer_objects()
    if types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(bool)
    if types.is_integer_dtype(cells.dtype):
        return cells.to_numpy(np.int64)
    if types.is_float_dtype(cells.dtype):
        values = cells.to_numpy(np.float64)
        whole = np.all(np.trunc(values) == values) and np.all(np.abs(values) < EXACT)
        return values.astype(np.int64) if whole else values
    if not types.is_string_dtype(cells.dtype):
        return cells.to_numpy()
    longest = int(cells.str.len().max()) if len(cells) else 0
    if 4 * longest * len(cells) > _MOST_BYTES:
        raise InputError(
            f"column {cells.name!r} holds texts of up to {longest} characters, which are too long "
            "for labels of classes: name another column",
            column=cells.name,
        )
    return cells.to_numpy(str)
