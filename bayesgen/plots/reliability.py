"""Reliability diagram: whether what is said with 80 % happens in 80 %, and how sure that is."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from bayesgen.families.names import Method
from bayesgen.numerics.special import Array
from bayesgen.plots.style import HAIR, MUTED, canvas, colour, percent, refuse_other_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Bins(NamedTuple):
    """Rows with about the same predicted probability."""

    predicted: Array  # mean of their probabilities
    observed: Array  # share in which it happened
    lower: Array  # of the interval of that share
    upper: Array
    size: Array


def reliability(p: Array, hit: Array, bins: int, prob: float) -> Bins:
    """Bins of equally many rows, from p (N,) and whether it happened (N,) bool.

    The interval is Jeffreys': equal tails of Beta(k + 1/2, n - k + 1/2), but 0 where k is 0 and 1
    where it is n (Brown, Cai and DasGupta, 2001). Equal probabilities share a bin.
    """
    order = np.argsort(p, kind="stable")
    cuts = np.unique(p[order[np.linspace(0, len(p), bins + 1).astype(int)[1:-1]]])
    place = np.searchsorted(cuts, p, side="right")
    count = np.bincount(place, minlength=len(cuts) + 1)
    k = np.bincount(place, weights=hit, minlength=len(count))[count > 0]
    total = np.bincount(place, weights=p, minlength=len(count))[count > 0]
    n = count[count > 0]
    tail = (1 - prob) / 2
    lower = np.where(k == 0, 0.0, stats.beta.ppf(tail, k + 0.5, n - k + 0.5))
    upper = np.where(k == n, 1.0, stats.beta.ppf(1 - tail, k + 0.5, n - k + 0.5))
    return Bins(total / n, k / n, lower, upper, n)


def plot_reliability(
    clf: Any,
    X: Any,
    y: Any,
    label: Any = None,
    *,
    method: Method = "posterior_predictive",
    bins: int = 10,
    prob: float | None = None,
    class_prior: Any = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Observed frequency against predicted probability on held-out rows.

    Parameters
    ----------
    clf : fitted classifier
    X, y : (N, D), (N,)
        Rows that the classifier was not fitted to, and their labels.
    label : label, optional
        Whose probability. Default: of two classes the second; of more, the most probable class of
        each row, whichever it is.
    method, class_prior
        As in ``clf.predict_proba``.
    bins : int
        Of equally many rows.
    prob : float in (0, 1), optional
        Of the Jeffreys intervals of the frequencies; default ``az.rcParams["stats.ci_prob"]``. A
        calibrated classifier's bars miss the diagonal in a share 1 - prob of the bins.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    from bayesgen.predict.interval.request import IntervalRequest

    prob = IntervalRequest.of(prob).prob
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins must be an integer >= 1, got {bins!r}")
    p = clf.predict_proba(X, method=method, class_prior=class_prior)
    refuse_other_labels(clf, y, len(p))
    codes = clf._codes_of(np.asarray(y))
    if label is None and len(clf.classes_) != 2:
        k, top = 0, p.argmax(axis=1)
        said, hit = p.max(axis=1), codes == top
        what = "the most probable class"
    else:
        k = 1 if label is None else int(clf._codes_of(label))
        said, hit = p[:, k], codes == k
        what = str(clf.classes_[k])
    found = reliability(said, hit, bins, prob)
    with canvas(ax, (4.9, 4.7)) as ax:
        ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=0)
        ax.text(0.3, 0.285, "calibrated", color=MUTED, rotation=45, ha="center", va="top", size=8)
        ax.vlines(found.predicted, found.lower, found.upper, color=colour(k), lw=2.2, alpha=0.5)
        ax.plot(found.predicted, found.observed, "o", color=colour(k), ms=5.5, mec="white", mew=0.7)
        rug = ax.get_xaxis_transform()  # heights as shares of the axes
        ax.vlines(said, 0, 0.025, color=MUTED, lw=0.5, alpha=0.5, transform=rug)
        ax.grid(color=HAIR, lw=0.5)
        ax.set_axisbelow(True)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xlabel(f"predicted probability of {what}")
        ax.set_ylabel(f"observed frequency, {percent(prob)} interval")
        size = f"{found.size.min()}" if np.ptp(found.size) == 0 else _span(found.size)
        ax.set_title(f"{len(p)} rows, {size} a point")
    return ax


def _span(count: Array) -> str:
    return f"{count.min()} to {count.max()}"
