"""Rows that are spread over many blocks, threads, processes or machines: `fit_dask`."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from bayesgen.errors import placed
from bayesgen.io.streams import Additive, refuse_other

_ARITY = 8  # parts merged at a time


def fit_dask[Classifier: Additive](
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
    learner = refuse_other(clf, "fit_dask")
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


def _learned(clf: Additive, place: int, X, y, weight):
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


def _merged(clf: Additive, parts: Sequence):
    """Return statistics of all; None if there are none."""
    there = [block for block in parts if block is not None]
    return functools.reduce(clf.__bayesgen_learner__().merge, there) if there else None


# ---------------------------------------------------------------------------------------- blocks


def _blocks(X, y, weight) -> list[tuple]:
    """Return delayed (X, y, weight) of each block of rows; weight may be None."""
    from dask.base import is_dask_collection

    named = {"X": _bare(X), "y": _bare(y), "sample_weight": _bare(weight)}
    X = named["X"]
    if not is_dask_collection(X) or not hasattr(X, "to_delayed"):
        raise TypeError(
            f"X must be a dask array or data frame, got {type(X).__name__}: rows in memory go to "
            "clf.fit(X, y)"
        )
    if _is_array(X) and X.ndim > 1 and X.numblocks[1] > 1:
        X = named["X"] = X.rechunk({1: -1})
    for name in ("y", "sample_weight"):
        if named[name] is not None:
            named[name] = _alongside(named[name], X, name)
    there = {name: value for name, value in named.items() if value is not None}
    # not optimised one by one: what X and y have in common keeps its name and is computed once
    columns = [
        np.ravel(np.asarray(there[name].to_delayed(optimize_graph=False), dtype=object)).tolist()
        if name in there
        else None
        for name in named
    ]
    n = len(columns[0] or ())
    return list(zip(*(column or [None] * n for column in columns), strict=True))


def _bare(value):
    """Return the dask array inside an xarray.DataArray."""
    return value.data if hasattr(value, "dims") and hasattr(value, "data") else value


def _is_array(value) -> bool:
    return hasattr(value, "rechunk")


def _alongside(value, X, name: str):
    """Return `value` in the row blocks of X, or an error that says why that cannot be."""
    import dask.array as da
    from dask.base import is_dask_collection

    if not is_dask_collection(value):
        value = np.asanyarray(value)  # a mask stays: it is refused, or says what is missing
        if not _is_array(X) or np.isnan(X.shape[0]):
            raise ValueError(
                f"{name} is in memory, and the blocks of X have unknown sizes: give {name} as a "
                "dask collection with the same blocks, or call compute_chunk_sizes() on X"
            )
        value = da.from_array(value, chunks=-1)
    if _is_array(value) and value.ndim == 2 and value.shape[1] == 1:
        value = value[:, 0]
    both = _is_array(X), _is_array(value)
    if all(both) and not (np.isnan(X.shape[0]) or np.isnan(value.shape[0])):
        if value.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {value.shape[0]}")
        return value.rechunk({0: X.chunks[0]})
    if not any(both) and X.known_divisions and value.known_divisions:
        if X.divisions != value.divisions:
            raise ValueError(
                f"X and {name} have partitions of different divisions: "
                f"{name}.repartition(divisions=X.divisions) makes them equal"
            )
        return value
    mine, theirs = _n_blocks(X), _n_blocks(value)
    if mine != theirs:
        raise ValueError(
            f"X has {mine} blocks of rows and {name} has {theirs}, of unknown sizes: make them "
            "equal, by compute_chunk_sizes() for arrays or repartition() for data frames"
        )
    return value


def _n_blocks(value) -> int:
    return int(value.numblocks[0] if _is_array(value) else value.npartitions)
