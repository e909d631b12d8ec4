r"""Predict scores on rows whose labels are unknown.

Predictions of n rows are fixed, their labels are not. Row i has the score :math:`s_i(y_i)`, to be
expected as :math:`e_i = \sum_c p_{ic} s_i(c)`. A model that leaves out dependence expects
too good a score, so two quantities come from exact leave-one-out of the N training rows: p are the
model's probabilities raised to an exponent that makes the labels most probable; and the residuals
:math:`r_j = s_j(y_j) - e_j` of the training rows correct the remaining mean error,

.. math:: S = \frac1n \sum_i e_i + \sum_j w_j r_j + \frac1n \sum_i (s_i(y_i) - e_i), \qquad
          w \sim \text{Dirichlet}(1, \dots, 1), \quad y_i \sim p_i

The second term is the uncertainty of the mean score given N rows, by the Bayesian bootstrap of
residuals; the third is chance. Residuals should have the variance that p expects. If they have
more, chance is scaled up by the ratio; if they have less, the bootstrap is (100 rows without an
error are not a proof).
Under other class weights rows of class c count by the ratio of these, which multiplies p too.

Sources: Rubin (1981), The Bayesian bootstrap; Angelopoulos et al. (2023), Prediction-powered
inference, for residuals of labelled rows added to predictions of others.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import _num_samples

from bayesgen.checks.label_errors import ScoredRows, scored_rows
from bayesgen.datatree import tree
from bayesgen.encoding.labels import weights_by_class
from bayesgen.errors import refuse_below
from bayesgen.families.names import BOUND
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.fitted import fitted_of, through_pipelines
from bayesgen.posterior.pooled import comparable
from bayesgen.predict.request import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr

SCORE = "score"
SCORES = ("log_loss", "accuracy", "brier")

_TRAINING_ROWS = 4000  # whose residuals are looked at
_DRAWN_ROWS = 2000  # from which on chance is Normal
_CELLS = 1 << 24  # rows x classes x draws of class weights


@through_pipelines
def expected_score(
    clf: Any,
    X: Any,
    *,
    class_prior: Any = None,
    training: Any = None,
    prob: float | None = None,
    draws: int = 1000,
    random_state: int = 0,
) -> "xr.Dataset":
    """Predict log loss, accuracy and Brier score on rows without labels.

    Parameters
    ----------
    clf : fitted classifier or pool
    X : (n, D)
        Rows drawn like the training rows, except for the class frequencies.
    class_prior : array (class,), {label: weight} or DataTree, optional
        Class weights of the population that X comes from, for predictions and labels alike; or the
        result of `estimate_class_prior`: predictions use the mean, labels each of its draws.
    training : (X, y) or (X, y, sample_weight), optional
        The rows of the fit. Default: the rows that `fit` has kept, up to 64 MiB. Pools, and
        classifiers that were loaded or copied, have not kept any.
    prob : float in (0, 1), optional
        Probability of the interval; default ``az.rcParams["stats.ci_prob"]``.
    draws, random_state : int
        Number of draws of the bootstrap, and its seed.

    Returns
    -------
    xarray.Dataset
        (score) ``mean``; ``interval`` (score, bound), which holds the score that the labels would
        give with probability `prob`; ``sd_parameters``, the standard deviation of the mean score
        given the training rows; ``sd_chance``, that from the labels of these n rows; ``sd`` of
        both. Attributes: ``rows``, ``exponent``.

    Raises
    ------
    ValueError
        If there are no rows, or the training rows are not known or not those of the fit.

    Notes
    -----
    The result does not hold for rows unlike the training rows: `typicality` finds them. Coverage of
    the intervals on open tables: ``tests/benchmarks/expected_score.py``.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = bg.datasets.load_penguins()
    >>> test = X.index % 3 == 2
    >>> clf = bg.MixedNB().fit(X[~test], y[~test])
    >>> found = bg.expected_score(clf, X[test], prob=0.9)
    >>> found["interval"].sel(score="accuracy").values.round(2)
    array([0.96, 1.  ])
    >>> round(float(clf.score(X[test], y[test])), 2)
    0.98
    """
    fitted = fitted_of(clf, "expected_score", pools=True)
    request, n = IntervalRequest.of(prob), _num_samples(X)
    if not n:
        raise ValueError("X has no rows: there is no score to expect")
    refuse_below(2, draws=draws)
    rng = generator(random_state)
    rows = _training(clf, fitted.training.rows if training is None else training, rng)
    new = comparable(clf.predict_log_proba(X))
    weights = _class_weights(class_prior, clf.classes_)
    mean = weights.mean(axis=0)
    if class_prior is None:
        given, ratio = clf.predict_log_proba(X), np.zeros(len(mean))
    else:
        given = clf.predict_log_proba(X, class_prior=mean)
        at = np.argmax(new.min(axis=1))
        ratio = given[at] - new[at]  # log of new to old weights, up to a constant
    most = int(np.clip(_CELLS // new.size, 1, min(draws, len(weights))))
    weights = weights[rng.permutation(len(weights))[:most]]
    exponent = _exponent(rows)
    scores = _scores(log_softmax(rows.scores + ratio)), _scores(given)
    found, parts = np.empty((draws, 3)), np.empty((draws, 3))
    for k, own in enumerate(weights):
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio = np.nan_to_num(ratio + np.log(own) - np.log(mean), nan=-np.inf)
        p_old, p_new = (log_softmax(exponent * each + log_ratio) for each in (rows.scores, new))
        e_old, v_old = _expected(p_old, scores[0])
        e_new, v_new = _expected(p_new, scores[1])
        residual = scores[0][:, np.arange(len(rows.codes)), rows.codes].T - e_old
        some = np.arange(k, draws, len(weights))
        w = rng.standard_gamma(rows.weight, (len(some), len(rows.weight)))
        w *= np.exp(log_ratio - log_ratio.max())[rows.codes]
        w /= w.sum(axis=1, keepdims=True)
        mean_of = rows.weight * np.exp(log_ratio - log_ratio.max())[rows.codes]
        mean_of /= mean_of.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.nan_to_num(mean_of @ np.square(residual) / (mean_of @ v_old), nan=1.0)
        open_ = w @ residual - mean_of @ residual
        with np.errstate(divide="ignore"):
            open_ *= np.sqrt(np.minimum(np.maximum(1 / more, 1), len(residual)))
        parts[some] = e_new.mean(axis=0) + mean_of @ residual + open_
        chance = _chance(rng, np.exp(p_new), scores[1], e_new, v_new, len(some))
        found[some] = parts[some] + np.sqrt(np.clip(more, 1, n)) * chance
    low, high = np.array([0, 0, 0.0]), np.array([np.inf, 1, 2.0])
    ends = np.clip(request.ends_of_draws(found.T), low, high)
    variables = {
        "mean": ((SCORE,), np.clip(parts.mean(axis=0), low, high)),
        "sd": ((SCORE,), found.std(axis=0)),
        "sd_parameters": ((SCORE,), parts.std(axis=0)),
        "sd_chance": ((SCORE,), (found - parts).std(axis=0)),
        "interval": ((SCORE, BOUND), ends.T),
    }
    found_of = tree.group(variables, {SCORE: list(SCORES), BOUND: ["lower", "upper"]})
    return found_of.assign_attrs(rows=n, exponent=exponent, prob=request.prob)


def _training(clf: Any, kept: Any, rng: np.random.Generator) -> ScoredRows:
    """The rows of the fit, or some of them, each scored without itself."""
    if kept is None:
        raise ValueError(
            "expected_score looks at leave-one-out of the training rows, which are not kept here: "
            "give training=(X, y) or (X, y, sample_weight)"
        )
    X, y, weight = [*kept, None][:3]
    rows = scored_rows(clf, X, y, weight, "expected_score")
    if len(rows.codes) > _TRAINING_ROWS:
        at = rng.choice(len(rows.codes), _TRAINING_ROWS, replace=False)
        rows = ScoredRows(rows.scores[at], rows.codes[at], rows.weight[at], rows.at[at], None)
    return rows


def _exponent(rows: ScoredRows) -> float:
    """Power of the leave-one-out probabilities that makes the labels most probable."""
    own = np.arange(len(rows.codes)), rows.codes

    def loss(u: float) -> float:
        log_p = log_softmax(np.exp(u) * rows.scores)[own]
        return float(u**2 / 2 - rows.weight @ log_p)

    return float(np.exp(minimize_scalar(loss, bounds=(-7, 3), method="bounded").x))


def _scores(log_p: Array) -> Array:
    """(score, n, C) log loss, accuracy and Brier score of each row if its label is c."""
    p = np.exp(log_p)
    right = np.eye(log_p.shape[1])[log_p.argmax(axis=1)]
    brier = np.square(p).sum(axis=1, keepdims=True) - 2 * p + 1
    return np.stack([-log_p, right, brier])


def _expected(log_p: Array, scores: Array) -> tuple[Array, Array]:
    """(n, score) mean and variance of the scores of rows."""
    p = np.exp(log_p)
    finite = np.where(p > 0, scores, 0.0)
    mean = np.einsum("nc,knc->nk", p, finite)
    return mean, np.einsum("nc,knc->nk", p, np.square(finite)) - np.square(mean)


def _chance(
    rng: np.random.Generator, p: Array, scores: Array, mean: Array, variance: Array, draws: int
) -> Array:
    """(draw, score) mean scores of labels drawn from p (n, C), less what they are expected to be.

    Of many rows Normal.
    """
    n, n_classes = p.shape
    if n > _DRAWN_ROWS:
        noise: Array = rng.standard_normal((draws, 3)) * np.sqrt(variance.sum(axis=0)) / n
        return noise
    below, rows = p.cumsum(axis=1), np.arange(n)
    out = np.empty((draws, 3))
    for k in range(draws):
        codes = (below < rng.random((n, 1))).sum(axis=1)
        drawn = scores[:, rows, np.minimum(codes, n_classes - 1)].T
        out[k] = np.mean(drawn - mean, axis=0)
    return out


def _class_weights(given: Any, classes: Array) -> Array:
    """(draw, C) class weights; 1 where they are those of the fit."""
    if given is None:
        return np.ones((1, len(classes)))
    if "posterior" in getattr(given, "children", ()):
        drawn = given["posterior"]["class_prior"].sel({"class": classes})
        out: Array = drawn.values.reshape(-1, len(classes))
        return out
    return weights_by_class(given, classes)[None]
