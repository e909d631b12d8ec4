"""Class probabilities along one feature: the sigmoid slope, and how sure it is."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import Method
from bayesgen.plots.style import (
    HAIR,
    METHOD_NAMES,
    MUTED,
    canvas,
    colour,
    feature_index,
    feature_names,
    percent,
    refuse_other_labels,
    rows_like,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 161


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
) -> "Axes":
    """The probability of a class while one real feature varies and the others stay.

    Parameters
    ----------
    clf : fitted classifier of real features
    X : (N, D)
        Its range is drawn, a tenth wider on either side.
    y : (N,), optional
        Labels: the rows are drawn below (others) and above (the class).
    feature : int or column name
    at : (D,), optional
        Where the section is made; default the median of each column.
    label : label, optional
        Default: the last of ``clf.classes_``.
    plug_in : {"map", "mle", "posterior_mean"} or None
        Drawn dashed beside the predictive; left out if the estimate does not exist.
    prob : float in (0, 1), optional
        Of the band, the equal-tailed interval of p(y | x, theta).
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    values = np.asarray(X, dtype=np.float64)
    refuse_other_labels(clf, y, len(values))
    names = feature_names(clf)
    j = feature_index(clf, feature)
    k = len(clf.classes_) - 1 if label is None else int(clf._codes_of(label))
    low, high = np.nanmin(values[:, j]), np.nanmax(values[:, j])
    x = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), _POINTS)
    grid = np.tile(
        np.nanmedian(values, axis=0) if at is None else np.asarray(at, float), (len(x), 1)
    )
    grid[:, j] = x
    rows = rows_like(X, grid)
    table = clf.predict_interval(rows, prob, "eti")
    with canvas(ax, (6.2, 3.6)) as ax:
        tint = colour(k)
        for level in (0.0, 0.5, 1.0):
            ax.axhline(level, color=HAIR, lw=0.8, zorder=0)
        band = f"{percent(table.attrs['prob'])} of p(y | x, θ)"
        ax.fill_between(
            x, *table["interval"].values[:, k].T, color=tint, alpha=0.2, lw=0, label=band
        )
        ax.plot(x, table["predictive"][:, k], color=tint, lw=2, label="p(y | x, D), predictive")
        if plug_in is not None:
            try:
                p = clf.predict_proba(rows, method=plug_in)[:, k]
                ax.plot(x, p, color=tint, lw=1.4, ls=(0, (4, 2.2)), label=METHOD_NAMES[plug_in])
            except UndefinedEstimateError:
                pass
        if y is not None:
            mine = np.asarray(y) == clf.classes_[k]
            for own, height in ((~mine, -0.055), (mine, 1.055)):
                at_height = np.full(int(own.sum()), height)
                ax.plot(values[own, j], at_height, "|", color=tint if height > 1 else MUTED, ms=7)
        ax.set(ylim=(-0.1, 1.1), xlim=(x[0], x[-1]), xlabel=names[j])
        ax.set_ylabel(f"p({clf.classes_[k]} | x)")
        ax.legend(loc="best")
    return ax
