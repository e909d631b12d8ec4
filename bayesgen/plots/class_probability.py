"""Forest of class probabilities: one line an interval, and the two means that it may miss."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.tables import n_rows
from bayesgen.plots.style import HAIR, INK, Look, canvas, checked_axes, legend_beside, look, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesgen.predict.interval.request import KindName

_ROWS = 60


def plot_class_probability(
    clf: Any,
    X: Any,
    classes: Sequence[Any] | None = None,
    *,
    names: Sequence[Any] | None = None,
    prob: float | None = None,
    kind: "KindName | None" = None,
    class_prior: Any = None,
    posterior: Any = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Class probabilities of rows, with what the training rows leave open.

    A line is the credible interval of p(y = c | x, theta) over the posterior of theta, a tick its
    mean. A diamond is p(y = c | x, D), the exact predictive: another number, which need not lie in
    the middle, nor inside.

    Parameters
    ----------
    clf : fitted classifier
    X : (N, D)
        At most 60 rows, from top to bottom.
    classes : sequence of labels, optional
        Which to show. Default: all; of two, which are mirror images, the second.
    names : sequence (N,), optional
        Of the rows. Default: the index of a DataFrame, else their positions.
    prob, kind, class_prior, posterior
        As in ``clf.predict_interval``.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
    """
    checked_axes(ax, figsize)
    n, n_classes = n_rows(X), len(clf.classes_)
    if n > _ROWS:
        raise ValueError(f"{n} rows cannot be distinguished in one picture: give at most {_ROWS}")
    if classes is None:
        shown = [1] if n_classes == 2 else list(range(n_classes))
    else:
        shown = [int(k) for k in codes_of(list(classes), clf.classes_)]
    if names is None:
        names = list(X.index) if hasattr(X, "index") and hasattr(X, "columns") else range(n)
    if len(names) != n:
        raise ValueError(f"names has {len(names)} entries, but there are {n} rows")
    options = {"class_prior": class_prior, "posterior": posterior}
    options = {name: value for name, value in options.items() if value is not None}
    table = clf.predict_interval(X, prob, kind, **options)
    mean = clf.predict_uncertainty(X, **options)["mean"].values

    with canvas(ax, figsize, (7.2, 1.0 + max(n * (0.1 + 0.14 * len(shown)), 1.4))) as ax:
        ax.axvline(0.5, color=HAIR, lw=0.8, zorder=0)
        if len(shown) > 1:
            ax.hlines(np.arange(n - 1) + 0.5, 0, 1, color=HAIR, lw=0.5, zorder=0)
        lanes = np.linspace(-0.28, 0.28, len(shown)) if len(shown) > 1 else [0.0]
        for lane, k in zip(lanes, shown, strict=True):
            at = np.arange(n) + lane
            low, high = table["interval"].values[:, k].T
            own = look(k)
            ax.hlines(at, low, high, color=own.color, ls=own.dashes, lw=2.4, alpha=0.55)
            ax.plot(mean[:, k], at, "|", color=own.color, ms=8, mew=1.6)
            exact = table["predictive"].values[:, k]
            ax.plot(exact, at, "D", **own.mark(), clip_on=False)
        ax.set(xlim=(0, 1), ylim=(n - 0.5, -0.5), yticks=np.arange(n), yticklabels=names)
        ax.tick_params(axis="y", length=0)
        one = f"p({clf.classes_[shown[0]]} | x)" if len(shown) == 1 else "class probability"
        ax.set_xlabel(one)
        several = [(str(clf.classes_[k]), look(k)) for k in shown] if len(shown) > 1 else []
        _legend(ax, several, f"{percent(table.attrs['prob'])} of p(y | x, θ)")
    return ax


def _legend(ax: "Axes", classes: list[tuple[str, Look]], interval: str) -> None:
    """The classes if there are several, and the three marks; beside the axes."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=own.color, ls=own.dashes, lw=2.4, marker="D", label=name, **own.mark())
        for name, own in classes
    ]
    handles += [
        Line2D([], [], color=INK, lw=2.4, alpha=0.55, label=interval),
        Line2D([], [], color=INK, ls="", marker="|", ms=8, mew=1.6, label="its mean"),
        Line2D([], [], color=INK, ls="", marker="D", ms=5, label="p(y | x, D), predictive"),
    ]
    legend_beside(ax, handles)
