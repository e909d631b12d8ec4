"""Models by their leave-one-out scores: how far each is below the best, and how sure that is."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plots.style import HAIR, MUTED, canvas, checked_axes, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_comparison(
    comparison: Any,
    *,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Difference of each model's leave-one-out label score to the best, with its standard error.

    Parameters
    ----------
    comparison : ModelComparison
        Of `compare_models`.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
        Bars of one standard error of the paired difference; the best model is at 0. A model whose
        score is minus infinity has no point, but a word.
    """
    checked_axes(ax, figsize)
    table = getattr(comparison, "table", None)
    if table is None:
        raise TypeError(
            "plot_comparison draws what bg.compare_models(models, X, y) returns, got a "
            f"{type(comparison).__name__}"
        )
    names = [str(name) for name in table["model"].values]
    gap, se = table["elpd_diff"].values, np.nan_to_num(table["dse"].values)
    place = np.arange(len(names))
    with canvas(ax, figsize, (6.0, 1.0 + 0.42 * len(names))) as ax:
        ax.axvline(0, color=MUTED, lw=1, zorder=0)
        ax.hlines(place, gap - se, gap + se, color=colour(0), lw=2.2, alpha=0.5)
        ax.plot(gap, place, "o", color=colour(0), ms=6, mec="white", mew=0.7)
        for at in np.flatnonzero(np.isneginf(gap)):
            ax.annotate("−∞ ", (1, at), xycoords=("axes fraction", "data"), ha="right", va="center")
        ax.set_yticks(place, names)
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.invert_yaxis()
        ax.grid(axis="x", color=HAIR, lw=0.5)
        ax.set_axisbelow(True)
        ax.set_xlabel("leave-one-out log probability of the labels, less that of the best (nats)")
        ax.set_title(f"{table.attrs['rows']} rows; bars: one standard error")
    return ax
