"""Strength of the tables and weight of roots by the evidence, on a fixed lattice."""

from collections.abc import Callable

import numpy as np

# half octaves of A, in rows, and half decades of the root weight over the number of columns: a
# lattice, so that chunks, merges and any order of classes lead to the same numbers
_OCTAVES = (-4, 18)
_DECADES = (-5, 5)
START = (6, 0)  # A = 8 rows, root weight = number of columns: half the columns are roots


def value(n_features: int, point: tuple[int, int]) -> tuple[float, float]:
    """A and root weight at a point of the lattice."""
    return float(2.0 ** (point[0] / 2)), float(n_features * 10.0 ** (point[1] / 2))


def search(
    evidence: Callable[[float, float], float],
    n_features: int,
    free: tuple[bool, bool] = (True, True),
) -> tuple[float, float]:
    """The point of the largest evidence: a pattern search with steps of 4, 2 and 1.

    Parameters
    ----------
    evidence : function of A and root weight
    n_features : int
    free : whether each of the two is looked for; else it stays at `START`.
    """
    seen: dict[tuple[int, int], float] = {}

    def at(point: tuple[int, int]) -> float:
        if point not in seen:
            seen[point] = evidence(*value(n_features, point))
        return seen[point]

    best = START
    for step in (4, 2, 1):
        moved = True
        while moved:
            moved = False
            for axis in np.flatnonzero(free):
                for sign in (1, -1):
                    shift = [0, 0]
                    shift[axis] = sign * step
                    near = (best[0] + shift[0], best[1] + shift[1])
                    inside = _OCTAVES[0] <= near[0] <= _OCTAVES[1]
                    inside &= _DECADES[0] <= near[1] <= _DECADES[1]
                    # rounding must not decide between two points
                    if inside and at(near) > at(best) + 1e-9 * (1 + abs(at(best))):
                        best, moved = near, True
    return value(n_features, best)
