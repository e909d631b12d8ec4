"""What pictures are made of: numbers in, marks on axes out. Nothing here knows a classifier."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.plots.style import (
    CLASSES,
    HAIR,
    INK,
    MUTED,
    Look,
    Options,
    look,
    written,
    written_apart,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_NAME = 22  # letters of a label in a legend


def grid(ax: "Axes", axis: Literal["x", "y", "both"] = "both") -> None:
    """Draw hairlines behind what is drawn."""
    if axis == "x":
        ax.locator_params(axis="x", nbins=6)
    ax.grid(axis=axis, color=HAIR, lw=0.5)
    ax.set_axisbelow(True)


def name_lines(ax: "Axes", names: Sequence[object], longest: int = 32, lines: int = 1) -> None:
    """Label one place per name, the first on top."""
    ax.set_yticks(range(len(names)), written_apart(names, longest, lines))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.spines["left"].set_visible(False)


def name_columns(ax: "Axes", names: Sequence[object], letters: int = 44, longest: int = 26) -> None:
    """Name the places below the axes; turn the names where `letters` have no room for them."""
    ax.set_xticks(range(len(names)), written_apart(names, longest))
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.tick_params(axis="x", length=0, labelcolor=INK)
    if are_turned(names, letters):
        turned: Options = {"ha": "right", "rotation_mode": "anchor"}
        if len(names) > 12:
            turned |= {"va": "center", "size": 8}
        for label in ax.get_xticklabels():
            label.set(rotation=40 if len(names) <= 12 else 90, **turned)


def are_turned(names: Sequence[object], letters: int = 44) -> bool:
    """Return whether names have no room side by side."""
    return len(names) * (1 + max(len(str(name)) for name in names)) > letters


def beside(n: int, i: int, groups: int, whole: float = 0.82) -> tuple[Array, float]:
    """Return where bar i of each of n groups stands, and its width."""
    width = whole / groups
    return np.arange(n) + (i - (groups - 1) / 2) * width, width


def label_axes(ax: "Axes", x: str, y: str, letters: int = 50) -> None:
    """Name both axes, on two lines if the names are long."""
    ax.set_xlabel(written(x, letters, 2))
    ax.set_ylabel(written(y, min(letters, 36), 2))


def title(ax: "Axes", text: str, width: int = 44, **options) -> None:
    """Write a title from the left of the axes, on several lines if it is long."""
    ax.set_title(written(text, width, 3), loc="left", **options)


def note(ax: "Axes", text: str) -> None:
    """Write a title in the size of the text."""
    title(ax, text, 56, size=9.5, weight="normal")


def intervals(
    ax: "Axes",
    heights: Array,
    value: Array,
    ends: Array,
    look: Look,
    *,
    mark: str = "o",
    **options,
) -> None:
    """Draw horizontal intervals at heights (n,), `ends` (n, 2), with a mark at each value."""
    low, high = np.transpose(ends)
    ax.hlines(heights, low, high, color=look.color, ls=look.dashes, lw=2.6, alpha=0.55)
    ax.plot(value, heights, mark, color=look.color, **look.mark(5.5), **options)


def differences(
    ax: "Axes", names: list[str], value: Array, ends: Array, line: float, xlabel: str
) -> None:
    """Draw a number with its interval on each line, beside a vertical line to compare with."""
    grid(ax, "x")
    ax.locator_params(axis="x", nbins=4)  # long numbers, in axes that may be narrow
    ax.axvline(line, color=MUTED, lw=1, zorder=0)
    intervals(ax, np.arange(len(names)), value, ends, look(0))
    name_lines(ax, names)
    ax.set_xlabel(written(xlabel, 48, 2))


def row_intervals(
    ax: "Axes",
    names: list[str],
    classes: Array,
    labels: list[str],
    p: Array,
    ends: Array,
    xlabel: str,
) -> None:
    """Draw class probabilities of a few rows with their intervals, some classes of each row.

    Parameters
    ----------
    classes : (n, k) codes
    p, ends : (n, k), (n, k, 2)
    """
    grid(ax, "x")
    named = np.unique(classes)
    for c, name in zip(named, written_apart([labels[c] for c in named], _NAME), strict=True):
        i, k = np.nonzero(classes == c)
        heights = i + 0.3 * (k - 0.5)
        intervals(ax, heights, p[i, k], ends[i, k], look(c), label=name, ls="")
    name_lines(ax, names)
    ax.set(xlim=(-0.02, 1.02), xlabel=xlabel)
    _legend_above(ax)


class Bins(NamedTuple):
    """Rows with about the same predicted probability."""

    predicted: Array  # mean of their probabilities
    observed: Array  # share in which it happened
    lower: Array  # of the interval of that share
    upper: Array
    size: Array


def reliability(ax: "Axes", bins: Bins, look: Look, name: str = "") -> None:
    """Draw observed frequency against predicted probability."""
    ax.vlines(bins.predicted, bins.lower, bins.upper, color=look.color, lw=2.2, alpha=0.5)
    ax.plot(bins.predicted, bins.observed, "o", color=look.color, label=name, **look.mark(5.5))


def diagram(ax: "Axes", bins: Bins, xlabel: str, ylabel: str) -> None:
    """Draw a reliability diagram of one classifier."""
    unit_square(ax)
    reliability(ax, bins, look(0))
    ax.set(xlabel=xlabel, ylabel=ylabel)


def unit_square(ax: "Axes") -> None:
    """Draw the axes of a reliability diagram and its diagonal."""
    grid(ax)
    ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=0)
    ax.text(0.3, 0.285, "calibrated", color=MUTED, rotation=45, ha="center", va="top", size=8)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")


def shares(ax: "Axes", values: Array, xlabel: str) -> None:
    """Draw shares of rows in equal bins between 0 and 1, and the share that each would have."""
    n = len(values)
    grid(ax, "y")
    ax.bar(np.arange(n) / n, values, 0.94 / n, align="edge", color=CLASSES[0], alpha=0.8)
    ax.axhline(1 / n, color=INK, lw=1)
    ax.set(xlim=(0, 1), xlabel=xlabel, ylabel="share of rows")


def matrix(
    ax: "Axes", values: Array, rows: list[str], columns: list[str], texts: list[list[str]]
) -> None:
    """Draw numbers between 0 and 1 as shades, with texts in the cells of a small table."""
    from matplotlib.patches import Rectangle

    for (i, j), value in np.ndenumerate(values):
        alpha = 0.06 + 0.6 * float(value) if value > 0 else 0.0
        ax.add_patch(
            Rectangle((j - 0.5, i - 0.5), 0.98, 0.98, fc=CLASSES[0], alpha=alpha, ec="none")
        )
        if len(columns) <= 12:
            ax.text(j, i, texts[i][j], ha="center", va="center", size=9.5)
    name_lines(ax, rows, 18)
    name_columns(ax, columns, 48, 16)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.spines[:].set_visible(False)


def _legend_above(ax: "Axes") -> None:
    """Draw the legend above the axes, over the width of the whole picture."""
    handles, labels = ax.get_legend_handles_labels()
    ncols = 3 if max(map(len, labels)) <= 14 else 2
    ax.figure.legend(handles, labels, loc="outside upper left", ncols=ncols, borderaxespad=0.2)
