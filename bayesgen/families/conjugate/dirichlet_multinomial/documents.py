"""Masses of documents of any length, of which each is a CSR row of word counts.

Sums of log-gammas cancel in long documents. There numerator and denominator of a multinomial are
masses of independent counts and of their total, each of them free of cancellation.
"""

import numpy as np
from scipy import sparse

from bayesgen.families.shared.word_counts import row_of_cells
from bayesgen.numerics.rows import exact_parts, pattern, row_sums, sum_except
from bayesgen.numerics.special import (
    Array,
    log1p,
    log_factorial,
    log_negative_binomial,
    log_poisson,
    log_poisson_power,
)

LONG = 2.0**14  # documents of this length and more are scored without cancellation


def log_coefficient(cells: sparse.csr_matrix, length: Array) -> Array:
    """(n,) log multinomial coefficients."""
    each = np.zeros(len(cells.data))
    several = np.flatnonzero(cells.data != 1)  # most words of a text occur once
    each[several] = log_factorial(cells.data[several])
    return log_factorial(length) - row_sums(each, cells.indptr)


def log_multinomial(cells: sparse.csr_matrix, length: Array, p: Array) -> Array:
    """(..., n, C) prod_j Poisson(x_j | L p_j) / Poisson(L | L): no cancellation in long documents.

    The words that do not occur contribute exp(-L sum of their p).
    """
    out = -length[:, None] * sum_except(pattern(cells), exact_parts(p))
    out -= log_poisson(length, length)[:, None]
    expected = length[row_of_cells(cells)]
    for index in np.ndindex(p.shape[:-1]):
        words = log_poisson(cells.data, expected * p[index][cells.indices])
        out[(*index[:-1], slice(None), index[-1])] += row_sums(words, cells.indptr)
    return out


def power_moment(cells: sparse.csr_matrix, length: Array, alpha: Array, t: Array | None) -> Array:
    """(..., n, C) log E[p(x | theta_c)^t_c] of long documents, t (..., n or 1, C); None is 1.

    Given the rates of independent Poisson counts, the counts given their total are multinomial;
    with Gamma(alpha_j, b) rates the moments of numerator and denominator are known, for any b.
    """
    total = alpha.sum(axis=-1)
    b = total / length[:, None]  # (n, C)
    power = t if t is not None else np.ones(len(alpha))
    with np.errstate(invalid="ignore", divide="ignore"):  # t outside the domain
        absent = sum_except(pattern(cells), exact_parts(alpha)) * log1p(power / b)
    owner = row_of_cells(cells)
    columns = []
    for c in range(len(alpha)):
        a, n = alpha[c, cells.indices], cells.data
        if t is None:
            words = log_negative_binomial(n, a, b[owner, c])
            document = log_negative_binomial(length, total[c], b[:, c])
        else:
            tc = t[..., c]
            own = tc[..., owner] if tc.shape[-1] == len(length) else tc
            words = log_poisson_power(n, a, b[owner, c], own)
            document = log_poisson_power(length, total[c], b[:, c], tc)
        columns.append(row_sums(words, cells.indptr) - document)
    return np.stack(columns, axis=-1) - absent
