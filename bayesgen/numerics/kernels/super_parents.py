"""The average over sets of super-parents of the tables of all sets with one column more."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray


@compiled
def average(  # pragma: no cover - compiled
    codes: Array,
    out: Array,
    one: Array,
    two: Array,
    constant: Array,
    columns: Array,
    strides: Array,
    first: Array,
    wide_columns: Array,
    wide_strides: Array,
    wide_first: Array,
    below: Array,
) -> None:
    """Write to out (N, C) the log of a sum over sets, of products of their tables' entries.

    Parameters
    ----------
    codes : int64 (N, D)
    one : (parent cells, C) what a row's cell in the table of a set adds to the set's log
    two : (cells, C) what its cell in a table of one column more adds to each set within
    constant : (S, C)
    columns, strides, first : (S, n), (S, n), (S,) where the tables of sets stand
    wide_columns, wide_strides, wide_first : the same of sets of n + 1 columns
    below : (T, n + 1) sets within each of these
    """
    n_sets, n = columns.shape
    n_classes = out.shape[1]
    score = np.empty((n_sets, n_classes))
    for i in range(len(codes)):
        for s in range(n_sets):
            at = first[s]
            for k in range(n):
                at += codes[i, columns[s, k]] * strides[s, k]
            for c in range(n_classes):
                score[s, c] = constant[s, c] + one[at, c]
        for t in range(len(wide_first)):
            at = wide_first[t]
            for k in range(n + 1):
                at += codes[i, wide_columns[t, k]] * wide_strides[t, k]
            for k in range(n + 1):
                s = below[t, k]
                for c in range(n_classes):
                    score[s, c] += two[at, c]
        for c in range(n_classes):
            top = -np.inf
            for s in range(n_sets):
                top = max(top, score[s, c])
            total = 0.0
            for s in range(n_sets):
                total += np.exp(score[s, c] - top)
            out[i, c] = np.log(total) + top
