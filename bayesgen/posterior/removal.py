r"""The posterior without some of its rows, exactly and without refitting.

A posterior is a function of statistics that add up, so a row leaves as it came. For one row of
class k and weight w, with the joint cgf K of the class log-densities under the whole posterior,

.. math:: p(x_i \mid y_i = c, D_{-i})
          = \frac{E[p(x_i|\theta_c)\, p(x_i|\theta_k)^{-w}]}{E[p(x_i|\theta_k)^{-w}]}
          = \exp\{K(e_c - w e_k) - K(-w e_k)\},

because dividing a posterior by the likelihood of a row gives the posterior of the others. Families
with subtractions inside offer a form of their own (`RowRemoval`). Either form says how many digits
it has lost: rows that are nearly all of a sum of squares, and those of large weights, are left out
by adding up the others instead.
Groups of rows are left out by halving the list of groups: each half is added to the rows outside,
so that nothing is ever subtracted. Source: Vehtari, Gelman and Gabry (2017), section 2, for the
target; Gelman et al. (2013), section 3.3, for the updates.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayesgen.families.capabilities import RowRemoval
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.shared.removal_by_cgf import (
    classes_are_apart,
    digits_left,
    one_per_class,
    removal_by_cgf,
)
from bayesgen.families.shared.separate_columns import separate_columns
from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array

# A sum of which less than this is left has lost 5 of 16 digits: the row is left out by adding up
# all others, to the same 1e-10 or so as everywhere
_LEAST_LEFT = 1e-5


def log_predictive_without(
    family: ConjugateFamily, X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(N, C) log p(x_i | y_i = c) without row i itself, and (N,) as in `RowRemoval`.

    Parameters
    ----------
    family : posterior
    X, y, weight : rows of it, their classes and weights (N,)
    """
    log_x: Array | None = None
    left = np.ones(X.shape[0])
    blocks = list(family.blocks())
    for block in blocks:
        own = X if len(blocks) == 1 else X[:, block.columns]
        removal = block.family.capability(RowRemoval)
        # beside a row of weight 1e15 the prior is rounded off: NaN or infinity, and `fragile`
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if removal is not None:
                part, kept = removal.log_predictive_without(own, y, weight)
            else:
                part, kept = removal_by_cgf(block.family, own, y, weight)
            left = np.minimum(left, kept)
        log_x = part if log_x is None else log_x + part
    if log_x is None:
        raise ValueError("the family has no columns")
    return log_x, left


def fragile(left: Array, log_x: Array) -> Array:
    """Positions of the rows whose closed form has lost too many digits."""
    return np.flatnonzero(~(left > _LEAST_LEFT) | ~(log_x < np.inf).all(axis=1))


def leave_out_each(
    groups: Sequence[Array],
    stats_of: Callable[[Array], Any],
    rest: Any,
    visit: Callable[[Array, Any], None],
) -> None:
    """Call ``visit(rows, statistics of all other rows)`` for each group of rows in turn.

    Parameters
    ----------
    groups : sequence of (n,) positions of rows, without overlap
    stats_of : rows to their statistics
    rest : Stats
        Of the rows that are in no group.

    Notes
    -----
    Every row is read log2(number of groups) times and statistics are only ever added.
    """
    if len(groups) == 1:
        visit(groups[0], rest)
        return
    if groups:
        middle = len(groups) // 2
        halves = groups[:middle], groups[middle:]
        for own, other in (halves, halves[::-1]):
            leave_out_each(own, stats_of, rest.merge(stats_of(np.concatenate(other))), visit)


def log_predictive_by_column(
    family: ConjugateFamily, X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(D, N, C) terms of `log_predictive_without` of a separable family, and (N,) as there.

    Parameters
    ----------
    family : posterior
        Every block must be `separable`.
    X : rows, of the posterior or new
    y, weight : (N,)
        Class and weight of each row in the posterior; weight 0: the row is not in it.

    Raises
    ------
    MissingCapabilityError
        If the density is no product over the columns.
    """
    parts = []
    positions: list[Array] = []
    left = np.ones(X.shape[0])
    blocks = list(family.blocks())
    for block in blocks:
        own = X if len(blocks) == 1 else X[:, block.columns]
        part, kept = _block_by_column(block.family, own, y, weight)
        parts.append(part)
        left = np.minimum(left, kept)
        positions.append(np.arange(own.shape[1]) if len(blocks) == 1 else np.asarray(block.columns))
    where = np.concatenate(positions)
    out = np.empty((len(where), X.shape[0], parts[0].shape[2]))
    out[where] = np.concatenate(parts)
    return out, left


def _block_by_column(
    family: ConjugateFamily, X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    columns = separate_columns(family)
    n_classes = len(one_per_class(family))
    apart = classes_are_apart(family)
    out = np.zeros((X.shape[1], X.shape[0], n_classes))
    left = np.ones(X.shape[0])
    unit = np.eye(n_classes)
    for rows in row_blocks(X.shape[0], X.shape[1] * n_classes):
        x = dense_block(X, rows)
        row, column = np.nonzero(~np.isnan(x))
        cells = x[row, column]
        codes, w = y[rows][row], weight[rows][row]
        terms = np.empty((n_classes, len(cells)))
        for c in range(n_classes):
            terms[c] = columns.cell_cgf(cells, column, unit[c][None, None])[0]
        for k in range(n_classes):
            own = np.flatnonzero((codes == k) & (w > 0))
            if not len(own):
                continue
            t = -w[own, None] * unit[k]
            base = columns.cell_cgf(cells[own], column[own], t[None])[0]
            for c in [k] if apart else range(n_classes):
                whole = columns.cell_cgf(cells[own], column[own], (t + unit[c])[None])[0]
                terms[c, own] = whole - base
            kept = digits_left(terms[k, own], base, w[own])
            np.minimum.at(left, rows.start + row[own], kept)
        out[column, rows.start + row] = terms.T
    return out, left
