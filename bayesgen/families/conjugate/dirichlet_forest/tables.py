r"""Evidences of single columns and of pairs: the weights of the forests.

With pseudo-counts :math:`A/(K_u K_v)` for a pair and :math:`A/K_u` for a column, which are its
margins, W is the Dirichlet-multinomial evidence of a table, and a forest has the evidence
:math:`\prod_u W_u \prod_{uv} w_{uv}` with :math:`w_{uv} = W_{uv}/(W_u W_v)`.
Source: Heckerman, Geiger and Chickering (1995), section 5; Meila and Jaakkola (2000).
"""

import numpy as np

from bayesgen.numerics.special import Array, log_gamma_difference


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
    cells = log_gamma_difference(
        (strength / (levels[:, None] * levels))[..., None, None], np.where(pairs > 0, pairs, 0.0)
    )
    both = cells.sum(axis=(2, 3)) - total
    return single, both - single[:, None] - single


def graph(log_w: Array, root_weight: float, edges: Array) -> Array:
    """(D + 1, D + 1) log weights with the root as node 0, joined to every column.

    Parameters
    ----------
    log_w : (D, D)
    root_weight : float
    edges : (D, D) or (1, 1), 0 where no edge may be
    """
    n_features = len(log_w)
    out = np.full((n_features + 1, n_features + 1), np.log(root_weight))
    out[1:, 1:] = np.where(edges > 0, (log_w + log_w.T) / 2, -np.inf)
    np.fill_diagonal(out, -np.inf)
    return out
