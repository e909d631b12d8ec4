"""Compiled passes over documents of word counts, and over urns of n-grams.

Documents are CSR blocks, each cell once: `indptr` int64, `words` int32, `counts` float64.
"""

import math

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled, compiled_sums

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
        length, log_factorials = _sum_counts(counts[indptr[i] : indptr[i + 1]])
        if not length >= 0:
            coefficients[:] = np.nan
            return
        for s in range(indptr[i], indptr[i + 1]):
            totals[c, np.uint32(words[s])] += w * counts[s]
        coefficients[c] += w * (math.lgamma(length + 1.0) - log_factorials)


@compiled_sums
def _sum_counts(counts: Array) -> tuple[float, float]:  # pragma: no cover - compiled
    """Return the sum of counts, NaN if one is missing or below 0, and that of log factorials."""
    length, log_factorials, n_others = 0.0, 0.0, 0
    for s in range(len(counts)):  # without a branch: several at a time
        n = counts[s]
        k = np.int32(n if (n >= 0) & (n < len(LOG_FACTORIAL)) else 0.0)
        n_others += k != n
        length += n
        log_factorials += LOG_FACTORIAL[np.uint32(k if k == n else 0)]
    for n in counts[: len(counts) if n_others else 0]:
        if not n >= 0:
            return np.nan, np.nan
        if n >= len(LOG_FACTORIAL) or n != np.floor(n):
            log_factorials += math.lgamma(n + 1.0)
    return length, log_factorials


@compiled
def sum_word_terms(  # pragma: no cover - compiled
    indptr: Array, words: Array, counts: Array, terms: Array, sums: Array, n_others: Array
) -> Array:
    """Add to (N, C) the sums of ``terms[count, word]``; NaN if a count is missing or below 0.

    Counts that are fractional or above K add nothing: they are the others, counted in (N,).

    Parameters
    ----------
    terms : (K + 1, D, C)
        Terms of the counts 0 .. K; those of 0 are 0.

    Returns
    -------
    int64 (M,)
        Cells of the others.
    """
    most, width = len(terms) - 1, np.uint32(terms.shape[1])
    table = terms.reshape(-1, terms.shape[2])
    place = np.empty(len(counts) + 7, np.uint32)
    others = np.empty(len(counts), np.int64)
    end = 0
    for i in range(len(sums)):
        row = sums[i]
        start, stop = indptr[i], indptr[i + 1]
        w, x = words[start:stop], counts[start:stop]
        n_unequal = 0
        for s in range(len(w)):  # without a branch: several at a time
            k = np.int32(x[s] if (x[s] >= 0) & (x[s] <= most) else 0.0)
            n_unequal += k != x[s]
            place[s] = np.uint32(k if k == x[s] else 0) * width + np.uint32(w[s])
        if n_unequal:
            for s in range(start, stop):
                if not counts[s] >= 0:
                    row[0] = np.nan
                elif counts[s] > most or counts[s] != np.floor(counts[s]):
                    others[end] = s
                    end += 1
                    n_others[i] += 1
        place[stop - start : stop - start + 7] = 0  # a term of 0
        for s in range(0, stop - start, 8):  # at a time, as C may be too few for the processor
            p = place[s : s + 8]
            a, b, c, d = table[p[0]], table[p[1]], table[p[2]], table[p[3]]
            e, f, g, h = table[p[4]], table[p[5]], table[p[6]], table[p[7]]
            for j in range(len(row)):
                row[j] += ((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j]))
    return others[:end].copy()


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
