"""Compiled passes over dense rows: moments, Student t densities, category codes, bits.

Each has a NumPy form in its family, which takes several times as long on large tables and several
times as much memory.
"""

import numpy as np

from bayesgen.numerics.kernels.compiling import compiled

Array = np.ndarray

_CELLS = 1 << 15  # of a block of rows that is read twice: it stays in the second-level cache
_ROWS = 128  # turned on their side, so that the inner loop runs over rows
_COLUMNS = 64  # whose logs become one
_LARGEST = 1e300


@compiled
def add_moments(  # pragma: no cover - compiled
    x: Array, y: Array, weight: Array, shift: Array, n: Array, mean: Array, scatter: Array
) -> None:
    """Add rows to the count, mean and scatter of each class and column.

    A block of rows is read twice, for its means and for the squares about them, and merged by the
    update of Chan, Golub and LeVeque (1983).

    Parameters
    ----------
    x : (N, D)
        NaN is a missing cell.
    y : int64 (N,)
        Class codes.
    weight : (N,), or (0,) for rows of weight 1
    shift : (D,)
    n, mean, scatter : (C, D), changed in place
        As in `GaussianStats`.
    """
    n_rows, n_features = x.shape
    step = max(_CELLS // n_features, 4 * len(n))
    count, centre, square = np.empty(n.shape), np.empty(n.shape), np.empty(n.shape)
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        count[:], centre[:], square[:] = 0.0, 0.0, 0.0
        for i in range(start, stop):
            c = np.uint64(y[i])
            w = weight[i] if len(weight) else 1.0
            for j in range(n_features):
                d = x[i, j] - shift[j]
                seen = d == d
                count[c, j] += w if seen else 0.0
                centre[c, j] += w * d if seen else 0.0
        for k in range(len(n)):
            for j in range(n_features):
                centre[k, j] /= count[k, j] if count[k, j] > 0 else 1.0
        for i in range(start, stop):
            c = np.uint64(y[i])
            w = weight[i] if len(weight) else 1.0
            for j in range(n_features):
                d = x[i, j] - shift[j] - centre[c, j]
                square[c, j] += w * d * d if d == d else 0.0
        for k in range(len(n)):
            for j in range(n_features):
                if count[k, j] > 0:
                    before = n[k, j]
                    n[k, j] += count[k, j]
                    share = count[k, j] / n[k, j]
                    d = centre[k, j] - mean[k, j] if before > 0 else centre[k, j]
                    mean[k, j] += d * share
                    scatter[k, j] += square[k, j] + d * d * before * share


@compiled
def sum_student_t(  # pragma: no cover - compiled
    x: Array,
    columns: Array,
    shift: Array,
    mu: Array,
    inverse: Array,
    log_norm: Array,
    power: Array,
    log_density: Array,
) -> None:
    r"""Add sums over columns of ``log_norm - power log(1 + ((x - shift - mu) inverse)^2)``.

    Columns of the same power beside each other share one log:
    :math:`\sum_j \log(1 + u_j) = \log(1 + e)` with e <- e + u + e u.

    Parameters
    ----------
    x : (N, D)
        NaN is a missing cell.
    columns : int64 (L,)
        Columns of x that count.
    shift : (L,)
    mu, inverse, log_norm, power : (C, L)
    log_density : (N, C), changed in place
    """
    n_classes, n_columns = mu.shape
    tile = np.empty((_COLUMNS, _ROWS))
    product, norm = np.empty(_ROWS), np.empty(_ROWS)
    for start in range(0, len(x), _ROWS):
        n_rows = min(_ROWS, len(x) - start)
        for first in range(0, n_columns, _COLUMNS):
            last = min(first + _COLUMNS, n_columns)
            for r in range(n_rows):
                for j in range(first, last):
                    tile[j - first, r] = x[start + r, columns[j]] - shift[j]
            for c in range(n_classes):
                product[:], norm[:], begin = 0.0, 0.0, first
                for j in range(first, last):
                    m, scale, each = mu[c, j], inverse[c, j], log_norm[c, j]
                    for r in range(n_rows):
                        z = (tile[j - first, r] - m) * scale
                        seen = z == z
                        u = z * z if seen else 0.0
                        product[r] += u + product[r] * u
                        norm[r] += each if seen else 0.0
                    if j + 1 < last and power[c, j + 1] == power[c, j]:
                        continue
                    for r in range(n_rows):
                        logs = np.log1p(product[r])
                        if not product[r] < _LARGEST:
                            cells = tile[begin - first : j + 1 - first, r]
                            logs = _sum_logs(cells, mu[c, begin:], inverse[c, begin:])
                        norm[r] -= power[c, j] * logs
                        product[r] = 0.0
                    begin = j + 1
                for r in range(n_rows):
                    log_density[start + r, c] += norm[r]


@compiled
def _sum_logs(x: Array, mu: Array, inverse: Array) -> float:  # pragma: no cover - compiled
    """Return the sum of log(1 + z^2) over the observed cells, also where z^2 overflows."""
    total = 0.0
    for j in range(len(x)):
        z = abs((x[j] - mu[j]) * inverse[j])
        if z > 1e150:
            total += 2.0 * np.log(z)
        elif z == z:
            total += np.log1p(z * z)
    return total


@compiled
def place_code(value, k: int):  # pragma: no cover - compiled
    """Return the place of a cell in a table of k + 2 entries: codes, other numbers, NaN."""
    inside = (value >= 0) & (value < k)
    code = np.int64(value if inside else 0)
    other = k + np.int64(value != value)
    return np.uint64(code if inside & (code == value) else other)


@compiled
def count_codes(  # pragma: no cover - compiled
    x: Array, y: Array, weight: Array, counts: Array
) -> None:
    """Add rows to counts (C, D, K + 2); y int64 (N,); weight (N,), or (0,) for weight 1."""
    k = counts.shape[2] - 2
    for i in range(len(x)):
        c = np.uint64(y[i])
        w = weight[i] if len(weight) else 1.0
        for j in range(x.shape[1]):
            counts[c, j, place_code(x[i, j], k)] += w


@compiled
def add_bytes(x: Array, y: Array, sums: Array) -> None:  # pragma: no cover - compiled
    """Add rows of uint8 to sums (C, D) of uint32, which hold 2^24 rows; y int64 (N,)."""
    for i in range(len(x)):
        c = np.uint64(y[i])
        for j in range(x.shape[1]):
            sums[c, j] += x[i, j]


@compiled
def look_up(x: Array, table: Array, sums: Array) -> None:  # pragma: no cover - compiled
    """Write to (N, M) the sums over columns of a table (D, K + 2, M) at the codes of each row."""
    n_columns, width, n_outputs = table.shape
    for i in range(len(x)):
        for m in range(n_outputs):
            sums[i, m] = 0.0
        for j in range(n_columns):
            terms = table[j, place_code(x[i, j], width - 2)]
            for m in range(n_outputs):
                sums[i, m] += terms[m]
