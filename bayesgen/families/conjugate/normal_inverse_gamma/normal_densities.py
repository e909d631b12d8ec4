r"""Log densities of rows of independent Normal cells, for many draws of the means and variances.

About a centre m near all the means, :math:`\mu = m + \delta` and w = 1/variance,

.. math:: -\tfrac12 \sum_j w_j (x_j - \mu_j)^2 = \sum_j \left[-\tfrac12 w_j (x_j - m_j)^2
          + w_j \delta_j (x_j - m_j) - \tfrac12 w_j \delta_j^2\right]

is one product of two matrices: rows with their squares, and draws. It has the digits of the direct
form as long as no mean is many standard deviations from the centre; other draws take that form.
"""

import numpy as np

from bayesgen.numerics.rows import Matrix, dense_block, has_nan, row_blocks
from bayesgen.numerics.special import Array

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
