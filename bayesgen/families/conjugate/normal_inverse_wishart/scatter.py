"""Counts, means and scatter matrices of rows: the sufficient statistics of Normal classes.

C classes, D features; G scatter matrices, C or 1 that the classes share.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, starmap
from typing import Self

import numpy as np

from bayesgen.families.contract import Stats
from bayesgen.families.errors import refuse_negative
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from bayesgen.families.records import array
from bayesgen.families.shared.gaussian import warn_lost_digits
from bayesgen.numerics.kernels import pays
from bayesgen.numerics.kernels.blas import add_gram, sharing
from bayesgen.numerics.rows import Matrix, class_sums, dense_block, first_observed, row_blocks
from bayesgen.numerics.special import Array

_CELLS = 1 << 18  # of a block of rows: 2 MiB of float64 ...
_MOST_CELLS = 1 << 20  # ... or 8 MiB, where fewer rows would be too few
_ROWS = 1024  # for the product of a block to outweigh that it is added to the scatter
_ROWS_A_CLASS = 32  # for arithmetic on a class's rows to outweigh the call
_GROUPS = 4  # tasks that threads share
_MOST_COVARIANCES = 1 << 31  # 17 GB
_PARTS_CELLS = 1 << 20  # 8 MiB for parts of one scatter


@dataclass(frozen=True, eq=False)
class ScatterStats(Stats):
    """Count, mean and scatter matrix of each class, about a fixed reference row.

    With `shared`, the scatter of all classes about their own means is one matrix (1, D, D).
    """

    n: Array = array(CLASS)
    mean: Array = array(CLASS, FEATURE, signed=True)  # minus shift
    scatter: Array = array(CLASS, FEATURE, FEATURE_BIS, signed=True)
    shift: Array = array(FEATURE, signed=True)
    shared: bool = False

    def merge(self, other: Self) -> Self:
        """Chan, Golub and LeVeque's pairwise update, with outer products."""
        shift = self.shift if self.n.sum() > 0 else other.shift
        b = other.mean_about(shift)
        own = self.mean_about(shift)
        a = np.where((self.n > 0)[:, None], own, b)  # no rows, no mean to step from
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        step = np.where((other.n > 0)[:, None], b - a, 0.0)
        scatter = self.scatter + other.scatter + self.outer(self.n * share, step)
        return replace(self, n=n, mean=a + step * share[:, None], scatter=scatter, shift=shift)

    def remove(self, other: Self) -> Self:
        """The update run backwards; the matrix is kept, so a factor is made anew, not downdated."""
        n = self.n - other.n
        refuse_negative("n", n, self.n)
        left = n > 1e-12 * self.n
        n = np.where(left, n, 0.0)
        removed = other.mean_about(self.shift)
        ratio = np.divide(other.n, n, out=np.zeros_like(n), where=left)
        mean = np.where(left[:, None], self.mean + (self.mean - removed) * ratio[:, None], 0.0)
        step = np.where((left & (other.n > 0))[:, None], removed - mean, 0.0)
        # a class that is emptied takes its scatter about its own mean with it
        back = np.where(left, other.n * n / np.maximum(self.n, np.finfo(float).tiny), 0.0)
        scatter = self.scatter - other.scatter - self.outer(back, step)
        if not self.shared:
            scatter = np.where(left[:, None, None], scatter, 0.0)
        elif not left.any():
            scatter = np.zeros_like(scatter)
        diagonal = np.diagonal(scatter, axis1=1, axis2=2)
        before = np.diagonal(self.scatter, axis1=1, axis2=2)
        refuse_negative("scatter", diagonal, before)
        groups = n.sum(keepdims=True) if self.shared else n
        warn_lost_digits(diagonal, before, groups[:, None])
        return replace(self, n=n, mean=mean, scatter=scatter)

    def reindex_classes(self, codes: Array, n_classes: int) -> Self:
        """As in `Stats`; a shared scatter stays one matrix."""
        out = super().reindex_classes(codes, n_classes)
        return replace(out, scatter=self.scatter) if self.shared else out

    def pooled(self) -> Self:
        """As in `Stats`; a shared scatter counts once."""
        if not self.shared:
            return super().pooled()
        means = replace(self, scatter=np.zeros((len(self.n), *self.scatter.shape[1:])))
        out = Stats.pooled(means)
        return replace(out, scatter=out.scatter + self.scatter)

    def mean_about(self, shift: Array) -> Array:
        """(C, D) class means minus another reference row."""
        return self.mean + (self.shift - shift)

    def outer(self, weight: Array, step: Array) -> Array:
        """(G, D, D) weighted outer products of one step per class (C, D)."""
        if self.shared:
            return (step.T * weight @ step)[None]
        return weight[:, None, None] * step[:, :, None] * step[:, None, :]

    @classmethod
    def of_observed_cells(
        cls, X: Array, y: Array, n_classes: int, weight: Array | None = None, *, shared: bool
    ) -> Self:
        """Counts, means and variances of the observed cells: ``n`` is (C, D)."""
        shift = first_observed(X)
        n = class_sums(1.0 - np.isnan(X), y, n_classes, weight)
        total = class_sums(np.nan_to_num(X - shift), y, n_classes, weight)
        mean = total / np.where(n > 0, n, 1.0)
        step = np.nan_to_num(X - shift - mean[y])
        scatter = class_sums(step * step, y, n_classes, weight)
        diagonal = scatter[:, :, None] * np.eye(X.shape[1])
        if shared:
            diagonal = diagonal.sum(axis=0, keepdims=True)
        return cls(n, mean, diagonal, shift, shared)

    @classmethod
    def of_rows(
        cls,
        X: Matrix,
        y: Array,
        n_classes: int,
        weight: Array | None = None,
        *,
        shared: bool = False,
    ) -> Self:
        """Of complete dense rows, in one pass.

        Raises
        ------
        MissingCellError
            At the first NaN.
        ValueError
            If the covariances are more than 2^31 numbers.

        Notes
        -----
        Block by block the rows of each class are centred about their own mean, and the product of
        the block with itself is added to the scatter. Blocks are merged as in `merge`: its
        correction is the outer product of one more row for each class, which is written below the
        others.
        """
        n_rows, n_features = X.shape
        cells = (1 if shared else n_classes) * n_features**2
        if cells > _MOST_COVARIANCES:
            raise ValueError(
                f"covariances of {n_features} columns need {8e-9 * cells:.0f} GB; the limit is "
                f'{8e-9 * _MOST_COVARIANCES:.0f} GB. Use covariance="diagonal", or fewer columns'
            )
        shift = _reference(X)
        n, mean = np.zeros(n_classes), np.zeros((n_classes, n_features))
        # parts of one scatter to which threads can add side by side, or one for each class
        parts = _parts(n_features) if shared else n_classes
        scatter = np.zeros((parts, n_features, n_features))
        with sharing(pays(n_rows * n_features * n_features)) as share:
            for rows in _blocks(n_rows, n_features, n_classes):
                w = None if weight is None else np.asarray(weight[rows], dtype=np.float64)
                block = _Block(X[rows], y[rows], n_classes, w)
                share(partial(block.centre, shift, n, mean), block.some_classes())
                if np.isnan(mean[block.classes]).any():
                    _refuse_missing(X, rows, weight)
                n[block.classes] += block.n
                share(partial(block.add_to, scatter), block.division(parts, shared))
        if shared:
            for part in scatter[1:]:
                scatter[0] += part
            scatter = scatter[:1].copy()
        for matrix in scatter:
            _mirror(matrix)
        return cls(n, mean, scatter, shift, shared)


class MissingCellError(ValueError):
    """A training row with a missing cell, where there is no closed form.

    Parameters
    ----------
    row, column : int
    """

    def __init__(self, row: int, column: int) -> None:
        self.row, self.column = row, column
        super().__init__(
            "training rows with missing cells have no closed form under a full covariance "
            f"(first in row {row}, column {column}): integrate the cells out with "
            "fit(X, y, inference='nuts'), drop or impute the rows, use covariance='diagonal', or "
            "GaussianNB"
        )


class _Block:
    """Some rows, sorted by class and centred, each class with one more row below its own."""

    def __init__(self, x: Array, codes: Array, n_classes: int, weight: Array | None) -> None:
        if weight is not None and not weight.all():
            x, codes, weight = x[weight > 0], codes[weight > 0], weight[weight > 0]
        few_bits = codes.astype(np.min_scalar_type(n_classes))  # sorted by their digits
        self.x, self.weight = x, weight
        self.order = np.argsort(few_bits, kind="stable")
        count = np.bincount(codes, minlength=n_classes)
        self.classes = np.flatnonzero(count)
        self.n = np.bincount(codes, weight, minlength=n_classes)[self.classes]
        self.first = np.concatenate([[0], np.cumsum(count[self.classes])])
        self.rows = np.empty((len(x) + len(self.classes), x.shape[1]))

    def some_classes(self) -> list[Array]:
        """Tasks of `centre`."""
        own = np.arange(len(self.classes))
        return np.array_split(own, min(_GROUPS, len(own))) if len(own) else []

    def centre(self, shift: Array, n: Array, mean: Array, some: Array) -> None:
        """Fill in `rows` of some classes; update the `mean`, minus `shift`, of `n` earlier rows."""
        for k in some:
            c, at = self.classes[k], self.order[self.first[k] : self.first[k + 1]]
            own = self.rows[self.first[k] + k : self.first[k + 1] + k + 1]
            d, below = own[:-1], own[-1]
            if self.x.dtype == d.dtype and self.x.flags.c_contiguous:
                np.take(self.x, at, axis=0, out=d, mode="clip")  # "raise" would make a copy
            else:
                d[...] = self.x[at]  # widened to float64 before any arithmetic
            d -= shift
            w = np.ones(len(at)) if self.weight is None else self.weight[at]
            centre = w @ d / self.n[k]
            d -= centre
            if self.weight is not None:
                d *= np.sqrt(w)[:, None]
            step = centre - mean[c] if n[c] > 0 else centre
            share = self.n[k] / (n[c] + self.n[k])
            np.multiply(step, np.sqrt(n[c] * share), out=below)
            mean[c] += share * step

    def division(self, parts: int, shared: bool) -> Iterator[tuple[int, slice]]:
        """Tasks of `add_to`: a matrix, and the rows that belong to it."""
        if shared:
            ends = np.linspace(0, len(self.rows), parts + 1).astype(int)
            yield from enumerate(starmap(slice, pairwise(ends)))
            return
        for k, c in enumerate(self.classes):
            yield int(c), slice(self.first[k] + k, self.first[k + 1] + k + 1)

    def add_to(self, scatter: Array, task: tuple[int, slice]) -> None:
        """Add the products of some rows to the upper triangle of a matrix."""
        g, rows = task
        add_gram(self.rows[rows], scatter[g])


def _reference(X: Matrix) -> Array:
    """(D,) the median of the first rows, of an odd number: one outlier is no reference."""
    head = dense_block(X, slice(0, 101))
    head = head[~np.isnan(head).any(axis=1)]
    if not len(head):
        return np.zeros(X.shape[1])
    return np.median(head[: len(head) - (len(head) + 1) % 2], axis=0)


def _parts(n_features: int) -> int:
    return max(1, min(_GROUPS, _PARTS_CELLS // max(1, n_features * n_features)))


def _mirror(matrix: Array) -> None:
    """Copy the upper triangle to the lower one, a band of rows at a time."""
    for band in row_blocks(len(matrix), len(matrix)):
        matrix[band, : band.start] = matrix[: band.start, band].T
        square = matrix[band, band]
        i, j = np.tril_indices(len(square), -1)
        square[i, j] = square[j, i]


def _blocks(n_rows: int, n_features: int, n_classes: int) -> Iterator[slice]:
    wide = max(1, n_features)
    step = max(_CELLS // wide, min(_MOST_CELLS // wide, max(_ROWS, _ROWS_A_CLASS * n_classes)), 1)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _refuse_missing(X: Array, rows: slice, weight: Array | None) -> None:
    """Raise at the first NaN of a row that counts; values that overflowed are let pass."""
    is_nan = np.isnan(np.asarray(X[rows], dtype=np.float64))
    if weight is not None:
        is_nan &= weight[rows, None] > 0
    if is_nan.any():
        row, column = np.argwhere(is_nan)[0]
        raise MissingCellError(rows.start + int(row), int(column))
