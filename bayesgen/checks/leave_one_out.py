"""Leave-one-out scores of a fit, and what they rest on."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.fitted import Fitted
from bayesgen.predict.leave_one_out import (
    TrainingRows,
    group_codes,
    log_joint_without,
    training_rows,
)

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData


def loo(
    fitted: Fitted,
    X: Any,
    y: Any,
    target: str = "label",
    sample_weight: Any = None,
    groups: Any = None,
    partial: bool = False,
) -> "tuple[ELPDData, Array, TrainingRows]":
    """The score; (n, C) log joint densities of the n rows that it scores; those rows.

    Arguments are those of `GenerativeClassifier.loo`.
    """
    if target not in ("label", "joint"):
        raise ValueError(f"target must be 'label' or 'joint', got {target!r}")
    if target == "joint":
        fitted.refuse_if_discriminative("target='joint'")
    own = fitted.posterior
    rows = training_rows(fitted, X, y, sample_weight, partial)
    at = rows.scored
    if not len(at):
        raise ValueError("no row has a label and a weight above 0: there is nothing to score")
    n_groups = k = None
    if groups is None:
        log_joint, k = own.log_joint_without(*rows)
    else:
        log_joint = log_joint_without(fitted, rows, groups)
        n_groups = len(np.unique(group_codes(groups, len(rows.codes))))
    nobody = np.full(len(at), -1)
    full, _ = own.log_joint_without(rows.X[at], nobody, rows.weight[at])
    log_joint = left_out = log_joint[at]
    if target == "label":
        full, left_out = log_softmax(full), log_softmax(left_out)
    own_class = np.arange(len(at)), rows.codes[at]
    from bayesgen.checks.loo import elpd

    scores = elpd(
        left_out[own_class],
        full[own_class],
        at,
        target,
        None if k is None else k[at],
        int(np.prod(own.shape)) if isinstance(own, DrawnPosterior) else 0,
        n_groups,
    )
    return scores, log_joint, TrainingRows(rows.X[at], rows.codes[at], rows.weight[at])
