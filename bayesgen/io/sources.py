"""Rows that arrive in chunks, from an iterable or from files, with a record of how far one is.

`open_source` makes a `Source` of what the user gives; `Source.chunks` yields its rows from the
start or from a position recorded earlier, once it has seen that what lies before is still the same:
of an iterable the contents, which are read again; of files names, sizes and times of change.
"""

import glob
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from bayesgen.encoding.literals import did_you_mean, shown
from bayesgen.encoding.tables import n_rows
from bayesgen.io.cells import joined
from bayesgen.io.formats import CSV, PARQUET, TableError
from bayesgen.io.tabular import CsvFile, Rows, open_file
from bayesgen.numerics.special import Array

Position = Mapping[str, Any]  # plain values that JSON can hold


class Chunk(NamedTuple):
    """Labelled rows."""

    X: Any
    y: Any
    weight: Any
    place: str  # for errors
    position: Position  # after these rows
    done: float  # how far that is, in the unit of `Source.size`


class Source(Protocol):
    """Labelled rows, chunk after chunk."""

    size: float | None

    def chunks(self, after: Position | None, record: bool) -> Iterator[Chunk]:
        """The rows that follow a position; `record`: whether positions will be asked for.

        Raises
        ------
        OtherSourceError
            If what lies before `after` is not what it was.
        """


class OtherSourceError(ValueError):
    """A position was recorded in rows that are not these."""


def open_source(chunks: Any, target: Any, weight: Any, wanted: str) -> Source:
    """A source from chunks, or from files if `chunks` is a path, a pattern, or a list of them.

    Parameters
    ----------
    target, weight : str or None
        Columns of data frames and files that hold labels and row weights.
    wanted : "numbers", "cells" or "documents"
        What columns of CSV files hold: numbers; what all their cells stand for, for which the files
        are read twice; or text as it is written.
    """
    for name, value in (("target", target), ("sample_weight", weight)):
        if value is not None and not isinstance(value, str):
            raise TypeError(
                f"{name} names a column of data frames or files, got {type(value).__name__}; "
                "labels and weights in arrays belong into the chunks: (X, y) or (X, y, weight)"
            )
    if isinstance(chunks, str | os.PathLike):
        chunks = [chunks]
    if isinstance(chunks, Sequence) and chunks:
        paths = [isinstance(item, str | os.PathLike) for item in chunks]
        if all(paths):
            if target is None:
                raise ValueError("target must name the column of the files that holds the labels")
            return Files(_expanded(chunks), target, weight, wanted)
        if any(paths):
            raise TypeError("chunks mixes paths and rows; give the one or the other")
    if hasattr(chunks, "collect_batches"):  # a polars LazyFrame
        chunks = chunks.collect_batches(maintain_order=True)
    elif hasattr(chunks, "to_batches") and not hasattr(chunks, "shape"):  # a pyarrow Dataset
        chunks = chunks.to_batches()
    if hasattr(chunks, "shape") or not isinstance(chunks, Iterable) or isinstance(chunks, Mapping):
        raise TypeError(
            f"chunks must be an iterable of chunks or paths of files, got {type(chunks).__name__}: "
            "rows that are all there go to clf.fit(X, y), or into a list, [(X, y)]"
        )
    if weight is not None and target is None:
        raise ValueError("sample_weight names a column of data frames: name target too")
    return Iterated(chunks, target, weight)


# ------------------------------------------------------------------------------------- iterables


class Iterated:
    """Chunks from any iterable; a position is their number and a digest of their contents."""

    def __init__(self, chunks: Iterable[Any], target: str | None, weight: str | None) -> None:
        self._chunks, self._target, self._weight = chunks, target, weight
        self.size = float(len(chunks)) if isinstance(chunks, Sized) else None

    def chunks(self, after: Position | None, record: bool) -> Iterator[Chunk]:
        """As in `Source`; chunks without rows are passed over."""
        consumed, known = (after["chunks"], after["digest"]) if after else (0, "")
        digest, n = "", 0
        if after is not None and "digest" not in after:
            raise OtherSourceError("it was made from files")
        for n, item in enumerate(self._chunks, 1):
            place = f"chunk {n - 1}"
            X, y, weight = self._split(item, place)
            if record:
                digest = _digest(digest, X, y, weight)
            if n < consumed:
                continue
            if n == consumed:
                if digest != known:
                    raise OtherSourceError(f"its first {n} chunks had other rows")
                continue
            if n_rows(X) or n_rows(y):
                position = {"chunks": n, "digest": digest}
                yield Chunk(X, y, weight, place, position, float(n))
        if n < consumed:
            raise OtherSourceError(
                f"it holds {consumed} chunks, and the iterable ends after {n} (an iterator that "
                "was used before starts where it was left: give a fresh one, from the first row)"
            )

    def _split(self, item: Any, place: str) -> tuple[Any, Any, Any]:
        """X, y and weight of a chunk as the user gives it."""
        if type(item).__name__ == "RecordBatch":
            import pyarrow

            item = pyarrow.Table.from_batches([item])
        if self._target is not None:
            frame = nw.from_native(item, pass_through=True)
            if not isinstance(frame, nw.DataFrame):
                raise TypeError(
                    f"{place} is a {type(item).__name__}: with target={self._target!r} every "
                    "chunk must be a data frame"
                )
            return _split_frame(frame, self._target, self._weight, place)
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise TypeError(
                f"{place} is a {type(item).__name__}: a chunk must be (X, y) or (X, y, weight), "
                "or a data frame, with target= the name of its labels"
            )
        X, y, *weight = item
        return X, y, weight[0] if weight else None


def _split_frame(frame: Any, target: str, weight: str | None, place: str) -> tuple[Any, Any, Any]:
    for name in (target, weight):
        if name is not None and name not in frame.columns:
            raise ValueError(f"{place} has no column {name!r}{did_you_mean(name, frame.columns)}")
    y = frame[target].to_numpy()
    weights = None if weight is None else frame[weight].to_numpy()
    return frame.drop([n for n in (target, weight) if n is not None]).to_native(), y, weights


def _digest(before: str, *parts: Any) -> str:
    """A number that stands for some arrays and all that came before."""
    out = sha256(before.encode())
    for part in parts:
        for name, values in _arrays(part):
            if values.dtype.kind in "OUST":  # equal strings may be different objects
                code = zlib.crc32(repr(values.tolist()).encode())
            else:
                code = _crc32(values)
            out.update(json.dumps([name, values.shape, values.dtype.str, code]).encode())
    return out.hexdigest()


def _crc32(values: Any) -> int:
    if values.flags.f_contiguous:
        values = values.T
    return zlib.crc32(np.ascontiguousarray(values).view(np.uint8).ravel())


def _arrays(part: Any) -> Iterator[tuple[str, Any]]:
    """The arrays that rows consist of, with names."""
    frame = nw.from_native(part, pass_through=True, allow_series=True)
    if part is None:
        yield "none", np.empty(0)
    elif sparse.issparse(part):
        rows = part.tocsr()
        yield str(rows.shape), rows.data
        yield "indices", rows.indices
        yield "indptr", rows.indptr
    elif isinstance(frame, nw.DataFrame):
        for series in frame.iter_columns():
            yield str(series.name), _plain(series)
    elif isinstance(frame, nw.Series):
        yield "series", _plain(frame)
    elif hasattr(part, "dtype") or hasattr(part, "__array__"):
        yield "array", np.asarray(part)
    else:  # lists: documents, rows of cells
        yield "list", np.array([repr(part)])


def _plain(series: Any) -> Any:
    values = series.to_numpy()
    return values if values.dtype.kind in "biufM" else np.array(series.to_list(), dtype=object)


# ----------------------------------------------------------------------------------------- files


class Files:
    """Parquet and CSV files, read one after the other, about a million cells at a time.

    All have the columns of the first. A column of a Parquet file has the type that the file says.
    What the labels of a CSV file are is decided with its features if "cells" are wanted, else chunk
    by chunk.
    """

    def __init__(self, paths: list[Path], target: str, weight: str | None, wanted: str) -> None:
        self._files = [open_file(path) for path in paths]
        first = self._files[0]
        for name in (target, weight):
            if name is not None and name not in first.names:
                raise ValueError(
                    f"{first.path} has no column {name!r}{did_you_mean(name, first.names)}"
                )
        self._names = first.names
        for file in self._files[1:]:
            if set(file.names) != set(first.names):
                differ = sorted(set(file.names) ^ set(first.names))
                raise ValueError(
                    f"{file.path} and {first.path} differ in their columns: {differ[0]!r} is in "
                    "one of them only"
                )
        self._target, self._weight, self._wanted = target, weight, wanted
        self.size: float | None = float(sum(file.size for file in self._files))

    def chunks(self, after: Position | None, record: bool) -> Iterator[Chunk]:
        """As in `Source`; files that came after those of the position are read too."""
        marks = [[f.path.name, f.size, f.path.stat().st_mtime_ns] for f in self._files]
        full, consumed = self._locate(after, marks) if after is not None else (0, 0)
        kinds = self._kinds() if self._wanted == "cells" else {}
        done = float(sum(file.size for file in self._files[:full]))
        for k, file in enumerate(self._files[full:], full):
            skipped = consumed if k == full else 0
            for b, rows in enumerate(file.rows(self._names), 1):
                if b <= skipped or not rows.n_rows:
                    continue
                place = f"{file.path}, rows from {rows.first}"
                frame = nw.from_native(self._typed(rows, kinds, place))
                X, y, weight = _split_frame(frame, self._target, self._weight, place)
                position = {"files": marks[: k + 1], "batch": b}
                yield Chunk(X, y, weight, place, position, done + rows.done * file.size)
            done += file.size

    def _typed(self, rows: Rows, kinds: Mapping[str, str], place: str) -> Any:
        """A pandas data frame of rows."""
        import pandas as pd

        if not rows.written:
            return rows.table.to_pandas()

        def values(name: str) -> Array:
            def refuse(cell: Any, i: int) -> float:
                raise TableError(
                    f"{place}: column {name!r} holds {shown(cell)} in row {rows.first + i}, which "
                    "is not a number"
                )

            cells = rows.cells(name)
            if name == self._target:
                return cells.labels(kinds.get(name) or cells.holds(), refuse)
            if name == self._weight or self._wanted == "numbers":
                return cells.numbers(refuse)
            return cells.raw() if self._wanted == "documents" else cells.values(kinds[name], refuse)

        columns = {name: values(name) for name in self._names}
        return pd.DataFrame({k: pd.Series(v, dtype=v.dtype) for k, v in columns.items()})

    def _kinds(self) -> dict[str, str]:
        """What the columns of all CSV files hold."""
        found: dict[str, set[str]] = {name: set() for name in self._names}
        for file in self._files:
            if isinstance(file, CsvFile):
                for rows in file.rows(self._names):
                    for name, kinds in found.items():
                        if "text" not in kinds:
                            kinds.add(rows.cells(name).holds())
        return {name: joined(kinds) for name, kinds in found.items()}

    def _locate(self, after: Position, marks: list[list[Any]]) -> tuple[int, int]:
        """Files read in full before a position, and batches of the next one."""
        if "files" not in after:
            raise OtherSourceError("it was made from an iterable")
        known = after["files"]
        for k, mark in enumerate(known):
            if k >= len(marks):
                raise OtherSourceError(f"it holds the file {mark[0]!r}, which is not given")
            if marks[k] != mark:
                what = "has changed since" if marks[k][0] == mark[0] else "stands in its place"
                raise OtherSourceError(f"file {k} was {mark[0]!r}; {marks[k][0]!r} {what}")
        return len(known) - 1, after["batch"]


def _expanded(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Files of paths, folders and patterns; those of one folder or pattern sorted by name."""
    out: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.suffix.lower() in (*CSV, *PARQUET))
        elif path.exists():
            found = [path]
        else:
            found = sorted(map(Path, glob.glob(str(given), recursive=True)))
        if not found:
            what = "no .csv, .tsv or .parquet file in" if path.is_dir() else "no file"
            raise FileNotFoundError(f"{what} {str(given)!r}")
        out += found
    return out
