r"""Draws of the class log-densities where the classes share variances.

One number per class stands for all its means: with weights w = chi2_nu/SS of the features, the
squared distance of class c is
:math:`[(z + \sqrt{\kappa \sum_j w_j \delta_{cj}^2})^2 + \chi^2_{d-1}]/\kappa`, d the number of
observed cells, if the columns have one kappa in each class.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma


def known(f: "NormalInverseGamma") -> bool:
    """Whether the formula holds."""
    kappa = f.kappa[:, f.live]
    return bool(f.over_classes and kappa.size and not np.ptp(kappa, axis=1).any())


def draw(f: "NormalInverseGamma", rng: np.random.Generator, X: Matrix, n: int) -> Array:
    """(n, N, C), as in `DensityDraws`."""
    kappa, n_classes = f.kappa[:, f.live], len(f.mu)
    out = np.empty((n, X.shape[0], n_classes))
    z = rng.standard_normal(size=(n, n_classes))
    w = rng.chisquare(f.nu, size=(n, *f.nu.shape)) / f.sum_of_squares
    w = w[:, 0]  # (n, D or 1)
    chi = {1: np.zeros((n, n_classes))}
    for rows in row_blocks(*X.shape):
        x = dense_block(X, rows) - f.shift
        seen = ~np.isnan(x) & f.live
        d = seen.sum(axis=1)
        for one in np.setdiff1d(d[d > 0], list(chi)):
            chi[one] = rng.chisquare(int(one) - 1, size=(n, n_classes))
        rest = np.stack([chi.get(one, chi[1]) for one in d], axis=1)  # (n, rows, C)
        for c in range(n_classes):
            delta2 = np.where(seen, np.square(x - f.mu[c]), 0.0)
            if f.over_features:
                delta2 = delta2.sum(axis=1, keepdims=True)
            u = np.sqrt(kappa[c, 0] * (w @ delta2.T))
            q = np.square(z[:, c, None] + u) + rest[..., c]
            out[:, rows, c] = np.where(d > 0, -0.5 / kappa[c, 0] * q, 0.0)
    return out
