"""Forest of class probabilities: one line an interval, and the two means that it may miss."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.encoding.labels import codes_of
from bayesgen.encoding.tables import n_rows
from bayesgen.errors import spelled
from bayesgen.families.errors import refuse_unknown
from bayesgen.numerics.special import Array
from bayesgen.plots import drawing, style
from bayesgen.plots.style import HAIR, INK, MUTED, Look
from bayesgen.posterior.fitted import through_pipelines

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from bayesgen.predict.request import KindName


_ROWS = 60


@spelled
@through_pipelines
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
    style.checked_axes(ax, figsize)
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

    with style.canvas(ax, figsize, (7.2, 1.0 + max(n * (0.1 + 0.14 * len(shown)), 1.4))) as ax:
        ax.axvline(0.5, color=HAIR, lw=0.8, zorder=0)
        if len(shown) > 1:
            ax.hlines(np.arange(n - 1) + 0.5, 0, 1, color=HAIR, lw=0.5, zorder=0)
        lanes = np.linspace(-0.28, 0.28, len(shown)) if len(shown) > 1 else [0.0]
        for lane, k in zip(lanes, shown, strict=True):
            at, own = np.arange(n) + lane, style.look(k)
            ax.plot(mean[:, k], at, "|", color=own.color, ms=8, mew=1.6)
            exact, ends = (table[name].values[:, k] for name in ("predictive", "interval"))
            drawing.intervals(ax, at, exact, ends, own, mark="D", ls="", clip_on=False)
        drawing.name_lines(ax, names)
        ax.set(xlim=(0, 1), ylim=(n - 0.5, -0.5))
        one = f"p({clf.classes_[shown[0]]} | x)" if len(shown) == 1 else "class probability"
        ax.set_xlabel(one)
        several = [(str(clf.classes_[k]), style.look(k)) for k in shown] if len(shown) > 1 else []
        _legend(ax, several, f"{style.percent(table.attrs['prob'])} of p(y | x, θ)")
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
    style.legend_beside(ax, handles)


# ------------------------------------------------------------------------------------------------
# Three classes: each row's probabilities as a point of the simplex, its posterior as a cloud.

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
_LINE, _LINES = 16, 3  # letters of a line of a class name at a corner, and lines
_CLOUDS = 25  # rows with clouds; more of them hide each other


@spelled
@through_pipelines
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
    style.checked_axes(ax, figsize)
    if len(clf.classes_) != 3:
        raise ValueError(f"plot_ternary is for three classes, not for {len(clf.classes_)}")
    options = {"class_prior": class_prior, "posterior": posterior}
    options = {name: value for name, value in options.items() if value is not None}
    p = np.asarray(clf.predict_proba(X, **options))
    codes = p.argmax(axis=1) if y is None else style.label_codes(clf, y, len(p))
    if draws is None:
        draws = 200 if len(p) <= _CLOUDS else 0
    with style.canvas(ax, figsize, (5.6, 4.7)) as ax:
        _simplex(ax, clf.classes_)
        if draws:
            tree = clf.predict_posterior(X, draws, random_state=random_state, **options)
            rho = tree["predictions"]["class_probability"].values
            rho = rho.reshape(-1, *rho.shape[2:])
            rho = rho[:: max(1, len(rho) // draws)]
            for i, k in enumerate(codes):
                ax.plot(
                    *(rho[:, i] @ _CORNERS).T, ".", ms=3.6, mew=0, color=style.colour(k), alpha=0.35
                )
        for k in range(3):
            ax.plot(
                *(p[codes == k] @ _CORNERS).T,
                "D",
                ms=6 if draws else 4.5,
                mfc=style.colour(k),
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
        ax.text(x, y, name, color=style.colour(k), ha=ha, va=va, weight="bold", size=11)
    beside = ((0.0, -0.03, "center"), (0.02, 0.0, "left"), (-0.02, 0.0, "right"))
    for a, (dx, dy, ha) in enumerate(beside):  # shares of a class grow along the edge to it
        b = (a + 1) % 3
        for share in (0.25, 0.5, 0.75):
            x, y = (1 - share) * _CORNERS[a] + share * _CORNERS[b] + (dx, dy)
            ax.text(x, y, f"{share:g}", color=style.colour(b), ha=ha, va="center", size=8)
    ax.set(xlim=(-0.16, 1.16), ylim=(-0.09, 0.95), aspect="equal")
    ax.axis("off")


def _written(name: str) -> str:
    """A name in at most three short lines: a long one would shrink the triangle to a dot."""
    lines = textwrap.wrap(name, _LINE) or [""]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE - 1] + "…"]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------
# What each feature of a row says, from the table of `explain`.


def plot_contributions(
    table: "xr.Dataset",
    row: int = 0,
    *,
    values: Any = None,
    most: int = 15,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Contributions of the features to one row's log-odds, the largest on top.

    Parameters
    ----------
    table : xarray.Dataset
        From ``clf.explain``.
    row : int
        Position in the table.
    values : sequence (D,), optional
        The row's cells, written beside the features' names.
    most : int
        Features shown; the sum of the others is one line.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
    """
    style.checked_axes(ax, figsize)
    if "mean_intercept" not in getattr(table, "data_vars", ()):
        raise TypeError(
            "plot_contributions draws what clf.explain(X) returns, got a "
            f"{type(table).__name__}: plot_contributions(clf.explain(X), row)"
        )
    n = table.sizes["obs_id"]
    if not -n <= row < n:
        raise ValueError(f"row must be a position among the {n} of the table, got {row!r}")
    one = table.isel(obs_id=row)
    mean = one["mean"].values
    exact = one["predictive"].values if "predictive" in one else None
    order = np.argsort(-np.abs(mean), kind="stable")
    shown, rest = order[:most], order[most:]
    names = [str(name) for name in one["feature"].values]
    if values is not None:
        cells = np.asarray(values, dtype=object).ravel()
        if len(cells) != len(names):
            raise ValueError(
                f"values has {len(cells)} entries, but there are {len(names)} features"
            )
        names = [f"{name} = {_short(v)}" for name, v in zip(names, cells, strict=True)]
    with style.canvas(ax, figsize, (7.2, 1.1 + 0.27 * (len(shown) + 1 + bool(len(rest))))) as ax:
        ends = one["interval"].values
        lines = [(names[j], mean[j], ends[j], None if exact is None else exact[j]) for j in shown]
        if len(rest):
            other = None if exact is None else exact[rest].sum()
            lines.append((f"{len(rest)} others together", mean[rest].sum(), None, other))
        base = one["predictive_intercept"].item() if exact is not None else None
        intercept = one["interval_intercept"].values
        lines.append(("class weights", one["mean_intercept"].item(), intercept, base))
        ax.axvline(0, color=MUTED, lw=0.9, zorder=0)
        for at, (_, m, interval, p) in enumerate(lines):
            tint = style.colour(0 if m >= 0 else 1)
            if interval is not None:
                ax.hlines(at, *interval, color=tint, lw=2.4, alpha=0.55)
            ax.plot(m, at, "|", color=tint, ms=9, mew=1.8)
            if p is not None:
                ax.plot(p, at, "D", ms=4.5, mfc=tint, mec="white", mew=0.7)
        drawing.name_lines(ax, [line[0] for line in lines], 60)
        ax.axhline(len(lines) - 1.5, color=HAIR, lw=0.8)
        label, against = one["label"].item(), one["against"].item()
        ax.set_xlabel(f"log-odds of {label} against {against} [nats]")
        total = one["predictive_log_odds" if "predictive_log_odds" in one else "mean_log_odds"]
        ax.set_title(f"{label} rather than {against}: {total.item():+.1f} nats in all")
        _legend_of_terms(ax, exact is not None, table.attrs["prob"])
    return ax


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float | np.number) else str(value)


def _legend_of_terms(ax: "Axes", exact: bool, prob: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=INK, lw=2.4, alpha=0.55, label=f"{style.percent(prob)} over θ"),
        Line2D([], [], color=INK, ls="", marker="|", ms=9, mew=1.8, label="mean over θ"),
    ]
    if exact:
        handles.append(Line2D([], [], color=INK, ls="", marker="D", ms=4.5, label="predictive"))
    style.legend_beside(ax, handles)


# ------------------------------------------------------------------------------------------------
# Labels that may be wrong.


def plot_label_errors(
    errors: "xr.Dataset",
    most: int = 20,
    *,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Rows whose label is most probably wrong, with the label that they may have.

    Parameters
    ----------
    errors : xarray.Dataset
        Of `label_errors`.
    most : int
        Rows shown, the most probably wrong first.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
        A point for each row in the colour of the other label.
    """
    style.checked_axes(ax, figsize)
    if "wrong" not in getattr(errors, "data_vars", ()):
        raise TypeError(
            "plot_label_errors draws what bg.label_errors(clf, X, y) returns, got a "
            f"{type(errors).__name__}"
        )
    worst = errors.isel(obs_id=np.argsort(-errors["wrong"].values, kind="stable")[:most])
    classes = errors["true_class"].values.tolist()
    place = np.arange(worst.sizes["obs_id"])
    columns = (worst[name].values.tolist() for name in ("obs_id", "label", "other"))
    names = [f"{row}: {given} → {other}" for row, given, other in zip(*columns, strict=True)]
    hues = [style.colour(classes.index(other)) for other in worst["other"].values.tolist()]
    with style.canvas(ax, figsize, (6.0, 1.0 + 0.24 * max(len(names), 3))) as ax:
        ax.hlines(place, 0, worst["wrong"], color=hues, lw=2.2, alpha=0.5)
        ax.scatter(worst["wrong"], place, c=hues, s=36, edgecolors="white", linewidths=0.7)
        ax.set_yticks(place, names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlim(0, 1.02)
        ax.grid(axis="x", color=HAIR, lw=0.5)
        ax.set_axisbelow(True)
        ax.set_xlabel("probability that the label is wrong")
        low, high = errors["noise_rate_interval"].values
        ax.set_title(
            f"wrong labels: {style.percent(errors['noise_rate'].item())} "
            f"({style.percent(low)} to {style.percent(high)})"
        )
    return ax


def plot_prior_sensitivity(
    table: Any,
    hyperparameter: str = "all",
    *,
    most: int = 20,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Range of each row's class probability under priors half to twice as strong.

    Parameters
    ----------
    table : xarray.Dataset
        Of `prior_sensitivity`.
    hyperparameter : str
        Of the names in `table`.
    most : int
        Rows with the widest ranges, from top to bottom.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
        A dot at the probability of the most probable class, hollow where another class is the most
        probable at one of the strengths.
    """
    style.checked_axes(ax, figsize)
    if "sensitivity" not in getattr(table, "data_vars", ()):
        raise TypeError(f"table must be what prior_sensitivity returns, got {type(table).__name__}")
    known = table["hyperparameter"].values.tolist()
    refuse_unknown("hyperparameter", hyperparameter, known)
    own = table.sel(hyperparameter=hyperparameter)
    width = own["range"].values[:, 1] - own["range"].values[:, 0]
    rows = np.argsort(-width, kind="stable")[:most]
    at, ends = np.arange(len(rows)), own["range"].values[rows]
    with style.canvas(ax, figsize, (6.0, 1.2 + 0.24 * len(rows))) as ax:
        ax.hlines(at, *ends.T, color=style.colour(0), lw=2.2, alpha=0.5)
        for changes in (False, True):
            some = np.flatnonzero(own["changes"].values[rows] == changes)
            p = own["probability"].values[rows[some]]
            face, label = (
                ("white", "another class at one of them") if changes else (style.colour(0), "")
            )
            if len(some):
                ax.plot(p, some, "o", ms=5.5, mec=style.colour(0), mfc=face, label=label or None)
                if changes:
                    style.legend_beside(ax)
        names = zip(own["obs_id"].values[rows], own["label"].values[rows], strict=True)
        ax.set_yticks(at, [f"{_short(row)}: {_short(label)}" for row, label in names])
        ax.set_ylim(-0.6, len(rows) - 0.4)
        ax.invert_yaxis()
        ax.grid(axis="x", color=HAIR, lw=0.5)
        ax.set_axisbelow(True)
        ax.set_xlabel("probability under priors half to twice as strong")
        of = "the prior" if hyperparameter == "all" else hyperparameter
        ax.set_title(f"the {len(rows)} rows that {of} moves most")
    return ax
