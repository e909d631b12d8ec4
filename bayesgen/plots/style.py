"""Colours, axes and names of the house."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.literals import one_line, shown
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Options = dict[str, Any]  # of a function of matplotlib
Dashes = str | tuple[int, tuple[float, ...]]

INK, MUTED, HAIR = "#22272e", "#5b6570", "#c9d0d7"
# Okabe and Ito (2008), the yellow left out and the vermilion darkened: they are read on white
CLASSES = ("#0072b2", "#c85200", "#009e73", "#a3528a", "#b8860b", "#3f9fd0", "#6b4f3a", "#7f7f7f")
STYLE: Options = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


TALLEST = 12.0  # inches of a figure that is made
_FEW = 7  # entries of a legend that may have two lines each
MARGIN = 1.3  # inches above and below its lines

DASHES: tuple[Dashes, ...] = ("solid", (0, (4, 1.6)), (0, (1, 1.2)), (0, (6, 1.6, 1, 1.6)))
_HATCHES = ("", "////", "....", "xxxx")


def colour(k: int) -> str:
    """Return the colour of class k. `look` keeps more classes than colours apart."""
    return CLASSES[k % len(CLASSES)]


class Look(NamedTuple):
    """How a class is drawn: every eight classes the colours come again with other lines."""

    color: str
    dashes: Dashes  # of lines
    fill: str  # of marks, which are hollow in every second round
    hatch: str  # of bars

    def line(self, width: float) -> Options:
        """Return options of `Axes.plot` for a line."""
        return {"color": self.color, "ls": self.dashes, "lw": width}

    def mark(self, size: float = 5.0) -> Options:
        """Return options of `Axes.plot` for a mark."""
        hollow = self.fill != self.color
        edge = self.color if hollow else "white"
        return {"ms": size, "mfc": self.fill, "mec": edge, "mew": 1.3 if hollow else 0.7}


def look(k: int) -> Look:
    """Return how class k is drawn."""
    again = k // len(CLASSES)
    i = again % len(DASHES)
    return Look(colour(k), DASHES[i], "white" if again % 2 else colour(k), _HATCHES[i])


def checked_axes(axes, figsize: tuple[float, float] | None, n: int = 1) -> "list[Axes] | None":
    """Return the axes given, flat. Call it before anything is computed.

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If they are not at least n axes, or if a size is given for a figure that exists.
    """
    try:
        import matplotlib as mpl  # noqa: F401 - asked for first, whatever is loaded of it
        from matplotlib.axes import Axes
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "bayesgen[plots]"') from None
    if axes is None:
        return None
    flat = list(np.ravel(np.asarray(axes, dtype=object)))
    if not all(isinstance(one, Axes) for one in flat) or len(flat) < n:
        raise TypeError(f"ax: {n} matplotlib Axes needed (plt.subplots makes them), got {axes!r}")
    if figsize is not None:
        raise ValueError("figsize is of a figure that is made: leave it out where ax is given")
    return flat


@contextmanager
def canvas(
    ax: "Axes | None", figsize: tuple[float, float] | None, default: tuple[float, float]
) -> Iterator["Axes"]:
    """Yield the user's axes in the user's style, or new ones in the style of the house."""
    with panels(ax, 1, figsize, default) as axes:
        yield axes[0]


@contextmanager
def panels(
    axes, n: int, figsize: tuple[float, float] | None, default: tuple[float, float]
) -> Iterator[list["Axes"]]:
    """Yield n axes: the user's in the user's style, or new ones in the style of the house."""
    old = checked_axes(axes, figsize, n)
    if old is not None:
        yield old[:n]
        return
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    columns = 2 if n == 4 else min(n, 3)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        _, made = plt.subplots(-(-n // columns), columns, figsize=figsize or default, squeeze=False)
        flat = list(made.ravel())
        for unused in flat[n:]:
            unused.remove()
        yield flat[:n]


def legend_beside(ax: "Axes") -> None:
    """Draw a legend to the right of the axes, off the data; a few long names on two lines."""
    place: Options = {"loc": "upper left", "bbox_to_anchor": (1.03, 1), "borderaxespad": 0}
    texts = ax.legend(frameon=False, **place).get_texts()
    names = [text.get_text() for text in texts]
    lines = 2 if len(texts) <= _FEW else 1
    for text, name in zip(texts, written_apart(names, 26, lines), strict=True):
        text.set_text(name)


def written_apart(names: Sequence[object], width: int = 26, lines: int = 1) -> list[str]:
    """Set names as `written`, or whole if two would look alike."""
    texts = [written(name, width, lines) for name in names]
    if len(set(texts)) < len(set(names)):
        return [written(name, width, len(str(name))) for name in names]
    return texts


def written(name: object, width: int = 26, lines: int = 1) -> str:
    """Set a name on a few lines of `width` letters, without its middle if it is longer.

    Names that begin alike differ at their ends: neither is cut off.
    """
    most = width * lines
    while len(wrapped := textwrap.wrap(one_line(name, most), width)) > lines:
        most -= 1
    return "\n".join(wrapped).replace("$", r"\$")  # else two of them enclose mathematics


def height(n: int, each: float) -> float:
    """Return the inches of a figure of n lines."""
    return min(TALLEST, MARGIN + each * max(n, 4))


def fitting(n: int, each: float) -> int:
    """Return how many of n lines a figure holds."""
    return min(n, int((TALLEST - MARGIN) / each))


def chosen(classes, labels: Array, default: Iterable[int]) -> list[int]:
    """Return codes of the classes to draw, from one label or several; `default` for None."""
    if classes is None:
        return list(default)
    one = isinstance(classes, str) or not isinstance(classes, Iterable)
    codes = codes_of([classes] if one else list(classes), labels)
    if not len(codes):
        raise ValueError(f"classes names none of {shown(labels.tolist())}")
    return [int(k) for k in codes]


def percent(prob: float) -> str:
    """Return a probability as text: "89 %"."""
    return f"{100 * prob:.3g} %"


def feature_index(clf, feature) -> int:
    """Return the position of a column, from that or from its name."""
    names = clf.fitted_.column_names
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"there is no feature {feature!r}; known are {', '.join(names)}")
        return names.index(feature)
    if not 0 <= int(feature) < len(names):
        raise ValueError(f"feature must be 0 .. {len(names) - 1} or a name, got {feature!r}")
    return int(feature)


def label_codes(clf, y, n: int) -> Array:
    """Return codes (n,) of labels; raise if they are not one for each row."""
    codes = codes_of(y, clf.classes_)
    if codes.shape != (n,):
        raise ValueError(f"X has {n} rows, but y has shape {codes.shape}")
    return codes
