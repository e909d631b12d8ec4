r"""Rows without a label, with the weight that the labelled rows support.

Each row without a label enters the statistics by its class probabilities, times one weight,

.. math:: S_\lambda = S_{\text{labelled}} + \lambda \sum_u \sum_c q_u(c)\, t(x_u, c), \qquad
          q_u(c) = p(c \mid x_u, S_\lambda),

found by five passes that start at the labelled rows (mean field); the posterior given S is
conjugate. Under a wrong model the weight of Bayes' rule, 1, lets many rows without a label redefine
the classes. Here the weight has a posterior, on four values, given the labels alone,

.. math:: p(\lambda \mid y) \propto p(\lambda) \prod_i p(y_i \mid x_i, S_\lambda^{-i}), \qquad
          p(y \mid x) = \sum_\lambda p(\lambda \mid y)\, p(y \mid x, S_\lambda),

in which the passes are repeated without row i, because they would have learnt its label. The prior
probability of weight 0 is three quarters, for models that are too sure of a few labels. The average
has less log loss than any single weight: ``tests/benchmarks/unlabelled.py``. Where rows without a
label change the encoding (vocabulary, categories, bins), the fit to the labelled rows in an
encoding of their own takes the place of this average if it foretells the labels better.

Source: Nigam, McCallum, Thrun and Mitchell (2000), Text classification from labeled and unlabeled
documents using EM, section 5.3, for the weight.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.exact import ExactPosterior, averaged
from bayesgen.posterior.fitted import LabelledRows
from bayesgen.posterior.model import (
    ClassModel,
    ClassStats,
    log_weights,
    log_weights_without,
)

WEIGHTS = (0.0, 0.01, 0.1, 1.0)
_ALONE = 0.75  # prior probability of weight 0
_PASSES = 5
_MOST_GROUPS = 60  # of labelled rows, left out in turn
_MOST_ENTRIES = 4000  # rows without a label times classes, in the passes that find the weight
_NEGLIGIBLE = 1e-12  # class probability
_NAMED = 5  # rows in a warning
_UNLIKELY = 0.01  # share of data sets in which rows are called unlike the labelled ones by chance


class Weighed(NamedTuple):
    """Contribution of rows without a label to a fit."""

    weight: float  # posterior mean
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
    With more than 60 labelled rows, 60 groups are left out in turn. With many rows without a label,
    at most 4000 over the number of classes, evenly spaced, find the weight and count as all.
    """
    X, codes, w, _ = rows
    prior, n_classes = own.prior, len(own.prior.alpha)
    with_label, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    if not prior.generative:  # rows without a label say nothing
        return labelled_alone(own, rows.at(with_label)), own
    n_some = min(len(others), max(1, _MOST_ENTRIES // n_classes))
    some = others[np.linspace(0, len(others) - 1, n_some).astype(int)]
    few, w_few = X[some], w[some] * (w[others].sum() / w[some].sum())
    order = with_label[np.argsort(codes[with_label], kind="stable")]
    groups = [order[k::_MOST_GROUPS] for k in range(min(_MOST_GROUPS, len(order)))]

    joint, log_pi = np.empty((2, len(weights), len(codes), n_classes))
    for group in groups:
        others_with_label = np.setdiff1d(with_label, group)
        stats = prior.stats(
            X[others_with_label], codes[others_with_label], n_classes, w[others_with_label]
        )
        for k, weight in enumerate(weights):
            model = _passed(prior, stats, few, weight * w_few).model
            log_pi[k, group] = log_weights(model.mean_weights())
            joint[k, group] = model.family.log_predictive(X[group]) + log_pi[k, group]
    joint, log_pi = joint[:, with_label], log_pi[:, with_label]
    scores = log_softmax(joint)[:, np.arange(len(with_label)), codes[with_label]] @ w[with_label]
    mass = np.exp(log_softmax((scores + _log_prior(weights))[None])[0])
    parts = [_passed(prior, own.stats, X[others], lam * w[others]) for lam in weights]
    if len(parts) > 1:
        posterior = ExactPosterior(
            prior, own.model, own.stats, tuple(zip(mass.tolist(), parts, strict=True))
        )
        stats = _with(
            prior, own.stats, X[others], mass @ weights * w[others], posterior.log_joint(X[others])
        )
        posterior = replace(posterior, model=prior.update(stats), stats=stats)
    else:
        posterior = parts[0]
    unlike = others[:0] if weights[0] else _unlike(own, joint[0], X[others], others)
    joint, log_pi = averaged(mass, joint), np.log(np.tensordot(mass, np.exp(log_pi), 1))
    of_known = codes[with_label], w[with_label]
    return Weighed(float(mass @ weights), scores, joint, log_pi, *of_known, unlike), posterior


def labelled_alone(own: ExactPosterior, rows: LabelledRows) -> Weighed:
    """Scores of labelled rows, each left out, where no other row counts."""
    X, codes, w, _ = rows
    joint, _ = own.without_each(X, codes, w)
    log_pi = np.zeros_like(joint)
    if own.prior.generative:
        log_pi = log_weights_without(own.prior.alpha, own.stats.count, codes, w)
    score = log_softmax(joint)[np.arange(len(codes)), codes] @ w
    return Weighed(0.0, np.array([score]), joint, log_pi, codes, w, np.zeros(0, dtype=np.int64))


def better_alone(alone: Weighed, found: Weighed) -> bool:
    """Ask whether labels are better foretold by labelled rows in an encoding of their own.

    A vocabulary, categories or bins of all rows change the model even where they weigh nothing, and
    cannot be averaged with another: the more probable of the two is taken.
    """
    log_prior = _log_prior(WEIGHTS)
    others = log_sum_exp((found.log_scores + log_prior)[None, 1:])[0]
    return bool(alone.log_scores[0] + log_prior[0] >= others)


def _log_prior(weights: tuple[float, ...]) -> Array:
    mass = [(1 - _ALONE) / max(1, len(weights) - 1) if lam else _ALONE for lam in weights]
    return np.log(mass)


def _unlike(own: ExactPosterior, joint: Array, X: Matrix, at: Array) -> Array:
    """Return positions of rows X less probable than all labelled ones, unless by chance."""
    log_x = log_sum_exp(own.log_joint(X))
    order = np.argsort(log_x, kind="stable")
    below = at[order[log_x[order] < log_sum_exp(joint).min()]]
    n, m, k = len(joint), len(at), len(below)
    # of n + m rows in any order, that the last k have no label
    by_chance = gammaln([m + 1, n + m - k + 1]).sum() - gammaln([m - k + 1, n + m + 1]).sum()
    return below if by_chance < np.log(_UNLIKELY) else below[:0]


def unlike_labelled(at: Array) -> str:
    """Return the warning about rows that are less probable than every labelled row."""
    some = ", ".join(map(str, at[:_NAMED])) + (", ..." if len(at) > _NAMED else "")
    return (
        f"{len(at)} rows without a label are less probable than every labelled row, more than "
        f"chance explains (lowest: rows {some}): they may be of a class that no label names"
    )


def _passed(prior: ClassModel, known: ClassStats, X: Matrix, weight: Array) -> ExactPosterior:
    """Return the posterior of labelled rows and rows X, counted by their class probabilities."""
    posterior = ExactPosterior(prior, prior.update(known), known)
    for _ in range(_PASSES if weight.any() else 0):
        stats = _with(prior, known, X, weight, posterior.log_joint(X))
        posterior = ExactPosterior(prior, prior.update(stats), stats)
    return posterior


def _with(
    prior: ClassModel, known: ClassStats, X: Matrix, weight: Array, log_joint: Array
) -> ClassStats:
    """Add the statistics of rows X with these weights and log joint densities."""
    q = np.exp(log_softmax(log_joint))
    row, code = np.nonzero(q > _NEGLIGIBLE)
    return known.merge(prior.stats(X[row], code, len(known.count), q[row, code] * weight[row]))
