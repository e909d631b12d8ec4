"""Rows of codes with cells that are not known: summed over what these may be."""

import numpy as np

from bayesgen.errors import warn
from bayesgen.families.names import Method
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.exact import averaged
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import Quantity, log_weights

_OPEN = 0.01  # standard error of a class probability


def log_joint(
    fitted: Fitted,
    posterior,
    X: Matrix,
    method: Method,
    weights: Array | None,
    quantity: Quantity,
) -> Array:
    """Return (N, C) log joint densities of encoded rows by a posterior.

    Warn of rows whose sum over missing cells is an estimate (`Reader.sums_missing`) and leaves them
    open.
    """
    is_estimate = posterior.exact and method == "posterior_predictive"
    if not (fitted.reader.sums_missing and is_estimate and has_nan(X)):
        joint: Array = posterior.log_joint(X, method, weights, quantity)
        return joint
    if posterior.mixture:
        mass, parts = zip(*posterior.mixture, strict=True)
        joints = [log_joint(fitted, component, X, method, weights, quantity) for component in parts]
        return averaged(np.array(mass), np.stack(joints))
    log_x, error = posterior.model.family.log_predictive_with_error(X)
    joint = log_x + log_weights(posterior.class_weights() if weights is None else weights)
    _warn_of_error(log_softmax(joint), error, quantity)
    return joint


def predictive(fitted: Fitted, X: Matrix) -> Array:
    """Return (N, C) log joint predictive densities of encoded rows, for class probabilities."""
    return log_joint(fitted, fitted.posterior, X, "posterior_predictive", None, "probability")


def _warn_of_error(log_p: Array, error: Array, quantity: Quantity) -> None:
    """Warn of rows whose sum over missing cells, by draws of forests, leaves them open.

    Parameters
    ----------
    log_p, error : (N, C) class probabilities; standard errors of log densities
    """
    p = np.exp(log_p)
    total = np.square(p * error).sum(axis=1, keepdims=True)
    of_p = p * np.sqrt(np.square((1 - p) * error) + total - np.square(p * error))
    worst = (of_p if quantity == "probability" else error).max(axis=1)
    most = _OPEN if quantity == "probability" else 5 * _OPEN
    rows = np.flatnonzero(worst > most)
    if len(rows):
        what = "class probabilities" if quantity == "probability" else "log densities"
        i = rows[worst[rows].argmax()]
        warn(
            MonteCarloWarning(
                f"missing cells are summed over by draws of forests, too few for the {what} of "
                f"{len(rows)} row(s): the worst",
                f", has a standard error of {worst[i]:.2g}",
                row=i,
                advice="fit with missing='category', or fill cells",
                place=", at position {}",
            ),
        )
