"""Sums over spanning trees of graphs whose weights are those of one graph times small changes."""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled_sums

Array = np.ndarray


@compiled_sums
def log_ratios(  # pragma: no cover - compiled
    i: Array,
    j: Array,
    factors: Array,
    which: Array,
    codes: Array,
    least: float,
    start: Array,
    share: Array,
    scale: Array,
    paths: Array,
    out: Array,
) -> None:
    """Write to out (n,) the logs of ratios of sums; NaN where numbers are not wide enough.

    Parameters
    ----------
    i, j : (P,) columns i > j, which are nodes i + 1 and j + 1; node 0 is the root
    factors : (T, P, K, K)
        Of the weight between two columns, by the codes of a row.
    which : (n,) the table of each row
    codes : int64 (n, D)
    least : float
        A row is summed where all its factors are from here to 1 / least.
    start : (V, V) weights, or parts of the last weights
    share : (V, V) of node k in its sum before, or its inverse
    scale : (V,) sum of node k before, or 1
    paths : (V, V, V)
        Part of the path through k in the last weight; (0, V, V) of weights.
    """
    n_nodes = len(start)
    w = np.empty((n_nodes, n_nodes))
    first, second = np.empty(n_nodes), np.empty(n_nodes)
    for row in range(len(codes)):
        low, high = 1.0, 1.0
        w[:] = start
        code, table = codes[row], factors[which[row]]
        for p in range(len(i)):
            factor = table[p, code[i[p]], code[j[p]]]
            if factor < low:
                low = factor
            elif factor > high:
                high = factor
            w[i[p] + 1, j[p] + 1] *= factor
        if low < least or high * least > 1.0:
            continue
        log_ratio = 0.0
        for k in range(n_nodes - 1, 0, -2):  # two nodes leave at once: half the memory is moved
            m = k - 1
            s, s2 = 0.0, 0.0 if m else 1.0
            one, two = w[k, :k], w[m, :m]
            for a in range(k):
                s += share[k, a] * one[a]
            for a in range(k):
                first[a] = one[a] / (s * scale[k])
            for a in range(m):
                path = paths[k, m, a] if len(paths) else 1.0
                two[a] += path * one[m] * first[a]
                s2 += share[m, a] * two[a]
            for a in range(m):
                second[a] = two[a] / (s2 * scale[m])
            log_ratio += np.log(s) + np.log(s2)
            for b in range(1, m):
                left, x, z = w[b, :b], one[b], two[b]
                if len(paths):
                    through, through2 = paths[k, b, :b], paths[m, b, :b]
                    for a in range(b):
                        left[a] += through[a] * (x * first[a]) + through2[a] * (z * second[a])
                else:
                    for a in range(b):
                        left[a] += x * first[a] + z * second[a]
        out[row] = log_ratio
