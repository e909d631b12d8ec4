"""Documents drawn token by token: by urns, or from the rows of a table.

Polya's urn: after context h a token has weight alpha + its training count after h + how often it
followed h in this very document. No table is drawn, and a document has exactly the predictive.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.shared.ngrams import START
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

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
