"""The posterior predictive: multivariate Student t, of the observed cells of each row.

Degrees of freedom nu - D + 1, shape psi (1 + 1/kappa)/df. Source: Gelman et al., Bayesian Data
Analysis (3rd ed.), section 3.6.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.shared.mahalanobis import patterns, reader, squared_distances
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart

_MOST_COLUMNS = 64  # beyond, products of matrices by BLAS are faster than the kernel


def log_predictive(f: "NormalInverseWishart", X: Matrix) -> Array:
    """(N, C), as in `ConjugateFamily.log_predictive`."""
    out = np.empty((X.shape[0], len(f.mu)))
    for rows, columns in patterns(X, f.live):
        part = f if len(columns) == f.dim else f.marginal(columns)
        read, n = reader(X, rows, columns)
        if len(columns) <= _MOST_COLUMNS and kernels.pays(n * part.mu.size, predicting=True):
            if n == X.shape[0] and part is f:
                return _compiled(f, X)
            out[rows] = _compiled(part, X[rows][:, columns])
            continue
        scale, log_norm, power = part.student
        q = squared_distances(read, n, part.shift, part.mu, part.factor)
        q *= scale
        np.log1p(q, out=q)
        q *= -power
        q += log_norm
        out[rows] = q
    return out


def student(f: "NormalInverseWishart") -> tuple[Array, Array, Array]:
    """(C,) each: ``log_norm - power log(1 + scale q)`` is the log density at a distance q^2."""
    df = f.nu - f.dim + 1
    log_norm = (
        log_gamma_difference(df / 2, f.dim / 2)
        - f.dim / 2 * (np.log(np.pi) + np.log1p(1 / f.kappa))
        - f.log_det / 2
    )
    arrays = f.kappa / (f.kappa + 1), log_norm, (f.nu + 1) / 2
    scale, log_norm, power = (np.array(np.broadcast_to(a, len(f.mu))) for a in arrays)
    return scale, log_norm, power


def _compiled(f: "NormalInverseWishart", X: Array) -> Array:
    """Of all rows and columns of a dense X, by a kernel."""
    from bayesgen.numerics.kernels.compiling import as_data, as_rows, row_slices
    from bayesgen.numerics.kernels.student import correlated_t
    from bayesgen.numerics.kernels.threads import over_blocks

    tables = (np.broadcast_to(f.shift, f.dim), *f.whitening, *f.student)
    arguments = [as_data(np.ascontiguousarray(a, dtype=np.float64)) for a in tables]
    shift, whiten, centre, step, scale, log_norm, power = arguments
    out = np.empty((X.shape[0], len(f.mu)))

    def part(start: int, stop: int) -> None:
        for rows in row_slices(X, start, stop):
            x = as_rows(X[rows])
            correlated_t(x, shift, whiten, centre, step, scale, log_norm, power, out[rows])

    for _ in over_blocks(part, X.shape[0], X.shape[1], most=32):
        pass
    return out
