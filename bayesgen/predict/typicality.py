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
from bayesgen.predict.leave_one_out import log_weights_of, rows_of_fit
from bayesgen.predict.left_out import LeftOut, log_odds
from bayesgen.predict.probabilities import log_joint

if TYPE_CHECKING:
    import xarray as xr


def typicality(fitted: Fitted, X: Any, left_out: LeftOut) -> "xr.Dataset":
    """Tail probabilities of rows among the training rows of each class, and among all."""
    with warnings.catch_warnings():  # a row whose density draws cannot tell ranks last or so
        warnings.simplefilter("ignore", MonteCarloWarning)
        joint = log_joint(fitted, X, quantity="density")
    log_x = joint - log_weights(fitted.posterior.class_weights())
    return tree.group(
        {
            "by_class": ((OBS, CLASS), left_out.typical_of_class(log_x)),
            "overall": ((OBS,), left_out.typical_overall(log_sum_exp(joint))),
        },
        {CLASS: fitted.classes},
    )


def left_out_scores(fitted: Fitted, training: Any = None, partial: bool = False) -> LeftOut:
    """Leave-one-out scores of the training rows: kept ones, or of the rows kept or given."""
    if training is None and fitted.training.scores is not None:
        return fitted.training.scores
    rows = rows_of_fit(fitted, training, partial)
    at = rows.scored
    if not len(at):
        raise ValueError("no training row has a label and a weight above 0")
    codes, weight = rows.codes[at], rows.weight[at]
    joint, _ = fitted.posterior.log_joint_without(rows.X[at], codes, weight)
    own_class = np.arange(len(at)), codes
    unknown = np.full(len(at), np.nan)
    generative = fitted.posterior.model.generative
    return LeftOut(
        codes,
        weight,
        (joint - log_weights_of(fitted, codes, weight))[own_class] if generative else unknown,
        log_sum_exp(joint) if generative else unknown,
        log_odds(joint)[own_class],
    ).sorted()
