"""Distribution functions on a uniform grid: look-up of probabilities and quantiles, row by row.

Between grid points F is the cubic with the right values and slopes (Hermite). Where one look-up
is not enough, `inversion.Inverse.quantile` sums the series itself.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bayesgen.numerics.special import Array


@dataclass(frozen=True)
class Table:
    """n distribution functions on G equidistant points each.

    Parameters
    ----------
    start, spacing : (n,)
        Left end and distance of the grid points.
    cdf : (n, G), non-decreasing from about 0 to about 1
    pdf : (n, G)
    """

    start: Array
    spacing: Array
    cdf: Array
    pdf: Array

    @property
    def grid(self) -> Array:
        """(n, G) points."""
        return self.start[:, None] + self.spacing[:, None] * np.arange(self.cdf.shape[1])

    def part(self, rows: slice | Array) -> Self:
        """Some of the n distributions."""
        return type(self)(self.start[rows], self.spacing[rows], self.cdf[rows], self.pdf[rows])

    def cdf_and_pdf(self, l: Array) -> tuple[Array, Array]:
        """(n, Q) each at the points l (n, Q); 0 or 1 outside the grid."""
        size = self.cdf.shape[1]
        place = (l - self.start[:, None]) / self.spacing[:, None]
        place = np.clip(place, 0.0, size - 1.0)
        j = np.minimum(place.astype(np.intp), size - 2)
        f0, a, b, c = self._cubic(j)
        s = place - j
        slope = (a + s * (2 * b + 3 * s * c)) / self.spacing[:, None]
        return f0 + s * (a + s * (b + s * c)), slope

    def quantile(self, p: Array) -> Array:
        """(n, Q) quantiles at p, (Q,) or (n, Q); the ends of the grid for p beyond them."""
        p = np.broadcast_to(p, (len(self.cdf), np.shape(p)[-1]))
        j = find(self.cdf, p)
        f0, a, b, c = self._cubic(j)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.clip(np.nan_to_num((p - f0) / (a + b + c)), 0.0, 1.0)
            for _ in range(3):
                miss = f0 + s * (a + s * (b + s * c)) - p
                step = s - miss / (a + s * (2 * b + 3 * s * c))
                s = np.where((step >= 0) & (step <= 1), step, s)
        return self.start[:, None] + self.spacing[:, None] * (j + s)

    def _cubic(self, j: Array) -> tuple[Array, ...]:
        """Coefficients of 1, s, s^2, s^3 in the cells j (n, Q)."""
        size = self.cdf.shape[1]
        at = j + size * np.arange(len(j))[:, None]
        cdf, pdf = self.cdf.ravel(), self.pdf.ravel()
        f0, rise = cdf[at], cdf[at + 1] - cdf[at]
        d0, d1 = pdf[at] * self.spacing[:, None], pdf[at + 1] * self.spacing[:, None]
        return f0, d0, 3 * rise - 2 * d0 - d1, d0 + d1 - 2 * rise


def find(cdf: Array, p: Array) -> Array:
    """(n, Q) cells j of each row with cdf[j] <= p <= cdf[j + 1], for non-decreasing cdf (n, G)."""
    n, size = cdf.shape
    offset = 2.0 * np.arange(n)[:, None]  # rows one after the other: one sorted array
    j = np.searchsorted((cdf + offset).ravel(), (p + offset).ravel(), side="right") - 1
    return np.clip(j.reshape(p.shape) - size * np.arange(n)[:, None], 0, size - 2)
