"""What each class looks like in one column: its predictive density or probabilities."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.binned import BinnedTable
from bayesgen.encoding.labels import codes_of
from bayesgen.families.capabilities import GivenRows
from bayesgen.numerics.special import Array
from bayesgen.plots.columns import Feature, Rows, cells_of, draw_names
from bayesgen.plots.style import (
    INK,
    canvas,
    checked_axes,
    label_codes,
    legend_beside,
    look,
    percent,
)
from bayesgen.posterior.fitted import fitted_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARE = "share of the rows"
_SIMULATED = 10_000  # rows of each class
_BINS = 50  # of a density that is known by simulated rows alone
_STRIP = 0.035  # height of a class below the curves, as a share of the axes


def plot_densities(
    clf: Any,
    X: Any,
    y: Any = None,
    feature: Any = 0,
    *,
    classes: Sequence[Any] | None = None,
    mass: tuple[float, float] = (0.5, 0.9),
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """One column under each class: p(x_j | y = c, D), the other columns summed out.

    Curves of a real column, with the middle of each class below them; marks at whole numbers of a
    count; bars of a binary or categorical column, and of the bins of a classifier that has bins.

    Parameters
    ----------
    clf : fitted classifier with a density of x
    X : (N, D)
        Its range is drawn; of real numbers a tenth wider on either side.
    y : (N,), optional
        Labels: the rows are drawn below the curves, or their shares into the bars.
    feature : int or column name
    classes : sequence of labels, optional
        Which to show. Default: all.
    mass : (float, float)
        Of the two central intervals of each class, the narrow one drawn thick.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        Of sequences, pools, and of counts of words, which have a distribution given the length of
        their row alone.
    NotImplementedError
        Of a discriminative classifier.

    Notes
    -----
    Exact where a missing cell is left out of a row's density; else the shares of 10,000 rows
    simulated from each class, which the title says.
    """
    checked_axes(ax, figsize)
    fitted = fitted_of(clf, "plot_densities")
    own = fitted.posterior
    fitted.refuse_if_discriminative("plot_densities")
    if len(mass) != 2 or not 0 < mass[0] < mass[1] < 1:
        raise ValueError(f"mass must be two rising probabilities, got {mass!r}")
    rows = Rows(clf, X)
    at = None if y is None else label_codes(clf, y, rows.table.n_rows)
    one = rows.feature(feature)
    j = rows.names.index(one.name)
    family = own.prior.family
    for block in family.blocks():
        here = np.arange(len(rows.names))[block.columns]
        given = block.family.capability(GivenRows) is not None
        if j in here and given and block.family.missing != "marginalised":
            raise TypeError(
                f"the counts of column {one.name!r} are modelled given the total of their row: "
                "there is no density of one column; bg.top_words shows what words say"
            )
    codes = range(len(clf.classes_)) if classes is None else codes_of(list(classes), clf.classes_)
    shown = [int(k) for k in codes]
    names = rows.codes(j)
    exact = names is None or not isinstance(getattr(clf, "encoder_", None), BinnedTable)
    exact = exact and all(block.family.missing == "marginalised" for block in family.blocks())
    p = {k: _log_density(clf, rows, one, k) for k in shown} if exact else {}
    rng, n = np.random.default_rng(0), _SIMULATED
    of_draws = [] if p and names is not None else shown
    drawn = {k: cells_of(own.simulate(rng, n, np.full(n, k), False)[0], j) for k in of_draws}
    with canvas(ax, figsize, (7.2, max(3.6, 0.22 * (len(shown) + 3)))) as ax:
        if names is not None:
            share = {k: _shares(x.astype(int), len(names)) for k, x in drawn.items()}
            seen = None
            if at is not None:
                own_codes = cells_of(fitted.encoded(X), j)
                known = own_codes >= 0
                seen = {
                    k: _shares(own_codes[known & (at == k)].astype(int), len(names)) for k in shown
                }
            _bars(ax, clf, names, {k: np.exp(p[k]) for k in p} or share, seen)
            ax.set_xlabel(one.name)
        else:
            _curves(ax, clf, one, p, drawn, at, mass)
            one.draw_axis(ax)
        ax.set_ylabel(f"p({one.name} | class, D)")
        others = "" if len(rows.names) == 1 else "the other features summed out"
        how = others if exact else f"of {n:,} simulated rows per class"
        ax.set_title(how, size=9.5, weight="normal", loc="left")
        handles, texts = ax.get_legend_handles_labels()
        order = sorted(range(len(texts)), key=lambda i: texts[i] == _SHARE)  # the classes first
        legend_beside(ax, [handles[i] for i in order])
    return ax


def _log_density(clf: Any, rows: Rows, one: Feature, k: int) -> Array:
    """(len(one.values),) log p(x_j | y = k, D)."""
    unknown = [None if kind == "nominal" else np.nan for kind in rows.kinds]
    cells: list[Any] = [None] * rows.table.n_columns
    for place, cell in zip(rows.places, unknown, strict=True):
        cells[place] = cell
    weights = np.eye(len(clf.classes_))[k]
    found: Array = clf.score_samples(rows.along(one, cells), class_prior=weights)
    return found


def _shares(codes: Array, n: int) -> Array:
    count = np.bincount(codes, minlength=n)
    share: Array = count / np.maximum(1, count.sum())
    return share


def _bars(
    ax: "Axes", clf: Any, names: list[str], p: dict[int, Array], seen: dict[int, Array] | None
) -> None:
    """A group of bars for each category, a bar for each class."""
    width = 0.82 / len(p)
    for i, (k, value) in enumerate(p.items()):
        at = np.arange(len(names)) + (i - (len(p) - 1) / 2) * width
        own = look(k)
        ax.bar(
            at,
            value,
            0.92 * width,
            color=own.color,
            alpha=0.6,
            hatch=own.hatch,
            edgecolor="white",
            lw=0,
            label=str(clf.classes_[k]),
        )
        if seen is not None:
            label = _SHARE if i == 0 else None
            ax.plot(at, seen[k], "_", color=INK, ms=min(16, 90 * width), mew=1.5, label=label)
    ax.set_ylim(0, None)
    draw_names(ax, names)


def _curves(
    ax: "Axes",
    clf: Any,
    one: Feature,
    log_p: dict[int, Array],
    drawn: dict[int, Array],
    at: Array | None,
    mass: tuple[float, float],
) -> None:
    """Densities, and below them a line per class: its middle, and its rows."""
    room = _STRIP * (len(drawn) + 1)
    low, high = one.values[0], one.values[-1]
    edges = np.linspace(low, high, _BINS + 1)
    top = 0.0
    strip = ax.get_xaxis_transform()  # heights as shares of the axes
    for i, (k, x) in enumerate(drawn.items()):
        own, name = look(k), str(clf.classes_[k])
        line = {"color": own.color, "ls": own.dashes, "lw": 1.8, "label": name}
        if not log_p:
            share = np.histogram(x, edges)[0] / len(x) / np.diff(edges)
            ax.stairs(share, edges, baseline=None, **line)
        else:
            share = np.exp(log_p[k])
            mark = {"marker": "o", **own.mark(4)} if one.kind == "count" else {}
            ax.plot(one.x, share, **line, **(mark if len(one.values) <= 60 else {}))
        top = max(top, float(np.nanmax(share)))
        height = room - _STRIP * (i + 0.75)
        for m, lw in zip(mass, (4.0, 1.6), strict=True):
            ends = np.quantile(x, [(1 - m) / 2, (1 + m) / 2])
            ax.hlines(height, *ends, color=own.color, lw=lw, alpha=0.55, transform=strip)
        if at is not None:
            rug = one.at[at == k]
            heights = np.full(len(rug), height)
            ax.plot(rug, heights, "|", color=own.color, ms=6, mew=0.8, alpha=0.8, transform=strip)
    for m, lw in zip(mass, (4.0, 1.6), strict=True):
        ax.plot([], [], color=INK, lw=lw, alpha=0.55, label=f"middle {percent(m)}")
    if at is not None:
        ax.plot([], [], "|", color=INK, ms=6, label="rows")
    ax.set_ylim(-top * 1.05 * room / (1 - room), top * 1.05)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top * 1.05])
    ax.axhline(0, color=INK, lw=0.6, alpha=0.6)
