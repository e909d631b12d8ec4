"""Numbers for the clusters of a mixture that mean the same in every draw.

A mixture's likelihood does not change when its clusters change places, and a chain may do so at any
time. Afterwards the clusters of each draw are renumbered such that what they say of the rows, the
probabilities that a row is of each of them, differs as little as possible from the mean over draws,
in Kullback-Leibler divergence.

Source: Stephens (2000), Dealing with label switching in mixture models, algorithm 2.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from bayesgen.numerics.special import Array

_SWEEPS = 20  # at most


def renumbering(log_p: Array, log_density: Array) -> Array:
    """Which cluster of each draw comes first, second, ...

    Parameters
    ----------
    log_p : (S, N, K)
        Log probability that row n is of cluster k, by draw s.
    log_density : (S,)
        Of all rows; the draw with the largest is what the others are first compared with.

    Returns
    -------
    (S, K)
        Permutations; their order among each other is that of the draw with the largest density.
    """
    p = np.exp(log_p)
    order = np.tile(np.arange(p.shape[2]), (len(p), 1))
    mean = p[log_density.argmax()]
    for _ in range(_SWEEPS):
        loss = -np.einsum("snj,nk->skj", p, np.log(np.maximum(mean, 1e-12)))
        new = np.array([linear_sum_assignment(table)[1] for table in loss])
        mean = np.take_along_axis(p, new[:, None, :], axis=2).mean(axis=0)
        if np.array_equal(new, order):
            break
        order = new
    return order
