r"""Draws of the terms of the log-odds without a draw of a covariance: D^2 operations, not D^3.

In the coordinates of psi = L L^T the precision is W ~ Wishart(nu, I). A class mean is drawn with W
integrated out, as L e, e = z / sqrt(chi2_{nu - D + 1}); then W | e is Wishart(nu + 1,
(I + e e^T)^{-1}), and a second mean likewise. What is left is W y for one vector y: of a
Wishart(nu, I) it is chi2_nu y plus sqrt(chi2_nu) |y| times a standard normal vector orthogonal to
y. Source: Gelman et al. (2013), section 3.6; Muirhead (1982), theorem 3.2.14 (Bartlett).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.families.shared.mahalanobis import pattern_blocks
from bayesgen.numerics.rows import Matrix, dense_block
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart

_CELLS = 1 << 22  # numbers of one array: 32 MiB


def draw(
    f: "NormalInverseWishart", rng: np.random.Generator, X: Matrix, a: int, b: int, n: int
) -> Iterator[tuple[Array, Array, Array]]:
    """As in `TermDraws`."""
    for rows, columns in pattern_blocks(X, f.live):
        if not len(columns):
            continue
        part = f if len(columns) == f.dim else f.marginal(columns)
        x, at = dense_block(X, rows)[:, columns] - part.shift, np.arange(X.shape[0])[rows]
        rule = _linear_rule(part, rng, a, b, n) if f.shared else None
        step = max(1, _CELLS // (n * part.dim))
        for start in range(0, len(x), step):
            some = x[start : start + step]
            if rule is not None:
                w, middle = rule
                terms = w[:, None] * (some - middle[:, None])
            else:
                terms = _quadratic_form(part, rng, some, a, n)
                terms -= _quadratic_form(part, rng, some, b, n)
            yield at[start : start + step], columns, terms


def _linear_rule(
    f: "NormalInverseWishart", rng: np.random.Generator, a: int, b: int, n: int
) -> tuple[Array, Array]:
    """(n, D) weights of the linear rule, and the points halfway between the class means."""
    triangle, nu, dim = f.factor[0], f.nu[0], f.dim
    v = solve_triangular(triangle, f.mu[a] - f.mu[b], lower=True)
    w, middle = np.empty((n, dim)), np.empty((n, dim))
    for part in _blocks(n, dim):
        size = part.stop - part.start
        first, rest = _student(rng, size, nu, dim), _student(rng, size, nu + 1, dim)
        second = _scaled(first, 0.5, rest)
        step_a, step_b = first / np.sqrt(f.kappa[a]), second / np.sqrt(f.kappa[b])
        y = _scaled(rest, -0.5, _scaled(first, -0.5, v + step_a - step_b))
        y = _scaled(first, -0.5, _scaled(rest, -0.5, _times_wishart(rng, nu + 2, y)))
        w[part] = solve_triangular(triangle, y.T, lower=True, trans="T").T
        middle[part] = (f.mu[a] + f.mu[b] + (step_a + step_b) @ triangle.T) / 2
    return w, middle


def _quadratic_form(
    f: "NormalInverseWishart", rng: np.random.Generator, x: Array, c: int, n: int
) -> Array:
    """(n, N, D) parts of -1/2 (x - mu)^T Sigma^-1 (x - mu)."""
    triangle, nu, dim = f.factor[c], f.nu[c], f.dim
    v = solve_triangular(triangle, (x - f.mu[c]).T, lower=True).T
    out = np.empty((n, *x.shape))
    for part in _blocks(n, x.size):
        e = _student(rng, part.stop - part.start, nu, dim)[:, None]
        y = v - e / np.sqrt(f.kappa[c])
        wy = _scaled(e, -0.5, _times_wishart(rng, nu + 1, _scaled(e, -0.5, y)))
        flat = wy.reshape(-1, dim).T
        solved = solve_triangular(triangle, flat, lower=True, trans="T").T
        out[part] = -0.5 * (y @ triangle.T) * solved.reshape(wy.shape)
    return out


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, _CELLS // width)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _student(rng: np.random.Generator, n: int, nu: float, dim: int) -> Array:
    """(n, D) of Normal(0, W^-1), W ~ Wishart(nu, I) integrated out."""
    scale = np.sqrt(rng.chisquare(nu - dim + 1, size=(n, 1)))
    return np.asarray(rng.standard_normal((n, dim)) / scale)


def _scaled(e: Array, power: float, v: Array) -> Array:
    """(I + e e^T)^power v."""
    q = np.square(e).sum(axis=-1, keepdims=True)
    along = (e * v).sum(axis=-1, keepdims=True) * np.expm1(power * np.log1p(q)) / q
    return np.asarray(v + along * e)


def _times_wishart(rng: np.random.Generator, nu: float, y: Array) -> Array:
    """(..., D) draws of W y, W ~ Wishart(nu, I)."""
    size = np.square(y).sum(axis=-1, keepdims=True)
    scale = rng.chisquare(nu, size=size.shape)
    z = rng.standard_normal(y.shape)
    z -= (z * y).sum(axis=-1, keepdims=True) / size * y
    return np.asarray(scale * y + np.sqrt(scale * size) * z)
