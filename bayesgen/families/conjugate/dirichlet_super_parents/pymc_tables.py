"""PyMC models of the tables of given super-parents."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.conjugate.dirichlet_super_parents.structures import concentrations

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_super_parents.family import DirichletSuperParents


def declare(prior: "DirichletSuperParents", posterior: Any, sets: list[int]) -> None:
    """Declare tables ``tables_{c}_{j}`` and the potential ``x`` in the PyMC model on the stack.

    Parameters
    ----------
    prior, posterior
        The posterior None: no rows.
    sets : for each class the number of its set of super-parents
    """
    import pymc as pm
    import pytensor.tensor as pt

    total: Any = 0.0
    for c, s in enumerate(sets):
        before = concentrations(prior, c, s)
        after = before if posterior is None else concentrations(posterior, c, s)
        for j, k in enumerate(np.asarray(prior.levels)):
            real = before[j, :, 0] > 0
            alpha = before[j, real, :k]
            theta = pt.ones(alpha.shape) if k == 1 else pm.Dirichlet(f"tables_{c}_{j}", alpha)
            total = total + ((after - before)[j, real, :k] * pt.log(theta)).sum()
    if posterior is not None:
        pm.Potential("x", total)
