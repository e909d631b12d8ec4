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
"""

import json
import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bayesgen.encoding.categories import Categories
from bayesgen.encoding.column import Column, column_of_floats
from bayesgen.encoding.literals import did_you_mean, shown
from bayesgen.encoding.tables import (
    Table,
    as_table,
    common_names,
    find_column,
    places_of,
    refuse_no_rows,
)
from bayesgen.encoding.unknown import UnknownCells
from bayesgen.errors import InputError
from bayesgen.numerics.special import Array

COUNTED = ("poisson", "multinomial")  # kinds of numbers from 0
KINDS = ("bernoulli", "categorical", "multinomial", "poisson", "gaussian", "lognormal")


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
        (D,) where the columns stood in the table.
    n_columns : int
        Columns of the table, those left out included.
    dropped : tuple of str
        Names of the columns left out.
    categories : Categories
        Of the categorical columns, in order.
    """

    names: tuple[str, ...] | None
    kinds: tuple[str, ...]
    positions: tuple[int, ...]
    n_columns: int
    dropped: tuple[str, ...]
    categories: Categories

    @classmethod
    def learn(cls, X, columns=None, categories=None) -> Self:
        """Decide the kind of every column and learn the categories.

        Parameters
        ----------
        X : table, or a `Table`
        columns : mapping {kind or "drop": list of names or positions}, or None
            Of columns that are not named booleans are bernoulli, text and categorical dtypes are
            categorical, and other numbers are gaussian.
        categories : mapping {name or position: categories or K}, or None
            Declared categories, as in `Categories.learn`; such a column is categorical.

        Raises
        ------
        ValueError, TypeError
            If a column or a kind is unknown, or a column is named twice; or if a column in use
            cannot be read.
        """
        table = as_table(X)
        refuse_no_rows(table.n_rows, table.n_columns)
        if columns and table.numbered not in (None, list(range(table.n_columns))):
            raise ValueError(
                f"the columns of X are called {', '.join(map(str, table.numbered[:10]))}: a number "
                "in columns= could be a name or a position; rename them, as in "
                "df.columns.astype(str)"
            )
        named = named_kinds(columns, categories, table.names, table.n_columns)
        kinds = [named.get(j) or _inferred(table.column(j)) for j in range(table.n_columns)]
        used = tuple(j for j, kind in enumerate(kinds) if kind != "drop")
        if not used:
            raise ValueError("columns: every column is dropped; keep at least one")
        names = table.names
        schema = cls(
            names=None if names is None else tuple(names[j] for j in used),
            kinds=tuple(kinds[j] for j in used),
            positions=used,
            n_columns=table.n_columns,
            dropped=tuple(n for n, kind in zip(names or (), kinds, strict=False) if kind == "drop"),
            categories=Categories(()),
        )
        return schema._learn_categories(table, categories)

    def relearn(self, X, categories=None, chosen: Collection[str] = ()) -> Self:
        """Return the schema with the categories of X, a further batch, for `merge`.

        `chosen` are labels of columns whose kind the user has named.

        Raises
        ------
        ValueError
            If a column of which all cells were missing turns out to hold numbers, and was not
            chosen.
        """
        table = as_table(X)
        columns = self._nominal(table)
        nominal = self.blocks.get("categorical", np.empty(0, dtype=int))
        for j, values in enumerate(self.categories.values):
            column = columns.column(j)
            number = not column.nominal and column.kind in ("integer", "real")
            if not values and number and self.labels[nominal[j]] not in chosen:
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

    def chosen(self, columns, categories) -> set[str]:
        """Return names of the columns in use that the user has named."""
        every = None
        if self.names is not None:  # by position: those left out have places too
            left, names = iter(self.dropped), dict(zip(self.positions, self.names, strict=True))
            every = tuple(names[j] if j in names else next(left) for j in range(self.n_columns))
        named = named_kinds(columns, categories, every, self.n_columns)
        pairs = zip(self.positions, self.labels, strict=True)
        return {label for j, label in pairs if j in named}

    def encode(self, X) -> Array:
        """Return (N, D) codes, 0/1 and numbers; NaN for missing cells, -1 for unseen categories.

        Columns are selected by name if both X and the schema have names, else by position.

        Raises
        ------
        ValueError, TypeError
            If X lacks a column or has one too many; or if a cell does not fit its column's kind.
        """
        table = as_table(X)
        where = self._locate(table)
        cells = np.empty((table.n_rows, len(where)))
        nominal = 0
        for k, (j, kind) in enumerate(zip(where, self.kinds, strict=True)):
            column = table.column(j)
            if kind == "categorical":
                cells[:, k] = self.categories.encode_column(column, nominal)
                nominal += 1
            else:
                cells[:, k] = _numbers(column, kind)
        return cells

    def refuse_unseen(self, X, **said: str) -> None:
        """Raise ValueError at the first value that is not among the categories of its column."""
        self.categories.refuse_unseen(self._nominal(as_table(X)), **said)

    def unknown_cells(self, X, cells: Array) -> Iterator[UnknownCells]:
        """Yield, column by column, the cells of X whose category `encode` did not know."""
        nominal = self.blocks.get("categorical", np.empty(0, dtype=int))
        yield from self.categories.unknown_cells(self._nominal(as_table(X)), cells[:, nominal])

    def decode(self, rows: Array) -> list[Array]:
        """Return the D columns of `encode`'s matrix as values: categories, booleans, numbers."""
        columns, nominal = [], 0
        for values, kind in zip(np.asarray(rows, dtype=np.float64).T, self.kinds, strict=True):
            if kind == "categorical":
                columns.append(self.categories.decode_column(values, nominal))
                nominal += 1
            else:
                as_bool = kind == "bernoulli" and not np.isnan(values).any()
                columns.append(values.astype(bool) if as_bool else values.copy())
        return columns

    def merge(self, other: Self) -> tuple[Self, tuple[Array, ...], tuple[Array, ...]]:
        """Return the schema of both, and maps of codes as in `Categories.merge`.

        Raises
        ------
        ValueError, TypeError
            If the columns in use differ in number, name or kind.
        """
        if len(self.kinds) != len(other.kinds):
            raise ValueError(
                f"one side uses {len(self.kinds)} columns and the other {len(other.kinds)}; "
                "merge models of the same columns"
            )
        names = common_names(self.names, other.names)
        labels = [
            f"column {j if names is None else names[k]!r}" for k, j in enumerate(self.positions)
        ]
        for j, (mine, theirs) in enumerate(zip(self.kinds, other.kinds, strict=True)):
            if mine != theirs:
                raise ValueError(
                    f"{labels[j]} is {mine} on one side and {theirs} on the other; "
                    "give columns= the same kinds"
                )
        nominal = [labels[j] for j in self.blocks.get("categorical", ())]
        categories, maps_self, maps_other = self.categories.merge(other.categories, nominal)
        merged = replace(self, names=names, categories=categories)
        return merged, maps_self, maps_other

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(record | {"categories": json.loads(self.categories.to_json())})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        record = json.loads(text)
        columns: dict = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        columns["categories"] = Categories.from_json(json.dumps(record["categories"]))
        return cls(**columns)

    def _learn_categories(self, table: Table, declared) -> Self:
        if declared is not None and not isinstance(declared, Mapping):
            raise TypeError(f"categories must be a dict {{column: categories}}, not {declared!r}")
        columns = self._nominal(table)
        entries: dict = {}
        places, among = places_of(table.names), {j: k for k, j in enumerate(columns.positions)}
        for key, entry in (declared or {}).items():
            j = find_column(key, places, table.n_columns, "categories")
            if j not in among:
                raise ValueError(
                    f"categories: {table.label(j)} is not categorical; name it so in columns="
                )
            entries[among[j]] = entry
        learned = Categories.learn(columns, entries) if columns.positions else Categories(())
        return replace(self, categories=learned)

    def _nominal(self, table: Table) -> "_NominalColumns":
        """Return the categorical columns."""
        where = zip(self._locate(table), self.kinds, strict=True)
        return _NominalColumns(table, [j for j, kind in where if kind == "categorical"])

    def _locate(self, table: Table) -> list[int]:
        """Return where the columns in use stand in a table."""
        if self.names is None or table.names is None:
            if table.n_columns != self.n_columns:
                raise ValueError(
                    f"X has {table.n_columns} features, but {self.n_columns} are expected; "
                    "give the columns of the training data"
                )
            return list(self.positions)
        places = {name: j for j, name in enumerate(table.names)}
        refuse_other_columns(table.names, self.names, self.dropped)
        return [places[name] for name in self.names]


def refuse_other_columns(
    names: Collection[str], needed: Collection[str], ignored: Collection[str] = ()
) -> None:
    """Raise ValueError if columns are not there, or were not there in training."""
    there, expected = set(names), {*needed, *ignored}
    if lost := [name for name in needed if name not in there]:
        raise ValueError(
            f"X lacks the columns {', '.join(map(repr, lost))}; "
            "add them, with missing cells if they are not known"
        )
    if extra := [name for name in names if name not in expected]:
        raise ValueError(
            f"X has columns that were not there in training: {', '.join(map(repr, extra))}; "
            "drop them"
        )


class _NominalColumns:
    """Some columns of a table."""

    numbers: Array | None = None  # they are read one at a time

    def __init__(self, table: Table, positions: list[int]) -> None:
        self.table, self.positions = table, positions
        names = table.names
        self.names = None if names is None else tuple(names[j] for j in positions)
        self.n_rows, self.n_columns = table.n_rows, len(positions)

    def column(self, j: int, /) -> Column:
        return self.table.column(self.positions[j])


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
    for key in categories if isinstance(categories, Mapping) else ():
        kinds.setdefault(find_column(key, places, n_columns, "categories"), "categorical")
    return kinds


_OTHERWISE = "correct it or choose another kind in columns="


def _numbers(column: Column, kind: str) -> Array:
    """Return a column (N,) that is not categorical as float64, or raise with value and row."""
    values, wrong = column.numbers()
    if wrong is not None:
        raise InputError(
            f"{column.label} holds {shown(column.cell(wrong))}",
            f", but a {kind} column must hold numbers",
            row=wrong,
            column=column.name,
            advice=_OTHERWISE,
        )
    if column.codes is not None:
        column_of_floats(values, column.name)  # refuses infinity
    if kind == "bernoulli":
        bad, need = ~((values == 0) | (values == 1) | np.isnan(values)), "must be 0, 1 or missing"
    elif kind in COUNTED:
        bad, need = values < 0, "must not be negative"
    elif kind == "lognormal":
        bad, need = values <= 0, "must be positive"
    else:
        return values
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{column.label} holds {values[row]:g}",
            f", but a {kind} column {need}",
            row=row,
            column=column.name,
            advice=_OTHERWISE,
        )
    return values
