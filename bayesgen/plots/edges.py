"""Which columns depend on each other within a class: a network of likely edges."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plots.style import HAIR, INK, MUTED, canvas, checked_axes, colour, feature_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMES = 60
_LEVEL = 12  # columns whose names stand level


def plot_edges(
    clf: Any,
    *,
    class_: Any = None,
    against: Any = None,
    least: float = 0.1,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """The columns of a `TreeAugmentedNB` on a circle, and their edges, as dark as they are likely.

    Parameters
    ----------
    clf : fitted TreeAugmentedNB
    class_ : label, optional
        Of which class; None: the first.
    against : label, optional
        Edges are the difference in probability from this class: in the colour of the class in which
        they are more probable.
    least : float
        Edges of a smaller probability, or difference, are left out.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    Columns that share likely edges stand beside each other. An edge has no direction and is no
    causal claim (`TreeAugmentedNB.edge_probabilities`).
    """
    checked_axes(ax, figsize)
    if not hasattr(clf, "edge_probabilities"):
        raise TypeError(
            f"plot_edges is of a TreeAugmentedNB or TreeAugmentedGaussianNB: a "
            f"{type(clf).__name__} has no edges"
        )
    labels = list(clf.classes_)
    known = [labels[0] if class_ is None else class_]
    if against is not None:
        known.append(against)
    for label in known:
        if label not in labels:
            raise ValueError(f"there is no class {label!r}; known are {labels}")
    places = [labels.index(label) for label in known]
    if against is not None and colour(places[0]) == colour(places[1]):
        places = [0, 1]  # two of many classes share a colour
    names = feature_names(clf)
    if len(names) > _MOST_NAMES:
        raise ValueError(f"{len(names)} columns are more than a circle holds ({_MOST_NAMES})")
    if not 0 < least < 1:
        raise ValueError(f"least must be between 0 and 1, got {least!r}")
    table = clf.edge_probabilities()["probability"]
    p = [table.values[labels.index(label)] for label in known]
    shown = p[0] - (p[1] if against is not None else 0.0)
    order = _round(np.abs(p).max(axis=0))
    angle = np.empty(len(names))
    angle[order] = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    at = np.c_[np.cos(angle), np.sin(angle)]
    level = len(names) <= _LEVEL
    with canvas(ax, figsize, (7.4, 5.0 if level else 7.0)) as ax:
        pairs = list(zip(*np.nonzero(np.tril(np.abs(shown) >= least)), strict=True))
        for u, v in sorted(pairs, key=lambda pair: abs(shown[pair])):
            size = abs(shown[u, v])
            k = places[0 if shown[u, v] > 0 else -1]
            ax.plot(*at[[u, v]].T, color=colour(k), alpha=size, lw=0.6 + 2.4 * size, zorder=1)
        if not pairs:
            ax.text(0, 0, f"none of at least {least:g}", color=MUTED, ha="center", va="center")
        touched = (np.abs(shown) >= least).any(axis=1)
        edge = [INK if t else HAIR for t in touched]
        ax.scatter(
            at[:, 0], at[:, 1], s=26, color="white", edgecolors=edge, linewidths=1.1, zorder=2
        )
        for (x, y), name, t in zip(at, names, touched, strict=True):
            turn = np.degrees(np.arctan2(y, x))
            flip = x < -1e-9
            ax.text(
                1.07 * x,
                1.07 * y,
                name,
                rotation=0 if level else turn - 180 * np.sign(turn) * flip,
                rotation_mode="anchor",
                ha="right" if flip else "center" if level and abs(x) < 1e-9 else "left",
                va="center" if not level or abs(x) > 1e-9 else "bottom" if y > 0 else "top",
                color=INK if t else MUTED,
            )
        ax.set_aspect("equal")
        ax.set_axis_off()
        reach = 1.1 + 0.045 * max(
            map(len, names)
        )  # names stand along the radius where they are many
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach) if not level else (-1.2, 1.2))
        other = "" if against is None else f" less those within {against}"
        ax.set_title(f"edges within {known[0]}{other}")
        _legend(ax, places, known, least)
    return ax


def _round(p: np.ndarray) -> np.ndarray:
    """Columns in an order that keeps likely neighbours together: along the likeliest chain."""
    left = set(range(len(p)))
    order = [int(p.sum(axis=1).argmin())]
    left.remove(order[0])
    while left:
        rest = sorted(left)
        order.append(rest[int(p[order[-1], rest].argmax())])
        left.remove(order[-1])
    return np.array(order)


def _legend(ax: "Axes", places: list[int], labels: list[Any], least: float) -> None:
    from matplotlib.lines import Line2D

    if len(labels) > 1:
        pairs = zip(places, labels, strict=True)
        lines = [(colour(k), 1.0, f"more probable within {label}") for k, label in pairs]
    else:
        lines = [(colour(places[0]), size, f"probability {size:.2g}") for size in (1.0, 0.5, least)]
    handles = [
        Line2D([], [], color=tint, alpha=size, lw=0.6 + 2.4 * size, label=text)
        for tint, size, text in lines
    ]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3)
