r"""Log densities under forests as sums over the columns.

In a forest T the density of a row is a product over columns and edges,

.. math:: \log p(x \mid \theta, T) = \sum_u \log p(x_u) + \sum_{uv \in T}
          \log \frac{p(x_u, x_v)}{p(x_u) p(x_v)},

whichever columns are the roots. What an edge says beyond its two columns belongs to both alike:
half of it is a term of each. These are the Shapley values of the game in which some columns know
their own terms and those of the edges among them (Shapley 1953). The mean under the posterior needs
the probabilities of edges alone.
"""

from collections.abc import Callable

import numpy as np

from bayesgen.numerics.special import Array

_LEAST = np.finfo(np.float64).tiny  # probability of a cell: draws of tables may underflow
_TINY = 2.0**-200  # of a step along the imaginary axis: its slope is the derivative, exactly


def expected(
    changes: Callable[[Array], tuple[Array, Array]], pairs: tuple[Array, Array], share: Array
) -> Array:
    """(N, D) posterior means of the terms of a class.

    Parameters
    ----------
    changes : function of t (1,)
        Cumulant generating functions of the log densities of columns (N, D) and of edges (N, P).
    pairs : (P,) and (P,) columns of the edges
    share : (P,) probability of each edge
    """
    columns, edges = (found.imag / _TINY for found in changes(np.array([1j * _TINY])))
    out: Array = columns.copy()
    for end in pairs:
        np.add.at(out.T, end, edges.T * share[:, None] / 2)
    return out


def of_draws(parents: Array, given: Array, alone: Array) -> Array:
    """(S, N, D) terms in forests (S, D).

    Parameters
    ----------
    given, alone : (S, N, D)
        Log densities of the cells given their parents' (of a root: anything), and by themselves.
    """
    gain = np.where(parents[:, None] < 0, 0.0, given - alone) / 2
    out: Array = alone + gain
    for u, up in enumerate(parents.T):
        draws = np.flatnonzero(up >= 0)
        out[draws, :, up[draws]] += gain[draws, :, u]
    return out


def of_tables(codes: Array, parents: Array, tables: Array) -> Array:
    """(..., N, D) the same of rows of codes: tables (..., D, K', K) given the parent's code.

    Of a root the row of code 0 is its margin.
    """
    lead = parents.shape[:-1]
    parents = parents.reshape(-1, parents.shape[-1]).astype(np.int64)
    tables = tables.reshape(-1, *tables.shape[-3:])
    draw, column = np.arange(len(parents))[:, None], np.arange(parents.shape[1])
    root = parents < 0
    other = np.where(root, column, parents)
    margin, wide = tables[:, :, 0], min(tables.shape[2:])
    for _ in range(parents.shape[1]):
        below = np.einsum("suk,sukl->sul", margin[draw, other, :wide], tables[:, :, :wide])
        new = np.where(root[..., None], tables[:, :, 0], below)
        if (new == margin).all():
            break
        margin = new
    draw = draw[..., None]
    above = np.moveaxis(codes[:, np.where(root, 0, other)], 0, 1)
    given = tables[draw, column, np.where(root[:, None], 0, above), codes]
    alone = margin[draw, column, codes]
    given, alone = (np.log(np.maximum(p, _LEAST)) for p in (given, alone))
    return of_draws(parents, given, alone).reshape(*lead, *codes.shape)
