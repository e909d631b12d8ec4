"""How kernels are compiled, and what data they are given.

Machine code is kept in the first of these folders that can be written: that of the environment
variable NUMBA_CACHE_DIR, ``__pycache__`` beside the sources, the user's cache (on Linux
``~/.cache/numba``). A read-only installation in a process without a home has none of the last two.
"""

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bayesgen.errors import warn

Array = np.ndarray


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Machine code at the first call: no Python lock, no checks of divisions, kept on disk.

    Where there is no folder to keep it in, every process compiles anew, and says so once.
    """
    # numba hands ``fastmath`` on to whatever is called and has none of its own: PyTensor's
    # programs would let sums be reordered, which makes x + 2^52 - 2^52 no longer round
    return _compiled(function, nogil=True, error_model="numpy", fastmath=False)


def compiled_sums[F: Callable[..., Any]](function: F) -> F:
    """Compile as `compiled` does; terms of a sum may be added in another order.

    Equal input gives equal bits. ``x - x`` may be made 0, also where x is NaN or infinite.
    """
    return _compiled(function, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})


def _compiled(function, **options):
    try:
        kernel: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        _say_that_nothing_is_kept()
        return numba.njit(**options)(function)
    # numba's cache knows a kernel by its own file; what it calls may stand in another
    cache: Any = getattr(kernel, "_cache", None)
    file: Any = getattr(cache, "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _digest())
    if hasattr(cache, "load_overload"):
        cache.load_overload = _compile_if_damaged(cache)
    return kernel


def _compile_if_damaged(cache) -> Callable[..., Any]:
    """Return the cache's look-up, which finds nothing in files that a crash has cut short."""
    load = cache.load_overload

    def load_overload(*signature):
        try:
            return load(*signature)
        except (EOFError, pickle.UnpicklingError, ValueError, AttributeError, IndexError):
            cache.flush()
            return None

    return load_overload


@cache
def _say_that_nothing_is_kept() -> None:
    warn(
        "there is no folder to keep bayesgen's machine code in, so that this process compiles it "
        "anew, some seconds for each kernel: set NUMBA_CACHE_DIR to a folder that can be written",
        UserWarning,
    )


@cache
def _digest() -> str:
    """Compute a digest of the sources of all kernels."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def version() -> int:
    """Return a number of the kernels' sources: PyTensor's cache knows operations by name."""
    return int(_digest()[:15], 16)


def as_data(x: Array) -> Array:
    """View memory in a form that few versions of a kernel serve: read-only, bits as uint8."""
    view = x.view(np.uint8) if x.dtype == bool else x.view()
    view.flags.writeable = False
    return view


def as_rows(x: Array) -> Array:
    """Rows as C-contiguous float32 or float64: the same memory, or a copy."""
    dtype = x.dtype if x.dtype in (np.float32, np.float64) else np.float64
    return as_data(np.ascontiguousarray(x, dtype=dtype))
