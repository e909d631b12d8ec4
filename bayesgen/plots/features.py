"""Pictures of columns: densities, class probabilities along a column, regions of two columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from bayesgen.encoding.column import Column
from bayesgen.encoding.schema import COUNTED, TableSchema
from bayesgen.encoding.tables import Table
from bayesgen.encoding.views import BinnedTable
from bayesgen.errors import refuse_below
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHOD_NAMES, Method
from bayesgen.families.shared.documents import WordCounts
from bayesgen.numerics.special import Array
from bayesgen.plots import drawing, style
from bayesgen.plots.style import HAIR, INK, MUTED, Dashes, Options
from bayesgen.posterior.fitted import Fitted, fitted_of, through_pipelines
from bayesgen.predict.draws import IntervalRequest
from bayesgen.predict.probabilities import check_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

Kind = Literal["real", "count", "nominal"]

_POINTS = 161  # of a curve
_MASS = (0.5, 0.9)  # of a class, inside intervals and contours
_FEW = 12  # whole numbers of a column that a model without a density of x may read as categories
_NOMINAL, _COUNTS = ("categorical", "category", "bernoulli", "bit"), (*COUNTED, "count")
_REAL = ("gaussian", "lognormal", "real")


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
    rows : (N,) float
        Where each row is: its number, or the position of its category; NaN where missing.
    """

    name: str
    place: int
    kind: Kind
    values: list[Any]
    rows: Array

    @property
    def x(self) -> Array:
        """Return where `values` are on the axis."""
        return np.arange(len(self.values)) if self.kind == "nominal" else np.array(self.values)

    @property
    def typical(self) -> Any:
        """Return the median, or the most frequent category."""
        if self.kind == "nominal":
            codes = self.rows[~np.isnan(self.rows)].astype(int)
            return self.values[int(np.bincount(codes).argmax())] if len(codes) else None
        median = float(np.nanmedian(self.rows))
        return int(median) if self.kind == "count" else median

    def only(self, kept: Array) -> "Feature":
        """Return the same with some of its categories."""
        position = np.full(len(self.values) + 1, np.nan)
        position[kept] = np.arange(len(kept))
        rows = position[np.where(np.isnan(self.rows), -1, self.rows).astype(int)]
        return replace(self, values=[self.values[i] for i in kept], rows=rows)


def _read(clf, X, y) -> tuple[Table, list[Feature], Array | None]:
    """Return the rows as a table, the columns of the classifier in it, and codes of the labels."""
    if not hasattr(clf, "n_features_in_"):
        raise TypeError(
            f"{type(clf).__name__} reads sequences: there are no columns to draw; "
            "clf.explain and bg.top_words show what tokens say"
        )
    table = Table(X)
    if table.n_rows == 0:
        raise ValueError("X has no rows: there is no range to draw")
    places = places_of_columns(clf, table)
    features = [
        _feature(clf.fitted_, j, name, place, table.column(place))
        for j, (name, place) in enumerate(zip(clf.fitted_.column_names, places, strict=True))
    ]
    return table, features, None if y is None else style.label_codes(clf, y, table.n_rows)


def places_of_columns(clf: Any, table: Table) -> list[int]:
    """Return where in a table the columns of the classifier are."""
    names, schema = clf.fitted_.column_names, _schema(clf.fitted_)
    if table.names is not None and hasattr(clf, "feature_names_in_"):
        if lost := [name for name in names if name not in table.names]:
            raise ValueError(f"X lacks the columns {', '.join(map(repr, lost))}")
        return [table.names.index(name) for name in names]
    return list(range(len(names)) if schema is None else schema.positions)


def _feature(fitted: Fitted, j: int, name: str, place: int, column: Column) -> Feature:
    holds = _holds(fitted, j, column)
    if holds in _NOMINAL:
        values = _categories(fitted, j, column)
        codes = column.encode(tuple(values)).astype(float)
        return Feature(name, place, "nominal", values, np.where(codes < 0, np.nan, codes))
    cells = np.asarray(column.values, dtype=np.float64)
    if not column.present.any():
        raise ValueError(f"{column.label} holds nothing but missing cells")
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    if holds in _COUNTS:
        step = max(1, int(high - low) // _POINTS + 1)
        values = list(range(int(low), int(max(high, low + 1)) + 1, step))
        return Feature(name, place, "count", values, cells)
    room = 0.1 * (high - low) or 0.5
    start = max(low - room, low / 2) if holds == "lognormal" else low - room
    return Feature(name, place, "real", np.linspace(start, high + room, _POINTS).tolist(), cells)


def _holds(fitted: Fitted, j: int, column: Column) -> str:
    """Return the word of the schema, or of the family, for what column j holds."""
    schema, family = _schema(fitted), fitted.family
    if schema is not None:
        return schema.kinds[j]
    if column.kind in ("text", "boolean") or column.nominal:
        return "categorical"
    if family.holds in (*_NOMINAL, *_COUNTS, *_REAL) and not family.discriminative:
        return family.holds
    numbers = np.unique(column.values[column.present])  # nothing is known of how it is modelled
    if np.any(numbers % 1):
        return "real"
    return "category" if len(numbers) <= _FEW else "count"


def _categories(fitted: Fitted, j: int, column: Column) -> list[Any]:
    """Return the categories that the classifier knows, or those of the column."""
    schema = _schema(fitted)
    kind = fitted.family.holds if schema is None else schema.kinds[j]
    if kind in ("bernoulli", "bit"):
        return [False, True] if column.kind == "boolean" else [0, 1]
    if schema is not None:
        return list(schema.categories[j])
    return list(column.learn())


def _schema(fitted: Fitted) -> TableSchema | None:
    """Return kinds and categories of the columns, if the classifier has learned them."""
    encoder = fitted.reader.encoder
    return encoder if isinstance(encoder, TableSchema) else None


def _rows_with(table: Table, n: int, cells: Mapping[int, Any]):
    """Return n rows for the classifier, from {place: a cell, or n of them}; others are missing."""
    import pandas as pd

    columns = {j: cells.get(j, np.nan) for j in range(table.n_columns)}
    frame = pd.DataFrame(columns, index=range(n))
    return frame.to_numpy() if table.names is None else frame.set_axis([*table.names], axis=1)


# ------------------------------------------------------------------------------------------------
# What each class looks like in one column: its predictive density or probabilities.

_SIMULATED = 10_000  # rows of each class
_BINS = 50  # of a density that is known by simulated rows alone
_BARS, _CATEGORIES = 40, 40  # bars of a picture, and categories
_STRIP = 0.035  # height of a class below the curves, as a share of the axes


@through_pipelines
def plot_densities(
    clf: Any,
    X: Any,
    y: Any = None,
    feature: Any = 0,
    *,
    classes: Any = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw the density of one column in each class: p(x_j | y = c, D), other columns summed out.

    A real column has curves, with the middle 50 % and 90 % of each class below them. A count has
    marks at whole numbers. Binary, categorical and binned columns have bars, or points if there
    are more than 40. With more than 40 categories the most probable ones are shown, and the label
    of the axis says so.

    Parameters
    ----------
    clf : fitted classifier with a density of x
    X : (N, D)
        Rows that set the range of the axis, a tenth wider on either side for real numbers.
    y : (N,), optional
        Labels of the rows. With them the picture shows the rows below the curves, or their shares
        in the bars.
    feature : int or column name
    classes : label or sequence of labels, optional
        Classes to show. Default: all.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If the classifier is a pool or models sequences, or counts of words given the length of the
        row.
    NotImplementedError
        If the classifier is discriminative.

    Notes
    -----
    The density is exact if the classifier leaves a missing cell out of a row's density. Otherwise
    it is estimated from 10,000 simulated rows of each class, and the title says so.
    """
    style.checked_axes(ax, figsize)
    fitted = fitted_of(clf, "plot_densities")
    fitted.refuse_if_discriminative("plot_densities")
    table, features, codes = _read(clf, X, y)
    j = style.feature_index(clf, feature)
    one, blocks = features[j], list(fitted.family.blocks())
    for block in blocks:
        in_block = j in np.arange(len(features))[block.columns]
        if in_block and isinstance(block.family, WordCounts):
            raise TypeError(
                f"the counts of column {one.name!r} are modelled given the total of their row: "
                "there is no density of one column; bg.top_words shows what words say"
            )
    shown = style.chosen(classes, clf.classes_, range(len(clf.classes_)))
    names = _code_names(fitted.reader.encoder, j, one)
    is_exact = not isinstance(fitted.reader.encoder, BinnedTable) and all(
        block.family.missing == "marginalised" for block in blocks
    )
    p, cells = {}, {}
    if is_exact:
        p = {k: np.exp(_log_density(clf, table, one, k)) for k in shown}
    if names is None or not is_exact:
        cells = {k: _simulated(fitted, k, j) for k in shown}
    is_turned = names is not None and drawing.are_turned(names)
    tall = max(4.4 if is_turned else 3.6, style.height(len(shown) + 4, 0.2))
    with style.canvas(ax, figsize, (7.2, tall)) as ax:
        if names is None:
            _curves(ax, clf, one, p, cells, codes)
            ax.set_xlim(one.values[0], one.values[-1])
            label = one.name
        else:
            n = len(names)
            shares = p or {k: _shares(codes_of_class, n) for k, codes_of_class in cells.items()}
            seen = None
            if codes is not None:
                column = _column(fitted.encoded(X), j)
                seen = {k: _shares(column[codes == k], n) for k in shown}
            label = one.name + _bars(ax, clf, names, shares, seen)
        drawing.label_axes(ax, label, f"p({one.name} | class, D)")
        others = "" if len(features) == 1 else "the other features summed out"
        drawing.note(ax, others if is_exact else f"of {_SIMULATED:,} simulated rows per class")
        style.legend_beside(ax)
    return ax


def _code_names(encoder, j: int, one: Feature) -> list[str] | None:
    """Return the names of the codes that the family takes of column j; None for numbers."""
    if one.kind == "nominal":
        names = [str(value) for value in one.values]
    elif isinstance(encoder, BinnedTable):
        ends = ["−∞", *(f"{end:.4g}" for end in encoder.cuts[j] or ()), "∞"]
        names = [f"[{low}, {high})" for low, high in pairwise(ends)]
    else:
        return None
    return [*names, "missing"] if isinstance(encoder, BinnedTable) and encoder.missing[j] else names


def _log_density(clf, table: Table, one: Feature, k: int) -> Array:
    """Return log p(x_j | y = k, D) at the values of the feature."""
    rows = _rows_with(table, len(one.values), {one.place: one.values})
    log_p: Array = clf.score_samples(rows, class_prior=np.eye(len(clf.classes_))[k])
    return log_p


def _simulated(fitted: Fitted, k: int, j: int) -> Array:
    """Return column j of simulated rows of class k."""
    labels = np.full(_SIMULATED, k)
    rng = np.random.default_rng(0)
    return _column(fitted.posterior.simulate(rng, _SIMULATED, labels, False)[0], j)


def _column(X, j: int) -> Array:
    """Return column j of encoded rows, dense."""
    column = X[:, [j]].toarray() if sparse.issparse(X) else np.asarray(X)[:, j]
    return np.asarray(column, dtype=np.float64).ravel()


def _shares(codes: Array, n: int) -> Array:
    counts = np.bincount(codes[codes >= 0].astype(int), minlength=n)
    shares: Array = counts / np.maximum(1, counts.sum())
    return shares


def _largest(size: Array, most: int) -> Array:
    """Return the places of the largest, in their order."""
    return np.sort(np.argsort(-size, kind="stable")[:most])


def _bars(
    ax: "Axes", clf, names: list[str], p: dict[int, Array], seen: dict[int, Array] | None
) -> str:
    """Draw a bar, or of many a point, for each category and class; return which are shown."""
    kept = _largest(np.max([*p.values()], axis=0), _CATEGORIES)
    is_many = len(p) * len(kept) > _BARS
    for i, (k, value) in enumerate(p.items()):
        look, name = style.look(k), str(clf.classes_[k])
        x, width = drawing.beside(len(kept), i, len(p))
        if is_many:
            ax.plot(x, value[kept], "o", color=look.color, label=name, **look.mark(4.5))
            continue
        bar: Options = {"color": look.color, "hatch": look.hatch, "alpha": 0.6}
        ax.bar(x, value[kept], 0.92 * width, edgecolor="white", lw=0, label=name, **bar)
        if seen is not None:
            ax.plot(x, seen[k][kept], "_", color=INK, ms=min(16, 90 * width), mew=1.4)
    if seen is not None and not is_many:
        ax.errorbar([], [], fmt="_", color=INK, ms=12, mew=1.4, label="share of the rows")
    ax.set_ylim(bottom=0)
    drawing.grid(ax, "y")
    drawing.name_columns(ax, [names[i] for i in kept])
    if len(kept) == len(names):
        return ""
    return f"\n(the most probable {len(kept)} of {len(names)} categories)"


def _curves(
    ax: "Axes",
    clf,
    one: Feature,
    p: dict[int, Array],
    cells: dict[int, Array],
    codes: Array | None,
) -> None:
    """Draw densities, and below them a line per class: the middle of simulated cells, and rows."""
    room = _STRIP * (len(cells) + 1)
    edges = np.linspace(one.values[0], one.values[-1], _BINS + 1)
    top = 0.0
    strip = ax.get_xaxis_transform()  # heights as shares of the axes
    bars: Options = {"alpha": 0.55}
    for i, (k, simulated) in enumerate(cells.items()):
        look = style.look(k)
        line = look.line(1.8) | {"label": str(clf.classes_[k])}
        if k in p:
            density = p[k]
            if one.kind == "count" and len(density) <= 60:
                line |= {"marker": "o", **look.mark(4)}
            ax.plot(one.x, density, **line)
        else:
            density = np.histogram(simulated, edges)[0] / len(simulated) / np.diff(edges)
            ax.stairs(density, edges, baseline=None, **line)
        top = max(top, float(np.nanmax(density)))
        height = room - _STRIP * (i + 0.75)
        for m, lw in zip(_MASS, (4.0, 1.6), strict=True):
            ends = np.quantile(simulated, [(1 - m) / 2, (1 + m) / 2])
            ax.hlines(height, *ends, color=look.color, lw=lw, transform=strip, **bars)
        if codes is not None:
            rug = one.rows[codes == k]
            mark: Options = {"color": look.color, "ms": 6, "mew": 0.8, "alpha": 0.8}
            ax.plot(rug, np.full(len(rug), height), "|", transform=strip, **mark)
    for m, lw in zip(_MASS, (4.0, 1.6), strict=True):
        ax.plot([], [], color=INK, lw=lw, label=f"middle {style.percent(m)}", **bars)
    if codes is not None:
        ax.plot([], [], "|", color=INK, ms=6, label="rows")
    ax.set_ylim(-top * 1.05 * room / (1 - room), top * 1.05)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top * 1.05])
    ax.axhline(0, color=INK, lw=0.6, alpha=0.6)


# ------------------------------------------------------------------------------------------------
# Class probabilities along the features that matter most.

_PANEL, _PANEL_NAMES = 2.5, 12  # inches of a panel, and categories in it
_LETTERS = 24  # that have room below a panel


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
        Rows that set the range of each axis, a tenth wider on either side for real numbers. A
        categorical or binary column has a bar for each value; with more than 12 categories those
        that change the probability most are shown.
    y : (N,), optional
        Labels. With them the picture shows the rows at 0 (other classes) and 1 (classes shown).
    classes : label or sequence of labels, optional
        Default: the last of ``clf.classes_``, which the title names.
    at : (D,) cells, or {feature: cell}, optional
        Values of the other features. Default: the median of each column, or its most frequent
        category. The title names them.
    prob : float in (0, 1), optional
        Probability of the band, the equal-tailed interval of p(y | x, theta).
    most : int
        Number of features to show. The one with the widest range of probabilities is first.
    ax : sequence or array of matplotlib.axes.Axes, optional
        At least as many as there are features to show.
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    list of matplotlib.axes.Axes
        One for each feature shown.
    """
    style.checked_axes(ax, figsize)
    band = f"{style.percent(IntervalRequest.of(prob).prob)} of p(y | x, θ)"
    refuse_below(1, most=most)
    table, features, codes = _read(clf, X, y)
    shown = style.chosen(classes, clf.classes_, [len(clf.classes_) - 1])
    held = _held(clf, features, at)

    def rows_along(one: Feature):
        return _rows_with(table, len(one.values), held | {one.place: one.values})

    lines = [_several(one, clf.predict_proba(rows_along(one))[:, shown]) for one in features]
    order = np.argsort([-np.ptp(p, axis=0).max() for _, p in lines], kind="stable")
    n = min(most, len(order), 3 * style.fitting(len(order), _PANEL))
    wide = 2 if n == 4 else min(n, 3)
    size = (max(3.1 * wide, 4.6) + 2.2 * (len(shown) > 1), 0.7 + _PANEL * -(-n // wide))
    with style.panels(ax, n, figsize, size) as panels:
        for panel, j in zip(panels, order[:n], strict=True):
            one = lines[j][0]
            intervals = clf.predict_interval(rows_along(one), prob, "eti")
            _draw_effect(panel, clf, one, intervals, shown, codes, band)
            few = ""
            if len(one.values) < len(features[j].values):
                few = f"\n({len(one.values)} of {len(features[j].values)} categories)"
            drawing.title(panel, one.name + few, 26, size=10)
        what = f"p({clf.classes_[shown[0]]} | x)" if len(shown) == 1 else "class probability"
        text = f"{what}; others {_where(features, at)}; {band} around the predictive"
        if ax is None:
            title = style.written(text, 13 * int(size[0]), 3)
            panels[0].figure.suptitle(title, size=9.5, x=0.01, ha="left")
        else:
            drawing.note(panels[0], f"{panels[0].get_title(loc='left')}: {text}")
        if len(shown) > 1:
            style.legend_beside(panels[min(wide, n) - 1])
        return panels


def _held(clf, features: list[Feature], at) -> dict[int, Any]:
    """Return {place: cell} of each feature, typical or as the user asks."""
    held = {one.place: one.typical for one in features}
    if isinstance(at, Mapping):
        return held | {features[style.feature_index(clf, k)].place: at[k] for k in at}
    if at is None:
        return held
    cells = list(np.asarray(at, dtype=object))
    if len(cells) != len(features):
        raise ValueError(f"at has {len(cells)} cells, but there are {len(features)} features")
    return dict(zip(held, cells, strict=True))


def _where(features: list[Feature], at) -> str:
    """Return, in words, where the other features are held."""
    if at is not None:
        return "at the values given"
    words = {"most frequent values" if f.kind == "nominal" else "medians" for f in features}
    return f"at their {' and '.join(sorted(words))}"


def _several(one: Feature, p: Array) -> tuple[Feature, Array]:
    """Return a feature with the categories that change p (values, class) most, and their p."""
    if one.kind != "nominal" or len(p) <= _PANEL_NAMES:
        return one, p
    kept = _largest(np.abs(p - np.median(p, axis=0)).max(axis=1), _PANEL_NAMES)
    return one.only(kept), p[kept]


def _draw_effect(
    ax: "Axes",
    clf,
    one: Feature,
    table,
    shown: list[int],
    codes: Array | None,
    band: str,
) -> None:
    """Draw probabilities of classes along a feature, with their intervals and the rows."""
    is_nominal = one.kind == "nominal"
    x = one.x
    for level in (0.0, 0.5, 1.0):
        ax.axhline(level, color=HAIR, lw=0.8, zorder=0)
    for i, k in enumerate(shown):
        look = style.look(k)
        low, high = table["interval"].values[:, k].T
        p = table["predictive"].values[:, k]
        label, whole = str(clf.classes_[k]), band if i == 0 else "_"  # no second entry
        if is_nominal:
            places, width = drawing.beside(len(x), i, len(shown), 0.6)
            ax.bar(places, p, width, color=look.color, alpha=0.45, hatch=look.hatch, label=label)
            ax.vlines(places, low, high, color=INK, lw=1.6, label=whole)
            continue
        marks: Options = {"marker": "o", "ms": 3.5} if one.kind == "count" and len(x) <= 40 else {}
        ax.fill_between(x, low, high, color=look.color, alpha=0.2, lw=0, label=whole)
        ax.plot(x, p, label=label, **look.line(2), **marks)
    if codes is not None:
        jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(codes)) * is_nominal
        for k in (-1, *shown):  # the other classes below
            mine = ~np.isin(codes, shown) if k < 0 else codes == k
            tint, height = (MUTED, -0.055) if k < 0 else (style.colour(k), 1.055)
            rug = (one.rows + jitter)[mine]
            ax.plot(rug, np.full(len(rug), height), "|", color=tint, ms=7)
    if is_nominal:
        drawing.name_columns(ax, [str(value) for value in one.values], _LETTERS, 22)
    else:
        ax.set_xlim(x[0], x[-1])
    ax.set(ylim=(-0.1, 1.1), yticks=(0, 0.5, 1))


# ------------------------------------------------------------------------------------------------
# Two features: what each class looks like, where it is chosen, and where that is not sure.

_GRID, _COARSE = 201, 67  # points of a side; where each is an average over draws
_DRAWS, _REGION_ROWS = 200, 4000


@through_pipelines
def plot_regions(
    clf: Any,
    X: Any,
    y: Any = None,
    *,
    overlay: Literal["epistemic"] | None = "epistemic",
    boundaries: Sequence[Method] = ("posterior_predictive",),
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw densities, decision regions and their uncertainty in the plane of two features.

    Contours of p(x | y = c, D) enclose 50 % and 90 % of each class; a pool and a discriminative
    classifier have none. Tints show the most probable class, and boundaries where it changes. The
    overlay is dark where p(y | x, theta) is uncertain.

    Parameters
    ----------
    clf : fitted classifier or pool of two real features
    X : (N, 2)
        Rows that set the range of the axes, a tenth wider on either side.
    y : (N,), optional
        Labels. With them the picture shows the rows as points.
    overlay : "epistemic" or None
        Information about theta in a label at x, in nats, from 200 joint posterior draws.
    boundaries : methods of `predict_proba`
        The first has a solid line. A method whose estimate does not exist is left out.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

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
    table, features, codes = _read(clf, X, y)
    first, second = features
    for one in features:
        if one.kind == "nominal":
            raise ValueError(
                f"plot_regions draws real features, and {one.name!r} has categories: see "
                "plot_effects"
            )
    models, has_density = clf.fitted_.models, clf.fitted_.posterior.model.generative
    by_draws = any(model.training.inference != "closed form" for model in models)
    plane = _plane(table, first, second, _COARSE if by_draws else _GRID)
    with style.canvas(ax, figsize, (7.2, 5.4)) as ax:
        _tint(ax, clf, plane)
        if overlay is not None:
            _overlay(ax, clf, _plane(table, first, second, _COARSE))
        if has_density:
            _contours(ax, clf, table, plane)
        drawn = _boundaries(ax, clf, plane, boundaries)
        if codes is not None:
            for k in range(len(clf.classes_)):
                ours = codes == k
                ax.plot(first.rows[ours], second.rows[ours], "o", **style.look(k).mark(4))
        ax.set(xlim=plane.extent[:2], ylim=plane.extent[2:])
        drawing.label_axes(ax, first.name, second.name)
        held = f"lines hold {', '.join(map(style.percent, _MASS))}" if has_density else ""
        _legend(ax, clf.classes_, drawn, held)
    return ax


class Plane(NamedTuple):
    """A grid of the plane of two features."""

    x: Array  # (n, n)
    y: Array
    rows: Any  # (n n), as the classifier takes them
    places: list[int]  # of the two in X

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Return the ends of both axes."""
        return self.x[0, 0], self.x[0, -1], self.y[0, 0], self.y[-1, 0]

    def draw(self, ax: "Axes", values: Array, **options: Any) -> "AxesImage":
        """Draw values or colours of its points as an image."""
        return ax.imshow(values, extent=self.extent, origin="lower", aspect="auto", **options)


def _plane(table: Table, first: Feature, second: Feature, n: int) -> Plane:
    """Return the range of the rows, a tenth wider on either side."""
    values = np.column_stack([first.rows, second.rows])
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    pad = 0.1 * np.where(high > low, high - low, 1.0)
    x, y = np.meshgrid(*np.linspace(low - pad, high + pad, n).T)
    places = [first.place, second.place]
    cells = dict(zip(places, (x.ravel(), y.ravel()), strict=True))
    return Plane(x, y, _rows_with(table, n * n, cells), places)


def _tint(ax: "Axes", clf, plane: Plane) -> None:
    from matplotlib.colors import to_rgb

    chosen = clf.predict_log_proba(plane.rows).argmax(axis=1).reshape(plane.x.shape)
    colours = np.array([to_rgb(style.colour(k)) for k in range(len(clf.classes_))])
    plane.draw(ax, 1 - 0.16 * (1 - colours[chosen]), interpolation="nearest", zorder=0)


def _overlay(ax: "Axes", clf, plane: Plane) -> None:
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    value = clf.predict_uncertainty(plane.rows, draws=_DRAWS)["epistemic"].values
    ink = to_rgb(INK)
    shades = LinearSegmentedColormap.from_list("overlay", [(*ink, 0.0), (*ink, 0.45)])
    look: Options = {"cmap": shades, "interpolation": "bilinear", "vmin": 0, "zorder": 0.5}
    image = plane.draw(ax, value.reshape(plane.x.shape), **look)
    label = "epistemic entropy [nats]"
    bar = ax.figure.colorbar(image, ax=ax, label=label, location="bottom", aspect=40, shrink=0.7)
    bar.outline.set_visible(False)


def _contours(ax: "Axes", clf, table: Table, plane: Plane) -> None:
    """Draw lines of equal density of each class around shares of its simulated rows."""
    for k, c in enumerate(clf.classes_):
        only = np.eye(len(clf.classes_))[k]  # all weight on one class: p(x | y = c, D) itself
        simulated = np.asarray(clf.simulate(_REGION_ROWS, y=c, random_state=0)[0], dtype=float)
        rows = _rows_with(table, _REGION_ROWS, dict(zip(plane.places, simulated.T, strict=True)))
        levels = np.quantile(clf.score_samples(rows, class_prior=only), 1 - np.array(_MASS))
        density = clf.score_samples(plane.rows, class_prior=only).reshape(plane.x.shape)
        look = style.look(k)
        line: Options = {"colors": [look.color], "linestyles": [look.dashes]}
        ax.contour(plane.x, plane.y, density, levels=np.unique(levels), linewidths=1.2, **line)


def _boundaries(
    ax: "Axes", clf, plane: Plane, methods: Sequence[Method]
) -> list[tuple[Method, Dashes]]:
    """Draw them; return names and line styles of those that there are."""
    drawn = []
    for method, dashes in zip(methods, style.DASHES, strict=False):
        options = {} if method == "posterior_predictive" else {"method": method}
        try:
            log_p = clf.predict_log_proba(plane.rows, **options)
        except UndefinedEstimateError:
            continue
        for a, b in combinations(range(log_p.shape[1]), 2):
            gap, best = log_p[:, a] - log_p[:, b], log_p[:, [a, b]].max(axis=1)
            third = (log_p > best[:, None]).any(axis=1)  # there the two do not matter
            gap = np.ma.array(gap, mask=third).reshape(plane.x.shape)
            if gap.count() and gap.min() < 0 < gap.max():
                line: Options = {"colors": [INK], "linewidths": 1.5, "linestyles": [dashes]}
                ax.contour(plane.x, plane.y, gap, levels=[0], **line)
        drawn.append((method, dashes))
    return drawn


def _legend(ax: "Axes", classes: Array, drawn: list[tuple[Method, Dashes]], held: str) -> None:
    for k, c in enumerate(classes):
        look = style.look(k)
        ax.plot([], [], marker="o", label=str(c), **look.line(1.2), **look.mark(4))
    for method, dashes in drawn:
        ax.plot([], [], color=INK, lw=1.5, ls=dashes, label=f"{METHOD_NAMES[method]} rule")
    if held:
        ax.plot([], [], color="none", label=held)
    style.legend_beside(ax)
