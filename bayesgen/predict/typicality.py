"""Whether new rows are like the training rows: ranks among their leave-one-out scores."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.names import CLASS, OBS
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import log_weights
from bayesgen.posterior.pooled import Member, log_class_weights
from bayesgen.predict.leave_one_out import rows_of_fit
from bayesgen.predict.left_out import LeftOut, MemberRanks, log_odds
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    from bayesgen.datatree.result_table import ResultTable


def typicality(fitted: Fitted, X, left_out: LeftOut | MemberRanks) -> "ResultTable":
    """Tail probabilities of rows among the training rows of each class, and among all."""
    of_class, overall = [], []
    with warnings.catch_warnings():  # a row whose density draws cannot tell ranks last or so
        warnings.simplefilter("ignore", MonteCarloWarning)
        for member, rows in fitted.parts(X):
            if member.posterior.model.generative:
                joint = log_joint(member, rows, quantity="density")
                of_class.append(joint - log_weights(member.posterior.class_weights()))
                overall.append(log_sum_exp(joint))
    table = tree.group(
        {
            "by_class": ((OBS, CLASS), left_out.typical_of_class(np.stack(of_class))),
            "overall": ((OBS,), left_out.typical_overall(np.stack(overall))),
        },
        {CLASS: fitted.classes},
    )
    return tree.result_table(table, "share of training rows that are no more typical", ["overall"])


def member_ranks(
    members: Sequence[Member], joints: list[Array], codes: Array, weight: Array
) -> MemberRanks | None:
    """From the members' log joint densities (N, C) of rows without themselves; None without any."""
    ranks, own_class = [], (np.arange(len(codes)), codes)
    for member, joint in zip(members, joints, strict=True):
        if member.fitted.posterior.model.generative:
            of_class = joint - log_class_weights(member.fitted.posterior, codes, weight)
            ranks.append(np.stack([of_class[own_class], log_sum_exp(joint)]))
    return MemberRanks(codes, weight, *np.stack(ranks, axis=1)) if ranks else None


def left_out_scores(fitted: Fitted, training=None, partial: bool = False) -> LeftOut:
    """Leave-one-out scores of the training rows: kept ones, or of the rows kept or given."""
    if training is None and fitted.training.scores is not None:
        return fitted.training.scores
    weighed = fitted.training.weighed
    if weighed is None or training is not None:
        rows = rows_of_fit(fitted, training, partial).only_scored()
        joint, _ = fitted.posterior.log_joint_without(*rows)
        _, codes, weight, _ = rows
    else:
        joint, codes, weight = weighed.joint, weighed.codes, weighed.row_weight
    if not fitted.posterior.model.generative:
        return of_labels(joint, codes, weight)
    own_class = np.arange(len(codes)), codes
    log_pi = (
        log_class_weights(fitted.posterior, codes, weight) if weighed is None else weighed.log_pi
    )
    of_class = (joint - log_pi)[own_class]
    label = log_odds(joint)[own_class]
    return LeftOut(codes, weight, of_class, log_sum_exp(joint), label).sorted()


def of_labels(joint: Array, codes: Array, weight: Array) -> LeftOut:
    """Scores of the labels alone, from (n, C) log joint densities without each row."""
    unknown = np.full(len(codes), np.nan)
    label = log_odds(joint)[np.arange(len(codes)), codes]
    return LeftOut(codes, weight, unknown, unknown, label).sorted()
