r"""New rows against training rows that were left out one at a time.

Leave-one-out scores of the training rows are nearly what new rows like them would have. So the
rank of a new row's density among them is a tail probability,

.. math:: t_c(x) = \frac{1 + \sum_{i: y_i = c} w_i \, [\, s_i \le s \,]}{1 + \sum_{i: y_i = c} w_i},
          \quad s_i = \log p(x_i \mid c, D_{-i}), \quad s = \log p(x \mid c, D),

and a quantile of the log-odds of their labels is the limit of a conformal prediction set.
Source: Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world, chapters 2 and 4;
Barber, Candès, Ramdas and Tibshirani (2021), Predictive inference with the jackknife+, section 1.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from bayesgen.datatree import tree
from bayesgen.families.names import CLASS, MEMBER, OBS
from bayesgen.families.records import Record, array
from bayesgen.numerics.special import Array, log_sum_of_others

if TYPE_CHECKING:
    from bayesgen.datatree.result_table import ResultTable


SCORED = "scored_row"  # dim: training rows with a label and a weight, in no order of theirs


@dataclass(frozen=True, eq=False)
class LeftOut(Record):
    """What a posterior, or each member of a pool, says of each training row without that row.

    Parameters
    ----------
    codes, weight : (n,) class codes, row weights
    label : (n,) log-odds of y_i given x_i and D without i
    of_class : (M, n) log p(x_i | y_i, D without i) by the M models with a density: one, those
        members of a pool, or none
    overall : (M, n) log p(x_i | D without i)
    """

    codes: Array = array(SCORED)
    weight: Array = array(SCORED)
    label: Array = array(SCORED)
    of_class: Array = array(MEMBER, SCORED)
    overall: Array = array(MEMBER, SCORED)

    def sorted(self) -> "LeftOut":
        """Sort by class and score, so that a file does not tell the order of the rows."""
        return self.at(SCORED, np.lexsort((self.label, *self.of_class[:1], self.codes)))

    def typical_of_class(self, log_x: Array) -> Array:
        """Return (N, C) tail probabilities of log p(x | y = c, D) (M, N, C); 1 without rows."""
        tails = np.ones(log_x.shape[1:])
        for c in np.unique(self.codes):
            of_class = self.codes == c
            tails[:, c] = _combined(
                log_x[:, :, c], self.of_class[:, of_class], self.weight[of_class]
            )
        return tails

    def typical_overall(self, log_x: Array) -> Array:
        """Return (N,) tail probabilities of log p(x | D) (M, N)."""
        return _combined(log_x, self.overall, self.weight)

    def least_log_odds(self, coverage: float, n_classes: int, by_class: bool) -> Array:
        """Return (C,) log-odds of a class from which on it belongs to the prediction set."""
        if not by_class:
            return np.full(n_classes, lower_limit(self.label, self.weight, coverage))
        every = [self.codes == c for c in range(n_classes)]
        return np.array([lower_limit(self.label[c], self.weight[c], coverage) for c in every])


def check_coverage(coverage) -> float:
    """It, if it is a number between 0 and 1."""
    value = np.asarray(coverage)
    if value.shape != () or value.dtype.kind not in "fiu" or not 0 < value < 1:
        raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}")
    return float(value)


def prediction_sets(
    left_out: LeftOut, joint: Array, classes: Array, coverage: float, by_class: bool
) -> "ResultTable":
    """Labels whose probability is at least what a share `coverage` of the training labels had.

    `joint` (N, C) are log joint densities of new rows, up to a term that the classes share.
    """
    least = left_out.least_log_odds(coverage, len(classes), bool(by_class))
    with np.errstate(invalid="ignore"):  # a row that no class can have made is in no set
        included = log_odds(joint) >= least
    sets = tree.group(
        {
            "included": ((OBS, CLASS), included),
            "size": ((OBS,), included.sum(axis=1)),
            "limit": ((CLASS,), special.expit(least)),
        },
        {CLASS: classes},
    )
    sets = sets.assign_attrs(coverage=coverage, by_class=int(by_class))
    title = f"sets of labels that hold the true one in {100 * coverage:g} % of rows"
    return tree.result_table(sets, title)


def log_odds(joint: Array) -> Array:
    """Return (..., C) log p_c / (1 - p_c) from log joint densities, exact near p = 1."""
    if joint.shape[-1] == 1:
        return np.full(joint.shape, np.inf)
    with np.errstate(invalid="ignore"):
        return joint - np.moveaxis(log_sum_of_others(np.moveaxis(joint, -1, 0)), 0, -1)


def tail_probability(score: Array, reference: Array, weight: Array) -> Array:
    """Return (N,) (1 + weight of references <= score) / (1 + weight of all)."""
    order = np.argsort(reference)
    below = np.append(0.0, np.cumsum(weight[order]))
    rank = np.searchsorted(reference[order], score, side="right")
    tail: Array = (1 + below[rank]) / (1 + below[-1])
    return np.where(np.isnan(score), np.nan, tail)


def lower_limit(score: Array, weight: Array, coverage: float) -> float:
    """Return the largest score that references reach with weight >= coverage (1 + weight of all).

    With weights of 1 the ceil((n + 1) coverage)-th largest of n; -inf if they are too few.
    """
    order = np.argsort(-score)
    reached = np.cumsum(weight[order])
    needed = coverage * (1 + weight.sum())
    enough = np.flatnonzero(reached >= needed * (1 - 1e-12))  # 0.7 * 10 is 7.000000000000001
    return float(score[order[enough[0]]]) if len(enough) else -np.inf


# ------------------------------------------------------------------------------------------------
# New rows against training rows that were left out one at a time, by several classifiers at once.
#
# Each member m of a pool finds a row improbable in its own way: t_m is the tail probability of its
# density among the leave-one-out densities of the training rows (`left_out`). Their harmonic mean
#
# .. math:: h(x) = M \Big/ \sum_m \frac{1}{t_m(x)}
#
# is small where one of them is, whatever the others say and however they depend on each other; its
# rank among those of the training rows, each without itself, is a tail probability again. Source:
# Wilson (2019), The harmonic mean p-value for combining dependent tests; the rank takes the place
# of its limit distribution.
#
# Shapes: N new rows, n training rows, C classes, M members.


def _combined(log_x: Array, left_out: Array, weight: Array) -> Array:
    """Return (N,) tail probabilities of M densities (M, N) together, from those of rows (M, n)."""
    new = [tail_probability(x, ranked, weight) for x, ranked in zip(log_x, left_out, strict=True)]
    if len(new) == 1:
        return new[0]
    ranked = [_without_itself(each, weight) for each in left_out]
    return tail_probability(_harmonic_mean(new), _harmonic_mean(ranked), weight)


def _without_itself(score: Array, weight: Array) -> Array:
    """Return (n,) `tail_probability` of rows among all others."""
    total = weight.sum()
    below = tail_probability(score, score, weight) * (1 + total)  # 1 and its own weight included
    tail: Array = (below - weight) / (1 + total - weight)
    return tail


def _harmonic_mean(tails: list[Array]) -> Array:
    mean: Array = len(tails) / np.sum(1 / np.array(tails), axis=0)
    return mean
