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
from bayesgen.errors import Facts, InputError, refuse_unknown, warn
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import METHODS, Method
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import MISSING_WITHOUT_DENSITY, MonteCarloWarning, has_gap
from bayesgen.posterior.exact import averaged
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import Quantity, log_weights
from bayesgen.predict import local_optimum

_OPEN = 0.01  # standard error of a class probability that sums over missing cells


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
            joint = log_joint_of_encoded(fitted, posterior, encoded, method, weights, quantity)
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


def log_joint_of_encoded(
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
        joints = [
            log_joint_of_encoded(fitted, component, X, method, weights, quantity)
            for component in parts
        ]
        return averaged(np.array(mass), np.stack(joints))
    log_x, error = posterior.model.family.log_predictive_with_error(X)
    joint = log_x + log_weights(posterior.class_weights() if weights is None else weights)
    _warn_of_error(log_softmax(joint), error, quantity)
    return joint


def predictive_of_encoded(fitted: Fitted, X: Matrix) -> Array:
    """Return (N, C) log joint predictive densities of encoded rows, for class probabilities."""
    return log_joint_of_encoded(
        fitted, fitted.posterior, X, "posterior_predictive", None, "probability"
    )


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
