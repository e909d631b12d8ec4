r"""The schema of a table: which columns are of which kind, and the matrix that families take.

`TableSchema` decides the kind of every column of a table with columns of several kinds, learns
the categories of those that have them, and codes rows as one matrix of float64::

    >>> X = [["Biscoe", 39.1, True], ["Dream", None, False]]
    >>> schema = TableSchema.learn(X)
    >>> schema.kinds
    ('categorical', 'gaussian', 'bernoulli')
    >>> schema.encode(X)
    array([[ 0. , 39.1,  1. ],
           [ 1. ,  nan,  0. ]])

Numbers are compared by value, and learned categories are sorted (see `encoding.column`). Those
that the user declares are all kept in the order of the declaration, those without rows included.
"""

import numbers
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bayesgen.encoding.cells import refuse_cells, refuse_infinite
from bayesgen.encoding.column import Column, Values, canonical, decode, merge
from bayesgen.encoding.literals import did_you_mean
from bayesgen.encoding.tables import (
    Table,
    as_table,
    find_column,
    places_of,
    refuse_no_rows,
)
from bayesgen.encoding.unknown import UnknownCells
from bayesgen.families.shared.codes import code_index, count_all_codes
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

COUNTED = ("poisson", "multinomial")  # kinds of numbers from 0
KINDS = ("bernoulli", "categorical", "multinomial", "poisson", "gaussian", "lognormal")

_MOST_CODES = 1024  # of a column of codes


@dataclass(frozen=True)
class TableSchema:
    """Which columns a model of several kinds uses, and the categories of the categorical ones.

    Parameters
    ----------
    names : tuple of str, or None
        Names of the D columns in use, None if the table had none.
    kinds : tuple of str
        (D,) one of `KINDS` a column.
    positions : tuple of int
        (D,) where the columns stand in the table.
    n_columns : int
        Columns of the table, those left out included.
    named : tuple of bool
        (D,) whether the user has named the kind.
    categories : tuple of tuples
        (D,) the category with code k in column j is ``categories[j][k]``, a str, int, float or
        bool, all of one type within a column. () of a column of another kind, and of one in which
        every cell was missing: it is left out.
    """

    names: tuple[str, ...] | None
    kinds: tuple[str, ...]
    positions: tuple[int, ...]
    n_columns: int
    named: tuple[bool, ...]
    categories: tuple[Values, ...]

    @classmethod
    def learn(cls, X, columns=None, categories=None, *, every: str | None = None) -> Self:
        """Decide the kind of every column and learn the categories.

        Parameters
        ----------
        X : table, or a `Table`
        columns : mapping {kind or "drop": list of names or positions}, or None
            Of columns that are not named booleans are bernoulli, text and categorical dtypes are
            categorical, and other numbers are gaussian.
        categories : mapping {name or position: categories or K}, or None
            Declared categories; such a column is categorical. An int K stands for the codes
            0 .. K-1. With `every` also one entry for each column, or one K for all.
        every : str, optional
            The kind of every column.

        Raises
        ------
        ValueError, TypeError
            If a column or a kind is unknown, or a column is named twice; if a column in use cannot
            be read, or holds a value that is not declared.
        """
        table = as_table(X)
        refuse_no_rows(table.n_rows, table.n_columns)
        if columns and table.numbered not in (None, list(range(table.n_columns))):
            raise ValueError(
                f"the columns of X are called {', '.join(map(str, table.numbered[:10]))}: a number "
                "in columns= could be a name or a position; rename them, as in "
                "df.columns.astype(str)"
            )
        n, names = table.n_columns, table.names
        named = dict.fromkeys(range(n), every) if every else None
        if named is None:
            named = named_kinds(columns, categories, names, n)
        kinds = [named.get(j) or _inferred(table.column(j)) for j in range(n)]
        used = tuple(j for j, kind in enumerate(kinds) if kind != "drop")
        if not used:
            raise ValueError("columns: every column is dropped; keep at least one")
        schema = cls(
            names=None if names is None else tuple(names[j] for j in used),
            kinds=tuple(kinds[j] for j in used),
            positions=used,
            n_columns=n,
            named=tuple(j in named for j in used),
            categories=(),
        )
        return schema._learn_categories(table, categories)

    def relearn(self, X, categories=None) -> Self:
        """Return the schema with the categories of X, a further batch, for `merge`.

        Raises
        ------
        ValueError
            If a column of which all cells were missing turns out to hold numbers, and the user has
            not named its kind.
        """
        table = as_table(X)
        self._refuse_width(table)
        for k, j in enumerate(self.positions):
            if self.kinds[k] != "categorical" or self.categories[k] or self.named[k]:
                continue
            column = table.column(j)
            if not column.nominal and column.kind in ("integer", "real"):
                raise ValueError(
                    f"{column.label} held nothing but missing cells in the rows before, and holds "
                    "numbers now: name its kind in columns="
                )
        return self._learn_categories(table, categories)

    @property
    def blocks(self) -> dict[str, Array]:
        """Return {kind: positions in `encode`'s matrix}, in the order of KINDS."""
        positions = {kind: np.flatnonzero([k == kind for k in self.kinds]) for kind in KINDS}
        return {kind: block for kind, block in positions.items() if len(block)}

    @property
    def labels(self) -> list[str]:
        """Return names of the columns used, by position where there are none."""
        return [f"x{j}" for j in self.positions] if self.names is None else list(self.names)

    @property
    def chosen(self) -> set[str]:
        """Return names of the columns in use that the user has named."""
        return {label for label, named in zip(self.labels, self.named, strict=True) if named}

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Return the numbers of categories of the categorical columns.

        That is 1 where every cell was missing: such cells are missing in every row, so that the
        column is left out.
        """
        return tuple(
            max(1, len(values))
            for values, kind in zip(self.categories, self.kinds, strict=True)
            if kind == "categorical"
        )

    def encode(self, X) -> Array:
        """Return (N, D) codes, 0/1 and numbers; NaN for missing cells, -1 for unseen categories.

        They are float64. An array of category codes alone is returned as it is.

        Raises
        ------
        ValueError, TypeError
            If X has another number of columns; or if a cell does not fit its column's kind.
        """
        table = as_table(X)
        self._refuse_width(table)
        if (codes := self._codes_of_array(table)) is not None:
            return codes
        cells = np.empty((table.n_rows, len(self.kinds)), order="F")
        for k, (j, kind) in enumerate(zip(self.positions, self.kinds, strict=True)):
            column = table.column(j)
            if kind == "categorical":
                cells[:, k] = column.codes_among(self.categories[k])
            else:
                cells[:, k] = _numbers(column, kind)
        return cells

    def _codes_of_array(self, table: Table) -> Array | None:
        """Return `encode` of an array of small whole numbers, all of them categories; else None."""
        if (X := table.numbers) is None or {*self.kinds} != {"categorical"}:
            return None
        if not all(map(_are_small, self.categories)):
            return None
        if len(self.positions) < self.n_columns:
            table = Table(X := X[:, self.positions])
        k = 1 + max(max(values, default=0) for values in self.categories)
        if (occurring := _occurring(table, X, k)) is None:
            return None
        entries = np.empty((len(occurring), k + 2))  # as `look_up` reads it
        for row, values in zip(entries, self.categories, strict=True):
            row[:] = -1.0 if values else np.nan
            row[np.array(values, dtype=np.intp)] = np.arange(len(values))
        entries[:, -1] = np.nan
        if not (occurring & (entries[:, :k] != np.arange(k))).any():
            return X
        codes = np.empty(X.shape)
        for rows in row_blocks(*X.shape):
            places = code_index(X[rows], k) + np.arange(len(entries)) * (k + 2)
            entries.take(places, out=codes[rows])
        return codes

    def refuse_unseen(
        self,
        X,
        what: str = "its categories",
        advice: str = 'give unseen="prior" or "ignore"',
    ) -> None:
        """Raise ValueError at the first value that is not among the categories of its column."""
        table = as_table(X)
        for j, kind, values in zip(self.positions, self.kinds, self.categories, strict=True):
            if kind == "categorical":
                table.column(j).refuse_others(values, what, advice)

    def are_unknown(self, cells: Array) -> Array | None:
        """Return where `encode` did not know the category, (N, D); None if it knew all."""
        if cells.dtype.kind != "f":  # `encode` returned the codes of X, all of them known
            return None
        if not cells.size or np.fmin.reduce(cells, axis=None) >= 0:
            return None
        unknown = (cells == -1) & (np.array(self.kinds) == "categorical")
        return unknown if unknown.any() else None

    def unknown_cells(self, X, cells: Array) -> Iterator[UnknownCells]:
        """Yield, column by column, the cells of X whose category `encode` did not know."""
        table, unknown = as_table(X), self.are_unknown(cells)
        if unknown is None:
            return
        for k in np.flatnonzero(unknown.any(axis=0)).tolist():
            rows, column = np.flatnonzero(unknown[:, k]), table.column(self.positions[k])
            yield UnknownCells(column.name, column.cell(rows[0]), int(rows[0]), len(rows))

    def decode(self, rows: Array) -> list[Array]:
        """Return the D columns of `encode`'s matrix as values: categories, booleans, numbers."""
        columns = []
        for k, values in enumerate(np.asarray(rows, dtype=np.float64).T):
            if self.kinds[k] == "categorical":
                columns.append(decode(values, self.categories[k], self._label(k)))
            else:
                as_bool = self.kinds[k] == "bernoulli" and not np.isnan(values).any()
                columns.append(values.astype(bool) if as_bool else values.copy())
        return columns

    def merge(self, other: Self) -> tuple[Self, tuple[Array, ...], tuple[Array, ...]]:
        """Return the schema of both; for each categorical column the new codes of the old ones.

        Code k of `self` is code ``maps_self[j][k]`` of the merged schema, likewise of `other`.

        Raises
        ------
        ValueError, TypeError
            If the columns in use differ in number or kind, or in being text or numbers.
        """
        if len(self.kinds) != len(other.kinds):
            raise ValueError(
                f"one side uses {len(self.kinds)} columns and the other {len(other.kinds)}; "
                "merge models of the same columns"
            )
        merged, maps = [], []
        for k, (mine, theirs) in enumerate(zip(self.kinds, other.kinds, strict=True)):
            label = self._label(k)
            if mine != theirs:
                raise ValueError(
                    f"{label} is {mine} on one side and {theirs} on the other; "
                    "give columns= the same kinds"
                )
            values, *codes = merge(self.categories[k], other.categories[k], label)
            merged.append(values)
            if mine == "categorical":
                maps.append(codes)
        maps_self, maps_other = zip(*maps, strict=True) if maps else ((), ())
        return replace(self, categories=tuple(merged)), maps_self, maps_other

    def _learn_categories(self, table: Table, declared) -> Self:
        entries = _declared(declared, table.names, table.n_columns)
        nominal = {
            j for j, kind in zip(self.positions, self.kinds, strict=True) if kind == "categorical"
        }
        for j, entry in enumerate(entries):
            if entry is not None and j not in nominal:
                raise ValueError(
                    f"categories: column {table.name(j)!r} is not categorical; name it so in "
                    "columns="
                )
        cells = table.numbers
        occurring = None
        if cells is not None and nominal and None in entries:
            largest = np.fmax.reduce(cells, axis=None, initial=0)
            if largest < _MOST_CODES:
                occurring = _occurring(table, cells, int(largest) + 1)

        def learned(j: int) -> Values:
            if occurring is None or cells is None:
                return table.column(j).learn()
            if cells.dtype == bool:
                return (False, True)
            return tuple(np.flatnonzero(occurring[j]).tolist())

        values = ((entries[j] or learned(j)) if j in nominal else () for j in self.positions)
        schema = replace(self, categories=tuple(values))
        if any(entry is not None for entry in entries):
            schema.refuse_unseen(table, "its declared categories", "declare it too")
        return schema

    def _label(self, k: int) -> str:
        return f"column {self.positions[k] if self.names is None else self.names[k]!r}"

    def _refuse_width(self, table: Table) -> None:
        if table.n_columns != self.n_columns:
            raise ValueError(
                f"X has {table.n_columns} features, but {self.n_columns} are expected; "
                "give the columns of the training data"
            )


def _are_small(values: Values) -> bool:
    """Tell whether categories are whole numbers 0 .. 1023, or booleans."""
    whole = not values or isinstance(values[0], int)  # and all others, which are of its type
    return whole and min(values, default=0) >= 0 and max(values, default=0) < _MOST_CODES


def _occurring(table: Table, X: Array, k: int) -> Array | None:
    """Return which of the codes 0 .. k - 1 occur in each column of its cells (N, D): (D, k) bool.

    None if a cell is neither missing nor one of them. Each table is asked once.
    """
    if k in table.occurring:
        return table.occurring[k]
    if kernels.pays(X.size):
        occurs = count_all_codes(X, np.zeros(len(X), dtype=np.int64), 1, k)[0] > 0
    else:
        occurs = np.zeros((X.shape[1], k + 2), dtype=bool)
        occurs.ravel()[code_index(X, k) + np.arange(X.shape[1]) * (k + 2)] = True
    table.occurring[k] = None if occurs[:, k].any() else occurs[:, :k]
    return table.occurring[k]


def _declared(declared, names: tuple[str, ...] | None, n_columns: int) -> list[Values | None]:
    """Return the declared categories of each column, None where there are none.

    `declared` is None; an int K, for the codes 0 .. K-1 of every column; one entry for each column;
    or a mapping {name or position: entry}. An entry is an int K, categories, or None.
    """
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


def _inferred(column: Column) -> str:
    """Return the kind of a column by its dtype."""
    # a column of missing objects has no categories, and is left out by that
    if column.nominal or column.kind in ("text", "empty"):
        return "categorical"
    if column.kind == "boolean":
        return "bernoulli"
    return "gaussian"


def named_kinds(
    columns, categories, names: tuple[str, ...] | None, n_columns: int
) -> dict[int, str]:
    """Return {position: kind} of the columns named by the user, "drop" for those left out."""
    if not isinstance(columns, Mapping | None):
        raise TypeError(
            f"columns must be a dict {{kind: list of columns}} or None, not {columns!r}; "
            f"kinds are {', '.join(KINDS)} and drop"
        )
    kinds: dict[int, str] = {}
    places = places_of(names)
    for kind, keys in (columns or {}).items():
        if kind not in (*KINDS, "drop"):
            raise ValueError(f"columns: no kind {kind!r}{did_you_mean(kind, (*KINDS, 'drop'))}")
        single = isinstance(keys, str | numbers.Integral) or not isinstance(keys, Iterable)
        for key in [keys] if single else keys:
            j = find_column(key, places, n_columns, f"columns[{kind!r}]")
            if j in kinds:
                raise ValueError(
                    f"columns: column {names[j] if names else j!r} is named twice, as {kinds[j]} "
                    f"and as {kind}; name it once"
                )
            kinds[j] = kind
    if not isinstance(categories, Mapping | None):
        raise TypeError(f"categories must be a dict {{column: categories}}, not {categories!r}")
    for key in categories or ():
        kinds.setdefault(find_column(key, places, n_columns, "categories"), "categorical")
    return kinds


_OTHERWISE = "correct it or choose another kind in columns="


def _numbers(column: Column, kind: str) -> Array:
    """Return a column (N,) that is not categorical as float64, or raise with value and row."""
    values = column.numbers(f", but a {kind} column must hold numbers", _OTHERWISE)
    if column.codes is not None:
        refuse_infinite(values[:, None], lambda: [column.name])
    if kind == "bernoulli":
        bad, need = ~((values == 0) | (values == 1) | np.isnan(values)), "must be 0, 1 or missing"
    elif kind in COUNTED:
        bad, need = values < 0, "must not be negative"
    elif kind == "lognormal":
        bad, need = values <= 0, "must be positive"
    else:
        return values
    what, why = "column {name!r} holds {value:g}", f", but a {kind} column {need}"
    refuse_cells(values[:, None], bad, lambda: [column.name], what, why, _OTHERWISE)
    return values
