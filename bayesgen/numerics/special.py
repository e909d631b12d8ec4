r"""Stable special functions, sums of exponentials, draws and seeds; NumPy and SciPy only.

A function that returns a logarithm starts with ``log_``.

The hazard behind most of this page is :math:`\log\Gamma(a+n) - \log\Gamma(a)`: for
:math:`a = 10^{12}` the plain difference is wrong by 2e-3, which is more than the information
that a document carries about its class.
"""

from collections.abc import Callable
from numbers import Integral

import numpy as np
from scipy.special import gammaln, xlogy

Array = np.ndarray

LARGEST_COUNT = 2.0**53  # from here on float64 lacks every other whole number
_STIRLING_FROM = 32.0  # below it the plain difference of log-gammas is good to 1e-13


# --------------------------------------------------------------------------- gamma functions


def _stirling_tail(z: Array) -> Array:
    """``log Gamma(z) - [(z - 1/2) log z - z + log(2 pi)/2]``; error below 1e-16 for |z| >= 32."""
    r = 1.0 / z
    w = r * r  # z * z would overflow
    return r * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680)))


def log_gamma_difference(a, n) -> Array:
    r""":math:`\log\Gamma(a+n) - \log\Gamma(a)` without cancellation.

    Parameters
    ----------
    a : array of float, > 0
    n : array of float, with ``a + n`` > 0
        Broadcasts against `a`.

    Returns
    -------
    array of the broadcast shape
        Exactly 0 where ``n`` is 0. Relative error near 1e-15 for `a` up to 1e15 and beyond.
        NaN where ``a + n`` is negative.

    Notes
    -----
    For :math:`a \ge 32` Stirling's series is subtracted analytically:
    :math:`n\log a + (a+n-\tfrac12)\log(1+n/a) - n + \delta(a+n) - \delta(a)`.

    Examples
    --------
    >>> float(log_gamma_difference(1e15, 1.0))  # log(1e15); the plain difference is 32.0
    34.538776394910684
    """
    a, n = np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64)
    big = (a >= _STIRLING_FROM) & (a + n >= _STIRLING_FROM)
    if not big.any():
        return _log_gamma(a + n) - gammaln(a)
    if big.all():
        return _stirling_difference(a, n)
    a, n = np.broadcast_arrays(a, n)
    difference = np.empty(a.shape)
    difference[big] = _stirling_difference(a[big], n[big])
    small = ~big
    difference[small] = _log_gamma(a[small] + n[small]) - gammaln(a[small])
    return difference


def _log_gamma(z: Array) -> Array:
    """log Gamma of a positive number; below 0 SciPy's gammaln is log |Gamma|, here NaN."""
    return gammaln(np.where(z >= 0, z, np.nan))


def _stirling_difference(a: Array, n: Array) -> Array:
    total = a + n
    r = n / a
    # log1p and its remainder apart: (a+n-1/2) log1p(r) - n loses digits when n << a
    tails = _stirling_tail(total) - _stirling_tail(a)
    return n * np.log(a) + (total - 0.5) * np.log1p(r) - n + tails


def log_multigamma_difference(a, n, dim: int) -> Array:
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


def deviance(x, mean) -> Array:
    """``x log(x/mean) - x + mean`` for x >= 0, mean > 0: accurate when both are huge and close.

    scipy.special.kl_div computes it term by term, an error of 1e-4 at x = 1e12.
    """
    x, mean = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(mean, np.float64))
    e = (x - mean) / mean
    with np.errstate(invalid="ignore", divide="ignore"):  # e = -1 (x = 0) is set below
        near = mean * ((1 + e) * np.log1p(e) - e)
    return np.where(x == 0, mean, np.where(np.abs(e) < 0.5, near, xlogy(x, x / mean) - x + mean))


def log_poisson(x, rate) -> Array:
    """Poisson log-mass, exact to 1e-10 at counts of 1e12; a rate of 0 allows only x = 0."""
    x, rate = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(rate, np.float64))
    big = x >= _STIRLING_FROM
    safe = np.where(rate > 0, rate, 1.0)
    plain = xlogy(x, safe) - safe - gammaln(x + 1)
    z = np.where(big, x, _STIRLING_FROM)
    saddle = -deviance(z, safe) - 0.5 * np.log(2 * np.pi * z) - _stirling_tail(z)
    log_mass = np.where(big, saddle, plain)
    return np.where(rate > 0, log_mass, np.where(x == 0, 0.0, -np.inf))


def log_negative_binomial(x, shape, rate) -> Array:
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
    log_mass = np.asarray(log_gamma_difference(a, x) - gammaln(x + 1) + tail)
    tail = np.asarray(tail)
    many = x >= _STIRLING_FROM
    few_shape = many & (a < _STIRLING_FROM)
    if few_shape.any():
        xs, as_ = x[few_shape], a[few_shape]
        log_mass[few_shape] = log_gamma_difference(xs + 1, as_ - 1) - gammaln(as_) + tail[few_shape]
    both = many & (a >= _STIRLING_FROM)
    if both.any():
        x, a, b = x[both], a[both], b[both]
        n = a + x
        log_mass[both] = (
            _stirling_tail(n)
            - _stirling_tail(x)
            - _stirling_tail(a)
            - deviance(x, n / (b + 1))
            - deviance(a, n * (b / (b + 1)))
            + 0.5 * (np.log(a / n) - np.log(2 * np.pi * x))
        )
    return log_mass


_LOG_FACTORIAL = gammaln(np.arange(1.0, 257.0))


def log_factorial(x: Array) -> Array:
    """``log x!`` for x >= 0, by look-up for small whole numbers."""
    small = np.minimum(x, 255.0).astype(np.intp)
    log_value = _LOG_FACTORIAL[small]
    other = small != x
    if other.any():
        log_value[other] = gammaln(x[other] + 1)
    return log_value


# ------------------------------------------------------------------------ sums of exponentials


def log_sum_exp(a: Array, axis: int = -1) -> Array:
    """log of the sum of exp(a); -inf where every term is -inf. One shift a slice."""
    top = np.max(a, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(a - shift).sum(axis=axis)) + np.squeeze(shift, axis=axis)


def log_sum_of_others(a: Array) -> Array:
    """log of the sum of exp(a_d) over d != c, for a (C, ...): without cancellation or underflow."""
    top = a.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    e = np.exp(a - top)
    log_sums = np.empty_like(e)
    for order in (range(len(a)), range(len(a) - 1, -1, -1)):
        upto = np.zeros(a.shape[1:])
        for c in order:
            log_sums[c] = upto if order.step > 0 else log_sums[c] + upto
            upto += e[c]
    lost = log_sums < 1e-290  # the others are below e^-667 times this one
    with np.errstate(divide="ignore"):
        np.log(log_sums, out=log_sums)
    log_sums += top
    for c, is_lost in enumerate(lost):
        if is_lost.any():
            log_sums[c, is_lost] = np.logaddexp.reduce(np.delete(a, c, axis=0)[:, is_lost], axis=0)
    return log_sums


def log_odds_against_rest(a: Array) -> Array:
    """Return (C, ...) log-odds of each class against all: a_c - log sum of exp(a_d), d != c."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(a), -np.inf, a - log_sum_of_others(a))


def log_softmax(a: Array) -> Array:
    """Normalise log joint densities over the last axis; NaN where all are -inf.

    A row that is impossible under every class has no class probabilities: it is never turned
    into a uniform distribution here. Of a class with probability 1 - 1e-20 it is -1e-20, not 0.
    """

    def normalise(columns: Array) -> None:
        largest = (columns == 0.0).astype(np.float64)
        others = np.exp(columns) - largest  # exactly 0 where one is taken from 1
        with np.errstate(divide="ignore"):
            columns -= np.log1p(others.sum(axis=0) + (largest.sum(axis=0) - 1.0))

    return _over_classes(normalise, a)


def softmax(a: Array) -> Array:
    """exp of `log_softmax`, with one exponential a number and no logarithm."""

    def normalise(columns: Array) -> None:
        np.exp(columns, out=columns)
        columns /= columns.sum(axis=0)

    return _over_classes(normalise, a)


_CONVOLVED = 128  # events that are added one by one, before halves are convolved
_BLOCK_CELLS = 1 << 15  # numbers, 256 KiB, that are worked on at a time


def _over_classes(normalise: Callable[[Array], None], a: Array) -> Array:
    """Normalise (..., C) by a function of (C, n) in place; the largest of each column is 0.

    Shifted first: probabilities add up to 1 also where log densities are -1e9. The classes come
    first, so that sums over a few of them are sums of long rows.
    """
    a = np.asarray(a)
    scores = np.empty(a.shape, dtype=np.result_type(a, np.float64))
    rows, where = (x.reshape(-1, a.shape[-1]) if a.size else np.empty((0, 1)) for x in (a, scores))
    step = max(1, _BLOCK_CELLS // max(1, a.shape[-1]))
    with np.errstate(invalid="ignore"):
        for start in range(0, len(rows), step):
            columns = np.array(rows[start : start + step].T, dtype=scores.dtype, order="C")
            top = columns.max(axis=0)
            columns -= np.where(np.isfinite(top), top, 0.0)
            normalise(columns)
            where[start : start + step] = columns.T
    return scores


# ------------------------------------------------------------------------------------- draws


def generator(random_state) -> np.random.Generator:
    """Return the generator of a `random_state`, as NumPy and scikit-learn take it.

    Raises
    ------
    ValueError
        If it is neither None, an integer >= 0, a generator of NumPy nor a seed sequence.
    """
    if isinstance(random_state, np.random.RandomState):  # has no `spawn` of its own
        random_state = random_state.randint(1 << 32, size=4, dtype=np.uint64)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, an integer >= 0 or a generator of NumPy, "
            f"got {random_state!r}"
        ) from None


def integer_seed(random_state) -> int:
    """Return an integer seed of 63 bits: that of `random_state` if it is one, 0 for None."""
    if random_state is None:
        return 0
    rng = generator(random_state)
    small = isinstance(random_state, Integral) and random_state < 1 << 63
    return int(random_state if small else rng.integers(1 << 63))


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


def draw_log_beta(rng: np.random.Generator, a: Array, b: Array, n: int) -> Array:
    """Draw log Beta(a, b) (n, *a.shape), a > 0; exactly 0 where b is 0, or below by rounding."""
    one = draw_log_gamma(rng, a, (n, *a.shape))
    log_gamma_b = draw_log_gamma(rng, np.where(b > 0, b, 1.0), (n, *a.shape))
    log_beta: Array = np.where(b > 0, -np.logaddexp(0.0, log_gamma_b - one), 0.0)
    return log_beta


def draw_dirichlet(rng: np.random.Generator, alpha: Array, n: int) -> Array:
    """Draw Dirichlet (n, *alpha.shape) over the last axis; ``alpha == 0`` is padding (0)."""
    real = alpha > 0
    logs = draw_log_gamma(rng, np.where(real, alpha, 1.0), (n, *alpha.shape))
    logs = np.where(real, logs, -np.inf)
    return np.exp(logs - log_sum_exp(logs)[..., None])


def count_probabilities(p: Array) -> Array:
    """Return P(k of n independent events happen), k = 0 .. n, from their probabilities p (n,).

    This is the Poisson binomial distribution. Halves of the events are convolved: all terms are
    positive, so that small tails keep their digits.
    """
    if len(p) > _CONVOLVED:
        half = len(p) // 2
        return np.convolve(count_probabilities(p[:half]), count_probabilities(p[half:]))
    probabilities = np.ones(1)
    for happens in p:
        probabilities = np.convolve(probabilities, [1 - happens, happens])
    return probabilities


def count_tails(p: Array, k: int) -> tuple[float, float]:
    """Return P(at most k events happen) and P(at least k do), as `count_probabilities`."""
    probabilities = count_probabilities(p)
    return float(probabilities[: k + 1].sum()), float(probabilities[k:].sum())
