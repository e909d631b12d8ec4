"""Correlation matrices from partial correlations, and the gradient."""

import numpy as np

from bayesgen.numerics.kernels.arithmetic import exp
from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray


@compiled
def _factor(half: Array, n_axes: int) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """Cholesky factor L, and the shares c of L_ij = r_ij c_ij, of one matrix."""
    L, share = np.zeros((n_axes, n_axes)), np.zeros((n_axes, n_axes))
    at = 0
    for i in range(n_axes):
        left = 1.0
        for j in range(i):
            h = half[at]
            share[i, j] = left
            L[i, j] = (2 * h - 1) * left
            left *= 2 * np.sqrt(h * (1 - h))
            at += 1
        L[i, i] = left
    return L, share


@compiled
def correlation(half: Array) -> Array:  # pragma: no cover - compiled
    """(G, D, D) correlation matrices of half (G, D (D - 1)/2), (1 + r)/2 row by row."""
    n_axes = int(0.5 + np.sqrt(0.25 + 2 * half.shape[1]) + 1e-6)
    out = np.empty((len(half), n_axes, n_axes))
    for g in range(len(half)):
        L, _ = _factor(half[g], n_axes)
        for i in range(n_axes):
            out[g, i, i] = 1.0
            for j in range(i):
                total = 0.0
                for k in range(j + 1):
                    total += L[i, k] * L[j, k]
                out[g, i, j] = out[g, j, i] = total
    return out


@compiled
def correlation_gradient(half: Array, weight: Array) -> Array:  # pragma: no cover - compiled
    """Gradient in half of the sum of ``weight * correlation(half)``, weight (G, D, D)."""
    n_axes = weight.shape[1]
    out = np.empty(half.shape)
    for g in range(len(half)):
        L, share = _factor(half[g], n_axes)
        for i in range(n_axes):
            first = i * (i - 1) // 2
            later = 0.0  # sum of d_ik L_ik over k > j
            for j in range(i, -1, -1):
                d = 0.0  # with respect to L_ij
                for k in range(j, n_axes):
                    d += (weight[g, i, k] + weight[g, k, i]) * L[k, j]
                if j < i:
                    h = half[g, first + j]
                    out[g, first + j] = 2 * d * share[i, j] - later * (2 * h - 1) / (
                        2 * h * (1 - h)
                    )
                later += d * L[i, j]
    return out


@compiled
def correlations(half: Array) -> Array:  # pragma: no cover - compiled
    """`correlation` of half (..., D (D - 1)/2)."""
    out = correlation(np.ascontiguousarray(half).reshape((-1, half.shape[-1])))
    return out.reshape((*half.shape[:-1], *out.shape[1:]))


@compiled
def correlations_gradient(half: Array, weight: Array) -> Array:  # pragma: no cover - compiled
    """`correlation_gradient` of half (..., D (D - 1)/2)."""
    flat = np.ascontiguousarray(half).reshape((-1, half.shape[-1]))
    each = np.ascontiguousarray(weight).reshape((-1, *weight.shape[-2:]))
    return correlation_gradient(flat, each).reshape(half.shape)


# ------------------------------------------------------------------------------------------------
# Radii of Normal vectors that were stretched by a function of their radius.

_STEPS = 7  # Newton's: after six the error is that of rounding, for any arguments


@compiled
def squared_radius(square: Array, bend: Array, size: Array) -> Array:  # pragma: no cover - compiled
    r"""(n,) the y that solve :math:`y e^{2 \text{asinh}(k (y - m))} = Q`.

    With r^2 = y and q^2 = Q: :math:`2kq r^3 + r^2 - 2kmq r - q^2 = 0`, which has one positive root.
    The left side is convex beyond it, and Newton's steps from above fall to the root.

    Parameters
    ----------
    square, bend, size : (n,)
        Q >= 0, k >= 0 and m > 0.
    """
    q, r = np.sqrt(square), np.empty(len(square))
    for i in range(len(r)):  # bounds from above, the last two without a term of the equation
        root, product = np.sqrt(size[i]), bend[i] * size[i]
        first = min(max(q[i], root), q[i] * (product + np.sqrt(product * product + 1)))
        r[i] = min(first, root + np.cbrt(q[i] / (2 * bend[i])))
    for _ in range(_STEPS):
        for i in range(len(r)):
            a = 2 * bend[i] * q[i]
            above = (2 * a * r[i] + 1) * r[i] * r[i] + q[i] * q[i]
            r[i] = above / ((3 * a * r[i] + 2) * r[i] - a * size[i])
    for i in range(len(r)):
        r[i] = r[i] * r[i] if q[i] > 0 else 0.0
    return r


# ------------------------------------------------------------------------------------------------
# Log likelihood of documents whose words share a factor, on a grid, and its gradient.

_ROWS = 256  # documents at a time: the innermost loops run over them, nodes are few


@compiled
def grid_log_likelihood(  # pragma: no cover - compiled
    log_centre: Array,
    loading: Array,
    z: Array,
    log_w: Array,
    first: Array,
    word: Array,
    count: Array,
    of_class: Array,
) -> tuple[Array, Array, Array]:
    r"""Sums over the documents of a class, and their gradients in its log centre and loadings.

    .. math:: \log \sum_q w_q \exp\big(z_q \cdot \Lambda_c x - L\, \text{lse}_{cq}\big), \quad
        \text{lse}_{cq} = \log \sum_j e^{\text{log\_centre}_{cj} + z_q \cdot \Lambda_{cj}}

    Parameters
    ----------
    log_centre : (C, D)
    loading : (C, K, D)
    z, log_w : (Q, K), (Q,)
    first, word, count : (N + 1,), (cells,), (cells,)
        Documents of words and counts, ``first[i] : first[i + 1]`` those of document i.
    of_class : (C + 1,)
        Documents ``of_class[c] : of_class[c + 1]`` are of class c.

    Returns
    -------
    (C,), (C, D), (C, K, D)
    """
    n_classes, n_factors, n_words = loading.shape
    n_nodes = len(log_w)
    axes = np.ascontiguousarray(z.T)
    out = np.zeros(n_classes)
    d_centre, d_loading = np.zeros((n_classes, n_words)), np.zeros(loading.shape)
    p = np.empty((n_words, n_nodes))
    top, mass = np.empty(n_nodes), np.empty(n_nodes)
    lse, slope = np.empty(n_nodes), np.empty(n_nodes)  # slope: of the sum in lse
    e, most, total = np.empty((n_nodes, _ROWS)), np.empty(_ROWS), np.empty(_ROWS)
    length, along = np.empty(_ROWS), np.empty((n_factors, _ROWS))
    for c in range(n_classes):
        top[:] = -np.inf
        for j in range(n_words):
            p[j, :] = log_centre[c, j]
            for k in range(n_factors):
                for q in range(n_nodes):
                    p[j, q] += loading[c, k, j] * axes[k, q]
            for q in range(n_nodes):
                top[q] = p[j, q] if p[j, q] > top[q] else top[q]
        mass[:] = 0.0
        for j in range(n_words):
            for q in range(n_nodes):
                w = exp(p[j, q] - top[q])
                p[j, q] = w
                mass[q] += w
        for q in range(n_nodes):
            lse[q] = np.log(mass[q]) + top[q]
        slope[:] = 0.0
        for start in range(of_class[c], of_class[c + 1], _ROWS):
            n = min(_ROWS, of_class[c + 1] - start)
            for i in range(n):
                length[i], most[i], total[i] = 0.0, -np.inf, 0.0
                for at in range(first[start + i], first[start + i + 1]):
                    length[i] += count[at]
            for k in range(n_factors):
                row = loading[c, k]
                for i in range(n):
                    part = 0.0
                    for at in range(first[start + i], first[start + i + 1]):
                        part += count[at] * row[word[at]]
                    along[k, i] = part
            for q in range(n_nodes):
                for i in range(n):
                    e[q, i] = log_w[q] - length[i] * lse[q]
                for k in range(n_factors):
                    for i in range(n):
                        e[q, i] += along[k, i] * axes[k, q]
                for i in range(n):
                    most[i] = e[q, i] if e[q, i] > most[i] else most[i]
            for q in range(n_nodes):
                for i in range(n):
                    w = exp(e[q, i] - most[i])
                    e[q, i] = w
                    total[i] += w
            for i in range(n):
                out[c] += np.log(total[i]) + most[i]
                total[i] = 1 / total[i]
            along[:] = 0.0  # from here on the slope
            for q in range(n_nodes):
                drawn = 0.0
                for i in range(n):
                    e[q, i] *= total[i]  # the responsibility of a node
                    drawn += length[i] * e[q, i]
                slope[q] -= drawn
                for k in range(n_factors):
                    for i in range(n):
                        along[k, i] += e[q, i] * axes[k, q]
            for k in range(n_factors):
                row = d_loading[c, k]
                for i in range(n):
                    for at in range(first[start + i], first[start + i + 1]):
                        row[word[at]] += count[at] * along[k, i]
        for q in range(n_nodes):
            slope[q] /= mass[q]
        for j in range(n_words):
            found = 0.0
            for q in range(n_nodes):
                found += slope[q] * p[j, q]
            d_centre[c, j] = found
            for k in range(n_factors):
                found = 0.0
                for q in range(n_nodes):
                    found += slope[q] * p[j, q] * axes[k, q]
                d_loading[c, k, j] += found
    return out, d_centre, d_loading
