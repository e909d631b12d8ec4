"""PyMC's log density for nutpie, called where PyTensor has put its machine code.

PyTensor keeps the compiled graph on disk (``pytensor.config.base_compiledir / "numba"``, by default
``~/.pytensor/numba``), by a hash of its operations and by numba's version; processes may share the
folder. nutpie wraps the function so that numba compiles it once more, in every process: 10 of the
12 seconds before the first draw of iris. Here the wrapper calls it by its address and has a few
lines of its own, compiled in a second. What is computed is the same function.

The builder of the wrapper is no public name of nutpie. Where it is not what it was in nutpie 0.16,
its own takes over.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_LOG_P = """
def log_p(dim, x_, out_, log_p_, data_):
    if dim != {n}:
        return -1
    shared = carray(data_, (), record)["shared"]
    total, out = carray(log_p_, (1,)), carray(out_, ({n},))
    value, gradient = call({arguments})
    if gradient.size != {n}:
        return 1
    total[0] = value.item()
    for i in range({n}):
        out[i] = gradient[i]
        if not isfinite(out[i]):
            return 3
    return 0 if isfinite(total[0]) else 4
"""
_ARRAY = 'carray(pointer(shared["data"]["{key}"][()]), {shape}, dtype_{i})'


def compile_model(model: Any) -> Any:
    """As ``nutpie.compile_pymc_model(model, var_names=[])``; call with the lock held."""
    import nutpie

    try:
        with _wrapper():
            return nutpie.compile_pymc_model(model, var_names=[])
    except _ChangedError as error:
        warnings.warn(
            f"this version of nutpie or numba is another than bayesgen knows ({error}): every "
            "process compiles its models anew, 10 s and more",
            UserWarning,
            stacklevel=2,
        )
        return nutpie.compile_pymc_model(model, var_names=[])


class _ChangedError(Exception):
    """nutpie or numba is not as it was."""


@contextmanager
def _wrapper() -> Iterator[None]:
    """Our builder of the wrapper in place of nutpie's."""
    from nutpie import compile_pymc as theirs

    own = getattr(theirs, "_make_c_logp_func", None)
    if own is None or not hasattr(theirs, "address_as_void_pointer"):
        raise _ChangedError("nutpie.compile_pymc")
    theirs._make_c_logp_func = _log_p
    try:
        yield
    finally:
        theirs._make_c_logp_func = own


def _log_p(n_dim: int, function: Any, data: Any, keys: list[str], arrays: Any) -> tuple[Any, Any]:
    """The function that nutpie calls for log density and gradient, and its C signature."""
    import numba
    from nutpie.compile_pymc import address_as_void_pointer

    types = numba.types
    own = [numba.typeof(arrays[key]) for key in keys]
    try:
        address = _address(function, (types.Array(types.float64, 1, "C"), *own))
    except (AttributeError, KeyError, TypeError, NotImplementedError) as error:
        raise _ChangedError(repr(error)) from error

    @numba.njit
    def call(*arguments: Any) -> Any:  # pragma: no cover - compiled
        return address(arguments)

    names: dict[str, Any] = {
        "carray": numba.carray,
        "isfinite": np.isfinite,
        "pointer": address_as_void_pointer,
        "record": data.dtype,
        "call": call,
    }
    given = [f"carray(x_, ({n_dim},))"]
    for i, key in enumerate(keys):
        lengths = "".join(f'shared["shape"]["{key}"][{k}], ' for k in range(arrays[key].ndim))
        names[f"dtype_{i}"] = arrays[key].dtype
        given.append(_ARRAY.format(key=key, shape=f"({lengths})", i=i))
    source = _LOG_P.format(n=n_dim, arguments=", ".join(given))
    exec(source, names)
    pointers = (types.CPointer(types.double),) * 3
    return names["log_p"], types.int64(types.uint64, *pointers, types.voidptr)


def _address(dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    """A function of numba's own that is called by its address, with one tuple of arguments."""
    from numba import types

    star = types.StarArgTuple.from_types(arguments)
    dispatcher.compile((star,))  # or read from disk
    result = dispatcher.overloads[(star,)]
    place = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    if not place:
        raise KeyError(result.fndesc.llvm_cfunc_wrapper_name)

    class Address(types.WrapperAddressProtocol):
        code = result  # keeps the machine code

        def __wrapper_address__(self) -> int:
            return int(place)

        def signature(self) -> Any:
            return result.signature.return_type(star)

    return Address()
