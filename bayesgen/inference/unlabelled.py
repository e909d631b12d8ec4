r"""Rows without a label, counted as much as the labelled rows bear out.

Each row without a label enters the statistics by its class probabilities, times one weight,

.. math:: S_\lambda = S_{\text{labelled}} + \lambda \sum_u \sum_c q_u(c)\, t(x_u, c), \qquad
          q_u(c) = p(c \mid x_u, S_\lambda),

found by five passes that start at the labelled rows (mean field); S is conjugate as any other.
Under a wrong model the weight of Bayes' rule, 1, lets many rows without a label define the classes
anew. Here the weight has a posterior, on a few values, by the labels alone,

.. math:: p(\lambda \mid y) \propto p(\lambda) \prod_i p(y_i \mid x_i, S_\lambda^{-i}),

in which the passes are repeated without row i: the others would have learnt its label. The fit has
the weight whose logarithm is the posterior mean.

Source: Nigam, McCallum, Thrun and Mitchell (2000), Text classification from labeled and unlabeled
documents using EM, section 5.3, for the weight.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from bayesgen.inference.chosen_priors import LabelledRows
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel, ClassStats, log_weights

WEIGHTS = (0.0, 0.01, 0.1, 1.0)
_LEAST = 1e-3  # stands for 0 in the mean of logarithms
_PASSES = 5
_FEW = 2  # labels of a class; where there are no more, half of the prior is on weight 0
_MOST_GROUPS = 60  # of labelled rows, left out in turn
_MOST_ENTRIES = 4000  # rows without a label times classes, in the passes that find the weight
_NEGLIGIBLE = 1e-12  # class probability
_NAMED = 5  # rows in a warning
_UNLIKELY = 0.01  # share of data sets in which rows are called unlike the labelled ones by chance


class Weighed(NamedTuple):
    """What rows without a label have added to a fit."""

    weight: float
    log_scores: Array  # (W,) of the labels under each of the weights tried
    joint: Array  # (n, C) log joint densities of labelled rows, each without its group
    log_pi: Array  # (n, C) the class weights in them
    codes: Array  # (n,)
    row_weight: Array  # (n,)
    unlike: Array  # positions of rows below all labelled ones, if these are too many for chance


def weighed(
    own: ExactPosterior, rows: LabelledRows, weights: tuple[float, ...] = WEIGHTS
) -> tuple[Weighed, ExactPosterior]:
    """Weigh the rows without a label (code -1); return how, and the posterior of all rows.

    Parameters
    ----------
    own : posterior of the labelled rows
    rows : LabelledRows
    weights : to be tried, ascending

    Notes
    -----
    Of more than 60 labelled rows 60 groups are left out in turn. Of many rows without a label at
    most 4000 over the number of classes, evenly spaced, find the weight, and count as all of them.
    """
    X, codes, w = rows
    assert w is not None, "each row has a weight"
    prior, n_classes = own.prior, len(own.prior.alpha)
    known, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    n_some = min(len(others), max(1, _MOST_ENTRIES // n_classes))
    some = others[np.linspace(0, len(others) - 1, n_some).astype(int)]
    few, w_few = X[some], w[some] * (w[others].sum() / w[some].sum())
    order = known[np.argsort(codes[known], kind="stable")]
    groups = [order[k::_MOST_GROUPS] for k in range(min(_MOST_GROUPS, len(order)))]

    def left_out(weight: float) -> tuple[Array, Array]:
        """(n, C) log joint densities, and class weights, of labelled rows without their groups."""
        joint, log_pi = np.empty((2, len(codes), n_classes))
        for group in groups:
            rest = np.setdiff1d(known, group)
            stats = prior.stats(X[rest], codes[rest], n_classes, w[rest])
            model = prior.update(_passed(prior, stats, few, weight * w_few))
            log_pi[group] = log_weights(model.mean_weights())
            joint[group] = model.family.log_predictive(X[group]) + log_pi[group]
        return joint[known], log_pi[known]

    def labels(joint: Array) -> float:
        log_p = log_softmax(joint)[np.arange(len(known)), codes[known]]
        return float(w[known] @ log_p)

    if not prior.generative:  # which learns nothing from x alone
        joint, _ = own.log_joint_without(X[known], codes[known], w[known])
        zero = Weighed(0.0, np.zeros(1), joint, np.zeros_like(joint), codes[known], w[known], some[:0])
        return zero, own
    tried = [left_out(weight) for weight in weights]
    scores = np.array([labels(joint) for joint, _ in tried])
    weight = averaged(scores, weights, int(np.bincount(codes[known]).min()))
    joint, log_pi = tried[weights.index(weight)] if weight in weights else left_out(weight)
    least = log_sum_exp(tried[0][0]).min() if weights[0] == 0 else -np.inf
    below = others[log_sum_exp(own.log_joint(X[others])) < least]
    n, m = len(known), len(others)  # of n + m rows in any order, the lowest are all without labels
    by_chance = np.exp(betaln(n + m - len(below) + 1, m + 1) - betaln(n + m + 1, m - len(below) + 1))
    unlike = below if by_chance < _UNLIKELY else below[:0]
    stats = _passed(prior, own.stats, X[others], weight * w[others])
    found = Weighed(weight, scores, joint, log_pi, codes[known], w[known], unlike)
    return found, ExactPosterior(prior, prior.update(stats), stats)


def unlike_labelled(at: Array) -> str:
    """What to say of rows that are less probable than every labelled row."""
    some = ", ".join(map(str, at[:_NAMED])) + (", ..." if len(at) > _NAMED else "")
    return (
        f"{len(at)} rows without a label are less probable than every labelled row, more than "
        f"chance explains (rows {some}): they may be of a class that no label names"
    )


def averaged(scores: Array, weights: tuple[float, ...], fewest: int) -> float:
    """The weight at the posterior mean of the logarithm; 0 where the posterior is on it alone."""
    log_p = np.array(scores)
    if fewest <= _FEW:
        log_p[0] += np.log(max(1, len(weights) - 1))
    log_weight = np.exp(log_softmax(log_p[None])[0]) @ np.log(np.maximum(weights, _LEAST))
    out = float(np.exp(log_weight))
    return out if len(weights) > 1 else weights[0]


def _passed(prior: ClassModel, known: ClassStats, X: Matrix, weight: Array) -> ClassStats:
    """Statistics of labelled rows and of rows X that enter by their class probabilities."""
    out = known
    for _ in range(_PASSES if weight.any() else 0):
        model = prior.update(out)
        q = np.exp(log_softmax(model.family.log_predictive(X) + log_weights(model.mean_weights())))
        row, code = np.nonzero(q > _NEGLIGIBLE)
        mass = q[row, code] * weight[row]
        out = known.merge(prior.stats(X[row], code, len(known.count), mass))
    return out
