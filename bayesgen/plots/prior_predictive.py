"""Data sets that the prior, or the posterior, makes of a feature, beside what was observed."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesgen.datatree.groups import as_long
from bayesgen.encoding.labels import codes_of
from bayesgen.inference.trees import draw_prior
from bayesgen.numerics.special import Array, softmax
from bayesgen.plots.columns import Rows, cells_of, draw_names
from bayesgen.plots.style import (
    HAIR,
    INK,
    MUTED,
    canvas,
    checked_axes,
    colour,
    feature_index,
    feature_names,
    label_codes,
    legend_beside,
    percent,
)
from bayesgen.posterior.fitted import Fitted, fitted_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = (0.03, 0.97)  # quantiles of all draws between which the axis runs: tails may be heavy
_MASS = ((0.5, 4.5), (0.9, 1.6))  # of the data sets, between the ends of a line, and its width


def plot_prior_predictive(
    clf: Any,
    X: Any,
    y: Any,
    feature: Any = 0,
    label: Any = None,
    *,
    draws: int = 60,
    random_state: Any = 0,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Data sets that the prior makes, one line each, and the one that was observed.

    Each line is the cumulative distribution of a feature in rows simulated from one draw of the
    prior, with the labels (lengths, exposures) of the rows given. Of a binary or categorical
    feature, bars are the observed shares, and lines hold 50 % and 90 % of those of the data sets.
    A prior that is right for the problem makes data sets among which the observed one does not
    stand out, and none that are absurd. Of a discriminative classifier, which says nothing of
    features, the lines are of p(y = label | x, theta) over the rows given.

    Parameters
    ----------
    clf : fitted classifier
        Only its prior is used: ``clf.prior_``, by default scaled to the rows of the fit.
    X, y : (N, D), (N,)
        Labelled rows, as a rule those of the fit.
    feature : int or column name
    label : label, optional
        Rows of this class alone. Default: all rows; of a discriminative classifier the last class.
    draws : int
        Of the prior: lines.
    random_state : int or numpy.random.Generator
    ax : matplotlib.axes.Axes, optional
    figsize : (width, height) in inches, optional
        Of a figure that is made.

    Returns
    -------
    matplotlib.axes.Axes
        x in the unit of the feature, or its categories; y a share of the rows.

    Raises
    ------
    ValueError
        If labels and rows do not go together, `draws` is below 1, or a name is not known.
    TypeError
        If the classifier reads sequences, which have no columns.

    References
    ----------
    Gabry et al. (2019), Visualization in Bayesian workflow, section 3.

    Examples
    --------
    >>> clf = bg.GaussianNB().fit(X, y)  # doctest: +SKIP
    >>> plot_prior_predictive(clf, X, y, "bill_length_mm", "Gentoo")  # doctest: +SKIP
    """
    return _plot(clf, X, y, feature, label, draws, random_state, ax, figsize, source="prior")


def plot_predictive_check(
    clf: Any,
    X: Any,
    y: Any,
    feature: Any = 0,
    label: Any = None,
    *,
    draws: int = 60,
    random_state: Any = 0,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Data sets that the fitted model makes, and the one that was observed.

    As `plot_prior_predictive`, from draws of the posterior: where the observed rows stand out, the
    model cannot produce them.

    Parameters
    ----------
    clf : fitted classifier
    X, y : (N, D), (N,)
        Labelled rows; held-out rows are the stricter check.
    feature, label, draws, random_state, ax, figsize
        As in `plot_prior_predictive`.

    Returns
    -------
    matplotlib.axes.Axes

    References
    ----------
    Gelman et al. (2013), Bayesian Data Analysis, section 6.3.
    """
    return _plot(clf, X, y, feature, label, draws, random_state, ax, figsize, source="posterior")


def _plot(
    clf: Any,
    X: Any,
    y: Any,
    feature: Any,
    label: Any,
    draws: int,
    random_state: Any,
    ax: "Axes | None",
    figsize: tuple[float, float] | None,
    source: str,
) -> "Axes":
    checked_axes(ax, figsize)
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be an integer >= 1, got {draws!r}")
    fitted = fitted_of(clf, f"plot of the {source} predictive")
    names = feature_names(clf) if hasattr(clf, "n_features_in_") else []
    j = feature_index(clf, feature) if names else 0
    encoded = fitted.read(X).encoded
    if isinstance(encoded, list) or not hasattr(encoded, "shape") or len(encoded.shape) != 2:
        raise TypeError(f"{type(clf).__name__} reads sequences: there are no columns to draw")
    codes = label_codes(clf, y, encoded.shape[0])
    rng = np.random.default_rng(random_state)
    family = fitted.posterior.prior.family if source == "prior" else fitted.family
    theta = _theta(fitted, rng, draws, source)
    k = None if label is None else int(codes_of(label, clf.classes_))
    mine = np.ones(len(codes), dtype=bool) if k is None else codes == k
    categories: list[str] | None = None
    if family.discriminative:
        k = len(clf.classes_) - 1 if k is None else k
        lines = softmax(family.log_likelihood(encoded, theta))[..., k]
        seen, what = None, f"p({clf.classes_[k]} | x, θ)"
    else:
        lines = _simulated(rng, family, theta, encoded, codes, j)[:, mine]
        seen, what = cells_of(encoded, j)[mine], names[j]
        if sparse.issparse(encoded):  # codes, where it has categories
            known = getattr(clf, "categories_", None)
            categories = None if known is None else [str(value) for value in known[j]]
        else:
            categories = Rows(clf, X).codes(j)
    with canvas(ax, figsize, (7.2, 3.6)) as ax:
        tint = MUTED if k is None else colour(k)
        if categories is not None and seen is not None:
            _draw_shares(ax, lines, seen, categories, tint, f"{draws} draws of the {source}")
        else:
            of = f"{'under' if source == 'prior' else 'of'} the {source}, {draws} draws"
            _draw_lines(ax, lines, seen, tint, INK if k is None else tint, of)
        ax.set_xlabel(what)
        ax.grid(axis="both" if categories is None else "y", color=HAIR, lw=0.5)
        ax.set_axisbelow(True)
        whose = "" if label is None or seen is None else f" of {label}"
        when = "before the data" if source == "prior" else "and what the model makes"
        ax.set_title(f"{what}{whose}, {when}")
        legend_beside(ax)
    return ax


def _theta(fitted: Fitted, rng: np.random.Generator, draws: int, source: str) -> dict[str, Array]:
    """{name: (draws, *dims)} of the prior or the posterior."""
    if source == "prior":
        return draw_prior(fitted, rng, draws)
    return {name: value[0] for name, value in fitted.posterior.draw(rng, draws, 1).items()}


def _draw_lines(
    ax: "Axes", lines: Array, seen: Array | None, tint: str, strong: str, of: str
) -> None:
    """Cumulative distributions of the data sets and of the observed rows."""
    for values in lines:
        _step(ax, values, color=tint, lw=0.8, alpha=0.35)
    ax.plot([], [], color=tint, lw=0.8, label=of)
    shown = lines
    if seen is not None:
        _step(ax, seen, color=strong, lw=2.4, label="observed")
        shown = seen
    low, high = np.nanquantile(lines, _SHOWN)
    low, high = min(low, np.nanmin(shown)), max(high, np.nanmax(shown))
    room = 0.03 * (high - low) or 0.5
    ax.set(xlim=(low - room, high + room), ylim=(-0.02, 1.02))
    ax.set_ylabel("share of rows below")


def _draw_shares(
    ax: "Axes", lines: Array, seen: Array, names: list[str], tint: str, of: str
) -> None:
    """Observed shares of categories as bars, and intervals of those of the data sets."""
    known = seen >= 0  # neither missing nor never seen in training
    count = np.bincount(seen[known].astype(int), minlength=len(names))
    at = np.arange(len(names))
    ax.bar(at, count / np.maximum(1, count.sum()), 0.62, color=tint, alpha=0.45, label="observed")
    lines = lines[:, known].astype(int)
    shares = np.stack([np.bincount(one, minlength=len(names)) for one in lines]) / lines.shape[1]
    for mass, lw in _MASS:
        ends = np.quantile(shares, [(1 - mass) / 2, (1 + mass) / 2], axis=0)
        ax.vlines(at, *ends, color=INK, lw=lw, label=f"{percent(mass)} of {of}")
    ax.set_ylim(0, None)
    ax.set_ylabel("share of rows")
    draw_names(ax, names)


def _simulated(
    rng: np.random.Generator, family: Any, theta: dict[str, Array], X: Any, y: Array, j: int
) -> Array:
    """(draws, N) column j of rows like X, a data set for each draw."""
    family = as_long(family, X)
    n_draws = len(next(iter(theta.values())))
    each = ({name: value[s] for name, value in theta.items()} for s in range(n_draws))
    return np.stack([cells_of(family.simulate(rng, one, y), j) for one in each])


def _step(ax: "Axes", values: Array, **options: Any) -> None:
    """Cumulative distribution of the values that are not missing."""
    values = np.sort(values[~np.isnan(values)])
    if len(values):
        share = np.arange(1, len(values) + 1) / len(values)
        ax.step(np.r_[values[0], values], np.r_[0.0, share], where="post", **options)
