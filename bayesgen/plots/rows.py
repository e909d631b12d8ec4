"""Pictures of rows: class probabilities with their intervals, and contributions of features."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from bayesgen.encoding.literals import count, one_line
from bayesgen.encoding.tables import Table, n_rows
from bayesgen.errors import refuse_below
from bayesgen.plots import drawing, style
from bayesgen.plots.features import places_of_columns
from bayesgen.plots.style import HAIR, MUTED
from bayesgen.posterior.fitted import through_pipelines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesgen.predict.draws import KindName


_ROWS = 60
_LANE, _GAP = 0.14, 0.1  # inches of a class, and between rows
_NARROW = 0.1  # inches of a class where they are many
_DIAMOND = 0.01  # of a probability: a mean closer to the predictive is behind its mark


@through_pipelines
def plot_class_probability(
    clf: Any,
    X: Any,
    *,
    classes: Any = None,
    names: Sequence[object] | None = None,
    prob: float | None = None,
    kind: "KindName | None" = None,
    class_prior: Any = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw class probabilities of rows, with their intervals.

    A line is the credible interval of p(y = c | x, theta) over the posterior of theta. A tick is
    the mean of that posterior. A diamond is the exact predictive p(y = c | x, D), which may lie
    outside the interval. Ticks are left out if diamonds hide all of them, as for a pool.

    Parameters
    ----------
    clf : fitted classifier
    X : (N, D)
        At most 60 rows, from top to bottom.
    classes : label or sequence of labels, optional
        Classes to show. Default: all. Two classes are mirror images, and the second is shown. For
        many rows and classes the most probable classes of each row are shown; the label of the
        axis says so.
    names : sequence (N,), optional
        Names of the rows. Default: the index of a DataFrame, else their positions.
    prob, kind, class_prior
        As in ``clf.predict_interval``.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    style.checked_axes(ax, figsize)
    n, n_classes = n_rows(X), len(clf.classes_)
    if n > _ROWS:
        raise ValueError(f"{n} rows cannot be distinguished in one picture: give at most {_ROWS}")
    shown = style.chosen(classes, clf.classes_, [1] if n_classes == 2 else range(n_classes))
    if names is None:
        names = list(X.index) if hasattr(X, "index") and hasattr(X, "columns") else range(n)
    if len(names) != n:
        raise ValueError(f"names has {len(names)} entries, but there are {n} rows")
    options = {} if class_prior is None else {"class_prior": class_prior}
    table = clf.predict_interval(X, prob, kind, **options)
    p, ends = table["predictive"].values, table["interval"].values
    mean = clf.predict_uncertainty(X, **options)["mean"].values
    is_mean_seen = np.abs(mean - p)[:, shown].max(initial=0.0) > _DIAMOND
    room = int((style.TALLEST - style.MARGIN) / max(n, 1) / _NARROW - 0.6)
    most = min(len(shown), max(1, room))
    # (n, most) codes, of each row in the order of the classes
    each = np.sort(np.array(shown)[np.argsort(-p[:, shown], axis=1, kind="stable")[:, :most]])
    if most == len(shown):
        each = np.tile(shown, (n, 1))
    with style.canvas(ax, figsize, (7.2, style.height(n, _GAP + _LANE * most))) as ax:
        drawing.class_probabilities(
            ax, names, clf.classes_, each, p, ends, mean if is_mean_seen else None,
            f"{style.percent(table.attrs['prob'])} of p(y | x, θ)",
        )  # fmt: skip
        if len(shown) == 1:
            drawing.label_axes(ax, f"p({clf.classes_[shown[0]]} | x)", "")
        elif most < len(shown):
            many = f"the {most} most probable classes" if most > 1 else "the most probable class"
            ax.set_xlabel(f"class probability\n({many} of each row)")
    return ax


# ------------------------------------------------------------------------------------------------
# What each feature of a row says.

_WIDE = 0.36  # inches of a name on two lines


@through_pipelines
def plot_contributions(
    clf: Any,
    X: Any,
    *,
    classes: Any = None,
    row: int = 0,
    most: int = 15,
    class_prior: Any = None,
    random_state: Any = 0,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw the contributions of the features to one row's log-odds, the largest on top.

    Parameters
    ----------
    clf : fitted classifier or pool
    X : (N, D)
    classes : label or (label, label), optional
        Log-odds of the first label against the second. One label is compared with the most
        probable other class. Default: the second class against the first if there are two, else
        the most probable class of the row against its runner-up. The title names them.
    row : int
        Position in X.
    most : int
        Number of features to show. One line shows the sum of the others.
    class_prior, random_state
        As in ``clf.explain``.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Contributions in nats. The name of a feature has its cell next to it.
    """
    style.checked_axes(ax, figsize)
    n = n_rows(X)
    if not -n <= row < n:
        raise ValueError(f"row must be a position among the {n} of X, got {row!r}")
    refuse_below(1, most=most)
    X = _safe_indexing(X, [row % n])
    table = clf.explain(X, classes, class_prior, random_state)
    one = table.isel(obs_id=0)
    terms = one["predictive"].values
    order = np.argsort(-np.abs(terms), kind="stable")
    shown = order[: style.fitting(int(most), _WIDE) if len(order) > most else len(order)]
    others = order[len(shown) :]
    names = [str(name) for name in one["feature"].values]
    if cells := cells_of(clf, X):
        names = [cells(j)[0] for j in range(len(names))]
    lines = [(names[j], terms[j]) for j in shown]
    if len(others):
        lines.append((count(len(others), "other"), terms[others].sum()))
    if "rest" in one:
        lines.append(("all together", one["rest"].item()))
    lines.append(("class weights", one["predictive_intercept"].item()))
    each = _WIDE if any(len(line[0]) > 30 for line in lines) else 0.27
    with style.canvas(ax, figsize, (7.2, style.height(len(lines), each))) as ax:
        ax.axvline(0, color=MUTED, lw=0.9, zorder=0)
        for height, (_, term) in enumerate(lines):
            tint = style.colour(0 if term >= 0 else 1)
            ax.plot(term, height, "D", ms=4.5, mfc=tint, mec="white", mew=0.7)
        drawing.name_lines(ax, [line[0] for line in lines], 30, 2)
        ax.axhline(len(lines) - 1.5, color=HAIR, lw=0.8)
        label, against = (style.written(one[name].item()) for name in ("label", "against"))
        ax.set_xlabel(f"log-odds of {label}\nagainst {against} [nats]")
        total = one["predictive_log_odds"].item()
        drawing.title(ax, f"{label} rather than {against}: {total:+.1f} nats")
    return ax


def cells_of(clf: Any, X: Any) -> Callable[[int], list[str]] | None:
    """Return what gives the cells of column j, as ``["age = 31", ...]``; None for sequences."""
    names = clf.fitted_.column_names
    if not hasattr(clf, "n_features_in_") or not names:  # an array of tokens has no columns
        return None
    table = Table(X.toarray() if sparse.issparse(X) else X)
    places = places_of_columns(clf, table)

    @cache
    def cells(j: int) -> list[str]:
        column, name = table.column(places[j]), one_line(names[j], 40)
        values = column.values.tolist()
        if column.codes is not None:
            values = [[*values, None][code] for code in column.codes]
        return [f"{name} = {_text(value)}" for value in values]

    return cells


def _text(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    if isinstance(value, float):
        return f"{value:.{4 if abs(value) < 1e4 else 6}g}"
    return one_line(value, 40)
