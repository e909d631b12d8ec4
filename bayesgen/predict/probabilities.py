"""From (model, X) to log p(class, x): the one path every prediction takes.

Three numbers that are not the same:

- ``"posterior_predictive"``: p(y | x, D), the parameters integrated out;
- ``"posterior_mean"``, ``"map"``, ``"mle"``: p(y | x, theta-hat), one theta plugged in;
- the mean over draws of p(y | x, theta), which no method here returns: it averages normalised
  probabilities, and weighs a theta under which x is absurd as much as one that explains it.

The first two are closed forms, or estimates from posterior draws where those are given.
"""

from typing import Any, cast

import numpy as np

from bayesgen.encoding.cells import refuse_large_cells
from bayesgen.errors import Facts, InputError, refuse_unknown
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS, Method
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import MISSING_WITHOUT_DENSITY, has_gap
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import Quantity
from bayesgen.predict import incomplete, local_optimum


def check_method(method: str) -> Method:
    """`method` if it is one of `names.METHODS`, else an error that lists them."""
    if method not in METHODS:
        refuse_unknown("method", method, METHODS)
    return cast(Method, method)


def log_joint(
    fitted: Fitted,
    X,
    method: Method = "posterior_predictive",
    class_prior=None,
    quantity: Quantity = "probability",
) -> Array:
    """Return (N, C) log p(y = c, x) of each row on its own; `quantity` is what becomes of it.

    Other arguments are those of `GenerativeClassifier.predict_joint_log_proba`.
    """
    check_method(method)
    posterior: Any = fitted.posterior
    weights = fitted.weights_of(class_prior)
    rows = fitted.read(X)
    try:
        if method in ("map", "mle") and posterior.drawn:
            posterior, method = (
                posterior.at(local_optimum.optimum(fitted, method)),
                "posterior_mean",
            )
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is refused later
            encoded = rows.encoded
            joint = incomplete.log_joint(fitted, posterior, encoded, method, weights, quantity)
    except UndefinedEstimateError as error:
        raise error.renamed(fitted.classes, fitted.feature_names) from None
    # NaN, or a row that no class can produce; the sum costs least and is seldom not finite
    if not (np.isfinite(joint.sum()) or np.isfinite(joint.max(axis=1)).all()):
        refuse_large_cells(posterior.prior.family, rows.encoded, lambda: fitted.feature_names)
        for row in np.flatnonzero(np.isnan(joint).any(axis=1))[:1]:
            if has_gap(rows.encoded, row):
                why = f" is NaN: {MISSING_WITHOUT_DENSITY}"
                raise InputError("log p(x)", why, row=row, place=" of row {}")
    return joint


def log_proba(fitted: Fitted, X, method: Method, class_prior=None) -> Array:
    """Return (N, C) log probabilities of the classes."""
    return log_class_probability(log_joint(fitted, X, method, class_prior), method)


class ImpossibleRowError(Facts, ValueError):
    """Rows that have probability 0 under every class, so that p(y | x) is 0/0."""


def log_class_probability(joint: Array, method: Method) -> Array:
    """Normalise (N, C) log joint densities, in place; refuses rows that no class can produce."""
    joint[:] = log_softmax(joint)
    rows = np.flatnonzero(np.isnan(joint[:, 0]))
    if len(rows):
        if method == "posterior_predictive":  # estimated from draws: the closed form is positive
            why = "under every posterior draw"
            instead = "more draws may reach it, if it is a row of this kind of data"
        else:
            why = "what training did not show has likelihood 0"
            instead = "use method='posterior_predictive', or predict_joint_log_proba to see which"
        raise ImpossibleRowError(
            f"{len(rows)} row(s), the first",
            f", have probability 0 under every class by {method!r}, so p(y | x) is 0/0 ({why})",
            row=rows[0],
            advice=instead,
        )
    return joint
