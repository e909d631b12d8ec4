"""Draws of the log joint densities of rows: what all that is said of p(y | x, theta) is made of."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.special import Array

BLOCK = 1 << 21  # log densities held at a time: 16 MiB of float64
KEPT = 1 << 28  # bytes of draws, of theta or of posteriors, that are kept
_SHAPE = 0.75  # of the Gamma distribution of row weights: of 1 intervals are too narrow

Training = Callable[[], Any]  # to the training rows: X, codes, weight


def weights_of_draws(n_draws: int, seed: int, n_rows: int) -> Array:
    """Draw (S, N) factors of the weights of training rows: Gamma, mean 1, variance 4/3.

    Always the same for a seed, so that the members of a pool see the same weights. Source: Rubin
    (1981), The Bayesian bootstrap, whose weights have variance 1.
    """
    rng = np.random.default_rng([seed, 3])
    return rng.standard_gamma(_SHAPE, (n_draws, n_rows)) / _SHAPE


class JointDraws(NamedTuple):
    """Draws of log p(y = c, x | theta), up to a term that the classes of a row have in common.

    Parameters
    ----------
    blocks : iterator of (rows, (chain, draw, n, C))
        Rows in their order; each block may be overwritten.
    shape : (chain, draw, N, C)
    joint : bool
        Whether a draw is one theta for all rows; else each row is drawn on its own.
    independent : bool
        Whether the draws are independent, so that their effective number is their number.
    """

    blocks: Iterator[tuple[slice, Array]]
    shape: tuple[int, int, int, int]
    joint: bool = True
    independent: bool = True
