"""Expectations of functions of a class probability, from the inverted law of its log-odds."""

import numpy as np
from scipy.special import expit, log_expit

from bayesgen.numerics.special import Array
from bayesgen.predict.interval.inversion import Inverse

_WIDEST = 0.7  # spacing at which sums of a sigmoid are exact to 1e-12
_LARGEST = 4096
_STEP, _REACH = 0.25, 48.0  # of sums against a derivative of a sigmoid


def entropy_of(l: Array) -> Array:
    """Entropy of a coin with log-odds l."""
    return -expit(l) * log_expit(l) - expit(-l) * log_expit(-l)


def expectations(part: Inverse) -> tuple[Array, Array, Array, Array]:
    r"""E rho, Var rho, E H(rho) and P(rho > 1/2) of the first class, (n,) each.

    Sums on equidistant points, whose error falls exponentially with the spacing: of density times
    function on the grid of the density, where that is fine enough for a sigmoid; else, where the
    distribution is wide, by parts: :math:`g(-\infty) + \int g'(l)\,(1 - F(l))\,dl`.

    Notes
    -----
    Integrals over the frequency are the same numbers (Parseval). They oscillate
    when the mean is far from 0; these do not.
    """
    size = np.max(2 * part.half_period, initial=0.0) / _WIDEST
    fine = max(8.0, size / part.phi.shape[1])
    if fine * part.phi.shape[1] <= _LARGEST:
        table = part.table(int(np.ceil(fine)))
        l, mass = table.grid, table.pdf * table.spacing[:, None]
        rho = expit(l)
        mean = np.clip((rho * mass).sum(axis=1), 0.0, 1.0)
        variance = (np.square(rho - mean[:, None]) * mass).sum(axis=1)
        entropy = (entropy_of(l) * mass).sum(axis=1)
    else:
        l = np.arange(-_REACH, _REACH + _STEP, _STEP)
        beyond = 1 - part.table().cdf_and_pdf(np.broadcast_to(l, (len(part.rows), len(l))))[0]
        slope = _STEP * expit(l) * expit(-l)
        mean = np.clip(beyond @ slope, 0.0, 1.0)
        variance = np.maximum(beyond @ (2 * expit(l) * slope) - mean**2, 0.0)
        entropy = np.maximum(beyond @ (-l * slope), 0.0)
    below, _ = part.cdf_and_pdf(np.zeros((len(part.rows), 1)))
    return mean, variance, entropy, np.clip(1 - below[:, 0], 0.0, 1.0)
