r"""Does a feature depend on the class at all? Bayes factors, and prediction averaged over them.

Two models of a feature: each class has a parameter of its own, or one theta is common to all. Both
evidences are closed forms; their ratio is the Bayes factor. A feature that matters no longer gains
from the noise of C parameters, and one that does not costs nothing but its share of the prior.

Features that are independent given the class are judged one by one, and all 2^D structures are
averaged exactly by averaging each feature on its own,

.. math:: p(x_j \mid c, D) = r_j\, p(x_j \mid c, D, \text{own}) +
                             (1 - r_j)\, p(x_j \mid D, \text{common}),

r_j the posterior probability of dependence. Features that are not (words of one document,
correlated columns) depend on the class together or not at all.

Source: Wei, Visweswaran and Cooper (2011), The application of naive Bayes model averaging to
predict Alzheimer's disease from genome-wide data; Dash and Cooper (2002), Exact model averaging
with naive Bayesian classifiers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_expit

from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import BOUND, FEATURE
from bayesgen.families.shared.separate_columns import separate_columns
from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted, fitted_of
from bayesgen.posterior.model import ClassModel, ClassStats, log_weights
from bayesgen.predict.probabilities import check_method

if TYPE_CHECKING:
    import xarray as xr

_STRENGTHS = np.geomspace(1 / 30, 30, 13)  # of the prior, times its own


def feature_relevance(clf: Any, prior_odds: Any = 1.0) -> "xr.Dataset":
    """Posterior probability that each feature depends on the class.

    Parameters
    ----------
    clf : fitted classifier
    prior_odds : float, array (feature,) or {name: odds}, default 1.0
        Prior odds that a feature depends on the class, >= 0; inf takes it for granted. Of n
        features of which k are expected to matter, k/(n - k). A mapping leaves the others at 1.

    Returns
    -------
    xarray.Dataset
        (feature) ``log_bayes_factor``, the log of the evidence with a parameter for each class
        over that with one for all, in nats; ``log_bayes_factor_range`` (feature, bound), its
        ends over priors of 1/30 to 30 times the strength, infinite of a family that names no
        hyper-parameter in rows; ``probability`` of dependence, at the
        prior of the fit; ``unit``: features
        with the same number are judged together, with one Bayes factor and one probability.
        Token sequences are one unit, named "document".

    Raises
    ------
    ValueError
        If the prior differs between classes, or the odds are negative.

    See Also
    --------
    GenerativeClassifier.predict_proba : ``relevance="averaged"`` predicts with these.

    Notes
    -----
    Bayes factors depend on how wide the prior is, however many rows there are: a wider one (a
    smaller `kappa0` of `GaussianNB`) makes dependence less probable (Bartlett's paradox). So a
    feature tells nothing of the class only where the whole range is below 0. Over it the
    pseudo-counts of the prior (`kappa0` and `nu0`, `alpha` and `beta`, ...) are multiplied by one
    factor at a fixed centre and scale; its ends are the least and the largest at 13 factors. With
    ``prior="empirical"`` the hyper-parameters are those that suit dependence best.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X = [[1, 0], [1, 1], [1, 0], [1, 1], [0, 0], [0, 1], [0, 0], [0, 1]]
    >>> table = feature_relevance(bg.BernoulliNB().fit(X, list("aaaabbbb")))
    >>> table["probability"].values.round(2)
    array([0.96, 0.41])
    """
    import xarray as xr

    fitted = fitted_of(clf, "feature_relevance")
    own = fitted.closed_form
    (log_factors,), unit = log_bayes_factors([own.prior], own.stats)
    names = fitted.feature_names if unit is not None else ["document"]
    unit = np.zeros(1, dtype=int) if unit is None else unit
    log_odds = _log_odds(prior_odds, names)
    first = np.unique(unit, return_index=True)[1]
    apart = np.flatnonzero(log_odds[first][unit] != log_odds)
    if apart.size:
        together = [names[j] for j in np.flatnonzero(unit == unit[apart[0]])]
        raise ValueError(f"features {together} are judged together: give them the same prior odds")
    factors = log_factors[unit]
    ends = _over_strengths(own.prior, own.stats, log_factors)[unit]
    table = {
        "log_bayes_factor": ([FEATURE], factors),
        "log_bayes_factor_range": ([FEATURE, BOUND], ends),
        "probability": ([FEATURE], np.exp(log_expit(factors + log_odds))),
        "unit": ([FEATURE], unit),
    }
    out = xr.Dataset(table, {FEATURE: names, BOUND: ["lower", "upper"]})
    return out.assign_coords(prior_odds=(FEATURE, np.exp(log_odds)))


def _over_strengths(prior: ClassModel, stats: ClassStats, own: Array) -> Array:
    """(U, 2) least and largest log Bayes factors; infinite where no strength is known."""
    try:
        priors = [replace(prior, family=prior.family.with_strength(k)) for k in _STRENGTHS]
    except NotImplementedError:
        return np.broadcast_to([-np.inf, np.inf], (len(own), 2))
    found = np.vstack([own, log_bayes_factors(priors, stats)[0]])
    return np.stack([found.min(axis=0), found.max(axis=0)], axis=-1)


def _log_odds(prior_odds: Any, names: list[Any]) -> Array:
    """(D,) log prior odds."""
    if hasattr(prior_odds, "items"):
        given = dict(prior_odds.items())
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"prior_odds names {unknown[0]!r}, which is no feature")
        prior_odds = [given.get(name, 1.0) for name in names]
    try:
        odds = np.broadcast_to(np.asarray(prior_odds, dtype=np.float64), len(names))
    except (TypeError, ValueError):
        raise ValueError(
            f"prior_odds must be one number or one for each of the {len(names)} features, "
            f"got {prior_odds!r}"
        ) from None
    if not np.all(odds >= 0):
        raise ValueError(f"prior_odds must be >= 0, got {prior_odds!r}")
    with np.errstate(divide="ignore"):
        return np.log(odds)


def log_bayes_factors(
    priors: Sequence[ClassModel], stats: ClassStats
) -> tuple[Array, Array | None]:
    """(P, U) log Bayes factors of the units under each prior, and (D,) the unit of each column.

    None stands for the columns of a family that has none (token sequences).
    """
    factors: list[Array] = []
    unit: dict[int, int] = {}
    n = 0
    for blocks in zip(*(prior.family.blocks(stats.features) for prior in priors), strict=True):
        columns, family, own, *_ = blocks[0]
        pooled = own.pooled()
        each = np.stack(
            [_log_evidence(f, own) - _log_evidence(f.pooled(), pooled) for _, f, *_ in blocks]
        )
        width = _width(own)
        if width is None:
            return each, None
        where = np.arange(width) if isinstance(columns, slice) else np.asarray(columns)
        for k, j in enumerate(where):
            unit[int(j)] = n + (k if family.independent else 0)
        factors.append(each)
        n += each.shape[1]
    return np.concatenate(factors, axis=1), np.array([unit[j] for j in range(len(unit))])


def _log_evidence(family: ConjugateFamily, stats: Any) -> Array:
    """(U,) of each column, or of all where these are not independent."""
    if family.independent:
        return separate_columns(family).log_evidence_by_feature(stats)
    return np.array([family.log_evidence(stats)])


def _width(stats: Any) -> int | None:
    """Number of columns behind statistics."""
    for dims, value in stats.arrays().values():
        if FEATURE in dims:
            return int(value.shape[dims.index(FEATURE)])
    return None


# ------------------------------------------------------------------------------- prediction


def log_joint(
    fitted: Fitted, X: Any, method: str, class_prior: Any, posterior: Any, relevance: Any
) -> Array:
    """(N, C) log joint densities, averaged over which features depend on the class."""
    check_method(method)
    own, weights = fitted.closed_form, fitted.weights_of(class_prior)
    encoded = fitted.read(X).encoded
    if method != "posterior_predictive" or posterior is not None:
        raise ValueError(
            "relevance= averages the posterior predictive in closed form: leave "
            "`posterior` out, and method at 'posterior_predictive'"
        )
    if weights is None:
        weights = own.class_weights("posterior_predictive")
    log_x = log_predictive(own.prior, own.model, own.stats, encoded, relevance)
    return log_x + log_weights(weights)


def log_predictive(
    prior: ClassModel, model: ClassModel, stats: ClassStats, X: Matrix, relevance: Any
) -> Array:
    """(N, C) log p(x | c, D), averaged over which features depend on the class.

    Parameters
    ----------
    prior, model : ClassModel
        Prior and posterior.
    stats : ClassStats
    X : (N, D)
    relevance : "averaged" or Dataset of `feature_relevance`
        "averaged" is that of prior odds 1.
    """
    (log_factors,), unit = log_bayes_factors([prior], stats)
    log_odds = log_factors
    if not isinstance(relevance, str):
        log_odds = log_factors + _odds_of(relevance, len(unit) if unit is not None else 1, unit)
    elif relevance != "averaged":
        raise ValueError(
            f"relevance must be 'averaged', a Dataset of feature_relevance, or None, "
            f"got {relevance!r}"
        )
    out = np.zeros((X.shape[0], len(model.alpha)))
    at = 0
    posteriors = model.family.blocks()
    for (columns, family, own, *_), (_, posterior, *_) in zip(
        prior.family.blocks(stats.features), posteriors, strict=True
    ):
        common = family.pooled().update(own.pooled())
        x = X if isinstance(columns, slice) else X[:, columns]
        size = x.shape[1] if family.independent else 1
        l = log_odds[at : at + size]
        at += size
        if family.independent:
            _add_columns(out, posterior, common, x, l)
        else:
            out += _mixture(l, posterior.log_predictive(x), common.log_predictive(x))
    return out


def _mixture(l: Array, own: Array, common: Array) -> Array:
    """log of r p + (1 - r) q from logs, l = log r/(1 - r)."""
    return np.asarray(np.logaddexp(log_expit(l) + own, log_expit(-l) + common))


def _add_columns(
    out: Array, own: ConjugateFamily, common: ConjugateFamily, X: Matrix, l: Array
) -> None:
    """Add the mixtures of all observed cells to out (N, C), each column on its own."""
    one, classes = np.ones((1, 1, 1)), np.arange(out.shape[1])[:, None, None]
    shared, apart = separate_columns(common), separate_columns(own)
    for rows in row_blocks(*X.shape):
        x = dense_block(X, rows)
        i, j = np.nonzero(~np.isnan(x))
        values = x[i, j]
        log_q = shared.cell_cgf(values, j, classes[0], one)[0]
        for c, code in enumerate(classes):
            cells = _mixture(l[j], apart.cell_cgf(values, j, code, one)[0], log_q)
            out[rows, c] += np.bincount(i, cells, minlength=len(x))


def _odds_of(relevance: Any, n_features: int, unit: Array | None) -> Array:
    """(U,) log prior odds that a table was made with."""
    try:
        odds = np.asarray(relevance["prior_odds"].values, dtype=np.float64)
    except (KeyError, TypeError, AttributeError):
        raise TypeError(
            "relevance must be 'averaged' or the Dataset that feature_relevance returns, "
            f"got {type(relevance).__name__}"
        ) from None
    if odds.shape != (n_features,):
        raise ValueError(
            f"relevance is of {odds.size} features, but the classifier has {n_features}; use "
            "feature_relevance of this classifier"
        )
    with np.errstate(divide="ignore"):
        log_odds = np.log(odds)
    return log_odds if unit is None else log_odds[np.unique(unit, return_index=True)[1]]
