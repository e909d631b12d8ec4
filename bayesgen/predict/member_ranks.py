r"""New rows against training rows that were left out one at a time, by several classifiers at once.

Each member m of a pool finds a row improbable in its own way: t_m is the tail probability of its
density among the leave-one-out densities of the training rows (`left_out`). Their harmonic mean

.. math:: h(x) = M \Big/ \sum_m \frac{1}{t_m(x)}

is small where one of them is, whatever the others say and however they depend on each other; its
rank among those of the training rows, each without itself, is a tail probability again. Source:
Wilson (2019), The harmonic mean p-value for combining dependent tests; the rank takes the place of
its limit distribution.

Shapes: N new rows, n training rows, C classes, M members.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.families.names import MEMBER
from bayesgen.families.records import Record, array
from bayesgen.numerics.special import Array
from bayesgen.predict.left_out import SCORED, tail_probability


@dataclass(frozen=True, eq=False)
class MemberRanks(Record):
    """What each member with a density says of each training row without that row.

    Parameters
    ----------
    codes, weight : (n,) class codes, row weights
    of_class : (M, n) log p(x_i | y_i, D without i)
    overall : (M, n) log p(x_i | D without i)
    """

    codes: Array = array(SCORED)
    weight: Array = array(SCORED)
    of_class: Array = array(MEMBER, SCORED)
    overall: Array = array(MEMBER, SCORED)

    def refuse_invalid(self, n_members: int, n_classes: int) -> None:
        """Raise a ValueError for what came from a file and no training rows can have."""
        shape = n_members, len(self.codes)
        if not (
            self.codes.shape == self.weight.shape == shape[1:]
            and self.of_class.shape == self.overall.shape == shape
            and not np.isnan([self.of_class, self.overall]).any()
            and np.isin(self.codes, np.arange(n_classes)).all()
            and np.all((self.weight > 0) & (self.weight < np.inf))
        ):
            raise ValueError("the leave-one-out densities of the members are none")

    def typical_overall(self, log_x: Array) -> Array:
        """(N,) tail probabilities of log p(x | D) (M, N)."""
        return _combined(log_x, self.overall, self.weight)

    def typical_of_class(self, log_x: Array) -> Array:
        """(N, C) tail probabilities of log p(x | y = c, D) (M, N, C); 1 for one without rows."""
        out = np.ones(log_x.shape[1:])
        for c in np.unique(self.codes):
            own = self.codes == c
            out[:, c] = _combined(log_x[:, :, c], self.of_class[:, own], self.weight[own])
        return out


def _combined(log_x: Array, left_out: Array, weight: Array) -> Array:
    """(N,) tail probabilities of M densities (M, N) together, from those of rows (M, n)."""
    new = [tail_probability(x, known, weight) for x, known in zip(log_x, left_out, strict=True)]
    known = [_without_itself(each, weight) for each in left_out]
    return tail_probability(_harmonic_mean(new), _harmonic_mean(known), weight)


def _without_itself(score: Array, weight: Array) -> Array:
    """(n,) as `tail_probability`, of rows among all others."""
    total = weight.sum()
    below = tail_probability(score, score, weight) * (1 + total)  # 1 and its own weight included
    out: Array = (below - weight) / (1 + total - weight)
    return out


def _harmonic_mean(tails: list[Array]) -> Array:
    out: Array = len(tails) / np.sum(1 / np.array(tails), axis=0)
    return out
