"""PyMC model of Normal columns along given forests."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.conjugate.normal_forest.structures import given_parent
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_forest.family import NormalForest
    from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats


def declare(f: "NormalForest", stats: "ScatterStats | None", forest: Array) -> None:
    """Declare the parameters and the potential ``x`` in the PyMC model on the stack.

    Variables of class number c: ``sigma2_{c}`` and ``mu_{c}`` (feature), ``slope_{c}`` of the
    columns that have a parent, in their order.

    Parameters
    ----------
    f : prior
    stats : statistics of the rows, or None for the prior alone
    forest : (C, D) parents, -1 for a root
    """
    import pymc as pm
    import pytensor.tensor as pt

    total: Any = 0.0
    for c, parents in enumerate(forest):
        mean, width, scale, freedom = (a[0] for a in given_parent(f, c, parents[None]))
        child = np.flatnonzero(parents >= 0)
        up = np.where(parents < 0, np.arange(len(parents)), parents)
        sigma2 = pm.InverseGamma(f"sigma2_{c}", freedom / 2, scale / 2)
        slope = pt.zeros(len(parents))
        if len(child):
            own = pm.Normal(f"slope_{c}", mean[child], pt.sqrt(sigma2[child] / width[child]))
            slope = slope[child].set(own)
        centre = f.mu[c] + f.shift
        mu: list[Any] = [None] * len(parents)
        step = pm.Normal(f"mu_{c}_step", 0.0, 1.0, shape=len(parents))
        while any(m is None for m in mu):
            for u, p in enumerate(parents):
                if mu[u] is None and (p < 0 or mu[p] is not None):
                    above = 0.0 if p < 0 else slope[u] * (mu[p] - centre[p])
                    mu[u] = centre[u] + above + pt.sqrt(sigma2[u] / f.kappa[c]) * step[u]
        mu_c = pm.Deterministic(f"mu_{c}", pt.stack(mu))
        if stats is None:
            continue
        n, s, columns = stats.n[c], stats.scatter[c], np.arange(len(parents))
        deviation = stats.mean[c] + stats.shift - mu_c
        residual = deviation - slope * deviation[up]
        squares = s[columns, columns] - 2 * slope * s[columns, up] + slope**2 * s[up, up]
        squares = squares + n * residual**2
        terms = n * pt.log(2 * np.pi * sigma2) + squares / sigma2
        total = total - (terms * ~f.ignored).sum() / 2
    if stats is not None:
        pm.Potential("x", total)
