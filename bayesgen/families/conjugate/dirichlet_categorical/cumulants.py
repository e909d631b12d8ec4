"""Joint cumulant generating functions of the class log-densities, theta integrated out.

Sum over cells of lG(p+t) - lG(p) - lG(P+t) + lG(P), p the pseudo-count of the cell, P their total.
A category never seen contributes t log(probability): it is the same under every theta.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesgen.families.shared.category_codes import code_index, look_up
from bayesgen.families.shared.density_cumulants import log_gamma_derivatives
from bayesgen.numerics.rows import Matrix, cgf_by_rows
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_categorical.family import DirichletCategorical


def cgf(f: "DirichletCategorical", X: Matrix, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    t = np.atleast_2d(t)
    total, p_new = f.alpha.sum(axis=-1), f.p_new()
    n_classes, n_features, k = f.alpha.shape
    real = f.alpha > 0
    safe = np.where(real, f.alpha, 1.0)

    def moments(c: int, tc: Array) -> Array:  # (..., 1, 1) -> (..., D, K)
        norm = log_gamma_difference(total[c], tc[..., 0])[..., None]
        with np.errstate(invalid="ignore"):  # t < 0 may take more than a cell has that no row is in
            return np.where(real[c], log_gamma_difference(safe[c], tc) - norm, 0.0)

    def never(c: int, tc: Array) -> Array:  # (..., 1) -> (..., D)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(tc == 0, 0.0, tc * np.log(p_new[c]))

    if t.shape[-2] == 1:  # one t for all rows: a table for each feature
        used = [c for c in range(n_classes) if t[..., c].any()] or [0]
        table: Any = sum(moments(c, t[..., 0, c, None, None]) for c in used)
        new: Any = sum(never(c, t[..., 0, c, None]) for c in used)
        return look_up(X, f.extended(table, new)[..., None, :, :])[..., 0]

    def cell(rows: slice, t: Array) -> Array:
        block = X[rows].toarray() if sparse.issparse(X) else X[rows]
        codes, column = code_index(block, k), np.arange(n_features)
        known = codes < k
        at = np.where(known, codes, 0)
        out: Any = 0.0
        for c in range(n_classes):
            tc = t[..., c, None]
            p, inside = safe[c][column, at], known & real[c][column, at]
            some = log_gamma_difference(p, tc) - log_gamma_difference(total[c], tc)
            none = np.where(codes <= k, never(c, tc), 0.0)
            out = out + np.where(inside, some, none).sum(axis=-1)
        return out

    return cgf_by_rows(cell, X.shape[0], n_features, t)


def density_cumulants(f: "DirichletCategorical", X: Matrix, seen: int) -> Array:
    """(5, N, C), as in `DensityCumulants`."""
    real = f.alpha > 0
    norm = log_gamma_derivatives(f.alpha.sum(axis=-1), t=seen)[..., None]
    table = log_gamma_derivatives(np.where(real, f.alpha, 1.0), t=seen) - norm
    new = np.zeros(table.shape[:-1])
    with np.errstate(divide="ignore"):
        new[0] = np.log(f.p_new())
    return look_up(X, f.extended(np.where(real, table, 0.0), new))


def cell_cgf(f: "DirichletCategorical", x: Array, column: Array, t: Array) -> Array:
    """(K, n), as in `SeparateColumns`."""
    codes = code_index(x, f.alpha.shape[2])
    known = codes < f.alpha.shape[2]
    counts = f.alpha[:, column, np.where(known, codes, 0)]
    known &= counts[0] > 0
    p_new = f.p_new()[:, column]
    out: Any = 0.0
    for c, p in enumerate(np.where(known, counts, 1.0)):
        tc = t[..., c]
        some = log_gamma_difference(p, tc)
        some = some - log_gamma_difference(f.alpha[c, column].sum(axis=-1), tc)
        with np.errstate(divide="ignore", invalid="ignore"):
            never = np.where(tc == 0, 0.0, tc * np.log(p_new[c]))
        out = out + np.where(known, some, never)
    return out
