"""How far classes stand apart in log-odds: what bits and categories that pool them share."""

from typing import Any

import numpy as np

from bayesgen.families.shared.pymc_parts import variable

SPREAD = 0.5  # median of tau, in log-odds


def declare_inequality(prefix: str, given: Any) -> Any:
    """How unequal columns are in the spread of their classes: half-Normal with 0.5 by default."""
    import pymc as pm

    name = f"{prefix}inequality"
    return variable(name, given, (), lambda: pm.HalfNormal(name, 0.5))


def declare_spread(prefix: str, given: Any, unit: Any, share: Any) -> Any:
    """Spread ``tau`` of the classes about the base log-odds: log-Normal about 0.5 by default.

    Rows tell how large the deviations tau * `unit` are, rather than tau: by default the free
    variable ``tau_level`` is log tau plus the log of the root mean square of `unit` in the cells
    that the rows determine. Given the units tau is log-Normal all the same.

    Parameters
    ----------
    unit : tensor (class, cell)
        Deviations for a tau of 1.
    share : tensor (class, cell)
        I_c / (sum_c I_c + 1 / SPREAD^2), I_c the information of the rows of a class.
    """
    import pymc as pm
    import pytensor.tensor as pt

    def default() -> Any:
        total = share.sum(axis=0)
        # of the difference to the other classes, beside that of the prior
        known = share * (total - share) / pt.maximum(total * (1 - total), 1e-9)
        weight = known / (1 + known)
        size = pt.log(((weight * pt.sqr(unit)).sum() + 1) / (weight.sum() + 1)) / 2
        level = pm.Normal(f"{prefix}tau_level", np.log(SPREAD) + size, 1.0)
        return pm.Deterministic(f"{prefix}tau", pt.exp(level - size), dims=())

    return variable(f"{prefix}tau", given, (), default)


def stretch(excess: Any) -> Any:
    """exp(asinh(excess)) > 0: grows and falls like a line, so that NUTS meets no cliff."""
    import pytensor.tensor as pt

    return excess + pt.sqrt(1 + pt.sqr(excess))
