"""Documents drawn token by token, all in step: a leaf, then a token from its urn.

Of the contexts before a token one is the leaf, with the odds that training and this very document
have left; its urn holds the base, the training counts and what the document had after it before.
After each token the odds of all contexts on its path are updated, so that a document has exactly
the predictive. Of given leaves the tables take the place of urns.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from bayesgen.families.conjugate.context_tree.trees import path
from bayesgen.families.shared.ngrams import START
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.context_tree.family import ContextTree


def draw(
    f: "ContextTree", rng: np.random.Generator, y: Array, tables: Array | None = None
) -> Array:
    """(N,) documents of the classes `y`.

    Parameters
    ----------
    tables : (C, M, V + 1) or one for each document (N, C, M, V + 1), optional
        As theta. Contexts that it does not have are integrated out.
    """
    y = np.asarray(y)
    out = np.empty(len(y), dtype=object)
    back, width = f.order - 1, f.length + f.n_tokens
    for rows in row_blocks(len(y), f.order * width):
        own = y[rows]
        text = np.full((len(own), back + f.length), START, dtype=np.int64)
        gain = np.zeros((f.order, len(own), f.length))  # of the log odds, where a token was
        each = None
        if tables is not None:
            each = tables[np.arange(len(y))[rows], own] if tables.ndim > 3 else tables[own]
        for i in range(f.length):
            _append(f, rng, own, text, gain, i, each)
        for k, document in enumerate(text[:, back:]):
            out[rows.start + k] = document.copy()
    return out


def _append(
    f: "ContextTree",
    rng: np.random.Generator,
    y: Array,
    text: Array,
    gain: Array,
    i: int,
    tables: Array | None,
) -> None:
    """Draw token `i` of each document into `text`, and update `gain`."""
    n, back = len(y), f.order - 1
    row = np.arange(n)
    before = text[:, i : i + back]
    same = np.ones((f.order, n, i), dtype=bool)  # earlier places with the same context
    for k in range(1, f.order):
        same[k] = same[k - 1] & (text[:, back - k : back - k + i] == before[:, back - k, None])
    odds, total, counts = _contexts(f, y, before)
    odds += (same * gain[:, :, :i]).sum(axis=2)
    total += f.strength[y] + same.sum(axis=2)
    outside = (f.strength * f.base[:, -1])[y] / total  # of an unknown token, which is not drawn

    fixed = None
    if tables is not None:
        nodes = path(f, np.hstack([before, np.zeros((n, 1), dtype=np.int64)]))
        fixed = np.zeros((n, f.n_tokens + 1))
        for at in nodes.T:
            seen = at >= 0
            fixed[seen] += tables[row[seen], at[seen]]
        odds[nodes.T >= 0] = -np.inf  # no leaf, or its table is in `fixed`
    stop = expit(odds)
    log_here = np.log(np.maximum(stop * (1 - outside), np.finfo(np.float64).tiny))
    log_here[stop == 0] = -np.inf
    log_here[1:] += np.cumsum(-np.logaddexp(0, odds[:-1]), axis=0)
    here = np.exp(log_here)
    upto = np.cumsum(here, axis=0)
    level = (upto <= rng.random(n) * upto[-1]).sum(axis=0)
    level = np.minimum(level, f.order - 1)

    cell = (f.strength[:, None] * f.base)[y, :-1]  # (n, V)
    urn = cell + counts[level, row]
    for j in range(i):
        again = same[level, row, j]
        urn[row[again], text[again, back + j]] += 1.0
    if fixed is not None:
        known = fixed.sum(axis=1) > 0
        urn[known] = fixed[known, :-1]
    sums = np.cumsum(urn, axis=1)
    token = (sums <= rng.random(n)[:, None] * sums[:, -1:]).sum(axis=1)
    token = np.minimum(token, f.n_tokens - 1)
    text[:, back + i] = token

    again = text[None, :, back : back + i] == token[:, None]
    urn_of_token = cell[row, token] + counts[:, row, token] + (same & again).sum(axis=2)
    share = urn_of_token / total
    below = share[-1]
    for k in range(f.order - 2, -1, -1):
        gain[k, :, i] = np.log(share[k]) - np.log(below)
        below = stop[k] * share[k] + (1 - stop[k]) * below


def _contexts(f: "ContextTree", y: Array, before: Array) -> tuple[Array, Array, Array]:
    """Log odds and totals (D + 1, n), and counts (D + 1, n, V), of all contexts of documents."""
    n, back = before.shape
    odds, total = np.empty((2, f.order, n))
    counts = np.zeros((f.order, n, f.n_tokens))
    for k, (level, own) in enumerate(zip(f.levels, f.weights, strict=True)):
        *_, at = level.index.tree.path(before[:, back - k :])
        odds[k], total[k] = own.log_odds[y, at], own.total[y, at]
        edges = np.append(level.index.starts, len(level.index.grams))
        seen = np.flatnonzero(at >= 0)
        many = (edges[1:] - edges[:-1])[at[seen]]
        row = np.repeat(seen, many)
        gram = np.arange(many.sum()) + np.repeat(edges[at[seen]] - np.cumsum(many) + many, many)
        counts[k, row, level.index.grams[gram, -1]] = own.counts[y[row], gram]
    return odds, total, counts
