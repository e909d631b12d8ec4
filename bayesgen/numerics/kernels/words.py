"""Compiled passes over documents of word counts, and over urns of n-grams.

Documents are CSR blocks, each cell once: `indptr` int64, `words` int32, `counts` float64.
"""

import math

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

LOG_FACTORIAL = np.array([math.lgamma(k + 1.0) for k in range(256)])
_STIRLING_FROM = 32.0


@compiled
def add_words(  # pragma: no cover - compiled
    indptr: Array,
    words: Array,
    counts: Array,
    y: Array,
    weight: Array,
    totals: Array,
    coefficients: Array,
) -> None:
    """Add documents to sums of counts (C, D) and of log multinomial coefficients (C,).

    The coefficients become NaN if a count is missing or below 0.
    """
    for i in range(len(y)):
        c, w = y[i], weight[i] if len(weight) else 1.0
        length = log_factorials = 0.0
        for s in range(indptr[i], indptr[i + 1]):
            n = counts[s]
            if not n >= 0:
                coefficients[:] = np.nan
                return
            totals[c, words[s]] += w * n
            length += n
            log_factorials += _log_factorial(n)
        coefficients[c] += w * (_log_factorial(length) - log_factorials)


@compiled
def _log_factorial(n: float) -> float:  # pragma: no cover - compiled
    if n < len(LOG_FACTORIAL) and n == int(n):
        return float(LOG_FACTORIAL[int(n)])
    return math.lgamma(n + 1.0)


@compiled
def sum_word_terms(  # pragma: no cover - compiled
    indptr: Array, words: Array, counts: Array, terms: Array, sums: Array
) -> int:
    """Write to (N, C) the sums of ``terms[word, count]``; NaN if a count is missing or below 0.

    A fractional count has the term of the whole count below it, and one above K that of K.

    Parameters
    ----------
    terms : (D, K + 1, C)
        Terms of the counts 0 .. K.

    Returns
    -------
    int
        How many counts had the term of another one.
    """
    n_others, most, n_classes = 0, float(terms.shape[1] - 1), terms.shape[2]
    for i in range(len(sums)):
        for c in range(n_classes):
            sums[i, c] = 0.0
        for s in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            n = counts[s]
            k = np.uint64(min(n, most) if n >= 0 else 0)
            n_others += k != n
            if not n >= 0:
                for c in range(n_classes):
                    sums[i, c] = np.nan
                break
            row = terms[np.uint32(words[s]), k]
            for c in range(n_classes):
                sums[i, c] += row[c]
    return n_others


# ------------------------------------------------------------------------------------------------
# Urns of each document: sums of log rising factorials of how often its n-grams occur.


@compiled
def _log_rising(a: float, n: int) -> float:  # pragma: no cover - compiled
    """Return log Gamma(a + n) - log Gamma(a), without cancellation."""
    if n < _STIRLING_FROM:
        total = 0.0
        for k in range(n):
            total += math.log(a + k)
        return total
    if a < _STIRLING_FROM:
        return math.lgamma(a + n) - math.lgamma(a)
    tail = _stirling_tail(a + n) - _stirling_tail(a)
    return n * math.log(a) + (a + n - 0.5) * math.log1p(n / a) - n + tail


@compiled
def _stirling_tail(z: float) -> float:  # pragma: no cover - compiled
    """Return what Stirling's formula leaves of log Gamma(z), z >= 32."""
    r = 1.0 / z
    w = r * r
    return r * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680)))


@compiled
def sum_urns(  # pragma: no cover - compiled
    gram: Array,
    first: Array,
    context: Array,
    cell: Array,
    total: Array,
    log_mass: Array,
) -> None:
    """Add log masses of documents: rising factorials of cells, over those of contexts.

    Parameters
    ----------
    gram : int (T,)
        n-gram of each token of all documents.
    first : int (N + 1,)
        Where each document begins.
    context : int (U,) of each n-gram, in order
    cell, total : (U, C), (M, C) pseudo-counts
    log_mass : (N, C), changed in place
    """
    n, drawn = np.zeros(len(cell), np.int64), np.zeros(len(total), np.int64)
    for i in range(len(log_mass)):
        for s in range(first[i], first[i + 1]):
            g = gram[s]
            n[g] += 1
            drawn[context[g]] += 1
        for s in range(first[i], first[i + 1]):
            g = gram[s]
            k = context[g]
            if n[g]:
                for c in range(log_mass.shape[1]):
                    log_mass[i, c] += _log_rising(cell[g, c], n[g])
                n[g] = 0
            if drawn[k]:
                for c in range(log_mass.shape[1]):
                    log_mass[i, c] -= _log_rising(total[k, c], drawn[k])
                drawn[k] = 0
