r"""Draws of the class log-densities at a cost that does not grow with D: no covariance is drawn.

With W ~ Wishart(nu, G), G the products of a row's distances from the class means in the
metric of psi^-1, the squared distance of class c is
:math:`[(z + \sqrt{\kappa W_{cc}})^2 + \chi^2_{D-1}]/\kappa`. Exact for each row.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.families.shared.gaussian import noncentral
from bayesgen.families.shared.mahalanobis import pattern_blocks
from bayesgen.numerics.kernels import pays
from bayesgen.numerics.rows import Matrix, dense_block
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def distances(
    f: "NormalInverseWishart", rng: np.random.Generator, X: Matrix, n: int, label: int | None = None
) -> tuple[Array, Array, Array]:
    """As in `SharedVariances`."""
    n_classes, more = len(f.mu), int(label is not None)
    out, d = np.zeros((X.shape[0], n_classes, n)), np.zeros(X.shape[0], dtype=np.intp)
    triangles: dict[int, Array] = {}
    kappa = f.kappa
    for rows, columns in pattern_blocks(X, f.live):
        if not len(columns):
            continue
        part = f if len(columns) == f.dim else f.marginal(columns)
        x = dense_block(X, rows)[:, columns] - part.shift
        z = _whitened(part, x)
        if label is not None:  # psi grows by a matrix of rank 1, and the mean moves to the row
            own, share = z[:, label], kappa[label] / (kappa[label] + 1)
            far = 1 + share * np.square(own).sum(axis=1)
            step = share / (far + np.sqrt(far))
            along = step[:, None] * np.einsum("ncd,nd->nc", z, own)
            z = z - along[:, :, None] * own[:, None]
            z[:, label] *= share
        rank = min(n_classes, part.dim)
        # not by the products z z', in which a far row's differences of the classes are lost
        root = np.linalg.qr(z.transpose(0, 2, 1), mode="r").transpose(0, 2, 1)
        if part.dim not in triangles:
            triangles[part.dim] = _triangles(rng, part.nu[0] + more, rank, n)
        out[rows], d[rows] = _diagonals(root, triangles[part.dim]), part.dim
    if label is not None:
        kappa = kappa + np.eye(n_classes)[label]
    return out, kappa, d


def _whitened(f: "NormalInverseWishart", x: Array) -> Array:
    """(n, C, D) distances from the class means in the metric of psi^-1."""
    d = (x[:, None] - f.mu).reshape(-1, f.dim).T
    return np.asarray(solve_triangular(f.factor[0], d, lower=True).T.reshape(len(x), -1, f.dim))


def _diagonals(root: Array, triangles: Array) -> Array:
    """(n, C, S) diagonals of R W R^T, root (n, C, r), for S matrices W by their factors."""
    n_rows, n_classes, rank = root.shape
    out = np.empty((n_rows, n_classes, len(triangles)))
    wide = np.ascontiguousarray(triangles.transpose(1, 2, 0))
    if pays(out.size * rank * rank):
        from bayesgen.numerics.kernels.mixtures import wishart_diagonals

        wishart_diagonals(root, wide, out)
        return out
    for c in range(n_classes):
        w = (root[:, c] @ wide.reshape(rank, -1)).reshape(n_rows, rank, -1)
        np.einsum("nrs,nrs->ns", w, w, out=out[:, c])
    return out


def _triangles(rng: np.random.Generator, nu: float, rank: int, n: int) -> Array:
    """(n, rank, rank) Cholesky factors of draws of Wishart(nu, I): Bartlett's decomposition."""
    out = np.zeros((n, rank, rank))
    i, j = np.tril_indices(rank, -1)
    out[:, i, j] = rng.standard_normal(size=(n, len(i)))
    k = np.arange(rank)
    out[:, k, k] = np.sqrt(rng.chisquare(nu - k, size=(n, rank)))
    return out


def draw(f: "NormalInverseWishart", rng: np.random.Generator, X: Matrix, n: int) -> Array:
    """(n, N, C), as in `DensityDraws`."""
    z = rng.standard_normal(size=(n, len(f.mu)))
    if f.shared:
        return noncentral(rng, z, *distances(f, rng, X, n, None))
    out = np.zeros((n, X.shape[0], len(f.mu)))
    for rows, columns in pattern_blocks(X, f.live):
        if len(columns):
            part = f if len(columns) == f.dim else f.marginal(columns)
            x = dense_block(X, rows)[:, columns] - part.shift
            out[:, rows] = _of_complete_rows(part, rng, z, x)
    return out


def _of_complete_rows(
    f: "NormalInverseWishart", rng: np.random.Generator, z: Array, x: Array
) -> Array:
    """(n, N, C) of classes with covariances of their own."""
    n, dim = len(z), f.dim
    rest = rng.chisquare(dim - 1, size=z.shape) if dim > 1 else np.zeros(z.shape)
    out = np.empty((n, len(x), len(f.mu)))
    for c, (nu, kappa) in enumerate(zip(f.nu, f.kappa, strict=True)):
        d = solve_triangular(f.factor[c], (x - f.mu[c]).T, lower=True)
        w = rng.chisquare(nu, size=(n, 1))
        # |precision| |psi| is a product of chi-squares, the first of them w
        others = rng.chisquare(nu - np.arange(1, dim), size=(n, dim - 1))
        log_det = np.log(w[:, 0]) + np.log(others).sum(axis=1) - f.log_det[c]
        u = np.sqrt(kappa * w * np.square(d).sum(axis=0))
        q = (np.square(z[:, c, None] + u) + rest[:, c, None]) / kappa
        out[:, :, c] = 0.5 * log_det[:, None] - dim / 2 * np.log(2 * np.pi) - 0.5 * q
    return out
