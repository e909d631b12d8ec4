"""What pictures are made of: numbers in, marks on axes out. Nothing here knows a classifier."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.plots.style import CLASSES, HAIR, INK, MUTED, Look, look, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = 22  # letters of a label in a legend


def grid(ax: "Axes", axis: Any = "both") -> None:
    """Hairlines behind what is drawn."""
    if axis == "x":
        ax.locator_params(axis="x", nbins=6)
    ax.grid(axis=axis, color=HAIR, lw=0.5)
    ax.set_axisbelow(True)


def name_lines(ax: "Axes", names: Sequence[Any], longest: int = 32, lines: int = 1) -> None:
    """One labelled place per name, the first on top."""
    ax.set_yticks(range(len(names)), [written(name, longest, lines) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.spines["left"].set_visible(False)


class Categories:
    """Places for categories: below the marks, or on the left where names need the room.

    Parameters
    ----------
    names : list of str
    letters : int
        That there is room for below the axes.
    """

    def __init__(self, ax: "Axes", names: list[str], letters: int = 44) -> None:
        self.ax, self.names, self.letters = ax, names, letters
        self.below = fit_below(names, letters)

    def bars(self, at: Any, value: Any, width: float, **look: Any) -> None:
        """Bars from 0."""
        if self.below:
            self.ax.bar(at, value, width, **look)
        else:
            self.ax.barh(at, value, width, **look)

    def lines(self, at: Any, low: Any, high: Any, **look: Any) -> None:
        """Intervals."""
        (self.ax.vlines if self.below else self.ax.hlines)(at, low, high, **look)

    def ticks(self, at: Any, value: Any, size: float, **look: Any) -> None:
        """Short lines across a bar, or an interval."""
        self.marks(at, value, "_" if self.below else "|", ms=size, color=INK, mew=1.4, **look)

    def marks(self, at: Any, value: Any, mark: str, **look: Any) -> None:
        """Marks without lines between them."""
        points = (at, value) if self.below else (value, at)
        self.ax.plot(*points, mark, **look)

    def name(self, label: str, value: str, limits: Any) -> None:
        """Name the places, both axes, and the range of the values."""
        if self.below:
            self.ax.set_xticks(range(len(self.names)), [written(name) for name in self.names])
            self.ax.tick_params(axis="x", length=0)
            self.ax.set(xlim=(-0.6, len(self.names) - 0.4), ylim=limits)
            self.ax.grid(axis="y", color=HAIR, lw=0.5)
            self.ax.set_axisbelow(True)
            label_axes(self.ax, label, value, self.letters)
        else:
            lines = 2 if len(self.names) <= 5 else 1
            name_lines(self.ax, self.names, min(26, self.letters // 2 + 8), lines)
            self.ax.set_xlim(limits)
            grid(self.ax, "x")
            label_axes(self.ax, value, label, self.letters)


def fit_below(names: list[str], letters: int = 44) -> bool:
    """Whether names have room side by side."""
    return sum(map(len, names)) + len(names) <= letters


def label_axes(ax: "Axes", x: str, y: str, letters: int = 50) -> None:
    """Both labels, on two lines if they are long."""
    ax.set_xlabel(written(x, letters, 2))
    ax.set_ylabel(written(y, min(letters, 36), 2))


def title(ax: "Axes", text: str, width: int = 44, **options: Any) -> None:
    """A title that begins at the left of the axes, on several lines if it is long."""
    ax.set_title(written(text, width, 3), loc="left", **options)


def note(ax: "Axes", text: str) -> None:
    """A title in the size of the text."""
    title(ax, text, 56, size=9.5, weight="normal")


def intervals(
    ax: "Axes", at: Any, value: Any, ends: Any, own: Look, *, mark: str = "o", **options: Any
) -> None:
    """Horizontal intervals at heights (n,), `ends` (n, 2), with a mark at each value."""
    low, high = np.transpose(ends)
    ax.hlines(at, low, high, color=own.color, ls=own.dashes, lw=2.6, alpha=0.55)
    ax.plot(value, at, mark, color=own.color, **own.mark(5.5), **options)


def differences(
    ax: "Axes", names: list[str], value: Array, ends: Array, line: float, xlabel: str
) -> None:
    """One number with its interval on each line, beside a vertical line to compare with."""
    grid(ax, "x")
    ax.axvline(line, color=MUTED, lw=1, zorder=0)
    intervals(ax, np.arange(len(names)), value, ends, look(0))
    name_lines(ax, names)
    ax.set_xlabel(written(xlabel, 48, 2))


def row_intervals(
    ax: "Axes", names: list[str], classes: Array, labels: list[str], p: Array, ends: Array
) -> None:
    """Class probabilities of a few rows with their intervals, some classes of each row.

    Parameters
    ----------
    classes : (n, k) codes
    p, ends : (n, k), (n, k, 2)
    """
    grid(ax, "x")
    for c in np.unique(classes):
        i, k = np.nonzero(classes == c)
        at = i + 0.3 * (k - 0.5)
        intervals(ax, at, p[i, k], ends[i, k], look(c), label=written(labels[c], _NAME), ls="")
    name_lines(ax, names)
    ax.set_xlim(-0.02, 1.02)
    _legend_above(ax)


def reliability(ax: "Axes", bins: Any, own: Look, name: str = "") -> None:
    """Observed frequency against predicted probability, of `plots.models.Bins`."""
    at = bins.predicted
    ax.vlines(at, bins.lower, bins.upper, color=own.color, lw=2.2, alpha=0.5)
    ax.plot(at, bins.observed, "o", color=own.color, label=name, **own.mark(5.5))


def unit_square(ax: "Axes") -> None:
    """The axes of a reliability diagram and its diagonal."""
    grid(ax)
    ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=0)
    ax.text(0.3, 0.285, "calibrated", color=MUTED, rotation=45, ha="center", va="top", size=8)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")


def shares(ax: "Axes", values: Array, xlabel: str) -> None:
    """Shares of rows in equal bins between 0 and 1, and the share that each would have."""
    n = len(values)
    grid(ax, "y")
    ax.bar(np.arange(n) / n, values, 0.94 / n, align="edge", color=CLASSES[0], alpha=0.8)
    ax.axhline(1 / n, color=INK, lw=1)
    ax.set(xlim=(0, 1), xlabel=xlabel, ylabel="share of rows")


def matrix(
    ax: "Axes", values: Array, rows: list[str], columns: list[str], texts: list[list[str]]
) -> None:
    """Numbers between 0 and 1 as shades, with texts in the cells of a small table."""
    from matplotlib.patches import Rectangle

    for (i, j), value in np.ndenumerate(values):
        alpha = 0.06 + 0.6 * float(value) if value > 0 else 0.0
        ax.add_patch(
            Rectangle((j - 0.5, i - 0.5), 0.98, 0.98, fc=CLASSES[0], alpha=alpha, ec="none")
        )
        if len(columns) <= 12:
            ax.text(j, i, texts[i][j], ha="center", va="center", size=9.5)
    ax.set_xticks(range(len(columns)), [written(name, 16) for name in columns])
    name_lines(ax, rows, 18)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    if turned(columns):
        ax.tick_params(axis="x", rotation=40)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.tick_params(length=0, labelcolor=INK)
    ax.spines[:].set_visible(False)


def turned(columns: Sequence[str]) -> bool:
    """Whether the names below a `matrix` have no room side by side."""
    return len(columns) * max(map(len, columns)) > 48


def _legend_above(ax: "Axes") -> None:
    """The labels above the axes, over the width of the whole picture."""
    handles, labels = ax.get_legend_handles_labels()
    ncols = 3 if max(map(len, labels)) <= 14 else 2
    ax.figure.legend(handles, labels, loc="outside upper left", ncols=ncols, borderaxespad=0.2)
