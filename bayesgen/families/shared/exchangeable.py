r"""Draws for sparse rows: columns with equal pseudo-counts are exchangeable, so few are needed.

The parameters of such columns are independent with one distribution. Whatever k of them a row
holds, its density is distributed as if it held the first k. All rows may share the draws of these,
where only the distribution of each row on its own is asked for.

What no row holds enters a row of bits as a sum of log Beta variables, distributed as a sum of few
Gamma variables: -log Beta(p, q) is a sum of independent variables
:math:`X_i`, i = 0, 1, .., with cgf :math:`\log\frac{(p+i)(p+q+i-t)}{(p+q+i)(p+i-t)}`. For q = 1
that is an exponential variable of rate p; for q < 1, X_i is exponential of rate p + i with
probability q/(p + q + i), and else 0.

Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2 (1995), chapter 25,
for the products of Beta variables; the terms follow from the product formula of the gamma function.
"""

from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, distinct_pairs, draw_log_beta

_LARGE = 128.0  # p from which -log Beta(p, q), q < 1, is nearly Gamma(q)/(p + (q - 1)/2)


def first_of_equals(X: Any, a: Array, b: Array) -> tuple[Any, Array, Array]:
    """Move the cells of each row to the first of the columns with equal pseudo-counts.

    Parameters
    ----------
    X : (N, D) sparse matrix without stored zeros
    a, b : (D,) pseudo-counts

    Returns
    -------
    cells : (N, S) sparse matrix
        The same cells.
    held, rest : (S,) and (D - S,) arrays of int
        Columns whose pseudo-counts those of `cells` have, and those that no row needs.
    """
    X = X.tocsr()
    _, group = distinct_pairs(a, b)
    columns = np.argsort(group, kind="stable")
    first = np.searchsorted(group[columns], np.arange(group.max(initial=-1) + 2))
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    key = row * len(first) + group[X.indices]
    order = np.argsort(key, kind="stable")
    key = key[order]
    place = np.arange(len(key)) - np.searchsorted(key, key)  # among the row's of the group
    column = columns[first[key % len(first)] + place]
    used = np.zeros(X.shape[1], dtype=bool)
    used[column] = True
    at = (np.cumsum(used) - 1)[column]
    cells = sparse.csr_matrix((X.data[order], at, X.indptr), shape=(X.shape[0], used.sum()))
    return cells, np.flatnonzero(used), np.flatnonzero(~used)


def sum_of_log_betas(rng: Any, p: Array, q: Array, n: int) -> Array:
    """(n,) draws of the sum of log Beta(p, q) variables, p and q (D,); many of which are equal.

    Exact for whole q; otherwise mean and variance of the part behind _LARGE are right to 6e-6 and
    2e-5 of themselves.
    """
    (p, q), many = distinct_pairs(p, q)
    many = np.bincount(many)
    whole = np.floor(q)
    part = q - whole
    more = np.where(part > 0, np.maximum(0.0, np.ceil(_LARGE - p - whole)), 0.0)
    series = whole + more + 1 < many  # fewer draws than one for each variable
    out = np.zeros(n)
    one_by_one = np.repeat(p[~series], many[~series]), np.repeat(q[~series], many[~series])
    for draws in row_blocks(n, 4 * len(one_by_one[0])):
        size = draws.stop - draws.start
        out[draws] = draw_log_beta(rng, *one_by_one, size).sum(axis=1)
    p, q, many, whole, part = (v[series] for v in (p, q, many, whole, part))
    start = np.repeat(np.cumsum(whole) - whole, whole.astype(np.intp))
    rate, which = np.unique(
        np.repeat(p, whole.astype(np.intp)) + np.arange(len(start)) - start, return_inverse=True
    )
    times = np.bincount(which, np.repeat(many, whole.astype(np.intp)), len(rate))
    for draws in row_blocks(n, 4 * len(rate)):
        size = (draws.stop - draws.start, len(rate))
        out[draws] -= rng.standard_gamma(times, size=size) @ (1 / rate)
    left = part > 0
    (p, q), which = distinct_pairs((p + whole)[left], part[left])
    for p0, q0, k in zip(p, q, np.bincount(which, many[left]), strict=True):
        while p0 < _LARGE:
            jumps = rng.binomial(int(k), q0 / (p0 + q0), size=n)
            out -= np.where(jumps, rng.standard_gamma(np.maximum(jumps, 1)), 0.0) / p0
            p0 += 1.0
        out -= rng.standard_gamma(k * q0, size=n) / (p0 + (q0 - 1) / 2)
    return out
