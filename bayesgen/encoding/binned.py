"""Tables of any columns as category codes: real columns by quantile bins, missing cells as a code.

Bins are learned without the labels, so that every class sees the same ones: the widths are common
to the classes and leave p(y | x) alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from bayesgen.encoding.literals import shown
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import as_table
from bayesgen.numerics.special import Array

MissingCells = Literal["auto", "category", "refuse"]


@dataclass(frozen=True)
class BinnedTable:
    """What is known of a table before its rows are codes 0 .. K_j - 1.

    Parameters
    ----------
    schema : TableSchema
        Kinds "gaussian" (binned), "categorical" and "bernoulli".
    cuts : tuple of (D,) tuples of float, or None
        Ends of the bins of real columns, rising; a value at an end is in the bin above it. Empty
        for other columns. None: all cells were missing, and whatever comes has the one code.
    missing : tuple of (D,) bool
        Whether a missing cell is a category of its own, the last.
    """

    schema: TableSchema
    cuts: tuple[tuple[float, ...] | None, ...]
    missing: tuple[bool, ...]

    @classmethod
    def learn(
        cls,
        X: Any,
        n_bins: int,
        columns: Any = None,
        categories: Any = None,
        cuts: Mapping[Any, Any] | None = None,
        missing: MissingCells = "auto",
    ) -> Self:
        """From training rows, without labels.

        Parameters
        ----------
        X : table
        n_bins : int, >= 2
            At most so many bins of a real column, fewer where values are tied.
        columns, categories
            As in `TableSchema.learn`.
        cuts : {column: rising numbers}, optional
            Ends of bins that are declared; the others are quantiles of the rows.
        missing : {"auto", "category", "refuse"}
            Which columns have a category of missing cells: those in which a cell of these rows is
            missing, all, or none.
        """
        return cls.learn_codes(X, n_bins, columns, categories, cuts, missing)[0]

    @classmethod
    def learn_codes(
        cls,
        X: Any,
        n_bins: int,
        columns: Any = None,
        categories: Any = None,
        cuts: Any = None,
        missing: MissingCells = "auto",
    ) -> tuple[Self, Array]:
        """The same, and the codes (N, D) of the rows."""
        if missing not in get_args(MissingCells):
            raise ValueError(f"missing must be 'auto', 'category' or 'refuse', got {missing!r}")
        refuse_few_bins(n_bins)
        table = as_table(X)
        schema = TableSchema.learn(table, columns, categories)
        other = set(schema.kinds) - {"gaussian", "categorical", "bernoulli"}
        if other:
            raise ValueError(
                f"columns: {', '.join(sorted(other))} columns have no bins; name them 'gaussian' "
                "(quantile bins), 'categorical' or 'drop'"
            )
        cells = schema.encode(table)
        names = schema.names or tuple(map(str, schema.positions))
        if not isinstance(cuts, Mapping | None):
            raise TypeError(f"cuts must be a dict {{column: rising numbers}}, got {shown(cuts)}")
        given = {str(name): ends for name, ends in (cuts or {}).items()}
        if unknown := set(given) - set(names):
            raise ValueError(f"cuts: there is no column {sorted(unknown)[0]!r}")
        ends: list[tuple[float, ...] | None] = []
        some = np.isnan(cells).any(axis=0) if missing == "auto" else missing == "category"
        coded = np.broadcast_to(some, cells.shape[1])
        for j, (name, kind, values) in enumerate(zip(names, schema.kinds, cells.T, strict=True)):
            seen = values[~np.isnan(values)]
            if kind != "gaussian":
                ends.append(())
            elif name in given:
                ends.append(rising_ends(given[name], "cuts", name))
            elif coded[j] and not len(seen):
                ends.append(None)
            else:
                ends.append(quantile_ends(seen, n_bins))
        found = cls(schema, tuple(ends), tuple(coded.tolist()))
        return found, found._coded(cells)

    @property
    def levels(self) -> Array:
        """(D,) numbers of codes, that of missing cells included."""
        sizes = map(len, self.schema.categories.values)  # 0: missing in every row, the one code
        own = [
            2 if kind == "bernoulli" else next(sizes) if kind == "categorical" else _n_bins(ends)
            for kind, ends in zip(self.schema.kinds, self.cuts, strict=True)
        ]
        return np.array(own) + np.array(self.missing)

    def encode(self, X: Any) -> Array:
        """(N, D) float64 codes; NaN where a cell is not known: missing, or a category never seen.

        Where missing cells have a code of their own, cells that are not known have it.
        """
        return self._coded(self.schema.encode(X))

    def _coded(self, out: Array) -> Array:
        """Codes of cells as the schema encodes them, which are overwritten."""
        gone = np.isnan(out)
        for j, (kind, ends) in enumerate(zip(self.schema.kinds, self.cuts, strict=True)):
            if kind == "gaussian":
                out[:, j] = np.searchsorted(ends or (), out[:, j], side="right")
        gone |= out == -1
        out[gone] = np.nan
        own = gone & np.array(self.missing)
        out[own] = np.broadcast_to(self.levels - 1, out.shape)[own]
        return out

    def decode(self, codes: Array) -> list[Array]:
        """The D columns of codes as values: a bin is shown by a number inside it."""
        values = np.array(codes, dtype=np.float64)
        last = self.levels - 1
        values[(values == last) & np.array(self.missing)] = np.nan
        for j, (kind, ends) in enumerate(zip(self.schema.kinds, self.cuts, strict=True)):
            if kind == "gaussian":
                known = ~np.isnan(values[:, j])
                shown = _inside(np.array(ends or ()))
                values[known, j] = shown[values[known, j].astype(np.int64)]
        return self.schema.decode(values)

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        return json.dumps(
            {"schema": self.schema.to_json(), "cuts": self.cuts, "missing": self.missing}
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`; ValueError if `text` is something else."""
        record = json.loads(text)
        schema, coded = TableSchema.from_json(record["schema"]), tuple(record["missing"])
        cuts = tuple(
            None if e is None else rising_ends(e, "cuts", j) for j, e in enumerate(record["cuts"])
        )
        if not len(cuts) == len(coded) == len(schema.kinds) or not {*coded} <= {True, False}:
            raise ValueError("the bins of its columns are none")
        return cls(schema, cuts, coded)


def quantile_ends(seen: Array, n_bins: int) -> tuple[float, ...]:
    """Rising ends of at most `n_bins` bins of equal mass; none below which there is no value."""
    inner = np.quantile(seen, np.arange(1, n_bins) / n_bins) if len(seen) else []
    own = np.unique(inner)
    return tuple(own[own > seen.min(initial=np.inf)].tolist())


def rising_ends(given: Any, argument: str, name: Any) -> tuple[float, ...]:
    """Ends of bins that the user declares for column `name`."""
    own = np.asarray(given, dtype=np.float64)
    if own.ndim != 1 or not np.all(np.diff(own) > 0) or not np.isfinite(own).all():
        raise ValueError(f"{argument} of column {name!r} must be rising finite numbers")
    return tuple(own.tolist())


def refuse_few_bins(n_bins: Any) -> None:
    """Raise unless `n_bins` is a number of bins."""
    if not isinstance(n_bins, int | np.integer) or n_bins < 2:
        raise ValueError(f"n_bins must be a whole number of at least 2, got {n_bins!r}")


def _n_bins(ends: tuple[float, ...] | None) -> int:
    return 0 if ends is None else len(ends) + 1


def _inside(ends: Array) -> Array:
    """A number inside each bin: the middle; of the outer ones, as far out as bins are wide."""
    if not len(ends):
        return np.zeros(1)
    width = float(np.diff(ends).mean()) if len(ends) > 1 else 1.0
    middle = (ends[1:] + ends[:-1]) / 2
    return np.concatenate([[ends[0] - width / 2], middle, [ends[-1] + width / 2]])
