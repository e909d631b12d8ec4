"""Draws of the log probabilities of documents, without the tables that they do not need."""

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from bayesgen.families.shared.ngrams import UNKNOWN, DocumentCounts, first_of_contexts
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, draw_log_gamma

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov

_ROUNDING = 1e-12  # of a context's pseudo-counts: no other token is left


def draw_log_density(f: "DirichletMarkov", rng: np.random.Generator, X: Array, n: int) -> Array:
    """(n, N, C) draws, the same tables for all documents.

    Of each context only the tokens that occur are drawn, and all others as one. A token outside the
    vocabulary is held at its mean, as in ``log_likelihood``.
    """
    docs = DocumentCounts.count(X, f.order, f.n_tokens)
    known = np.flatnonzero(docs.grams[:, -1] != UNKNOWN)
    grams = docs.grams[known]
    out = np.repeat(f.held(docs)[None], n, axis=0)
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
