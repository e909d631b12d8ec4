"""The posterior predictive: a product over variance groups of multivariate Student t densities.

With nu degrees of freedom at m, scale2 = s2 (1 + 1/kappa), group by group; the theta of a group is
integrated out at once, so that columns that share a variance are dependent.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import issparse

from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix, dense_block, has_nan, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma


def student(f: "NormalInverseGamma") -> tuple[Array, Array, Array]:
    """Log norm, power of the density, and spread (C, D) of each cell.

    The first two are (C, D), or (C, D + 1) where columns share a variance: of 0 .. D cells.
    """
    scale = np.broadcast_to(f.sum_of_squares, (len(f.mu), f.sum_of_squares.shape[1]))
    nu = np.broadcast_to(f.nu, scale.shape)
    spread = np.sqrt(scale * (1 + 1 / f.kappa))
    if f.over_features:
        d = np.arange(f.mu.shape[1] + 1)
        return log_gamma_difference(nu / 2, d / 2) - d / 2 * np.log(np.pi), (nu + d) / 2, spread
    log_norm = log_gamma_difference(nu / 2, 0.5) - 0.5 * np.log(np.pi) - np.log(spread)
    return log_norm * f.live, (nu + 1) / 2 * f.live, spread


def log_predictive(f: "NormalInverseGamma", X: Matrix) -> Array:
    """(N, C), as in `ConjugateFamily.log_predictive`."""
    n_classes = len(f.mu)
    norm, power, spread = f.student
    fast = not issparse(X) and kernels.pays(X.shape[0] * f.mu.size, predicting=True)
    if f.over_features:
        log_width = np.log(spread)
        if fast:
            return _compiled(f, X, "joint_t", spread, log_width, norm, power)
        out = np.empty((X.shape[0], n_classes))
        for rows in row_blocks(*X.shape):
            x = dense_block(X, rows) - f.shift
            seen = ~np.isnan(x)
            d = seen.sum(axis=1)
            for c in range(n_classes):
                r = np.where(seen, (x - f.mu[c]) / spread[c], 0.0)
                distance = _log1p_sum_of_squares(r)
                out[rows, c] = norm[c, d] - seen @ log_width[c] - power[c, d] * distance
        return out
    if fast:
        return _compiled(f, X, "product_t", spread, norm, power)
    out = np.empty((X.shape[0], n_classes))
    for rows in row_blocks(*X.shape):
        x = dense_block(X, rows) - f.shift
        total = np.nansum if has_nan(x) else np.sum
        for c in range(n_classes):
            r = (x - f.mu[c]) / spread[c]
            out[rows, c] = total(norm[c] - power[c] * _log1p_square(r), axis=1)
    return out


def _compiled(
    f: "NormalInverseGamma", X: Array, kernel: str, spread: Array, *tables: Array
) -> Array:
    """`log_predictive` of a large dense X by a kernel of `kernels.student`."""
    from bayesgen.numerics.kernels import student
    from bayesgen.numerics.kernels.compiling import as_data, as_rows, row_slices
    from bayesgen.numerics.kernels.threads import over_blocks

    live = np.flatnonzero(f.live)
    if kernel == "product_t":  # columns with as many observed rows side by side
        live = live[np.argsort(tables[1][0, live], kind="stable")]
        tables = tuple(np.ascontiguousarray(table[:, live]) for table in tables)
    shift = np.broadcast_to(f.shift, X.shape[1])[live]
    columns = as_data(live.astype(np.uint64))
    cells = (as_data(np.ascontiguousarray(a[:, live])) for a in (f.mu, 1 / spread))
    arguments = (columns, as_data(shift), *cells, *map(as_data, tables))
    out = np.empty((X.shape[0], len(f.mu)))

    def part(start: int, stop: int) -> None:
        for rows in row_slices(X, start, stop):
            getattr(student, kernel)(as_rows(X[rows]), *arguments, out[rows])

    for _ in over_blocks(part, X.shape[0], X.shape[1], most=32):
        pass
    return out


def _log1p_square(r: Array) -> Array:
    """log(1 + r^2), also where r^2 overflows."""
    with np.errstate(over="ignore"):
        out = np.log1p(r * r)
    if np.isposinf(out).any():
        huge = np.abs(r) > 1e150
        out[huge] = 2 * np.log(np.abs(r[huge]))
    return out


def _log1p_sum_of_squares(r: Array) -> Array:
    """log(1 + sum of squares of each row), also where a square overflows."""
    with np.errstate(over="ignore"):
        out = np.log1p(np.einsum("ij,ij->i", r, r))
    for i in np.flatnonzero(np.isposinf(out)):
        top = np.abs(r[i]).max()
        out[i] = 2 * np.log(top) + np.log(np.square(r[i] / top).sum())
    return out
