r"""Tables of any columns as the members of a pool and tables of pairs take them.

A *view* is learned from all training rows without their labels, so that every class sees the same
change of variables: its Jacobian is common to the classes and leaves p(y | x) alone.

- ``"numbers"``: real columns as they are, bits as 0 and 1, an indicator for each category of two
  or more rows. A category of one row is unknown to the others: its indicator, a constant in every
  class when the row is left out, would tell the row's class by how many rows each class has.
- ``"normal scores"``: the same with real columns as normal scores: the standard Normal quantile of
  the mid-rank, linear between knots and beyond the last ones (van der Waerden 1952).

A missing cell, and a category without an indicator, stays missing in new rows, and is the mean of
its columns in training rows. In the bins of `BinnedTable` a spike is a bin of its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, get_args

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import ndtr, ndtri

from bayesgen.encoding.literals import is_missing, shown
from bayesgen.encoding.reader import Rows
from bayesgen.encoding.schema import TableSchema
from bayesgen.errors import InputTypeError, refuse_unknown
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Some columns of a data frame, as one member of a pool sees them.

SomeColumns = tuple[str, ...] | str  # columns of a table, or the one whose texts are the rows


def select_columns(X, columns: SomeColumns):
    """Return a data frame of the library of X, or a list of texts; a missing one is empty.

    TypeError if X is no data frame, or a text is none.
    """
    frame = nw.from_native(X, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            f"X is a {type(X).__name__} without names of columns; the training rows were a data "
            f"frame, of which {columns!r} is used"
        )
    if not isinstance(columns, str):
        return frame.select(columns).to_native()
    texts = ["" if is_missing(cell) else cell for cell in frame[columns].to_list()]
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            what = f"column {columns!r} holds {shown(text)}"
            raise InputTypeError(what, "; it held texts", row=i, column=columns)
    return texts


# ------------------------------------------------------------------------------------------------
# Tables of any columns as category codes: real columns by quantile bins, missing cells as a code.
#
# Bins are learned without the labels, so that every class sees the same ones: the widths are
# common to the classes and leave p(y | x) alone.

MissingCells = Literal["auto", "category", "refuse"]

_SPIKE = 0.3  # share of the cells from which one value is a spike
_ELSEWHERE = 4  # different values there must be beside it: fewer are categories
_QUARTILES = (0.25, 0.5, 0.75)  # one of them is any value that so many cells have


@dataclass(frozen=True)
class BinnedTable(TableSchema):
    """What is known of a table before its rows are codes 0 .. K_j - 1.

    Parameters
    ----------
    names, kinds, positions, n_columns, named, categories
        As in `TableSchema`; kinds "gaussian" (binned), "categorical" and "bernoulli".
    cuts : tuple of (D,) tuples of float, or None
        Ends of the bins of real columns, rising; a value at an end is in the bin above it. Empty
        for other columns. None: all cells were missing, and whatever comes has the one code.
    missing : tuple of (D,) bool
        Whether a missing cell is a category of its own, the last.
    """

    cuts: tuple[tuple[float, ...] | None, ...]
    missing: tuple[bool, ...]

    @classmethod
    def of_rows(
        cls,
        rows: Rows,
        n_bins: int,
        columns=None,
        categories=None,
        cuts=None,
        missing: MissingCells = "auto",
    ) -> Self:
        """Learn from training rows, without labels.

        Parameters
        ----------
        rows : of a table
        n_bins : int, >= 2
            At most so many bins of a real column, and one for a spike; fewer where values are tied.
        columns, categories
            As in `TableSchema.learn`.
        cuts : {column: rising numbers}, optional
            Ends of bins that are declared; the others are quantiles of the rows.
        missing : {"auto", "category", "refuse"}
            Which columns have a category of missing cells: those in which a cell of these rows is
            missing, all, or none.
        """
        refuse_unknown("missing", missing, get_args(MissingCells))
        if not isinstance(n_bins, int | np.integer) or n_bins < 2:
            raise ValueError(f"n_bins must be a whole number of at least 2, got {n_bins!r}")
        schema = TableSchema.learn(rows.table, columns, categories)
        other = set(schema.kinds) - {"gaussian", "categorical", "bernoulli"}
        if other:
            raise ValueError(
                f"columns: {', '.join(sorted(other))} columns have no bins; name them 'gaussian' "
                "(quantile bins), 'categorical' or 'drop'"
            )
        cells = rows.cells(schema)
        names = schema.names or tuple(map(str, schema.positions))
        if not isinstance(cuts, Mapping | None):
            raise TypeError(f"cuts must be a dict {{column: rising numbers}}, got {shown(cuts)}")
        declared = {str(name): ends for name, ends in (cuts or {}).items()}
        if unknown := set(declared) - set(names):
            raise ValueError(f"cuts: there is no column {sorted(unknown)[0]!r}")
        ends: list[tuple[float, ...] | None] = []
        some = np.isnan(cells).any(axis=0) if missing == "auto" else missing == "category"
        coded = np.broadcast_to(some, cells.shape[1])
        for j, (name, kind, values) in enumerate(zip(names, schema.kinds, cells.T, strict=True)):
            seen = values[~np.isnan(values)]
            if kind != "gaussian":
                ends.append(())
            elif name in declared:
                ends.append(_declared_ends(declared[name], name))
            elif coded[j] and not len(seen):
                ends.append(None)
            else:
                ends.append(_learned_ends(seen, n_bins))
        return cls(**vars(schema), cuts=tuple(ends), missing=tuple(coded.tolist()))

    @property
    def levels(self) -> Array:
        """Return the numbers (D,) of codes, that of missing cells included."""
        n_levels = [  # 0: missing in every row, the one code
            2 if kind == "bernoulli" else len(values) if kind == "categorical" else _n_bins(ends)
            for kind, values, ends in zip(self.kinds, self.categories, self.cuts, strict=True)
        ]
        return np.array(n_levels) + np.array(self.missing)

    def codes(self, cells: Array) -> Array:
        """Return the codes (N, D) of cells as `encode` returns them; NaN where one is not known.

        That is an unknown category, or a missing cell of a column in which these have no code.
        """
        codes, gone = np.array(cells, dtype=np.float64), np.isnan(cells)
        for j, (kind, ends) in enumerate(zip(self.kinds, self.cuts, strict=True)):
            if kind == "gaussian":
                codes[:, j] = np.searchsorted(ends or (), codes[:, j], side="right")
        codes[gone | (codes == -1)] = np.nan
        coded_missing = gone & np.array(self.missing)
        codes[coded_missing] = np.broadcast_to(self.levels - 1, codes.shape)[coded_missing]
        return codes

    def decode(self, codes: Array) -> list[Array]:
        """Return the D columns of codes as values: a bin is shown by a number inside it."""
        values = np.array(codes, dtype=np.float64)
        last = self.levels - 1
        values[(values == last) & np.array(self.missing)] = np.nan
        for j, (kind, ends) in enumerate(zip(self.kinds, self.cuts, strict=True)):
            if kind == "gaussian":
                is_known = ~np.isnan(values[:, j])
                shown = _inside(np.array(ends or ()))
                values[is_known, j] = shown[values[is_known, j].astype(np.int64)]
        return super().decode(values)


def _spike_of(seen: Array) -> float | None:
    """Return the value of 30 % of the cells or more, if the others have at least four values."""
    if not len(seen):
        return None
    quartiles = np.quantile(seen, _QUARTILES, method="lower")
    on, spike = max(((seen == value).mean(), float(value)) for value in quartiles)
    others = seen[seen != spike]
    if on < _SPIKE or len(np.unique(others[:1000])) < _ELSEWHERE:
        return None
    return spike


def _learned_ends(seen: Array, n_bins: int) -> tuple[float, ...]:
    """Return rising ends of at most `n_bins` bins of equal mass, and of one more for a spike."""
    spike, around = _spike_of(seen), []
    if spike is not None:
        around = [*[spike] * bool(seen.min() < spike), np.nextafter(spike, np.inf)]
        seen = seen[seen != spike]
    inner = np.quantile(seen, np.arange(1, n_bins) / n_bins) if len(seen) else np.zeros(0)
    inner = inner[inner > seen.min(initial=np.inf)]  # no bin below all values
    return tuple(np.unique([*inner, *around]).tolist())


def _declared_ends(declared, name) -> tuple[float, ...]:
    """Return ends of bins that the user declares for column `name`."""
    ends = np.asarray(declared, dtype=np.float64)
    if ends.ndim != 1 or not np.all(np.diff(ends) > 0) or not np.isfinite(ends).all():
        raise ValueError(f"cuts of column {name!r} must be rising finite numbers")
    return tuple(ends.tolist())


def _n_bins(ends: tuple[float, ...] | None) -> int:
    return 0 if ends is None else len(ends) + 1


def _inside(ends: Array) -> Array:
    """Return a number inside each bin: the middle; of the outer ones, as far out as bins are wide.

    A bin of one number, a spike, is that number.
    """
    if not len(ends):
        return np.zeros(1)
    width = float(np.diff(ends).mean()) if len(ends) > 1 else 1.0
    middle = (ends[1:] + ends[:-1]) / 2
    middle = np.where(ends[1:] == np.nextafter(ends[:-1], np.inf), ends[:-1], middle)
    last = float(np.nextafter(ends[0], -np.inf))  # in the first bin: a short number is a spike
    first = last if last == float(f"{last:.9g}") else ends[0] - width / 2
    return np.concatenate([[first], middle, [ends[-1] + width / 2]])


ViewName = Literal["numbers", "normal scores"]
REAL = ("gaussian", "lognormal")  # kinds of numbers that a view may cut or stretch
_KNOTS = 257  # of the normal scores of one column
_FURTHEST = 1e100  # widths of its training values that a cell may be away from them


@dataclass(frozen=True)
class TableView:
    """How a table is seen.

    Parameters
    ----------
    name : {"numbers", "normal scores"}
    schema : TableSchema
    knots : tuple of (D,) lists
        Of a real column: values and scores for normal scores. Of categories: the codes that have no
        indicator. Empty for other columns.
    centre : tuple of float
        (columns of the view) what stands for a missing cell of a training row.
    """

    name: ViewName
    schema: TableSchema
    knots: tuple
    centre: tuple[float, ...]

    @classmethod
    def learn(cls, schema: TableSchema, cells: Array, name: ViewName) -> Self:
        """Learn from training cells (N, D) as the schema encodes them, without labels."""
        knots: list = []
        for j, kind in enumerate(schema.kinds):
            values = cells[:, j]
            seen = values[~np.isnan(values)]
            if kind == "categorical":
                rows = np.bincount(seen.astype(np.int64), minlength=len(schema.categories[j]))
                rare = np.flatnonzero(rows < 2).tolist()
                knots.append(rare)
            elif kind not in REAL or name == "numbers":
                knots.append([])
            else:
                knots.append(_normal_scores(seen))
        view = cls(name, schema, tuple(knots), ())
        return replace(view, centre=tuple(view._means(cells)))

    def see(self, rows: Rows, of_training: bool) -> Array:
        """Return the rows as seen (N, P); missing cells of training rows are filled."""
        X = self.of_cells(rows.cells(self.schema))
        return np.where(np.isnan(X), self.centre, X) if of_training else X

    def of_cells(self, cells: Array) -> Array:
        """See cells (N, D) of the schema as (N, P); NaN where missing."""
        return np.column_stack([self._column(cells, j) for j in range(cells.shape[1])])

    @cached_property
    def _indicated(self) -> list[Array]:
        """Return the codes of each column that have an indicator; none of columns of numbers.

        Of two categories the second alone has one.
        """
        indicated = []
        for values, rare in zip(self.schema.categories, self.knots, strict=True):
            codes = np.arange(len(values))
            kept = np.setdiff1d(codes, rare) if len(codes) else codes
            indicated.append(kept[1:] if len(kept) == 2 or len(kept) == 1 < len(codes) else kept)
        return indicated

    def _means(self, cells: Array) -> Iterator[float]:
        """Yield the mean of each column of the view over the cells that it shows.

        Indicators are counted, never made: a table with thousands of categories has room for none.
        """
        for j, kind in enumerate(self.schema.kinds):
            if kind == "categorical":
                seen = cells[~np.isnan(cells[:, j]), j].astype(np.int64)
                rows = np.bincount(seen, minlength=len(self.schema.categories[j]))
                n_shown = rows.sum() - rows[self.knots[j]].sum()
                yield from (rows[self._indicated[j]] / max(n_shown, 1)).tolist()
            else:
                yield _mean(self._column(cells, j)[:, 0])

    def _column(self, cells: Array, j: int) -> Array:
        """Return what shows column j of the table, (N, width)."""
        values = cells[:, j]
        if self.schema.kinds[j] == "categorical":
            indicators = (values[:, None] == self._indicated[j]).astype(np.float64)
            unknown = np.isin(values, [-1, *self.knots[j]])
            indicators[np.isnan(values) | unknown] = np.nan
            return indicators
        if self.schema.kinds[j] in REAL and self.name == "normal scores":
            values = _interpolated(values, *self.knots[j])
        return values[:, None]


@dataclass(frozen=True)
class TextLength:
    """Texts as the logarithm of how many characters they have, blanks and unknown ones apart.

    Parameters
    ----------
    characters : str
        Of the training texts, without blanks.
    """

    characters: str

    @classmethod
    def learn(cls, texts: Iterable[str]) -> Self:
        """Learn from training texts, without labels."""
        texts = (text for text in texts if isinstance(text, str))  # others are refused when read
        return cls("".join(sorted(c for c in set().union(*texts) if not c.isspace())))

    def see(self, rows: Rows, of_training: bool) -> Array:
        """Return log lengths (N, 1), NaN for a text without a known character."""
        characters = {*self.characters}
        length = [sum(c in characters for c in text) or np.nan for text in rows.X]
        return np.log(length)[:, None]


def _mean(values: Array) -> float:
    """Return the mean without missing cells; 0 where all are missing."""
    seen = values[~np.isnan(values)]
    if not len(seen):
        return 0.0
    with np.errstate(over="ignore"):
        mean = seen.cumsum()[-1] / len(seen)  # in the order of the rows
    if np.isinf(mean):  # cells of 1e308, a share of each at a time
        mean = (seen / len(seen)).sum()
    return float(mean)


def _normal_scores(seen: Array) -> list[list[float]]:
    """Return knots: at most `_KNOTS` values, and the Normal quantiles of their mid-ranks."""
    if not len(seen):
        return [[0.0], [0.0]]
    values, count = np.unique(seen, return_counts=True)
    rank = np.cumsum(count) - count / 2
    if len(values) > _KNOTS:
        ends = ndtri(rank[[0, -1]] / len(seen))  # equal steps of the scores: the tails count
        wanted = len(seen) * ndtr(np.linspace(ends[0], ends[1], _KNOTS))
        kept = np.unique(np.clip(np.searchsorted(rank, wanted), 0, len(values) - 1))
        kept = np.unique(np.concatenate([[0], kept, [len(values) - 1]]))
        values, rank = values[kept], rank[kept]
    return [values.tolist(), ndtri(rank / len(seen)).tolist()]


def _interpolated(x: Array, values: list[float], scores: list[float]) -> Array:
    """Interpolate linearly; beyond the ends with the mean slope, so that an outlier stays one."""
    v, z = np.asarray(values), np.asarray(scores)
    scored = np.interp(x, v, z)
    if len(v) > 1:
        width = v[-1] - v[0]
        with np.errstate(over="ignore"):  # a width of 1e-308 is one too
            beyond = np.maximum((x - v[-1]) / width, 0) - np.maximum((v[0] - x) / width, 0)
        scored = scored + (z[-1] - z[0]) * np.clip(beyond, -_FURTHEST, _FURTHEST)
    return scored
