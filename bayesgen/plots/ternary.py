"""Three classes: each row's probabilities as a point of the simplex, its posterior as a cloud."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.numerics.special import Array
from bayesgen.plots.style import HAIR, INK, MUTED, canvas, checked_axes, colour, label_codes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
_LINE, _LINES = 16, 3  # letters of a line of a class name at a corner, and lines
_CLOUDS = 25  # rows with clouds; more of them hide each other


def plot_ternary(
    clf: Any,
    X: Any,
    y: Any = None,
    *,
    draws: int | None = None,
    class_prior: Any = None,
    posterior: Any = None,
    random_state: Any = 0,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Class probabilities of rows in the triangle of three classes.

    A diamond is p(y | x, D), the exact predictive. The points around it are draws of
    p(y | x, theta) from the posterior of theta, one theta for all rows. A corner is certainty; at
    the crossing of the inner lines the most probable class changes.

    Parameters
    ----------
    clf : fitted classifier of three classes
    X : (N, D)
    y : (N,), optional
        True labels: the colour of a row. Default: its most probable class.
    draws : int, optional
        Points of each cloud; 0 draws none. Default: 200 for up to 25 rows, else none.
    class_prior, posterior, random_state
        As in ``clf.predict_posterior``.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
    """
    checked_axes(ax, figsize)
    if len(clf.classes_) != 3:
        raise ValueError(f"plot_ternary is for three classes, not for {len(clf.classes_)}")
    options = {"class_prior": class_prior, "posterior": posterior}
    options = {name: value for name, value in options.items() if value is not None}
    p = np.asarray(clf.predict_proba(X, **options))
    codes = p.argmax(axis=1) if y is None else label_codes(clf, y, len(p))
    if draws is None:
        draws = 200 if len(p) <= _CLOUDS else 0
    with canvas(ax, figsize, (5.6, 4.7)) as ax:
        _simplex(ax, clf.classes_)
        if draws:
            tree = clf.predict_posterior(X, draws, random_state=random_state, **options)
            rho = tree["predictions"]["class_probability"].values
            rho = rho.reshape(-1, *rho.shape[2:])
            rho = rho[:: max(1, len(rho) // draws)]
            for i, k in enumerate(codes):
                ax.plot(*(rho[:, i] @ _CORNERS).T, ".", ms=3.6, mew=0, color=colour(k), alpha=0.35)
        for k in range(3):
            ax.plot(
                *(p[codes == k] @ _CORNERS).T,
                "D",
                ms=6 if draws else 4.5,
                mfc=colour(k),
                mec="white",
                mew=0.8,
                ls="",
                label=f"{clf.classes_[k]}",
                zorder=3,
            )
    return ax


def _simplex(ax: "Axes", classes: Array) -> None:
    closed = _CORNERS[[0, 1, 2, 0]]
    ax.plot(*closed.T, color=MUTED, lw=1)
    for share in (0.25, 0.5, 0.75):
        for k in range(3):
            ends = share * _CORNERS[k] + (1 - share) * np.delete(_CORNERS, k, axis=0)
            ax.plot(*ends.T, color=HAIR, lw=0.6, zorder=0)
    centre = _CORNERS.mean(axis=0)
    for k in range(3):  # where two classes are equal and the third is less probable
        middle = np.delete(_CORNERS, k, axis=0).mean(axis=0)
        ax.plot(*np.stack([centre, middle]).T, color=INK, lw=0.9, zorder=1)
    for k, (ha, va) in enumerate((("right", "top"), ("left", "top"), ("center", "bottom"))):
        x, y = _CORNERS[k] + 0.04 * (_CORNERS[k] - centre)
        name = _written(str(classes[k]))
        ax.text(x, y, name, color=colour(k), ha=ha, va=va, weight="bold", size=11)
    beside = ((0.0, -0.03, "center"), (0.02, 0.0, "left"), (-0.02, 0.0, "right"))
    for a, (dx, dy, ha) in enumerate(beside):  # shares of a class grow along the edge to it
        b = (a + 1) % 3
        for share in (0.25, 0.5, 0.75):
            x, y = (1 - share) * _CORNERS[a] + share * _CORNERS[b] + (dx, dy)
            ax.text(x, y, f"{share:g}", color=colour(b), ha=ha, va="center", size=8)
    ax.set(xlim=(-0.16, 1.16), ylim=(-0.09, 0.95), aspect="equal")
    ax.axis("off")


def _written(name: str) -> str:
    """A name in at most three short lines: a long one would shrink the triangle to a dot."""
    lines = textwrap.wrap(name, _LINE) or [""]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE - 1] + "…"]
    return "\n".join(lines)
