"""How files hold tables: their format, their compression, and how cells are read.

What a file is, is seen from its first bytes: a Parquet file, or text, which gzip, bzip2, xz, zstd
or zip may have compressed. This module imports nothing heavy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from bayesgen.encoding.literals import Json
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
