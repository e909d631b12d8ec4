r"""What the two Gaussian families share: the scale of a default prior, and information.

Both place their default priors by what the columns say of themselves (`unit_information`), and
both report what each feature alone tells of the class (`gaussian_information`). C classes, D
features.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bayesgen.errors import warn
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import Matrix, dense_block, has_nan, row_blocks
from bayesgen.numerics.special import Array, log_sum_exp


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
    one row per class. Equivariant under shift and scale. A column that does not vary has no scale:
    1 + mean^2 stands in. The experiment behind it: ``tests/benchmarks/priors_on_open_sets.py``.
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


def prior_location(
    mu, shift, default: UnitInformation, reference: Array, n_classes: int
) -> tuple[Array, Array]:
    """Prior means (C, D) minus a shift (D,), and it: by default those of the columns.

    Parameters
    ----------
    mu, shift : as the user gave them; mu None for the default
    default : of the columns, whose means are minus `reference`
    """
    shape = n_classes, len(reference)
    if mu is None:
        return np.array(np.broadcast_to(default.mean, shape)), reference
    location = broadcast_prior("mu0", mu, shape, positive=False)
    return location, broadcast_prior("shift", shift, shape[1:], positive=False)


def gaussian_information(mu: Array, sigma2: Array, weights: Array) -> Array:
    """Return (D,) mutual information, in nats, of each Normal feature and the class.

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
    entropy = pi @ (0.5 * (1 + np.log(2 * np.pi)) + np.log(sd))
    nats = np.empty(mu.shape[1])
    for columns in row_blocks(mu.shape[1], len(pi) ** 2 * len(steps) * len(nodes)):
        m, s = mu[:, columns, None], sd[:, columns, None]
        edges = np.sort(np.moveaxis(m + s * steps, 0, 1).reshape(m.shape[1], -1), axis=1)
        half = np.diff(edges)[..., None] / 2  # 0 where panels of two classes begin together
        x = (edges[:, :-1, None] + half * (1 + nodes)).reshape(len(edges), -1)
        shift = np.log(pi)[:, None, None] - 0.5 * np.log(2 * np.pi) - np.log(s)
        log_p = log_sum_exp(shift - 0.5 * np.square((x - m) / s), axis=0)
        measure = (half * node_weights).reshape(len(edges), -1)
        nats[columns] = -np.einsum("dk,dk->d", measure, np.exp(log_p) * log_p) - entropy[columns]
    return np.maximum(nats, 0.0)


def warn_lost_digits(scatter: Array, before: Array, n: Array) -> None:
    """Warn if removing rows left a scatter that is mostly the rounding of what it was before."""
    lost = (n > 1) & (scatter > 0) & (scatter < 1e-10 * before)
    if lost.any():
        warn(
            "remove: the rows removed carried all but 1e-10 of the scatter of some cell; what "
            "is left of its variance has few correct digits: refit from the remaining rows",
            RuntimeWarning,
        )


def robust_location_and_scale(X: Array, y: Array) -> tuple[Array, Array]:
    """Median (D,) of each column, and its spread about the class medians: IQR/1.349, > 0.

    Equivariant under shift and scale of the columns, and not moved by a quarter of outliers. Rows
    without a label (-1) count for the median alone, unless no row has one. Where the quartiles
    coincide the mean absolute deviation stands in, and 1 in a column that does not vary.
    """
    X = np.asarray(X, dtype=np.float64)
    seen = ~np.isnan(X).all(axis=0)
    location, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    location[seen] = np.nanmedian(X[:, seen], axis=0)
    residual = X - location
    for c in np.unique(y[y >= 0]):
        members = y == c
        observed = ~np.isnan(X[members]).all(axis=0)
        here = np.ix_(members, observed)
        residual[here] = X[here] - np.nanmedian(X[here], axis=0)
    if (y >= 0).any():
        residual = residual[y >= 0]
    seen = ~np.isnan(residual).all(axis=0)
    low, high = np.nanquantile(residual[:, seen], [0.25, 0.75], axis=0)
    spread = (high - low) / 1.349
    mean_deviation = np.nanmean(np.abs(residual[:, seen]), axis=0)
    total = np.nanmean(np.abs(X[:, seen] - location[seen]), axis=0)
    spread = np.where(spread > 0, spread, np.where(mean_deviation > 0, mean_deviation, total))
    scale[seen] = np.where(spread > 0, spread, 1.0)
    return location, scale


def recorded_step(X: Array, scale: Array, weight: Array | None = None) -> Array:
    """Step (D,) in which the values of each column are recorded; 0 where no two are equal.

    Continuous values are all different. Where some are equal they are rounded, or piled up at one
    place, such as 0: the step is the median gap between the values that occur, which single
    values of more digits do not change. `scale` (D,) where they are all equal. A weight above 1 is
    a row repeated, rows of weight 0 do not count, and gaps below 1e-9 of `scale` are none: they
    are of two ways to compute the same value.
    """
    X = np.asarray(X, dtype=np.float64)
    repeated = np.zeros(X.shape[1], dtype=bool)
    if weight is not None:
        weight = np.asarray(weight)
        repeated = (~np.isnan(X[weight > 1])).any(axis=0)
        X = X[weight > 0]
    gaps = np.diff(np.sort(X, axis=0), axis=0)  # NaN comes last, and is no gap
    repeated |= (gaps <= 1e-9 * scale).any(axis=0)
    gaps = np.where(gaps > 1e-9 * scale, gaps, np.nan)
    step = np.array(scale, dtype=np.float64)
    varies = ~np.isnan(gaps).all(axis=0)
    step[varies] = np.nanmedian(gaps[:, varies], axis=0)
    return np.where(repeated, step, 0.0)


# ------------------------------------------------------------------------------------------------
# Squared Mahalanobis distances of rows from class means, and Normal densities of draws.
#
# .. math:: q_c(x) = (x - \mu_c)^T \Sigma_c^{-1} (x - \mu_c) = \|W_c (x - \mu_c)\|^2, \qquad
#           W_c = L_c^{-1}, \; \Sigma_c = L_c L_c^T
#
# Differences are taken before they are multiplied and squared: nothing is expanded, so that an
# offset of the columns costs no digits. Rows come block by block.
#
# Shapes: n rows, D features, C classes, G covariances (C, or 1 that the classes share), S draws.

_TINY = 64  # features below which matrices are too small for a product of each draw's own
_DRAWS = 64  # in one product
FAR = 100.0  # class means further apart, in standard deviations, are not subtracted afterwards


def patterns(X: Matrix, live: Array, least: int = 1) -> list[tuple[Array | slice, Array]]:
    """Return (rows, columns) for each pattern of missing cells among the live columns.

    Rows whose pattern fewer than `least` rows have come last and together, with all live columns.
    """
    if not has_nan(X):
        return [(slice(0, X.shape[0]), live)]
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
    each = [(order[ends[k] - size[k] : ends[k]], live[seen[k].astype(bool)]) for k in common]
    return [*each, (np.flatnonzero(size[which] < least), live)]


def cell_blocks(
    X: Matrix, rows: Array | slice, columns: Array
) -> Iterator[tuple[Array | slice, Array]]:
    """Yield (rows, cells) of rows and columns as in `patterns`, about 1 MiB at a time.

    The cells may be those of X itself: not to be changed in place. Their distances from a mean and
    a product of the same size stay in the second-level cache beside them.
    """
    n = X.shape[0] if isinstance(rows, slice) else len(rows)
    for block in row_blocks(n, X.shape[1], 1 << 17):
        some = block if isinstance(rows, slice) else rows[block]
        x = dense_block(X, some)
        yield some, x if len(columns) == X.shape[1] else x[:, columns]


def squared_distances(x: Array, mu: Array, whiten: Array) -> Array:
    """Return (n, C) squared distances of rows from the class means.

    Parameters
    ----------
    x : (n, D)
    mu : (C, D)
    whiten : (G, D, D) inverses of lower Cholesky factors of the covariances
    """
    q = np.empty((len(x), len(mu)))
    if len(whiten) > 1:
        for c, w in enumerate(whiten):
            z = (x - mu[c]) @ w.T
            np.einsum("nd,nd->n", z, z, out=q[:, c])
        return q
    # one covariance: the rows are multiplied once, unless the classes lie so far apart that the
    # difference of two products would lose digits
    centre = mu.mean(axis=0)
    steps = (mu - centre) @ whiten[0].T
    lengths, near = np.square(steps).sum(axis=1), np.abs(steps).max(initial=0.0) < FAR
    white = (x - centre) @ whiten[0].T
    if lengths.max() < 1:  # |x - s|^2 = |x|^2 - 2 x s + |s|^2 loses no digit
        squares = np.einsum("nd,nd->n", white, white)[:, None] - 2 * white @ steps.T + lengths
        return np.maximum(squares, 0.0)
    for c in range(len(mu)):
        z = white - steps[c] if near else (x - mu[c]) @ whiten[0].T
        np.einsum("nd,nd->n", z, z, out=q[:, c])
    return q


def observed_distances(x: Array, mu: Array, scale: Array) -> tuple[Array, Array]:
    """Compute distances of the observed cells, by a factorisation for each row.

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


def log_normal_of_draws(X: Matrix, mu: Array, sigma: Array, live: Array) -> Array:
    """Return (S, N, C) Normal log densities of the observed cells of rows under draws.

    Parameters
    ----------
    mu : (S, C, D)
    sigma : (S, G, D, D) covariances
    live : columns that count
    """
    log_p = np.empty((len(mu), X.shape[0], mu.shape[1]))
    for rows, columns in patterns(X, live):
        for draws in row_blocks(len(mu), math.prod(sigma.shape[1:])):
            factor = np.linalg.cholesky(sigma[draws][:, :, columns[:, None], columns])
            log_det = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
            norm = 0.5 * len(columns) * np.log(2 * np.pi) + log_det
            whiten, centres = inverse_of_lower(factor), mu[draws][..., columns]
            for some, x in cell_blocks(X, rows, columns):
                q = squared_distances_of_draws(x, centres, whiten)
                log_p[draws, some] = -0.5 * q - norm[:, None]
    return log_p


def squared_distances_of_draws(x: Array, mu: Array, whiten: Array) -> Array:
    """Return (S, n, C) squared distances of rows from the class means of draws.

    Parameters
    ----------
    x : (n, D)
    mu : (S, C, D)
    whiten : (S, G, D, D) inverses of lower Cholesky factors
    """
    n_draws, n_classes, dim = mu.shape
    q = np.zeros((n_draws, len(x), n_classes))
    if not dim:
        return q
    if dim >= _TINY or n_draws == 1:
        for s in range(n_draws):
            q[s] = squared_distances(x, mu[s], whiten[s])
        return q
    # all draws of one class in one product: (n, D) by (D, D S), the draws innermost
    centre = mu.mean(axis=0)
    for draws in row_blocks(n_draws, 1, _DRAWS):
        for c in range(n_classes):
            w = whiten[draws, c if whiten.shape[1] > 1 else 0]
            offset = (w @ (mu[draws, c] - centre[c])[..., None])[..., 0]
            wide = np.concatenate([w, -offset[:, :, None]], axis=2).transpose(2, 1, 0)
            table = np.ascontiguousarray(wide).reshape(dim + 1, -1)
            for rows in row_blocks(len(x), dim * _DRAWS):
                step = x[rows] - centre[c]
                d = np.hstack([step, np.ones((len(step), 1))])
                z = (d @ table).reshape(len(d), dim, -1)
                q[draws, rows, c] = np.einsum("nds,nds->sn", z, z)
    return q


def inverse_of_lower(factor: Array) -> Array:
    """Return (..., D, D) inverses of lower triangular matrices, a row at a time for all of them.

    Row i of ``factor @ out = I`` takes the rows above it: errors are relative to the rows' own
    lengths, whatever the units of the columns.
    """
    dim = factor.shape[-1]
    inverse = np.zeros(factor.shape)
    for i in range(dim):
        below = factor[..., i : i + 1, :i] @ inverse[..., :i, :i]
        inverse[..., i, :i] = -below[..., 0, :] / factor[..., i, i, None]
        inverse[..., i, i] = 1 / factor[..., i, i]
    return inverse


# ------------------------------------------------------------------------------------- in PyMC


def log_density(X: Array, mu, sigma, name: str):
    """Return (N, C) log densities of the observed cells of rows, which are data of the model.

    Parameters
    ----------
    X : (N, D)
    mu, sigma : tensors (C, D), and (C, D, D) or (1, D, D)
    name : str
        Stands before the names of the data.
    """
    import pymc as pm

    x = pm.Data(name, np.nan_to_num(X))
    if not has_nan(X):
        return log_normal(mu, sigma, x)
    seen = pm.Data(f"{name}_seen", (~np.isnan(X)).astype(np.float64))
    return log_density_of_cells(x, seen, mu, sigma)


def log_density_of_cells(x, seen, mu, sigma):
    """Return the same of rows and of which cells are seen, tensors (N, D).

    A missing cell is independent of the others, with variance 1, and at its mean: its density is
    a constant, which is taken off.
    """
    import pytensor.tensor as pt

    # PyTensor has no factors of no matrices: a row without cells stands behind all others
    x, seen = (pt.concatenate([rows, pt.zeros((1, mu.shape[1]))]) for rows in (x, seen))
    both = seen[:, None, :, None] * seen[:, None, None, :]
    masked = both * sigma + (1 - both) * pt.eye(mu.shape[1])
    factor = pt.linalg.cholesky(masked)  # (N, C, D, D)
    step = seen[:, None, :] * (x[:, None, :] - mu)
    z = pt.linalg.solve_triangular(factor, step[..., None], lower=True, b_ndim=2)[..., 0]
    log_det = pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    n_seen = seen.sum(axis=1)[:, None]
    log_p = -pt.sqr(z).sum(axis=-1) / 2 - log_det - np.log(2 * np.pi) / 2 * n_seen
    return log_p[:-1]


def log_normal(mu, sigma, x):
    """Return (N, C) of complete rows, which share the factor of their class."""
    import pytensor.tensor as pt

    factor = pt.linalg.cholesky(pt.as_tensor(sigma))
    step = x.T - mu[:, :, None]  # (C, D, N)
    z = pt.linalg.solve_triangular(factor, step, lower=True, b_ndim=2)
    log_det = pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    log_norm = log_det + x.shape[1] * np.log(2 * np.pi) / 2
    return (-pt.sqr(z).sum(axis=1) / 2 - log_norm[:, None]).T
