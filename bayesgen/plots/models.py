"""Pictures of models and plug-ins compared, of closed form against NUTS, of reliability."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from bayesgen.checks.comparison import IDENTITY, STAGES, of_draws
from bayesgen.checks.validate import Validation
from bayesgen.encoding.labels import code_labels, codes_of, labels_of
from bayesgen.encoding.tables import n_rows
from bayesgen.errors import refuse_below
from bayesgen.families.names import METHOD_NAMES, Method
from bayesgen.numerics.special import Array
from bayesgen.plots import drawing, style
from bayesgen.plots.drawing import Bins
from bayesgen.plots.style import HAIR, MUTED, Options
from bayesgen.posterior.fitted import through_pipelines
from bayesgen.predict.draws import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def plot_comparison(
    table: Any,
    *,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw the difference of each model or plug-in to the best, with its standard error.

    Parameters
    ----------
    table : ModelComparison or xarray.Dataset
        The result of `compare_models`: the picture shows the leave-one-out label score of each
        model less that of the best. Or the result of `compare_predictives`: the picture shows the
        log loss of each plug-in less that of the posterior predictive of the same model. With
        several models it first shows the posterior predictive of each less the best. A text gives
        the share of rows whose label has more probability under the method of that line.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Bars are one standard error of the paired difference. The line at 0 is the method that the
        others are compared with. A text replaces the point of an infinite difference.
    """
    style.checked_axes(ax, figsize)
    data = getattr(table, "table", table)
    variables = list(map(str, getattr(data, "data_vars", ())))
    if "elpd_diff" in variables:
        lines = _models(data)
        xlabel = "leave-one-out log probability of the labels, less that of the best (nats)"
    elif "log_loss_diff_wins" in variables:
        lines = _predictives(data)
        best = ", or of the best model" * ("model" in data.dims)
        xlabel = f"log loss less that of the posterior predictive{best} (nats per row)"
    else:
        raise TypeError(
            "plot_comparison draws what bg.compare_models(models, X, y) or "
            "bg.compare_predictives(clf, X, y) returns, got a "
            + type(table).__name__
            + f" of {', '.join(variables)}" * bool(variables)
        )
    n_lines, n = len(lines), style.fitting(len(lines), 0.3)
    names, gap, se, notes = zip(*lines[:n], strict=True)
    shown, error = np.where(np.isfinite(gap), gap, np.nan), np.nan_to_num(se)
    width = 6.0 + 0.08 * max(0, min(46, max(map(len, names))) - 18) * any(notes)
    with style.canvas(ax, figsize, (width, min(style.TALLEST, 1.0 + 0.42 * n))) as ax:
        ends = np.stack([shown - error, shown + error], axis=1)
        drawing.grid(ax, "x")
        ax.locator_params(axis="x", nbins=4)  # long numbers, in axes that may be narrow
        ax.axvline(0, color=MUTED, lw=1, zorder=0)
        drawing.intervals(ax, np.arange(n), shown, ends, style.look(0))
        drawing.name_lines(ax, names, 46 if any(notes) else 32)
        ax.set_xlabel(style.written(xlabel, 48, 2))
        side = ax.get_yaxis_transform()  # places across as shares of the axes
        for i, note in enumerate(notes):
            if word := {np.inf: "∞ ", -np.inf: "−∞ "}.get(gap[i]):
                ax.text(1, i, word, transform=side, ha="right", va="center")
            ax.text(1.02, i, note, transform=side, va="center", color=MUTED, size=8.5)
        first = "first" if any(notes) else "best"
        cut = f"the {first} {n} of {n_lines}; " if n < n_lines else ""
        drawing.title(ax, f"{cut}{data.attrs['rows']} rows; bars: one standard error")
    return ax


Line = tuple[str, float, float, str]  # name, difference, its standard error, and a note


def _models(table: "xr.Dataset") -> list[Line]:
    """Return differences of `compare_models`; of two models one."""
    names, gaps, errors = (table[k].values.tolist() for k in ("model", "elpd_diff", "dse"))
    if len(names) == 2:
        return [(f"{names[1]} less {names[0]}", gaps[1], errors[1], "")]
    return [(str(name), gap, se, "") for name, gap, se in zip(names, gaps, errors, strict=True)]


def _predictives(table: "xr.Dataset") -> list[Line]:
    """Return differences of `compare_predictives`, with the shares of wins.

    Of several models those of their posterior predictives to the best come first. An estimate that
    does not exist has no line.
    """
    several = "model" in table.dims
    models = table["model"].values.tolist() if several else [None]
    lines: list[Line] = []

    def add(name: str, winner: str, row: "xr.Dataset", key: str) -> None:
        gap, se, wins = (float(row[f"{key}{end}"]) for end in ("", "_se", "_wins"))
        if not np.isnan(gap):
            lines.append((name, gap, se, f"{gap:+.2g}, {winner} wins {100 * wins:.0f} % of rows"))

    if several:
        predictive = table.isel(predictive=0)
        best = models[int(np.nanargmin(predictive["log_loss"].values))]
        for model in models:
            if model != best:
                row = predictive.sel(model=model)
                add(f"{model} less {best}", str(model), row, "log_loss_above_best")
    for model in models:
        one = table.sel(model=model) if several else table
        for method in one["predictive"].values.tolist()[1:]:
            name = f"{model}: " * several + METHOD_NAMES[method]
            add(name, "the plug-in", one.sel(predictive=method), "log_loss_diff")
    if not lines:
        raise ValueError("the table has no difference to draw: no plug-in estimate exists")
    return lines


def plot_validation(
    validation: Validation,
    *,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw the z-scores that compare the closed form with NUTS.

    Parameters
    ----------
    validation : Validation
        The result of `validate`.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One line per variable; each is computed from those above it. If both are right, the band
        contains all z-scores with probability 1 - `false_alarm`. Points outside it are filled. A
        text marks an identity that does not hold.
    """
    style.checked_axes(ax, figsize)
    if not isinstance(validation, Validation):
        raise TypeError(
            f"validation must be what bg.validate returns, got a {type(validation).__name__}"
        )
    checks, limit = validation.checks, validation.threshold
    checks = checks[checks["difference"].notna()]
    is_broken = (checks["statistic"] == IDENTITY) & (checks["difference"].abs() > checks["allowed"])
    shown = checks[of_draws(checks) | is_broken]
    names = shown["variable"].where(
        shown["statistic"] != IDENTITY, shown["variable"] + " (identity)"
    )
    lines = [*shown.groupby([shown["stage"].map(STAGES.index), names.to_numpy()], sort=False)]
    lines.sort(key=lambda line: line[0][0])
    reach = 1.7 * limit
    with style.canvas(ax, figsize, (7.2, min(style.TALLEST, 1.1 + 0.24 * len(lines)))) as ax:
        drawing.grid(ax, "x")
        ax.axvspan(-limit, limit, color=MUTED, alpha=0.1, lw=0)
        ax.axvline(0, color=MUTED, lw=1)
        good, bad = style.look(0), style.look(1)
        side = ax.get_yaxis_transform()  # places across as shares of the axes
        for i, ((stage, _), comparisons) in enumerate(lines):
            if i == 0 or stage != lines[i - 1][0][0]:
                ax.axhline(i - 0.5, color=HAIR, lw=0.8 if i else 0)
                ax.text(1.01, i, STAGES[stage], transform=side, va="center", color=MUTED, size=8.5)
            if (comparisons["statistic"] == IDENTITY).any():
                ax.text(reach, i, "does not hold ", color=bad.color, ha="right", va="center")
                continue
            z = comparisons["difference"].to_numpy()
            is_within, z = np.abs(z) <= limit, np.clip(z, -reach, reach)
            for chosen, look, alpha in ((is_within, good, 0.35), (~is_within, bad, 1.0)):
                heights = np.full(int(chosen.sum()), i)
                ax.plot(z[chosen], heights, "o", color=look.color, ms=4, mew=0, alpha=alpha)
        drawing.name_lines(ax, [name for (_, name), _ in lines], 58)
        ax.tick_params(axis="y", labelsize=8.5)
        ax.set_xlim(-1.04 * reach, 1.04 * reach)
        ax.set_xlabel("z-score of draws less closed form")
        ax.set_title(f"{validation.run['estimator']}: {validation.verdict}")
    return ax


# ------------------------------------------------------------------------------------------------
# Reliability diagram: whether what is said with 80 % happens in 80 %, and how sure that is.


def reliability(p: Array, hit: Array, bins: int, prob: float) -> Bins:
    """Return bins of equally many rows, from p (N,) and whether it happened (N,) bool.

    Intervals are Jeffreys'. Equal probabilities share a bin.
    """
    order = np.argsort(p, kind="stable")
    cuts = np.unique(p[order[np.linspace(0, len(p), bins + 1).astype(int)[1:-1]]])
    place = np.searchsorted(cuts, p, side="right")
    count = np.bincount(place, minlength=len(cuts) + 1)
    k = np.bincount(place, weights=hit, minlength=len(count))[count > 0]
    total = np.bincount(place, weights=p, minlength=len(count))[count > 0]
    n = count[count > 0]
    return Bins(total / n, k / n, *jeffreys(k, n, prob), n)


def jeffreys(k: Any, n: Any, prob: float) -> tuple[Array, Array]:
    """Return the ends of the interval of a share that was k of n.

    Equal tails of Beta(k + 1/2, n - k + 1/2), but 0 where k is 0 and 1 where it is n (Brown, Cai
    and DasGupta, 2001).
    """
    tail = (1 - prob) / 2
    lower = np.where(np.equal(k, 0), 0.0, stats.beta.ppf(tail, k + 0.5, n - k + 0.5))
    upper = np.where(np.equal(k, n), 1.0, stats.beta.isf(tail, k + 0.5, n - k + 0.5))
    return lower, upper


@through_pipelines
def plot_reliability(
    clf: Any,
    X: Any,
    y: Any,
    *,
    classes: Any = None,
    method: Method = "posterior_predictive",
    bins: int = 10,
    prob: float | None = None,
    class_prior: Any = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Draw observed frequency against predicted probability on held-out rows.

    Parameters
    ----------
    clf : fitted classifier or pool, or {name: classifier, or array (N, class)}
        Several classifiers share one picture. Any classifier with ``predict_proba`` is accepted. An
        array has the class probabilities of the rows, in the order of the sorted labels.
    X, y : (N, D), (N,)
        Rows that the classifier was not fitted to, and their labels. X may be None if all
        classifiers are arrays.
    classes : label or sequence of labels, optional
        Classes whose probability is shown; only one with several classifiers. Default: the second
        of two classes, else the most probable class of each row.
    method, class_prior
        As in ``clf.predict_proba``.
    bins : int
        Number of bins with equally many rows.
    prob : float in (0, 1), optional
        Probability of the Jeffreys intervals of the frequencies; default
        ``az.rcParams["stats.ci_prob"]``. If a classifier is calibrated, its bars miss the diagonal
        in a share 1 - prob of the bins.
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Size of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    style.checked_axes(ax, figsize)
    prob = IntervalRequest.of(prob).prob
    refuse_below(1, bins=bins)
    several = clf if isinstance(clf, Mapping) else {"": clf}
    labels = _common_classes(several, y)
    codes = codes_of(y, labels)
    n = len(codes) if X is None else n_rows(X)
    if codes.shape != (n,):
        raise ValueError(f"X has {n} rows, but y has shape {np.shape(y)}")
    shown = style.chosen(classes, labels, [1] if len(labels) == 2 else [])
    if len(several) > 1 and len(shown) > 1:
        raise ValueError("classes must be one label where several classifiers are drawn")
    curves = {}
    for i, (name, one) in enumerate(several.items()):
        p = _probabilities(one, name, X, method, class_prior, (n, len(labels)))
        look = style.look(i if len(several) > 1 else 0)
        if not shown:
            curves[name] = p.max(axis=1), codes == p.argmax(axis=1), look
        for k in shown:
            label = str(labels[k]) if len(shown) > 1 else name
            curves[label] = p[:, k], codes == k, look if len(several) > 1 else style.look(k)
    with style.canvas(ax, figsize, (4.9 if len(curves) == 1 else 7.2, 4.7)) as ax:
        drawing.unit_square(ax)
        for name, (said, hit, look) in curves.items():
            binned = reliability(said, hit, bins, prob)
            drawing.reliability(ax, binned, look, str(name))
            least, most = binned.size.min(), binned.size.max()
            size = f"{least if least == most else f'{least} to {most}'} a point"
        if len(curves) == 1:
            rug = ax.get_xaxis_transform()  # heights as shares of the axes
            ax.vlines(said, 0, 0.025, color=MUTED, lw=0.5, alpha=0.5, transform=rug)
        what = str(labels[shown[0]]) if len(shown) == 1 else "each class"
        drawing.label_diagram(ax, what if shown else "the most probable class", prob)
        drawing.title(ax, f"{n} rows, {size}")
        if len(curves) > 1:
            style.legend_beside(ax)
    return ax


def _common_classes(several: Mapping[Any, Any], y) -> Array:
    """Return the classes of all classifiers; where there are none, the labels that occur."""
    if not several:
        raise ValueError("clf is {}: there is nothing to draw")
    classes = {name: one.classes_ for name, one in several.items() if hasattr(one, "predict_proba")}
    if not classes:
        return code_labels(labels_of(y))[0]
    first, *others = classes
    for name in others:
        if not np.array_equal(classes[first], classes[name]):
            raise ValueError(
                f"the classes of {first!r} are {list(classes[first])}, "
                f"those of {name!r} {list(classes[name])}"
            )
    return np.asarray(classes[first])


def _probabilities(
    one, name: object, X, method: Method, class_prior, shape: tuple[int, int]
) -> Array:
    """Return those (N, C) of a classifier or pool, or those given."""
    if hasattr(one, "predict_proba"):
        if X is None:
            raise ValueError("X is None, but a classifier needs rows")
        options: Options = {} if class_prior is None else {"class_prior": class_prior}
        if method != "posterior_predictive":
            options["method"] = method
        return np.asarray(one.predict_proba(X, **options))
    p = np.asarray(one, dtype=np.float64)
    if p.shape != shape or not np.all((p >= 0) & (p <= 1 + 1e-9)):
        raise ValueError(
            f"{name!r} must be a fitted classifier or probabilities of shape {shape}, one column "
            f"per class; got shape {p.shape}"
        )
    return p
