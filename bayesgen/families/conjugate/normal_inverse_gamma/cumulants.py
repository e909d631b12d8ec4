"""Joint cumulant generating functions of the class log-densities, variance group by group."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.shared.density_cumulants import (
    log1p_derivatives,
    log_gamma_derivatives,
    student_derivatives,
)
from bayesgen.numerics.rows import Matrix, cgf_by_rows, dense_block, row_blocks, shared_sums
from bayesgen.numerics.special import Array, log1p, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_gamma.family import NormalInverseGamma


def cgf(f: "NormalInverseGamma", X: Matrix, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`, over the observed cells."""
    n_classes, kappa, scale, live = len(f.mu), f.kappa, f.sum_of_squares, f.live
    over_classes, over_features = f.over_classes, f.over_features

    def cell(rows: slice, t: Array) -> Array:
        x = dense_block(X, rows) - f.shift
        seen = ~np.isnan(x) & live
        x = np.where(seen, x, 0.0)
        out: Any = 0.0
        T: Any = 0.0
        B: Any = 0.0
        table: Any = 0.0  # (..., n or 1, D) the terms of a cell that do not depend on its value
        for c in range(n_classes):
            tc = t[..., c, None]
            table = table - 0.5 * log1p(tc / kappa[c])
            nu, ss = (v[0 if over_classes else c] for v in (f.nu, scale))
            square = seen * np.square(x - f.mu[c]) / ss  # first: t may be tiny
            own = tc * kappa[c] / (kappa[c] + tc) * square
            T, B = (T + tc, B + own) if over_classes else (tc, own)
            if over_classes and c < n_classes - 1:
                continue
            if over_features:
                T, B = T * seen.sum(axis=-1, keepdims=True), B.sum(axis=-1, keepdims=True)
            norm = log_gamma_difference(nu / 2, T / 2) - T / 2 * np.log(np.pi * ss)
            out = out - ((nu + T * (1.0 if over_features else seen)) / 2 * log1p(B)).sum(axis=-1)
            out, table = (out + norm[..., 0], table) if over_features else (out, table + norm)
        if table.shape[-2] > 1 or not np.isfinite(table).all():
            return out + np.sum(np.where(seen, table, 0.0), axis=-1)
        return out + shared_sums(seen.astype(table.dtype), table[..., 0, :])

    with np.errstate(invalid="ignore", divide="ignore"):  # real t outside the domain: NaN
        return cgf_by_rows(cell, X.shape[0], X.shape[1], t)


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
            out[:, rows] = (_table(nu, ss, k, m, t) + student_derivatives(k + q, nu, m, t))[..., 0]
            continue
        k, one = 1 / f.kappa, np.ones(1)
        out[:, rows] = (_table(nu, ss, k, one, t) @ here.T.astype(np.float64)).swapaxes(1, 2)
        cells = student_derivatives(k + q, nu, one, t)
        out[:, rows] += np.sum(cells, axis=-1, where=here[:, None])
    return out


def _table(nu: Array, ss: Array, k: Array, m: Array, t: float) -> Array:
    """(5, ...) what the cumulants of groups of m cells have that does not depend on values."""
    out = log_gamma_derivatives(nu / 2, m / 2, t) - student_derivatives(k, nu, m, t)
    out -= m / 2 * log1p_derivatives(k, t)
    out[0] -= m / 2 * np.log(np.pi * ss)
    return out


def cell_cumulants(f: "NormalInverseGamma", x: Array, column: Array) -> Array:
    """(5, n, C), as in `CellCumulants`."""
    nu, ss, k, one = f.nu, f.sum_of_squares, 1 / f.kappa, np.ones(1)
    square = np.square(x - f.shift[column] - f.mu[:, column]) / ss[:, column]
    out = _table(nu, ss, k, one, 0.0)[..., column]
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
