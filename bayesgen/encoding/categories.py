r"""Categories: strings, numbers and booleans of a table's columns to codes 0 .. K-1, and back.

N rows, D columns, K_j categories in column j. A table is what `encoding.tables.read` returns::

    >>> from bayesgen.encoding.tables import read
    >>> table = read([["red", 1], ["blue", 2], [None, 1]])
    >>> categories = Categories.learn(table)
    >>> categories.values
    (('blue', 'red'), (1, 2))
    >>> categories.encode(read([["red", 3], [None, 2]]))  # 3 is unseen, None is missing
    array([[ 1., -1.],
           [nan,  1.]])

Numbers are compared by value, and learned categories are sorted (see `encoding.column`). Those
that the user declares are all kept in the order of the declaration, those without rows included.
Text and numbers do not mix: neither within a column, nor between learning and encoding.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np
from scipy import sparse

from bayesgen.encoding.column import Column, Values, canonical, is_text, of_one_type
from bayesgen.encoding.literals import listed, shown
from bayesgen.encoding.tables import common_names, find_column, places_of, refuse_no_rows
from bayesgen.encoding.unknown import UnknownCells
from bayesgen.errors import InputError, InputTypeError
from bayesgen.families.shared.codes import Recoded, count_all_codes
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix, cell_of
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Numbers that are category codes already: whole, from 0 on, and small.
#
# A large array of them is looked through once, in memory's order, and then used as it is.

MOST_CODES = 1024  # codes of a column


def occurring(X: Array | None) -> list[Array] | None:
    """Return the codes that occur in each column of a large (N, D) array; NaN is a missing cell.

    None if the array is not large, or if a cell is not a whole number 0 .. 1023.
    """
    if X is None or not kernels.pays(X.size):
        return None
    counts = count_all_codes(X, np.zeros(len(X), dtype=np.int64), 1, MOST_CODES)[0]
    if counts[:, MOST_CODES].any():
        return None
    return [np.flatnonzero(column[:MOST_CODES]) for column in counts]


# ------------------------------------------------------------------------------------------------
# Categories that the user declares, in any of the forms that `Categories.learn` takes.


def declared_categories(
    declared, names: tuple[str, ...] | None, n_columns: int
) -> list[Values | None]:
    """Return the declared categories of each column, None where there are none."""
    entries: list
    if declared is None or isinstance(declared, int | np.integer):
        entries = [declared] * n_columns
    elif isinstance(declared, Mapping):
        entries = [None] * n_columns
        places = places_of(names)
        for key, entry in declared.items():
            entries[find_column(key, places, n_columns, "categories")] = entry
    elif isinstance(declared, str) or not isinstance(declared, Iterable):
        raise TypeError(
            "categories must be None, a number, a list with one entry per column, or a dict "
            f"{{column: entry}}, not {declared!r}"
        )
    else:
        entries = list(declared)
    if len(entries) != n_columns:
        raise ValueError(
            f"categories has {len(entries)} entries for {n_columns} columns; give one per column, "
            "None where a column is to be learned"
        )
    return [
        None
        if e is None
        else _entry(e, f"categories of column {names[j]!r}" if names else f"categories[{j}]")
        for j, e in enumerate(entries)
    ]


def _entry(entry, where: str) -> Values:
    """Return what the user declared for one column: K, or a sequence of categories."""
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        if entry < 1:
            raise ValueError(f"{where}: there must be at least one category, got {entry}")
        return tuple(range(int(entry)))
    if isinstance(entry, str | bytes | bool) or not isinstance(entry, Iterable):
        raise TypeError(f"{where}: give a number or a list of categories, not {entry!r}")
    return canonical(entry, where)


@dataclass(frozen=True)
class Categories:
    """The categories of every column of a table.

    Parameters
    ----------
    values : tuple of D tuples
        The category with code k in column j is ``values[j][k]``, a str, int, float or bool, all
        of one type within a column; () if every cell of the column was missing: it is left out.
    names : tuple of str, or None
        The columns' names.
    """

    values: tuple[Values, ...]
    names: tuple[str, ...] | None = None

    @classmethod
    def learn(cls, table, declared=None) -> Self:
        """Categories of the columns of a table, or of a CSR matrix (as `tables.read` returns them).

        Parameters
        ----------
        table : Table, some of its columns, or CSR matrix
            In a CSR matrix 0 is a category of every column and must be its smallest.
        declared : None, int, sequence or mapping
            An int K declares the codes 0 .. K-1 for every column. A sequence has one entry a
            column, a mapping {name or position: entry} one for the columns it mentions; an entry
            is an int K, a sequence of categories, or None for a column to be learned.

        Raises
        ------
        ValueError
            If the table has no rows, or holds a value that is not declared.
        TypeError
            If a column holds what cannot be a category.
        """
        if sparse.issparse(table):
            refuse_no_rows(*table.shape)
            entries = declared_categories(declared, None, table.shape[1])
            categories = cls(_learn_sparse(table, entries))
        else:
            refuse_no_rows(table.n_rows, table.n_columns)
            entries = declared_categories(declared, table.names, table.n_columns)
            codes = occurring(table.numbers) if None in entries else None
            categories = cls(
                tuple(
                    entry or (_of_codes(codes[j], table) if codes else table.column(j).learn())
                    for j, entry in enumerate(entries)
                ),
                table.names,
            )
        if any(entry is not None for entry in entries):
            categories.refuse_unseen(table, "its declared categories", "declare it too")
        return categories

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Return the (D,) numbers of categories K_j; 1 where every cell was missing.

        Cells of such a column are missing in every row, so that it is left out.
        """
        return tuple(max(1, len(values)) for values in self.values)

    def encode(self, table) -> Matrix:
        """Codes of the cells; columns are taken by position.

        Returns
        -------
        (N, D) array of float64, or CSR for CSR
            NaN where the cell is missing, -1 where its value is not among the categories.

        Raises
        ------
        TypeError
            If a column holds text where its categories are numbers, or the reverse.
        """
        if sparse.issparse(table):
            self._refuse_width(table.shape[1])
            return _encode_sparse(table, self)
        self._refuse_width(table.n_columns)
        codes = np.empty((table.n_rows, table.n_columns))
        for j in range(table.n_columns):
            codes[:, j] = self.encode_column(table.column(j), j)
        return codes

    def read_codes(self, table) -> Recoded | None:
        """Return codes of many small whole numbers, looked up as they are read.

        None of other tables, and where a value is not among the categories.
        """
        numbers = None if sparse.issparse(table) else table.numbers
        columns = occurring(numbers)
        if numbers is None or columns is None or self._places is None:
            return None
        self._refuse_width(table.n_columns)
        if any(
            set(codes) - set(values) for codes, values in zip(columns, self.values, strict=True)
        ):
            return None
        return Recoded(numbers, self._places, max(self.n_categories, default=0))

    @cached_property
    def _places(self) -> Array | None:
        """Return (D, M + 2) as in `Recoded`; None unless all categories are small whole numbers."""
        if not all(map(_are_codes, self.values)):
            return None
        k = max(self.n_categories, default=0)
        m = 1 + max((int(max(column)) for column in self.values), default=0)
        places = np.full((len(self.values), m + 2), k)
        places[:, -1] = k + 1
        for j, column in enumerate(self.values):
            places[j, np.array(column, dtype=np.intp)] = np.arange(len(column))
        return places

    def encode_column(self, column: Column, j: int) -> Array:
        """Return the codes (N,) of one column, by the categories of column j."""
        values = self.values[j]
        if not values:
            return np.full(len(column.present), np.nan)
        if column.kind != "empty" and is_text(values) != (column.kind == "text"):
            rows = np.flatnonzero(column.present)
            if len(rows):
                raise InputTypeError(
                    f"the categories of {column.label} are {_form(values)}, but",
                    f" holds {shown(column.cell(rows[0]))}",
                    row=rows[0],
                    column=column.name,
                    advice="convert the column",
                    place=" row {}",
                )
        return column.encode(values)

    def refuse_unseen(
        self,
        table,
        what: str = "its categories",
        advice: str = 'give unseen="prior" or "ignore"',
    ) -> None:
        """Raise ValueError at the first value that is not among the categories of its column."""
        if sparse.issparse(table):
            self._refuse_width(table.shape[1])
            unseen = np.flatnonzero(_encode_sparse(table, self).data == -1)
            if len(unseen):
                row, j = cell_of(table, unseen[0])
                value = table.data[unseen[0]]
                raise _not_among(j, value, row, self.values[j], what, advice)
            return
        self._refuse_width(table.n_columns)
        for j, values in enumerate(self.values):
            column = table.column(j)
            rows = np.flatnonzero(column.encode(values) == -1)
            if len(rows):
                value = column.cell(rows[0])
                raise _not_among(column.name, value, rows[0], values, what, advice)

    def unknown_cells(self, table, codes: Matrix) -> Iterator[UnknownCells]:
        """Yield, column by column, the cells of a table that `encode` gave the code -1."""
        if sparse.issparse(codes):
            unknown = np.flatnonzero(codes.data == -1)
            for j in np.unique(codes.indices[unknown]).tolist():
                stored = unknown[codes.indices[unknown] == j]
                row, _ = cell_of(table, stored[0])
                yield UnknownCells(j, table.data[stored[0]].item(), row, len(stored))
            return
        for j in np.flatnonzero((codes == -1).any(axis=0)).tolist():
            rows, column = np.flatnonzero(codes[:, j] == -1), table.column(j)
            value = column.cell(rows[0])
            value = value.item() if isinstance(value, np.generic) else value
            yield UnknownCells(column.name, value, int(rows[0]), len(rows))

    def decode(self, codes: Matrix) -> Matrix:
        """Inverse of `encode`.

        Returns
        -------
        (N, D) array, or CSR of float64 for CSR
            Of bool, int64 or float64 if all categories are; of objects if some are text.
            Missing cells are NaN, None in columns of text.

        Raises
        ------
        ValueError
            If a code is not NaN or one of 0 .. K_j - 1.
        """
        if sparse.issparse(codes):
            self._refuse_width(codes.shape[1])
            return _decode_sparse(codes.tocsr().astype(np.float64), self)
        codes = np.asarray(codes, dtype=np.float64)
        self._refuse_width(codes.shape[1])
        columns = [self.decode_column(codes[:, j], j) for j in range(len(self.values))]
        return np.stack(columns, axis=1)

    def decode_column(self, codes: Array, j: int) -> Array:
        """Return the values (N,) of codes of column j, of the narrowest dtype."""
        values = self.values[j]
        missing = np.isnan(codes) if values else np.ones(len(codes), dtype=bool)
        k = np.where(missing, len(values), codes)
        bad = ~missing & ~((k >= 0) & (k < len(values)) & (k == np.trunc(k)))
        if bad.any():
            row = int(np.argmax(bad))
            raise _no_category(self._label(j), codes[row], row, len(values))
        if is_text(values):
            return np.array([*values, None], dtype=object)[k.astype(np.intp)]
        if missing.any() or not values:
            return np.array([*values, np.nan], dtype=np.float64)[k.astype(np.intp)]
        return np.array(values)[k.astype(np.intp)]

    def merge(
        self, other: Self, labels: Sequence[str] | None = None
    ) -> tuple[Self, tuple[Array, ...], tuple[Array, ...]]:
        """Categories of both: sorted, unless the order of one holds that of the other.

        `labels` is what errors call the columns, if not by their names.

        Returns
        -------
        merged : Categories
        maps_self, maps_other : tuples of D arrays of int
            Code k in column j of `self` is code ``maps_self[j][k]`` of `merged`.

        Raises
        ------
        ValueError, TypeError
            If the columns differ in number, in name, or in being text or numbers.
        """
        self._refuse_width(len(other.values))
        names = common_names(self.names, other.names)
        pairs = list(zip(self.values, other.values, strict=True))
        labels = labels or [self._label(j) for j in range(len(self.values))]
        values = tuple(_merge(a, b, label) for (a, b), label in zip(pairs, labels, strict=True))
        codes = [{value: k for k, value in enumerate(column)} for column in values]

        def maps(old: tuple[Values, ...]) -> tuple[Array, ...]:
            columns = zip(old, codes, strict=True)
            return tuple(np.array([new[v] for v in was], dtype=np.intp) for was, new in columns)

        return type(self)(values, names), maps(self.values), maps(other.values)

    def to_json(self) -> str:
        """Text that `from_json` reads; 1, 1.0, True and "1" stay what they are."""
        return json.dumps({"names": self.names, "values": self.values}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        record = json.loads(text)
        names, values = record["names"], record["values"]
        return cls(tuple(map(tuple, values)), None if names is None else tuple(names))

    def _label(self, j: int) -> str:
        return f"column {j if self.names is None else self.names[j]!r}"

    def _refuse_width(self, n_columns: int) -> None:
        if n_columns != len(self.values):
            raise ValueError(
                f"X has {n_columns} features, but there are categories of {len(self.values)}; "
                "give the columns of the training data"
            )


def _are_codes(values: Values) -> bool:
    """Tell whether categories are whole numbers for which a small table has places."""
    if not values or is_text(values):
        return False
    return all(v == int(v) and 0 <= v < MOST_CODES for v in values)


def _of_codes(codes: Array, table) -> Values:
    return (False, True) if table.numbers.dtype == bool else tuple(codes.tolist())


def _not_among(name, value, row: int, values: Values, what: str, advice: str) -> InputError:
    """Return the error for a value that is not among the categories."""
    value = value.item() if isinstance(value, np.generic) else value
    return InputError(
        f"column {name!r} holds {shown(value)}",
        f", which is not among {what} ({listed(map(shown, values), 10)})",
        row=row,
        column=name,
        advice=f"{advice}, or make the cell missing",
    )


def _no_category(label: str, code: float, row: int, n_categories: int) -> InputError:
    why = f" is no category; codes are 0 .. {n_categories - 1}, or NaN for a missing cell"
    return InputError(f"{label}: code {code:g}", why, row=row)


def _form(values: Values) -> str:
    return "text" if is_text(values) else "numbers"


def _merge(a: Values, b: Values, label: str) -> Values:
    if a and b and is_text(a) != is_text(b):
        raise TypeError(
            f"the categories of {label} are {_form(a)} on one side and {_form(b)} on the other; "
            "convert one of them"
        )
    merged = a if _within(b, a) else b if _within(a, b) else sorted({*a, *b})
    return of_one_type(merged, a + b)


def _within(short: Values, long: Values) -> bool:
    """Tell whether `short` is `long` with values left out, in the same order."""
    remaining = iter(long)
    return all(value in remaining for value in short)


# ------------------------------------------------------------------------------------ sparse


def _learn_sparse(X: Matrix, declared: list[Values | None]) -> tuple[Values, ...]:
    """Categories of a canonical CSR matrix: 0 and the stored values, column by column."""
    if X.dtype == bool:
        return tuple((False, True) if entry is None else entry for entry in declared)
    stored = (X.data != 0) & (X.data == X.data)
    columns, values = X.indices[stored], X.data[stored]
    if values.size and values.min() < 0:
        position = int(np.flatnonzero(X.data < 0)[0])
        row, j = cell_of(X, position)
        raise InputError(
            f"column {j} holds {X.data[position]}",
            ": in a sparse X the category 0 must be the smallest",
            row=row,
            column=j,
            advice="add a constant to the column, or pass X.toarray()",
        )
    order = np.lexsort((values, columns))
    columns, values = columns[order], values[order]
    new = np.ones(len(values), dtype=bool)
    new[1:] = (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])
    values, ends = values[new], np.cumsum(np.bincount(columns[new], minlength=X.shape[1]))
    whole = values.dtype.kind in "iu" or bool(
        np.all((values == np.trunc(values)) & (values < 2.0**53))
    )
    cells = values.astype(np.int64).tolist() if whole else values.tolist()
    learned, start = [], 0
    for entry, end in zip(declared, ends.tolist(), strict=True):
        occurring_values = (0, *cells[start:end])
        learned.append(
            entry
            or (occurring_values if whole else of_one_type(occurring_values, occurring_values))
        )
        start = end
    return tuple(learned)


def _encode_sparse(X: Matrix, categories: Categories) -> Matrix:
    """Codes of the stored cells; nothing is added to what is stored."""
    flat, start, sizes = _flat(categories)
    column = np.repeat(np.arange(len(sizes)), sizes)
    distinct = np.unique(flat)  # (column, value) becomes one integer, and one binary search
    keys = column * len(distinct) + np.searchsorted(distinct, flat)
    order = np.argsort(keys)
    data = X.data.astype(np.float64)
    rank = np.minimum(np.searchsorted(distinct, data), len(distinct) - 1)
    places = np.searchsorted(keys[order], X.indices * np.int64(len(distinct)) + rank)
    cell = order[np.minimum(places, len(order) - 1)]
    hit = (flat[cell] == data) & (column[cell] == X.indices)
    codes = np.where(hit, cell - start[X.indices], -1.0)
    codes[np.isnan(data)] = np.nan
    encoded = X.astype(np.float64)
    encoded.data = codes
    return encoded


def _decode_sparse(codes: Matrix, categories: Categories) -> Matrix:
    """Categories in place of the stored codes of a CSR matrix of float64."""
    flat, start, sizes = _flat(categories)
    missing = np.isnan(codes.data)
    k = np.where(missing, 0, codes.data)
    bad = np.flatnonzero((k < 0) | (k >= sizes[codes.indices]) | (k != np.trunc(k)))
    if len(bad):
        row, j = cell_of(codes, bad[0])
        raise _no_category(categories._label(j), k[bad[0]], row, int(sizes[j]))
    codes.data = np.where(missing, np.nan, flat[start[codes.indices] + k.astype(np.intp)])
    return codes


def _flat(categories: Categories) -> tuple[Array, Array, Array]:
    """All categories in one array of float64, where each column's begin, and (D,) K_j."""
    for j, column in enumerate(categories.values):
        if not column or column[0] != 0:
            raise ValueError(
                f"in a sparse X the first category of every column must be 0, but that of "
                f"{categories._label(j)} is {column[0] if column else None!r}; pass X.toarray()"
            )
    sizes = np.array(categories.n_categories)
    flat = np.fromiter(chain.from_iterable(categories.values), np.float64, sizes.sum())
    return flat, np.cumsum(sizes) - sizes, sizes
