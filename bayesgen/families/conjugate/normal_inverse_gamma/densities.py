r"""Draws of the class log-densities where the classes share variances.

One number per class stands for all its means: with weights w = chi2_nu/SS of the features, the
squared distance of class c is
:math:`[(z + \sqrt{\kappa \sum_j w_j \delta_{cj}^2})^2 + \chi^2_{d-1}]/\kappa`, d the number of
observed cells, if the columns have one kappa in each class.

Log densities of rows of independent Normal cells, for many draws of the means and variances.

About a centre m near all the means, :math:`\mu = m + \delta` and w = 1/variance,

.. math:: -\tfrac12 \sum_j w_j (x_j - \mu_j)^2 = \sum_j \left[-\tfrac12 w_j (x_j - m_j)^2
          + w_j \delta_j (x_j - m_j) - \tfrac12 w_j \delta_j^2\right]

is one product of two matrices: rows with their squares, and draws. It has the digits of the direct
form as long as no mean is many standard deviations from the centre; other draws take that form.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.shared.gaussian import noncentral
from bayesgen.numerics.rows import Matrix, dense_block, has_nan, row_blocks
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


_NEAR = 25.0  # squared distance from the centre, in variances, on the average over the columns


def normal_log_densities(X: Matrix, live: Array, mu: Array, sigma2: Array, out: Array) -> None:
    """Sums over the observed live cells of each row, into `out` (S, N).

    Parameters
    ----------
    X : (N, D), in the unit of the features
        NaN is a missing cell.
    live : bool (D,)
    mu, sigma2 : (S, L)
        Of the live columns.
    """
    n_live = mu.shape[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_norm = -0.5 * np.log(2 * np.pi * sigma2)
        w = 1 / sigma2
        centre = np.average(mu, axis=0, weights=w) if len(mu) > 1 else mu[0]
        delta = mu - centre
        far = (w * delta * delta).sum(axis=1)
        near = np.flatnonzero(far <= _NEAR * n_live)
    far_draws = np.setdiff1d(np.arange(len(mu)), near)
    w, delta = w[near], delta[near]
    constant = log_norm[near] - 0.5 * w * delta * delta
    moved = bool(delta.any())
    parts = [-0.5 * w, *([w * delta] if moved else [])]
    whole = np.hstack([*parts, constant.sum(axis=1, keepdims=True)])
    gappy = np.hstack([*parts, constant])
    for rows in row_blocks(X.shape[0], len(parts) * n_live + 1):
        x = dense_block(X, rows)[:, live]
        gaps = has_nan(x)
        d = x - centre
        seen = np.ones((len(x), 1))
        if gaps:
            seen = np.isfinite(x).astype(np.float64)
            d[np.isnan(x)] = 0.0
        with np.errstate(over="ignore"):
            table = np.hstack([d * d, *([d] if moved else []), seen])
        table_of_draws = gappy if gaps else whole
        if not np.isfinite(table).all():
            direct = np.arange(len(mu))
        elif len(far_draws):
            direct = far_draws
            out[near, rows] = table_of_draws @ table.T
        else:
            np.matmul(table_of_draws, table.T, out=out[:, rows])
            continue
        total = np.nansum if gaps else np.sum
        with np.errstate(over="ignore"):
            for s in direct:
                z = x - mu[s]
                z *= z
                out[s, rows] = total(log_norm[s] - z / (2 * sigma2[s]), axis=1)
