r"""What the two Gaussian families share: the scale of a default prior, and information.

Both place their default priors by what the columns say of themselves (`unit_information`), and
both report what each feature alone tells of the class (`gaussian_information`). C classes, D
features.
"""

import warnings
from functools import cache
from typing import NamedTuple

import numpy as np

from bayesgen.numerics.rows import row_blocks
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


@cache
def _legendre() -> tuple[Array, Array]:
    """Nodes and weights of one panel."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    return nodes, weights


def gaussian_information(mu: Array, sigma2: Array, weights: Array) -> Array:
    """(D,) mutual information, in nats, of each feature and the class under Normal densities.

    ``h(mixture) - sum_c pi_c h(Normal_c)`` with the entropy of the mixture by Gauss-Legendre
    panels one standard deviation wide about every component; error below 1e-10.

    Parameters
    ----------
    mu, sigma2 : (C, D)
    weights : (C,) class weights that sum to 1
    """
    nodes, node_weights = _legendre()
    steps = np.arange(-12.0, 13.0)
    use = weights > 0
    mu, sd, pi = mu[use], np.sqrt(sigma2[use]), weights[use]
    own = pi @ (0.5 * (1 + np.log(2 * np.pi)) + np.log(sd))
    out = np.empty(mu.shape[1])
    for columns in row_blocks(mu.shape[1], len(pi) ** 2 * len(steps) * len(nodes)):
        m, s = mu[:, columns, None], sd[:, columns, None]
        edges = np.sort(np.moveaxis(m + s * steps, 0, 1).reshape(m.shape[1], -1), axis=1)
        half = np.diff(edges)[..., None] / 2  # 0 where panels of two classes begin together
        x = (edges[:, :-1, None] + half * (1 + nodes)).reshape(len(edges), -1)
        shift = np.log(pi)[:, None, None] - 0.5 * np.log(2 * np.pi) - np.log(s)
        log_p = log_sum_exp(shift - 0.5 * np.square((x - m) / s), axis=0)
        measure = (half * node_weights).reshape(len(edges), -1)
        out[columns] = -np.einsum("dk,dk->d", measure, np.exp(log_p) * log_p) - own[columns]
    return np.maximum(out, 0.0)


def warn_lost_digits(scatter: Array, before: Array, n: Array) -> None:
    """Warn if removing rows left a scatter that is mostly the rounding of what it was before."""
    lost = (n > 1) & (scatter > 0) & (scatter < 1e-10 * before)
    if lost.any():
        warnings.warn(
            "remove: the rows removed carried all but 1e-10 of the scatter of some cell; what "
            "is left of its variance has few correct digits: refit from the remaining rows",
            RuntimeWarning,
            stacklevel=3,
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
        own = y == c
        found = ~np.isnan(X[own]).all(axis=0)
        here = np.ix_(own, found)
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


def noncentral(rng: np.random.Generator, z: Array, u: Array, kappa: Array, d: Array) -> Array:
    """(n, N, C) draws of -1/2 of noncentral chi-squared variables over kappa: `SharedVariances`.

    Parameters
    ----------
    z : (n, C) standard normal
    u, kappa, d : (N, C, n), (C,) and (N,), as of `SharedVariances.distance_draws`
    """
    chi = {int(k): rng.chisquare(k - 1, size=z.shape) if k > 1 else 0 * z for k in np.unique(d)}
    rest = np.stack([chi[int(k)] for k in d]) if len(chi) > 1 else next(iter(chi.values()))
    distance = np.square(z + np.sqrt(kappa * u.transpose(0, 2, 1))) + rest
    distance[d == 0] = 0.0
    return (-0.5 / kappa * distance).transpose(1, 0, 2)
