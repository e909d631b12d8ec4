r"""Squared Mahalanobis distances of rows from class means, and Normal densities of draws.

.. math:: q_c(x) = (x - \mu_c)^T \Sigma_c^{-1} (x - \mu_c) = \|W_c (x - \mu_c)\|^2, \qquad
          W_c = L_c^{-1}, \; \Sigma_c = L_c L_c^T

Differences are taken before they are multiplied and squared: nothing is expanded, so that an
offset of the columns costs no digits. Rows come block by block.

Shapes: n rows, D features, C classes, G covariances (C, or 1 that the classes share), S draws.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.numerics.kernels import pays
from bayesgen.numerics.kernels.blas import multiply_by_lower, sharing
from bayesgen.numerics.rows import Matrix, has_nan, row_blocks
from bayesgen.numerics.special import Array

Block = Callable[[slice, Array], Array]  # some rows minus (D,): float64, for the caller to keep

_TINY = 64  # features below which matrices are too small for a product of each draw's own
_NUMBERS = 1 << 18  # of whitened rows under some draws: 2 MiB
_DRAWS = 64  # in one product
_FEW_SCORES = 16  # of a row, beyond which a product of matrices is faster than a compiled pass
_FAR = 100.0  # class means further apart, in standard deviations, are not subtracted afterwards


def patterns(X: Matrix, live: Array) -> Iterator[tuple[Array | slice, Array]]:
    """(rows, columns to use) for each pattern of missing cells among the live columns."""
    yield from common_patterns(X, live, 1)[1]


def common_patterns(
    X: Matrix, live: Array, least: int
) -> tuple[Array, Iterator[tuple[Array | slice, Array]]]:
    """Rows whose pattern fewer than `least` rows have, and the other `patterns`."""
    if not has_nan(X):
        return np.empty(0, dtype=np.intp), iter([(slice(None), live)])
    bits = np.zeros((X.shape[0], -(-len(live) // 64) * 8), dtype=np.uint8)
    for rows in row_blocks(*X.shape):
        bits[rows, : -(-len(live) // 8)] = np.packbits(~np.isnan(X[rows][:, live]), axis=1)
    words = bits.view(np.uint64)  # one word sorts ten times as fast as bytes
    keys = words[:, 0] if words.shape[1] == 1 else words
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.ravel()
    seen = np.unpackbits(kinds.reshape(len(kinds), -1).view(np.uint8), axis=1, count=len(live))
    size = np.bincount(which, minlength=len(kinds))
    order, ends = np.argsort(which, kind="stable"), np.cumsum(size)
    common = np.flatnonzero(size >= least)
    each = ((order[ends[k] - size[k] : ends[k]], live[seen[k].astype(bool)]) for k in common)
    return np.flatnonzero(size[which] < least), each


def pattern_blocks(X: Matrix, live: Array) -> Iterator[tuple[Array | slice, Array]]:
    """`patterns`, those of complete rows in blocks of about 2 MiB of float64."""
    if has_nan(X):
        yield from patterns(X, live)
        return
    for rows in row_blocks(*X.shape):
        yield rows, live


def reader(X: Matrix, rows: Array | slice, columns: Array) -> tuple[Block, int]:
    """Rows and columns of X as `Block`, and how many rows they are; `rows` as in `patterns`."""
    every = len(columns) == X.shape[1]

    def read(part: Any, minus: Array) -> Array:
        block = X[part if isinstance(rows, slice) else rows[part]]
        if not every:
            block = block[:, columns]
        return np.subtract(block, minus, out=np.empty(block.shape))  # widened to float64 first

    return read, X.shape[0] if isinstance(rows, slice) else len(rows)


def squared_distances(read: Block, n: int, shift: Array, mu: Array, factor: Array) -> Array:
    """(n, C) squared distances of rows minus `shift` from the class means.

    Parameters
    ----------
    mu : (C, D), minus shift
    factor : (G, D, D) lower Cholesky factors of the covariances
    """
    n_classes, dim = mu.shape
    out = np.zeros((n, n_classes))
    if not n or not dim:
        return out
    whiten = None
    if n >= dim:  # else the inverse costs more than it saves
        whiten = inverse_of_lower(factor)
    groups = [list(range(n_classes))] if len(factor) == 1 else [[c] for c in range(n_classes)]

    def multiply(k: int, d: Array) -> Array:
        if whiten is None:
            return solve_triangular(factor[k], d.T, lower=True, check_finite=False).T
        multiply_by_lower(d, whiten[k])
        return d

    # one covariance: the rows are multiplied once, unless the classes lie so far apart that the
    # difference of two products would lose digits
    centre = mu.mean(axis=0) if len(factor) == 1 else mu[0]
    steps = [multiply(k, np.array(mu[group] - centre)) for k, group in enumerate(groups)]
    near = len(factor) == 1 and n_classes > 1 and np.abs(steps[0]).max() < _FAR

    def fill(rows: slice) -> None:
        x = read(rows, shift)
        d = np.empty_like(x)
        if near:
            x -= centre
            x = multiply(0, x)
        for k, group in enumerate(groups):
            for m, c in enumerate(group):
                z = np.subtract(x, steps[0][m] if near else mu[c], out=d)
                if not near:
                    z = multiply(k, z)
                np.einsum("nd,nd->n", z, z, out=out[rows, c])

    work = n * dim * dim * (1 if near else n_classes)
    with sharing(pays(work)) as share:
        share(fill, row_blocks(n, dim))
    return out


def observed_distances(x: Array, mu: Array, scale: Array) -> tuple[Array, Array]:
    """Of the observed cells of each row, by a factorisation of its own.

    Parameters
    ----------
    x : (n, D), NaN where a cell is missing
    mu : (C, D)
    scale : (G, D, D) covariances

    Returns
    -------
    q : (n, C) squared distances from the class means
    half_log_det : (n, G)
    """
    (n, dim), (n_classes, n_groups) = x.shape, (len(mu), len(scale))
    q, half_log_det = np.empty((n, n_classes)), np.empty((n, n_groups))
    if pays(n * mu.size, predicting=True):
        from bayesgen.numerics.kernels import missing_cells
        from bayesgen.numerics.kernels.compiling import as_data
        from bayesgen.numerics.kernels.threads import over_blocks

        x, mu, scale = (as_data(np.ascontiguousarray(a)) for a in (x, mu, scale))

        def part(start: int, stop: int) -> None:
            rows = slice(start, stop)
            missing_cells.observed_distances(x[rows], mu, scale, q[rows], half_log_det[rows])

        for _ in over_blocks(part, n, dim * dim):
            pass
        return q, half_log_det
    for rows in row_blocks(n, dim * dim):
        seen = ~np.isnan(x[rows])
        for g in range(n_groups):
            group = slice(None) if n_groups == 1 else slice(g, g + 1)
            both = seen[:, :, None] & seen[:, None, :]
            factor = np.linalg.cholesky(np.where(both, scale[g], np.eye(dim)))
            root = np.diagonal(factor, axis1=1, axis2=2)
            half_log_det[rows, g] = np.log(root).sum(axis=1)
            z = np.where(seen[:, None], x[rows, None] - mu[group], 0.0).swapaxes(1, 2).copy()
            for i in range(dim):
                z[:, i] -= (factor[:, i : i + 1, :i] @ z[:, :i])[:, 0]
                z[:, i] /= root[:, i, None]
            q[rows, group] = np.square(z).sum(axis=1)
    return q, half_log_det


def whitening(mu: Array, factor: Array) -> tuple[Array, Array, Array]:
    """What makes `squared_distances` sums of squares, ``|whiten (x - centre) - step|^2``.

    Parameters
    ----------
    mu, factor : as there

    Returns
    -------
    whiten : (G, D, D)
    centre : (G, D)
    step : (C, D)
        One group, where rows may be multiplied once for all classes; else one for each class.
    """
    whiten = inverse_of_lower(factor)
    if len(factor) == 1:
        centre = mu.mean(axis=0, keepdims=True)
        step = (mu - centre) @ whiten[0].T
        if np.abs(step).max(initial=0.0) < _FAR:
            return whiten, centre, step
    return np.broadcast_to(whiten, (len(mu), *whiten.shape[1:])), mu, np.zeros(mu.shape)


def log_normal_of_draws(X: Matrix, mu: Array, sigma: Array, live: Array) -> Array:
    """(S, N, C) Normal log densities of the observed cells of rows under draws.

    Parameters
    ----------
    mu : (S, C, D)
    sigma : (S, G, D, D) covariances
    live : columns that count
    """
    out = np.empty((len(mu), X.shape[0], mu.shape[1]))
    for rows, columns in patterns(X, live):
        read, n = reader(X, rows, columns)
        for draws in row_blocks(len(mu), math.prod(sigma.shape[1:])):
            factor = np.linalg.cholesky(sigma[draws][:, :, columns[:, None], columns])
            log_det = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
            q = squared_distances_of_draws(read, n, mu[draws][..., columns], factor)
            q *= -0.5
            q -= (0.5 * len(columns) * np.log(2 * np.pi) + log_det)[:, None, :]
            out[draws, rows] = q
    return out


def squared_distances_of_draws(read: Block, n: int, mu: Array, sigma_factor: Array) -> Array:
    """(S, n, C) squared distances of rows from the class means of draws.

    Parameters
    ----------
    mu : (S, C, D)
    sigma_factor : (S, G, D, D) lower Cholesky factors
    """
    n_draws, n_classes, dim = mu.shape
    out = np.zeros((n_draws, n, n_classes))
    if not dim:
        return out
    if dim >= _TINY or n_draws == 1:
        for s in range(n_draws):
            centre = mu[s].mean(axis=0)
            out[s] = squared_distances(read, n, centre, mu[s] - centre, sigma_factor[s])
        return out
    # all draws of one class in one product: (n, D) by (D, D S), the draws innermost
    centre = mu.mean(axis=0)
    whiten = inverse_of_lower(sigma_factor)
    height = max(1, _NUMBERS // (dim * _DRAWS))
    tables = []
    for first in range(0, n_draws, _DRAWS):
        some = slice(first, first + _DRAWS)
        for c in range(n_classes):
            w = whiten[some, c if whiten.shape[1] > 1 else 0]
            at = (w @ (mu[some, c] - centre[c])[..., None])[..., 0]
            wide = np.concatenate([w, -at[:, :, None]], axis=2).transpose(2, 1, 0)
            tables.append((some, c, np.ascontiguousarray(wide).reshape(dim + 1, -1)))

    def fill(rows: slice) -> None:
        own = [read(rows, at) for at in centre]
        d = np.ones((rows.stop - rows.start, dim + 1))
        for some, c, wide in tables:
            d[:, :-1] = own[c]
            z = (d @ wide).reshape(len(d), dim, -1)
            out[some, rows, c] = np.einsum("nds,nds->sn", z, z)

    parts = (slice(i, min(i + height, n)) for i in range(0, n, height))
    with sharing(pays(n * n_draws * n_classes * dim * dim)) as share:
        share(fill, parts)
    return out


def linear_scores(
    X: Matrix, rows: Array | slice, columns: Array, centre: Array, w: Array, level: Array
) -> Array:
    """(S, n, C) scores ``(x - centre) @ w + level`` of rows and columns of X, as in `patterns`.

    Parameters
    ----------
    centre : (D,)
    w : (S, C, D)
    level : (S, C)
    """
    n_draws, n_classes, dim = w.shape
    if (
        isinstance(rows, slice)
        and w.shape[0] * n_classes <= _FEW_SCORES
        and pays(X.shape[0] * dim, predicting=True)
    ):
        return _compiled_scores(X, columns, centre, w, level)
    read, n = reader(X, rows, columns)
    out = np.empty((n_draws, n, n_classes))
    flat, last = w.reshape(n_draws * n_classes, dim).T, level.ravel()

    def fill(part: slice) -> None:
        scores = read(part, centre) @ flat
        scores += last
        out[:, part] = scores.reshape(len(scores), n_draws, n_classes).swapaxes(0, 1)

    with sharing(pays(n * w.size)) as share:
        share(fill, row_blocks(n, max(dim, flat.shape[1])))
    return out


def _compiled_scores(X: Matrix, columns: Array, centre: Array, w: Array, level: Array) -> Array:
    """`linear_scores` of all rows of a large X, a few scores each."""
    from bayesgen.numerics.kernels.compiling import as_rows, row_slices
    from bayesgen.numerics.kernels.linear import add_scores
    from bayesgen.numerics.kernels.threads import over_blocks

    every = len(columns) == X.shape[1]
    table = np.ascontiguousarray(w.reshape(-1, w.shape[-1]))
    out = np.empty((X.shape[0], len(table)))
    out[:] = level.ravel()

    def part(start: int, stop: int) -> None:
        for rows in row_slices(X, start, stop):
            x = X[rows] if every else X[rows][:, columns]
            add_scores(as_rows(x), centre, table, out[rows])

    for _ in over_blocks(part, *X.shape):
        pass
    return np.ascontiguousarray(np.moveaxis(out.reshape(X.shape[0], *level.shape), 1, 0))


def inverse_of_lower(factor: Array) -> Array:
    """(..., D, D) inverses of lower triangular matrices, a row at a time for all of them.

    Row i of ``factor @ out = I`` takes the rows above it: errors are relative to the rows' own
    lengths, whatever the units of the columns.
    """
    dim = factor.shape[-1]
    out = np.zeros(factor.shape)
    for i in range(dim):
        below = factor[..., i : i + 1, :i] @ out[..., :i, :i]
        out[..., i, :i] = -below[..., 0, :] / factor[..., i, i, None]
        out[..., i, i] = 1 / factor[..., i, i]
    return out
