"""Rows that are spread over many blocks, threads, processes or machines: `fit_dask`."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from bayesgen.errors import placed
from bayesgen.io.streams import learner_of

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


# ---------------------------------------------------------------------------------------- blocks


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
