"""Single passes over large data, compiled by numba; arrays in, arrays out.

Every kernel has a plain NumPy form beside it, in the family: what is small takes that form, so that
small work waits for no compiler, and the tests hold the kernel to it. Which of the two is a
question of the size alone, never of what the process has done before: equal inputs give equal
numbers, bit for bit.

A kernel runs without Python's global lock over fixed blocks of rows (`threads.over_blocks`); how
many threads share the blocks has no influence on the result.

Importing this package imports no numba; importing one of its modules does.
"""

COMPILE_FROM = 1 << 22  # elementary steps: here NumPy takes about as long as loading a kernel


def pays(steps: int) -> bool:
    """Whether to compile for this many elementary steps (cells, times classes where it applies)."""
    return steps >= COMPILE_FROM
