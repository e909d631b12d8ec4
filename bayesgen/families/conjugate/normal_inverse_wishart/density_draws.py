r"""Draws of the class log-densities at a cost that does not grow with D: no covariance is drawn.

With W ~ Wishart(nu, G), G the products of a row's distances from the class means in the
metric of psi^-1, the squared distance of class c is
:math:`[(z + \sqrt{\kappa W_{cc}})^2 + \chi^2_{D-1}]/\kappa`. Exact for each row.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.families.shared.mahalanobis import pattern_blocks
from bayesgen.numerics.rows import Matrix, dense_block
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def draw(f: "NormalInverseWishart", rng: np.random.Generator, X: Matrix, n: int) -> Array:
    """(n, N, C), as in `DensityDraws`."""
    out = np.zeros((n, X.shape[0], len(f.mu)))
    for rows, columns in pattern_blocks(X, f.live):
        if len(columns):
            part = f if len(columns) == f.dim else f.marginal(columns)
            x = dense_block(X, rows)[:, columns] - part.shift
            out[:, rows] = _of_complete_rows(part, rng, x, n)
    return out


def _of_complete_rows(
    f: "NormalInverseWishart", rng: np.random.Generator, x: Array, n: int
) -> Array:
    n_classes, dim = len(f.mu), f.dim
    out = np.empty((n, len(x), n_classes))
    z = rng.standard_normal(size=(n, n_classes))
    rest = np.zeros((n, n_classes))
    if dim > 1:
        rest = rng.chisquare(dim - 1, size=(n, n_classes))
    for members in [np.arange(n_classes)] if f.shared else np.arange(n_classes)[:, None]:
        k = members[0]
        d = (x[:, None] - f.mu[members]).reshape(-1, dim).T
        d = solve_triangular(f.factor[k], d, lower=True).T.reshape(len(x), -1, dim)
        rank = min(len(members), dim)
        size, axes = np.linalg.eigh(np.einsum("ncd,ned->nce", d, d))
        root = axes[..., -rank:] * np.sqrt(np.maximum(size[:, None, -rank:], 0.0))
        triangle = np.zeros((n, rank, rank))
        i, j = np.tril_indices(rank, -1)
        triangle[:, i, j] = rng.standard_normal(size=(n, len(i)))
        diagonal = rng.chisquare(f.nu[k] - np.arange(rank), size=(n, rank))
        triangle[:, np.arange(rank), np.arange(rank)] = np.sqrt(diagonal)
        common: Any = 0.0
        if not f.shared:  # |precision| |psi| is a product of chi-squares, the first of W's
            others = rng.chisquare(f.nu[k] - np.arange(1, dim), size=(n, dim - 1))
            log_det = np.log(diagonal[:, 0]) + np.log(others).sum(axis=1) - f.log_det[k]
            common = 0.5 * log_det[:, None] - dim / 2 * np.log(2 * np.pi)
        wide = triangle.transpose(1, 2, 0).reshape(rank, rank * n)
        for m, c in enumerate(members):
            w = np.square(root[:, m] @ wide).reshape(len(x), rank, n).sum(axis=1)
            u = np.sqrt(f.kappa[c] * w.T)
            q = (np.square(z[:, c, None] + u) + rest[:, c, None]) / f.kappa[c]
            out[:, :, c] = common - 0.5 * q
    return out
