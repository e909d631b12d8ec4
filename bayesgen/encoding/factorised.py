"""Text as codes: the distinct texts of a column, and which of them each cell holds.

Text is compared and judged once for each distinct value, never cell by cell in Python.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pyarrow

MANY = 1 << 13  # cells for which pandas is worth being imported
_BLOCK = 1 << 14  # strings, whose digests stay in the second-level cache
_SOME = 1000  # strings among which the distinct ones are looked for first
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, hence a permutation modulo 2**64


class Factorised(NamedTuple):
    """Cells as positions among the distinct ones."""

    codes: Array  # (N,) int, -1 where missing
    found: list[Any]  # in no particular order; each occurs


def of_objects(cells: Array) -> Factorised | None:
    """Of an (N,) object array of text and missing cells; None if it holds other things or none."""
    if len(cells) >= MANY:
        import pandas as pd

        if pd.api.types.infer_dtype(cells, skipna=True) != "string":
            return None
        codes, found = pd.factorize(cells)
        return Factorised(codes, found.tolist())
    values = cells.tolist()
    if not all(issubclass(kind, str) or kind is type(None) for kind in set(map(type, values))):
        return None
    found = [value for value in dict.fromkeys(values) if value is not None]
    place = {value: k for k, value in enumerate(found)} | {None: -1}
    codes = np.fromiter(map(place.__getitem__, values), np.intp, len(values))
    return Factorised(codes, found) if found else None


def of_strings(values: Array) -> Factorised:
    """Of an (N,) array of NumPy's strings of fixed length, which hold no missing cells."""
    n = len(values)
    words = np.ascontiguousarray(values).view(np.uint32).reshape(n, -1)
    digest = np.zeros(n, dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        own = digest[start : start + _BLOCK]
        for letters in words[start : start + _BLOCK].T:
            own ^= letters
            own *= _MULTIPLIER
            own ^= own >> np.uint64(32)
    known = np.unique(digest[:: max(1, n // _SOME)])  # most often these are all
    codes = np.searchsorted(known, digest)
    if not np.array_equal(known.take(codes, mode="clip"), digest):
        codes = np.searchsorted(np.unique(digest), digest)
    first = np.empty(codes.max(initial=-1) + 1, dtype=np.intp)
    first[codes[::-1]] = np.arange(n)[::-1]
    if np.array_equal(words[first].take(codes, axis=0), words):
        return Factorised(codes, values[first].tolist())
    found, codes = np.unique(values, return_inverse=True)  # two strings of one digest
    return Factorised(codes.ravel(), found.tolist())


def of_arrow(array: "pyarrow.Array | pyarrow.ChunkedArray") -> Factorised:
    """Of an Arrow column of any type that Arrow can encode by a dictionary; nulls are missing."""
    import pyarrow
    from pyarrow import types

    if not types.is_dictionary(array.type):
        array = array.dictionary_encode()
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.unify_dictionaries()
        if not array.num_chunks:
            return Factorised(np.empty(0, dtype=np.intp), [])
        indices, found = [chunk.indices for chunk in array.chunks], array.chunk(0).dictionary
    else:
        indices, found = [array.indices], array.dictionary
    codes = np.concatenate([_codes(part) for part in indices])
    used = np.flatnonzero(np.bincount(codes + 1, minlength=len(found) + 1)[1:])
    if len(used) < len(found):  # a dictionary may be that of a much larger column
        place = np.full(len(found) + 1, -1)
        place[used] = np.arange(len(used))
        codes, found = place[codes], found.take(pyarrow.array(used))
    return Factorised(codes, found.to_pylist())


def _codes(indices: "pyarrow.Array") -> Array:
    if not indices.null_count:
        return indices.to_numpy().astype(np.intp)
    return np.nan_to_num(indices.to_numpy(zero_copy_only=False), nan=-1.0).astype(np.intp)
