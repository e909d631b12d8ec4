r"""Predictives, cumulants and leave-one-out: averages over sets of super-parents.

Given super-parents s, counts t added to the cells that a row is in multiply the evidence by

.. math:: E\, p(x \mid \theta, s)^t = \frac{g_s}{g_\emptyset}
          \prod_{j \notin s} \frac{g_{s \cup j}}{g_s}, \quad
          g_u = \frac{\Gamma(n_u(x) + t)}{\Gamma(n_u(x))},

with :math:`n_u(x)` the counts and pseudo-counts of the row's cell in the table of the columns u.
"""

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.conjugate.dirichlet_super_parents.statistics import Layout
from bayesgen.families.shared.arguments import followed_argument
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import cgf_by_rows, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference, log_sum_exp

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_super_parents.family import DirichletSuperParents


def with_children(tables: Layout, one: Array, two: Array) -> Array:
    """(..., S) of logs of tables of super-parents (..., S) and of sets with one more (..., T).

    The table of the super-parents, times that of each other column given them.
    """
    n_children = tables.above.shape[1]
    out: Array = two[..., tables.above].sum(axis=-1) - (n_children - 1) * one
    return out


def _powers(n: Array, prior: Array, t: Array, counted: bool) -> Array:
    """log Gamma(n + prior + t) - log Gamma(n + prior) of counts n; of one row a logarithm.

    `counted`: what leaves (t < 0) was counted, so that the prior is left at least, also where a
    count of 1e15 has rounded it off.
    """
    if np.iscomplexobj(t):
        return log_gamma_difference(n + prior, t)
    if (t == 1).all():
        return np.broadcast_to(np.log(n + prior), np.broadcast_shapes(n.shape, t.shape))
    if not counted:
        return log_gamma_difference(n + prior, t)
    left = np.where(t < 0, np.maximum(n + t, 0.0), n) + prior
    return -np.log(left) if (t == -1).all() else np.sign(t) * log_gamma_difference(left, np.abs(t))


def log_powers(
    f: "DirichletSuperParents", c: int, codes: Array, t: Array, *, counted: bool = False
) -> Array:
    """(..., n, S) log of the mean over the tables of p(x | theta, s)^t, t (..., n or 1)."""
    tables, each = f.layout, t[..., None]
    one, two = (
        _powers(counts[c][at], f.strength[c] * own.share[at], each, counted)
        for own, counts in ((tables.parents, f.parents), (tables.wide, f.cells))
        for at in (own.cells_of(codes),)
    )
    n = np.asarray(f.totals[c] - f.strength[c])
    return with_children(tables, one, two) - _powers(n, f.strength[c], each, counted)


def log_predictive(f: "DirichletSuperParents", codes: Array) -> Array:
    """(N, C) with a compiled kernel for many rows, in which an index serves all classes."""
    tables, n_classes = f.layout, len(f.strength)
    out = np.empty((len(codes), n_classes))
    steps = len(codes) * tables.below.size * n_classes
    if not kernels.pays(steps):
        one = np.ones(1)
        for rows in row_blocks(len(codes), tables.above.size):
            for c in range(n_classes):
                terms = log_powers(f, c, codes[rows], one)
                out[rows, c] = log_sum_exp(f.log_weights[c] + terms)
        return out
    from bayesgen.numerics.kernels.super_parents import average
    from bayesgen.numerics.kernels.threads import over_blocks

    n_children = tables.above.shape[1]
    strength = f.strength[:, None]
    one = np.log(f.parents + strength * tables.parents.share) * (1 - n_children)
    two = np.log(f.cells + strength * tables.wide.share)
    constant = f.log_weights - np.log(f.totals)[:, None]
    given: Any = (
        *(np.ascontiguousarray(a.T) for a in (one, two, constant)),
        *(tables.parents.columns, tables.parents.strides, tables.parents.first),
        *(tables.wide.columns, tables.wide.strides, tables.wide.first, tables.below),
    )

    def part(start: int, stop: int) -> None:
        average(codes[start:stop], out[start:stop], *given)

    for _ in over_blocks(part, len(codes), tables.below.size):
        pass
    return out


def log_predictive_of_known(f: "DirichletSuperParents", codes: Array, gone: Array) -> Array:
    """(N, C) where cells `gone` (N, D) are summed over, whatever their codes say.

    A column that is no super-parent sums to 1. The super-parents of a set that are gone are filled
    in with each of their codes: they are n at most.
    """
    out = np.empty((len(codes), len(f.strength)))
    patterns, which = np.unique(gone, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == k)
        out[rows] = _of_pattern(f, codes[rows], pattern)
    return out


def _of_pattern(f: "DirichletSuperParents", codes: Array, gone: Array) -> Array:
    """(N, C), the same cells gone in all rows."""
    tables = f.layout
    n_parents = tables.parents.columns.shape[1]
    n_columns = n_parents + tables.above.shape[1]
    gaps = np.intersect1d(np.flatnonzero(gone), tables.wide.columns)
    # the number, sum and sum of squares of the columns of a set that are gone tell up to two
    j = np.arange(len(gone))
    key = 1 + 4 * (j + 4 * len(gone) * j * j)
    lacking = [(gone * key)[t.columns].sum(axis=1) for t in (tables.parents, tables.wide)]
    out = np.full((len(codes), len(f.strength)), -np.inf)
    for filled in (g for m in range(n_parents + 1) for g in combinations(gaps.tolist(), m)):
        sets, known = (np.flatnonzero(lack == key[list(filled)].sum()) for lack in lacking)
        if not len(sets):
            continue
        n_known = n_columns - len(gaps) - (n_parents - len(filled))
        place = np.full(len(tables.wide.first), len(known))
        place[known] = np.arange(len(known))
        above = place[tables.above[sets]]  # tables with columns that are gone: one place, of zeros
        some, wide = tables.parents.part(sets), tables.wide.part(known)
        values = list(product(*(range(f.levels[j]) for j in filled)))
        for rows in row_blocks(len(codes), len(values) * (above.size + 1)):
            each = np.repeat(codes[rows], len(values), axis=0)
            each[:, list(filled)] = np.tile(values, (len(each) // len(values), 1))
            one_at, two_at = some.cells_of(each), wide.cells_of(each)
            for c, (strength, total) in enumerate(zip(f.strength, f.totals, strict=True)):
                one = np.log(f.parents[c][one_at] + strength * tables.parents.share[one_at])
                two = np.log(f.cells[c][two_at] + strength * tables.wide.share[two_at])
                two = np.append(two, np.zeros((len(two), 1)), axis=1)
                terms = two[:, above].sum(axis=2) - (n_known - 1) * one
                terms += f.log_weights[c, sets] - np.log(total)
                found = log_sum_exp(terms.reshape(-1, len(values) * len(sets)))
                out[rows, c] = np.logaddexp(out[rows, c], found)
    return out


def log_predictive_without(
    f: "DirichletSuperParents", codes: Array, y: Array, weight: Array
) -> tuple[Array, Array]:
    """As in `RowRemoval`: of the row's own class the tables, and by evidence also the weights."""
    out, kept = log_predictive(f, codes), np.ones(len(codes))
    for c in range(len(f.strength)):
        own = np.flatnonzero((y == c) & (weight > 0))
        for block in row_blocks(len(own), f.layout.above.size):
            rows = own[block]
            w = weight[rows]
            left = log_powers(f, c, codes[rows], -w, counted=True)
            back: Any = 0.0
            if not (w == 1).all():
                back = log_powers(f, c, codes[rows], 1 - w, counted=True)
            log_w = f.log_weights[c] + (left if f.weights == "evidence" else np.zeros(left.shape))
            out[rows, c] = log_sum_exp(log_w + back - left) - log_sum_exp(log_w)
            largest = np.maximum(np.abs(left).max(axis=-1), w)
            kept[rows] = np.minimum(1.0, (1.0 + np.abs(out[rows, c])) / (1.0 + largest))
    return out, kept


def cgf(f: "DirichletSuperParents", codes: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    dtype = np.complex128 if np.iscomplexobj(t) else np.float64
    size = f.layout.above.size

    def mean(c: int, terms: Array) -> Array:
        log_w = f.log_weights[c]
        if not np.iscomplexobj(terms):
            return log_sum_exp(log_w + terms)
        top = terms.real.max(axis=-1, keepdims=True)
        shift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            out: Array = np.log(np.exp(log_w + terms - shift).sum(axis=-1)) + shift[..., 0]
        return out

    def cell(rows: slice, t: Array) -> Array:
        own = codes[rows]
        out = np.zeros((*t.shape[:-2], len(own)), dtype=dtype)
        for c in range(len(f.strength)):
            tc = t[..., c].astype(dtype)
            if not tc.any():
                continue
            terms = log_powers(f, c, own, tc)
            value = mean(c, terms)
            if dtype is np.complex128:

                def at(some: Array, t: Array, c: int = c) -> Array:
                    return mean(c, log_powers(f, c, own[some], t))

                turn = np.abs(terms.imag).max(axis=-1)
                value = value.real + 1j * followed_argument(at, value.imag, turn, tc, size)
            out += value
        return out

    return cgf_by_rows(cell, len(codes), size, t)
