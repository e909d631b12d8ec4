"""Documents drawn token by token: a context falls back on the shorter one in proportion."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.shared.ngrams import START
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.approximate.interpolated_markov.family import InterpolatedMarkov


def draw(f: "InterpolatedMarkov", rng: np.random.Generator, y: Array) -> Array:
    """(N,) documents of the classes `y`, all in step."""
    y = np.asarray(y)
    out = np.empty(len(y), dtype=object)
    back = f.order - 1
    left_over = (np.maximum(w.counts[:, :-1] - f.discount[:, None], 0.0) for w in f.weights)
    above = [np.pad(np.cumsum(n, axis=1), ((0, 0), (1, 0))) for n in left_over]
    for rows in row_blocks(len(y), f.length):
        own = y[rows]
        text = np.full((len(own), back + f.length), START, dtype=np.int64)
        for i in range(f.length):
            before = text[:, i : i + back]
            left = np.arange(len(own))
            while len(left):  # an unknown token is drawn again
                token = _next(f, rng, own[left], before[left], above)
                text[left, back + i] = token
                left = left[token == f.n_tokens]
        for k, document in enumerate(text[:, back:]):
            out[rows.start + k] = document.copy()
    return out


def _next(
    f: "InterpolatedMarkov", rng: np.random.Generator, y: Array, before: Array, above: list[Array]
) -> Array:
    """(n,) tokens after contexts (n, D) in classes `y`; V is the token outside the vocabulary.

    `above` are running sums over the n-grams of each length of their counts less the discount.
    """
    token = rng.integers(f.n_tokens + 1, size=len(y))
    left = np.arange(len(y))
    for k in range(f.order - 1, -1, -1):
        level, own = f.levels[k], f.weights[k]
        c = y[left]
        *_, at = level.index.tree.path(before[left, f.order - 1 - k :])
        b = f.concentrations(k)[c, 0]
        u = rng.random(len(left)) * (b + own.total[c, at]) - b - own.discounted[c, at]
        mine = np.flatnonzero(u >= 0)
        edges = np.append(level.index.starts, len(level.index.grams))
        for k_class in np.unique(c[mine]):
            some = mine[c[mine] == k_class]
            first, last = edges[at[some]], edges[at[some] + 1] - 1
            upto = above[k][k_class]
            gram = np.searchsorted(upto, upto[first] + u[some], side="right") - 1
            token[left[some]] = level.index.grams[np.clip(gram, first, last), -1]
        left = np.delete(left, mine)
    return token
