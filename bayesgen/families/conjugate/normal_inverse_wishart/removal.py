r"""The predictive of a training row without the row itself: a rank-one change of psi.

With row i of weight w in class k, :math:`\delta_c = x_i - m_c`, :math:`\kappa' = \kappa_k - w`,
:math:`r = w \kappa_k / \kappa'` and distances :math:`q_{cd} = \delta_c^T \Psi^{-1} \delta_d`:

.. math:: \Psi' = \Psi - r\, \delta_k \delta_k^T, \qquad |\Psi'| = |\Psi| (1 - r q_{kk}), \qquad
          \delta_c^T \Psi'^{-1} \delta_c = q_{cc} + \frac{r\, q_{ck}^2}{1 - r q_{kk}}

and :math:`x_i - m_k' = \delta_k \kappa_k / \kappa'`. One triangular solve for all rows and no
matrix of any row's own. Source: the Sherman-Morrison formula and the matrix determinant lemma.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.numerics.rows import Matrix, dense_block, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart

_FAR = 100.0  # class means further apart, in standard deviations, are not subtracted afterwards


def log_predictive_without(
    f: "NormalInverseWishart", X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(N, C) and (N,), as in `RowRemoval`; rows of the training set have no missing cells."""
    n_classes, live = len(f.mu), f.live
    part = f if len(live) == f.dim else f.marginal(live)
    left = np.ones(X.shape[0])
    if not len(live):
        return np.zeros((X.shape[0], n_classes)), left
    if f.shared:
        out = np.empty((X.shape[0], n_classes))
        for rows in row_blocks(X.shape[0], len(live) * n_classes):
            x = dense_block(X, rows)[:, live] - part.shift
            out[rows], left[rows] = _of_shared(part, x, y[rows], weight[rows])
        return out, left
    out = f.log_predictive(X)
    for k in range(n_classes):
        own = np.flatnonzero(y == k)
        for block in row_blocks(len(own), len(live)):
            rows_of_k = own[block]
            x = dense_block(X, rows_of_k)[:, live] - part.shift
            z = _whitened(part, k, x - part.mu[k])
            change = _Change.of(part, k, np.einsum("nd,nd->n", z, z), weight[rows_of_k])
            out[rows_of_k, k], left[rows_of_k] = change.of_own_class(), change.left
    return out, left


def _whitened(f: "NormalInverseWishart", g: int, d: Array) -> Array:
    """(n, D) differences in the metric of psi^-1."""
    z: Array = solve_triangular(f.factor[g], d.T, lower=True, check_finite=False).T
    return z


def _of_shared(f: "NormalInverseWishart", x: Array, own: Array, w: Array) -> tuple[Array, Array]:
    """(n, C) and (n,): a matrix that classes share loses the row in all of them."""
    rows = np.arange(len(x))
    centre = f.mu.mean(axis=0)
    steps = _whitened(f, 0, f.mu - centre)
    if np.abs(steps).max() < _FAR:  # one product; else the difference of two would lose digits
        z = _whitened(f, 0, x - centre) - steps[:, None]  # (C, n, D)
    else:
        z = np.stack([_whitened(f, 0, x - mu) for mu in f.mu])
    mine = z[own, rows]
    q = np.einsum("cnd,cnd->nc", z, z)
    cross = np.einsum("cnd,nd->nc", z, mine)
    change = _Change.of(f, own, q[rows, own], w)
    with np.errstate(invalid="ignore", divide="ignore"):
        q += (change.rank / change.left)[:, None] * np.square(cross)
        out = change.log_t(q.T, f.kappa[:, None]).T
    out[rows, own] = change.of_own_class()
    return out, change.left


class _Change(NamedTuple):
    """What a posterior is without each of n rows, as far as their densities need it."""

    dim: int
    nu: Array  # (n,)
    log_det: Array  # (n,)
    rank: Array  # (n,) factor r of the outer product that leaves psi
    ratio: Array  # (n,) kappa / kappa'
    kappa: Array  # (n,) kappa'
    q: Array  # (n,) squared distance from the own class's mean, in the metric of psi^-1
    left: Array  # (n,) 1 - r q

    @classmethod
    def of(cls, f: "NormalInverseWishart", own: Any, q: Array, w: Array) -> Self:
        """Rows of the classes `own` (n,), or all of one; `q` (n,), weights `w` (n,)."""
        kappa = f.kappa[own]
        kappa_left = kappa - w
        ratio = kappa / kappa_left
        left = 1 - w * ratio * q
        g = 0 if f.shared else own
        with np.errstate(invalid="ignore", divide="ignore"):
            log_det = f.log_det[g] + np.log(left)
        return cls(f.dim, f.nu[g] - w, log_det, w * ratio, ratio, kappa_left, q, left)

    def log_t(self, q: Array, kappa: Array) -> Array:
        """Student t density at squared distances in the metric of psi' without the rows."""
        df = self.nu - self.dim + 1
        norm = log_gamma_difference(df / 2, self.dim / 2) - self.dim / 2 * np.log(np.pi)
        norm = norm - self.log_det / 2 - self.dim / 2 * np.log1p(1 / kappa)
        density: Array = norm - (self.nu + 1) / 2 * np.log1p(q * kappa / (kappa + 1))
        return density

    def of_own_class(self) -> Array:
        """(n,) log densities in the row's own class, whose mean has moved away from it."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.log_t(np.square(self.ratio) * self.q / self.left, self.kappa)
