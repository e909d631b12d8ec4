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
    options: Any = {"nogil": True, "error_model": "numpy"}
    machine_code: Any
    try:
        machine_code = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        machine_code = numba.njit(**options)(function)
    return machine_code


def as_data(x: Array) -> Array:
    """The same memory in a form that few versions of a kernel serve: read-only, bits as uint8."""
    view = x.view(np.uint8) if x.dtype == bool else x.view()
    view.flags.writeable = False
    return view
