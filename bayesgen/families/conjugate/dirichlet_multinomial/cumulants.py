"""Cumulants of the log probabilities of documents of given lengths, theta integrated out.

t log coefficient + sum_j [lG(a_j + t x_j) - lG(a_j)] - lG(A + t L) + lG(A), A the sum of the a_j
and L the length, of each class.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesgen.families.conjugate.dirichlet_multinomial.documents import (
    LONG,
    log_coefficient,
    power_moment,
)
from bayesgen.families.shared.density_cumulants import log_gamma_derivatives
from bayesgen.families.shared.word_counts import row_of_cells
from bayesgen.numerics.rows import (
    Matrix,
    cgf_by_rows,
    distinct_cells,
    row_sums,
    shared_sums,
    stored_cells,
)
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_multinomial.family import DirichletMultinomial


def cgf(f: "DirichletMultinomial", X: Matrix, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    f.check(X)
    alpha, total = f.alpha, f.alpha.sum(axis=-1)

    def cell(rows: slice, t: Array) -> Array:
        cells = stored_cells(X, rows)
        length = row_sums(cells.data, cells.indptr)
        coefficient = log_coefficient(cells, length)
        row = np.flatnonzero(length >= LONG)
        own_t = t.shape[-2] > 1
        if own_t:
            owner, word, times = row_of_cells(cells), cells.indices, cells.data
        else:  # one t for all rows: each distinct cell once
            word, times, count = distinct_cells(cells)
        out: Any = 0.0
        for c in range(len(alpha)):
            tc = t[..., c]  # (..., n or 1)
            if not tc.any():
                continue
            own = tc[..., owner] if own_t else tc
            words = log_gamma_difference(alpha[c, word], own * times)
            words = row_sums(words, cells.indptr) if own_t else shared_sums(count, words)
            document = words + tc * coefficient
            document -= log_gamma_difference(total[c], tc * length)
            if len(row):
                own = t[..., row, :] if t.shape[-2] == len(length) else t
                document[..., row] = power_moment(
                    cells[row], length[row], alpha[[c]], own[..., [c]]
                )[..., 0]
            out = out + document
        return out

    width = max(1, X.nnz // max(1, X.shape[0])) if sparse.issparse(X) else X.shape[1]
    return cgf_by_rows(cell, X.shape[0], width, t)


def density_cumulants(f: "DirichletMultinomial", X: Matrix, seen: int) -> Array:
    """(5, N, C), as in `DensityCumulants`: derivatives of `cgf`, each distinct cell once."""
    f.check(X)
    cells = stored_cells(X, slice(None))
    length, which = np.unique(row_sums(cells.data, cells.indptr), return_inverse=True)
    word, times, count = distinct_cells(cells)
    words = log_gamma_derivatives(f.alpha[:, word], times, seen)
    total = f.alpha.sum(axis=-1)[:, None]
    out = shared_sums(count, words) - log_gamma_derivatives(total, length, seen)[..., which]
    out[0] += log_coefficient(cells, length[which])
    return np.moveaxis(out, 1, -1)
