"""Count, mean and scatter of each class and column in one pass over the rows."""

import numpy as np

from bayesgen.numerics.kernels.arithmetic import log1p
from bayesgen.numerics.kernels.compiling import compiled, compiled_sums

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


# ------------------------------------------------------------------------------------------------
# Student t log densities of rows, class by class, in one pass.
#
# A few rows are turned on their side, so that every loop runs over rows: many at a time whatever
# the number of columns.

_ROWS = 128
_COLUMNS = 64
_TILES = 64  # of so many columns are added up before they go to the sum of a long row
_PADDING = 8  # else the columns of a tile would fall into the same few sets of the cache
_LARGE = 1e300


@compiled
def product_t(  # pragma: no cover - compiled
    x: Array,
    columns: Array,
    shift: Array,
    mu: Array,
    inverse: Array,
    log_norm: Array,
    power: Array,
    out: Array,
) -> None:
    r"""Sums over columns of ``log_norm - power log(1 + ((x - shift - mu) inverse)^2)``.

    Where columns have the same power, the logs of up to 64 become one:
    :math:`\sum_j \log(1 + u_j) = \log(1 + e)` with e <- e + u + e u.

    Parameters
    ----------
    x : (N, D)
        NaN is a missing cell.
    columns : uint64 (L,)
        Those of x that count.
    shift : (L,)
    mu, inverse, log_norm, power : (C, L)
    out : (N, C)
    """
    n_classes, n_live = mu.shape
    tile = np.empty((_COLUMNS, _ROWS + _PADDING))
    total, part = np.empty((n_classes, _ROWS)), np.empty((n_classes, _ROWS))
    e, norm = np.empty(_ROWS), np.empty(_ROWS)
    for start in range(0, len(x), _ROWS):
        n = min(_ROWS, len(x) - start)
        total[:], part[:] = 0.0, 0.0
        for first in range(0, n_live, _COLUMNS):
            _flush(part, total, first)
            width = min(_COLUMNS, n_live - first)
            gaps = _turn(x[start : start + n], columns[first : first + width], shift[first:], tile)
            for c in range(n_classes):
                e[:], norm[:] = 0.0, 0.0
                whole = 0.0
                begin = 0
                for j in range(width):
                    m, scale = mu[c, first + j], inverse[c, first + j]
                    each = log_norm[c, first + j]
                    if gaps:
                        for r in range(n):
                            z = (tile[j, r] - m) * scale
                            seen = z == z
                            u = z * z if seen else 0.0
                            e[r] += u + e[r] * u
                            norm[r] += each if seen else 0.0
                    else:
                        whole += each
                        for r in range(n):
                            z = (tile[j, r] - m) * scale
                            u = z * z
                            e[r] += u + e[r] * u
                    p = power[c, first + j]
                    if j + 1 == width or power[c, first + j + 1] != p:
                        for r in range(n):
                            if not e[r] < _LARGE:
                                cells = tile[begin : j + 1, r]
                                logs = _sum_of_logs(cells, mu[c], inverse[c], first + begin)
                                part[c, r] -= p * logs
                                e[r] = 0.0
                        begin = j + 1
                        for r in range(n):
                            part[c, r] -= p * log1p(e[r])
                            e[r] = 0.0
                for r in range(n):
                    part[c, r] += norm[r] if gaps else whole
        for r in range(n):
            for c in range(n_classes):
                out[start + r, c] = total[c, r] + part[c, r]


@compiled
def joint_t(  # pragma: no cover - compiled
    x: Array,
    columns: Array,
    shift: Array,
    mu: Array,
    inverse: Array,
    log_width: Array,
    log_norm: Array,
    power: Array,
    out: Array,
) -> None:
    """``log_norm[d] - power[d] log(1 + sum of squares) - sum of log_width``, d the cells observed.

    Parameters
    ----------
    x, columns, shift, out : as in `product_t`
    mu, inverse, log_width : (C, L)
    log_norm, power : (C, L + 1)
    """
    n_classes, n_live = mu.shape
    tile = np.empty((_COLUMNS, _ROWS + _PADDING))
    # sums of squares, then those of log widths, and both of the last columns
    total, part = np.empty((2 * n_classes, _ROWS)), np.empty((2 * n_classes, _ROWS))
    count = np.empty(_ROWS, np.int64)
    for start in range(0, len(x), _ROWS):
        n = min(_ROWS, len(x) - start)
        total[:], part[:], count[:] = 0.0, 0.0, 0
        for first in range(0, n_live, _COLUMNS):
            _flush(part, total, first)
            width = min(_COLUMNS, n_live - first)
            _turn(x[start : start + n], columns[first : first + width], shift[first:], tile)
            for j in range(width):
                for r in range(n):
                    count[r] += tile[j, r] == tile[j, r]
            for c in range(n_classes):
                for j in range(width):
                    m, scale, each = (
                        mu[c, first + j],
                        inverse[c, first + j],
                        log_width[c, first + j],
                    )
                    for r in range(n):
                        z = (tile[j, r] - m) * scale
                        seen = z == z
                        part[c, r] += z * z if seen else 0.0
                        part[n_classes + c, r] += each if seen else 0.0
        for r in range(n):
            for c in range(n_classes):
                square = total[c, r] + part[c, r]
                if square < _LARGE:
                    log_sum = np.log1p(square)
                else:
                    log_sum = _log_of_squares(x[start + r], columns, shift, mu[c], inverse[c])
                d = count[r]
                log_width_sum = total[n_classes + c, r] + part[n_classes + c, r]
                out[start + r, c] = log_norm[c, d] - log_width_sum - power[c, d] * log_sum


@compiled
def correlated_t(  # pragma: no cover - compiled
    x: Array,
    columns: Array,
    shift: Array,
    whiten: Array,
    centre: Array,
    step: Array,
    scale: Array,
    log_norm: Array,
    power: Array,
    out: Array,
) -> None:
    """``log_norm - power log(1 + scale q)``, q = ``|whiten (x - shift - centre) - step|^2``.

    Parameters
    ----------
    x : (N, D) complete rows, D <= 64
    columns : uint64 (D,), all
    shift : (D,)
    whiten : (G, D, D) lower triangular
    centre : (G, D)
        One group for all classes, or one for each.
    step : (C, D)
    scale, log_norm, power : (C,)
    out : (N, C)
    """
    n_groups, dim = centre.shape
    n_classes = len(step)
    each = n_classes // n_groups
    tile = np.empty((_COLUMNS, _ROWS + _PADDING))
    about = np.zeros((_COLUMNS, _ROWS + _PADDING))
    w = np.empty(_COLUMNS)  # a row of `whiten`, of which four at a time are multiplied
    z, q = np.empty(_ROWS), np.empty((n_classes, _ROWS + _PADDING))
    for start in range(0, len(x), _ROWS):
        n = min(_ROWS, len(x) - start)
        _turn(x[start : start + n], columns, shift, tile)
        q[:] = 0.0
        for g in range(n_groups):
            w[:] = 0.0
            for j in range(dim):
                m = centre[g, j]
                for r in range(n):
                    about[j, r] = tile[j, r] - m
            for i in range(dim):
                z[:] = 0.0
                for j in range(i + 1):
                    w[j] = whiten[g, i, j]
                for j in range(0, i + 1, 4):
                    one, two, three, four = w[j], w[j + 1], w[j + 2], w[j + 3]
                    for r in range(n):
                        pair = one * about[j, r] + two * about[j + 1, r]
                        z[r] += pair + (three * about[j + 2, r] + four * about[j + 3, r])
                for c in range(g * each, (g + 1) * each):
                    m = step[c, i]
                    for r in range(n):
                        d = z[r] - m
                        q[c, r] += d * d
        for c in range(n_classes):
            factor, once, p = scale[c], log_norm[c], power[c]
            for r in range(n):
                q[c, r] *= factor
                z[r] = once - p * log1p(q[c, r] if q[c, r] < _LARGE else 0.0)
            for r in range(n):
                near = q[c, r] < _LARGE
                out[start + r, c] = z[r] if near else once - p * np.log1p(q[c, r])


@compiled
def _flush(part: Array, total: Array, first: int) -> None:  # pragma: no cover - compiled
    """Add up in blocks: a straight sum of a million terms would lose digits."""
    if first and first % (_TILES * _COLUMNS) == 0:
        for k in range(len(part)):
            for r in range(part.shape[1]):
                total[k, r] += part[k, r]
                part[k, r] = 0.0


@compiled
def _turn(  # pragma: no cover - compiled
    x: Array, columns: Array, shift: Array, tile: Array
) -> bool:
    """Columns of a few rows, minus `shift`, as the rows of `tile`; whether a cell is missing."""
    gaps = False
    for r in range(len(x)):
        for j in range(len(columns)):
            value = x[r, columns[j]] - shift[j]
            tile[j, r] = value
            gaps |= value != value
    return gaps


@compiled
def _sum_of_logs(  # pragma: no cover - compiled
    x: Array, mu: Array, inverse: Array, first: int
) -> float:
    """Sum of log(1 + z^2) over some observed cells, also where z^2 overflows."""
    total = 0.0
    for j in range(len(x)):
        z = abs((x[j] - mu[first + j]) * inverse[first + j])
        if z > 1e150:
            total += 2.0 * np.log(z)
        elif z == z:
            total += np.log1p(z * z)
    return total


@compiled
def _log_of_squares(  # pragma: no cover - compiled
    x: Array, columns: Array, shift: Array, mu: Array, inverse: Array
) -> float:
    """log of the sum of z^2 over the observed cells, where it overflows."""
    top = 0.0
    for j in range(len(columns)):
        z = abs((x[columns[j]] - shift[j] - mu[j]) * inverse[j])
        if z > top:
            top = z
    total = 0.0
    for j in range(len(columns)):
        z = (x[columns[j]] - shift[j] - mu[j]) * inverse[j] / top
        if z == z:
            total += z * z
    return 2.0 * np.log(top) + np.log(total)


# ------------------------------------------------------------------------------------------------
# Rows with missing cells: distances from means, Normal densities and their gradients.

_GAP_ROWS = 64  # at a time


@compiled
def _factor(sigma: Array, columns: Array) -> tuple[Array, float]:  # pragma: no cover - compiled
    """Lower Cholesky factor of some rows and columns, and half the log determinant.

    NaN where the matrix is not positive definite.
    """
    d = len(columns)
    L = np.zeros((d, d))
    half = 0.0
    for i in range(d):
        for j in range(i + 1):
            rest = sigma[columns[i], columns[j]]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(rest) if i == j else rest / L[j, j]
        half += np.log(L[i, i])
    return L, half


@compiled
def _forward(L: Array, z: Array, i: int) -> None:  # pragma: no cover - compiled
    """Row i of the solution of L z = b, in place: z (D, n) holds b from row i on."""
    for k in range(i):
        for n in range(z.shape[1]):
            z[i, n] -= L[i, k] * z[k, n]
    for n in range(z.shape[1]):
        z[i, n] /= L[i, i]


@compiled
def _backward(L: Array, z: Array, i: int) -> None:  # pragma: no cover - compiled
    """Row i of the solution of L^T a = z, in place: z holds a from row i + 1 on."""
    for k in range(i + 1, len(L)):
        for n in range(z.shape[1]):
            z[i, n] -= L[k, i] * z[k, n]
    for n in range(z.shape[1]):
        z[i, n] /= L[i, i]


@compiled_sums
def _dot(a: Array, b: Array) -> float:  # pragma: no cover - compiled
    total = 0.0
    for n in range(len(a)):
        total += a[n] * b[n]
    return total


@compiled
def observed_distances(  # pragma: no cover - compiled
    x: Array, mu: Array, scale: Array, q: Array, half_log_det: Array
) -> None:
    """As `families.shared.gaussian.observed_distances`, into q (n, C) and half_log_det (n, G).

    The rows and columns of missing cells are those of the identity, so that all rows take the
    same steps, many at a time.
    """
    n_classes, dim = mu.shape
    factor, rest = np.empty((dim, dim, _GAP_ROWS)), np.empty(_GAP_ROWS)
    once, z = np.empty((dim, _GAP_ROWS)), np.empty((dim, _GAP_ROWS))  # once: of the diagonal
    seen = np.empty((dim, _GAP_ROWS))
    for start in range(0, len(x), _GAP_ROWS):
        n = min(_GAP_ROWS, len(x) - start)
        for i in range(dim):
            for r in range(n):
                seen[i, r] = 1.0 if x[start + r, i] == x[start + r, i] else 0.0
        for c in range(n_classes):
            if c < len(scale):
                half_log_det[start : start + n, c] = 0.0
                for i in range(dim):
                    for j in range(i + 1):
                        cell, other = scale[c, i, j], 1.0 if i == j else 0.0
                        for r in range(n):
                            both = seen[i, r] * seen[j, r]
                            rest[r] = cell * both + other * (1.0 - both)
                        for k in range(j):
                            for r in range(n):
                                rest[r] -= factor[i, k, r] * factor[j, k, r]
                        if i > j:
                            for r in range(n):
                                factor[i, j, r] = rest[r] * once[j, r]
                    for r in range(n):
                        once[i, r] = 1.0 / np.sqrt(rest[r])
                    for r in range(n):
                        half_log_det[start + r, c] += 0.5 * np.log(rest[r])
            q[start : start + n, c] = 0.0
            for i in range(dim):
                m = mu[c, i]
                for r in range(n):
                    z[i, r] = x[start + r, i] - m if seen[i, r] > 0 else 0.0
                for k in range(i):
                    for r in range(n):
                        z[i, r] -= factor[i, k, r] * z[k, r]
                for r in range(n):
                    z[i, r] *= once[i, r]
                    q[start + r, c] += z[i, r] * z[i, r]


@compiled
def observed_normal(  # pragma: no cover - compiled
    x: Array, order: Array, first: Array, seen: Array, mu: Array, sigma: Array
) -> Array:
    """(N, C) Normal log densities of the observed cells of each row.

    Parameters
    ----------
    x : (N, D), any number in a cell that is missing
    order : int (N,), first : int (P + 1,)
        ``order[first[p] : first[p + 1]]`` are the rows with pattern p.
    seen : int (P, D), 1 where pattern p is observed
    mu : (C, D)
    sigma : (C, D, D), or (1, D, D) for all classes
    """
    n_classes = len(mu)
    shared = len(sigma) == 1
    out = np.zeros((len(x), n_classes))
    for p in range(len(seen)):
        columns = np.flatnonzero(seen[p])
        d = len(columns)
        rows = order[first[p] : first[p + 1]]
        z = np.empty((d, len(rows)))
        for c in range(n_classes):
            if c == 0 or not shared:
                L, half = _factor(sigma[c], columns)
            top = -half - 0.5 * d * np.log(2 * np.pi)
            q = np.zeros(len(rows))
            for i in range(d):
                for n in range(len(rows)):
                    z[i, n] = x[rows[n], columns[i]] - mu[c, columns[i]]
                _forward(L, z, i)
                for n in range(len(rows)):
                    q[n] += z[i, n] * z[i, n]
            for n in range(len(rows)):
                out[rows[n], c] = top - 0.5 * q[n]
    return out


@compiled
def observed_normal_gradient(  # pragma: no cover - compiled
    x: Array, order: Array, first: Array, seen: Array, mu: Array, sigma: Array, weight: Array
) -> tuple[Array, Array]:
    """Gradients in mu and sigma of the sum of ``weight * observed_normal(...)``, weight (N, C)."""
    n_classes = len(mu)
    shared = len(sigma) == 1
    d_mu, d_sigma = np.zeros(mu.shape), np.zeros(sigma.shape)
    for p in range(len(seen)):
        columns = np.flatnonzero(seen[p])
        d = len(columns)
        rows = order[first[p] : first[p + 1]]
        z, weighted = np.empty((d, len(rows))), np.empty(len(rows))
        for c in range(n_classes):
            g = 0 if shared else c
            if c == 0 or not shared:
                L, _ = _factor(sigma[g], columns)
                inverse = np.eye(d)
                for i in range(d):
                    _forward(L, inverse, i)
                for i in range(d - 1, -1, -1):
                    _backward(L, inverse, i)
            total = 0.0
            for i in range(d):
                for n in range(len(rows)):
                    z[i, n] = x[rows[n], columns[i]] - mu[c, columns[i]]
                _forward(L, z, i)
            for i in range(d - 1, -1, -1):  # sigma^-1 (x - mu), in place
                _backward(L, z, i)
            part = np.zeros((d, d))  # lower triangle of the gradient in sigma, twice
            for n in range(len(rows)):
                total += weight[rows[n], c]
            for i in range(d):
                for n in range(len(rows)):
                    weighted[n] = weight[rows[n], c] * z[i, n]
                    d_mu[c, columns[i]] += weighted[n]
                for j in range(i + 1):
                    part[i, j] = _dot(weighted, z[j]) - total * inverse[i, j]
            for i in range(d):
                for j in range(i + 1):
                    half = 0.5 * part[i, j]
                    d_sigma[g, columns[i], columns[j]] += half
                    if i != j:
                        d_sigma[g, columns[j], columns[i]] += half
    return d_mu, d_sigma
