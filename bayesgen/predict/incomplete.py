"""Rows of codes with cells that are not known: summed over what these may be."""

from itertools import product

import numpy as np

from bayesgen.families.names import Method
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted, Posterior
from bayesgen.posterior.model import Quantity, log_weights

_COMPLETIONS = 4096  # of one row with missing cells


def log_joint(
    fitted: Fitted,
    own: Posterior,
    X: Matrix,
    method: Method,
    weights: Array | None,
    quantity: Quantity,
) -> Array:
    """(N, C) log joint densities of encoded rows by a posterior.

    Where the reader says so (`sums_missing`), they are summed over what missing cells may be.
    """
    if not fitted.reader.sums_missing:
        return own.log_joint(X, method, weights, quantity)
    at = np.flatnonzero(np.isnan(X).any(axis=1))
    if not len(at):
        return own.log_joint(X, method, weights, quantity)
    out = np.empty((len(X), len(fitted.classes)))
    whole = np.setdiff1d(np.arange(len(X)), at)
    if len(whole):
        out[whole] = own.log_joint(X[whole], method, weights, quantity)
    sums = getattr(own.model.family, "log_predictive_of_known", None)
    if sums is not None and method == "posterior_predictive" and isinstance(own, ExactPosterior):
        out[at] = sums(X[at])
        out[at] += log_weights(own.model.mean_weights() if weights is None else weights)
        return out
    for i in at:
        rows = completions(fitted, X[i], int(i))
        out[i] = log_sum_exp(own.log_joint(rows, method, weights, quantity), axis=0)
    return out


def completions(fitted: Fitted, row: Array, i: int) -> Array:
    """(K, D) every way to fill the missing cells of a row of codes."""
    gaps = np.flatnonzero(np.isnan(row))
    encoder = fitted.reader.encoder
    sizes = (encoder.levels - np.array(encoder.missing))[gaps]
    n = float(np.prod(sizes.astype(np.float64)))
    if n > _COMPLETIONS:
        raise ValueError(
            f"row {i} has {len(gaps)} cells that are not known, {n:.0f} completions; the exact "
            f"sum takes at most {_COMPLETIONS}. Fit with missing='category', or leave columns "
            "out"
        )
    rows = np.repeat(row[None], int(n), axis=0)
    rows[:, gaps] = list(product(*(range(size) for size in sizes)))
    return rows
