"""Which words tell most of each class: `top_words`."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri, polygamma

from bayesgen.families.capabilities import BetaMargins
from bayesgen.families.names import CLASS
from bayesgen.numerics.special import Array, generator
from bayesgen.posterior.fitted import fitted_of

if TYPE_CHECKING:
    import xarray as xr

_DRAWS = 4000
_MORE = 5  # times as many words are drawn as are shown


def top_words(
    clf: Any, n: int = 20, *, prob: float | None = None, random_state: Any = 0
) -> "xr.Dataset":
    r"""Return the words, or other bits and counts, with the surest evidence for each class.

    Parameters
    ----------
    clf : fitted BernoulliNB or MultinomialNB, or a Pipeline that ends in one
        Names are those of the columns, or what the steps before it call them.
    n : int
        Number of words per class.
    prob : float in (0, 1), optional
        Posterior probability of the intervals; default ``az.rcParams["stats.ci_prob"]``.
    random_state : int or numpy.random.Generator
        Seed of the draws for the intervals.

    Returns
    -------
    xarray.Dataset
        (class, rank) ``word``; ``log_odds``, the posterior mean of
        :math:`\log \theta_{cj} - \log \sum_{d \ne c} \pi_d \theta_{dj} / \sum_{d \ne c} \pi_d`,
        what one occurrence adds to the log-odds of the class against the others, in nats;
        ``lower`` and ``upper``, the ends of its interval of equal tails; ``count``, rows (of
        `BernoulliNB`) or occurrences in the class, by weight. ``to_dataframe()`` is a tidy table.

    Raises
    ------
    TypeError
        If the classifier is another one.

    Notes
    -----
    Words are ranked by the lower end of the interval, so that a word seen twice does not come
    before one seen two hundred times. The class weights are at their posterior means.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X = [[3, 0, 1], [2, 0, 1], [0, 2, 1], [0, 3, 1]]
    >>> clf = bg.MultinomialNB().fit(X, ["spam", "spam", "ham", "ham"])
    >>> top_words(clf, n=1)["word"].to_series().to_dict()
    {('ham', 0): 'x1', ('spam', 0): 'x0'}
    """
    import xarray as xr

    names = None
    if hasattr(clf, "steps"):
        front, clf = clf[:-1], clf.steps[-1][1]
        names = list(front.get_feature_names_out()) if len(front) else None
    fitted = fitted_of(clf, "top_words")
    model, stats = fitted.closed_form.model, fitted.closed_form.stats
    words = model.family.capability(BetaMargins)
    if words is None:
        raise TypeError(
            "top_words takes a BernoulliNB or MultinomialNB, or a Pipeline that ends in one; got a "
            f"{type(clf).__name__}, for which explain(X) shows what features contribute"
        )
    if len(clf.classes_) < 2 or n < 1:
        raise ValueError("top_words needs two classes, and n of at least 1")
    if prob is None:
        from arviz_base import rcParams

        prob = rcParams["stats.ci_prob"]
    names = fitted.feature_names if names is None else names
    a, b, counts = words.beta_margins(stats.features)
    rng = generator(random_state)
    pi, tail = model.mean_weights(), (1 - prob) / 2
    columns: dict[str, list[Any]] = {k: [] for k in ("word", "log_odds", "lower", "upper", "count")}
    for c in range(len(a)):
        others = np.flatnonzero(np.arange(len(a)) != c)
        weights = pi[others] / pi[others].sum()
        near = _likely(a, b, c, others, weights, tail)[: _MORE * n]
        # every probability of a word is Beta on its own; those of different classes independent
        theta = rng.beta(a[:, near], b[:, near], size=(_DRAWS, len(a), len(near)))
        theta = np.maximum(theta, np.finfo(float).tiny)
        odds = np.log(theta[:, c]) - np.log(np.einsum("sdj,d->sj", theta[:, others], weights))
        low, high = np.quantile(odds, [tail, 1 - tail], axis=0)
        top = np.argsort(-low, kind="stable")[:n]
        columns["word"].append([names[j] for j in near[top]])
        columns["log_odds"].append(odds.mean(axis=0)[top])
        columns["lower"].append(low[top])
        columns["upper"].append(high[top])
        columns["count"].append(counts[c, near[top]])
    table = {k: ((CLASS, "rank"), np.array(v)) for k, v in columns.items()}
    shown = np.arange(len(columns["word"][0]))
    return xr.Dataset(table, {CLASS: clf.classes_, "rank": shown}, {"prob": prob, "unit": "nats"})


def _likely(a: Array, b: Array, c: int, others: Array, weights: Array, tail: float) -> Array:
    """Words by about the lower end of their interval: means less standard deviations."""
    mean = a / (a + b)
    variance = polygamma(1, a) - polygamma(1, a + b)  # of log theta
    share = mean[others] * weights[:, None]
    share = share / share.sum(axis=0)
    centre = np.log(mean[c]) - np.log((mean[others] * weights[:, None]).sum(axis=0))
    spread = np.sqrt(variance[c] + (np.square(share) * variance[others]).sum(axis=0))
    order: Array = np.argsort(-(centre + ndtri(tail) * spread), kind="stable")
    return order
