"""Urns of each document: sums of log rising factorials of how often its n-grams occur."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled
from bayesgen.numerics.kernels.gamma import log_gamma_difference, log_rising_table
from bayesgen.numerics.kernels.threads import over_blocks

Array = np.ndarray

_MOST = 16  # counts that are looked up, where there are so many tokens for each n-gram


def log_masses(
    gram: Array,
    lengths: Array,
    context: Array,
    is_unknown: Array,
    cell: Array,
    total: Array,
    unknown: Array,
) -> Array:
    """(N, C) log masses of documents: rising factorials of cells, over those of contexts.

    Parameters
    ----------
    gram : int (T,)
        n-gram of each token of all documents.
    lengths : (N,)
    context : int (U,) of each n-gram, in order
    is_unknown : bool (U,), n-grams that end in a token outside the vocabulary
    cell, total : (U, C), (M, C) pseudo-counts
    unknown : (C,)
        What is added to the total of a context after which a document has an unknown token.
    """
    ends = np.cumsum(lengths)
    first = np.concatenate([[0], ends]).astype(np.int64)
    most = 1 + min(_MOST, len(gram) // max(1, len(cell)))
    tables = tuple(log_rising_table(np.ascontiguousarray(a), most) for a in (cell, total))
    out = np.zeros((len(lengths), cell.shape[1]))

    def score(start: int, stop: int) -> None:
        own = first[start : stop + 1], out[start:stop]
        _score(gram, *own, context, is_unknown, cell, total, unknown, *tables)

    for _ in over_blocks(score, len(lengths), 1 + len(gram) // max(1, len(lengths)), most=32):
        pass
    return out


@compiled
def _score(  # pragma: no cover - compiled
    gram: Array,
    first: Array,
    out: Array,
    context: Array,
    is_unknown: Array,
    cell: Array,
    total: Array,
    unknown: Array,
    cells: Array,
    totals: Array,
) -> None:
    n, drawn = np.zeros(len(cell), np.int64), np.zeros(len(total), np.int64)
    odd = np.zeros(len(total), np.bool_)  # contexts before an unknown token
    for i in range(len(out)):
        for s in range(first[i], first[i + 1]):
            g = gram[s]
            n[g] += 1
            drawn[context[g]] += 1
            odd[context[g]] |= is_unknown[g]
        for s in range(first[i], first[i + 1]):
            g = gram[s]
            k, many = context[g], n[g]
            if many:
                for c in range(out.shape[1]):
                    if many < cells.shape[1]:
                        out[i, c] += cells[g, many, c]
                    else:
                        out[i, c] += log_gamma_difference(cell[g, c], float(many))
                n[g] = 0
            many = drawn[k]
            if many:
                for c in range(out.shape[1]):
                    if odd[k]:
                        out[i, c] -= log_gamma_difference(total[k, c] + unknown[c], float(many))
                    elif many < totals.shape[1]:
                        out[i, c] -= totals[k, many, c]
                    else:
                        out[i, c] -= log_gamma_difference(total[k, c], float(many))
                drawn[k], odd[k] = 0, False
