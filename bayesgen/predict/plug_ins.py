"""Plug-in estimates by name, under scikit-learn's names, and as the weights of a linear rule."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.datatree import tree
from bayesgen.errors import refuse_unknown
from bayesgen.families.capabilities import LinearRule, require
from bayesgen.families.errors import (
    MissingCapabilityError,
    NoClosedFormError,
    NotLinearError,
    UndefinedEstimateError,
)
from bayesgen.families.names import CATEGORY, CLASS, CLASS_WEIGHTS, METHODS, Method
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import Fitted
from bayesgen.predict import local_optimum
from bayesgen.predict.probabilities import check_method

if TYPE_CHECKING:
    import xarray as xr


class LinearForm(NamedTuple):
    """Weights of a linear rule.

    Two classes: ``w`` (D,) and ``w0`` a number, with ``X @ w + w0`` the log-odds of
    ``classes_[1]`` (that is `decision_function`). More: ``w`` (C, D) and ``w0`` (C,), with
    ``X @ w.T + w0`` the log joint densities up to a constant of the row.
    """

    w: Array
    w0: Array | float


def linear_form(fitted: Fitted, method: Method) -> LinearForm:
    """Weights of the rule, as `GenerativeClassifier.linear_form` gives them."""
    posterior = fitted.closed_form
    check_method(method)
    theta = None
    try:
        if method != "posterior_predictive":
            theta = posterior.estimate(method)
        weights = posterior.class_weights(method)
    except UndefinedEstimateError as error:
        raise error.renamed(fitted.classes, fitted.feature_names) from None
    w, w0 = require(posterior.model.family, LinearRule, "linear_form").linear_form(theta)
    with np.errstate(divide="ignore"):
        w0 = w0 + np.log(weights)
    if len(fitted.classes) == 2:
        return LinearForm(w[1] - w[0], float(w0[1] - w0[0]))
    return LinearForm(w, w0)


def estimates(fitted: Fitted, method: Method, training=None) -> "xr.Dataset":
    """One estimate of every parameter, as `GenerativeClassifier.estimates` gives it."""
    refuse_unknown("method", method, METHODS[:0:-1])
    try:
        theta = _theta(fitted, method, training)
    except UndefinedEstimateError as error:
        raise error.renamed(fitted.classes, fitted.feature_names) from None
    params = dict(fitted.family.params)
    if CLASS_WEIGHTS in theta:
        params[CLASS_WEIGHTS] = (CLASS,)
    variables = {name: (dims, np.asarray(theta[name])) for name, dims in params.items()}
    return tree.group(variables, fitted.coords).assign_attrs(method=method)


def _theta(fitted: Fitted, method: Method, training) -> dict[str, Array]:
    """Estimates of the parameters, and class weights where there are any."""
    posterior: Any = fitted.posterior
    if not posterior.drawn:
        closed = fitted.closed_form
        weights = closed.class_weights(method)
        return {**closed.estimate(method), CLASS_WEIGHTS: weights}
    if method != "posterior_mean":
        return local_optimum.optimum(fitted, method, training)
    return dict(posterior.estimate(method))


def attribute(fitted: Fitted, name: str):
    """Return an attribute that scikit-learn's class has.

    Raises
    ------
    AttributeError
        With the reason where the model has none.
    """
    try:
        return _attribute(fitted, name)
    except (
        NotLinearError,
        UndefinedEstimateError,
        MissingCapabilityError,
        NoClosedFormError,
    ) as error:
        raise AttributeError(
            f"{fitted.name} has no {name}: {error}; estimates() and posterior_ have the parameters"
        ) from error


def _attribute(fitted: Fitted, name: str):
    """Return the value at the posterior mean, but for `coef_` and counts."""
    posterior = fitted.closed_form
    if name == "class_count_":
        return np.array(posterior.stats.count)
    if name == "class_log_prior_":
        return np.log(posterior.model.mean_weights())
    if name in ("coef_", "intercept_"):
        try:
            w, w0 = linear_form(fitted, "posterior_predictive")
        except NotLinearError:
            w, w0 = linear_form(fitted, "posterior_mean")
        return np.atleast_2d(w) if name == "coef_" else np.atleast_1d(w0)
    family = posterior.model.family
    if name not in family.attributes:
        raise AttributeError(
            f"{fitted.name} has no {name}: no parameter of {type(family).__name__} goes by that "
            "name; estimates() and posterior_ have its parameters"
        )
    parameter = family.attributes[name]
    dims = family.params[parameter]
    value = np.asarray(posterior.estimate("posterior_mean")[parameter])
    if name.startswith("feature_log_"):
        with np.errstate(divide="ignore"):  # padding
            log_p = np.log(value)
        if dims[-1] != CATEGORY:
            return log_p
        real = value[0] > 0
        return [log_p[:, j, posterior] for j, posterior in enumerate(real)]
    if name == "var_":  # of a variance that classes or features share
        value = value[:, None] if dims == (CLASS,) else value
        shape = family.mu.shape
        return np.array(np.broadcast_to(value, shape))
    return value
