"""Draws of the log joint densities of rows: what all that is said of p(y | x, theta) is made of."""

from collections.abc import Iterator
from typing import NamedTuple

from bayesgen.numerics.special import Array

BLOCK = 1 << 21  # log densities held at a time: 16 MiB of float64


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
