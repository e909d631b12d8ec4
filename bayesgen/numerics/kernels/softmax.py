"""Class probabilities from log joint densities, in place."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled
from bayesgen.numerics.kernels.logarithm import exp, log1p

Array = np.ndarray

_ROWS = 128


@compiled
def log_softmax(a: Array) -> int:  # pragma: no cover - compiled
    """Normalise the rows of (N, C), in place; how many are -inf throughout, which stay so."""
    n_classes = a.shape[1]
    impossible = 0
    t = np.empty((n_classes, _ROWS))  # a few rows on their side: loops over rows, many at a time
    top, total, ties = np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS)
    for start in range(0, len(a), _ROWS):
        n = min(_ROWS, len(a) - start)
        for r in range(n):
            for c in range(n_classes):
                t[c, r] = a[start + r, c]
        top[:], total[:], ties[:] = -np.inf, 0.0, -1.0
        for c in range(n_classes):
            for r in range(n):
                top[r] = t[c, r] if t[c, r] > top[r] else top[r]
        for c in range(n_classes):
            for r in range(n):
                t[c, r] -= top[r]
                term = exp(t[c, r])
                total[r] += term if t[c, r] != 0.0 else 0.0
                ties[r] += 1.0 if t[c, r] == 0.0 else 0.0
        for r in range(n):
            total[r] = log1p(total[r] + ties[r])  # but for one exp(0): 1e-20 beside 1 is kept
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


@compiled
def softmax_of_draws(
    f: Array, log_pi: Array, out: Array, draw: int, row: int
) -> bool:  # pragma: no cover - compiled
    """Class probabilities from (S, n, C) log densities of any strides; whether one is NaN.

    Added to them is `log_pi` (S, C). Those of draw s, row r go to ``out[draw + s, row + r]``.
    """
    n_draws, n_rows, n_classes = f.shape
    unknown = False
    t = np.empty((n_classes, _ROWS))
    top, total = np.empty(_ROWS), np.empty(_ROWS)
    for s in range(n_draws):
        for start in range(0, n_rows, _ROWS):
            n = min(_ROWS, n_rows - start)
            for r in range(n):
                for c in range(n_classes):
                    t[c, r] = f[s, start + r, c] + log_pi[s, c]
            top[:], total[:] = -np.inf, 0.0
            for c in range(n_classes):
                for r in range(n):
                    unknown |= t[c, r] != t[c, r]
                    top[r] = t[c, r] if t[c, r] > top[r] else top[r]
            for c in range(n_classes):
                for r in range(n):
                    t[c, r] = exp(t[c, r] - top[r])
                    total[r] += t[c, r]
            for r in range(n):
                if abs(top[r]) == np.inf:  # impossible (0/0), or a density without bound
                    for c in range(n_classes):
                        value = f[s, start + r, c] + log_pi[s, c]
                        t[c, r] = np.nan if value == top[r] else 0.0
                    total[r] = 1.0
            for r in range(n):
                once = 1.0 / total[r]
                for c in range(n_classes):
                    out[draw + s, row + start + r, c] = t[c, r] * once
    return unknown
