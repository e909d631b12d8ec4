"""Tables of bits: 0, 1 and NaN, or numbers that are bits by a threshold.

Numbers are compared with the threshold as they are read, so that no table of bits is made of a
large table of numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.families.shared.pymc_parts import sum_cells
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import (
    Matrix,
    cell_of,
    each_cell_once,
    row_blocks,
    split_missing,
    stored_cells,
)
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class Thresholded:
    """Dense numbers that are 1 above a threshold: compared as they are read."""

    values: Array  # (N, D), finite or NaN
    threshold: float

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.values.shape

    def __getitem__(self, rows: Any) -> Array:
        """The bits of some rows: 0, 1 and NaN."""
        values = self.values[rows]
        ones = np.greater(values, self.threshold).view(np.uint8)
        if values.dtype.kind != "f" or np.isfinite(values).all():
            return ones
        if np.isinf(values).any():
            raise ValueError("Input X contains infinity")
        return np.where(np.isnan(values), np.nan, ones)


Bits = Matrix | Thresholded


def first_invalid_bit(values: Array) -> tuple[int, int] | None:
    """Position of the first of some numbers (N, D) that is not 0, 1 or NaN."""
    if values.dtype == bool:
        return None
    if kernels.pays(values.size, predicting=True):  # the same answer
        from bayesgen.numerics.kernels import bits

        return bits.first_invalid(values)
    for rows in row_blocks(*values.shape):
        block = values[rows]
        unknown = (block != 0) & (block != 1) & (block == block)
        if unknown.any():
            i, j = np.argwhere(unknown)[0]
            return int(rows.start + i), int(j)
    return None


def checked_bits(X: Bits) -> Matrix:
    """The bits, all 0, 1 or NaN."""
    if not sparse.issparse(X):
        bits = X[:] if isinstance(X, Thresholded) else X
        unknown = first_invalid_bit(bits)
    else:
        bits = each_cell_once(X)
        unknown = first_invalid_bit(bits.data[None])
        unknown = cell_of(bits, unknown[1]) if unknown else None
    if unknown:
        row, j = unknown
        raise ValueError(f"bits must be 0, 1 or NaN: row {row}, feature {j} is {bits[row, j]:g}")
    return bits


def large_bits(X: Bits, n_classes: int | None = None) -> Thresholded | None:
    """Dense rows for the compiled pass, where it pays: to count, or to predict some classes."""
    steps = (n_classes or 1) * X.shape[0] * X.shape[1]
    if sparse.issparse(X) or not kernels.pays(steps, predicting=n_classes is not None):
        return None
    return X if isinstance(X, Thresholded) else Thresholded(checked_bits(X), 0.5)


def log_masses(X: Thresholded, log_one: Array, log_zero: Array) -> Array:
    """(N, C) as `kernels.bits.log_masses`."""
    from bayesgen.numerics.kernels import bits

    return bits.log_masses(X.values, log_one, log_zero, X.threshold)


def pymc_log_likelihood_of_bits(f: Any, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
    """Sums over the cells that are 1 or missing, and what a row of zeros has."""
    import pytensor.tensor as pt

    ones, missing = split_missing(X)
    on, off = pt.log(theta["theta"]).T, pt.log1p(-theta["theta"]).T
    out = sum_cells(f"{prefix}ones", stored_cells(ones, slice(None)), on - off)
    if missing is not None:
        out = out - sum_cells(f"{prefix}missing", stored_cells(missing, slice(None)), off)
    return out + off.sum(axis=0)
