"""Scores that are linear in the features, in one pass over the rows."""

import numpy as np

from bayesgen.numerics.kernels.compiling import COLUMNS, compiled_sums

Array = np.ndarray


@compiled_sums
def add_scores(
    x: Array, centre: Array, w: Array, out: Array
) -> None:  # pragma: no cover - compiled
    """Add ``(x - centre) @ w.T`` to `out`: x (n, D), w (K, D), out (n, K); two scores at a time."""
    n_scores, n_features = w.shape
    d = np.empty(COLUMNS)
    for start in range(0, n_features, COLUMNS):
        part = slice(start, start + COLUMNS)
        about = centre[part]
        n = len(about)
        for i in range(len(x)):
            row = x[i, part]
            for j in range(n):
                d[j] = row[j] - about[j]
            k = 0
            while k + 1 < n_scores:
                a, b, one, two = w[k, part], w[k + 1, part], 0.0, 0.0
                for j in range(n):
                    one += d[j] * a[j]
                    two += d[j] * b[j]
                out[i, k] += one
                out[i, k + 1] += two
                k += 2
            if k < n_scores:
                a, one = w[k, part], 0.0
                for j in range(n):
                    one += d[j] * a[j]
                out[i, k] += one
