"""What each feature of a row says, from the table of `explain`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plots.style import (
    HAIR,
    INK,
    MUTED,
    canvas,
    checked_axes,
    colour,
    legend_beside,
    percent,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


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
    checked_axes(ax, figsize)
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
    with canvas(ax, figsize, (7.2, 1.1 + 0.27 * (len(shown) + 1 + bool(len(rest))))) as ax:
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
            tint = colour(0 if m >= 0 else 1)
            if interval is not None:
                ax.hlines(at, *interval, color=tint, lw=2.4, alpha=0.55)
            ax.plot(m, at, "|", color=tint, ms=9, mew=1.8)
            if p is not None:
                ax.plot(p, at, "D", ms=4.5, mfc=tint, mec="white", mew=0.7)
        ax.set_yticks(range(len(lines)), [line[0] for line in lines])
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ax.axhline(len(lines) - 1.5, color=HAIR, lw=0.8)
        ax.tick_params(axis="y", length=0)
        label, against = one["label"].item(), one["against"].item()
        ax.set_xlabel(f"log-odds of {label} against {against} [nats]")
        total = one["predictive_log_odds" if "predictive_log_odds" in one else "mean_log_odds"]
        ax.set_title(f"{label} rather than {against}: {total.item():+.1f} nats in all")
        _legend(ax, exact is not None, table.attrs["prob"])
    return ax


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float | np.number) else str(value)


def _legend(ax: "Axes", exact: bool, prob: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=INK, lw=2.4, alpha=0.55, label=f"{percent(prob)} over θ"),
        Line2D([], [], color=INK, ls="", marker="|", ms=9, mew=1.8, label="mean over θ"),
    ]
    if exact:
        handles.append(Line2D([], [], color=INK, ls="", marker="D", ms=4.5, label="predictive"))
    legend_beside(ax, handles)
