"""From (model, X) to log p(class, x): the one path every prediction takes.

Three numbers that are not the same:

- ``"posterior_predictive"``: p(y | x, D), the parameters integrated out;
- ``"posterior_mean"``, ``"map"``, ``"mle"``: p(y | x, theta-hat), one theta plugged in;
- the mean over draws of p(y | x, theta), which no method here returns: it averages normalised
  probabilities, and weighs a theta under which x is absurd as much as one that explains it.
"""

import numpy as np

from bayesgen.model import ClassModel, ClassStats, log_weights
from bayesgen.names import METHODS, Method
from bayesgen.numerics import Array, log_softmax
from bayesgen.rows import Matrix


def check_method(method: str) -> Method:
    """`method` if it is one of `names.METHODS`, else an error that lists them."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    return method


def log_joint(
    model: ClassModel,
    stats: ClassStats,
    X: Matrix,
    method: Method = "posterior_predictive",
    class_prior: Array | None = None,
) -> Array:
    """(N, C) log p(y = c, x_i), up to nothing: the densities are normalised.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    stats : ClassStats
        Behind the posterior; only ``"mle"`` reads them.
    X : (N, D)
    method : one of `names.METHODS`
    class_prior : (C,), optional
        Class weights that replace the fitted ones (label shift).
    """
    weights = model.class_weights(method, stats) if class_prior is None else class_prior
    if method == "posterior_predictive":
        log_x = model.family.log_predictive(X)
    else:
        theta = model.estimate(method, stats)
        log_x = model.family.for_plug_in(method).log_likelihood(X, theta)
    return log_x + log_weights(weights)


class ImpossibleRowError(ValueError):
    """Rows that have probability 0 under every class, so that p(y | x) is 0/0."""


def log_class_probability(joint: Array, method: Method) -> Array:
    """Normalise (N, C) log joint densities; refuses rows that no class can produce."""
    impossible = np.isneginf(joint).all(axis=1)
    if impossible.any():
        rows = np.flatnonzero(impossible)
        raise ImpossibleRowError(
            f"{len(rows)} row(s), the first at position {rows[0]}, have probability 0 under every "
            f"class by method={method!r}, so p(y | x) is 0/0 (the black swan of maximum "
            "likelihood); use method='posterior_predictive', or predict_joint_log_proba to see "
            "which"
        )
    return log_softmax(joint)
