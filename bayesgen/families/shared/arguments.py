"""The argument of an average of complex terms, followed from the real axis.

An average of exponentials of cumulant generating functions is a mixture of characteristic
functions, and its logarithm has many branches: the one that begins at 0 where all terms are
positive is found by following the average along a path.
"""

from collections.abc import Callable

import numpy as np

from bayesgen.numerics.special import Array

_STEP = 1.5  # radians that the terms of a sum may turn between two points of a path
_LARGEST = 1.6  # radians between two points; beyond it the path is made finer
_MOST = 1 << 12  # points of a path
_CELLS = 1 << 21


def followed_argument(
    at: Callable[[Array, Array], Array], found: Array, turn: Array, t: Array, cells: int
) -> Array:
    """(..., n) argument of an average at complex t, on the branch that is 0 on the real axis.

    Parameters
    ----------
    at : function of rows (m,) and t (points, m)
        The complex logarithm of the average, on any branch: (points, m).
    found : (..., n)
        Its argument at t, on any branch.
    turn : (..., n)
        Bound on how far any term has turned, in radians.
    t : (..., n or 1)
    cells : int
        Numbers that `at` computes for one row and point.
    """
    out = _wrapped(found)
    # all terms within a quarter turn of the positive axis: so is their sum, on its first branch
    far = np.argwhere(np.isfinite(turn) & (turn >= np.pi / 2))
    if not len(far):
        return out
    place = tuple(far.T)
    row, t_far, turn_far = far[:, -1], np.broadcast_to(t, out.shape)[place], turn[place]
    order = np.argsort(turn_far)
    angles = np.empty(len(far))
    start = 0
    while start < len(order):
        size = 1
        points = _points(turn_far[order[start]])
        while start + size < len(order):
            more = _points(turn_far[order[start + size]])
            if more * (size + 1) * cells > _CELLS:
                break
            points, size = more, size + 1
        some = order[start : start + size]
        angles[some] = _along(at, row[some], t_far[some], points)
        start += size
    out[place] = angles
    return out


def _wrapped(angle: Array) -> Array:
    whole = np.remainder(angle + np.pi, 2 * np.pi) - np.pi
    return np.where(np.abs(angle) < np.pi, angle, whole)  # a tiny angle keeps its digits


def _points(turn: float) -> int:
    return int(min(_MOST, np.ceil(turn / _STEP)))


def _along(at: Callable[[Array, Array], Array], row: Array, t: Array, points: int) -> Array:
    """(n,) argument at t, followed over a path of `points` steps from its real part."""
    share = np.arange(1, points + 1)[:, None] / points
    angle = at(row, t.real + 1j * share * t.imag).imag
    steps = _wrapped(np.diff(angle, axis=0, prepend=np.zeros((1, len(t)))))
    total: Array = steps.sum(axis=0)
    rough = np.abs(steps).max(axis=0) > _LARGEST
    if rough.any() and points < _MOST:
        total[rough] = _along(at, row[rough], t[rough], min(_MOST, 4 * points))
    return total
