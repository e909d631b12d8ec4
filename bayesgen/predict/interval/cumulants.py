r"""Cumulants of contrasts, and quantiles from five of them.

Cumulants are coefficients of a polynomial through the cgf at points of the imaginary axis.

Quantiles are by Cornish and Fisher's expansion to third order. With z the normal quantile, He
Hermite's polynomials of z and :math:`\gamma_r = \kappa_{r+2}/\sigma^{r+2}`,

.. math:: w = z + \frac{\gamma_1}{6} He_2 + \frac{\gamma_2}{24} He_3
              - \frac{\gamma_1^2}{36} (2 He_3 + He_1) + \frac{\gamma_3}{120} He_4
              - \frac{\gamma_1 \gamma_2}{24} (He_4 + He_2)
              + \frac{\gamma_1^3}{324} (12 He_4 + 19 He_2)

Source: Cornish and Fisher (1938), Moments and cumulants in the specification of distributions;
Abramowitz and Stegun (1964), 26.2.49.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bayesgen.numerics.special import Array
from bayesgen.predict.interval.contrast import Contrast

_NODES = 8
_DROP = 0.125  # -Re K at the outermost node: half a standard deviation, for a normal variable
_START = 2.0**-4  # first scale: -Re K tells the variance where it is above _NOISE and below 1
_REACH = 2.0**20  # of the search for the scale
_NOISE = 1e-11  # of Re K, a sum over the features


def _taylor(n_nodes: int, degree: int) -> tuple[Array, Array]:
    """Chebyshev nodes x on (0, 1], and the least-squares map to coefficients of powers of x^2.

    K(ix) is even in its real and odd in its imaginary part, so these are 2 n nodes on [-1, 1].
    """
    x = np.cos((2 * np.arange(1, n_nodes + 1) - 1) * np.pi / (4 * n_nodes))
    return x, np.linalg.pinv(np.vander(x * x, degree + 1, increasing=True))


_X, _EXACT = _taylor(_NODES, _NODES - 1)
_, _PILOT = _taylor(_NODES, _NODES - 2)


class Cumulants(NamedTuple):
    """Of n variables, (n,) each.

    One whose cgf does not vary has sd 0; one that varies without ever spreading (a near atom) has
    infinite `error`.
    """

    mean: Array
    sd: Array
    skewness: Array
    kurtosis: Array  # excess
    fifth: Array  # fifth cumulant over sd^5
    error: Array  # bound on the error of skewness and kurtosis
    unit: Array  # a power of 2 near sd, shared by many variables

    def part(self, rows: Array) -> "Cumulants":
        """Some of the variables."""
        return Cumulants(*(f[rows] for f in self))


def cumulants(contrast: Contrast) -> Cumulants:
    """Mean, standard deviation, skewness, excess kurtosis and fifth cumulant of each variable."""
    h, values, spread = _at_nodes(contrast)
    odd, even = values.imag / _X, values.real / _X**2

    def moments(weights: Array) -> tuple[Array, ...]:
        # of the variable times h, x = u/h: Im K/x = k1 - k3 x^2/6 + k5 x^4/120 - ...,
        # Re K/x^2 = -k2/2 + k4 x^2/24 - ...
        c, d = odd @ weights[:3].T, even @ weights[:2].T
        k2 = np.maximum(-2 * d[:, 0], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            g = -6 * c[:, 1] / k2**1.5, 24 * d[:, 1] / k2**2, 120 * c[:, 2] / k2**2.5
            return c[:, 0] / h, np.sqrt(k2) / h, *g

    mean, sd, skewness, kurtosis, fifth = moments(_EXACT)
    _, _, pilot3, pilot4, _ = moments(_PILOT)
    with np.errstate(invalid="ignore"):
        error = np.maximum(np.abs(pilot3 - skewness), np.abs(pilot4 - kurtosis))
    constant = spread == 0
    error = np.where(constant, 0.0, np.where(np.isfinite(error) & (spread > 0), error, np.inf))
    return Cumulants(
        mean,
        np.where(constant, 0.0, sd),
        np.where(constant, 0.0, skewness),
        np.where(constant, 0.0, kurtosis),
        np.where(constant, 0.0, fifth),
        error,
        0.5 / h,
    )


def standardised(k: Array) -> Cumulants:
    """Of the first five cumulants themselves (5, ...), in closed form."""
    sd = np.sqrt(np.maximum(k[1], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        g3, g4, g5 = (np.where(sd > 0, k[r - 1] / sd**r, 0.0) for r in (3, 4, 5))
    return Cumulants(k[0], sd, g3, g4, g5, np.zeros(sd.shape), np.where(sd > 0, sd, 1.0))


def of_difference(k: Array) -> Cumulants:
    """(n,) of the difference of two independent variables, of their cumulants (5, n, 2)."""
    sign = np.array([-1.0, 1.0, -1.0, 1.0, -1.0])[:, None]
    return standardised(k[..., 0] + sign * k[..., 1])


def _at_nodes(contrast: Contrast) -> tuple[Array, Array, Array]:
    """Powers of 2 h (n,) where |phi| is near exp(-1/8), and the cgf at ``i h x`` (n, K).

    And 1, or 0 (constant), or -1 (near atom), (n,).
    """
    n = contrast.X.shape[0]
    todo, h = np.arange(n), np.full(n, _START)
    values = np.empty((n, _NODES), dtype=np.complex128)
    drop = _finite_drop(contrast, todo, h, contrast.scaled(todo, h, np.ones(1)))
    for attempt in range(40):
        with np.errstate(divide="ignore"):
            factor = np.sqrt(_DROP / np.maximum(drop[todo], _NOISE))
        # |phi| of a wide variable falls so slowly that it does not tell how wide
        step = np.clip(np.rint(np.log2(factor)), -5, 8)
        step = np.where(step == -5, -5 * (1 + attempt // 4), step)
        if attempt:
            step = np.where(step == 0, np.sign(factor - 1), step)
        h[todo] = np.minimum(h[todo] * np.exp2(step), _REACH)
        values[todo] = contrast.scaled(todo, h[todo], _X)
        drop[todo] = _finite_drop(contrast, todo, h, values[todo])
        todo = todo[((drop[todo] < _DROP / 4) & (h[todo] < _REACH)) | (drop[todo] > 2 * _DROP)]
        if not todo.size:
            break
    found = drop >= _DROP / 4
    flat = np.flatnonzero(~found & (h != 1))
    if flat.size:  # no scale is its own
        h[flat] = 1.0
        values[flat] = contrast.scaled(flat, h[flat], _X)
    return h, values, np.where(found, 1, np.where(drop <= 1e-9, 0, -1))


def _finite_drop(contrast: Contrast, rows: Array, h: Array, values: Array) -> Array:
    """(m,) -Re K at the first node."""
    drop = -values[:, 0].real
    bad = np.flatnonzero(~np.isfinite(drop))
    if bad.size:
        row = rows[bad[0]]
        raise ValueError(
            f"the cgf of {type(contrast.family).__name__} is not finite on the imaginary axis "
            f"(row {row}, s = {h[row]:g}i)"
        )
    return np.asarray(drop)


# ------------------------------------------------------------------------------- Cornish-Fisher

# log-odds of beta variables of every shape, at every percentile: wrong by less than ERROR here;
# without the third order it would be .0025, and .006 for skewness to .6 and kurtosis to 1
MAX_SKEWNESS, MAX_KURTOSIS = 0.4, 0.4
ERROR = 0.0015
# two posteriors that differ by one row are apart by the variance in the log-odds: a mixture of them
# has two modes, and moments as small as a normal's, where the sd is large (wrong by .06)
MAX_SD_OF_MIXTURE = 1.0


def expansion(g1: Array, g2: Array, g3: Array) -> Array:
    """(..., 5) coefficients of 1, z, .., z^4 in w, of skewness, kurtosis and fifth cumulant."""
    return np.stack(
        [
            -g1 / 6 + g3 / 40 - g1 * g2 / 12 + 17 * g1**3 / 324,
            1 - g2 / 8 + 5 * g1**2 / 36,
            g1 / 6 - g3 / 20 + 5 * g1 * g2 / 24 - 53 * g1**3 / 324,
            g2 / 24 - g1**2 / 18,
            g3 / 120 - g1 * g2 / 24 + g1**3 / 27,
        ],
        axis=-1,
    )


def skewed(g1: Array) -> Array:
    """(..., 5) as `expansion`, of a Gamma variable of this skewness (Wilson and Hilferty 1931).

    A cubic that increases everywhere and has the light tail on the right side: of any skewness.
    """
    a = 1 - g1**2 / 36
    first = -g1 / 6 + g1**3 / 216 - g1**5 / 23328
    return np.stack([first, a**2, a * g1 / 6, g1**2 / 108, 0 * g1], axis=-1)


def cornish_fisher(k: Cumulants, p: Array) -> Array:
    """(n, Q) quantiles at the probabilities p, (Q,) or (n, Q)."""
    z = ndtri(p)
    c0, c1, c2, c3, c4 = expansion(k.skewness, k.kurtosis, k.fifth).T[..., None]
    w = c0 + z * (c1 + z * (c2 + z * (c3 + z * c4)))
    return k.mean[:, None] + k.sd[:, None] * w


def cornish_fisher_applies(k: Cumulants, mixture: bool = False) -> Array:
    """(n,) whether the probability below a quantile is right to `ERROR`."""
    small = (np.abs(k.skewness) <= MAX_SKEWNESS) & (np.abs(k.kurtosis) <= MAX_KURTOSIS)
    small &= (k.sd <= MAX_SD_OF_MIXTURE) | (not mixture)
    return small & (k.error < 0.01)
