"""Rows that do not fit into memory, or arrive one chunk after another: `fit_stream`."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bayesgen.io.additive import Additive, Gathered, Learner, refuse_other
from bayesgen.io.checkpoint import Checkpoint
from bayesgen.io.json_values import labels_to_json
from bayesgen.io.progress import row_progress
from bayesgen.io.sources import OtherSourceError, open_source


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

    The result is that of one fit to all rows, priors that the data scale included, up to rounding;
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
    learner = refuse_other(clf, "fit_stream")
    source = open_source(chunks, target, sample_weight, _wanted(clf))
    saved = None
    if checkpoint is not None:
        listed = None if classes is None else labels_to_json(np.unique(np.asarray(classes)))
        arguments = {"target": target, "sample_weight": sample_weight, "classes": listed}
        saved = Checkpoint(checkpoint, clf, arguments, every)
    state: Gathered | None = None
    with row_progress("learning", source.size, progressbar) as advance:
        after = None
        if saved is not None:
            after, state = saved.resume(clf)
        written = position = after
        try:
            for chunk in source.chunks(after, record=saved is not None):
                position = chunk.position
                if chunk.weight is None or np.any(
                    np.ma.getdata(chunk.weight)
                ):  # else there is nothing to learn
                    with _blamed_on(chunk.place):
                        first = state is None
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


def _settled_so_far(learner: Learner, state: Any, classes: Any) -> Any:
    """The fit to the rows so far; what they are warned of may be over with the next ones."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return learner.settle(state)
    except ValueError as error:
        if classes is not None or "broadcast" not in str(error):
            raise
        raise ValueError(
            f"{error}. So far there are the classes {state.classes.tolist()}: if others come "
            "later, name them all in classes="
        ) from None


@contextmanager
def _blamed_on(place: str) -> Iterator[None]:
    """Errors of the library about rows, with the chunk that they are in."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"{place}: {error}") from error
