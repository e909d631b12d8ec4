"""Mutual information of a Poisson count and the class, by summing the masses."""

import numpy as np

from bayesgen.numerics.special import Array, log_factorial, log_poisson

_TAIL = 40.0  # a Poisson window leaves out a mass of about exp(-40) on each side
_FEW = 64.0  # up to this rate the sum runs over all counts from 0 on
_BLOCK = 1 << 19  # cells of a block


def count_information(rate: Array, pi: Array) -> Array:
    """(D,) mutual information in nats of each of D counts and the class.

    Parameters
    ----------
    rate : (C, D)
        Expected counts.
    pi : (C,)
        Probabilities of the classes, all > 0.
    """
    top = rate.max(axis=0)
    order = np.argsort(top, kind="stable")  # columns that need equally many counts together
    n_few = int(np.sum(top <= _FEW))
    step = max(1, _BLOCK // (len(pi) * 256))
    out = np.empty(len(top))
    for group, information in (
        (order[:n_few], _information_of_few),
        (order[n_few:], _information_of_many),
    ):
        for start in range(0, len(group), step):
            columns = group[start : start + step]
            out[columns] = information(rate[:, columns], pi)
    return np.maximum(out, 0.0)  # -1e-12 between equal rates of 1e12


def _window(rate: Array) -> tuple[Array, Array]:
    """Counts between which a Poisson variable lies but for a mass of exp(-40) on either side.

    Source: Boucheron, Lugosi and Massart, Concentration Inequalities (2013), section 2.7.
    """
    low = np.maximum(0.0, rate - np.sqrt(2 * _TAIL * rate))
    high = rate + _TAIL / 3 + np.sqrt(_TAIL**2 / 9 + 2 * _TAIL * rate)
    return np.floor(low), np.ceil(high)


def _information_of_few(rate: Array, pi: Array) -> Array:
    """(D,) mutual information from rates (C, D), summed over the counts from 0 on."""
    x = np.arange(float(_window(rate.max())[1]) + 1)
    none = rate == 0
    logs = np.log(np.where(none, 1.0, rate))[..., None] * x - rate[..., None] - log_factorial(x)
    mass = np.exp(logs)
    mass[none] = x == 0
    mixture = np.tensordot(pi, mass, axes=1)
    logs -= np.log(np.where(mixture > 0, mixture, 1.0))
    return np.tensordot(pi, np.sum(mass * logs, axis=-1), axes=1)


def _information_of_many(rate: Array, pi: Array) -> Array:
    """(D,) mutual information from rates (C, D): sum of pi KL(Poisson(rate_c) || mixture).

    Each class is summed over its own window, in steps of one count or of 1/16 standard
    deviation, where that is more: the terms are then so smooth in the count that the sum over
    the grid is exact to rounding.
    """
    out = np.zeros(rate.shape[1])
    for own, weight in zip(rate, pi, strict=True):
        step = np.maximum(1.0, np.floor(np.sqrt(own) / 16))
        low, high = _window(own)
        nodes = np.arange(np.max((high - low) / step) + 1)
        x = low[:, None] + step[:, None] * nodes
        log_mass = log_poisson(x, own[:, None])
        mass = np.exp(log_mass)
        some = mass > 0
        # p(x | all classes) / p(x | own), by at most exp(700)
        ratios = log_poisson(x, rate[..., None]) - np.where(some, log_mass, 0.0)
        mixture = np.tensordot(pi, np.exp(np.minimum(ratios, 700.0)), axes=1)
        terms = np.where(some, mass * np.log(np.where(some, mixture, 1.0)), 0.0)
        out -= weight * step * terms.sum(axis=-1)
    return out
