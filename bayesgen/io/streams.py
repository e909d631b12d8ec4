"""Rows that do not fit into memory, or arrive one chunk after another: `fit_stream`."""

import glob
import hashlib
import json
import os
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.base import clone

from bayesgen.encoding.literals import did_you_mean
from bayesgen.encoding.tables import n_rows
from bayesgen.errors import Facts, placed
from bayesgen.families.errors import PriorShapeError
from bayesgen.families.records import Record
from bayesgen.io import storage
from bayesgen.io.formats import CSV, PARQUET
from bayesgen.io.progress import row_progress
from bayesgen.io.storage import labels_to_json
from bayesgen.io.tabular import CsvFile, Rows, joined, open_file
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr
    from sklearn.utils import Tags

    from bayesgen.inference.fitting import Learner
    from bayesgen.posterior.fitted import Fitted


# ------------------------------------------------------------------------------------------------
# What a classifier must offer to learn from parts of the rows: its statistics add up.


class Additive(Protocol):
    """A classifier, fitted or not, that `fit_stream` and `fit_dask` take."""

    fitted_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""

    def __sklearn_tags__(self) -> "Tags":
        """Tell what X may hold."""

    def __bayesgen_learner__(self) -> "Learner":
        """Return its choices."""

    def __bayesgen_record__(
        self, fitted: Any, /
    ) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
        """Return what `storage.write` takes of a fit."""

    def __bayesgen_load__(
        self, fit: "xr.Dataset", state: Mapping[str, Any], draws: Mapping[str, "xr.Dataset"], /
    ) -> Any:
        """Return the fit that `storage.read` has read."""


def refuse_other(clf: Any, what: str) -> "Learner":
    """Raise unless `clf` learns by adding up; its choices.

    Raises
    ------
    TypeError
        If it is no classifier of this package, or a class rather than an instance.
    NoClosedFormError
        If its model has no sufficient statistics.
    """
    if isinstance(clf, type) or not hasattr(clf, "__bayesgen_learner__"):
        raise TypeError(f"clf must be a classifier such as GaussianNB(), got {clf!r}")
    learner: Learner = clf.__bayesgen_learner__()
    learner.refuse_no_statistics(what)
    return learner


# ------------------------------------------------------------------------------------------------
# Rows that arrive in chunks, from an iterable or from files, with a record of how far one is.
#
# `open_source` makes a `Source` of what the user gives; `Source.chunks` yields its rows from the
# start or from a position recorded earlier, once it has seen that what lies before is still the
# same: of an iterable the contents, which are read again; of files names, sizes and times of
# change.

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


class OtherSourceError(Facts, ValueError):
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
            cells = rows.cells(name)
            if name == self._target:
                return cells.labels(kinds.get(name) or cells.holds())
            if name == self._weight or self._wanted == "numbers":
                return cells.numbers()
            return cells.raw() if self._wanted == "documents" else cells.values(kinds[name])

        with placed(place):
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


# ------------------------------------------------------------------------------------------------
# How far a stream has been learned, in a file: the model of the rows so far, and where they end.
#
# A checkpoint is a model file (`bayesgen.load` reads it) whose state has the entry ``stream``: the
# arguments of the stream and the position in its source. It is written whole or not at all.

_SHARE = 20  # at most one part in so many of the time goes into writing, unless the user says when


class Checkpoint:
    """The file of one stream.

    Parameters
    ----------
    path : str or path
    clf : Additive
        Whose arguments must be those of the checkpoint.
    arguments : {name: JSON value}
        Those of the stream that decide what is learned.
    every : int or None
        Chunks between two checkpoints; None: as often as costs a twentieth of the time.
    """

    def __init__(
        self,
        path: Any,
        clf: Additive,
        arguments: Mapping[str, Any],
        every: int | None,
    ) -> None:
        if every is not None and (not isinstance(every, int | np.integer) or every < 1):
            raise ValueError(f"every must be a number of chunks >= 1, got {every!r}")
        self.path = Path(path)
        self._arguments = {
            **arguments,
            **{name: _mark(getattr(clf, name)) for name in clf.__bayesgen_learner__().unsaved},
        }
        self._every, self._chunks = every, 0
        self._written, self._cost = -np.inf, 0.0

    def resume(self, clf: Additive) -> tuple[Position | None, Any]:
        """The position after what the file holds, and its statistics; None if there is no file.

        Raises
        ------
        ValueError
            If the file is damaged, no checkpoint, or one of another classifier or stream.
        """
        if not self.path.is_file():  # a folder is refused by `write`
            return None, None
        fit, state, draws = storage.read(self.path)
        if "stream" not in state:
            raise ValueError(f"{self.path} is a model, not the checkpoint of a stream: it is kept")
        then, now = _told(state, state["stream"]["arguments"]), _told(_own(clf), self._arguments)
        for name in {**then, **now}:
            if then.get(name) != now.get(name):
                raise self.other(f"{name} was {then.get(name)!r} and is {now.get(name)!r}")
        with storage.complete(self.path, type(clf).__name__):
            found = clone(clf).__bayesgen_load__(fit, state, draws)
            gathered = clf.__bayesgen_learner__().gathered(found)
        return state["stream"]["position"], gathered

    def other(self, why: Any) -> ValueError:
        """The error that this is the checkpoint of something else."""
        return ValueError(
            f"{self.path} is the checkpoint of another stream: {why}. Delete it to start anew, "
            "or name another file"
        )

    def due(self) -> bool:
        """Whether to write one, asked after each chunk."""
        self._chunks += 1
        if self._every is not None:
            return self._chunks % self._every == 0
        return time.monotonic() - self._written >= _SHARE * self._cost

    def write(self, clf: Additive, fitted: Any, position: Position) -> None:
        """Replace the file by the fit to the rows up to a position."""
        start = time.monotonic()
        fit, state, draws = clf.__bayesgen_record__(fitted)
        stream = {"arguments": self._arguments, "position": dict(position)}
        storage.write(self.path, fit, {**state, "stream": stream}, draws)
        self._written = time.monotonic()
        self._cost = self._written - start


def _own(clf: Additive) -> dict[str, Any]:
    """The part of a model file's state that is known before the fit."""
    parameters = clf.get_params(deep=False)
    unsaved = clf.__bayesgen_learner__().unsaved
    return {
        "estimator": type(clf).__name__,
        "parameters": {k: storage.to_json(v, k) for k, v in parameters.items() if k not in unsaved},
    }


def _told(state: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """{what an error calls it: value} of all that must agree."""
    return {"the classifier": state["estimator"], **state["parameters"], **arguments}


def _mark(value: Any) -> str:
    """What tells an argument from another that a file cannot hold; functions by their names."""
    if isinstance(value, Record):
        arrays = {name: (v.shape, v.tolist()) for name, (_, v) in value.arrays().items()}
        digest = hashlib.sha256(repr((value.settings(), arrays)).encode()).hexdigest()
        return f"{type(value).__qualname__} {digest[:16]}"
    return str(getattr(value, "__qualname__", None) or repr(value))


def fit_stream[Classifier: Additive](
    clf: Classifier,
    chunks: Any,
    *,
    target: str | None = None,
    sample_weight: str | None = None,
    classes: Any = None,
    checkpoint: Any = None,
    every: int | None = None,
    progressbar: bool = True,
) -> Classifier:
    """Fit a classifier to rows that come in chunks, of which one at a time is in memory.

    The result is that of one fit to all rows, priors that the data scale included, up to rounding
    (a `LogLinearPool` samples: see Notes);
    the same chunks give the same numbers bit for bit, also if the run was killed in between and
    taken up again from its checkpoint. Classes, categories and tokens may appear late.

    Parameters
    ----------
    clf : GenerativeClassifier
        What it learned before is forgotten, as by ``fit``; after an error it is as before.
    chunks : iterable, or path(s)
        ``(X, y)`` or ``(X, y, weight)``, or data frames with `target`; or a path, a folder, a
        pattern such as ``"visits-*.parquet"``, or a list of these: Parquet and CSV files, read
        about a million cells at a time. All columns but `target` and `sample_weight` are features.
        A LazyFrame of polars 1.34 or newer, or a pyarrow Dataset, is a source of data frames.
    target, sample_weight : str, optional
        The columns of data frames and files that hold labels and weights.
    classes : array, optional
        All labels that may come, as in ``partial_fit``.
    checkpoint : path, optional
        A file that is replaced, whole or not at all, by the model of the rows so far; `bayesgen.
        load` reads it. If it is there, the run continues where it ends: a killed run ends with the
        same numbers, and files or chunks that came after a finished run are added to it. Give
        iterables from their first chunk again; they are compared with what was learned.
    every : int, optional
        Chunks between two checkpoints. None: as often as costs a twentieth of the time.
    progressbar : bool
        On a terminal.

    Returns
    -------
    clf

    Raises
    ------
    ValueError
        If there are no rows; on rows that the classifier does not take, with the chunk; if the
        checkpoint is one of other rows, arguments or another classifier.
    TypeError
        If a chunk is not labelled rows.
    FileNotFoundError

    Notes
    -----
    A Parquet file says what its columns hold. Cells of a CSV file stand for what they stand for on
    the command line: a cell is missing if it is empty, NA, NaN, null, None or the like, or blank.
    The features of most classifiers are numbers (true and false are 1 and 0). For those that take
    text the file is read twice: a column holds booleans if all cells that are not missing are true
    or false, numbers if all are, and text otherwise; whole numbers from 2**53 on are text. The
    documents of a `MarkovNB` are the cells as they stand. Files of a checkpoint are known by name,
    size and time of change. A folder is not searched further down.

    A `LogLinearPool` of more than `max_rows` rows reads them twice. A uniform sample of that many
    rows chooses the members, their views and bins, and the exponents. All rows are counted by the
    members, with categories that the sample does not show as missing cells. In memory are a chunk,
    the sample and the members' statistics.

    See Also
    --------
    bayesgen.fit_dask : the same on many machines.

    Examples
    --------
    >>> import numpy as np
    >>> import bayesgen as bg
    >>> rng = np.random.default_rng(0)
    >>> def months():
    ...     for _ in range(12):
    ...         y = rng.integers(0, 2, 1000)
    ...         yield rng.normal(size=(1000, 3)) + y[:, None], y
    >>> clf = bg.fit_stream(bg.GaussianNB(), months())
    >>> clf.n_rows_seen_
    12000
    """
    again: Any = refuse_other(clf, "fit_stream")
    source = open_source(chunks, target, sample_weight, _wanted(clf))
    saved = None
    if checkpoint is not None:
        listed = None if classes is None else labels_to_json(np.unique(np.asarray(classes)))
        arguments = {"target": target, "sample_weight": sample_weight, "classes": listed}
        saved = Checkpoint(checkpoint, clf, arguments, every)
        if again.passes > 1:
            raise ValueError("checkpoint= is not for a pool, which may read its rows twice")
    while again is not None:
        learner, after, state = again, None, None
        if saved is not None:
            after, state = saved.resume(clf)
        written = position = after
        with row_progress("learning", source.size, progressbar) as advance:
            try:
                for chunk in source.chunks(after, record=saved is not None):
                    position = chunk.position
                    if chunk.weight is None or np.any(
                        np.ma.getdata(chunk.weight)
                    ):  # else there is nothing to learn
                        with placed(chunk.place):
                            first = state is None and learner.passes == 1
                            X = chunk.X if target is None else learner.reader.of_table(chunk.X)
                            state = learner.gather(state, X, chunk.y, chunk.weight, classes)
                            if first:  # bad arguments show now, not after the last row
                                _settled_so_far(learner, state, classes)
                        if saved is not None and saved.due():
                            saved.write(clf, _settled_so_far(learner, state, classes), position)
                            written = position
                        advance(chunk.done, 0 if state is None else state.n_rows)
            except OtherSourceError as error:
                if saved is None:
                    raise
                raise saved.other(error) from None
        if state is None:
            raise ValueError("chunks holds no rows: there is nothing to learn from")
        if (again := learner.then(state)) is not None:
            if isinstance(chunks, Iterator):
                raise ValueError(
                    f"{state.n_rows} rows are more than max_rows: a pool reads them twice, and an "
                    "iterator ends after the first time. Give files, a list, or an object whose "
                    "__iter__ begins anew"
                )
            source = open_source(chunks, target, sample_weight, _wanted(clf))
    fitted = learner.settle(state)
    if saved is not None and position is not None and position is not written:
        saved.write(clf, fitted, position)
    clf.fitted_ = fitted
    return clf


def _wanted(clf: Additive) -> str:
    """What it takes of a CSV file: "numbers"; "cells", text and missing ones too; "documents"."""
    tags = clf.__sklearn_tags__().input_tags
    if not tags.string:
        return "numbers"
    return "cells" if tags.allow_nan else "documents"


def _settled_so_far(learner: "Learner", state: Any, classes: Any) -> "Fitted":
    """The fit to the rows so far; what they are warned of may be over with the next ones."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return learner.settle(state)
    except PriorShapeError as error:
        if classes is not None:
            raise
        raise ValueError(
            f"{error}. So far there are the classes {state.classes.tolist()}: if others come "
            "later, name them all in classes="
        ) from None
