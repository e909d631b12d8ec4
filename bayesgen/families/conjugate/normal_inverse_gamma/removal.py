r"""The predictive of a training row without the row itself, sums of squares updated backwards.

With row i of weight w in class k, :math:`\delta = x_i - m_k` and :math:`\kappa' = \kappa_k - w`:

.. math:: m_k' = m_k - w \delta / \kappa', \qquad
          SS' = SS - w \kappa_k \delta^2 / \kappa', \qquad \nu' = \nu - w

of each cell, or summed over the columns that share a variance. A variance that classes share
changes for all of them. Source: the update of Gelman et al. (2013), section 3.3, solved for the
prior.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bayesgen.numerics.rows import Matrix, dense_block
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma

_LOST = 1e-8  # of the precision of a mean: what other rows and the prior gave it is rounded off
_CELLS = 1 << 16  # of one block: a dozen temporaries of 512 KiB


def log_predictive_without(
    f: "NormalInverseGamma", X: Matrix, y: Array, weight: Array
) -> tuple[Array, Array]:
    """(N, C) and (N,), as in `RowRemoval`."""
    out = np.empty((X.shape[0], len(f.mu))) if f.over_classes else f.log_predictive(X)
    left = np.ones(X.shape[0])
    step = max(1, _CELLS // max(1, X.shape[1]))
    cells = _Cells.of(f)
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        x = (dense_block(X, rows) - f.shift)[:, f.live]
        own, w = y[rows], weight[rows, None]
        n = np.arange(len(own))
        block = _Block.of(cells, x, own, w[:1] if (w == w[0]).all() else w)
        left[rows] = block.left
        if f.over_classes:
            for c in range(len(f.mu)):
                out[rows, c] = block.of_class(c)
        out[n + start, own] = block.of_own_class()
    return out, left


class _Cells(NamedTuple):
    """The posterior of the columns that count; G classes (1 if they share), H columns (or 1)."""

    mu: Array  # (C, D)
    kappa: Array  # (C, D)
    nu: Array  # (G, H)
    ss: Array  # (G, H)
    over_classes: bool
    over_features: bool

    @classmethod
    def of(cls, f: "NormalInverseGamma") -> Self:
        """Without the ignored columns."""

        def live(table: Array) -> Array:
            return table[:, f.live] if table.shape[1] > 1 else table

        kappa = np.broadcast_to(f.kappa, f.mu.shape)
        return cls(
            live(f.mu),
            live(kappa),
            live(f.nu),
            live(f.sum_of_squares),
            f.over_classes,
            f.over_features,
        )


class _Block(NamedTuple):
    """Some rows, what their own class loses without them, and what is left."""

    cells: _Cells
    x: Array  # (n, D)
    seen: Array | None  # (n, D), None if no cell is missing
    n_seen: Array  # (n, 1) or a number
    delta: Array  # (n, D) x less the mean of its class
    kappa: Array  # (n, D) of its class
    kappa_left: Array  # (n, D)
    nu: Array  # (n or 1, H) degrees of freedom of the row's variances without it
    ss: Array  # (n, H) sums of squares without it
    left: Array  # (n,) the least share of a sum of squares that is left

    @classmethod
    def of(cls, cells: _Cells, x: Array, own: Array, w: Array) -> Self:
        """`x` (n, D) with NaN; `own` (n,); `w` (n or 1, 1)."""
        missing = np.isnan(x)
        seen = ~missing if missing.any() else None
        delta = x - cells.mu[own]
        if seen is not None:
            delta[missing] = 0.0
        kappa = cells.kappa[own]
        kappa_left = kappa - w
        lost = kappa_left < _LOST * kappa
        kappa_left = np.where(lost, kappa, kappa_left)
        taken: Array = np.square(delta) * (w * kappa / kappa_left)
        n_seen: Any = x.shape[1] if seen is None else seen.sum(axis=1, keepdims=True)
        n_taken = w
        if cells.over_features:
            taken, n_taken = taken.sum(axis=1, keepdims=True), w * n_seen
        group = np.zeros_like(own) if cells.over_classes else own
        whole = cells.ss[group]
        ss = whole - taken
        left = np.ones(len(x))
        if taken.size:
            with np.errstate(invalid="ignore", divide="ignore"):
                left = np.minimum((ss / whole).min(axis=1), 1.0)
            left[lost.any(axis=1)] = 0.0
        nu = (cells.nu if cells.over_classes else cells.nu[group]) - n_taken
        return cls(cells, x, seen, np.asarray(n_seen), delta, kappa, kappa_left, nu, ss, left)

    def of_class(self, c: int) -> Array:
        """(n,) log densities in a class that is not the row's own but shares its variances."""
        d = self.x - self.cells.mu[c]
        if self.seen is not None:
            d[~self.seen] = 0.0
        return self._log_t(d, self.cells.kappa[c])

    def of_own_class(self) -> Array:
        """(n,) log densities in the row's own class."""
        return self._log_t(self.delta * (self.kappa / self.kappa_left), self.kappa_left)

    def _log_t(self, d: Array, kappa: Array) -> Array:
        def over_cells(values: Array) -> Array:
            if self.seen is not None:
                values = np.where(self.seen, values, 0.0)
            total: Array = values.sum(axis=1)
            return total

        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            scale = self.ss * (1 + 1 / kappa)
            if not self.cells.over_features:
                t = log_gamma_difference(self.nu / 2, 0.5) - 0.5 * np.log(np.pi * scale)
                return over_cells(t - (self.nu + 1) / 2 * np.log1p(np.square(d) / scale))
            m = self.n_seen
            norm = log_gamma_difference(self.nu / 2, m / 2) - m / 2 * np.log(np.pi)
            distance = np.log1p((np.square(d) / scale).sum(axis=1, keepdims=True))
            rest: Array = (norm - (self.nu + m) / 2 * distance)[:, 0]
            return rest - over_cells(np.log(np.broadcast_to(scale, d.shape))) / 2
