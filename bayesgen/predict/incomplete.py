"""Rows of codes with cells that are not known: summed over what these may be."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from bayesgen.errors import InputError, warn
from bayesgen.families.contract import Theta
from bayesgen.families.names import Method
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.exact import averaged
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import Quantity, log_weights

_COMPLETIONS = 4096  # of one row with missing cells
_STEPS = 2e8  # completions x classes x columns^3 of a row that is summed over exactly: .1 s
_OPEN = 0.01  # standard error of a class probability


def log_joint(
    fitted: Fitted,
    own,
    X: Matrix,
    method: Method,
    weights: Array | None,
    quantity: Quantity,
) -> Array:
    """Return (N, C) log joint densities of encoded rows by a posterior.

    Where the reader says so (`sums_missing`), they are summed over what missing cells may be.
    """

    def ask(X: Array, own=own) -> Array:
        answer: Array = own.log_joint(X, method, weights, quantity)
        return answer

    if not fitted.reader.sums_missing:
        return ask(X)
    incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
    if not len(incomplete):
        return ask(X)
    if own.mixture and method == "posterior_predictive":
        mass, parts = zip(*own.mixture, strict=True)
        joints = [log_joint(fitted, block, X, method, weights, quantity) for block in parts]
        return averaged(np.array(mass), np.stack(joints))
    family = own.model.family
    exact = own.exact and method == "posterior_predictive"
    if hasattr(family, "log_likelihood_of_known") and not exact:
        return ask(X, replace(own, model=replace(own.model, family=_KnownCells(family))))
    joint = np.empty((len(X), len(fitted.classes)))
    whole = np.setdiff1d(np.arange(len(X)), incomplete)
    if len(whole):
        joint[whole] = ask(X[whole])
    filled = np.full(len(incomplete), not exact)  # in every way
    if exact and not getattr(family, "is_forest", True):  # an average, else by draws of forests
        n = np.where(np.isnan(X[incomplete]), gap_sizes(fitted), 1.0).prod(axis=1)
        filled = (n <= _COMPLETIONS) & (n * family.n_columns**3 * joint.shape[1] <= _STEPS)
    for i in incomplete[filled]:
        joint[i] = log_sum_exp(ask(completions(fitted, X[i], int(i))), axis=0)
    if len(unfilled := incomplete[~filled]):
        log_x, error = family.log_predictive_of_known(X[unfilled])
        joint[unfilled] = log_x + log_weights(
            own.class_weights(method) if weights is None else weights
        )
        _warn_of_error(log_softmax(joint[unfilled]), error, unfilled, quantity)
    return joint


def predictive(fitted: Fitted, X: Matrix) -> Array:
    """Return (N, C) log joint predictive densities of encoded rows, for class probabilities."""
    return log_joint(fitted, fitted.posterior, X, "posterior_predictive", None, "probability")


@dataclass(frozen=True)
class _KnownCells:
    """A family whose likelihood sums over missing cells, for plug-ins and averages over draws."""

    family: Any

    def __getattr__(self, name: str):
        return getattr(self.family, name)

    def for_plug_in(self, method: Method) -> "_KnownCells":
        return _KnownCells(self.family.for_plug_in(method))

    def log_likelihood(self, X: Array, theta: Theta) -> Array:
        return np.asarray(self.family.log_likelihood_of_known(X, theta))

    discriminant = log_likelihood


def _warn_of_error(log_p: Array, error: Array, at: Array, quantity: Quantity) -> None:
    """Warn of rows whose sum over missing cells, by draws of forests, leaves them open.

    Parameters
    ----------
    log_p, error : (n, C) class probabilities; standard errors of log densities
    at : (n,) positions of the rows
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
                row=at[i],
                advice="fit with missing='category', or fill cells",
                place=", at position {}",
            ),
        )


def gap_sizes(fitted: Fitted) -> Array:
    """Return (D,) number of codes that a missing cell of each column may have."""
    return np.asarray(fitted.reader.encoder.levels)


def completions(fitted: Fitted, row: Array, i: int) -> Array:
    """Return (K, D) every way to fill the missing cells of a row of codes."""
    gaps = np.flatnonzero(np.isnan(row))
    sizes = gap_sizes(fitted)[gaps]
    n = float(np.prod(sizes.astype(np.float64)))
    if n > _COMPLETIONS:
        raise InputError(
            "row",
            f" has {len(gaps)} cells that are not known, {n:.0f} completions, and the exact sum "
            f"takes at most {_COMPLETIONS}",
            row=i,
            advice="fit with missing='category', or leave columns out",
            place=" {}",
        )
    rows = np.repeat(row[None], int(n), axis=0)
    rows[:, gaps] = list(product(*(range(size) for size in sizes)))
    return rows
