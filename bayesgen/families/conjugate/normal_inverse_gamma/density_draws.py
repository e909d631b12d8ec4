r"""Draws of the class log-densities where the classes share variances.

One number per class stands for all its means: with weights w = chi2_nu/SS of the features, the
squared distance of class c is
:math:`[(z + \sqrt{\kappa \sum_j w_j \delta_{cj}^2})^2 + \chi^2_{d-1}]/\kappa`, d the number of
observed cells, if the columns have one kappa in each class.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.shared.gaussian import noncentral
from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma


def distances(
    f: "NormalInverseGamma", rng: np.random.Generator, X: Matrix, n: int, label: int | None = None
) -> tuple[Array, Array, Array]:
    """As in `SharedVariances`."""
    kappa = f.kappa[:, f.live][:, 0] if f.live.any() else f.kappa[:, 0]
    out, d = np.empty((X.shape[0], len(f.mu), n)), np.empty(X.shape[0], dtype=np.intp)
    share = 0.0 if label is None else kappa[label] / (kappa[label] + 1)
    chi: dict[int, Array] = {}
    for rows in row_blocks(*X.shape):
        x = dense_block(X, rows) - f.shift
        seen = ~np.isnan(x) & f.live
        d[rows] = seen.sum(axis=1)
        delta2 = np.where(seen[:, None], np.square(x[:, None] - f.mu), 0.0)  # (n, C, D)
        if f.over_features:
            delta2 = delta2.sum(axis=2, keepdims=True)
        ss = np.broadcast_to(f.sum_of_squares[0], delta2[:, 0].shape)
        if label is not None:
            ss = ss + share * delta2[:, label]
            delta2[:, label] *= share**2
        # cells that the row has seen, of each variance: 0 or 1, or all
        more = d[rows] if label is not None and f.over_features else np.array([label is not None])
        for one in np.unique(more):
            if int(one) not in chi:
                chi[int(one)] = rng.chisquare(f.nu[0] + int(one), size=(n, f.nu.shape[1]))
            own = np.flatnonzero(more == one) if len(more) > 1 else slice(None)
            out[rows][own] = (delta2[own] / ss[own, None]) @ chi[int(one)].T
    if label is not None:
        kappa = kappa + np.eye(len(kappa))[label]
    return out, kappa, d


def draw(f: "NormalInverseGamma", rng: np.random.Generator, X: Matrix, n: int) -> Array:
    """(n, N, C), as in `DensityDraws`."""
    z = rng.standard_normal(size=(n, len(f.mu)))
    return noncentral(rng, z, *distances(f, rng, X, n, None))
