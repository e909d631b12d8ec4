"""Rows and labels that NumPy cannot read as they are: lazy frames, arrays on a device, records."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def refuse_elsewhere(X: Any, name: str = "X") -> None:
    """Raise TypeError, with what to do, unless X is in memory; ValueError for records."""
    if isinstance(X, np.ndarray | list | tuple):
        structured = isinstance(X, np.ndarray) and X.dtype.names is not None
        some = not isinstance(X, np.ndarray) or (X.ndim == 1 and X.dtype.kind == "O")
        if structured or (some and len(X) and isinstance(X[0], Mapping)):
            what = "a structured array" if structured else "dictionaries"
            raise ValueError(f"{name} holds records ({what}): give pandas.DataFrame({name})")
        return
    what = f"{name} is a {type(X).__name__} of {type(X).__module__.partition('.')[0]}"
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # SciPy's dictionary of keys has one
        rows = (
            f"{name}.to_dataframe()" if hasattr(X, "to_dataframe") else f"pandas.DataFrame({name})"
        )
        raise TypeError(f"{what}, variables by name: give {rows}")
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise TypeError(
            f"{what}, a query that has not been run: give {name}.collect(), or fit files too large "
            "for memory by fit_stream"
        )
    if not (hasattr(X, "__array_namespace__") or hasattr(X, "__dlpack__")):
        return
    try:
        readable = np.asarray(X).dtype.kind != "O" or hasattr(X, "__array__")  # or it is text
        why = "it has no __array__"
    except (TypeError, RuntimeError, ValueError, BufferError) as error:
        readable, why = False, str(error).rstrip(".")
    if not readable:
        raise TypeError(
            f"{what} that NumPy cannot read ({why}): classifiers compute with NumPy on the CPU; "
            f"give {name}.detach().cpu().numpy() (PyTorch), {name}.get() (CuPy) or "
            f"numpy.from_dlpack({name})"
        ) from None
