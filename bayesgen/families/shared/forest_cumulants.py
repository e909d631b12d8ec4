r"""Joint cumulant generating functions of the class log-densities, theta integrated out.

Under a forest T the density of a row is a product over columns and edges, and so is the evidence of
all rows. With W(D) and w(D) the evidences of columns and the weights of edges given data D, and
W(D + t x) those after a row of weight t,

.. math:: E\, p(x \mid \theta)^t = \prod_u \frac{W_u(D + t x)}{W_u(D)}
          \frac{Z\{w(D + t x)\}}{Z\{w(D)\}},

for real and complex t. Of complex t the sum over forests is a mixture of characteristic functions:
its argument is followed from the real axis, so that the result is one branch of the logarithm.
"""

import numpy as np

from bayesgen.families.shared.arguments import followed_argument
from bayesgen.families.shared.forests import ForestAverage
from bayesgen.numerics.rows import cgf_by_rows
from bayesgen.numerics.special import Array


def log_ratio(f: ForestAverage, c: int, edges: Array) -> Array:
    """(..., n) log of the sum over forests with changed weights, less that before."""
    i, j = f.neighbours[c]
    if f.is_forest:  # one term, with every choice of roots
        total: Array = edges.sum(axis=-1)
        return total
    n_nodes = f.n_columns + 1
    change = np.zeros((*edges.shape[:-1], n_nodes, n_nodes), dtype=edges.dtype)
    change[..., i + 1, j + 1] = edges
    return f.eliminations[c].log_ratio(change)


def cgf(f: ForestAverage, cells: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`, of rows (N, D) as `ForestAverage.changes` has them."""
    t = np.asarray(t)
    dtype = np.complex128 if np.iscomplexobj(t) else np.float64

    def cell(rows: slice, t: Array) -> Array:
        out = np.zeros((*t.shape[:-2], len(cells[rows])), dtype=dtype)
        for c in range(len(f.neighbours)):
            tc = t[..., c].astype(dtype)
            some = np.flatnonzero(np.broadcast_to(tc, out.shape).reshape(-1, out.shape[-1]).any(0))
            if not len(some):
                continue
            own, tc = cells[rows][some], tc if tc.shape[-1] == 1 else tc[..., some]
            columns, edges = f.changes(c, own, tc)
            ratio = log_ratio(f, c, edges)
            if np.iscomplexobj(ratio) and not f.is_forest:

                def at(far: Array, t: Array, c: int = c, own: Array = own) -> Array:
                    return log_ratio(f, c, f.changes(c, own[far], t)[1])

                turn = _turn(f, c, edges)
                angle = followed_argument(at, ratio.imag, turn, tc, (own.shape[1] + 1) ** 2)
                ratio = ratio.real + 1j * angle
            out[..., some] += columns.sum(axis=-1) + ratio
        return out

    return cgf_by_rows(cell, len(cells), (cells.shape[1] + 1) ** 2, t)


def _turn(f: ForestAverage, c: int, edges: Array) -> Array:
    """(...) bound on how far the term of any forest has turned: each column's furthest edge."""
    furthest = np.zeros((*edges.shape[:-1], f.n_columns))
    angle = np.abs(edges.imag)
    for p, (i, j) in enumerate(zip(*f.neighbours[c], strict=True)):
        np.maximum(furthest[..., i], angle[..., p], out=furthest[..., i])
        np.maximum(furthest[..., j], angle[..., p], out=furthest[..., j])
    bound: Array = furthest.sum(axis=-1)
    return bound
