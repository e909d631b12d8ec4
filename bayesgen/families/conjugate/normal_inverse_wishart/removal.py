r"""The predictive of a training row without the row itself: a rank-one change of psi.

With row i of weight w in class k, :math:`\delta_c = x_i - m_c`, :math:`\kappa' = \kappa_k - w`,
:math:`r = w \kappa_k / \kappa'` and distances :math:`q_{cd} = \delta_c^T \Psi^{-1} \delta_d`:

.. math:: \Psi' = \Psi - r\, \delta_k \delta_k^T, \qquad |\Psi'| = |\Psi| (1 - r q_{kk}), \qquad
          \delta_c^T \Psi'^{-1} \delta_c = q_{cc} + \frac{r\, q_{ck}^2}{1 - r q_{kk}}

and :math:`x_i - m_k' = \delta_k \kappa_k / \kappa'`. One triangular solve for all rows and no
matrix of any row's own. Source: the Sherman-Morrison formula and the matrix determinant lemma.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def log_predictive_without(
    f: "NormalInverseWishart", X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(N, C) and (N,), as in `RowRemoval`; rows of the training set have no missing cells."""
    n_classes, live = len(f.mu), f.live
    part = f if len(live) == f.dim else f.marginal(live)
    out = np.empty((X.shape[0], n_classes)) if f.shared else f.log_predictive(X)
    left = np.ones(X.shape[0])
    if not len(live):
        return np.zeros((X.shape[0], n_classes)), left
    for k in range(n_classes):
        own = np.flatnonzero(y == k)
        targets = list(range(n_classes)) if f.shared else [k]
        for block in row_blocks(len(own), len(live) * len(targets)):
            rows = own[block]
            x = dense_block(X, rows)[:, live] - part.shift
            values, left[rows] = _of_class(part, k, targets, x, weight[rows])
            out[rows[:, None], targets] = values
    return out, left


def _of_class(
    f: "NormalInverseWishart", k: int, targets: list[int], x: Array, w: Array
) -> tuple[Array, Array]:
    """Rows x (n, D) of class k and their weights (n,): (n, targets) and (n,)."""
    g, dim = (0 if f.shared else k), f.dim
    kappa_left = f.kappa[k] - w
    ratio = f.kappa[k] / kappa_left

    def whitened(c: int) -> Array:
        return solve_triangular(f.factor[g], (x - f.mu[c]).T, lower=True).T

    own = whitened(k)
    q_own = np.einsum("nd,nd->n", own, own)
    left = 1 - w * ratio * q_own
    nu = f.nu[g] - w
    out = np.empty((len(x), len(targets)))
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, c in enumerate(targets):
            if c == k:
                q, kappa = ratio * ratio * q_own / left, kappa_left
            else:
                z = whitened(c)
                cross = np.einsum("nd,nd->n", z, own)
                q = np.einsum("nd,nd->n", z, z) + w * ratio * cross * cross / left
                kappa = f.kappa[c]
            df = nu - dim + 1
            out[:, i] = (
                log_gamma_difference(df / 2, dim / 2)
                - dim / 2 * (np.log(np.pi) + np.log1p(1 / kappa))
                - (f.log_det[g] + np.log(left)) / 2
                - (nu + 1) / 2 * np.log1p(q * kappa / (kappa + 1))
            )
    return out, left
