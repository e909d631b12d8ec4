"""What functions that take a classifier ask of it, in one sentence for all of them."""

from typing import Any

from sklearn.utils.validation import check_is_fitted


def refuse_others(clf: Any, function: str, *, pools: bool = False) -> None:
    """Raise TypeError unless `clf` is a classifier of this package; pools if they may be."""
    if hasattr(clf, "_fitted") or (pools and hasattr(clf, "_members")):
        return
    name = type(clf).__name__
    hint = ""
    if hasattr(clf, "_members"):
        hint = ", which has no prior and posterior of its own: ask a member, pool.members_[name]"
    elif hasattr(clf, "steps"):
        hint = ": give its last step, and the rows as the step before hands them on"
    raise TypeError(f"{function} takes a generative classifier of bayesgen, got a {name}{hint}")


def fitted_posterior(clf: Any, function: str) -> Any:
    """The posterior of a fitted classifier of this package.

    Raises
    ------
    TypeError
        If it is something else.
    NotFittedError
        If it is not fitted.
    """
    refuse_others(clf, function)
    check_is_fitted(clf, "prior_")
    return clf._fitted()
