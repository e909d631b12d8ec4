"""Cumulants of the log probabilities of whole documents, theta integrated out.

What a token outside the vocabulary tells is no function of theta: it is held at its mean, as
``log_likelihood`` has it.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from bayesgen.families.shared.density_cumulants import log_gamma_derivatives
from bayesgen.families.shared.ngrams import DocumentCounts
from bayesgen.numerics.rows import cgf_by_rows, row_sums
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov


def cgf(f: "DirichletMarkov", X: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    docs = DocumentCounts.count(X, f.order, f.n_tokens)
    known, held = docs.known, f.held(docs)
    tables = [known.terms(cell, total) for cell, total in f.cells(known)]

    def cell(rows: slice, t: Array) -> Array:
        own = t.shape[-2] > 1
        n_rows = rows.stop - rows.start
        out = np.zeros((*t.shape[:-2], n_rows), dtype=np.result_type(t, np.float64))
        for c, (terms, kind, factor, indptr) in enumerate(tables):
            tc = t[..., c]  # (..., n or 1)
            part = slice(indptr[rows.start], indptr[rows.stop])
            out += tc * held[rows, c]
            if part.start == part.stop or not tc.any():
                continue
            edges = indptr[rows.start : rows.stop + 1] - part.start
            if own:
                a, n = terms[:, kind[part]]
                row = np.repeat(np.arange(n_rows), np.diff(edges))
                out += row_sums(factor[part] * log_gamma_difference(a, tc[..., row] * n), edges)
            else:  # each distinct term once, for all rows
                use, column = np.unique(kind[part], return_inverse=True)
                a, n = terms[:, use]
                values = log_gamma_difference(a, tc * n)
                matrix = sparse.csr_matrix((factor[part], column, edges), shape=(n_rows, len(use)))
                out += (matrix @ values.reshape(-1, len(use)).T).T.reshape(out.shape)
        return out

    t = np.asarray(t)
    shared = t.ndim == 1 or t.shape[-2] == 1
    n_terms = max(terms.shape[1] for terms, *_ in tables) if shared else len(docs.n)
    return cgf_by_rows(cell, len(X), n_terms // max(1, len(X)) + 1, t)


def density_cumulants(f: "DirichletMarkov", X: Array, seen: int) -> Array:
    """(5, N, C), as in `DensityCumulants`."""
    docs = DocumentCounts.count(X, f.order, f.n_tokens)
    known, out = docs.known, np.empty((5, len(X), len(f.alpha)))
    for c, (cell, total) in enumerate(f.cells(known)):
        terms, kind, factor, indptr = known.terms(cell, total)
        matrix = sparse.csr_matrix((factor, kind, indptr), shape=(len(X), terms.shape[1]))
        a, n = terms
        out[..., c] = (matrix @ log_gamma_derivatives(a, n, seen).T).T
    out[0] += f.held(docs)
    return out
