"""Whether new rows are like the training rows: ranks among their leave-one-out scores."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.names import CLASS, OBS
from bayesgen.numerics.special import log_sum_exp
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import log_weights
from bayesgen.predict.leave_one_out import rows_of_fit
from bayesgen.predict.left_out import LeftOut, log_odds
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    from bayesgen.datatree.result_table import ResultTable


def typicality(fitted: Fitted, X, left_out: LeftOut) -> "ResultTable":
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


def left_out_scores(fitted: Fitted, training=None, partial: bool = False) -> LeftOut:
    """Leave-one-out scores of the training rows: kept ones, or of the rows kept or given."""
    if training is None and fitted.training.scores is not None:
        return fitted.training.scores
    posterior: Any = fitted.posterior
    weighed = fitted.training.weighed if training is None else None
    if weighed is not None:
        joint, codes, weight = weighed.joint, weighed.codes, weighed.row_weight
        models = [(posterior, joint)]
    elif posterior.members:
        scored = posterior.scored
        if training is not None or scored is None:
            scored = posterior.scores_without(*rows_of_fit(fitted, training, partial).only_scored())
        joint, _ = posterior.log_proba_without(scored)
        codes, weight = scored.codes, scored.weight
        members = [member.fitted.posterior for member in posterior.members]
        models = list(zip(members, scored.joints, strict=True))
    else:
        rows = rows_of_fit(fitted, training, partial).only_scored()
        joint, _ = posterior.without_each(*rows)
        _, codes, weight, _ = rows
        models = [(posterior, joint)]
    own_class, densities = (np.arange(len(codes)), codes), []
    for model, log_p in models:
        if model.model.generative:
            log_pi = weighed.log_pi if weighed else model.log_class_weights(codes, weight)
            densities.append(((log_p - log_pi)[own_class], log_sum_exp(log_p)))
    of_class, overall = np.reshape(densities, (-1, 2, len(codes))).swapaxes(0, 1)
    label = log_odds(joint)[own_class]
    return LeftOut(codes, weight, label, of_class, overall).sorted()
