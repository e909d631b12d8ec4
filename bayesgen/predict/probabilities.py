"""From (model, X) to log p(class, x): the one path every prediction takes.

Three numbers that are not the same:

- ``"posterior_predictive"``: p(y | x, D), the parameters integrated out;
- ``"posterior_mean"``, ``"map"``, ``"mle"``: p(y | x, theta-hat), one theta plugged in;
- the mean over draws of p(y | x, theta), which no method here returns: it averages normalised
  probabilities, and weighs a theta under which x is absurd as much as one that explains it.

The first two are closed forms, or estimates from posterior draws where those are given.
"""

from typing import cast

import numpy as np

from bayesgen.families.errors import refuse_unknown
from bayesgen.families.names import METHODS, Method
from bayesgen.numerics import kernels
from bayesgen.numerics.special import Array, log_softmax


def check_method(method: str) -> Method:
    """`method` if it is one of `names.METHODS`, else an error that lists them."""
    refuse_unknown("method", method, METHODS)
    return cast(Method, method)


class ImpossibleRowError(ValueError):
    """Rows that have probability 0 under every class, so that p(y | x) is 0/0."""


def log_class_probability(joint: Array, method: Method, closed_form: bool = True) -> Array:
    """Normalise (N, C) log joint densities, in place; refuses rows that no class can produce.

    `closed_form`: whether the model has one, which is advised where draws fail.
    """
    if _log_softmax(joint):
        impossible = np.isneginf(joint).all(axis=1)
        rows = np.flatnonzero(impossible)
        if method == "posterior_predictive":  # estimated from draws: the closed form is positive
            why = "under every posterior draw"
            instead = "more draws may reach it, if it is a row of this kind of data"
            if closed_form:
                instead = "leave `posterior` out for the closed form"
        else:
            why = "what training did not show has likelihood 0"
            instead = "use method='posterior_predictive', or predict_joint_log_proba to see which"
        raise ImpossibleRowError(
            f"{len(rows)} row(s), the first at position {rows[0]}, have probability 0 under every "
            f"class by method={method!r}, so p(y | x) is 0/0 ({why}); {instead}"
        )
    return joint


def _log_softmax(joint: Array) -> int:
    """Normalise the rows in place; how many are -inf throughout, which stay so."""
    if kernels.pays(8 * joint.size, predicting=True):
        from bayesgen.numerics.kernels.softmax import log_softmax as compiled
        from bayesgen.numerics.kernels.threads import over_blocks

        def part(start: int, stop: int) -> int:
            return compiled(joint[start:stop])

        return sum(over_blocks(part, joint.shape[0], joint.shape[1], most=32))
    possible = ~np.isneginf(joint).all(axis=1)
    joint[possible] = log_softmax(joint[possible])
    return int((~possible).sum())
