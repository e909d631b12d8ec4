"""Predictions for rows that are not in memory, and rows with labels: dask and xarray in and out.

Neither is imported here unless the caller's own rows have done so.
"""

import copy
import functools
import inspect
import sys
import uuid
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.encoding.labels import weights_by_class
from bayesgen.families.names import CLASS, OBS
from bayesgen.numerics.special import Array
from bayesgen.predict import probabilities as prediction


def row_by_row[Method: Callable[..., Any]](method: Method) -> Method:
    """A predict method whose rows may be a dask collection or an xarray.DataArray as well.

    dask: the result is a dask array with the same blocks of rows, computed when it is asked for, by
    the model as it is now. DataArray: the result is one with dims (obs_id, class) or (obs_id,) and
    the labels of rows and classes, chunked if X is.
    """

    @functools.wraps(method)
    def wrapper(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if _is_data_array(X):
            return _labelled(method, self, X, args, options)
        if _is_lazy(X):
            return _lazy(method, self, X, args, options)
        return method(self, X, *args, **options)

    return cast(Method, wrapper)


def _is_data_array(X: Any) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(X, getattr(xarray, "DataArray", ()))


def _is_lazy(X: Any) -> bool:
    if "dask" not in sys.modules:
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(X)) and hasattr(X, "to_delayed")


# ---------------------------------------------------------------------------------------- xarray


def _labelled(
    method: Callable[..., Any], clf: Any, X: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    import xarray as xr

    if OBS in X.dims:
        X = X.transpose(OBS, ...)
    dim = X.dims[0]
    if _is_lazy(X.data):
        clf.fitted_.reader.refuse_other_names(X)
        values = _lazy(method, clf, X.data, args, options)
    else:
        values = method(clf, X, *args, **options)  # X itself: some classifiers read its names
    rows = X.isel(dict.fromkeys(X.dims[1:], 0), drop=True)
    if dim != OBS:
        rows = rows.rename({dim: OBS})
    labels = rows.coords.to_dataset()
    dims: tuple[str, ...] = (OBS,)
    if values.ndim == 2:
        dims = (OBS, CLASS)
        labels = labels.drop_vars(CLASS, errors="ignore").assign_coords({CLASS: clf.classes_})
    return xr.DataArray(values, labels.coords, dims, name=method.__name__)


# ------------------------------------------------------------------------------------------ dask


def _lazy(
    method: Callable[..., Any], clf: Any, X: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    import dask
    import dask.array as da

    tail, dtype = _refuse_early(method, clf, X, args, options)
    model = copy.copy(clf)  # a later fit replaces attributes, and changes none in place
    given = dask.delayed((model, args, options), traverse=False)
    function = functools.partial(_block, method.__name__, tail, dtype)
    meta = np.empty((0,) * (1 + len(tail)), dtype)
    if hasattr(X, "rechunk"):
        if X.ndim > 1 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        how: dict[str, Any] = {"chunks": (X.chunks[0], *((n,) for n in tail))}
        if X.ndim == 2 and not tail:
            how["drop_axis"] = 1
        elif X.ndim == 1 and tail:
            how["new_axis"] = 1
        name = f"{method.__name__}-{uuid.uuid4().hex}"
        return da.map_blocks(function, X, given=given, name=name, dtype=dtype, meta=meta, **how)
    parts = [dask.delayed(function)(part, given=given) for part in X.to_delayed()]
    arrays = [da.from_delayed(part, (np.nan, *tail), dtype, meta=meta) for part in parts]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _refuse_early(
    method: Callable[..., Any], clf: Any, X: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[int, ...], Any]:
    """(shape of the result of one row, dtype); errors that need no row are raised here and now."""
    call = inspect.signature(method).bind(clf, X, *args, **options).arguments
    check_is_fitted(clf, "fitted_")
    prediction.check_method(call.get("method", "posterior_predictive"))
    if call.get("class_prior") is not None:
        weights_by_class(call["class_prior"], clf.classes_)
    width, expected = X.shape[1] if len(X.shape) > 1 else None, getattr(clf, "n_features_in_", None)
    if width is not None and expected is not None and width != expected:
        raise ValueError(
            f"X has {width} features, but {type(clf).__name__} is expecting {expected} features "
            "as input."
        )
    n_classes = len(clf.classes_)
    name = method.__name__
    if name == "predict":
        return (), clf.classes_.dtype
    two = name == "decision_function" and n_classes == 2
    return () if name == "score_samples" or two else (n_classes,), np.dtype(np.float64)


def _block(name: str, tail: tuple[int, ...], dtype: Any, X: Any, given: Any) -> Array:
    """The method's result for one block, which may have no rows."""
    model, args, options = given
    if not X.shape[0]:
        return np.empty((0, *tail), dtype)
    out: Array = getattr(model, name)(X, *args, **options)
    return out
