"""Class probabilities from log joint densities, in place."""

import numpy as np

from bayesgen.kernels.compiling import compiled
from bayesgen.kernels.logarithm import exp, log1p

Array = np.ndarray

_ROWS = 128


@compiled
def log_softmax(a: Array) -> int:  # pragma: no cover - compiled
    """Normalise the rows of (N, C), in place; how many are -inf throughout, which stay so."""
    n_classes = a.shape[1]
    impossible = 0
    t = np.empty((n_classes, _ROWS))  # a few rows on their side: loops over rows, many at a time
    top, total = np.empty(_ROWS), np.empty(_ROWS)
    for start in range(0, len(a), _ROWS):
        n = min(_ROWS, len(a) - start)
        for r in range(n):
            for c in range(n_classes):
                t[c, r] = a[start + r, c]
        top[:], total[:] = -np.inf, 0.0
        for c in range(n_classes):
            for r in range(n):
                top[r] = t[c, r] if t[c, r] > top[r] else top[r]
        for c in range(n_classes):
            for r in range(n):
                t[c, r] -= top[r]
                total[r] += exp(t[c, r])
        for r in range(n):
            total[r] = log1p(total[r] - 1.0)  # one of the terms is exp(0)
        for r in range(n):
            if abs(top[r]) == np.inf:
                nowhere = True
                for c in range(n_classes):
                    t[c, r] = a[start + r, c]
                    nowhere &= t[c, r] == -np.inf
                impossible += nowhere
                total[r] = 0.0 if nowhere else abs(top[r])
        for r in range(n):
            for c in range(n_classes):
                a[start + r, c] = t[c, r] - total[r]
    return impossible
