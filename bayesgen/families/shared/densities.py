r"""Log densities of the priors' distributions, exact also where their parameters are huge.

A Dirichlet with pseudo-counts of :math:`10^{12}` has a log density near 14 at its mode, made of
terms near :math:`10^{13}`. Here every normaliser is paired with the power that it cancels: all are
built of :math:`\log q^a e^{-q}/\Gamma(a)`, which `_log_gamma_kernel` evaluates by its distance
from the mode. Besides cancellation, that makes them insensitive to the rounding of a variable.

Densities are with respect to Lebesgue measure, and -inf outside the support. Where one factor of
a product is 0 and another unbounded (a probability of 0 under pseudo-counts above and below 1)
the product has no value; it is taken as 0.

Source: C. Loader (2000), Fast and accurate computation of binomial probabilities (the idea);
Muirhead, Aspects of Multivariate Statistical Theory (1982), section 3.2 (Bartlett's decomposition).
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import gammaln, xlogy

from bayesgen.families.errors import refuse_undefined
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, deviance

_MANY = 32.0  # from this shape on the kernel is evaluated by its distance from the mode
_OFF_SIMPLEX = 1e-6  # probabilities may miss the sum 1 by the rounding of a float32


def log_product(logs: Array, axis: int | tuple[int, ...]) -> Array:
    """Sum of log densities over `axis`; -inf if one of them is -inf, whatever the others are."""
    with np.errstate(invalid="ignore"):
        log_p = np.asarray(logs.sum(axis=axis))
    if np.isnan(log_p).any():
        log_p = np.where(np.isneginf(logs).any(axis=axis), -np.inf, log_p)
    return log_p


def _log_gamma_kernel(shape: Array, q: Array) -> Array:
    """log of q^shape exp(-q) / Gamma(shape): the density of log q for a Gamma variable q.

    -inf where q is not inside (0, inf).
    """
    inside = ~((q <= 0) | np.isposinf(q))
    q = np.where(inside, q, 1.0)
    log_kernel = np.asarray(xlogy(shape, q) - q - gammaln(shape))
    near = (shape >= _MANY) & (np.abs(q - shape) < shape / 2)
    if near.any():
        a, q = np.broadcast_arrays(shape, q)
        a, q = a[near], q[near]
        tail = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680) / a**2) / a**2) / a**2) / a
        log_kernel[near] = 0.5 * np.log(a / (2 * np.pi)) - tail - deviance(a, q)
    return np.where(inside, log_kernel, -np.inf)


def log_gamma_density(x, shape, rate) -> Array:
    """Log density of a Gamma distribution at x; +inf at 0 for a shape below 1.

    Parameters
    ----------
    x, shape, rate : arrays of float that broadcast; shape and rate > 0

    Examples
    --------
    >>> log_gamma_density(np.array([0.0, 2.0]), 1.0, 3.0).round(3)
    array([ 1.099, -4.901])
    """
    x, shape, rate = (np.asarray(v, dtype=np.float64) for v in (x, shape, rate))
    positive = ~(x <= 0)
    safe = np.where(positive, x, 1.0)
    with np.errstate(over="ignore", divide="ignore"):
        log_p = _log_gamma_kernel(shape, rate * safe) - np.log(safe)
        at_zero = np.where(shape == 1, np.log(rate), np.where(shape < 1, np.inf, -np.inf))
    return np.where(positive, log_p, np.where(x == 0, at_zero, -np.inf))


def log_inverse_gamma_density(x, shape, scale) -> Array:
    """Log density at x of an inverse Gamma: of 1/g, where g is Gamma with rate `scale`."""
    x, shape, scale = (np.asarray(v, dtype=np.float64) for v in (x, shape, scale))
    positive = ~(x <= 0)
    safe = np.where(positive, x, 1.0)
    with np.errstate(over="ignore"):
        log_p = _log_gamma_kernel(shape, scale / safe) - np.log(safe)
    return np.where(positive, log_p, -np.inf)


def log_beta_density(p, a, b) -> Array:
    """Log density of a Beta distribution at p."""
    p = np.asarray(p, dtype=np.float64)
    total = np.asarray(a + b, dtype=np.float64)
    parts = [log_gamma_density(p, a, total), log_gamma_density(1 - p, b, total)]
    return log_product(np.stack(np.broadcast_arrays(*parts)), 0) - _log_gamma_kernel(total, total)


def log_dirichlet_density(p, alpha) -> Array:
    r"""Log density of Dirichlet distributions over the last axis, in all but one coordinate.

    Parameters
    ----------
    p : (..., K) probabilities
    alpha : (..., K) concentrations that broadcast against `p`; 0 is padding, where p must be 0

    Returns
    -------
    (...)
        0 where there is one category only: the simplex is a point.

    Notes
    -----
    Probabilities are Gamma variables of rate :math:`A = \sum_k \alpha_k`, given that they sum
    to 1: the product of their densities, over the density at 1 of the sum, a Gamma(A, A).

    Examples
    --------
    >>> float(np.exp(log_dirichlet_density([0.2, 0.3, 0.5], [2, 1, 3])))  # 60 * 0.2 * 0.5^2
    3.0
    """
    p, alpha = np.asarray(p, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    real = alpha > 0
    total = alpha.sum(axis=-1)
    cells = log_gamma_density(p, np.where(real, alpha, 1.0), total[..., None])
    if not real.all():
        cells = np.where(real, cells, np.where(p == 0, 0.0, -np.inf))
    log_p = log_product(cells, -1) - _log_gamma_kernel(total, total)
    return np.where(np.abs(p.sum(axis=-1) - 1) > _OFF_SIMPLEX, -np.inf, log_p)


def log_normal_density(x, mean, variance) -> Array:
    """Log density of a Normal distribution at x; `variance` > 0."""
    with np.errstate(over="ignore"):
        white = np.square((x - mean) / np.sqrt(variance))
    return -0.5 * (np.log(2 * np.pi * variance) + white)


def log_inverse_wishart_density(factor: Array, nu: Array, psi_factor: Array) -> Array:
    r"""Log density of inverse Wishart distributions over the upper triangle of the matrix.

    Parameters
    ----------
    factor : (..., D, D) lower Cholesky factor L of the matrix
    nu : (...) degrees of freedom, > D - 1
    psi_factor : (..., D, D) lower Cholesky factor of the scale matrix

    Notes
    -----
    :math:`T = L^{-1} L_\Psi` holds Bartlett's coordinates of the precision: the squares of its
    diagonal are :math:`\chi^2` with :math:`\nu - D + 1, \dots, \nu` degrees of freedom, the cells
    below are standard Normal. The rest is the Jacobian.
    """
    dim = factor.shape[-1]
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    length = np.linalg.norm(factor, axis=-1, keepdims=True)  # rows of length 1: no unit enters
    t = np.linalg.solve(factor / length, psi_factor / length)
    q = np.square(np.diagonal(psi_factor, axis1=-2, axis2=-1) / diagonal) / 2
    lost = np.arange(dim)[::-1]  # degrees of freedom spent on the axes after
    squares = _log_gamma_kernel((nu[..., None] - lost) / 2, q) + lost / 2 * np.log(q)
    below = np.square(t * np.tri(dim, k=-1)).sum(axis=(-2, -1)) / 2
    log_det = 2 * np.log(diagonal).sum(axis=-1)
    jacobian = dim * (dim - 1) / 4 * np.log(np.pi) + (dim + 1) / 2 * log_det
    return squares.sum(axis=-1) - below - jacobian


def beta_mode(a: Array, b: Array) -> Array:
    """Return (a - 1)/(a + b - 2), the mode on the probability scale.

    Raises
    ------
    UndefinedEstimateError
        Where the density has none, or several.
    """
    refuse_undefined(
        "map",
        (a < 1) | (b < 1) | ((a == 1) & (b == 1)),
        "a Beta density has one mode only if both pseudo-counts plus counts are at least 1 "
        "and one exceeds 1",
        "use larger alpha and beta, or method='posterior_mean'",
    )
    return (a - 1) / ((a - 1) + (b - 1))


def dirichlet_mode(alpha: Array) -> Array:
    """Return (alpha - 1)/(sum of alpha - K) over the last axis, the mode on the simplex.

    What has alpha = 1 beside others above 1 has probability 0; alpha = 0 is padding. Raises as
    `beta_mode`.
    """
    real = alpha > 0
    choice = (real.sum(axis=-1) > 1)[..., None]  # one category: the simplex is a point
    refuse_undefined(
        "map",
        real & (alpha < 1) & choice,
        "a Dirichlet density is unbounded if a pseudo-count plus count is below 1",
        "use alpha >= 1, or method='posterior_mean'",
    )
    excess = np.where(real & choice, alpha - 1, real)
    total = excess.sum(axis=-1)
    refuse_undefined(
        "map",
        total == 0,
        "all pseudo-counts plus counts are 1: the density is flat",
        "use alpha > 1, or method='posterior_mean'",
    )
    return excess / total[..., None]


def density_by_draws(
    density: Callable[[dict[str, Array]], Array],
    theta: Mapping[str, Array],
    params: Mapping[str, tuple[str, ...]],
) -> Array:
    """Assemble a log density (...) from ``density({name: (n, *dims)})``, block by block.

    That is (n,), or (n, ...) to be summed as in `log_product`.
    """
    arrays = {name: np.asarray(theta[name], dtype=np.float64) for name in params}
    shapes = {name: a.shape[a.ndim - len(params[name]) :] for name, a in arrays.items()}
    name, first = next(iter(arrays.items()))
    lead = first.shape[: first.ndim - len(params[name])]
    n = math.prod(lead)
    flat = {name: a.reshape(n, *shapes[name]) for name, a in arrays.items()}
    log_p = np.empty(n)
    for draws in row_blocks(n, sum(map(math.prod, shapes.values()))):
        block = density({name: a[draws] for name, a in flat.items()})
        log_p[draws] = log_product(block, tuple(range(1, block.ndim)))
    return log_p.reshape(lead)
