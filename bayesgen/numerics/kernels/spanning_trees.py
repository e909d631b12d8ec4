"""Sums over spanning trees of graphs whose weights are those of one graph times small changes."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

_ROWS = 16  # eliminated beside each other: one step of each is a few vector instructions


@compiled
def log_ratios(  # pragma: no cover - compiled
    codes: Array, table: Array, share: Array, kept: Array, added: Array, span: float, out: Array
) -> None:
    """Add to out (n,) the logs of ratios of sums; NaN where numbers are not wide enough.

    Parameters
    ----------
    codes : int64 (n, D)
    table : (D, D, K, K)
        Change of the log weight between two columns by the codes of a row; node 0, the root, has
        edges that do not change, column u is node u + 1.
    share : (D + 1, D + 1)
        Share of each edge of node k, when it leaves, among its edges to nodes 0 .. k-1.
    kept, added : (D + 1 choose 3,)
        Of each edge that is left when node k = D .. 1 leaves, between nodes 0 < i < k and j < i:
        the part of its new weight that it had, and the part of the path through k.
    span : float
        Nats by which the changes of a row, times the number of nodes, may differ from 1.
    """
    n, n_columns = codes.shape
    n_nodes = n_columns + 1
    r = np.empty((n_nodes, n_nodes, _ROWS))
    scaled = np.empty((n_nodes, _ROWS))
    s, total, worst = np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS)
    for start in range(0, n, _ROWS):
        m = min(_ROWS, n - start)
        r[:] = 1.0
        total[:] = 0.0
        worst[:] = 0.0
        for u in range(n_columns):
            for v in range(u):
                for b in range(m):
                    change = table[u, v, codes[start + b, u], codes[start + b, v]]
                    worst[b] = max(worst[b], abs(change))
                    r[u + 1, v + 1, b] = np.exp(change)
        at = 0
        for k in range(n_nodes - 1, 0, -1):
            s[:] = 0.0
            for i in range(k):
                for b in range(_ROWS):
                    s[b] += share[k, i] * r[k, i, b]
            for b in range(_ROWS):
                total[b] += np.log(s[b])
            for i in range(k):
                for b in range(_ROWS):
                    scaled[i, b] = r[k, i, b] / s[b]
            for i in range(1, k):
                for j in range(i):
                    a, g = kept[at], added[at]
                    at += 1
                    for b in range(_ROWS):
                        r[i, j, b] = a * r[i, j, b] + g * r[k, i, b] * scaled[j, b]
        for b in range(m):
            out[start + b] += total[b] if worst[b] * n_nodes <= span else np.nan
