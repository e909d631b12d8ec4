"""Products of matrices on many threads, with bits that do not depend on how many there are.

BLAS divides a product among its threads, and other divisions round otherwise. Here it has one
thread, and what the caller has divided by a rule of its own is shared among threads of ours. SciPy
and NumPy offer no product that is added to a triangle, or done in place, without Python's lock:
the routines are called through ctypes, which drops it.
"""

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController

Array = np.ndarray
Share = Callable[[Callable[[Any], None], Iterable[Any]], None]

# --------------------------------------------------------------------------------------- routines


def add_gram(rows: Array, out: Array) -> None:
    """Add the upper triangle of ``rows.T @ rows`` to `out` (D, D), both C-ordered float64."""
    n, d = rows.shape
    _check(rows, out)
    if n and d:  # to BLAS all is transposed
        _routine("dsyrk")(
            b"L", b"N", _int(d), _int(n), _ONE, rows.ctypes, _int(d), _ONE, out.ctypes, _int(d)
        )


def multiply_by_lower(rows: Array, factor: Array) -> None:
    """Replace `rows` (n, D) by ``rows @ factor.T``, `factor` lower triangular."""
    n, d = rows.shape
    _check(rows, factor)
    if n and d:
        _routine("dtrmm")(
            b"L", b"U", b"T", b"N", _int(d), _int(n), _ONE,
            factor.ctypes, _int(d), rows.ctypes, _int(d),
        )  # fmt: skip


def _check(*arrays: Array) -> None:
    for a in arrays:
        if not a.flags.c_contiguous or a.dtype != np.float64 or a.ndim != 2:
            raise TypeError(f"not a C-ordered float64 matrix: {a.dtype}, strides {a.strides}")


@cache
def _routine(name: str) -> Callable[..., None]:
    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = (
        ctypes.c_char_p,
        [ctypes.py_object],
    )
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    pointer = api.PyCapsule_GetPointer(capsule, signature)
    arguments = [
        ctypes.c_char_p if "char" in a else ctypes.c_void_p for a in signature.decode().split(",")
    ]
    return ctypes.CFUNCTYPE(None, *arguments)(pointer)


def _int(n: int) -> Any:
    return ctypes.byref(ctypes.c_int(n))


_ONE = ctypes.byref(ctypes.c_double(1.0))

# ---------------------------------------------------------------------------------------- threads


@contextmanager
def sharing(pays: bool) -> Iterator[Share]:
    """``share(task, items)`` calls ``task(item)`` for each item, and returns when all are done.

    Parameters
    ----------
    pays : bool
        Whether threads share the items, in any order; else one after the other.

    Notes
    -----
    Within, the BLAS libraries of the process have one thread, a setting of the process that is
    then restored. In a thread other than the main one, the worker of something that is parallel
    already, it stays as it is: OpenBLAS takes more threads from the main thread alone, so that what
    stood before could not be restored. There the last bits may depend on BLAS's threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield _one_by_one
        return
    share = _one_by_one
    if pays:
        from bayesgen.numerics.kernels.threads import n_threads, shared

        threads = n_threads()
        if threads > 1:

            def share(task: Callable[[Any], None], items: Iterable[Any]) -> None:
                shared(task, items, threads)

    with _libraries().limit(limits=1, user_api="blas"):
        yield share


def _one_by_one(task: Callable[[Any], None], items: Iterable[Any]) -> None:
    for item in items:
        task(item)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: once
