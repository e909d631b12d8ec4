"""Context trees: their weights, draws, densities, and documents under given ones.

A tree and its tables are one array (context, token): the probabilities of a leaf, 0 of all else.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from bayesgen.families.conjugate.context_tree.cumulants import log_mixture, of_prior
from bayesgen.families.shared.densities import log_dirichlet_density
from bayesgen.families.shared.suffixes import DocumentLevel, document_levels
from bayesgen.numerics.rows import dot_log, row_blocks, row_sums
from bayesgen.numerics.special import (
    Array,
    draw_dirichlet,
    draw_log_gamma,
    log_gamma_difference,
    log_sum_exp,
)

if TYPE_CHECKING:
    from bayesgen.families.conjugate.context_tree.family import ContextTree

_LEFT = 1e-12  # of a probability; less is rounding


class Weights(NamedTuple):
    """Of contexts of one length; the last column of each stands for what was never seen."""

    counts: Array  # (C, G + 1)
    total: Array  # (C, H + 1)
    log_odds: Array  # (C, H + 1) of being a leaf, given that no suffix is one


def weigh(f: "ContextTree") -> tuple[list[Weights], Array]:
    """Weights of contexts of 0 .. D tokens, and the log evidence of each class (C,)."""
    cell, log_leaf, log_split = f.strength[:, None] * f.base, np.log(f.leaf), np.log1p(-f.leaf)
    out: list[Weights] = []
    counts, longer = f.counts, np.empty((len(f.leaf), 0))
    for k in range(f.order - 1, -1, -1):
        level = f.levels[k]
        total = level.index.totals(counts)
        token = level.index.grams[:, -1]
        log_p = level.index.totals(log_gamma_difference(cell[:, token], counts))
        log_p -= log_gamma_difference(f.strength[:, None], total)
        if k == f.order - 1:
            log_odds, unseen, log_sum = (
                np.full(total.shape, np.inf),
                np.full(len(f.leaf), np.inf),
                log_p,
            )
        else:
            unseen = log_leaf - log_split
            split = level.sum_of_longer(longer)
            log_odds = unseen[:, None] + log_p - split
            log_sum = log_mixture(unseen[:, None], log_p, split)
        out.insert(
            0,
            Weights(
                np.pad(counts, ((0, 0), (0, 1))),
                np.pad(total, ((0, 0), (0, 1))),
                np.hstack([log_odds, unseen[:, None]]),
            ),
        )
        if k:
            counts, longer = f.levels[k - 1].counts_of_longer(counts), log_sum
    return out, log_sum.sum(axis=1)  # of one context, or of none


def leaf_probabilities(f: "ContextTree") -> Array:
    """(C, M) that each context is a leaf."""
    reached = np.ones((len(f.leaf), len(f.levels[0].index.starts)))
    out = []
    for level, own in zip(f.levels, f.weights, strict=True):
        z = own.log_odds[:, :-1]
        out.append(reached * expit(z))
        reached = (reached * expit(-z))[:, level.context]
    return np.concatenate(out, axis=1)


def draw(f: "ContextTree", rng: np.random.Generator, n: int) -> Array:
    """(n, C, M, V + 1) leaves of trees with their tables."""
    out = np.zeros((n, len(f.leaf), f.offsets[-1], f.n_tokens + 1))
    alpha = f.concentrations()
    for c in range(len(f.leaf)):
        reached = np.ones((n, len(f.levels[0].index.starts)), dtype=bool)
        for level, own, start in zip(f.levels, f.weights, f.offsets, strict=False):
            leaf = reached & (rng.random(reached.shape) < expit(own.log_odds[c, :-1]))
            which, context = np.nonzero(leaf)
            tables = draw_dirichlet(rng, alpha[c, start + context], 1)[0]
            out[which, c, start + context] = np.maximum(tables, np.finfo(np.float64).tiny)
            reached = (reached & ~leaf)[:, level.context]
    return out


def draw_log_density(f: "ContextTree", rng: np.random.Generator, X: Array, n: int) -> Array:
    """(n, N, C): leaves among the contexts that documents visit, and of their tables what they use.

    The probabilities of some tokens and of all others together are a Dirichlet variable too.
    """
    out = np.zeros((n, len(X), len(f.leaf)))
    gamma = rng.spawn(1)[0]  # so many shapes: quantiles of quasi-random numbers would take longer
    docs = document_levels(X, f.order, f.n_tokens)
    for c in range(len(f.leaf)):
        leaf = np.zeros((n, 0), dtype=bool)
        reached = np.ones((n, len(docs[0].docs.run_row)), dtype=bool)
        for k, (level, weights) in enumerate(zip(docs, f.weights, strict=True)):
            own = level.docs
            if k:
                reached = (reached & ~leaf)[:, docs[k - 1].run]
            context, gram = f.levels[k].find(own.grams)
            context = context[own.run_gram]
            leaf = reached & (gamma.random(reached.shape) < expit(weights.log_odds[c, context]))
            mass = f.strength[c] * f.base[c, own.grams[own.gram, -1]]
            mass += weights.counts[c, gram[own.gram]]
            rest = f.strength[c] + weights.total[c, context] - row_sums(mass, own.starts)
            rest = np.maximum(rest, np.finfo(np.float64).tiny)
            for r in np.flatnonzero(leaf.any(axis=0)):
                draws, entries = np.flatnonzero(leaf[:, r]), slice(*own.starts[r : r + 2])
                alpha = np.append(mass[entries], rest[r])
                log_g = draw_log_gamma(gamma, alpha, (len(draws), len(alpha)))
                log_p = log_g[:, :-1] - log_sum_exp(log_g)[:, None]
                out[draws, own.run_row[r], c] += log_p @ own.n[entries]
    return out


def log_density(f: "ContextTree", tables: Array) -> Array:
    """(n,) log probabilities of trees with leaves in (n, C, M, V + 1), and density of tables."""
    if tables.shape[2:] != (f.offsets[-1], f.n_tokens + 1):
        raise ValueError(
            f"theta has tables of {tables.shape[2]} contexts, and this family has "
            f"{f.offsets[-1]}; use the posterior from which it came, or `prepared`"
        )
    leaves = tables.sum(axis=-1) > 0.5
    out = np.zeros(len(tables))
    alpha = f.concentrations()
    reached = np.ones((len(tables), len(f.leaf), len(f.levels[0].index.starts)), dtype=bool)
    for level, own, start in zip(f.levels, f.weights, f.offsets, strict=False):
        z = own.log_odds[:, :-1]
        leaf = leaves[:, :, start : start + z.shape[1]]
        terms = np.where(leaf, -np.logaddexp(0, -z), -np.logaddexp(0, z))
        out += np.where(reached, terms, np.where(leaf, -np.inf, 0.0)).sum(axis=(1, 2))
        reached = (reached & ~leaf)[:, :, level.context]
    which, c, context = np.nonzero(leaves)
    terms = log_dirichlet_density(tables[which, c, context], alpha[c, context])
    out += np.bincount(which, terms, len(out))
    return out


# -- documents under given trees -----------------------------------------------------------------


def path(f: "ContextTree", grams: Array) -> Array:
    """(n, k) positions among `contexts` of the contexts of n-grams (n, k), from short to long.

    -1 for a context that has not been seen.
    """
    width = grams.shape[1]
    out = np.empty(grams.shape, dtype=np.int64)
    for k in range(width):
        context, _ = f.levels[k].find(grams[:, width - 1 - k :])
        out[:, k] = np.where(context >= 0, f.offsets[k] + context, -1)
    return out


def log_likelihood(f: "ContextTree", X: Array, tables: Array) -> Array:
    """(..., N, C) of documents under tables (..., C, M, V + 1)."""
    *lead, n_classes, n_contexts, width = tables.shape
    if (n_contexts, width) != (f.offsets[-1], f.n_tokens + 1):
        raise ValueError(
            f"theta has tables of {n_contexts} contexts and {width} tokens, but this family has "
            f"{f.offsets[-1]} and {f.n_tokens + 1}; use the posterior from which it came"
        )
    flat = tables.reshape(-1, n_classes, n_contexts, width)
    mass = flat.sum(axis=-1)
    out = np.empty((len(flat), len(X), n_classes))
    cells = f.order * (sum(map(len, X)) // max(1, len(X)) + 1)
    for rows in row_blocks(len(X), cells):
        docs = document_levels(X[rows], f.order, f.n_tokens)
        nodes, away = path(f, docs[-1].docs.grams), _unseen(f, docs)
        n = n_classes * (len(nodes) + docs[0].docs.n_rows)
        for draws in row_blocks(len(flat), n):
            out[draws, rows] = _given(f, docs, nodes, flat[draws], mass[draws])
            out[draws, rows] += _integrated(away, mass[draws])
    return out.reshape(*lead, len(X), n_classes)


def _given(
    f: "ContextTree", docs: list[DocumentLevel], nodes: Array, tables: Array, mass: Array
) -> Array:
    """(S, N, C) the factors of tokens whose leaf has been seen."""
    whole = docs[-1].docs
    token = whole.grams[:, -1]
    p = np.zeros((*mass.shape[:2], len(token)))
    for at in nodes.T:
        seen = at >= 0
        p[..., seen] += tables[:, :, at[seen], token[seen]]
    left = 1.0 - _above(mass, nodes)
    left[..., nodes[:, -1] >= 0] = 0.0  # nothing is below the longest context
    away = left == 1  # no leaf among the contexts that were seen
    p += np.where(away | (left < _LEFT), 0.0, left) * f.base[:, token]
    p[away] = 1.0
    matrix = sparse.csr_matrix((whole.n, (whole.row, whole.gram)), (whole.n_rows, len(token)))
    return dot_log(matrix, p)


def _above(mass: Array, nodes: Array) -> Array:
    """(S, C, n) sums of `mass` (S, C, M) over the contexts `nodes` (n, k), -1 for none."""
    out = np.zeros((*mass.shape[:2], len(nodes)))
    for at in nodes.T:
        seen = at >= 0
        out[..., seen] += mass[:, :, at[seen]]
    return out


class _Unseen(NamedTuple):
    """Contexts that documents visit and nobody has seen, those whose parent has been seen."""

    nodes: Array  # (T, D) seen contexts above each, -1 for none
    change: Array  # (C, T) log probability of what is below
    rows: sparse.csr_matrix  # (N, T) 1 where a document visits it


def _unseen(f: "ContextTree", docs: list[DocumentLevel]) -> _Unseen:
    changes = [of_prior(f, docs, c) for c in range(len(f.leaf))]
    nodes, change, row = [], [], []
    for k, level in enumerate(docs):
        own = level.docs
        at = path(f, own.grams[own.run_gram])
        top = np.flatnonzero((at[:, k] < 0) & ((at[:, k - 1] >= 0) if k else True))
        nodes.append(np.pad(at[top, :k], ((0, 0), (0, f.order - 1 - k)), constant_values=-1))
        change.append(np.array([of_class[k][top] for of_class in changes]))
        row.append(own.run_row[top])
    rows = np.concatenate(row)
    visits = (np.ones(len(rows)), (rows, np.arange(len(rows))))
    shape = (docs[0].docs.n_rows, len(rows))
    return _Unseen(
        np.concatenate(nodes), np.concatenate(change, axis=1), sparse.csr_matrix(visits, shape)
    )


def _integrated(away: _Unseen, mass: Array) -> Array:
    """(S, N, C) the factors of contexts that nobody has seen, and that are below no leaf."""
    terms = np.where(_above(mass, away.nodes) == 0, away.change, 0.0)
    flat = terms.reshape(int(np.prod(mass.shape[:2])), terms.shape[-1]).T
    out: Array = (away.rows @ flat).T.reshape(*mass.shape[:2], away.rows.shape[0])
    return np.swapaxes(out, 1, 2)
