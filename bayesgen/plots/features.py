"""What pictures know of a column: its kind, its places on an axis, and rows along it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from scipy.special import entr

from bayesgen.encoding.column import Column
from bayesgen.encoding.schema import COUNTED, TableSchema
from bayesgen.encoding.tables import Table
from bayesgen.encoding.views import BinnedTable
from bayesgen.errors import refuse_below, spelled
from bayesgen.families.capabilities import GivenRows
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import Method
from bayesgen.numerics.special import Array
from bayesgen.plots import drawing, style
from bayesgen.plots.style import CLASSES, HAIR, INK, METHOD_NAMES, MUTED
from bayesgen.posterior.fitted import fitted_of, through_pipelines
from bayesgen.predict.probabilities import check_method
from bayesgen.predict.request import IntervalRequest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_POINTS = 161
_FEW = 12  # whole numbers of a column that a model without a density of x may read as categories
_CATEGORIES = 40  # of a column, in a picture of its own


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

    @property
    def text(self) -> list[str]:
        """Names of the categories."""
        return [str(value) for value in self.values]

    def some(self, kept: Array) -> "Feature":
        """The same with some of its categories."""
        place = np.full(len(self.values) + 1, np.nan)
        place[kept] = np.arange(len(kept))
        at = place[np.where(np.isnan(self.at), -1, self.at).astype(int)]
        return replace(self, values=[self.values[i] for i in kept], at=at)

    def draw_axis(self, ax: Any, label: str, letters: int = 50) -> None:
        """Labels of both axes of numbers, and the range of the horizontal one."""
        drawing.label_axes(ax, self.name, label, letters)
        if len(self.values) > 1:
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
        names, own = style.feature_names(clf), self.table.names
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
            return "count" if kind in COUNTED else "real"
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
        j = style.feature_index(self.clf, feature)
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
                positive = self.schema is not None and self.schema.kinds[j] == "lognormal"
                least = low / 2 if positive else low - room
                values = np.linspace(max(low - room, least), high + room, _POINTS).tolist()
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
            return self.feature(j).text if self.kinds[j] == "nominal" else None
        if self.kinds[j] == "nominal":
            names = self.feature(j).text
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
                cells[self.places[style.feature_index(self.clf, name)]] = cell
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


def _where(kinds: Iterable[str], at: Any) -> str:
    """In words, where features of these kinds are held."""
    if at is not None:
        return "at the values given"
    found = {"most frequent values" if kind == "nominal" else "medians" for kind in kinds}
    return f"at their {' and '.join(sorted(found))}"


def cells_of(X: Any, j: int) -> Array:
    """Column j of encoded rows, dense."""
    column = X[:, [j]].toarray() if sparse.issparse(X) else np.asarray(X)[:, j]
    return np.asarray(column, dtype=np.float64).ravel()


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


# ------------------------------------------------------------------------------------------------
# What each class looks like in one column: its predictive density or probabilities.

_SHARE = "share of the rows"
_SIMULATED = 10_000  # rows of each class
_BINS = 50  # of a density that is known by simulated rows alone
_BARS, _FEW_CLASSES = 40, 3  # bars of a picture, and classes of points that have shares as well
_STRIP = 0.035  # height of a class below the curves, as a share of the axes


@through_pipelines
def plot_densities(
    clf: Any,
    X: Any,
    y: Any = None,
    feature: Any = 0,
    *,
    classes: Any = None,
    mass: tuple[float, float] = (0.5, 0.9),
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw one column under each class: p(x_j | y = c, D), the other columns summed out.

    Curves of a real column, with the middle of each class below them; marks at whole numbers of a
    count; bars of a binary or categorical column, and of the bins of a classifier that has bins.
    More than 40 bars become points; of more than 40 categories the most probable are shown, and the
    label of the axis says so.

    Parameters
    ----------
    clf : fitted classifier with a density of x
    X : (N, D)
        Its range is drawn; of real numbers a tenth wider on either side.
    y : (N,), optional
        Labels: the rows are drawn below the curves, or their shares into the bars (and points, of
        at most three classes).
    feature : int or column name
    classes : label or sequence of labels, optional
        Which to show. Default: all.
    mass : (float, float)
        Of the two central intervals of each class, the narrow one drawn thick.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        Of sequences, pools, and of counts of words, which have a distribution given the length of
        their row alone.
    NotImplementedError
        Of a discriminative classifier.

    Notes
    -----
    Exact where a missing cell is left out of a row's density; else the shares of 10,000 rows
    simulated from each class, which the title says.
    """
    style.checked_axes(ax, figsize)
    fitted = fitted_of(clf, "plot_densities")
    own = fitted.posterior
    fitted.refuse_if_discriminative("plot_densities")
    if len(mass) != 2 or not 0 < mass[0] < mass[1] < 1:
        raise ValueError(f"mass must be two rising probabilities, got {mass!r}")
    rows = Rows(clf, X)
    at = None if y is None else style.label_codes(clf, y, rows.table.n_rows)
    one = rows.feature(feature)
    j = rows.names.index(one.name)
    family = own.prior.family
    for block in family.blocks():
        here = np.arange(len(rows.names))[block.columns]
        given = block.family.capability(GivenRows) is not None
        if j in here and given and block.family.missing != "marginalised":
            raise TypeError(
                f"the counts of column {one.name!r} are modelled given the total of their row: "
                "there is no density of one column; bg.top_words shows what words say"
            )
    shown = style.chosen(classes, clf.classes_, range(len(clf.classes_)))
    names = rows.codes(j)
    exact = names is None or not isinstance(getattr(clf, "encoder_", None), BinnedTable)
    exact = exact and all(block.family.missing == "marginalised" for block in family.blocks())
    p = {k: _log_density(clf, rows, one, k) for k in shown} if exact else {}
    rng, n = np.random.default_rng(0), _SIMULATED
    of_draws = [] if p and names is not None else shown
    drawn = {k: cells_of(own.simulate(rng, n, np.full(n, k), False)[0], j) for k in of_draws}
    share = {k: np.exp(p[k]) for k in p}
    if names is not None and drawn:
        share = {k: _shares(x.astype(int), len(names)) for k, x in drawn.items()}
    tall = max(3.6, style.height(len(shown) + 4, 0.2))
    if names is not None and not drawing.fit_below(names):
        tall = max(tall, style.height(min(len(names), _CATEGORIES), 0.24))
    with style.canvas(ax, figsize, (7.2, tall)) as ax:
        of = f"p({one.name} | class, D)"
        if names is not None:
            seen = None
            if at is not None:
                own_codes = cells_of(fitted.encoded(X), j)
                known = own_codes >= 0
                seen = {
                    k: _shares(own_codes[known & (at == k)].astype(int), len(names)) for k in shown
                }
            _bars(ax, clf, one.name, of, names, share, seen)
        else:
            _curves(ax, clf, one, p, drawn, at, mass)
            one.draw_axis(ax, of)
        others = "" if len(rows.names) == 1 else "the other features summed out"
        drawing.note(ax, others if exact else f"of {n:,} simulated rows per class")
        handles, texts = ax.get_legend_handles_labels()
        order = sorted(range(len(texts)), key=lambda i: texts[i] == _SHARE)  # the classes first
        style.legend_beside(ax, [handles[i] for i in order])
    return ax


def _log_density(clf: Any, rows: Rows, one: Feature, k: int) -> Array:
    """(len(one.values),) log p(x_j | y = k, D)."""
    unknown = [None if kind == "nominal" else np.nan for kind in rows.kinds]
    cells: list[Any] = [None] * rows.table.n_columns
    for place, cell in zip(rows.places, unknown, strict=True):
        cells[place] = cell
    weights = np.eye(len(clf.classes_))[k]
    found: Array = clf.score_samples(rows.along(one, cells), class_prior=weights)
    return found


def _shares(codes: Array, n: int) -> Array:
    count = np.bincount(codes, minlength=n)
    share: Array = count / np.maximum(1, count.sum())
    return share


def _bars(
    ax: "Axes",
    clf: Any,
    feature: str,
    of: str,
    names: list[str],
    p: dict[int, Array],
    seen: dict[int, Array] | None,
) -> None:
    """Draw a group of bars for each category, a bar for each class; of many bars the ends."""
    kept = _kept(np.max([*p.values()], axis=0), _CATEGORIES)
    axis = drawing.Categories(ax, [names[i] for i in kept])
    many = len(p) * len(kept) > _BARS
    width = 0.82 / len(p)
    for i, (k, value) in enumerate(p.items()):
        at, own = np.arange(len(kept)) + (i - (len(p) - 1) / 2) * width, style.look(k)
        name = str(clf.classes_[k])
        if many:
            axis.marks(at, value[kept], "o", color=own.color, label=name, **own.mark(4.5))
        else:
            bar = {"color": own.color, "hatch": own.hatch, "alpha": 0.6, "label": name}
            axis.bars(at, value[kept], 0.92 * width, edgecolor="white", lw=0, **bar)
        if seen is not None and (not many or len(p) <= _FEW_CLASSES):
            label = _SHARE if i == 0 else None
            axis.ticks(at, seen[k][kept], min(16, 90 * width), label=label)
    few = style.first_of(len(kept), len(names), "categories")
    axis.name(feature + few.replace("first", "most probable"), of, (0, None))


def _kept(size: Array, most: int) -> Array:
    """Places of the largest, in their order."""
    return np.sort(np.argsort(-size, kind="stable")[:most])


def _curves(
    ax: "Axes",
    clf: Any,
    one: Feature,
    log_p: dict[int, Array],
    drawn: dict[int, Array],
    at: Array | None,
    mass: tuple[float, float],
) -> None:
    """Densities, and below them a line per class: its middle, and its rows."""
    room = _STRIP * (len(drawn) + 1)
    low, high = one.values[0], one.values[-1]
    edges = np.linspace(low, high, _BINS + 1)
    top = 0.0
    strip = ax.get_xaxis_transform()  # heights as shares of the axes
    for i, (k, x) in enumerate(drawn.items()):
        own, name = style.look(k), str(clf.classes_[k])
        line = {"color": own.color, "ls": own.dashes, "lw": 1.8, "label": name}
        if not log_p:
            share = np.histogram(x, edges)[0] / len(x) / np.diff(edges)
            ax.stairs(share, edges, baseline=None, **line)
        else:
            share = np.exp(log_p[k])
            mark = {"marker": "o", **own.mark(4)} if one.kind == "count" else {}
            ax.plot(one.x, share, **line, **(mark if len(one.values) <= 60 else {}))
        top = max(top, float(np.nanmax(share)))
        height = room - _STRIP * (i + 0.75)
        for m, lw in zip(mass, (4.0, 1.6), strict=True):
            ends = np.quantile(x, [(1 - m) / 2, (1 + m) / 2])
            ax.hlines(height, *ends, color=own.color, lw=lw, alpha=0.55, transform=strip)
        if at is not None:
            rug = one.at[at == k]
            heights = np.full(len(rug), height)
            ax.plot(rug, heights, "|", color=own.color, ms=6, mew=0.8, alpha=0.8, transform=strip)
    for m, lw in zip(mass, (4.0, 1.6), strict=True):
        ax.plot([], [], color=INK, lw=lw, alpha=0.55, label=f"middle {style.percent(m)}")
    if at is not None:
        ax.plot([], [], "|", color=INK, ms=6, label="rows")
    ax.set_ylim(-top * 1.05 * room / (1 - room), top * 1.05)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top * 1.05])
    ax.axhline(0, color=INK, lw=0.6, alpha=0.6)


# ------------------------------------------------------------------------------------------------
# Class probabilities along the features that matter most.


_PANEL, _PANEL_NAMES = 2.5, 12  # inches of a panel, and categories in it
_LETTERS = 24  # that have room below a panel


def _draw(
    ax: "Axes",
    clf: Any,
    rows: Rows,
    one: Feature,
    held: list[Any],
    shown: list[int],
    codes: Array | None,
    prob: float | None,
) -> tuple[str, str]:
    """Draw probabilities of classes along a feature; return what is drawn, and along what."""
    few = ""
    if one.kind == "nominal" and len(one.values) > _PANEL_NAMES:
        p = clf.predict_proba(rows.along(one, held))[:, shown]
        few = f"\n({_PANEL_NAMES} of {len(one.values)} categories)"
        one = one.some(_kept(np.abs(p - np.median(p, axis=0)).max(axis=1), _PANEL_NAMES))
    along = rows.along(one, held)
    table = clf.predict_interval(along, prob, "eti")
    band = f"{style.percent(table.attrs['prob'])} of p(y | x, θ)"
    label = f"p({clf.classes_[shown[0]]} | x)" if len(shown) == 1 else "class probability"
    axis = drawing.Categories(ax, one.text if one.kind == "nominal" else [], _LETTERS)
    x = one.x
    for level in (0.0, 0.5, 1.0):
        (ax.axhline if axis.below else ax.axvline)(level, color=HAIR, lw=0.8, zorder=0)
    for i, k in enumerate(shown):
        own = style.look(k)
        tint = own.color
        low, high = table["interval"].values[:, k].T
        p = table["predictive"].values[:, k]
        name = "p(y | x, D), predictive" if len(shown) == 1 else str(clf.classes_[k])
        whole = band if i == 0 else None
        if one.kind == "nominal":
            width = 0.6 / len(shown)
            at = x + (i - (len(shown) - 1) / 2) * width
            axis.bars(at, p, width, color=tint, alpha=0.45, hatch=own.hatch, lw=0, label=name)
            axis.lines(at, low, high, color=INK, lw=1.6, label=whole)
            continue
        mark: dict[str, Any] = {}
        if one.kind == "count" and len(x) <= 40:
            mark = {"marker": "o", "ms": 3.5}
        ax.fill_between(x, low, high, color=tint, alpha=0.2, lw=0, label=whole)
        ax.plot(x, p, color=tint, ls=own.dashes, lw=2, label=name, **mark)
    if codes is not None:
        shift = np.random.default_rng(0).uniform(-0.25, 0.25, len(codes))
        place = one.at + (shift if one.kind == "nominal" else 0.0)
        stroke = "|" if axis.below else "_"
        for k in (-1, *shown):  # the other classes below
            mine = ~np.isin(codes, shown) if k < 0 else codes == k
            tint, height = (MUTED, -0.055) if k < 0 else (style.colour(k), 1.055)
            axis.marks(place[mine], np.full(mine.sum(), height), stroke, color=tint, ms=7)
    if one.kind == "nominal":
        axis.name(one.name + few, label, (-0.1, 1.1))
    else:
        ax.set_ylim(-0.1, 1.1)
        one.draw_axis(ax, label, _LETTERS)
    return label, one.name + few


@spelled
@through_pipelines
def plot_effects(
    clf: Any,
    X: Any,
    y: Any = None,
    *,
    classes: Any = None,
    at: Any = None,
    most: int = 6,
    prob: float | None = None,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> "list[Axes]":
    """Draw the probability of a class along each of the features that change it most.

    Parameters
    ----------
    clf : fitted classifier or pool
    X : (N, D)
        The range of each column is drawn, of real numbers a tenth wider on either side; of a
        categorical or binary column, a bar for each value. Of more than 12 categories those that
        change the probability most are shown.
    y : (N,), optional
        Labels: the rows are drawn at 0 (other classes) and at 1 (the classes shown).
    classes : label or sequence of labels, optional
        Default: the last of ``clf.classes_``, which the title names.
    at : (D,) cells, or {feature: cell}, optional
        Where the other features are held; default the median of each column, of categories the
        most frequent. The title says which.
    prob : float in (0, 1), optional
        Of the band, the equal-tailed interval of p(y | x, theta).
    most : int
        Features shown, that of the widest range of probabilities first.
    ax : sequence or array of matplotlib.axes.Axes, optional
        As many as features are shown, or more.
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    list of matplotlib.axes.Axes
        One for each feature shown.
    """
    style.checked_axes(ax, figsize)
    IntervalRequest.of(prob)
    refuse_below(1, most=most)
    rows = Rows(clf, X)
    codes = None if y is None else style.label_codes(clf, y, rows.table.n_rows)
    shown = style.chosen(classes, clf.classes_, [len(clf.classes_) - 1])
    held = rows.typical(at)
    features = [rows.feature(j) for j in range(len(rows.names))]
    p = [clf.predict_proba(rows.along(one, held))[:, shown] for one in features]
    order = np.argsort([-np.ptp(own, axis=0).max() for own in p], kind="stable")
    n = min(most, len(order), 3 * style.fitting(len(order), _PANEL))
    wide = 2 if n == 4 else min(n, 3)
    size = (max(3.1 * wide, 4.6) + 2.2 * (len(shown) > 1), 0.7 + _PANEL * -(-n // wide))
    band = f"{style.percent(IntervalRequest.of(prob).prob)} of p(y | x, θ) around the predictive"
    with style.panels(ax, n, figsize, size) as own:
        for one, j in zip(own, order[:n], strict=True):
            what, name = _draw(one, clf, rows, features[j], held, shown, codes, prob)
            one.set(xlabel="", ylabel="")  # the same in all, so that the title has it
            drawing.title(one, name, 26, size=10)
            # names of categories may be on the left
            (one.set_xticks if one.yaxis_inverted() else one.set_yticks)([0, 0.5, 1])
        text = f"{what}; others {_where(rows.kinds, at)}; {band}"
        if ax is None:
            own[0].figure.suptitle(
                style.written(text, 13 * int(size[0]), 3), size=9.5, x=0.01, ha="left"
            )
        else:
            drawing.note(own[0], f"{own[0].get_title(loc='left')}: {text}")
        if len(shown) > 1:
            style.legend_beside(own[min(wide, n) - 1])
        return own


# ------------------------------------------------------------------------------------------------
# Two features: what each class looks like, where it is chosen, and where that is not sure.

_GRID, _COARSE, _DRAWS, _REGION_ROWS = 201, 67, 200, 4000
_LABELLED = 4  # classes whose lines have their mass written on them


@spelled
@through_pipelines
def plot_regions(
    clf: Any,
    X: Any,
    y: Any = None,
    *,
    overlay: Literal["epistemic"] | None = "epistemic",
    boundaries: Sequence[Method] = ("posterior_predictive",),
    mass: Sequence[float] = (0.5, 0.9),
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw densities, decision regions and their uncertainty in the plane of two features.

    Lines are p(x | y = c, D), around the given masses of each class, which they are labelled with
    (none of a pool, or of a discriminative classifier); tints are the most probable class;
    boundaries are where it changes. The darker the overlay, the less the training rows
    settle p(y | x, theta) there.

    Parameters
    ----------
    clf : fitted classifier or pool of two real features
    X : (N, 2)
        Its range is drawn, a tenth wider on either side.
    y : (N,), optional
        Labels of the rows, drawn as points.
    overlay : "epistemic" or None
        Information about theta in a label at x, in nats, from 200 joint posterior draws.
    boundaries : methods of `predict_proba`
        The first in a solid line. One whose estimate does not exist is left out.
    mass : sequence of floats in (0, 1)
        Of each class, inside its contours.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
    """
    style.checked_axes(ax, figsize)
    if getattr(clf, "n_features_in_", 0) != 2:
        raise ValueError("plot_regions draws the plane of two features: fit on two columns")
    if overlay not in ("epistemic", None):
        raise ValueError(f"overlay must be 'epistemic' or None, got {overlay!r}")
    for method in boundaries:
        check_method(method)
    if not all(0 < m < 1 for m in mass):
        raise ValueError(f"mass must be probabilities between 0 and 1, got {list(mass)}")
    rows = Rows(clf, X)
    if "nominal" in rows.kinds:
        name = rows.names[rows.kinds.index("nominal")]
        raise ValueError(
            f"plot_regions draws real features, and {name!r} has categories: see plot_effects"
        )
    codes = None if y is None else style.label_codes(clf, y, rows.table.n_rows)
    values = np.column_stack([rows.feature(j).at for j in (0, 1)])
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    pad = 0.1 * np.where(high > low, high - low, 1.0)
    by_draws = getattr(clf, "inference_", "closed form") != "closed form"  # all, at each point
    n_points = _COARSE if by_draws else _GRID
    gx, gy = np.meshgrid(*np.linspace(low - pad, high + pad, n_points).T)
    grid = style.rows_like(X, np.column_stack([gx.ravel(), gy.ravel()]))
    with style.canvas(ax, figsize, (7.2, 5.4)) as ax:
        _tint(ax, clf, grid, gx, gy)
        if overlay is not None:
            cx, cy = np.meshgrid(*np.linspace(low - pad, high + pad, _COARSE).T)
            coarse = style.rows_like(X, np.column_stack([cx.ravel(), cy.ravel()]))
            _overlay(ax, clf, coarse, cx, cy)
        if hasattr(clf, "score_samples"):
            _contours(ax, clf, X, grid, gx, gy, mass)
        drawn = _boundaries(ax, clf, grid, gx, gy, boundaries)
        if codes is not None:
            for k in range(len(clf.classes_)):
                ax.plot(*values[codes == k].T, "o", **style.look(k).mark(4))
        names = style.feature_names(clf)
        ax.set(xlim=(gx[0, 0], gx[0, -1]), ylim=(gy[0, 0], gy[-1, 0]))
        drawing.label_axes(ax, names[0], names[1])
        held = f"lines hold {', '.join(map(style.percent, mass))}"
        inside = len(clf.classes_) <= _LABELLED or not hasattr(clf, "score_samples")
        _legend(ax, clf.classes_, drawn, "" if inside else held)
    return ax


def _tint(ax: "Axes", clf: Any, grid: Any, gx: Array, gy: Array) -> None:
    from matplotlib.colors import to_rgb

    chosen = clf.predict_log_proba(grid).argmax(axis=1).reshape(gx.shape)
    colours = np.array([to_rgb(style.colour(k)) for k in range(len(clf.classes_))])
    _image(ax, gx, gy, 1 - 0.16 * (1 - colours[chosen]), interpolation="nearest", zorder=0)


def _image(ax: "Axes", gx: Array, gy: Array, values: Array, **options: Any) -> Any:
    extent = (gx[0, 0], gx[0, -1], gy[0, 0], gy[-1, 0])
    return ax.imshow(values, extent=extent, origin="lower", aspect="auto", **options)


def _overlay(ax: "Axes", clf: Any, grid: Any, gx: Array, gy: Array) -> None:
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    tree = clf.predict_posterior(grid, _DRAWS)
    rho = tree["predictions"]["class_probability"].values.reshape(-1, gx.size, len(clf.classes_))
    value = entr(rho.mean(axis=0)).sum(axis=1) - entr(rho).sum(axis=2).mean(axis=0)
    ink = to_rgb(INK)
    shades = LinearSegmentedColormap.from_list("overlay", [(*ink, 0.0), (*ink, 0.45)])
    shading: dict[str, Any] = {
        "cmap": shades,
        "interpolation": "bilinear",
        "vmin": 0,
        "zorder": 0.5,
    }
    image = _image(ax, gx, gy, value.reshape(gx.shape), **shading)
    label = "epistemic entropy [nats]"
    bar = ax.figure.colorbar(image, ax=ax, label=label, location="bottom", aspect=40, shrink=0.7)
    bar.outline.set_visible(False)


def _contours(
    ax: "Axes", clf: Any, X: Any, grid: Any, gx: Array, gy: Array, mass: Sequence[float]
) -> None:
    from matplotlib.patheffects import withStroke

    for k, c in enumerate(clf.classes_):
        only = np.eye(len(clf.classes_))[k]  # all weight on one class: p(x | y = c, D) itself
        rows, _ = clf.simulate(_REGION_ROWS, y=c, random_state=0)
        rows = style.rows_like(X, np.asarray(rows, dtype=np.float64))
        levels = np.quantile(clf.score_samples(rows, class_prior=only), 1 - np.asarray(mass))
        density = clf.score_samples(grid, class_prior=only).reshape(gx.shape)
        own = style.look(k)
        line: dict[str, Any] = {
            "colors": [own.color],
            "linewidths": 1.2,
            "linestyles": [own.dashes],
        }
        drawn = ax.contour(gx, gy, density, levels=np.unique(levels), **line)
        if len(clf.classes_) <= _LABELLED:
            texts = {level: style.percent(m) for level, m in zip(levels, mass, strict=True)}
            ax.clabel(drawn, fmt=texts, fontsize=8)
        if len(clf.classes_) > len(CLASSES):  # a colour stands for several classes: by name
            halo = [withStroke(linewidth=2.5, foreground="white")]
            x, y = np.median(np.asarray(rows, dtype=np.float64), axis=0)
            bold: dict[str, Any] = {"color": own.color, "weight": "bold", "size": 8}
            name = style.written(c, 14)
            ax.text(x, y, name, ha="center", path_effects=halo, clip_on=True, **bold)


def _boundaries(
    ax: "Axes", clf: Any, grid: Any, gx: Array, gy: Array, methods: Sequence[Method]
) -> list[tuple[Method, Any]]:
    """Draw them; names and line styles of those that there are."""
    drawn = []
    for method, dashes in zip(methods, style.DASHES, strict=False):
        try:
            own = {} if method == "posterior_predictive" else {"method": method}
            log_p = clf.predict_log_proba(grid, **own)
        except UndefinedEstimateError:
            continue
        for a, b in combinations(range(log_p.shape[1]), 2):
            gap, best = log_p[:, a] - log_p[:, b], log_p[:, [a, b]].max(axis=1)
            third = (log_p > best[:, None]).any(axis=1)  # there the two do not matter
            gap = np.ma.array(gap, mask=third).reshape(gx.shape)
            if gap.count() and gap.min() < 0 < gap.max():
                ax.contour(
                    gx, gy, gap, levels=[0], colors=[INK], linewidths=1.5, linestyles=[dashes]
                )
        drawn.append((method, dashes))
    return drawn


def _legend(ax: "Axes", classes: Array, drawn: list[tuple[Method, Any]], held: str) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for k, c in enumerate(classes):
        own = style.look(k)
        line = {"color": own.color, "ls": own.dashes, "lw": 1.2}
        handles.append(Line2D([], [], **line, marker="o", label=str(c), **own.mark(4)))
    handles += [
        Line2D([], [], color=INK, lw=1.5, ls=dashes, label=f"{METHOD_NAMES[m]} rule")
        for m, dashes in drawn
    ]
    if held:
        handles.append(Line2D([], [], color="none", label=held))
    style.legend_beside(ax, handles)
