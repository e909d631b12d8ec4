"""Sums over spanning trees of graphs whose weights are those of one graph times small changes."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled, compiled_sums

Array = np.ndarray

_ROWS = 8  # read the parts of a step together, which are more than a cache holds


@compiled_sums
def log_ratios(  # pragma: no cover - compiled
    codes: Array, table: Array, least: float, w: Array, out: Array
) -> None:
    """Write to out (n,) the logs of ratios of sums; NaN where numbers are not wide enough.

    Parameters
    ----------
    codes : int64 (n, D)
    table : (D, D, K, K)
        Ratio of the weight between two columns, after to before, by the codes of a row; node 0,
        the root, has edges that do not change, column u is node u + 1.
    least : float
        A row is summed where all its ratios are from here to 1 / least.
    w : (D + 1, D + 1)
        Weights before, of which the largest is 1.
    """
    n_nodes = len(w)
    u, before = np.empty((n_nodes, n_nodes)), np.ones(n_nodes)
    first, second = np.empty(n_nodes), np.empty(n_nodes)
    for row in range(-1, len(codes)):  # -1: the weights themselves
        if row >= 0:
            out[row] = _changed(codes[row], table, least, w, u)
        else:
            u[:] = w
        for k in range(n_nodes - 1, 0, -2):  # two nodes leave at once: half the memory is moved
            m = k - 1
            s, s2 = 0.0, 0.0 if m else 1.0
            edges, more = u[k, :k], u[m, :m]
            for j in range(k):
                s += edges[j]
            through = edges[m] / s
            for j in range(m):
                more[j] += through * edges[j]
                s2 += more[j]
            for j in range(m):
                first[j], second[j] = edges[j] / s, more[j] / s2
            if row >= 0:
                out[row] += np.log(s / before[k]) + np.log(s2 / before[m])
            else:
                before[k], before[m] = s, s2
            for i in range(1, m):
                left, one, two, a, b = u[i, :i], edges[:i], more[:i], first[i], second[i]
                for j in range(i):
                    left[j] += a * one[j] + b * two[j]


@compiled
def _changed(  # pragma: no cover - compiled
    codes: Array, table: Array, least: float, w: Array, u: Array
) -> float:
    """Write the weights w times a row's ratios to u, below the diagonal; 0, or NaN if too far."""
    low, high = 1.0, 1.0
    for i in range(len(codes)):
        ratios = table[i, :, codes[i]]
        u[i + 1, 0] = w[i + 1, 0]
        for j in range(i):
            ratio = ratios[j, codes[j]]
            if ratio < low:
                low = ratio
            elif ratio > high:
                high = ratio
            u[i + 1, j + 1] = w[i + 1, j + 1] * ratio
    return 0.0 if low >= least and high * least <= 1.0 else np.nan


@compiled_sums
def log_ratios_in_parts(  # pragma: no cover - compiled
    codes: Array, table: Array, least: float, share: Array, kept: Array, added: Array, out: Array
) -> None:
    """`log_ratios` where weights span more than numbers do.

    Parameters
    ----------
    share : (D + 1, D + 1)
        Share of each edge of node k, when it leaves, among its edges to nodes 0 .. k-1.
    kept, added : (D + 1 choose 3,)
        Of each edge that is left when node k = D .. 1 leaves, between nodes 0 < i < k and j < i:
        the part of its new weight that it had, and the part of the path through k.
    """
    n, n_nodes = len(codes), len(share)
    one, u = np.ones((n_nodes, n_nodes)), np.ones((n_nodes, n_nodes))
    r = np.empty((n_nodes, _ROWS, n_nodes))
    scaled = np.empty((_ROWS, n_nodes))
    for start in range(0, n, _ROWS):
        m = min(_ROWS, n - start)
        for b in range(m):
            out[start + b] = _changed(codes[start + b], table, least, one, u)
            r[:, b] = u
        first = 0
        for k in range(n_nodes - 1, 0, -1):
            for b in range(m):
                s = (share[k, :k] * r[k, b, :k]).sum()
                out[start + b] += np.log(s)
                scaled[b, :k] = r[k, b, :k] / s
            for i in range(1, k):
                removed, path = kept[first : first + i], added[first : first + i]
                for b in range(m):  # slices, or nothing is done four numbers at a time
                    left, edge, row_scaled = r[i, b, :i], r[k, b, i], scaled[b, :i]
                    for j in range(i):
                        left[j] = removed[j] * left[j] + path[j] * (edge * row_scaled[j])
                first += i
