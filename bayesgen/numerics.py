r"""Stable special functions and single passes over rows; NumPy and SciPy only.

Notation of the docstrings: N rows, D features, C classes. A function that returns a logarithm
starts with ``log_``.

The hazard behind most of this page is :math:`\log\Gamma(a+n) - \log\Gamma(a)`: for
:math:`a = 10^{12}` the plain difference is wrong by 2e-3, which is more than the information
that a document carries about its class.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammaln, loggamma, xlogy

Array = np.ndarray
Matrix = Any  # a dense (N, D) array or a scipy.sparse CSR matrix of that shape

_STIRLING_FROM = 32.0  # below it the plain difference of log-gammas is good to 1e-13
_BLOCK_CELLS = 1 << 18  # cells of one row block: 2 MiB of float64, inside the second-level cache


# --------------------------------------------------------------------------- gamma functions


def _stirling_tail(z: Array) -> Array:
    """``log Gamma(z) - [(z - 1/2) log z - z + log(2 pi)/2]``; error below 1e-16 for |z| >= 32."""
    w = 1.0 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680))) / z


def log_gamma_difference(a: Any, n: Any) -> Array:
    r""":math:`\log\Gamma(a+n) - \log\Gamma(a)` without cancellation.

    Parameters
    ----------
    a : array of float, > 0
    n : array of float or complex, with ``a + n`` (its real part) > 0
        Broadcasts against `a`.

    Returns
    -------
    array of the broadcast shape
        Exactly 0 where ``n`` is 0. Relative error near 1e-15 for `a` up to 1e15 and beyond.
        NaN where n is real and ``a + n`` negative.

    Notes
    -----
    For :math:`a \ge 32` Stirling's series is subtracted analytically:
    :math:`n\log a + (a+n-\tfrac12)\log(1+n/a) - n + \delta(a+n) - \delta(a)`.

    Examples
    --------
    >>> float(log_gamma_difference(1e15, 1.0))  # log(1e15); the plain difference is 32.0
    34.538776394910684
    """
    a = np.asarray(a, dtype=np.float64)
    n = np.asarray(n)
    n = n.astype(np.complex128 if np.iscomplexobj(n) else np.float64, copy=False)
    lgamma = loggamma if np.iscomplexobj(n) else _log_gamma
    a, n = np.broadcast_arrays(a, n)
    big = (a >= _STIRLING_FROM) & ((a + n).real >= _STIRLING_FROM)
    if not big.any():
        return lgamma(a + n) - gammaln(a)
    if big.all():
        return _stirling_difference(a, n)
    out = np.empty(a.shape, dtype=n.dtype)
    out[big] = _stirling_difference(a[big], n[big])
    small = ~big
    out[small] = lgamma(a[small] + n[small]) - gammaln(a[small])
    return out


def _log_gamma(z: Array) -> Array:
    """log Gamma of a positive number; below 0 SciPy's gammaln is log |Gamma|, here NaN."""
    return gammaln(np.where(z >= 0, z, np.nan))


def _stirling_difference(a: Array, n: Array) -> Array:
    total = a + n
    r = n / a
    # log1p and its remainder apart: (a+n-1/2) log1p(r) - n loses digits when n << a
    return n * np.log(a) + (total - 0.5) * log1p(r) - n + _stirling_tail(total) - _stirling_tail(a)


def log1p(r: Array) -> Array:
    """log(1 + r) for real or complex r, principal branch, exact for small r."""
    if not np.iscomplexobj(r):
        return np.log1p(r)
    x, y = r.real, r.imag
    return 0.5 * np.log1p(x * (2.0 + x) + y * y) + 1j * np.arctan2(y, 1.0 + x)


def log_multigamma_difference(a: Any, n: Any, dim: int) -> Array:
    r""":math:`\log\Gamma_D(a+n) - \log\Gamma_D(a)`, the multivariate gamma function, stably.

    ``a > (dim - 1)/2``; shapes as in :func:`log_gamma_difference`.
    """
    a, n = np.asarray(a, dtype=np.float64), np.asarray(n)
    steps = np.arange(dim) / 2
    return log_gamma_difference(a[..., None] - steps, n[..., None]).sum(axis=-1)


def log_beta_difference(alpha: Array, counts: Array) -> Array:
    r""":math:`\log B(\alpha+n) - \log B(\alpha)` of Dirichlet normalisers, over the last axis.

    Cells with ``alpha == 0`` are padding and must have no counts; they contribute nothing.
    """
    alpha, counts = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), counts)
    cells = log_gamma_difference(np.where(alpha > 0, alpha, 1.0), counts).sum(axis=-1)
    return cells - log_gamma_difference(alpha.sum(axis=-1), counts.sum(axis=-1))


def deviance(x: Any, mean: Any) -> Array:
    """``x log(x/mean) - x + mean`` for x >= 0, mean > 0: accurate when both are huge and close.

    scipy.special.kl_div computes it term by term, an error of 1e-4 at x = 1e12.
    """
    x, mean = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(mean, np.float64))
    e = (x - mean) / mean
    with np.errstate(invalid="ignore", divide="ignore"):  # e = -1 (x = 0) is set below
        near = mean * ((1 + e) * np.log1p(e) - e)
    return np.where(x == 0, mean, np.where(np.abs(e) < 0.5, near, xlogy(x, x / mean) - x + mean))


def log_poisson(x: Any, rate: Any) -> Array:
    """Poisson log-mass, exact to 1e-10 at counts of 1e12; a rate of 0 allows only x = 0."""
    x, rate = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(rate, np.float64))
    big = x >= _STIRLING_FROM
    safe = np.where(rate > 0, rate, 1.0)
    plain = xlogy(x, safe) - safe - gammaln(x + 1)
    z = np.where(big, x, _STIRLING_FROM)
    saddle = -deviance(z, safe) - 0.5 * np.log(2 * np.pi * z) - _stirling_tail(z)
    out = np.where(big, saddle, plain)
    return np.where(rate > 0, out, np.where(x == 0, 0.0, -np.inf))


def log_negative_binomial(x: Any, shape: Any, rate: Any) -> Array:
    r"""Log-mass of a Poisson count whose rate is Gamma(shape, rate).

    :math:`\log\Gamma(a+x) - \log\Gamma(a) - \log x! + a\log\frac{b}{b+1} - x\log(b+1)` with
    a = shape, b = rate. The terms reach 1e13 at counts of 1e12 while the result is about -14;
    where x and a are both large Loader's saddle-point form keeps it exact.

    Source: C. Loader (2000), Fast and accurate computation of binomial probabilities.
    """
    x, a, b = np.broadcast_arrays(
        np.asarray(x, np.float64), np.asarray(shape, np.float64), np.asarray(rate, np.float64)
    )
    tail = -a * np.log1p(1 / b) - x * np.log1p(b)
    out = np.asarray(log_gamma_difference(a, x) - gammaln(x + 1) + tail)
    tail = np.asarray(tail)
    many = x >= _STIRLING_FROM
    few_shape = many & (a < _STIRLING_FROM)
    if few_shape.any():
        xs, as_ = x[few_shape], a[few_shape]
        out[few_shape] = log_gamma_difference(xs + 1, as_ - 1) - gammaln(as_) + tail[few_shape]
    both = many & (a >= _STIRLING_FROM)
    if both.any():
        x, a, b = x[both], a[both], b[both]
        n = a + x
        out[both] = (
            _stirling_tail(n)
            - _stirling_tail(x)
            - _stirling_tail(a)
            - deviance(x, n / (b + 1))
            - deviance(a, n * (b / (b + 1)))
            + 0.5 * np.log(a / (2 * np.pi * x * n))
        )
    return out


def log_poisson_power(x: Any, shape: Any, rate: Any, t: Any) -> Array:
    r"""``log E[Poisson(x | r)^t]`` for r ~ Gamma(shape, rate): the cumulants of a log-mass.

    :math:`\log\Gamma(a+tx) - \log\Gamma(a) + a\log b - (a+tx)\log(b+t) - t\log x!`, which is
    `log_negative_binomial` at t = 1; t may be complex. NaN for a real t outside the domain.

    Notes
    -----
    Where x is large the terms of order x log x cancel on paper, which leaves with n = tx

    - for small a :math:`-\log\Gamma(a) + (a-\tfrac12)\log(a+n) +
      n\log\tfrac{1+a/n}{1+b/t} - a + a\log\tfrac b{b+t} + \tfrac12\log 2\pi + \delta(a+n)`,
    - for large a, with e = (x b - a)/a the relative distance of the count from the mean and
      s = t/b, :math:`a\log(1 + \tfrac{se}{1+s}) + n\log(1 - \tfrac e{(1+s)(1+e)}) -
      \tfrac12\log(1+\tfrac na) + \delta(a+n) - \delta(a)`,

    both to be added to :math:`t \log\mathrm{Poisson}(x | x)`.
    """
    x, a, b = np.broadcast_arrays(
        np.asarray(x, np.float64), np.asarray(shape, np.float64), np.asarray(rate, np.float64)
    )
    x, a, b, t = np.broadcast_arrays(x, a, b, t)
    with np.errstate(invalid="ignore", divide="ignore"):
        n = t * x
        out = np.asarray(
            log_gamma_difference(a, n) - a * log1p(t / b) - n * np.log(b + t) - t * gammaln(x + 1)
        )
        many = (x >= _STIRLING_FROM) & (np.abs(a + n) >= _STIRLING_FROM)
        many &= ((a + n).real >= 0) & ((b + t).real > 0)
        for function, cells in (
            (_power_few, many & (a < _STIRLING_FROM) & (t != 0)),
            (_power_many, many & (a >= _STIRLING_FROM)),
        ):
            if cells.any():
                at_mode = -0.5 * np.log(2 * np.pi * x[cells]) - _stirling_tail(x[cells])
                rest = function(x[cells], n[cells], a[cells], b[cells], t[cells])
                out[cells] = t[cells] * at_mode + rest
    return out


def _power_few(x: Array, n: Array, a: Array, b: Array, t: Array) -> Array:
    return (
        (a - 0.5) * np.log(a + n)
        + n * log1p((a / n - b / t) / (1 + b / t))
        - a * (1 + log1p(t / b))
        - gammaln(a)
        + 0.5 * np.log(2 * np.pi)
        + _stirling_tail(a + n)
    )


def _power_many(x: Array, n: Array, a: Array, b: Array, t: Array) -> Array:
    e, s = (x * b - a) / a, t / b
    return (
        a * log1p(s * e / (1 + s))
        + n * log1p(-e / ((1 + s) * (1 + e)))
        - 0.5 * log1p(n / a)
        + _stirling_tail(a + n)
        - _stirling_tail(a)
    )


# ------------------------------------------------------------------------ sums of exponentials


def log_sum_exp(a: Array, axis: int = -1) -> Array:
    """log of the sum of exp(a); -inf where every term is -inf. One shift a slice."""
    top = np.max(a, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(a - shift).sum(axis=axis)) + np.squeeze(shift, axis=axis)


def log_mean_exp(a: Array, axis: int = 0) -> Array:
    """log of the mean of exp(a) over `axis`: the average of joint densities over draws."""
    return log_sum_exp(a, axis=axis) - np.log(a.shape[axis])


def log_softmax(a: Array) -> Array:
    """Normalise log joint densities over the last axis; NaN where all are -inf.

    A row that is impossible under every class has no class probabilities: it is never turned
    into a uniform distribution here.
    """
    top = np.max(a, axis=-1, keepdims=True)
    # shifted first: probabilities add up to 1 also where log densities are -1e9
    a = a - np.where(np.isfinite(top), top, 0.0)
    with np.errstate(invalid="ignore"):
        return a - log_sum_exp(a, axis=-1)[..., None]


# --------------------------------------------------------------------------- passes over rows


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices that cover the rows in blocks of about 2 MiB of float64."""
    step = max(1, _BLOCK_CELLS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def one_hot(y: Array, n_classes: int, weight: Array | None = None) -> sparse.csr_matrix:
    """(C, N) sparse indicator of the class codes, with the row weights as values."""
    n = len(y)
    data = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    return sparse.csc_matrix((data, y, np.arange(n + 1)), shape=(n_classes, n)).tocsr()


def class_counts(y: Array, n_classes: int, weight: Array | None = None) -> Array:
    """(C,) total weight of the rows of each class."""
    return np.bincount(y, weights=weight, minlength=n_classes).astype(np.float64)


def class_sums(
    X: Matrix,
    y: Array,
    n_classes: int,
    weight: Array | None = None,
    function: Callable[[Array], Array] | None = None,
) -> Array:
    """(C, D) weighted column sums of each class, in float64; sparse X stays sparse.

    `function`, with value 0 at 0, is applied to the cells first.
    """
    indicator = one_hot(y, n_classes, weight)
    if sparse.issparse(X):
        if function is not None:
            X = stored_cells(X, slice(None))
            X.data = function(X.data)
        return np.asarray((indicator @ X.astype(np.float64, copy=False)).todense())
    out = np.zeros((n_classes, X.shape[1]))
    columns = indicator.tocsc()
    for rows in row_blocks(*X.shape):
        block = dense_block(X, rows)
        out += columns[:, rows] @ (block if function is None else function(block))
    return out


def remainder(total: Array, part: Array) -> Array:
    """``total - part`` of weights that were summed apart; 0 where only rounding is left.

    Whole numbers add up without rounding: one row beside 1e12 others is no rounding error.
    """
    rest = total - part
    whole = (total == np.rint(total)) & (part == np.rint(part))
    return np.where(rest > np.where(whole, 0.0, 1e-12 * total), rest, 0.0)


def has_nan(X: Matrix) -> bool:
    """Whether any cell is NaN, without an array of booleans for types that cannot hold one."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "fc" or values.size == 0:
        return False
    return bool(np.isnan(values.min()))


def dot(X: Matrix, table: Array) -> Array:
    """``X @ table.T`` for a table (..., C, D): dense float64 (..., N, C), in blocks of rows."""
    *batch, n_classes, n_features = table.shape
    flat = table.reshape(-1, n_features)
    if sparse.issparse(X):
        out = np.asarray(X @ flat.T)
    else:
        out = np.empty((X.shape[0], len(flat)))
        for rows in row_blocks(*X.shape):
            np.matmul(dense_block(X, rows), flat.T, out=out[rows])
    return np.moveaxis(out.reshape(X.shape[0], *batch, n_classes), 0, -2)


def dot_log(X: Matrix, p: Array) -> Array:
    """``X @ log(p).T`` with 0 log 0 = 0 and -inf where a positive count meets p = 0.

    X (N, D) non-negative without NaN; p (..., C, D). Returns (..., N, C).
    """
    zero = p == 0
    out = dot(X, np.log(np.where(zero, 1.0, p)))
    if zero.any():
        out = np.where(dot(X, zero.astype(np.float64)) > 0, -np.inf, out)
    return out


def split_missing(X: Matrix) -> tuple[Matrix, Matrix | None]:
    """X with NaN replaced by 0, and the indicator of the NaN cells (None if there is none)."""
    if not has_nan(X):
        return X, None
    if sparse.issparse(X):
        filled, missing = X.copy(), X.copy()
        gone = np.isnan(X.data)
        filled.data = np.where(gone, 0.0, X.data)
        missing.data = gone.astype(np.float64)
        return filled, missing
    gone = np.isnan(X)
    return np.where(gone, 0.0, X), gone


def dense_block(X: Matrix, rows: slice) -> Array:
    """Rows of X as a dense float64 array, for one block of `row_blocks`.

    float32 is widened here, before any sum, never after.
    """
    block = X[rows]
    return np.asarray(block.todense() if sparse.issparse(X) else block, dtype=np.float64)


# ---------------------------------------------------------------------------- rows of counts


def refuse_negative_counts(X: Matrix) -> None:
    """Raise if a cell is below 0, and say which; NaN is not looked at."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind in "ub" or values.size == 0 or not np.fmin.reduce(values, axis=None) < 0:
        return
    if sparse.issparse(X):
        cells = X.tocoo()
        k = int(np.flatnonzero(cells.data < 0)[0])
        i, j, value = cells.row[k], cells.col[k], cells.data[k]
    else:
        i, j = np.argwhere(X < 0)[0]
        value = X[i, j]
    raise ValueError(f"counts must be >= 0: row {i}, feature {j} is {value:g}")


def stored_cells(X: Matrix, rows: slice) -> sparse.csr_matrix:
    """The nonzero (or NaN) cells of some rows as float64 CSR, each cell once."""
    cells = sparse.csr_matrix(X[rows] if sparse.issparse(X) else dense_block(X, rows), dtype=float)
    if not cells.has_canonical_format:
        cells = cells.copy()  # it may be a view of X
        cells.sum_duplicates()
    return cells


def stored_blocks(X: Matrix, table_cells: int) -> Iterator[tuple[slice, sparse.csr_matrix]]:
    """`stored_cells` of all rows, in blocks of about 2 MiB or as large as the caller's tables."""
    n_rows, width = X.shape
    if sparse.issparse(X):
        width = int(X.nnz / max(1, n_rows) * min(1.0, _BLOCK_CELLS / max(1, table_cells)))
    for rows in row_blocks(n_rows, width):
        yield rows, stored_cells(X, rows)


def row_sums(values: Array, indptr: Array) -> Array:
    """(..., n) sums over each row of CSR cells (..., nnz)."""
    filled = np.flatnonzero(np.diff(indptr))
    out = np.zeros((*values.shape[:-1], len(indptr) - 1), dtype=values.dtype)
    if len(filled):
        out[..., filled] = np.add.reduceat(values, indptr[filled], axis=-1)
    return out


def exact_parts(table: Array) -> Array:
    """(2, ..., D): a table >= 0 as coarse + fine, where sums of coarse parts have no rounding.

    The coarse parts are multiples of one power of two, large enough that no sum over the last
    axis needs more than 53 bits.
    """
    total = table.sum(axis=-1, keepdims=True)
    unit = np.exp2(np.ceil(np.log2(np.where(total > 0, total, 1.0))) - 52)
    coarse = np.rint(table / unit) * unit
    return np.stack([coarse, table - coarse])


def sum_except(mask: Matrix, parts: Array) -> Array:
    """(..., N, C) sums of a table (..., C, D), given as `exact_parts`, where `mask` is 0.

    The sum over all cells minus the sum over those of the mask, which may be sparse: wrong by
    1e-4 when done in plain floats and the entries reach 1e12; exact here.
    """
    coarse, fine = parts.sum(axis=-1)[..., None, :] - dot(mask, parts)
    return coarse + fine


def pattern(cells: sparse.csr_matrix) -> sparse.csr_matrix:
    """1 at every stored cell."""
    ones = np.ones(len(cells.data))
    return sparse.csr_matrix((ones, cells.indices, cells.indptr), shape=cells.shape)


_LOG_FACTORIAL = gammaln(np.arange(1.0, 257.0))


def log_factorial(x: Array) -> Array:
    """``log x!`` for x >= 0, by look-up for small whole numbers."""
    small = np.minimum(x, 255.0).astype(np.intp)
    out = _LOG_FACTORIAL[small]
    other = small != x
    if other.any():
        out[other] = gammaln(x[other] + 1)
    return out


def small_count_table(
    function: Callable[[Any, Array], Array], X: Matrix, n_tables: int
) -> Callable[[Array, Array], Array]:
    """``function(columns, counts)``, made to look up small whole counts in a table.

    The table covers counts below 16, or fewer if it would be larger than X has cells.
    """
    n_features = max(1, X.shape[1])
    n_cells = X.nnz if sparse.issparse(X) else X.shape[0] * n_features
    below = min(16, n_cells // n_features, (1 << 23) // (n_features * n_tables))
    if below < 2:
        return function
    table = function(slice(None), np.arange(below, dtype=np.float64)[:, None]).ravel()

    def look_up(columns: Array, counts: Array) -> Array:
        whole = np.minimum(counts, below).astype(np.intp)
        small = (whole == counts) & (whole < below)
        if small.all():
            return table.take(whole * n_features + columns)
        out = np.empty(len(counts))
        out[small] = table.take(whole[small] * n_features + columns[small])
        rest = ~small
        out[rest] = function(columns[rest], counts[rest])
        return out

    return look_up


# ------------------------------------------------------------------------------------- draws


def draw_log_gamma(rng: np.random.Generator, shape: Array, size: tuple[int, ...]) -> Array:
    """log of Gamma(shape, 1) draws; does not underflow for shapes far below 1.

    A Gamma(a) variable is a Gamma(a + 1) variable times U^(1/a).
    """
    small = shape < 1.0
    draws = np.log(rng.standard_gamma(np.where(small, shape + 1.0, shape), size=size))
    if np.any(small):
        safe = np.where(small, shape, 1.0)
        draws += np.where(small, -rng.standard_exponential(size=size) / safe, 0.0)
    return draws


def draw_dirichlet(rng: np.random.Generator, alpha: Array, n: int) -> Array:
    """(n, *alpha.shape) Dirichlet draws over the last axis; ``alpha == 0`` marks padding (0)."""
    real = alpha > 0
    logs = draw_log_gamma(rng, np.where(real, alpha, 1.0), (n, *alpha.shape))
    logs = np.where(real, logs, -np.inf)
    return np.exp(logs - log_sum_exp(logs)[..., None])


# ------------------------------------------------------------------------------- information


def gaussian_information(mu: Array, sigma2: Array, weights: Array) -> Array:
    """(D,) mutual information, in nats, of each feature and the class under Normal densities.

    ``h(mixture) - sum_c pi_c h(Normal_c)`` with the entropy of the mixture by Gauss-Legendre
    panels one standard deviation wide about every component; error below 1e-10.

    Parameters
    ----------
    mu, sigma2 : (C, D)
    weights : (C,) class weights that sum to 1
    """
    nodes, node_weights = np.polynomial.legendre.leggauss(12)
    steps = np.arange(-12.0, 13.0)
    use = weights > 0
    mu, sd, pi = mu[use], np.sqrt(sigma2[use]), weights[use]
    own = pi @ (0.5 * np.log(2 * np.pi * np.e) + np.log(sd))
    out = np.empty(mu.shape[1])
    for j in range(mu.shape[1]):
        edges = np.unique(mu[:, j, None] + sd[:, j, None] * steps)
        half = np.diff(edges)[:, None] / 2
        x = (edges[:-1, None] + half * (1 + nodes)).ravel()
        log_p = log_sum_exp(
            np.log(pi)
            - 0.5 * np.log(2 * np.pi)
            - np.log(sd[:, j])
            - 0.5 * np.square((x[:, None] - mu[:, j]) / sd[:, j])
        )
        out[j] = -((half * node_weights).ravel() @ (np.exp(log_p) * log_p)) - own[j]
    return np.maximum(out, 0.0)


# ------------------------------------------------------------------------- pooled quantities


class UnitInformation(NamedTuple):
    """What the columns say of their own location and scale, classes pooled; arrays (D,)."""

    n: Array  # weight of the observed rows
    mean: Array  # minus shift
    variance: Array  # pooled within-class variance, > 0
    constant: Array  # True where the column does not vary at all


def unit_information(n: Array, mean: Array, scatter: Array, shift: Array) -> UnitInformation:
    r"""Location and scale of each column for a data-scaled default prior.

    Parameters
    ----------
    n : (C, D) or (C, 1) weights; mean : (C, D) class means minus shift; scatter : (C or 1, D)
    shift : (D,)

    Notes
    -----
    With W the within-class scatter and V the total variance,
    :math:`s^2 = (W + V)/(1 + \sum_c \max(n_c - 1, 0))`: the within-class variance with one
    observation's worth of total variance, hence positive wherever the column varies, also with
    one row a class. Equivariant under shift and scale. A column that does not vary has no scale:
    1 + mean^2 stands in. The experiment behind it: ``tests/benchmarks/default_priors.py``.
    """
    total = np.broadcast_to(n, mean.shape).sum(axis=0)
    safe = np.maximum(total, np.finfo(float).tiny)
    centre = (n * mean).sum(axis=0) / safe
    within = scatter.sum(axis=0)
    spread = (within + (n * np.square(mean - centre)).sum(axis=0)) / safe
    rounding = 16 * np.finfo(float).eps * np.abs(mean + shift).max(axis=0, initial=0.0)
    constant = spread <= rounding**2
    variance = (within + spread) / (1 + np.maximum(n - 1, 0).sum(axis=0))
    return UnitInformation(
        total, centre, np.where(constant, 1 + np.square(centre + shift), variance), constant
    )
