"""How kernels are compiled, and what data they are given."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

Array = np.ndarray


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Machine code at the first call: no Python lock, no checks of divisions, kept on disk.

    Where there is no folder to keep it in, every process compiles anew.
    """
    return _compiled(function, nogil=True, error_model="numpy")


def compiled_sums[F: Callable[..., Any]](function: F) -> F:
    """As `compiled`; the terms of a sum may be added in another order, many at a time.

    Equal input gives equal bits. ``x - x`` may be made 0, also where x is NaN or infinite.
    """
    return _compiled(function, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})


def _compiled(function: Any, **options: Any) -> Any:
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        return numba.njit(**options)(function)


def as_data(x: Array) -> Array:
    """The same memory in a form that few versions of a kernel serve: read-only, bits as uint8."""
    view = x.view(np.uint8) if x.dtype == bool else x.view()
    view.flags.writeable = False
    return view
