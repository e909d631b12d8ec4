r"""Joint cumulant generating functions of the class log-densities, theta integrated out.

Under a forest T, :math:`p(x \mid \theta, T)^t` adds t to the count of each table of T in the cell
that the row is in. So with W(n) the evidence of all tables,

.. math:: E\, p(x \mid \theta, T)^t = \prod_u \frac{W_u(n + t)}{W_u(n)}
          \frac{Z\{w(n + t)\}}{Z\{w(n)\}},

for real and complex t. Of complex t the sum over forests is a mixture of characteristic functions:
its argument is followed from the real axis, so that the result is one branch of the logarithm.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.shared.arguments import followed_argument
from bayesgen.families.shared.assembly import cgf_by_rows
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_forest.family import DirichletForest


def changes(f: "DirichletForest", c: int, codes: Array, t: Array) -> tuple[Array, Array]:
    """Changes of the log weights of class c by counts of t in the cells of rows.

    Parameters
    ----------
    codes : (n, D)
    t : (..., n or 1)

    Returns
    -------
    columns : (..., n)
        Of the product of the W_u.
    edges : (..., n, P)
        Of the log weights of the pairs that may be neighbours.
    """
    i, j = f.neighbours[c]
    column = np.arange(codes.shape[1])
    strength, total = f.strength[c], f.totals[c]
    single = f.pairs[c][column, column, codes, codes] + strength / f.levels
    both = f.pairs[c][i, j, codes[:, i], codes[:, j]] + strength / (f.levels[i] * f.levels[j])
    if not np.iscomplexobj(t) and (np.asarray(t) == 1).all():
        one, all_rows, two = np.log(single), np.log(total), np.log(both)
        lead = np.broadcast_shapes(t.shape, (len(codes),))
        one, two = (np.broadcast_to(a, (*lead, a.shape[-1])) for a in (one, two))
        all_rows = np.broadcast_to(all_rows, lead)[..., None]
    else:
        one = log_gamma_difference(single, t[..., None])
        two = log_gamma_difference(both, t[..., None])
        all_rows = log_gamma_difference(total, t[..., None])
    edges = two - one[..., i] - one[..., j] + all_rows
    return (one - all_rows).sum(axis=-1), edges


def _log_ratio(f: "DirichletForest", c: int, edges: Array) -> Array:
    """(..., n) log of the sum over forests with changed weights, less that before."""
    i, j = f.neighbours[c]
    if f.is_forest:  # one term, with every choice of roots
        total: Array = edges.sum(axis=-1)
        return total
    n_nodes = len(f.levels) + 1
    change = np.zeros((*edges.shape[:-1], n_nodes, n_nodes), dtype=edges.dtype)
    change[..., i + 1, j + 1] = edges
    return f.eliminations[c].log_ratio(change)


def cgf(f: "DirichletForest", X: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    codes = f.codes(X)
    t = np.asarray(t)
    dtype = np.complex128 if np.iscomplexobj(t) else np.float64

    if dtype is np.float64 and t.size == len(f.strength) and not f.is_forest:
        steps = len(codes) * (codes.shape[1] + 1) ** 3 // 6
        if kernels.pays(steps * np.count_nonzero(t)):
            return _by_tables(f, codes, t.ravel().astype(dtype))

    def cell(rows: slice, t: Array) -> Array:
        own = codes[rows]
        out = np.zeros((*t.shape[:-2], len(own)), dtype=dtype)
        for c in range(len(f.strength)):
            tc = t[..., c].astype(dtype)
            if not tc.any():
                continue
            columns, edges = changes(f, c, own, tc)
            ratio = _log_ratio(f, c, edges)
            if np.iscomplexobj(ratio) and not f.is_forest:

                def at(some: Array, t: Array, c: int = c) -> Array:
                    return _log_ratio(f, c, changes(f, c, own[some], t)[1])

                turn = _turn(f, c, edges)
                angle = followed_argument(at, ratio.imag, turn, tc, (own.shape[1] + 1) ** 2)
                ratio = ratio.real + 1j * angle
            out += columns + ratio
        return out

    return cgf_by_rows(cell, len(codes), (codes.shape[1] + 1) ** 2, t)


def _by_tables(f: "DirichletForest", codes: Array, t: Array) -> Array:
    """(N,) cgf at one real t (C,): what a row changes is looked up, and the sums are compiled."""
    out = np.zeros(len(codes))
    n_features, k = f.pairs.shape[1], f.pairs.shape[-1]
    column, code = np.arange(n_features)[:, None], np.arange(k)
    size = f.levels[:, None] * f.levels
    for c in np.flatnonzero(t):
        single = f.pairs[c][column, column, code, code] + f.strength[c] / f.levels[:, None]
        both = f.pairs[c] + f.strength[c] / size[..., None, None]
        one, two, total = (log_gamma_difference(a, t[c]) for a in (single, both, f.totals[c]))
        table = two - one[:, None, :, None] - one[:, None] + total
        table[np.broadcast_to(f.edges[c] == 0, size.shape)] = 0.0
        for rows in row_blocks(*codes.shape):
            out[rows] += (one[column[:, 0], codes[rows]] - total).sum(axis=1)
        out += f.eliminations[c].log_ratio_of_codes(codes, table)
    return out


def _turn(f: "DirichletForest", c: int, edges: Array) -> Array:
    """(...) bound on how far the term of any forest has turned: each column's furthest edge."""
    furthest = np.zeros((*edges.shape[:-1], len(f.levels)))
    angle = np.abs(edges.imag)
    for p, (i, j) in enumerate(zip(*f.neighbours[c], strict=True)):
        np.maximum(furthest[..., i], angle[..., p], out=furthest[..., i])
        np.maximum(furthest[..., j], angle[..., p], out=furthest[..., j])
    bound: Array = furthest.sum(axis=-1)
    return bound
