"""Joint cumulant generating function of the class log-densities, theta integrated out.

For complete rows with a common Sigma the exponent is a determinant of the products of the rows'
distances from the class means in the metric of psi^-1.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.families.shared.density_cumulants import (
    log1p_derivatives,
    log_gamma_derivatives,
    student_derivatives,
)
from bayesgen.families.shared.mahalanobis import pattern_blocks
from bayesgen.numerics.rows import Matrix, cgf_by_rows, dense_block
from bayesgen.numerics.special import Array, log1p, log_multigamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def cgf(f: "NormalInverseWishart", X: Matrix, t: Array) -> Array:
    """As `ConjugateFamily.cgf`, of the observed cells; one pattern of missing cells at a time."""
    t = np.atleast_2d(t)
    out = np.empty((*t.shape[:-2], X.shape[0]), dtype=np.result_type(t, np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):  # real t outside the domain: NaN
        for rows, columns in pattern_blocks(X, f.live):
            part = f if len(columns) == f.dim else f.marginal(columns)
            x = dense_block(X, rows)[:, columns] - part.shift
            t_rows = t if t.shape[-2] == 1 else t[..., rows, :]
            out[..., rows] = _of_complete_rows(part, x, t_rows)
    return out


def density_cumulants(f: "NormalInverseWishart", X: Matrix, seen: int) -> Array:
    """(5, N, C), as in `DensityCumulants`, of classes with covariances of their own."""
    out, t = np.empty((5, X.shape[0], len(f.mu))), float(seen)
    for rows, columns in pattern_blocks(X, f.live):
        part = f if len(columns) == f.dim else f.marginal(columns)
        x = dense_block(X, rows)[:, columns] - part.shift
        for c, nu in enumerate(part.nu):
            z = solve_triangular(part.factor[c], (x - part.mu[c]).T, lower=True)
            k = 1 / part.kappa[[c]]
            halves = log_gamma_derivatives((nu - np.arange(part.dim)) / 2, 0.5, t).sum(axis=1)
            table = halves[:, None] - student_derivatives(k, nu, 1.0, t)
            table -= part.dim / 2 * log1p_derivatives(k, t)
            table[0] -= (part.dim * np.log(np.pi) + part.log_det[c]) / 2
            q = np.square(z).sum(axis=0)
            out[:, rows, c] = table + student_derivatives(k + q, nu, 1.0, t)
    return out


def _of_complete_rows(f: "NormalInverseWishart", x: Array, t: Array) -> Array:
    dim, used = f.dim, np.flatnonzero(t.reshape(-1, t.shape[-1]).any(axis=0))
    whitened = {
        c: solve_triangular(f.factor[0 if f.shared else c], (x - f.mu[c]).T, lower=True).T
        for c in used
    }  # arrays (n, D): their products are delta_c psi^-1 delta_d
    groups = [used] if f.shared and len(used) else used[:, None]

    def cell(rows: slice, t: Array) -> Array:
        out: Any = 0.0
        for members in groups:
            k = 0 if f.shared else members[0]
            z = np.stack([whitened[c][rows] for c in members], axis=1)
            tg = t[..., members]
            total = tg.sum(axis=-1)
            kappa = f.kappa[members]
            tau = tg * kappa / (kappa + tg)
            out = (
                out
                + log_multigamma_difference(f.nu[k] / 2, total / 2, dim)
                - total / 2 * (dim * np.log(np.pi) + f.log_det[k])
                - dim / 2 * log1p(tg / kappa).sum(axis=-1)
                - (f.nu[k] + total) / 2 * _log_det_plus_identity(tau, z)
            )
        return out

    return cgf_by_rows(cell, len(x), len(used) ** 2, t)


def _log_det_plus_identity(tau: Array, z: Array) -> Array:
    """log det(I + diag(tau) z z'), tau (..., n, k), z (n, k, D).

    Summed over eigenvalues: each 1 + lambda stays in the right half plane for imaginary t, so
    principal logarithms add up to the continuous branch; the log of the determinant would not.
    """
    used = np.flatnonzero(tau.reshape(-1, tau.shape[-1]).any(axis=0))
    if len(used) < tau.shape[-1]:
        tau, z = tau[..., used], z[:, used]
    gram = np.einsum("ncd,ned->nce", z, z)
    if len(used) <= 1:  # none: the sum is 0
        return log1p((tau * np.diagonal(gram, axis1=1, axis2=2)).sum(axis=-1))
    if len(used) == 2 and np.iscomplexobj(tau):  # the log-odds of two classes: 50 times faster
        half = (tau[..., 0] * gram[:, 0, 0] + tau[..., 1] * gram[:, 1, 1]) / 2
        apart = z[:, 1] - z[:, 0]  # of the rows themselves, the determinant of a far row is lost
        across = np.einsum("nd,nd->n", z[:, 0], apart)
        det = gram[:, 0, 0] * np.square(apart).sum(axis=-1) - np.square(across)
        root = np.sqrt(half * half - tau[..., 0] * tau[..., 1] * det)
        root = np.where((half.conj() * root).real < 0, -root, root)
        larger = half + root  # no cancellation; the other by the product of both
        with np.errstate(invalid="ignore", divide="ignore"):
            smaller = tau[..., 0] * tau[..., 1] * det / larger
        return log1p(larger) + np.where(larger == 0, 0.0, log1p(smaller))
    product = tau[..., :, None] * gram
    if np.iscomplexobj(tau):
        return log1p(np.linalg.eigvals(product)).sum(axis=-1)
    sign, log_det = np.linalg.slogdet(np.eye(tau.shape[-1]) + product)
    return np.where(sign > 0, log_det, np.nan)
