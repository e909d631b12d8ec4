"""Class probabilities along one feature, and along those that matter most."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.labels import codes_of
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import Method
from bayesgen.numerics.special import Array
from bayesgen.plots.columns import Feature, Rows
from bayesgen.plots.style import (
    HAIR,
    INK,
    METHOD_NAMES,
    MUTED,
    canvas,
    checked_axes,
    colour,
    label_codes,
    legend_beside,
    panels,
    percent,
)
from bayesgen.predict.interval.request import IntervalRequest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_section(
    clf: Any,
    X: Any,
    y: Any = None,
    feature: Any = 0,
    *,
    at: Any = None,
    label: Any = None,
    plug_in: Method | None = "map",
    prob: float | None = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """The probability of a class while one feature varies and the others stay.

    Parameters
    ----------
    clf : fitted classifier or pool
    X : (N, D)
        The range of its column is drawn, of real numbers a tenth wider on either side; of a
        categorical or binary column, a bar for each value.
    y : (N,), optional
        Labels: the rows are drawn below (others) and above (the class).
    feature : int or column name
    at : (D,) cells, or {feature: cell}, optional
        Where the section is made; default the median of each column, of categories the most
        frequent. The title says which.
    label : label, optional
        Default: the last of ``clf.classes_``.
    plug_in : {"map", "mle", "posterior_mean"} or None
        Drawn dashed beside the predictive; left out if the estimate does not exist, and of a pool.
    prob : float in (0, 1), optional
        Of the band, the equal-tailed interval of p(y | x, theta).
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
    """
    checked_axes(ax, figsize)
    IntervalRequest.of(prob)
    rows = Rows(clf, X)
    codes = None if y is None else label_codes(clf, y, rows.table.n_rows)
    one = rows.feature(feature)
    k = len(clf.classes_) - 1 if label is None else int(codes_of(label, clf.classes_))
    held = rows.typical(at)
    with canvas(ax, figsize, (7.2, 3.6)) as ax:
        _draw(ax, clf, rows, one, held, k, codes, plug_in, prob)
        ax.set_ylabel(f"p({clf.classes_[k]} | x)")
        ax.set_title(rows.held(one, held, at), size=9.5, weight="normal", loc="left")
        legend_beside(ax)
    return ax


def _draw(
    ax: "Axes",
    clf: Any,
    rows: Rows,
    one: Feature,
    held: list[Any],
    k: int,
    codes: Array | None,
    plug_in: Method | None,
    prob: float | None,
) -> None:
    along = rows.along(one, held)
    table = clf.predict_interval(along, prob, "eti")
    estimate = _plug_in(clf, along, plug_in)
    tint, x = colour(k), one.x
    for level in (0.0, 0.5, 1.0):
        ax.axhline(level, color=HAIR, lw=0.8, zorder=0)
    band = f"{percent(table.attrs['prob'])} of p(y | x, θ)"
    low, high = table["interval"].values[:, k].T
    p = table["predictive"].values[:, k]
    if one.kind == "nominal":
        ax.bar(x, p, 0.6, color=tint, alpha=0.45, label="p(y | x, D), predictive")
        ax.vlines(x, low, high, color=INK, lw=1.6, label=band)
        if estimate is not None and plug_in is not None:
            name = METHOD_NAMES[plug_in]
            ax.plot(x, estimate[:, k], "_", color=INK, ms=14, mew=1.4, label=name)
    else:
        mark: dict[str, Any] = {}
        if one.kind == "count" and len(x) <= 40:
            mark = {"marker": "o", "ms": 3.5}
        ax.fill_between(x, low, high, color=tint, alpha=0.2, lw=0, label=band)
        ax.plot(x, p, color=tint, lw=2, label="p(y | x, D), predictive", **mark)
        if estimate is not None and plug_in is not None:
            dashes, name = (0, (4, 2.2)), METHOD_NAMES[plug_in]
            ax.plot(x, estimate[:, k], color=tint, lw=1.4, ls=dashes, label=name)
    if codes is not None:
        mine = codes == k
        shift = np.random.default_rng(0).uniform(-0.25, 0.25, len(mine))
        place = one.at + (shift if one.kind == "nominal" else 0.0)
        for own, height in ((~mine, -0.055), (mine, 1.055)):
            at_height = np.full(int(own.sum()), height)
            ax.plot(place[own], at_height, "|", color=tint if height > 1 else MUTED, ms=7)
    ax.set_ylim(-0.1, 1.1)
    one.draw_axis(ax)


def _plug_in(clf: Any, rows: Any, method: Method | None) -> Array | None:
    if method is None or hasattr(clf, "_members"):
        return None
    try:
        found: Array = clf.predict_proba(rows, method=method)
    except UndefinedEstimateError:
        return None
    return found


def plot_effects(
    clf: Any,
    X: Any,
    y: Any = None,
    *,
    label: Any = None,
    most: int = 6,
    at: Any = None,
    prob: float | None = None,
    axes: Any = None,
    figsize: tuple[float, float] | None = None,
) -> "list[Axes]":
    """The probability of a class along each of the features that change it most.

    Parameters
    ----------
    clf : fitted classifier or pool
    X, y, at, label, prob
        As in `plot_section`; columns may be of any kind.
    most : int
        Features shown, that of the widest range of probabilities first.
    axes : sequence or array of matplotlib.axes.Axes, optional
        As many as features are shown, or more.
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    list of matplotlib.axes.Axes
        One for each feature shown.
    """
    checked_axes(axes, figsize)
    IntervalRequest.of(prob)
    if not isinstance(most, int | np.integer) or most < 1:
        raise ValueError(f"most must be an integer >= 1, got {most!r}")
    rows = Rows(clf, X)
    codes = None if y is None else label_codes(clf, y, rows.table.n_rows)
    k = len(clf.classes_) - 1 if label is None else int(codes_of(label, clf.classes_))
    held = rows.typical(at)
    features = [rows.feature(j) for j in range(len(rows.names))]
    p = [clf.predict_proba(rows.along(one, held))[:, k] for one in features]
    order = np.argsort([-np.ptp(own) for own in p], kind="stable")[:most]
    n = len(order)
    wide = 2 if n == 4 else min(n, 3)
    size = (max(3.1 * wide, 4.6), 0.7 + 2.5 * -(-n // wide))
    with panels(axes, n, figsize, size) as own:
        for place, (ax, j) in enumerate(zip(own, order, strict=True)):
            _draw(ax, clf, rows, features[j], held, k, codes, None, prob)
            if place % wide == 0:
                ax.set_ylabel(f"p({clf.classes_[k]} | x)")
        others = "most frequent values" if {*rows.kinds} == {"nominal"} else "medians"
        if {*rows.kinds} > {"nominal"}:
            others = "medians and most frequent values"
        where = f"others at their {others}" if at is None else "others at the values given"
        band = percent(IntervalRequest.of(prob).prob)
        where += f"; {band} of p(y | x, θ) around the predictive"
        if axes is None:
            own[0].figure.suptitle(where, size=9.5, x=0.01, ha="left")
        else:
            own[0].set_title(where, size=9.5, weight="normal", loc="left")
        return own
