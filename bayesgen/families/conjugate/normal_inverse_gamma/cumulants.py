"""Joint cumulant generating functions of the class log-densities, variance group by group."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.shared.density_cumulants import (
    student_derivatives,
    student_table,
)
from bayesgen.numerics.rows import BLOCK_CELLS, Matrix, cgf_by_rows, dense_block, row_blocks
from bayesgen.numerics.special import Array, log1p, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma


def cgf(f: "NormalInverseGamma", X: Matrix, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`, over the observed cells."""
    t = np.atleast_2d(t)
    n_points = int(np.prod(t.shape[:-2]))
    with np.errstate(invalid="ignore", divide="ignore"):  # real t outside the domain: NaN
        if n_points * X.size <= BLOCK_CELLS:  # one block: nothing to assemble
            return _of_block(f, X, t)
        return cgf_by_rows(lambda rows, own: _of_block(f, X[rows], own), len(X), X.shape[1], t)


def _of_block(f: "NormalInverseGamma", X: Array, t: Array) -> Array:
    """The same of so few rows that arrays (..., n, D) are small."""
    x = X - f.shift
    seen = ~np.isnan(x) & f.live
    x = np.where(seen, x, 0.0)
    out: Any = np.zeros((*t.shape[:-2], len(x)), dtype=t.dtype)
    # (..., n or 1, D) of what does not depend on the value of a cell
    table: Any = np.zeros((1, x.shape[1]))
    used = np.flatnonzero(t.reshape(-1, t.shape[-1]).any(axis=0))
    for members in [used] if f.over_classes and len(used) else used[:, None]:
        T: Any = 0.0
        B: Any = 0.0
        nu, ss = (v[0 if f.over_classes else members[0]] for v in (f.nu, f.sum_of_squares))
        for c in members:
            tc, kappa = t[..., c, None], f.kappa[c]
            table = table - 0.5 * log1p(tc / kappa)
            square = seen * np.square(x - f.mu[c]) / ss  # first: t may be tiny
            T, B = T + tc, B + tc * kappa / (kappa + tc) * square
        if f.over_features:
            T, B = T * seen.sum(axis=-1, keepdims=True), B.sum(axis=-1, keepdims=True)
        norm = log_gamma_difference(nu / 2, T / 2) - T / 2 * np.log(np.pi * ss)
        out = out - ((nu + T * (1.0 if f.over_features else seen)) / 2 * log1p(B)).sum(axis=-1)
        out, table = (out + norm[..., 0], table) if f.over_features else (out, table + norm)
    if table.shape[-2] > 1 or not np.isfinite(table).all():
        return out + np.sum(np.where(seen, table, 0.0), axis=-1)
    return out + table[..., 0, :] @ seen.T.astype(table.dtype)


def density_cumulants(f: "NormalInverseGamma", X: Matrix, seen: int) -> Array:
    """(5, N, C), as in `DensityCumulants`, of classes with variances of their own."""
    out, t = np.empty((5, X.shape[0], len(f.mu))), float(seen)
    nu, ss, live, spherical = f.nu, f.sum_of_squares, f.live, f.over_features
    for rows in row_blocks(X.shape[0], f.mu.size):
        x = dense_block(X, rows) - f.shift
        here = ~np.isnan(x) & live
        q = np.where(here[:, None], np.square(x[:, None] - f.mu), 0.0) / ss  # (n, C, D)
        if spherical:
            q, m = q.sum(axis=2, keepdims=True), here.sum(axis=1)[:, None, None]
            k = np.broadcast_to(1 / f.kappa[:, live][:, :1], q.shape)
            whole = student_table(nu, ss, k, m, t) + student_derivatives(k + q, nu, m, t)
            out[:, rows] = whole[..., 0]
            continue
        k, one = 1 / f.kappa, np.ones(1)
        out[:, rows] = (student_table(nu, ss, k, one, t) @ here.T.astype(np.float64)).swapaxes(1, 2)
        cells = student_derivatives(k + q, nu, one, t)
        out[:, rows] += np.sum(cells, axis=-1, where=here[:, None])
    return out


def cell_cumulants(f: "NormalInverseGamma", x: Array, column: Array) -> Array:
    """(5, n, C), as in `CellCumulants`."""
    nu, ss, k, one = f.nu, f.sum_of_squares, 1 / f.kappa, np.ones(1)
    square = np.square(x - f.shift[column] - f.mu[:, column]) / ss[:, column]
    out = student_table(nu, ss, k, one, 0.0)[..., column]
    out += student_derivatives(k[:, column] + square, nu[:, column], one, 0.0)
    return np.where(f.live[column], out, 0.0).swapaxes(1, 2)


def cell_cgf(f: "NormalInverseGamma", x: Array, column: Array, t: Array) -> Array:
    """(K, n), as in `SeparateColumns`: a variance group is then one cell of each class."""
    live = f.live[column]
    kappa = f.kappa[:, column]
    nu, ss = (np.broadcast_to(v, f.mu.shape)[:, column] for v in (f.nu, f.sum_of_squares))
    square = np.square(x - f.shift[column] - f.mu[:, column]) / ss

    def group(members: list[int]) -> Array:
        T = t[..., members].sum(axis=-1)
        B = sum(t[..., c] * kappa[c] / (kappa[c] + t[..., c]) * square[c] for c in members)
        k = members[0]
        mean = sum(-0.5 * log1p(t[..., c] / kappa[c]) for c in members)
        norm = log_gamma_difference(nu[k] / 2, T / 2) - T / 2 * np.log(np.pi * ss[k])
        return mean + norm - (nu[k] + T) / 2 * log1p(B)

    every = list(range(len(f.mu)))
    with np.errstate(invalid="ignore", divide="ignore"):  # real t outside the domain: NaN
        out = sum(group(m) for m in ([every] if f.over_classes else [[c] for c in every]))
    return np.where(live, out, 0.0)
