"""Two features: what each class looks like, where it is chosen, and where that is not sure."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import entr

from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import Method
from bayesgen.numerics.special import Array
from bayesgen.plots.columns import Rows
from bayesgen.plots.style import (
    CLASSES,
    INK,
    METHOD_NAMES,
    canvas,
    checked_axes,
    colour,
    feature_names,
    label_codes,
    look,
    percent,
    rows_like,
)
from bayesgen.predict.interval.request import IntervalRequest
from bayesgen.predict.probabilities import check_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID, _COARSE, _DRAWS, _SIMULATED = 201, 67, 200, 4000
_LABELLED = 4  # classes whose lines have their mass written on them
_DASHES = ("solid", (0, (4, 2.2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def plot_regions(
    clf: Any,
    X: Any,
    y: Any = None,
    *,
    overlay: Literal["epistemic", "width"] | None = "epistemic",
    boundaries: Sequence[Method] = ("posterior_predictive",),
    mass: Sequence[float] = (0.5, 0.9),
    prob: float | None = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Predictive densities, decision regions and their uncertainty in the plane of two features.

    Lines are p(x | y = c, D), around the given masses of each class, which they are labelled with
    (none of a pool, or of a discriminative classifier); tints are the most probable class;
    boundaries are where it changes. The darker the overlay, the less the training rows
    settle p(y | x, theta) there.

    Parameters
    ----------
    clf : fitted classifier or pool of two real features
    X : (N, 2)
        Its range is drawn, a tenth wider on either side.
    y : (N,), optional
        Labels of the rows, drawn as points.
    overlay : {"epistemic", "width"} or None
        Information about theta in a label at x, in nats; or the width of the interval of the
        probability of the most probable class. From 200 joint posterior draws.
    boundaries : methods of `predict_proba`
        The first in a solid line. One whose estimate does not exist is left out.
    mass : sequence of floats in (0, 1)
        Of each class, inside its contours.
    prob : float in (0, 1), optional
        Of ``overlay="width"``; default ``az.rcParams["stats.ci_prob"]``.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
    """
    checked_axes(ax, figsize)
    if getattr(clf, "n_features_in_", 0) != 2:
        raise ValueError("plot_regions draws the plane of two features: fit on two columns")
    if overlay not in ("epistemic", "width", None):
        raise ValueError(f"overlay must be 'epistemic', 'width' or None, got {overlay!r}")
    IntervalRequest.of(prob)
    for method in boundaries:
        check_method(method)
    if not all(0 < m < 1 for m in mass):
        raise ValueError(f"mass must be probabilities between 0 and 1, got {list(mass)}")
    rows = Rows(clf, X)
    if "nominal" in rows.kinds:
        name = rows.names[rows.kinds.index("nominal")]
        raise ValueError(
            f"plot_regions draws real features, and {name!r} has categories: see plot_effects"
        )
    codes = None if y is None else label_codes(clf, y, rows.table.n_rows)
    values = np.column_stack([rows.feature(j).at for j in (0, 1)])
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    pad = 0.1 * np.where(high > low, high - low, 1.0)
    by_draws = getattr(clf, "inference_", "closed form") != "closed form"  # all, at each point
    n_points = _COARSE if by_draws else _GRID
    gx, gy = np.meshgrid(*np.linspace(low - pad, high + pad, n_points).T)
    grid = rows_like(X, np.column_stack([gx.ravel(), gy.ravel()]))
    with canvas(ax, figsize, (6.6, 5.0)) as ax:
        _tint(ax, clf, grid, gx, gy)
        if overlay is not None:
            cx, cy = np.meshgrid(*np.linspace(low - pad, high + pad, _COARSE).T)
            coarse = rows_like(X, np.column_stack([cx.ravel(), cy.ravel()]))
            _overlay(ax, clf, coarse, cx, cy, overlay, prob)
        if hasattr(clf, "score_samples"):
            _contours(ax, clf, X, grid, gx, gy, mass)
        drawn = _boundaries(ax, clf, grid, gx, gy, boundaries)
        if codes is not None:
            for k in range(len(clf.classes_)):
                ax.plot(*values[codes == k].T, "o", **look(k).mark(4))
        names = feature_names(clf)
        ax.set(
            xlim=(gx[0, 0], gx[0, -1]), ylim=(gy[0, 0], gy[-1, 0]), xlabel=names[0], ylabel=names[1]
        )
        held = f"lines hold {', '.join(map(percent, mass))}"
        inside = len(clf.classes_) <= _LABELLED or not hasattr(clf, "score_samples")
        _legend(ax, clf.classes_, drawn, "" if inside else held)
    return ax


def _tint(ax: "Axes", clf: Any, grid: Any, gx: Array, gy: Array) -> None:
    from matplotlib.colors import to_rgb

    chosen = clf.predict_log_proba(grid).argmax(axis=1).reshape(gx.shape)
    colours = np.array([to_rgb(colour(k)) for k in range(len(clf.classes_))])
    extent = (gx[0, 0], gx[0, -1], gy[0, 0], gy[-1, 0])
    ax.imshow(
        1 - 0.16 * (1 - colours[chosen]),
        extent=extent,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )


def _overlay(
    ax: "Axes", clf: Any, grid: Any, gx: Array, gy: Array, overlay: str, prob: float | None
) -> None:
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    prob = IntervalRequest.of(prob).prob
    tree = clf.predict_posterior(grid, _DRAWS)
    rho = tree["predictions"]["class_probability"].values.reshape(-1, gx.size, len(clf.classes_))
    if overlay == "epistemic":
        mean = rho.mean(axis=0)
        value = entr(mean).sum(axis=1) - entr(rho).sum(axis=2).mean(axis=0)
        text = "epistemic entropy [nats]"
    else:
        top = clf.predict_log_proba(grid).argmax(axis=1)
        best = np.take_along_axis(rho, top[None, :, None], axis=2)[:, :, 0]
        a, b = np.quantile(best, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        value, text = b - a, f"width of the {percent(prob)} interval"
    ink = to_rgb(INK)
    shades = LinearSegmentedColormap.from_list("overlay", [(*ink, 0.0), (*ink, 0.45)])
    image = ax.imshow(
        value.reshape(gx.shape),
        extent=(gx[0, 0], gx[0, -1], gy[0, 0], gy[-1, 0]),
        origin="lower",
        aspect="auto",
        cmap=shades,
        interpolation="bilinear",
        vmin=0,
        zorder=0.5,
    )
    ax.figure.colorbar(image, ax=ax, label=text, shrink=0.7, pad=0.02).outline.set_visible(False)


def _contours(
    ax: "Axes", clf: Any, X: Any, grid: Any, gx: Array, gy: Array, mass: Sequence[float]
) -> None:
    from matplotlib.patheffects import withStroke

    for k, c in enumerate(clf.classes_):
        only = np.eye(len(clf.classes_))[k]  # all weight on one class: p(x | y = c, D) itself
        rows, _ = clf.simulate(_SIMULATED, y=c, random_state=0)
        rows = rows_like(X, np.asarray(rows, dtype=np.float64))
        levels = np.quantile(clf.score_samples(rows, class_prior=only), 1 - np.asarray(mass))
        density = clf.score_samples(grid, class_prior=only).reshape(gx.shape)
        own = look(k)
        drawn = ax.contour(
            gx,
            gy,
            density,
            levels=np.unique(levels),
            colors=[own.color],
            linewidths=1.2,
            linestyles=[own.dashes],
        )
        if len(clf.classes_) <= _LABELLED:
            texts = {level: percent(m) for level, m in zip(levels, mass, strict=True)}
            ax.clabel(drawn, fmt=texts, fontsize=8)
        if len(clf.classes_) > len(CLASSES):  # a colour stands for several classes: by name
            halo = [withStroke(linewidth=2.5, foreground="white")]
            x, y = np.median(np.asarray(rows, dtype=np.float64), axis=0)
            style: dict[str, Any] = {"color": own.color, "weight": "bold", "size": 9}
            ax.text(x, y, str(c), ha="center", path_effects=halo, clip_on=True, **style)


def _boundaries(
    ax: "Axes", clf: Any, grid: Any, gx: Array, gy: Array, methods: Sequence[Method]
) -> list[tuple[Method, Any]]:
    """Draw them; names and line styles of those that there are."""
    drawn = []
    for method, dashes in zip(methods, _DASHES, strict=False):
        try:
            own = {} if method == "posterior_predictive" else {"method": method}
            log_p = clf.predict_log_proba(grid, **own)
        except UndefinedEstimateError:
            continue
        for a, b in combinations(range(log_p.shape[1]), 2):
            gap, best = log_p[:, a] - log_p[:, b], log_p[:, [a, b]].max(axis=1)
            third = (log_p > best[:, None]).any(axis=1)  # there the two do not matter
            gap = np.ma.array(gap, mask=third).reshape(gx.shape)
            if gap.count() and gap.min() < 0 < gap.max():
                ax.contour(
                    gx, gy, gap, levels=[0], colors=[INK], linewidths=1.5, linestyles=[dashes]
                )
        drawn.append((method, dashes))
    return drawn


def _legend(ax: "Axes", classes: Array, drawn: list[tuple[Method, Any]], held: str) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for k, c in enumerate(classes):
        own = look(k)
        line = {"color": own.color, "ls": own.dashes, "lw": 1.2}
        handles.append(Line2D([], [], **line, marker="o", label=str(c), **own.mark(4)))
    handles += [
        Line2D([], [], color=INK, lw=1.5, ls=dashes, label=f"{METHOD_NAMES[m]} rule")
        for m, dashes in drawn
    ]
    if held:
        handles.append(Line2D([], [], color="none", label=held))
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3 if len(handles) <= 6 else 4,
        borderaxespad=0.2,
        columnspacing=1.2,  # no wider than the axes: the colour bar would move away
        handlelength=1.6,
    )
