"""Numbers that are category codes already: whole, from 0 on, and small.

A large array of them is looked through once, in memory's order, and then used as it is.
"""

import numpy as np

from bayesgen.numerics import kernels
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

MOST_CODES = 1024  # codes of a column


def occurring(X: Array | None) -> list[Array] | None:
    """The codes that occur in each column of a large (N, D) array; NaN is a missing cell.

    None if the array is not large, or if a cell is not a whole number 0 .. 1023.
    """
    if X is None or not kernels.pays(X.size, predicting=True):  # the same answer
        return None
    from bayesgen.numerics.kernels import categorical
    from bayesgen.numerics.kernels.threads import over_blocks

    def part(start: int, stop: int) -> Array:
        seen = np.zeros((X.shape[1], MOST_CODES + 2), dtype=np.uint8)
        for rows in categorical.row_slices(X, start, stop):
            x = categorical.as_codes(X[rows])
            bits = np.zeros((X.shape[1], 1), dtype=np.uint64)
            categorical.mark_small_codes(x, bits[:, 0])
            each = bits >> np.arange(categorical.OTHER + 1, dtype=np.uint64) & np.uint64(1)
            if each[:, categorical.OTHER].any():
                categorical.mark_codes(x, seen)
            else:
                seen[:, : categorical.OTHER + 1] |= each.astype(np.uint8)
        return seen

    most = min(16, max(1, (1 << 14) // X.shape[1]))
    seen = np.zeros((X.shape[1], MOST_CODES + 2), dtype=np.uint8)
    for found in over_blocks(part, X.shape[0], X.shape[1], most):
        seen |= found
    return (
        None
        if seen[:, MOST_CODES].any()
        else [np.flatnonzero(column[:MOST_CODES]) for column in seen]
    )


def may_stand(X: Array | None) -> bool:
    """Whether a large array can be taken for codes as it is: infinity is no cell of a table."""
    return X is not None and kernels.pays(X.size, predicting=True) and not has_infinity(X)


def has_infinity(X: Array) -> bool:
    """Whether a cell is infinite."""
    if X.dtype.kind != "f" or np.isfinite(X.sum()):
        return False
    return any(np.isinf(X[rows]).any() for rows in row_blocks(*X.shape))
