"""Single passes over large data, compiled by numba; arrays in, arrays out.

A kernel stands where NumPy alone would be slower than scikit-learn, or half as fast as the kernel.
The family has the plain NumPy form beside it: small tables take that form and wait for no
compiler, and the tests hold the kernel to it, within 1e-12. The size alone decides, never what the
process has done before: equal data give equal numbers.

A kernel runs in one thread, without Python's global lock. Blocks of rows are shared among threads
that end with the call (`run_in_threads`): a process whose compiled code keeps threads of its own
cannot fork safely. The blocks depend on the data alone, and so do the numbers.

Importing this package imports no numba; importing one of its modules does.
"""

COMPILE_FROM = 1 << 18  # elementary steps: 3 ms of NumPy; loading a kernel takes .4 s, once


def pays(steps: int) -> bool:
    """Return whether to compile for so many steps: cells, times classes where it applies."""
    return steps >= COMPILE_FROM
