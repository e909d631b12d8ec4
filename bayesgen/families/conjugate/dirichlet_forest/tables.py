r"""Evidences of single columns and of pairs: the weights of the forests.

With pseudo-counts :math:`A/(K_u K_v)` for a pair and :math:`A/K_u` for a column, which are its
margins, W is the Dirichlet-multinomial evidence of a table, and a forest has the evidence
:math:`\prod_u W_u \prod_{uv} w_{uv}` with :math:`w_{uv} = W_{uv}/(W_u W_v)`.
Source: Heckerman, Geiger and Chickering (1995), section 5; Meila and Jaakkola (2000).
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.numerics import kernels
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_forest.family import DirichletForest

_TABLES = 16  # of one class: values of t


def log_evidences(pairs: Array, strength: float, levels: Array) -> tuple[Array, Array]:
    """(D,) log W_u and (D, D) log w_uv of one class.

    Parameters
    ----------
    pairs : (D, D, K, K) counts
    strength : float
        A, in rows.
    levels : (D,) numbers of categories
    """
    n_features, k = len(levels), pairs.shape[-1]
    diagonal = np.arange(n_features)
    margin = pairs[diagonal, diagonal][:, np.arange(k), np.arange(k)]
    total = log_gamma_difference(strength, margin.sum(axis=1))
    single = log_gamma_difference((strength / levels)[:, None], margin).sum(axis=1) - total
    i, j = np.tril_indices(n_features, -1)
    flat = pairs[i, j].ravel()
    cell = np.flatnonzero(flat > 0)  # few where a column has many categories; others add 0
    pair = cell // k**2
    pseudo = (strength / (levels[i] * levels[j]))[pair]
    both = np.zeros((n_features, n_features))
    both[i, j] = np.bincount(pair, log_gamma_difference(pseudo, flat[cell]), len(i))
    return single, both + both.T - total - single[:, None] - single


def log_growth(a: Array, t: Array) -> Array:
    """Return `log_gamma_difference`, for t = 1 and -1 by one logarithm."""
    if np.iscomplexobj(t) or (np.abs(t) != 1).any():
        return log_gamma_difference(a, t)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(t * np.log(a + np.minimum(t, 0)))


def cgf_by_tables(f: "DirichletForest", codes: Array, t: Array) -> Array | None:
    """(N, C) terms of the cgf at real t (C,) or (N, C), by tables and compiled sums.

    None where t is complex or has many values, or where compiled sums do not pay.
    """
    if np.iscomplexobj(t) or np.ndim(t) > 2 or f.is_forest:
        return None
    t = np.atleast_2d(t).astype(np.float64)
    values = [np.unique(own[own != 0]) for own in t.T]
    rows_each = np.count_nonzero(t) * (len(codes) if len(t) == 1 else 1)
    steps = rows_each * (codes.shape[1] + 1) ** 3 // 6
    if max(map(len, values)) > _TABLES or not kernels.pays(steps):
        return None
    out = np.zeros((len(codes), len(values)))
    n_features, k = f.pairs.shape[1], f.pairs.shape[-1]
    column, code = np.arange(n_features)[:, None], np.arange(k)
    size = f.levels[:, None] * f.levels
    for c, value in ((c, value) for c, own in enumerate(values) for value in own):
        rows = np.flatnonzero(np.broadcast_to(t[:, c] == value, len(codes)))
        single = f.pairs[c][column, column, code, code] + f.strength[c] / f.levels[:, None]
        both = f.pairs[c] + f.strength[c] / size[..., None, None]
        single, both, total = (log_growth(a, value) for a in (single, both, f.totals[c]))
        table = both - single[:, None, :, None] - single[:, None] + total
        table[np.broadcast_to(f.edges[c] == 0, size.shape)] = 0.0
        for part in row_blocks(len(rows), n_features):
            own = codes[rows[part]]
            found = f.eliminations[c].log_ratio_of_codes(own, table)
            out[rows[part], c] = found + (single[column[:, 0], own] - total).sum(axis=1)
    return out
