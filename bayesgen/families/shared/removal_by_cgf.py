"""The predictive of training rows without themselves, from the cgf at negative arguments.

With K the joint cgf of the class log-densities under the whole posterior, and a row of class k and
weight w, log p(x_i | y_i = c) without it is K(e_c - w e_k) - K(-w e_k): dividing a posterior by
the likelihood of a row gives the posterior of the others. The two grow with w, and their difference
does not: beside a weight of 1e12 it has lost 12 digits.
"""

from collections.abc import Iterator

import numpy as np

from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

_GROUPS = 16  # of rows of equal weight, at most


def removal_by_cgf(
    family: ConjugateFamily, X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """By the cgf at negative arguments, a class at a time; both results as in `RowRemoval`."""
    groups, n_rows = list(_together(y, weight)), X.shape[0]
    apart = classes_are_apart(family)
    out = family.log_predictive(X) if apart else np.empty((n_rows, len(one_per_class(family))))
    base, unit = np.zeros(n_rows), np.eye(out.shape[1])
    for k, rows, w in groups:
        x, t = X[rows], -w[:, None] * unit[k]
        if apart:
            after, base[rows] = family.cgf(x, np.stack([t + unit[k], t]))
            out[rows, k] = after - base[rows]
        else:
            base[rows] = family.cgf(x, t)
            out[rows] = np.stack([family.cgf(x, t + e) - base[rows] for e in unit], axis=1)
    left, known = np.ones(X.shape[0]), np.flatnonzero(y >= 0)
    left[known] = digits_left(out[known, y[known]], base[known], weight[known])
    return out, left


def _together(y: Array, weight: Array) -> Iterator[tuple[int, Array, Array]]:
    """(class, rows of it, their weights): (1,) of equal ones, for which a cgf may have a table."""
    for k in np.unique(y[y >= 0]).tolist():
        rows = np.flatnonzero(y == k)
        values, which = np.unique(weight[rows], return_inverse=True)
        if len(values) > _GROUPS:
            yield k, rows, weight[rows]
            continue
        for g, value in enumerate(values):
            yield k, rows[which == g], np.array([value])


def digits_left(difference: Array, base: Array, weight: Array) -> Array:
    """How large a difference of cgfs is beside what it is the difference of; at most 1."""
    largest = np.maximum(np.abs(base), weight)  # within the cgf too there are terms as large as w
    return np.asarray(np.minimum(1.0, (1.0 + np.abs(difference)) / (1.0 + largest)))


def one_per_class(family: ConjugateFamily) -> Array:
    """Some array of the family with one entry per class."""
    sizes = [a for dims, a in family.arrays().values() if dims[:1] == (CLASS,)]
    return max(sizes, key=len)


def classes_are_apart(family: ConjugateFamily) -> bool:
    """Whether no parameter is common to the classes, so that their posteriors are independent."""
    return all(dims[:1] == (CLASS,) for dims in family.params.values())
