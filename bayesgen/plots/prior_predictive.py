"""What the prior alone expects of a feature, beside what was observed."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesgen.datatree.groups import as_long
from bayesgen.numerics.special import Array, softmax
from bayesgen.plots.style import (
    HAIR,
    INK,
    MUTED,
    canvas,
    colour,
    feature_index,
    feature_names,
    refuse_other_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = (0.03, 0.97)  # quantiles of all draws between which the axis runs: tails may be heavy


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
) -> "Axes":
    """Data sets that the prior makes, one line each, and the one that was observed.

    Each line is the cumulative distribution of a feature in rows simulated from one draw of the
    prior, with the labels (lengths, exposures) of the rows given. A prior that is right for the
    problem makes data sets among which the observed one does not stand out, and none that
    are absurd. Of a discriminative classifier, which says nothing of features, the lines are of
    p(y = label | x, theta) over the rows given.

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

    Returns
    -------
    matplotlib.axes.Axes
        x in the unit of the feature, or at the codes of categories; y a share of the rows.

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
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be an integer >= 1, got {draws!r}")
    names = feature_names(clf)
    j = feature_index(clf, feature)
    encoded = clf._encode(clf._read(X, reset=False))
    if isinstance(encoded, list) or not hasattr(encoded, "shape") or len(encoded.shape) != 2:
        raise TypeError(f"{type(clf).__name__} reads sequences: there are no columns to draw")
    refuse_other_labels(clf, y, encoded.shape[0])
    codes = clf._codes_of(np.asarray(y))
    rng = np.random.default_rng(random_state)
    prior = clf.prior_
    theta = prior.draw(rng, draws) if clf._conjugate() else clf._draw_prior(rng, draws)
    k = None if label is None else int(clf._codes_of(label))
    own = np.ones(len(codes), dtype=bool) if k is None else codes == k
    if prior.family.discriminative:
        k = len(clf.classes_) - 1 if k is None else k
        lines = softmax(prior.family.log_likelihood(encoded, theta))[..., k]
        seen, what = None, f"p({clf.classes_[k]} | x, θ)"
    else:
        lines = _simulated(rng, prior.family, theta, encoded, codes, j)[:, own]
        seen, what = _column(encoded, j)[own], names[j]
    with canvas(ax, (5.6, 3.6)) as ax:
        tint = MUTED if k is None else colour(k)
        for values in lines:
            _step(ax, values, color=tint, lw=0.8, alpha=0.35)
        ax.plot([], [], color=tint, lw=0.8, label=f"under the prior, {draws} draws")
        shown = lines
        if seen is not None:
            _step(ax, seen, color=INK if k is None else tint, lw=2.4, label="observed")
            shown = seen
        low, high = np.nanquantile(lines, _SHOWN)
        low, high = min(low, np.nanmin(shown)), max(high, np.nanmax(shown))
        room = 0.03 * (high - low) or 0.5
        ax.set(xlim=(low - room, high + room), ylim=(-0.02, 1.02), xlabel=what)
        ax.set_ylabel("share of rows below")
        ax.grid(color=HAIR, lw=0.5)
        ax.set_axisbelow(True)
        whose = "" if label is None or seen is None else f" of {label}"
        ax.set_title(f"{what}{whose}, before the data")
        _name_categories(ax, clf, j, seen)
        ax.legend(loc="best")
    return ax


def _simulated(
    rng: np.random.Generator, family: Any, theta: dict[str, Array], X: Any, y: Array, j: int
) -> Array:
    """(draws, N) column j of rows like X, a data set for each draw."""
    family = as_long(family, X)
    n_draws = len(next(iter(theta.values())))
    each = ({name: value[s] for name, value in theta.items()} for s in range(n_draws))
    return np.stack([_column(family.simulate(rng, one, y), j) for one in each])


def _column(X: Any, j: int) -> Array:
    column = X[:, [j]].toarray() if sparse.issparse(X) else X[:, j]
    return np.asarray(column, dtype=np.float64).ravel()


def _step(ax: "Axes", values: Array, **options: Any) -> None:
    """Cumulative distribution of the values that are not missing."""
    values = np.sort(values[~np.isnan(values)])
    if len(values):
        share = np.arange(1, len(values) + 1) / len(values)
        ax.step(np.r_[values[0], values], np.r_[0.0, share], where="post", **options)


def _name_categories(ax: "Axes", clf: Any, j: int, seen: Array | None) -> None:
    """Categories are drawn at their codes."""
    if seen is None or not hasattr(clf, "categories_"):
        return
    values = clf.categories_[j]
    ax.set_xticks(range(len(values)), [str(v) for v in values])
