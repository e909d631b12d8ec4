"""Special functions, passes over rows, compiled kernels."""
