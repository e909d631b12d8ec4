"""Arguments that scikit-learn's classes have, and what answers for them here.

A classifier that is made with one of these says which argument takes its place: ``GaussianNB
(var_smoothing=1e-9)`` names ``nu0`` and ``sigma2_0``.
"""

import functools
import inspect
from typing import Any

from bayesgen.errors import spelled

_WEIGHTS = "class_prior= of the predict methods, or class_alpha=, the prior of the class weights"
_COVARIANCE = "nu0= and psi0=, the prior of the covariance, or prior='loo', which chooses it"
ANSWERS = {
    "priors": _WEIGHTS,
    "class_prior": _WEIGHTS,
    "fit_prior": _WEIGHTS,
    "var_smoothing": "nu0= and sigma2_0=, the prior of the variances",
    "min_categories": "categories=, the declared categories of the columns",
    "force_alpha": "alpha= alone, which is taken as it is",
    "shrinkage": _COVARIANCE,
    "reg_param": _COVARIANCE,
    "store_covariance": "covariance_, which is always there",
}


def answer_arguments(cls: type) -> None:
    """Make the constructor of `cls` answer the arguments of scikit-learn's class."""
    own: Any = vars(cls).get("__init__")
    if own is None:
        return
    unknown = ANSWERS.keys() - inspect.signature(own).parameters.keys()
    own = spelled(own)

    @functools.wraps(own)
    def __init__(self: Any, *args: Any, **arguments: Any) -> None:  # noqa: N807
        for name in unknown & arguments.keys():
            raise TypeError(f"{type(self).__name__} has no argument {name!r}: use {ANSWERS[name]}")
        own(self, *args, **arguments)

    setattr(cls, "__init__", __init__)  # noqa: B010 - a type checker keeps the constructor's own
