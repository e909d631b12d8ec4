"""Which features speak of the class: mutual information, and words with the surest evidence.

Source of the information: Murphy (2012), section 3.5.4.
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri, polygamma

from bayesgen.errors import refuse_unknown
from bayesgen.families.capabilities import BetaMargins, FeatureInformation, require
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.numerics.special import Array, generator
from bayesgen.posterior.fitted import fitted_of

if TYPE_CHECKING:
    import xarray as xr

PlugIn = Literal["posterior_mean", "map", "mle"]


def mutual_information(
    clf: Any, method: PlugIn = "posterior_mean", *, unit: Literal["bits", "nats"] = "bits"
) -> "xr.DataArray":
    r"""Return the mutual information of each feature and the class.

    :math:`I(X_j; Y) = \sum_c \pi_c \, \text{KL}(p(x_j \mid \theta_{cj}) \,\|\, p(x_j))`, with
    0 log 0 = 0.

    Parameters
    ----------
    clf : fitted classifier
    method : {"posterior_mean", "map", "mle"}
        Estimate of theta and the class weights to plug in. I(E theta) is not E I(theta).
    unit : {"bits", "nats"}

    Returns
    -------
    xarray.DataArray
        Dim ``feature``. For `MultinomialNB` a word's share of the information that one token
        carries; for Gaussian features by quadrature; for correlated features each on its own.

    Raises
    ------
    ValueError
        If the estimate does not exist.
    MissingCapabilityError
        For a family whose features are not columns (token sequences). A NotImplementedError.

    Notes
    -----
    A feature that does not depend on the class has a positive information too, because few rows
    make classes look different: of maximum likelihood about (K - 1)(C - 1) / (2 N) nats for K
    values, C classes and N rows. A fit to permuted labels shows it.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
    >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
    >>> mutual_information(clf, "mle").values.round(6)
    array([0.113579, 0.113579])
    """
    import xarray as xr

    fitted = fitted_of(clf, "mutual_information")
    refuse_unknown("method", method, ("posterior_mean", "map", "mle"))
    refuse_unknown("unit", unit, ("bits", "nats"))
    posterior, names = fitted.closed_form, fitted.feature_names
    try:
        theta = posterior.estimate(method)
        weights = posterior.class_weights(method)
    except UndefinedEstimateError as error:
        raise error.renamed(fitted.classes, names) from None
    family = require(posterior.model.family, FeatureInformation, "mutual_information")
    nats = family.information(theta, weights)
    return xr.DataArray(
        nats / np.log(2) if unit == "bits" else nats,
        dims=[FEATURE],
        coords={FEATURE: names},
        name="mutual_information",
        attrs={"unit": unit, "method": method},
    )


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
