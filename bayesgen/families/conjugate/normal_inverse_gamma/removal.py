r"""The predictive of a training row without the row itself, sums of squares updated backwards.

With row i of weight w in class k, :math:`\delta = x_i - m_k` and :math:`\kappa' = \kappa_k - w`:

.. math:: m_k' = m_k - w \delta / \kappa', \qquad
          SS' = SS - w \kappa_k \delta^2 / \kappa', \qquad \nu' = \nu - w

of each cell, or summed over the columns that share a variance. A variance that classes share
changes for all of them. Source: the update of Gelman et al. (2013), section 3.3, solved for the
prior.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.numerics.rows import Matrix, dense_block
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma

_CELLS = 1 << 16  # of one block: a dozen temporaries of 512 KiB


def log_predictive_without(
    f: "NormalInverseGamma", X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(N, C) and (N,), as in `RowRemoval`."""
    n_classes, live = len(f.mu), f.live
    if f.over_classes:
        out = np.empty((X.shape[0], n_classes))
    else:
        out = f.log_predictive(X)
    left = np.ones(X.shape[0])
    step = max(1, _CELLS // max(1, X.shape[1]))
    for k in range(n_classes):
        own = np.flatnonzero(y == k)
        targets = list(range(n_classes)) if f.over_classes else [k]
        for start in range(0, len(own), step):
            rows = own[start : start + step]
            x = (dense_block(X, rows) - f.shift)[:, live]
            w = weight[rows, None]
            if (w == w[0]).all():  # tables of a row, not of every row
                w = w[:1]
            part, left[rows] = _of_class(f, k, targets, x, w)
            out[rows[:, None], targets] = part
    return out, left


def _of_class(
    f: "NormalInverseGamma", k: int, targets: list[int], x: Array, w: Array
) -> tuple[Array, Array]:
    """Rows x (n, live columns) of class k and weights (n or 1, 1): (n, targets) and (n,)."""
    live = f.live

    def columns(table: Array) -> Array:
        return table[:, live] if table.shape[1] > 1 else table

    mu, kappa = columns(f.mu), columns(np.broadcast_to(f.kappa, f.mu.shape))
    nu, ss = columns(f.nu), columns(f.sum_of_squares)
    seen = ~np.isnan(x)
    complete = bool(seen.all())

    def step(c: int) -> Array:
        return x - mu[c] if complete else np.where(seen, x - mu[c], 0.0)

    delta = step(k)
    kappa_left = kappa[k] - w
    taken: Any = np.square(delta) * (w * kappa[k] / kappa_left)
    n_taken: Any = w
    if f.over_features:
        m = seen.sum(axis=1, keepdims=True)
        taken, n_taken = taken.sum(axis=1, keepdims=True), w * m
    out = np.empty((len(x), len(targets)))
    left = np.ones(len(x))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for i, c in enumerate(targets):
            g = 0 if f.over_classes else c
            scale = ss[g] - taken
            if taken.size:
                left = np.minimum(left, (scale / ss[g]).min(axis=1))
            nu_left = nu[g] - n_taken
            if c == k:
                d, kappa_c = delta * (kappa[k] / kappa_left), kappa_left
            else:
                d, kappa_c = step(c), kappa[c]
            scale = scale * (1 + 1 / kappa_c)
            if f.over_features:
                widths = np.log(np.broadcast_to(scale, x.shape))
                total = np.sum(widths if complete else np.where(seen, widths, 0.0), axis=1)
                distance = np.log1p((np.square(d) / scale).sum(axis=1, keepdims=True))
                row = log_gamma_difference(nu_left / 2, m / 2) - m / 2 * np.log(np.pi)
                out[:, i] = (row - (nu_left + m) / 2 * distance)[:, 0] - total / 2
            else:
                cells = log_gamma_difference(nu_left / 2, 0.5) - 0.5 * np.log(np.pi * scale)
                cells = cells - (nu_left + 1) / 2 * np.log1p(np.square(d) / scale)
                out[:, i] = np.sum(cells if complete else np.where(seen, cells, 0.0), axis=1)
    return out, left
