r"""One column of a table: its cells, the values that can be its categories, and their codes.

::

    >>> column = Column("column 'size'", "real", np.array([2.0, 1.0, np.nan, 2.0]))
    >>> column.learn()
    (1, 2)
    >>> column.encode((1, 2))
    array([ 1.,  0., nan,  1.])
    >>> column.encode(("1", "2"))
    array([-1., -1., nan, -1.])

- Numbers are compared by value: 1, 1.0, True and np.int8(1) are one category. A column of whole
  numbers has ints as categories, whatever its dtype; a column of booleans has False and True.
- Learned categories are sorted. Those that a dtype declares (pandas Categorical, polars Enum) are
  all kept in the order of the declaration, those without rows included.
"""

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from bayesgen.numerics.special import Array

Values = tuple[Any, ...]  # of str, int, float or bool, all of one of these types

EXACT = 2**53  # from here on float64 does not tell neighbouring integers apart
_SPAN = 1 << 16  # integers within so wide a range go through a table of that length


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table in one of five forms, and what errors call it."""

    label: str  # "column 'island'", or "column 3" where columns have no names
    kind: str  # "boolean", "integer", "real", "text"; "empty" holds nothing but missing cells
    # (N,) bool, int64, uint64, float64 with NaN for missing; of text the K distinct ones, objects
    values: Array
    nominal: bool = False  # whether its dtype says that it is categorical
    levels: Values | None = None  # the categories that its dtype declares
    codes: Array | None = None  # (N,) of text: which of the values a cell holds, -1 where missing

    @property
    def present(self) -> Array:
        """(N,) bool: which cells are not missing."""
        return self.values == self.values if self.codes is None else self.codes >= 0

    def cell(self, row: int) -> Any:
        """A cell that is not missing, as a Python scalar."""
        at = row if self.codes is None else self.codes[row]
        return self.values[at : at + 1].tolist()[0]

    def learn(self) -> Values:
        """Its categories: those its dtype declares, or those that occur, sorted."""
        values = self.values
        if self.levels is not None:
            return self.levels
        if self.kind in ("empty", "boolean"):
            return () if self.kind == "empty" else (False, True)
        if self.kind == "text":
            return tuple(sorted(values.tolist()))
        if values.dtype.kind == "f":
            return _of_floats(np.unique(values[self.present]))
        if values.size and int(values.max()) - int(values.min()) < _SPAN:
            low = values.min()
            seen = np.zeros(_SPAN, dtype=bool)
            seen[values - low] = True
            return tuple(int(k) + int(low) for k in np.flatnonzero(seen))
        return tuple(np.unique(values).tolist())

    def encode(self, categories: Values) -> Array:
        """(N,) codes of the cells: NaN where missing, -1 for what is not among `categories`."""
        cells = self.values
        if self.kind == "empty":
            return np.full(len(cells), np.nan)
        if self.codes is not None:
            code = {value: float(k) for k, value in enumerate(categories)}
            return np.array([*(code.get(cell, -1.0) for cell in cells), np.nan])[self.codes]
        if cells.dtype == bool:
            cells = cells.astype(np.int64)
        keys, codes_of = _keys(() if is_text(categories) else categories, cells.dtype)
        if cells.dtype.kind in "iu" and len(keys) and int(keys[-1]) - int(keys[0]) < _SPAN:
            span = int(keys[-1]) - int(keys[0]) + 1
            table = np.full(span + 1, -1.0)
            table[(keys - keys[0]).astype(np.intp)] = codes_of
            # modulo 2^64, what lies below the first key is far above the last
            return table[np.minimum((cells - keys[0]).view(np.uint64), np.uint64(span))]
        at = np.searchsorted(keys, cells)
        keys, codes_of = np.append(keys, keys[-1:]), np.append(codes_of, -1.0)  # the end: unseen
        out = np.full(len(cells), -1.0)
        if len(keys):
            out = np.where(keys[at] == cells, codes_of[at], out)
        if cells.dtype.kind == "f":
            out[np.isnan(cells)] = np.nan
        return out


def _of_floats(found: Array) -> Values:
    """Distinct floats as categories: ints if all are whole; -0.0 is 0."""
    whole = np.all((found == np.trunc(found)) & (np.abs(found) < EXACT))
    return tuple((found.astype(np.int64) if whole else found + 0.0).tolist())


def _keys(values: Values, dtype: np.dtype) -> tuple[Array, Array]:
    """Sort the numbers among `values` that `dtype` holds exactly; they and their codes."""
    low, high = (
        (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    )
    table = np.array(values, dtype=np.float64)
    if np.all(np.abs(table) < EXACT):
        whole = (dtype.kind == "f") | (table == np.trunc(table))
        held = np.flatnonzero(whole & (table >= low))
        keys = table[held].astype(dtype)
    else:  # Python compares integers and floats of any size exactly
        kind = float if dtype.kind == "f" else int
        held = np.array([k for k, v in enumerate(values) if low <= v <= high and kind(v) == v], int)
        keys = np.array([kind(values[k]) for k in held], dtype)
    order = np.argsort(keys)
    return keys[order], held[order].astype(np.float64)


# --------------------------------------------------------------------------- values of one type


def canonical(values: Iterable[Any], where: str) -> Values:
    """Declared values as Python scalars of one type, or an error that begins with `where`."""
    out: list[Any] = []
    for value in values:
        if isinstance(value, str):
            out.append(str.__str__(value))
        elif isinstance(value, bool | np.bool):
            out.append(bool(value))
        elif isinstance(value, int | np.integer) and -(2**63) <= value < 2**64:
            out.append(int(value))
        elif isinstance(value, numbers.Real | Decimal) and np.isfinite(float(value)):
            out.append(float(value))
        else:
            raise TypeError(
                f"{where}: {value!r} ({type(value).__name__}) cannot be a category; "
                "give strings, as column.astype(str), finite numbers or booleans"
            )
    if not out:
        raise ValueError(f"{where}: there must be at least one category, got none")
    if len({isinstance(value, str) for value in out}) == 2:
        raise TypeError(f"{where}: text and numbers are mixed; make them all of one kind")
    if len(set(out)) < len(out):
        twice = next(value for k, value in enumerate(out) if value in out[:k])
        raise ValueError(f"{where}: {twice!r} is given twice; give each category once")
    return of_one_type(out, out)


def of_one_type(values: Iterable[Any], among: Iterable[Any]) -> Values:
    """Numbers as bool, int or float, the narrowest that holds all of `among`; text unchanged."""
    among = list(among)
    if any(isinstance(v, str) for v in among) or all(isinstance(v, bool) for v in among):
        return tuple(values)
    if all(isinstance(v, int) or (v == int(v) and abs(v) < EXACT) for v in among):
        return tuple(int(v) for v in values)
    return tuple(float(v) for v in values)


def is_text(values: Values) -> bool:
    """Whether these categories are strings; False if there are none."""
    return bool(values) and isinstance(values[0], str)
