"""Hyper-parameters as users give them, to full arrays."""

import reprlib
from dataclasses import replace

import numpy as np

from bayesgen.families.errors import PriorShapeError
from bayesgen.families.records import Record
from bayesgen.numerics.special import Array

SMALLEST = float(np.finfo(np.float64).tiny)  # below it 1/x is infinite, and so is log Gamma(x)
LARGEST = 1e152  # the square, times a number of columns, is finite; cells end at 1e151


def _refuse_other_than_numbers(name: str, value) -> None:
    """Raise TypeError for a PyMC distribution, which has a shape, and for text."""
    if type(value).__module__.startswith(("pymc.", "pytensor.")):
        raise TypeError(
            f"{name} must be a number or an array of numbers, got a variable of PyMC: closed forms "
            "know the prior by its hyper-parameters alone. For another prior change the model that "
            "clf.to_pymc() returns, or use an estimator fitted by NUTS"
        )
    if isinstance(value, str):
        raise TypeError(
            f"{name} must be a number or an array of numbers, got {reprlib.repr(value)}"
        )


def broadcast_prior(
    name: str,
    value,
    shape: tuple[int, ...],
    *,
    positive: bool = True,
    largest: float | Array = LARGEST,
) -> Array:
    """Return a hyper-parameter as a float64 array of `shape`, or an error that names it.

    `shape` is (class, feature) or (class,). NumPy's rules: a 1-D array is one value a *feature*
    whatever the number of classes; one value per class is an array of shape (C, 1).
    """
    _refuse_other_than_numbers(name, value)
    axes = "(class, feature)" if len(shape) == 2 else "(class,)"
    try:
        array = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), shape))
    except ValueError:
        raise PriorShapeError(
            f"{name} has shape {np.shape(value)}, which does not broadcast to {axes} = {shape}",
            advice="give one number, one value per feature, or an array (C, 1) with one value per "
            "class",
        ) from None
    except (TypeError, OverflowError):  # the latter: an integer that no float64 holds
        raise TypeError(
            f"{name} must be a number or an array of numbers, got {reprlib.repr(value)}"
        ) from None

    def got() -> str:  # which takes longer than all that is asked below
        return f"got {reprlib.repr(value)}"

    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, {got()}")
    if positive and not np.all(array > 0):
        raise ValueError(f"{name} must be > 0, {got()}: the prior would be improper")
    if positive and array.min(initial=1.0) < SMALLEST:
        raise ValueError(f"{name} must be >= {SMALLEST:.4g}, {got()}: its inverse overflows")
    if np.any(np.abs(array) > largest):
        most = float(np.min(largest))
        raise ValueError(f"{name} must be <= {most:.4g} in size, {got()}: closed forms overflow")
    return array


def broadcast_priors[F: Record](family: F, shape: tuple[int, ...], *names: str) -> F:
    """Broadcast hyper-parameters > 0 to full arrays; errors call them by these names."""
    full = {name: broadcast_prior(name, getattr(family, name), shape) for name in names}
    return replace(family, **full)
