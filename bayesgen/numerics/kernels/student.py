"""Student t log densities of rows, class by class, in one pass.

A few rows are turned on their side, so that every loop runs over rows: many at a time whatever the
number of columns.
"""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled
from bayesgen.numerics.kernels.logarithm import log1p

Array = np.ndarray

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
