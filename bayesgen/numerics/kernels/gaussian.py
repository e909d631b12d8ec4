"""Count, mean and scatter of each class and column in one pass over the rows."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

_CELLS = 1 << 15  # if they are read twice, the second time is from the second-level cache
_LOST = 4.0  # of a sum of squares may cancel: two bits


@compiled
def add_moments(  # pragma: no cover - compiled
    x: Array, y: Array, weight: Array, shift: Array, n: Array, mean: Array, scatter: Array
) -> None:
    """Add rows to the statistics, a few at a time: sums and squares about earlier class means.

    Parameters
    ----------
    x : (N, D)
        NaN is a missing cell.
    y : uint64 (N,), class codes
        Unsigned, as then nothing has to be done for indices that count from the end.
    weight : (N,), or (0,) for rows of weight 1
    shift : (D,)
    n, mean, scatter : (C, D), changed in place
        As in `GaussianStats`.
    """
    n_rows, n_features = x.shape
    n_classes = len(n)
    total = np.empty(n_classes)
    s, q = np.empty((n_classes, n_features)), np.empty((n_classes, n_features))
    about = np.empty((n_classes, n_features))  # near the class means: squares about it lose nothing
    for c in range(n_classes):
        for j in range(n_features):
            about[c, j] = shift[j] + mean[c, j]
    step = max(_CELLS // n_features, 4 * n_classes)
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        near = False
        for _ in range(2):  # a second time where the class means lie elsewhere
            total[:], s[:], q[:] = 0.0, 0.0, 0.0
            for i in range(start, stop):
                c = y[i]
                w = weight[i] if len(weight) else 1.0
                total[c] += w
                for j in range(n_features):
                    d = x[i, j] - about[c, j]
                    s[c, j] += w * d
                    q[c, j] += w * (d * d)
            if near or np.isnan(s.sum()):
                break
            near = True
            for c in range(n_classes):
                for j in range(n_features):
                    lost = s[c, j] * s[c, j] / total[c]
                    near &= not lost > _LOST * (q[c, j] - lost + scatter[c, j])
            if near:
                break
            near = True
            for c in range(n_classes):
                for j in range(n_features):
                    about[c, j] += s[c, j] / total[c] if total[c] > 0 else 0.0
        if np.isnan(s.sum()):
            _add_observed(x[start:stop], y[start:stop], weight[start:stop], shift, n, mean, scatter)
            continue
        for c in range(n_classes):
            if total[c] > 0:
                for j in range(n_features):
                    m = s[c, j] / total[c]
                    left = q[c, j]
                    if left < np.inf:
                        left = max(left - total[c] * m * m, 0.0)
                    _merge(n, mean, scatter, c, j, total[c], about[c, j] - shift[j] + m, left)


@compiled
def _add_observed(  # pragma: no cover - compiled
    x: Array, y: Array, weight: Array, shift: Array, n: Array, mean: Array, scatter: Array
) -> None:
    """`add_moments` of a few rows among which cells are missing."""
    total, s, q = np.zeros(n.shape), np.zeros(n.shape), np.zeros(n.shape)
    for i in range(len(x)):
        c = y[i]
        w = weight[i] if len(weight) else 1.0
        for j in range(x.shape[1]):
            seen = x[i, j] == x[i, j]
            total[c, j] += w if seen else 0.0
            s[c, j] += w * (x[i, j] - shift[j]) if seen else 0.0
    for c in range(len(n)):
        for j in range(x.shape[1]):
            s[c, j] /= total[c, j]
    for i in range(len(x)):
        c = y[i]
        w = weight[i] if len(weight) else 1.0
        for j in range(x.shape[1]):
            d = x[i, j] - shift[j] - s[c, j]
            q[c, j] += w * (d * d) if x[i, j] == x[i, j] else 0.0
    for c in range(len(n)):
        for j in range(x.shape[1]):
            if total[c, j] > 0:
                _merge(n, mean, scatter, c, j, total[c, j], s[c, j], q[c, j])


@compiled
def _merge(  # pragma: no cover - compiled
    n: Array, mean: Array, scatter: Array, c: int, j: int, m: float, s: float, q: float
) -> None:
    """Chan, Golub and LeVeque's update of one cell by `m` rows of mean `s` and scatter `q`."""
    if n[c, j] == 0:
        n[c, j], mean[c, j], scatter[c, j] = m, s, q
        return
    before, n[c, j] = n[c, j], n[c, j] + m
    d = s - mean[c, j]
    share = m / n[c, j]
    mean[c, j] += d * share
    scatter[c, j] += q + d * d * before * share
