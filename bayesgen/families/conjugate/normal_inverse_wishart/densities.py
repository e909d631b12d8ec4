"""Densities of rows, theta integrated out, and of the means and covariances.

The posterior predictive is multivariate Student t, of the observed cells of each row: degrees of
freedom nu - D + 1, shape psi (1 + 1/kappa)/df. Source: Gelman et al., Bayesian Data
Analysis (3rd ed.), section 3.6.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.shared.densities import density_by_draws, log_inverse_wishart_density
from bayesgen.families.shared.mahalanobis import (
    common_patterns,
    observed_distances,
    reader,
    squared_distances,
)
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart

_MOST_COLUMNS = 64  # beyond, products of matrices by BLAS are faster than the kernel
_FEW_ROWS = 64  # of a pattern of missing cells: each is factorised by itself, all in one pass


def log_predictive(f: "NormalInverseWishart", X: Matrix) -> Array:
    """(N, C), as in `ConjugateFamily.log_predictive`."""
    out = np.empty((X.shape[0], len(f.mu)))
    least = _FEW_ROWS if len(f.live) <= _MOST_COLUMNS else 1
    rare, common = common_patterns(X, f.live, least)
    if len(rare):
        _row_by_row(f, X, rare, out)
    for rows, columns in common:
        part = f if len(columns) == f.dim else f.marginal(columns)
        read, n = reader(X, rows, columns)
        if len(columns) <= _MOST_COLUMNS and kernels.pays(n * part.mu.size, predicting=True):
            if n == X.shape[0] and part is f:
                return _compiled(f, X)
            out[rows] = _compiled(part, X[rows][:, columns])
            continue
        scale, log_norm, power = part.student
        q = squared_distances(read, n, part.shift, part.mu, part.factor)
        q *= scale
        np.log1p(q, out=q)
        q *= -power
        q += log_norm
        out[rows] = q
    return out


def student(f: "NormalInverseWishart") -> tuple[Array, Array, Array]:
    """(C,) each: ``log_norm - power log(1 + scale q)`` is the log density at a distance q^2."""
    scale, log_norm, power = _student(f, f.dim)
    arrays = scale, log_norm - f.log_det / 2, power
    scale, log_norm, power = (np.array(np.broadcast_to(a, len(f.mu))) for a in arrays)
    return scale, log_norm, power


def _student(f: "NormalInverseWishart", dim: Any) -> tuple[Array, Array, Array]:
    """As `student`, of so many of the columns, but for the determinant."""
    df = f.nu - f.dim + 1
    log_norm = log_gamma_difference(df / 2, dim / 2) - dim / 2 * (
        np.log(np.pi) + np.log1p(1 / f.kappa)
    )
    return f.kappa / (f.kappa + 1), log_norm, (f.nu - (f.dim - dim) + 1) / 2


def _row_by_row(f: "NormalInverseWishart", X: Matrix, rows: Array, out: Array) -> None:
    """`log_predictive` of some rows, each with missing cells of its own."""
    live = f.live
    scale, log_norm, power = _student(f, np.arange(f.dim + 1)[:, None])
    psi = f.psi[:, live[:, None], live]
    for block in row_blocks(len(rows), len(live)):
        x = dense_block(X, rows[block])[:, live] - f.shift[live]
        q, half_log_det = observed_distances(x, f.mu[:, live], psi)
        seen = (~np.isnan(x)).sum(axis=1)
        density = log_norm[seen] - power[seen] * np.log1p(scale * q)
        out[rows[block]] = density - half_log_det


def _compiled(f: "NormalInverseWishart", X: Array) -> Array:
    """Of all rows and columns of a dense X, by a kernel."""
    from bayesgen.numerics.kernels.compiling import as_data, as_rows, row_slices
    from bayesgen.numerics.kernels.student import correlated_t
    from bayesgen.numerics.kernels.threads import over_blocks

    tables = (np.broadcast_to(f.shift, f.dim), *f.whitening, *f.student)
    arguments = [as_data(np.ascontiguousarray(a, dtype=np.float64)) for a in tables]
    shift, whiten, centre, step, scale, log_norm, power = arguments
    columns = as_data(np.arange(f.dim, dtype=np.uint64))
    out = np.empty((X.shape[0], len(f.mu)))

    def part(start: int, stop: int) -> None:
        for rows in row_slices(X, start, stop):
            x, own = as_rows(X[rows]), out[rows]
            correlated_t(x, columns, shift, whiten, centre, step, scale, log_norm, power, own)

    for _ in over_blocks(part, X.shape[0], X.shape[1], most=32):
        pass
    return out


def log_density(f: "NormalInverseWishart", theta: Theta) -> Array:
    """(...) inverse Wishart densities of Sigma, Normal ones of mu given Sigma, live columns."""
    live = f.live
    part = f if len(live) == f.dim else f.marginal(live)

    def of_draws(t: dict[str, Array]) -> Array:
        sigma = t["Sigma"][:, None] if f.shared else t["Sigma"]
        sigma = sigma[..., live[:, None], live]
        factor, inside = _cholesky(sigma)
        out = log_inverse_wishart_density(factor, part.nu, part.factor).sum(axis=-1)
        length = np.linalg.norm(factor, axis=-1)
        step = (t["mu"][..., live] - part.shift - part.mu) / length
        white = np.linalg.solve(factor / length[..., None], step[..., None])[..., 0]
        log_norm = len(live) * np.log(part.kappa / (2 * np.pi))
        log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        q = part.kappa * np.square(white).sum(axis=-1)
        out += 0.5 * (log_norm - log_det - q).sum(axis=-1)
        return np.where(inside, out, -np.inf)

    return density_by_draws(of_draws, theta, f.params)


def _cholesky(sigma: Array) -> tuple[Array, Array]:
    """Lower factors of matrices (S, G, D, D), and (S,) whether all G are positive definite.

    Where they are not the factor is the identity.
    """
    try:
        return np.linalg.cholesky(sigma), np.ones(len(sigma), dtype=bool)
    except np.linalg.LinAlgError:
        pass
    factor = np.broadcast_to(np.eye(sigma.shape[-1]), sigma.shape).copy()
    inside = np.zeros(len(sigma), dtype=bool)
    for s, matrices in enumerate(sigma):
        try:
            factor[s] = np.linalg.cholesky(matrices)
            inside[s] = True
        except np.linalg.LinAlgError:
            continue
    return factor, inside
