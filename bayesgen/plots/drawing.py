"""What pictures are made of: numbers in, marks on axes out. Nothing here knows a classifier."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.plots.style import (
    HAIR,
    INK,
    MUTED,
    Look,
    Options,
    legend_beside,
    look,
    percent,
    written,
    written_apart,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def class_probabilities(
    ax: "Axes",
    names: Sequence[object],
    labels: Sequence[object],
    codes: Array,
    p: Array,
    ends: Array,
    mean: Array | None = None,
    interval: str = "",
) -> None:
    """Draw class probabilities of rows with their intervals, some classes of each row.

    Parameters
    ----------
    names, labels : names of the N rows, from top to bottom, and of the C classes
    codes : (N, k) classes of each row
    p, ends, mean : (N, C), (N, C, 2), (N, C)
    interval : what the lines are, for the legend
    """
    n, most = codes.shape
    lanes = np.linspace(-0.28, 0.28, most) if most > 1 else np.zeros(1)
    ax.axvline(0.5, color=HAIR, lw=0.8, zorder=0)
    if most > 1:
        ax.hlines(np.arange(n - 1) + 0.5, 0, 1, color=HAIR, lw=0.5, zorder=0)
    drawn = np.unique(codes).tolist()
    for k in drawn:
        i, lane = np.nonzero(codes == k)
        heights, one = i + lanes[lane], look(k)
        if mean is not None:
            ax.plot(mean[i, k], heights, "|", color=one.color, ms=8, mew=1.6)
        intervals(ax, heights, p[i, k], ends[i, k], one, mark="D", ls="", clip_on=False)
        if len(drawn) > 1:
            ax.plot([], [], marker="D", label=str(labels[k]), **one.line(2.4), **one.mark())
    name_lines(ax, names, 26)
    ax.set(xlim=(0, 1), ylim=(n - 0.5, -0.5), xlabel="class probability")
    ax.plot([], [], color=INK, lw=2.4, alpha=0.55, label=interval)
    if mean is not None:
        ax.plot([], [], "|", color=INK, ms=8, mew=1.6, label="its mean")
    ax.plot([], [], "D", color=INK, ms=5, label="p(y | x, D), predictive")
    legend_beside(ax)


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


def diagram(ax: "Axes", bins: Bins, what: str, prob: float) -> None:
    """Draw a reliability diagram of one classifier, for the probability of `what`."""
    unit_square(ax)
    reliability(ax, bins, look(0))
    label_diagram(ax, what, prob)


def label_diagram(ax: "Axes", what: str, prob: float) -> None:
    """Name the axes of a reliability diagram."""
    y = f"observed frequency, {percent(prob)} interval"
    label_axes(ax, f"predicted probability of {what}", y)


def unit_square(ax: "Axes") -> None:
    """Draw the axes of a reliability diagram and its diagonal."""
    grid(ax)
    ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=0)
    ax.text(0.3, 0.285, "calibrated", color=MUTED, rotation=45, ha="center", va="top", size=8)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
