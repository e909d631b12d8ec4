"""Documents drawn token by token: by urns, or from the rows of a table.

Polya's urn: after context h a token has weight alpha + its training count after h + how often it
followed h in this very document. No table is drawn, and a document has exactly the predictive.

Draws of the log probabilities of documents, without the tables that they do not need.

Cumulants of the log probabilities of whole documents, theta integrated out.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from bayesgen.families.shared.density_cumulants import log_gamma_derivatives
from bayesgen.families.shared.ngrams import START, UNKNOWN, DocumentCounts, first_of_contexts
from bayesgen.numerics.rows import cgf_by_rows, row_blocks, row_sums
from bayesgen.numerics.special import Array, draw_log_gamma, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov


def draw(
    f: "DirichletMarkov",
    rng: np.random.Generator,
    y: Array,
    rows_of_theta: Callable[[slice, Array], Array] | None = None,
) -> Array:
    """(N,) documents of the classes `y`, all in step.

    Parameters
    ----------
    rows_of_theta : callable, optional
        (rows, contexts) to the probabilities of the next token, (n, V); a context that theta does
        not tell is at -1, and one without probabilities has zeros: an urn stands for both.
    """
    y = np.asarray(y)
    out = np.empty(len(y), dtype=object)
    back = f.order - 1
    width = f.length if rows_of_theta is None else max(f.length, f.n_tokens)
    for rows in row_blocks(len(y), width):
        text = np.full((len(y[rows]), back + f.length), START, dtype=np.int64)
        for i in range(f.length):
            new = _next(f, rng, y[rows], text, i)
            if rows_of_theta is not None:
                at = f.index.context_tree.find(text[:, i : i + back])
                p = np.cumsum(rows_of_theta(rows, at), axis=-1)
                drawn = (p <= rng.random(len(p))[:, None] * p[:, -1:]).sum(axis=-1)
                new = np.where((at >= 0) & (p[:, -1] > 0), drawn, new)
            text[:, back + i] = new
        for k, document in enumerate(text[:, back:]):
            out[rows.start + k] = document.copy()
    return out


def _next(f: "DirichletMarkov", rng: np.random.Generator, y: Array, text: Array, i: int) -> Array:
    """Token `i` of each document: from the prior, the training counts, or a copy."""
    back = f.order - 1
    same = np.ones((len(y), i), dtype=bool)  # earlier places with the same context
    for k in range(back):
        same &= text[:, k : k + i] == text[:, i + k, None]
    context = f.index.tree.find(text[:, i : i + back])
    prior_sum, count_sum = f.running_sums
    prior, seen = prior_sum[y, -1], f.totals[y, context]
    u = rng.random(len(y)) * (prior + seen + same.sum(axis=1))
    pick = np.floor(u - prior - seen)  # the how-manieth of the earlier places, if >= 0
    new = np.zeros(len(y), dtype=np.int64)
    for c in np.unique(y):
        mine = (y == c) & (u < prior)
        new[mine] = np.searchsorted(prior_sum[c], u[mine], side="right")
        mine = (y == c) & (u >= prior) & (pick < 0)
        below = count_sum[c, f.index.starts[context[mine]]]
        gram = np.searchsorted(count_sum[c], below + (u - prior)[mine], side="right") - 1
        new[mine] = f.grams[np.minimum(gram, len(f.grams) - 1), -1]
    new = np.minimum(new, f.n_tokens - 1)
    if i:
        place = np.argmax(np.cumsum(same, axis=1) > pick[:, None], axis=1)
        new = np.where(pick >= 0, text[np.arange(len(y)), back + place], new)
    return new


_ROUNDING = 1e-12  # of a context's pseudo-counts: no other token is left


def draw_log_density(f: "DirichletMarkov", rng: np.random.Generator, X: Array, n: int) -> Array:
    """(n, N, C) draws, the same tables for all documents.

    Of each context only the tokens that occur are drawn, and all others as one. A token outside the
    vocabulary is integrated out, as in ``log_likelihood``.
    """
    docs = DocumentCounts.count(X, f.order, f.n_tokens)
    known = np.flatnonzero(docs.grams[:, -1] != UNKNOWN)
    grams = docs.grams[known]
    integrated = f._integrated(docs, np.zeros(len(docs.grams), dtype=np.int64))
    out = np.repeat(integrated[None], n, axis=0)
    if not len(grams):
        return out
    starts = np.flatnonzero(first_of_contexts(grams))
    of = np.repeat(np.arange(len(starts)), np.diff([*starts, len(grams)]))
    *_, context, place = f.index.tree.path(grams)
    cell = f.alpha[:, grams[:, -1]] + np.pad(f.counts, ((0, 0), (0, 1)))[:, place]
    total = f.alpha.sum(axis=1)[:, None] + f.totals[:, context[starts]]
    others = total - np.add.reduceat(cell, starts, axis=1)
    left = others > _ROUNDING * total
    place_of = np.zeros(len(docs.grams), dtype=np.int64)
    place_of[known] = np.arange(len(known))
    use = docs.grams[docs.gram, -1] != UNKNOWN
    counts = sparse.csr_matrix(
        (docs.n[use], (docs.row[use], place_of[docs.gram[use]])), shape=(docs.n_rows, len(known))
    )
    for part in row_blocks(n, 4 * cell.size):
        size = part.stop - part.start
        logs = draw_log_gamma(rng, cell, (size, *cell.shape))
        rest = draw_log_gamma(rng, np.where(left, others, 1.0), (size, *others.shape))
        top = np.maximum.reduceat(logs, starts, axis=-1)
        sums = np.add.reduceat(np.exp(logs - top[..., of]), starts, axis=-1)
        sums = np.log(sums + np.where(left, np.exp(rest - top), 0.0)) + top
        logs -= sums[..., of]
        found = counts @ logs.reshape(-1, len(known)).T
        out[part] += found.reshape(docs.n_rows, size, -1).transpose(1, 0, 2)
    return out


def cgf(f: "DirichletMarkov", X: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    docs = DocumentCounts.count(X, f.order, f.n_tokens)
    tables = [docs.terms(cell, total) for cell, total in f.cells(docs)]

    def cell(rows: slice, t: Array) -> Array:
        own = t.shape[-2] > 1
        n_rows = rows.stop - rows.start
        out = np.zeros((*t.shape[:-2], n_rows), dtype=np.result_type(t, np.float64))
        for c, (terms, kind, factor, indptr) in enumerate(tables):
            tc = t[..., c]  # (..., n or 1)
            part = slice(indptr[rows.start], indptr[rows.stop])
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
    out = np.empty((5, len(X), len(f.alpha)))
    for c, (cell, total) in enumerate(f.cells(docs)):
        terms, kind, factor, indptr = docs.terms(cell, total)
        matrix = sparse.csr_matrix((factor, kind, indptr), shape=(len(X), terms.shape[1]))
        a, n = terms
        out[..., c] = (matrix @ log_gamma_derivatives(a, n, seen).T).T
    return out
