"""Arguments and methods of classifiers: their types, and what says that there is none.

A classifier that is made with an argument of scikit-learn says which argument takes its place:
``GaussianNB(var_smoothing=1e-9)`` names ``nu0`` and ``sigma2_0``. A method that a classifier does
not have is absent for `hasattr`, with the reason in the error.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.encoding.literals import did_you_mean
from bayesgen.families.records import Record

type RowsLike = Any  # a table of any library, an array, a sparse matrix, or documents
type Labels = ArrayLike | None  # numbers, texts, dates; a column of any library
type PerRow = ArrayLike | None  # weights or groups
type ClassPrior = ArrayLike | Mapping[Any, float] | None  # by position, or by label
type TrainingRows = tuple[Any, ...] | None  # (X, y) or (X, y, sample_weight)
type Seed = int | np.random.Generator | None
type PriorValue = ArrayLike | Mapping[Any, Any] | None  # by position, or by column
type SampledPrior = Any  # a number, or a prior of PyMC, PreliZ or a function of the name and dims
type Kinds = Mapping[str, Sequence[Any]] | None  # {kind: columns}
type Categories = ArrayLike | Mapping[Any, Sequence[Any]] | None

_WEIGHTS = "class_prior= of the predict methods, or class_alpha=, the prior of the class weights"
_COVARIANCE = "nu0= and psi0=, the prior of the covariance, or prior='loo', which chooses it"
ANSWERS = {
    "priors": _WEIGHTS,
    "class_prior": _WEIGHTS,
    "fit_prior": _WEIGHTS,
    "class_weight": f"{_WEIGHTS}, or sample_weight= of fit",
    "n_components": "sklearn.discriminant_analysis.LinearDiscriminantAnalysis where columns are to "
    "be transformed; this classifier does not transform",
    "var_smoothing": "nu0= and sigma2_0=, the prior of the variances",
    "min_categories": "categories=, the declared categories of the columns",
    "force_alpha": "alpha= alone, which is taken as it is",
    "shrinkage": _COVARIANCE,
    "reg_param": _COVARIANCE,
    "store_covariance": "covariance_, which is always there",
}


@dataclass_transform(eq_default=False)
def make_constructor[Class: type](cls: Class) -> Class:
    """Make the constructor of a dataclass, which answers the arguments of scikit-learn's class."""
    init = vars(dataclass(eq=False, repr=False)(cls))["__init__"]
    names = inspect.signature(init).parameters.keys() - {"self"}
    answered = ANSWERS.keys() - names

    @functools.wraps(init)
    def __init__(self, *args, **arguments) -> None:  # noqa: N807
        for name in answered & arguments.keys():
            raise TypeError(f"{type(self).__name__} has no argument {name!r}: use {ANSWERS[name]}")
        for name in arguments.keys() - names:
            raise TypeError(
                f"{type(self).__name__} got an unexpected keyword argument {name!r}"
                f"{did_you_mean(name, names)}"
            )
        init(self, *args, **arguments)

    cls.__init__ = __init__  # type: ignore[misc]
    return cls


_OF_REALS = frozenset({"mu0", "kappa0", "nu0", "sigma2_0", "psi0"})
_HYPER_PARAMETERS = _OF_REALS | {"alpha", "beta", "shape", "rate", "strength", "root_weight"}


def states_prior(clf) -> bool:
    """Return whether a hyper-parameter of the features was given: it is not at its default."""
    parameters = inspect.signature(type(clf)).parameters
    names = _HYPER_PARAMETERS & parameters.keys()
    return not all(_same(getattr(clf, name), parameters[name].default) for name in names)


def refuse_other_arguments(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raise where the arguments of two classifiers differ."""
    for name, value in mine.items():
        if not _same(value, theirs[name]):
            raise ValueError(
                f"cannot merge models that differ in {name}: {value!r} and {theirs[name]!r}"
            )


def _same(a, b) -> bool:
    """Return whether two constructor arguments are equal; two functions cannot be compared."""
    if a is b or (callable(a) and callable(b)):
        return True
    if isinstance(a, Record):
        same_type = type(a) is type(b)
        return same_type and all(
            _same(x, y) for x, y in ((a.settings(), b.settings()), (a.arrays(), b.arrays()))
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return np.array_equal(np.asarray(a), np.asarray(b))


if TYPE_CHECKING:

    def available[Of](refuse: Callable[[Any], None]) -> Callable[[Of], Of]:
        """Mark a method that is absent where `refuse(classifier)` raises: for what it says."""

else:

    class available:  # noqa: N801 - a decorator
        """Mark a method that is absent where `refuse(classifier)` raises: for what it says.

        scikit-learn's `available_if` leaves the reason out of the message.
        """

        def __init__(self, refuse):
            self.refuse = refuse

        def __call__(self, method):
            """Take the method."""
            functools.update_wrapper(self, method)
            self.method = method
            return self

        def __get__(self, clf, cls=None):
            """Return the function for a class, which documentation shows; else the bound method."""
            if clf is None:
                return self.method
            try:
                self.refuse(clf)
            except (NotImplementedError, ValueError) as error:
                name = self.method.__name__
                raise AttributeError(
                    f"{type(clf).__name__!r} object has no attribute {name!r}: {error}",
                    name=name,
                    obj=clf,
                ) from error
            return MethodType(self.method, clf)
