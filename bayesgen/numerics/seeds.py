"""From a user's `random_state` to random numbers: one route, with one error."""

from numbers import Integral

import numpy as np


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


def integer(random_state) -> int:
    """Return an integer seed of 63 bits: that of `random_state` if it is one, 0 for None."""
    if random_state is None:
        return 0
    rng = generator(random_state)
    small = isinstance(random_state, Integral) and random_state < 1 << 63
    return int(random_state if small else rng.integers(1 << 63))
