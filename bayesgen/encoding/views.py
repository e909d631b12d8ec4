r"""Tables of any columns as the members of a pool take them: numbers, normal scores, bins.

A *view* is learned from all training rows without their labels, so that every class sees the same
change of variables: its Jacobian is common to the classes and leaves p(y | x) alone.

- ``"numbers"``: real columns as they are, bits as 0 and 1, an indicator for each category of two
  or more rows. A category of one row is unknown to the others: its indicator, a constant in every
  class when the row is left out, would tell the row's class by how many rows each class has.
- ``"normal scores"``: the same with real columns as normal scores: the standard Normal quantile of
  the mid-rank, linear between knots and beyond the last ones (van der Waerden 1952).
- ``"bins"``: real columns as codes of intervals between quantiles, categories and bits as codes.

A missing cell, and a category without an indicator, is the mean of its columns in the first two,
where full covariances need all cells, and stays missing in bins.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.special import ndtr, ndtri

from bayesgen.encoding.binned import rising_ends
from bayesgen.encoding.literals import shown
from bayesgen.encoding.schema import TableSchema
from bayesgen.families.errors import refuse_unknown
from bayesgen.numerics.special import Array

ViewName = Literal["numbers", "normal scores", "bins"]
_KNOTS = 257  # of the normal scores of one column


@dataclass(frozen=True)
class TableView:
    """How a table is seen.

    Parameters
    ----------
    name : {"numbers", "normal scores", "bins"}
    schema : TableSchema
    knots : tuple of (D,) lists
        Of a real column: values and scores for normal scores, edges for bins. Of categories, but in
        bins: the codes that have no indicator. Empty for other columns.
    centre : tuple of float
        (columns of the view) what stands for a missing cell.
    """

    name: ViewName
    schema: TableSchema
    knots: tuple[Any, ...]
    centre: tuple[float, ...]

    @classmethod
    def learn(cls, X: Any, name: ViewName, n_bins: int = 8) -> Self:
        """From training rows, without labels.

        Parameters
        ----------
        X : table
        name : one of the views
        n_bins : int
            At most so many intervals per real column; fewer where values are tied.
        """
        refuse_unknown("view", name, get_args(ViewName))
        schema = TableSchema.learn(X)
        cells = schema.encode(X)
        knots: list[Any] = []
        sizes = iter(schema.categories.n_categories)
        for j, kind in enumerate(schema.kinds):
            values = cells[:, j]
            seen = values[~np.isnan(values)]
            if kind == "categorical" and name != "bins":
                rows = np.bincount(seen.astype(np.int64), minlength=next(sizes))
                rare = np.flatnonzero(rows < 2).tolist()
                knots.append(rare)
            elif kind != "gaussian" or name == "numbers":
                knots.append([])
            elif name == "bins":
                inner = np.quantile(seen, np.arange(1, n_bins) / n_bins) if len(seen) else []
                knots.append(np.unique(inner).tolist())
            else:
                knots.append(_normal_scores(seen))
        view = cls(name, schema, tuple(knots), ())
        if name == "bins":
            return view
        wide = view._columns(cells)
        seen = ~np.isnan(wide)
        n = np.maximum(seen.sum(axis=0), 1)
        with np.errstate(over="ignore"):
            centre = np.where(seen, wide, 0.0).sum(axis=0) / n
        if np.isinf(centre).any():  # cells of 1e308, a share of each at a time
            centre = (np.where(seen, wide, 0.0) / n).sum(axis=0)
        return cls(name, schema, view.knots, tuple(centre.tolist()))

    def encode(self, X: Any) -> Array:
        """(N, P) float64."""
        out = self._columns(self.schema.encode(X))
        if self.centre:
            rows, columns = np.nonzero(np.isnan(out))
            out[rows, columns] = np.asarray(self.centre)[columns]
        return out

    @property
    def origin(self) -> Array:
        """(P,) position in the table of what each column of the view shows."""
        widths = [self._width(j) for j in range(len(self.schema.kinds))]
        return np.repeat(np.arange(len(widths)), widths)

    @property
    def n_columns(self) -> int:
        """P."""
        return len(self.origin)

    @property
    def n_categories(self) -> list[list[int]]:
        """Codes of each column, of bins."""
        return [list(range(n)) for n in self._n_codes]

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return {
            "name": self.name,
            "schema": self.schema.to_json(),
            "knots": json.dumps(self.knots),
            "centre": list(self.centre),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Inverse of `to_json`; ValueError if `record` is something else."""
        knots, name = tuple(json.loads(record["knots"])), record["name"]
        schema, centre = TableSchema.from_json(record["schema"]), tuple(record["centre"])
        if name not in get_args(ViewName) or len(knots) != len(schema.kinds):
            raise ValueError(f"{shown(name)} with {len(knots)} columns is no view")
        found = cls(name, schema, knots, centre)
        for j, own in enumerate(knots):
            scores = name == "normal scores" and schema.kinds[j] == "gaussian"
            parts = own if scores else [own]
            if len({len(rising_ends(part, "knots", j)) for part in parts}) > 1:
                raise ValueError(f"column {j} of a view has not as many scores as knots")
        if centre and (len(centre) != found.n_columns or not np.isfinite(centre).all()):
            raise ValueError("the centre of a view is not as many finite numbers as it has columns")
        return found

    @cached_property
    def _n_codes(self) -> list[int]:
        """Categories of each column, bins of a real one."""
        nominal = iter(self.schema.categories.n_categories)
        out = []
        for kind, knots in zip(self.schema.kinds, self.knots, strict=True):
            if kind == "categorical":
                out.append(next(nominal))
            else:
                out.append(len(knots) + 1 if kind == "gaussian" else 2)
        return out

    def _width(self, j: int) -> int:
        """Columns of the view that show column j."""
        if self.name == "bins" or self.schema.kinds[j] != "categorical":
            return 1
        return len(self._indicated(j))

    def _indicated(self, j: int) -> Array:
        """Codes of column j that have an indicator: of two categories the second alone."""
        codes = np.arange(self._n_codes[j])
        kept = np.setdiff1d(codes, self.knots[j])
        return kept[1:] if len(kept) == 2 or len(kept) == 1 < len(codes) else kept

    def _columns(self, cells: Array) -> Array:
        parts = []
        for j, kind in enumerate(self.schema.kinds):
            values = cells[:, j]
            if kind == "categorical":
                unseen = values == -1
                if self.name == "bins":
                    parts.append(np.where(unseen, np.nan, values)[:, None])
                    continue
                codes = self._indicated(j)
                parts.append((values[:, None] == codes).astype(np.float64))
                rare = np.isin(values, self.knots[j])
                parts[-1][np.isnan(values) | unseen | rare] = np.nan
            elif kind == "gaussian" and self.name == "normal scores":
                parts.append(_interpolated(values, *self.knots[j])[:, None])
            elif kind == "gaussian" and self.name == "bins":
                codes = np.searchsorted(self.knots[j], values, side="right").astype(np.float64)
                parts.append(np.where(np.isnan(values), np.nan, codes)[:, None])
            else:
                parts.append(values[:, None])
        return np.concatenate(parts, axis=1)


def _normal_scores(seen: Array) -> list[list[float]]:
    """Knots: at most `_KNOTS` values, and the Normal quantiles of their mid-ranks."""
    if not len(seen):
        return [[0.0], [0.0]]
    values, count = np.unique(seen, return_counts=True)
    rank = np.cumsum(count) - count / 2
    if len(values) > _KNOTS:
        ends = ndtri(rank[[0, -1]] / len(seen))  # equal steps of the scores: the tails count
        wanted = len(seen) * ndtr(np.linspace(ends[0], ends[1], _KNOTS))
        at = np.unique(np.clip(np.searchsorted(rank, wanted), 0, len(values) - 1))
        at = np.unique(np.concatenate([[0], at, [len(values) - 1]]))
        values, rank = values[at], rank[at]
    return [values.tolist(), ndtri(rank / len(seen)).tolist()]


def _interpolated(x: Array, values: list[float], scores: list[float]) -> Array:
    """Piecewise linear; beyond the ends with the mean slope, so that an outlier stays one."""
    v, z = np.asarray(values), np.asarray(scores)
    out = np.interp(x, v, z)
    if len(v) > 1:
        slope = (z[-1] - z[0]) / (v[-1] - v[0])
        out = np.where(x > v[-1], z[-1] + slope * (x - v[-1]), out)
        out = np.where(x < v[0], z[0] + slope * (x - v[0]), out)
    return np.where(np.isnan(x), np.nan, out)
