"""One column of some rows of a file, and what its cells stand for.

- Of a CSV file every cell is text. It is missing if it is one of `literals.MISSING` (empty, NA,
  NaN, null, None, ..., as in pandas) or nothing but blanks, quoted or not.
- In a Parquet file a cell has the type that the file says: text is text, also if it is "1" or
  "NA", and only nulls and NaN are missing.
- A column holds booleans if all cells that are not missing are true or false; numbers if all are
  numbers; text otherwise. Whole numbers from 2**53 on are identifiers, hence text: as float64 they
  would be others.
- Where numbers are needed, text is parsed by `literals.parse_number`; true and false are 1 and 0,
  but not among measurements and counts.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.column import EXACT
from bayesgen.encoding.factorised import of_arrow
from bayesgen.encoding.literals import MISSING, parse_boolean, parse_number
from bayesgen.io.formats import TableError
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import pyarrow

_MOST_BYTES = 1 << 30, 1 << 26  # of the labels of all rows, of the different ones


def decoded(array: "pyarrow.ChunkedArray") -> "pyarrow.ChunkedArray":
    """A column with categories replaced by what they stand for."""
    from pyarrow import types

    return array.cast(array.type.value_type) if types.is_dictionary(array.type) else array


class Cells:
    """One column of some rows.

    Parameters
    ----------
    name : str
        What errors call the column.
    array : pyarrow.ChunkedArray (N,)
    written : bool
        Whether the cells are text of a CSV file.

    Raises
    ------
    TableError
        If they are neither numbers nor booleans nor text.
    """

    def __init__(self, name: str, array: "pyarrow.ChunkedArray", written: bool) -> None:
        from pyarrow import types

        array = decoded(array)
        t = array.type
        self._is_text = types.is_string(t) or types.is_large_string(t) or types.is_string_view(t)
        self._is_integer = types.is_integer(t)
        is_number = self._is_integer or types.is_floating(t) or types.is_decimal(t)
        if not (self._is_text or is_number or types.is_boolean(t) or types.is_null(t)):
            raise TableError(
                f"column {name!r} holds {t}: make it numbers, text or booleans, or leave it out"
            )
        self.name, self._array, self._written = name, array, written

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, i: int) -> Any:
        """One cell as it stands in the file."""
        return self._array[i].as_py()

    @cached_property
    def missing(self) -> Array:
        """(N,) bool: which cells hold nothing."""
        import pyarrow
        from pyarrow import compute

        if not self._written:
            return np.asarray(compute.is_null(self._array, nan_is_null=True))
        if self._plain is not None:
            return np.zeros(len(self), dtype=bool)
        none = pyarrow.array(sorted(MISSING), self._array.type)
        blank = compute.utf8_is_space(self._array)
        return np.asarray(compute.or_(compute.is_in(self._array, none), blank))

    def where(self, keep: Array) -> "Cells":
        """The cells where `keep`, (N,) bool, is true."""
        return Cells(self.name, self._array.filter(keep), self._written)

    def holds(self) -> str:
        """``"boolean"``, ``"number"``, ``"text"`` or, if every cell is missing, ``"empty"``."""
        from pyarrow import compute, types

        if self.missing.all():
            return "empty"
        if self._is_text:
            return self._written_kind() if self._written else "text"
        if types.is_boolean(self._array.type):
            return "boolean"
        if self._is_integer:
            extremes = compute.min_max(self._array).as_py().values()
            return "number" if all(-EXACT < value < EXACT for value in extremes) else "text"
        return "number"

    def padded(self, among: int = 10_000) -> str | None:
        """The first of some cells of a CSV file that is a number with zeros in front, as 007."""
        from pyarrow import compute

        if not (self._written and self._is_text):
            return None
        some = self._array.slice(0, among)
        found = compute.index(compute.match_substring_regex(some, r"^\s*0\d+\s*$"), True).as_py()
        return None if found < 0 else str(self[found]).strip()

    def holds_none(self, among: int = 10_000) -> bool:
        """Whether one of some cells of a CSV file is the word None, which may be a category."""
        from pyarrow import compute

        if not (self._written and self._is_text):
            return False
        some = compute.utf8_trim_whitespace(self._array.slice(0, among))
        return bool(compute.index(some, "None").as_py() >= 0)

    def _written_kind(self) -> str:
        """What text stands for that is not all missing."""
        from pyarrow import compute

        values = self._cast
        if values is not None:
            large = np.flatnonzero(np.abs(values) >= EXACT)
            return "text" if any(_is_identifier(self[i]) for i in large.tolist()) else "number"
        found = compute.unique(self._present).drop_null().to_pylist()
        if all(parse_boolean(text) is not None for text in found):
            return "boolean"
        if any(parse_number(text) is None or _is_identifier(text) for text in found):
            return "text"
        return "number"

    @cached_property
    def _present(self) -> "pyarrow.ChunkedArray":
        """The column with nulls for missing cells."""
        import pyarrow

        if not (self._written and self.missing.any()):
            return self._array
        return self._array.take(pyarrow.array(np.arange(len(self)), mask=self.missing))

    @cached_property
    def _plain(self) -> Array | None:
        """(N,) float64 of text if every cell is a number in the usual spelling."""
        values = _as_floats(self._array, safe=True) if self._is_text else None
        return None if values is None or np.isnan(values).any() else values

    @cached_property
    def _cast(self) -> Array | None:
        """(N,) float64 if all cells are numbers in the usual spelling, NaN where missing."""
        if self._plain is not None:
            return self._plain
        values = _as_floats(self._array, safe=self._is_text)
        return _as_floats(self._present, safe=True) if values is None and self._is_text else values

    def numbers(self, refuse: Callable[[Any, int], float], booleans: bool = True) -> Array:
        """(N,) float64, NaN for missing cells; 1 and 0 for true and false, if `booleans`.

        `refuse` gets a cell that is no number, and its position, and raises or returns another.
        """
        values = self._cast
        if values is not None:
            return values
        codes, found = self._factorised()
        parsed = np.full(len(found) + 1, np.nan)  # the last for missing cells, of code -1
        for k, text in enumerate(found):
            value = parse_number(text)
            if value is None and booleans:
                value = parse_boolean(text)
            if value is None:
                value = refuse(text, int(np.argmax(codes == k)))
            parsed[k] = value
        return parsed[codes]

    def texts(self) -> Array:
        """(N,) object: str, None for missing cells. Whole numbers are written without a point."""
        codes, found = self._factorised()
        return np.array([*map(_as_text, found), None], dtype=object)[codes]

    def strings(self) -> Array:
        """(N,) fixed-length strings of `texts`, of a column without missing cells.

        Raises
        ------
        TableError
            If they would take more than 1 GiB, or the different ones 64 MiB: texts, not labels.
        """
        codes, found = self._factorised()
        texts = [*map(_as_text, found)]
        longest = max(map(len, texts), default=0)
        if any(
            4 * longest * n > most
            for n, most in zip((len(codes), len(texts)), _MOST_BYTES, strict=True)
        ):
            raise TableError(
                f"column {self.name!r} holds {len(texts)} different texts of up to {longest} "
                "characters, which are too long for labels of classes: name another column"
            )
        return np.array(texts, dtype=str)[codes]

    def raw(self) -> Array:
        """(N,) object: the cells as they stand in the file."""
        return np.array([*self._array.to_pylist(), None], dtype=object)[:-1]

    def values(self, kind: str, refuse: Callable[[Any, int], float]) -> Array:
        """(N,) the cells of a column that holds what `kind` says, else `refuse` as of `numbers`.

        float64 with NaN for missing cells, bool (objects with None if cells are missing) or texts.
        """
        if kind == "text":
            return self.texts()
        values = self.numbers(refuse)
        return as_booleans(values) if kind == "boolean" else values

    def labels(self, kind: str, refuse: Callable[[Any, int], float]) -> Array:
        """As `values`, with int64 for numbers that are all whole."""
        values = self.values(kind, refuse)
        whole = values.dtype == np.float64 and np.all(np.trunc(values) == values)
        whole = whole and np.all(np.abs(values) < EXACT)
        return values.astype(np.int64) if whole else values

    def _factorised(self) -> tuple[Array, list[Any]]:
        """(N,) codes, -1 for missing cells, of the distinct cells."""
        try:
            codes, found = of_arrow(self._present)
        except UnicodeDecodeError as error:
            raise TableError(f"column {self.name!r} holds text that is no UTF-8: {error}") from None
        return np.where(self.missing, -1, codes), found  # NaN is a value to Arrow


def _as_floats(cells: "pyarrow.ChunkedArray", safe: bool) -> Array | None:
    """(N,) float64, if all cells can be made that."""
    import pyarrow

    try:
        values: Array = cells.cast(pyarrow.float64(), safe=safe).to_numpy()
    except pyarrow.ArrowInvalid:
        return None
    return values


def as_booleans(values: Array) -> Array:
    """(N,) bool of numbers 0 and 1; objects with None if some are NaN."""
    missing = np.isnan(values)
    out: Array = values == 1
    if missing.any():
        out = out.astype(object)
        out[missing] = None
    return out


def joined(kinds: set[str]) -> str:
    """What a column holds whose parts hold these."""
    kinds = kinds - {"empty"}
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"


def _is_identifier(text: str) -> bool:
    """Whether a text is a whole number that float64 does not hold."""
    digits = text.strip().lstrip("+-")
    return len(digits) > 15 and digits.isdigit() and int(digits) >= EXACT


def _as_text(cell: Any) -> str:
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
