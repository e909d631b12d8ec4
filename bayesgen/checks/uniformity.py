r"""Exact test of ranks for uniformity.

R ranks on 0 .. L are counted up: :math:`n_k`, how many are below k, is Binomial(R, k/(L+1)) if
ranks are uniform, for each k = 1 .. L. The statistic is the least likely of these counts, by its
two-sided tail probability; the test rejects where the counts leave a band that is as wide
everywhere, measured in tail probability, and so has power in the tails as in the middle.

Counts are cumulative sums of L+1 independent Poisson variables, given that all sum to R. So the
probability that no count leaves its interval, on which the p-value rests, is a
convolution of L+1 Poisson laws, each cut to its interval: no simulation, no asymptotics.

Source: Säilynoja, Bürkner and Vehtari (2022), Graphical test for discrete uniformity, section 2
(the band; the probability by another recursion).
"""

import numpy as np
from scipy import fft
from scipy.special import bdtr, bdtrc, gammaln

from bayesgen.numerics.special import Array

_BLOCK = 256  # statistics whose p-values are computed side by side
_ROUNDING = 1 + 1e-9  # tails that are equal in exact arithmetic are equal here


def p_values(ranks: Array, n_draws: int) -> Array:
    """P-values of the hypothesis that ranks are independent and uniform on 0 .. `n_draws`.

    Parameters
    ----------
    ranks : (R, Q) array of int
        R ranks of each of Q quantities.
    n_draws : int
        L, the highest rank.

    Returns
    -------
    (Q,)
        Accurate to about 1e-12.

    Examples
    --------
    >>> ranks = np.stack([np.arange(20), np.arange(20) // 2], axis=1)
    >>> p_values(ranks, n_draws=19).round(5)
    array([1.000e+00, 1.000e-05])
    """
    ranks = np.asarray(ranks)
    n = len(ranks)
    tails = _tails(n, n_draws)
    least = np.full(ranks.shape[1], 2.0)
    for k, level in enumerate(tails, 1):
        least = np.minimum(least, level[(ranks < k).sum(axis=0)])
    distinct, back = np.unique(least, return_inverse=True)
    inside = [
        _probability_inside(tails, distinct[i : i + _BLOCK])
        for i in range(0, len(distinct), _BLOCK)
    ]
    # the tail that was met is itself one way to get there
    lowest = np.maximum(distinct / 2, np.finfo(np.float64).tiny)
    return np.clip(1 - np.concatenate([*inside, []]), lowest, 1.0)[back]


def _tails(n_ranks: int, n_draws: int) -> Array:
    """(L, R + 1) two-sided tail probability of each count at k = 1 .. L; 2 at its median."""
    n = np.arange(n_ranks + 1)
    share = np.arange(1, n_draws + 1)[:, None] / (n_draws + 1)
    below = bdtr(n, n_ranks, share)
    above = np.where(n > 0, bdtrc(np.maximum(n - 1, 0), n_ranks, share), 1.0)
    return 2 * np.minimum(below, above)


def _probability_inside(tails: Array, levels: Array) -> Array:
    """(Q,) probability that the tail of every count exceeds the level."""
    n_draws, n_ranks = len(tails), tails.shape[1] - 1
    n = np.arange(n_ranks + 1)
    mean = n_ranks / (n_draws + 1)
    poisson = np.exp(n * np.log(mean) - mean - gammaln(n + 1))
    length = fft.next_fast_len(2 * n_ranks + 1, real=True)
    step = fft.rfft(poisson, length)
    at = np.zeros((len(levels), n_ranks + 1))
    at[:, 0] = 1.0
    for tail in tails:
        at = fft.irfft(fft.rfft(at, length) * step, length)[:, : n_ranks + 1]
        at *= tail > levels[:, None] * _ROUNDING
    all_of_them = np.exp(n_ranks * np.log(n_ranks) - n_ranks - gammaln(n_ranks + 1))
    return at @ poisson[::-1] / all_of_them
