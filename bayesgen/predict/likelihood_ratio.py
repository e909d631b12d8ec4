r"""Strength of evidence: the likelihood ratio of two classes, and what such ratios are worth.

.. math:: \text{LR}(x) = \frac{p(x \mid a, D)}{p(x \mid b, D)}, \qquad
          C_{llr} = \frac12 \Big[ \frac1{n_a} \sum_{i \in a} \log_2 (1 + 1 / \text{LR}_i)
                  + \frac1{n_b} \sum_{i \in b} \log_2 (1 + \text{LR}_i) \Big]

No class weights enter. The cost :math:`C_{llr}` is over training rows, each without itself: 0 is
perfect, 1 as good as LR = 1 for every row, and more than 1 misleads. Its minimum over all
increasing functions of LR is what the ranks alone could reach; the rest is lost by calibration.
Source: Brümmer and du Preez (2006), Application-independent evaluation of speaker detection.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from bayesgen.datatree import tree
from bayesgen.families.names import BOUND, OBS
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.pooled import PooledPosterior
from bayesgen.predict.distribution import credible_intervals
from bayesgen.predict.leave_one_out import log_joint_without, log_weights_of, rows_of_fit
from bayesgen.predict.probabilities import log_proba
from bayesgen.predict.request import IntervalRequest

if TYPE_CHECKING:
    import xarray as xr

_LARGEST = 1e6  # nats, in place of an infinite ratio


def log_likelihood_ratio(
    fitted: Fitted, X: Any, a: Any, b: Any, request: IntervalRequest, training: Any = None
) -> "xr.Dataset":
    """Log LR of rows with its interval, and the cost of those of the training rows."""
    pair = fitted.codes_of([a, b])
    if pair[0] == pair[1]:
        raise ValueError(f"a and b are the same class, {a!r}: a ratio compares two")
    equal = np.isin(np.arange(len(fitted.classes)), pair) / 2
    if fitted.training.estimated:
        fitted.refuse_estimated_weights("log_likelihood_ratio")
    rows, own = fitted.read(X), fitted.posterior
    log_p = log_proba(fitted, rows, "posterior_predictive", equal)[:, pair]
    encoded = fitted.encoded_near(rows)
    joint = own.log_joint(encoded, "posterior_predictive", equal, "probability")
    found = credible_intervals(own, encoded, joint, request, equal, 0)
    ends = np.stack([found.log_odds_lower, found.log_odds_upper], axis=-1)[:, pair[0]]
    cost, least = _costs(fitted, pair, training)
    return tree.group(
        {
            "log_lr": ((OBS,), log_p[:, 0] - log_p[:, 1]),
            "interval": ((OBS, BOUND), ends),
            "cllr": ((), np.array(cost)),
            "cllr_min": ((), np.array(least)),
        },
        {BOUND: ["lower", "upper"]},
    ).assign_attrs(a=a, b=b, prob=request.prob)


def _costs(fitted: Fitted, pair: Array, training: Any) -> tuple[float, float]:
    """Cllr of the training rows of two classes, as they are and after the best increasing map."""
    rows = rows_of_fit(fitted, training)
    at = np.flatnonzero(np.isin(rows.codes, pair) & (rows.weight > 0))
    rows = type(rows)(rows.X[at], rows.codes[at], rows.weight[at])
    joint = log_joint_without(fitted, rows)
    if isinstance(fitted.posterior, PooledPosterior):
        joint = joint + fitted.posterior.shift(np.ones(len(fitted.classes)))
    else:
        joint = joint - log_weights_of(fitted, rows.codes, rows.weight)
    log_lr, is_a = joint[:, pair[0]] - joint[:, pair[1]], rows.codes == pair[0]
    of_class = [rows.weight[own].sum() for own in (~is_a, is_a)]
    share = rows.weight / np.where(is_a, of_class[1], of_class[0]) / 2
    finite = np.clip(log_lr, -_LARGEST, _LARGEST)
    p = IsotonicRegression().fit(finite, is_a, share).predict(finite)
    with np.errstate(divide="ignore"):
        least = -np.log(np.where(is_a, p, 1 - p))
    loss = np.logaddexp(0, np.where(is_a, -log_lr, log_lr))
    return float(share @ loss / np.log(2)), float(share @ least / np.log(2))
