"""Counts, means and scatters of cells: the sufficient statistics of independent Normal columns."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np
from scipy.sparse import issparse

from bayesgen.families.contract import Stats
from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import array
from bayesgen.families.shared.gaussian import warn_lost_digits
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import (
    Matrix,
    class_counts,
    dense_block,
    first_observed,
    has_nan,
    one_hot,
    row_blocks,
)
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class GaussianStats(Stats):
    """Count, mean and scatter of each cell, about a fixed reference row.

    Means are relative to `shift`, so that an offset of 1e8 costs no digits. Merging is Chan's
    update. Removal is exact up to rounding of the scatter *before* removal.
    """

    n: Array = array(CLASS, FEATURE)  # weight of the observed rows
    mean: Array = array(CLASS, FEATURE, signed=True)  # minus shift
    scatter: Array = array(CLASS, FEATURE)  # sum of squares about the mean
    shift: Array = array(FEATURE, signed=True)

    @classmethod
    def of_rows(cls, X: Matrix, y: Array, n_classes: int, weight: Array | None = None) -> Self:
        """Block by block: centred sums about the first observed value of each column."""
        shape = (n_classes, X.shape[1])
        shift = first_observed(X)
        zero = np.zeros(shape)
        out = cls(zero, zero, zero, shift)
        if kernels.pays(X.shape[0] * X.shape[1]) and not issparse(X):
            return _compiled(X, y, weight, out)
        for rows in row_blocks(*X.shape):
            d = dense_block(X, rows) - shift
            codes, w = y[rows], None if weight is None else weight[rows]
            indicator = one_hot(codes, n_classes, w)
            if has_nan(d):
                seen = ~np.isnan(d)
                n = indicator @ seen.astype(np.float64)
                d = np.where(seen, d, 0.0)
            else:
                seen = None
                n = np.broadcast_to(class_counts(codes, n_classes, w)[:, None], shape)
            mean = np.divide(indicator @ d, n, out=np.zeros(shape), where=n > 0)
            d -= mean[codes]
            if seen is not None:
                d[~seen] = 0.0
            out = out.merge(cls(n, mean, indicator @ np.square(d, out=d), shift))
        return out

    def merge(self, other: Self) -> Self:
        """Chan, Golub and LeVeque's pairwise update."""
        seen = self.n.sum(axis=0) > 0
        shift = np.where(seen, self.shift, other.shift)
        b = other.about(shift)
        a = np.where(self.n > 0, self.about(shift), b)  # an empty cell has no mean to step from
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        step = np.where(other.n > 0, b - a, 0.0)
        scatter = self.scatter + other.scatter + step * step * self.n * share
        return replace(self, n=n, mean=a + step * share, scatter=scatter, shift=shift)

    def remove(self, other: Self) -> Self:
        """The update run backwards; warns when the rows removed carried almost all the scatter."""
        n = self.n - other.n
        refuse_negative("n", n, self.n)
        left = n > 1e-12 * self.n
        n = np.where(left, n, 0.0)
        mean, removed = self.mean, other.about(self.shift)
        # mean_left = mean + (mean - mean_gone) n_gone/n_left
        ratio = np.divide(other.n, n, out=np.zeros_like(n), where=left)
        mean_left = np.where(left, mean + (mean - removed) * ratio, 0.0)
        step = np.where(left & (other.n > 0), removed - mean_left, 0.0)
        scatter = (
            self.scatter - other.scatter - step * step * other.n * n / np.where(left, self.n, 1.0)
        )
        scatter = np.where(left, scatter, 0.0)
        refuse_negative("scatter", scatter, self.scatter)
        warn_lost_digits(scatter, self.scatter, n)
        return replace(self, n=n, mean=mean_left, scatter=np.maximum(scatter, 0.0))

    def about(self, shift: Array) -> Array:
        """(C, D) means minus another reference."""
        return self.mean + (self.shift - shift)


def _compiled[S: GaussianStats](X: Array, y: Array, weight: Array | None, zero: S) -> S:
    """`GaussianStats.of_rows` of a large dense X."""
    from bayesgen.numerics.kernels.compiling import as_data, as_rows, row_slices
    from bayesgen.numerics.kernels.gaussian import add_moments
    from bayesgen.numerics.kernels.threads import over_blocks

    codes = as_data(np.ascontiguousarray(y, dtype=np.int64).view(np.uint64))
    w = as_data(np.ascontiguousarray(() if weight is None else weight, dtype=np.float64))
    shift = as_data(zero.shift)

    def part(start: int, stop: int) -> S:
        sums = zero.n.copy(), zero.mean.copy(), zero.scatter.copy()
        for rows in row_slices(X, start, stop):
            add_moments(as_rows(X[rows]), codes[rows], w[rows], shift, *sums)
        return type(zero)(*sums, zero.shift)

    most = min(16, max(1, (1 << 20) // zero.n.size))
    with np.errstate(invalid="ignore", over="ignore"):  # as in the kernel: infinity, not a warning
        parts = over_blocks(part, X.shape[0], X.shape[1], most)
        return reduce(lambda a, b: a.merge(b), parts, zero)
