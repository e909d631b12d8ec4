"""Single passes over large data, compiled by numba; arrays in, arrays out.

Every kernel has a plain NumPy form beside it, in the family: what is small takes that form, so that
small work waits for no compiler, and the tests hold the kernel to it, within 1e-12. Which of the
two a fit takes is a question of the size alone, never of what the process has done before: equal
data give equal models, bit for bit. A prediction takes the kernel from smaller sizes on once the
process has done what pays for loading them: repeated later, it may differ by rounding.

A kernel runs without Python's global lock over fixed blocks of rows (`threads.over_blocks`); how
many threads share the blocks has no influence on the result.

Importing this package imports no numba; importing one of its modules does. The sizes come from
``tests/benchmarks/thresholds.py``.
"""

COMPILE_FROM = 1 << 22  # elementary steps: NumPy takes about as long as loading the first kernel
_LOADED = 11  # halvings of that where NumPy takes as long as a kernel that can be called at once
_steps = 0  # so far in this process


def pays(steps: int, *, predicting: bool = False) -> bool:
    """Whether to compile for this many elementary steps (cells, times classes where it applies)."""
    global _steps
    _steps += steps
    loaded = predicting and _steps >= COMPILE_FROM
    return steps >= (COMPILE_FROM >> _LOADED if loaded else COMPILE_FROM)


def forget_steps() -> None:
    """As in a new process."""
    global _steps
    _steps = 0
