"""What pictures know of a column: its kind, its places on an axis, and rows along it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bayesgen.encoding.binned import BinnedTable
from bayesgen.encoding.column import Column
from bayesgen.encoding.schema import TableSchema
from bayesgen.encoding.tables import Table
from bayesgen.numerics.special import Array
from bayesgen.plots.style import feature_index, feature_names

_POINTS = 161
_FEW = 12  # whole numbers of a column that a model without a density of x may read as categories
_MOST_NAMES, _LONGEST_NAME = 24, 24  # of categories along an axis, and letters of each
_SHOWN = 3  # features that a title names with their values


@dataclass(frozen=True)
class Feature:
    """A column of X as it is drawn.

    Attributes
    ----------
    name : str
    place : int
        In X.
    kind : {"real", "count", "nominal"}
    values : list
        Where it is drawn: a grid of numbers, whole numbers, or its categories.
    at : (N,) float
        Where each row is: its number, or the position of its category; NaN where missing.
    """

    name: str
    place: int
    kind: Literal["real", "count", "nominal"]
    values: list[Any]
    at: Array

    @property
    def x(self) -> Array:
        """Where `values` are on the axis."""
        return np.arange(len(self.values)) if self.kind == "nominal" else np.array(self.values)

    def draw_axis(self, ax: Any) -> None:
        """Names, or the range, of the horizontal axis."""
        ax.set_xlabel(self.name)
        if self.kind == "nominal":
            draw_names(ax, [str(value) for value in self.values])
        elif len(self.values) > 1:
            ax.set_xlim(self.values[0], self.values[-1])


class Rows:
    """A table of rows, column by column, and rows like them of which some cells are chosen.

    Raises
    ------
    TypeError
        If the classifier reads sequences, or X is sparse.
    """

    def __init__(self, clf: Any, X: Any) -> None:
        if not hasattr(clf, "n_features_in_"):
            raise TypeError(
                f"{type(clf).__name__} reads sequences: there are no columns to draw; "
                "clf.explain and bg.top_words show what tokens say"
            )
        self.clf, self.X, self.table = clf, X, Table(X)
        if self.table.n_rows == 0:
            raise ValueError("X has no rows: there is no range to draw")
        self.schema = _schema(clf)
        names, own = feature_names(clf), self.table.names
        if own is not None and hasattr(clf, "feature_names_in_"):
            if lost := [name for name in names if name not in own]:
                raise ValueError(f"X lacks the columns {', '.join(map(repr, lost))}")
            self.places = [own.index(name) for name in names]
        else:
            known = None if self.schema is None else self.schema.positions
            self.places = list(range(len(names)) if known is None else known)
        self.names = names
        self._whole = _whole_numbers(clf, len(names))
        self.kinds = [self._kind(j) for j in range(len(names))]

    def _column(self, j: int) -> Column:
        return self.table.column(self.places[j])

    def _kind(self, j: int) -> Any:
        column = self._column(j)
        if self.schema is not None:
            kind = self.schema.kinds[j]
            if kind in ("categorical", "bernoulli"):
                return "nominal"
            return "count" if kind in ("poisson", "multinomial") else "real"
        if column.kind in ("text", "boolean") or column.nominal:
            return "nominal"
        if _holds(self.clf) in ("bit", "category"):
            return "nominal"
        if self._whole is None:  # nothing is known of how the column is modelled
            seen = np.unique(column.values[column.present])
            if np.any(seen % 1):
                return "real"
            return "nominal" if len(seen) <= _FEW else "count"
        return "count" if self._whole[j] else "real"

    def feature(self, feature: Any) -> Feature:
        """By position among those of the classifier, or by name."""
        j = feature_index(self.clf, feature)
        column, kind = self._column(j), self.kinds[j]
        if kind == "nominal":
            values = list(self._categories(j) or column.learn())
            if set(values) <= {0, 1} and self._bits(j):
                values = [False, True] if column.kind == "boolean" else [0, 1]
            at = column.encode(tuple(values)).astype(float)
            at[at < 0] = np.nan
        else:
            at = np.asarray(column.values, dtype=np.float64)
            if not column.present.any():
                raise ValueError(f"{column.label} holds nothing but missing cells")
            low, high = float(np.nanmin(at)), float(np.nanmax(at))
            if kind == "count":
                step = max(1, int(high - low) // _POINTS + 1)
                values = np.arange(int(low), int(high) + 1, step).tolist()
            else:
                room = 0.1 * (high - low) or 0.5
                values = np.linspace(low - room, high + room, _POINTS).tolist()
        return Feature(self.names[j], self.places[j], kind, values, at)

    def _categories(self, j: int) -> tuple[Any, ...]:
        """Those that the classifier knows; () if it does not say."""
        if self.schema is not None and self.schema.kinds[j] == "categorical":
            nominal = self.schema.blocks["categorical"].tolist()
            known: tuple[Any, ...] = self.schema.categories.values[nominal.index(j)]
            return known
        return tuple(getattr(self.clf, "categories_", ((),) * (j + 1))[j])

    def _bits(self, j: int) -> bool:
        if self.schema is not None:
            return self.schema.kinds[j] == "bernoulli"
        return _holds(self.clf) == "bit"

    def codes(self, j: int) -> list[str] | None:
        """Names of the codes that the family takes of column j; None where it takes numbers."""
        encoder = getattr(self.clf, "encoder_", None)
        if not isinstance(encoder, BinnedTable):
            return [str(v) for v in self.feature(j).values] if self.kinds[j] == "nominal" else None
        if self.kinds[j] == "nominal":
            names = [str(value) for value in self.feature(j).values]
        else:
            ends = ["−∞", *(f"{end:.4g}" for end in encoder.cuts[j] or ()), "∞"]
            names = [f"[{a}, {b})" for a, b in pairwise(ends)]
        return [*names, "missing"] if encoder.missing[j] else names

    def typical(self, at: Any = None) -> list[Any]:
        """A cell for each column of X: medians, most frequent values, or those of `at`.

        Parameters
        ----------
        at : (D,) cells, or {feature: cell} of some, optional
        """
        cells: list[Any] = []
        used = {place: j for j, place in enumerate(self.places)}
        for place in range(self.table.n_columns):
            column = self.table.column(place)
            kind = self.kinds[used[place]] if place in used else "nominal"
            if not column.present.any():
                cells.append(None)
            elif kind == "nominal":
                known = column.learn()
                codes = column.encode(known)
                n = np.bincount(codes[codes >= 0].astype(int), minlength=len(known))
                cells.append(known[int(n.argmax())])
            else:
                middle = np.nanmedian(column.values.astype(np.float64))
                cells.append(int(middle) if kind == "count" else float(middle))
        if isinstance(at, Mapping):
            for name, cell in at.items():
                cells[self.places[feature_index(self.clf, name)]] = cell
        elif at is not None:
            given = list(np.asarray(at, dtype=object))
            if len(given) != len(self.names):
                raise ValueError(
                    f"at has {len(given)} cells, but there are {len(self.names)} features"
                )
            for place, cell in zip(self.places, given, strict=True):
                cells[place] = cell
        return cells

    def along(self, feature: Feature, held: list[Any]) -> Any:
        """A row for each value of `feature`, with the cells `held` elsewhere, as X is kept."""
        n = len(feature.values)
        columns = [[cell] * n for cell in held]
        columns[feature.place] = list(feature.values)
        if hasattr(self.X, "columns"):
            make = getattr(type(self.X), "from_pydict", type(self.X))  # pyarrow has no constructor
            return make(dict(zip(self.X.columns, columns, strict=True)))
        if self.table.numbers is not None:
            return np.array(columns, dtype=np.float64).T
        out = np.empty((n, len(columns)), dtype=object)
        out.T[:] = columns
        return out

    def held(self, feature: Feature, cells: list[Any], at: Any = None) -> str:
        """In words, what the other features are held at."""
        others = [
            (name, cells[place])
            for name, place in zip(self.names, self.places, strict=True)
            if place != feature.place
        ]
        if not others:
            return ""
        if len(others) <= _SHOWN:
            return "at " + ", ".join(f"{name} = {_short(cell)}" for name, cell in others)
        if at is not None:
            return f"the {len(others)} others at the values given"
        middle = {"nominal": "most frequent values"}
        found = {
            middle.get(kind, "medians")
            for name, kind in zip(self.names, self.kinds, strict=True)
            if name != feature.name
        }
        return f"the {len(others)} others at their {' and '.join(sorted(found, reverse=True))}"


def cells_of(X: Any, j: int) -> Array:
    """Column j of encoded rows, dense."""
    column = X[:, [j]].toarray() if sparse.issparse(X) else np.asarray(X)[:, j]
    return np.asarray(column, dtype=np.float64).ravel()


def draw_names(ax: Any, names: list[str]) -> None:
    """Names of categories at 0, 1, ... of the horizontal axis; of many, each second or third."""
    step = -(-len(names) // _MOST_NAMES)
    told = [n if len(n) <= _LONGEST_NAME else f"{n[: _LONGEST_NAME - 1]}…" for n in names[::step]]
    turn: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    if len(told) > _MOST_NAMES // 2:
        turn |= {"rotation": 90, "va": "center"}
    ax.set_xticks(np.arange(0, len(names), step), told, **turn if sum(map(len, told)) > 45 else {})
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.6, len(names) - 0.4)


def _short(cell: Any) -> str:
    if isinstance(cell, float | np.floating):
        return f"{cell:.4g}"
    return "missing" if cell is None else str(cell)


def _holds(clf: Any) -> str:
    """What all columns hold, by the family of a classifier; "" of a pool, which has none."""
    prior = getattr(clf, "prior_", None)
    return "" if prior is None else str(prior.family.holds)


def _schema(clf: Any) -> TableSchema | None:
    """Kinds and categories of the columns, if the classifier has learned them."""
    encoder = getattr(clf, "encoder_", None)
    found = getattr(encoder, "schema", encoder)
    return found if isinstance(found, TableSchema) else None


def _whole_numbers(clf: Any, n_features: int) -> Array | None:
    """(D,) which columns are modelled as whole numbers; None without a density of x."""
    prior = getattr(clf, "prior_", None)
    if prior is None or prior.family.discriminative:
        return None
    rng = np.random.default_rng(0)
    x = clf.fitted_.posterior.simulate(rng, 50, None, False)[0]
    if not hasattr(x, "shape") or len(x.shape) != 2 or x.shape[1] != n_features:
        return np.zeros(n_features, dtype=bool)
    cells = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)
    whole: Array = ~np.any(cells % 1, axis=0)
    return whole
