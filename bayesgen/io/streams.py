"""Rows that come in parts: one after another, `fit_stream`, or on many machines, `fit_dask`."""

import functools
import glob
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator, clone

from bayesgen.encoding.literals import did_you_mean
from bayesgen.encoding.tables import n_rows
from bayesgen.errors import placed, refuse_below, warn
from bayesgen.io import storage
from bayesgen.io.formats import CSV, PARQUET
from bayesgen.io.progress import row_progress
from bayesgen.io.tabular import CsvFile, join_kinds, labels, open_file

if TYPE_CHECKING:
    from bayesgen.inference.fitting import Learner
    from bayesgen.posterior.fitted import Fitted


def learner_of(clf: Any, what: str) -> "Learner":
    """Return the learner of a classifier that learns by adding up.

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
# Labelled rows in chunks, from an iterable or from files.


class Chunk(NamedTuple):
    """Labelled rows."""

    X: Any
    y: Any
    weight: Any
    place: str  # for errors
    done: float  # how much has been read after these rows: a number of chunks, or of bytes
    rows: Any = None  # numbers of the rows in their file


def _chunks_and_size(
    chunks: Any, target: str | None, weight: str | None, clf: Any
) -> tuple[Iterator[Chunk], float | None]:
    """Return chunks of what `fit_stream` takes, and `Chunk.done` of the last if it is known."""
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
            files = [open_file(path) for path in _expanded(chunks)]
            return _of_files(files, target, weight, clf), float(sum(file.size for file in files))
        if any(paths):
            raise TypeError("chunks mixes paths and rows; give the one or the other")
    if hasattr(chunks, "shape") or not isinstance(chunks, Iterable) or isinstance(chunks, Mapping):
        raise TypeError(
            f"chunks must be an iterable of chunks or paths of files, got {type(chunks).__name__}: "
            "rows that are all there go to clf.fit(X, y), or into a list, [(X, y)]"
        )
    if weight is not None and target is None:
        raise ValueError("sample_weight names a column of data frames: name target too")
    size = float(len(chunks)) if isinstance(chunks, Sized) else None
    return _of_rows(chunks, target, weight, clf), size


def _of_rows(
    chunks: Iterable[Any], target: str | None, weight: str | None, clf: Any
) -> Iterator[Chunk]:
    for k, item in enumerate(chunks):
        place = f"chunk {k}"
        if target is None:
            if not isinstance(item, tuple | list) or len(item) not in (2, 3):
                raise TypeError(
                    f"{place} is a {type(item).__name__}: a chunk must be (X, y) or (X, y, "
                    "weight), or a data frame, with target= the name of its labels"
                )
            X, y, weights = item if len(item) == 3 else (*item, None)
        else:
            if type(item).__name__ == "RecordBatch":
                import pyarrow

                item = pyarrow.Table.from_batches([item])
            frame = nw.from_native(item, pass_through=True)
            if not isinstance(frame, nw.DataFrame):
                raise TypeError(
                    f"{place} is a {type(item).__name__}: with target={target!r} every chunk must "
                    "be a data frame"
                )
            _refuse_absent((target, weight), frame.columns, place)
            y = frame[target].to_numpy()
            weights = None if weight is None else frame[weight].to_numpy()
            X = frame.drop([target] if weight is None else [target, weight]).to_native()
            with placed(place):
                X = clf.__bayesgen_learner__().reader.of_table(X)
        yield Chunk(X, y, weights, place, k + 1.0)


def _refuse_absent(names: Iterable[str | None], columns: list[str], place: str | Path) -> None:
    for name in names:
        if name is not None and name not in columns:
            raise ValueError(f"{place} has no column {name!r}{did_you_mean(name, columns)}")


def _of_files(files: list, target: str, weight: str | None, clf: Any) -> Iterator[Chunk]:
    """Yield rows of Parquet and CSV files, one after the other; all have the same columns."""
    first = files[0]
    _refuse_absent((target, weight), first.names, first.path)
    for file in files[1:]:
        if differ := sorted({*file.names} ^ {*first.names}):
            raise ValueError(
                f"{file.path} and {first.path} differ in their columns: {differ[0]!r} is in "
                "one of them only"
            )
    names = [name for name in first.names if name not in (target, weight)]
    types = _types([file for file in files if isinstance(file, CsvFile)], names, target, clf)
    types |= {} if weight is None else {weight: "number"}
    reader, done = clf.__bayesgen_learner__().reader, 0.0
    for file in files:
        place = str(file.path)
        own_types = types if isinstance(file, CsvFile) else dict.fromkeys(types)
        for frame, share, _ in file.rows(own_types):
            with placed(place):
                X, y = reader.of_table(frame[names]), labels(frame[target])
            weights = None if weight is None else frame[weight].to_numpy()
            yield Chunk(X, y, weights, place, done + share * file.size, frame.index)
        done += file.size


def _types(files: list[CsvFile], names: list[str], target: str, clf: Any) -> dict[str, str | None]:
    """Return the types of the columns of all CSV files, as a classifier takes them."""
    tags = clf.__sklearn_tags__().input_tags
    documents = tags.string and not tags.allow_nan
    looked_at = [target] if documents else [target, *names]
    each = [file.kinds(looked_at) for file in files]
    for file in files:
        for name, code in file.reading.codes.items():
            warn(f"{file.path}: column {name!r} holds numbers, and {code!r}, read as missing")
    types: dict[str, str | None] = dict.fromkeys(names)
    for name in looked_at:
        kind = join_kinds({kinds.get(name, "empty") for kinds in each})
        number = kind == "empty" or (kind == "text" and name != target and not tags.string)
        types[name] = "number" if number else kind
    return types


def _expanded(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files of paths, folders and patterns; those of one folder sorted by name."""
    expanded: list[Path] = []
    for item in paths:
        path = Path(item)
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if p.suffix.lower() in (*CSV, *PARQUET))
        elif path.exists():
            files = [path]
        else:
            files = sorted(map(Path, glob.glob(str(item), recursive=True)))
        if not files:
            what = "no .csv, .tsv or .parquet file in" if path.is_dir() else "no file"
            raise FileNotFoundError(f"{what} {str(item)!r}")
        expanded += files
    return expanded


# ------------------------------------------------------------------------------------------------
# Checkpoints: a model file whose state has the entry ``stream``, the number of chunks read.


class Checkpoint(NamedTuple):
    """The file of one stream."""

    path: Path
    clf: Any
    stated: dict[str, Any]  # JSON: the classifier, and what else decides what is learned
    every: int  # chunks between two checkpoints

    def resume(self) -> tuple[int, Any]:
        """Return the number of chunks that the file holds, and their statistics; 0 if it is new.

        Raises
        ------
        ValueError
            If the file is damaged, no checkpoint, or one of another classifier or stream.
        """
        if not self.path.is_file():  # a folder is refused by `write`
            return 0, None
        fit, state, draws = storage.read(self.path)
        if "stream" not in state:
            raise ValueError(f"{self.path} is a model, not the checkpoint of a stream: it is kept")
        before = state["stream"]["stated"]
        for name, value in self.stated.items():
            if before[name] != value:
                raise self.other(f"{name} was {before[name]!r} and is {value!r}")
        with storage.complete(self.path, type(self.clf).__name__):
            fitted = clone(self.clf).__bayesgen_load__(fit, state, draws)
        return state["stream"]["chunks"], self.clf.__bayesgen_learner__().gathered(fitted)

    def other(self, why: str) -> ValueError:
        """Return the error that this is the checkpoint of something else."""
        return ValueError(
            f"{self.path} is the checkpoint of another stream: {why}. Delete it to start anew, "
            "or name another file"
        )

    def write(self, fitted: "Fitted", n_chunks: int) -> None:
        """Replace the file by the fit to the first chunks."""
        fit, state, draws = self.clf.__bayesgen_record__(fitted)
        stream = {"stated": self.stated, "chunks": n_chunks}
        storage.write(self.path, fit, {**state, "stream": stream}, draws)


def fit_stream[Classifier: BaseEstimator](
    clf: Classifier,
    chunks: Any,
    *,
    target: str | None = None,
    sample_weight: str | None = None,
    classes: Any = None,
    checkpoint: Any = None,
    every: int = 10,
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
        ``dataset.to_batches()`` of pyarrow and ``frame.collect_batches()`` of polars are iterables
        of data frames.
    target, sample_weight : str, optional
        The columns of data frames and files that hold labels and weights.
    classes : array, optional
        All labels that may come, as in ``partial_fit``.
    checkpoint : path, optional
        A file that is replaced, whole or not at all, by the model so far and the number of chunks
        read; `bayesgen.load` reads it. If it is there, the run passes over so many chunks and
        continues: give the same chunks again, from the first. Chunks or files that came after a
        finished run are added to it.
    every : int
        Chunks between two checkpoints.
    progressbar : bool
        On a terminal.

    Returns
    -------
    clf

    Raises
    ------
    ValueError
        If there are no rows; on rows that the classifier does not take, with the chunk, or the file
        and the row; if the checkpoint is one of other arguments or another classifier.
    TypeError
        If a chunk is not labelled rows.
    FileNotFoundError

    See Also
    --------
    bayesgen.fit_dask : the same on many machines.

    Notes
    -----
    A Parquet file says what its columns hold. CSV files are read twice: a column holds booleans if
    all cells that are not missing are true or false, numbers if all are, and text otherwise; whole
    numbers from 2**53 on are text. A cell is missing if it is empty, NA, NaN, null, None or the
    like, or blank. The documents of a `MarkovNB` are the cells as they stand. A folder is not
    searched further down.

    A `LogLinearPool` is fitted to a uniform sample of at most 200 000 rows, and warns if it was
    less than all.

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
    learner = learner_of(clf, "fit_stream")
    rows_of_chunks, size = _chunks_and_size(chunks, target, sample_weight, clf)
    saved = None
    if checkpoint is not None:
        if learner.keeps_rows:
            raise ValueError("checkpoint= is not for a pool, which keeps a sample of the rows")
        refuse_below(1, every=every)
        name = re.sub(" at 0x[0-9a-f]+", "", clf.__repr__(N_CHAR_MAX=10**6))
        listed = None if classes is None else np.unique(np.asarray(classes)).astype(str).tolist()
        stated = {"the classifier": name, "target": target, "sample_weight": sample_weight}
        saved = Checkpoint(Path(checkpoint), clf, stated | {"classes": listed}, every)
    clf.fitted_ = learn(clf, rows_of_chunks, classes, saved, size, progressbar)
    return clf


def learn(
    clf: Any,
    chunks: Iterable[Chunk],
    classes: Any = None,
    saved: Checkpoint | None = None,
    size: float | None = None,
    progressbar: bool = True,
) -> "Fitted":
    """Return the fit to all chunks; `size` is `Chunk.done` of the last."""
    learner = clf.__bayesgen_learner__()
    n_read, state = (0, None) if saved is None else saved.resume()
    n_chunks, n_saved, numbered = 0, n_read, False
    with row_progress("learning", size, progressbar) as advance:
        for n_chunks, chunk in enumerate(chunks, 1):
            if n_chunks <= n_read:
                continue
            numbered = chunk.rows is not None
            some = chunk.weight is None or np.any(np.ma.getdata(chunk.weight))
            if some and (n_rows(chunk.X) or n_rows(chunk.y)):
                with placed(chunk.place, chunk.rows):
                    state = learner.gather(state, chunk.X, chunk.y, chunk.weight, classes)
            if saved is not None and state is not None and n_chunks % saved.every == 0:
                with warnings.catch_warnings():  # which may be over with the next rows
                    warnings.simplefilter("ignore")
                    saved.write(learner.settle(state), n_chunks)
                n_saved = n_chunks
            advance(chunk.done, 0 if state is None else state.n_rows)
    if saved is not None and n_chunks < n_read:
        raise saved.other(
            f"it holds {n_read} chunks, and there are {n_chunks} (an iterator that was used before "
            "starts where it was left: give a fresh one, from the first row)"
        )
    if state is None:
        raise ValueError("chunks holds no rows: there is nothing to learn from")
    with placed("", state.X.index if learner.keeps_rows and numbered else None):
        fitted = learner.settle(state)
    if saved is not None and n_saved < n_chunks:
        saved.write(fitted, n_chunks)
    return fitted


# ------------------------------------------------------------------------------------------------
# Rows that are spread over many blocks, threads, processes or machines.

_ARITY = 8  # parts merged at a time


def fit_dask[Classifier: BaseEstimator](
    clf: Classifier, X: Any, y: Any, sample_weight: Any = None
) -> Classifier:
    """Fit a classifier to a dask array or data frame; only sufficient statistics travel.

    Each block of rows becomes statistics where it lies; they are merged in a fixed tree. The result
    is that of one fit to all rows, up to rounding, and the same bit for bit however many workers
    there are, in whatever order they finish or die. Labels, categories and tokens are found block
    by block. It runs on the cluster of the active `dask.distributed.Client`, otherwise in threads.

    Parameters
    ----------
    clf : GenerativeClassifier
        What it learned before is forgotten, as by ``fit``; after an error it is as before.
    X : dask array (N, D) or data frame, or a chunked xarray.DataArray
        Blocks may be sparse and their sizes unknown. Chunks of columns are brought together. A 1-D
        array or series holds documents.
    y : dask array or series (N,), or an array in memory
        Chunks of other sizes than those of X are cut anew if the sizes are known.
    sample_weight : as y, optional

    Returns
    -------
    clf

    Raises
    ------
    TypeError
        If X is no dask collection.
    ValueError
        If X and y cannot be matched block by block; on rows that the classifier does not take, with
        the block; if there are no rows.

    See Also
    --------
    bayesgen.fit_stream : rows that arrive one chunk after another.

    Notes
    -----
    ``MixedNB`` needs ``columns=`` where a block may hold nothing but missing cells of a column of
    objects that holds numbers elsewhere.
    A `LogLinearPool` is fitted to a uniform sample of at most 200 000 rows.
    Predict block by block, as ``X.map_blocks(clf.predict)``.

    Examples
    --------
    >>> import dask.array as da
    >>> import bayesgen as bg
    >>> rng = da.random.default_rng(0)
    >>> X = rng.normal(size=(10_000, 3), chunks=(2_500, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> clf = bg.fit_dask(bg.GaussianNB(), X, y)
    >>> clf.n_rows_seen_
    10000
    >>> X.map_blocks(clf.predict, drop_axis=1, dtype=int).sum().compute() > 4000
    np.True_
    """
    try:
        import dask
    except ImportError:
        raise ImportError('fit_dask needs dask: pip install "bayesgen[dask]"') from None
    learner = learner_of(clf, "fit_dask")
    empty = dask.delayed(clone(clf))
    blocks = _blocks(X, y, sample_weight)
    parts = [dask.delayed(_learned)(empty, place, *block) for place, block in enumerate(blocks)]
    while len(parts) > 1:
        parts = [
            dask.delayed(_merged)(empty, parts[k : k + _ARITY])
            for k in range(0, len(parts), _ARITY)
        ]
    (state,) = dask.compute(*parts)
    if state is None:
        raise ValueError("X has no rows: there is nothing to learn from")
    clf.fitted_ = learner.settle(state)
    return clf


def _learned(clf: Any, place: int, X, y, weight):
    """Return statistics of one block; None for a block of no rows."""
    n_rows = X.shape[0]
    if n_rows != len(y):
        raise ValueError(
            f"block {place} of X has {n_rows} rows and that of y has {len(y)}: cut both alike"
        )
    if not n_rows or (weight is not None and not np.any(np.ma.getdata(weight))):
        return None
    with placed(f"block {place} (its rows count from 0)"):
        return clf.__bayesgen_learner__().gather(None, X, y, weight)


def _merged(clf: Any, parts: Sequence):
    """Return statistics of all; None if there are none."""
    there = [block for block in parts if block is not None]
    return functools.reduce(clf.__bayesgen_learner__().merge, there) if there else None


def _blocks(X, y, weight) -> list[tuple]:
    """Return delayed (X, y, weight) of each block of rows; weight may be None."""
    from dask.base import is_dask_collection

    X = _bare(X)
    if not is_dask_collection(X) or not hasattr(X, "to_delayed"):
        raise TypeError(
            f"X must be a dask array or data frame, got {type(X).__name__}: rows in memory go to "
            "clf.fit(X, y)"
        )
    if hasattr(X, "rechunk") and X.ndim > 1:
        X = X.rechunk({1: -1})
    parts = [_delayed(X), _delayed(_alongside(_bare(y), X, "y"))]
    if weight is None:
        parts.append([None] * X.npartitions)
    else:
        parts.append(_delayed(_alongside(_bare(weight), X, "sample_weight")))
    return list(zip(*parts, strict=True))


def _bare(value):
    """Return the dask array inside an xarray.DataArray."""
    return value.data if hasattr(value, "dims") and hasattr(value, "data") else value


def _delayed(value) -> list:
    """Return the blocks of a collection; what several have in common is computed once."""
    return np.ravel(np.asarray(value.to_delayed(optimize_graph=False), dtype=object)).tolist()


def _alongside(value, X, name: str):
    """Return `value` in the row blocks of X, or an error that says why that cannot be."""
    import dask.array as da
    from dask.base import is_dask_collection

    if not is_dask_collection(value):
        value = da.from_array(np.asanyarray(value), chunks=-1)  # a mask stays
    are_arrays = hasattr(X, "rechunk") and hasattr(value, "rechunk")
    if are_arrays and not (np.isnan(X.shape[0]) or np.isnan(value.shape[0])):
        if value.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {value.shape[0]}")
        return value.rechunk({0: X.chunks[0]})
    if X.npartitions != value.npartitions:
        raise ValueError(
            f"X has {X.npartitions} blocks of rows and {name} has {value.npartitions}: give both "
            "as dask collections with the same blocks, by compute_chunk_sizes() of arrays or "
            "repartition() of data frames"
        )
    return value
