"""How far classes stand apart in log-odds: what bits and categories that pool them share."""

from typing import Any

import numpy as np

from bayesgen.parts.pymc_parts import variable

SPREAD = 0.5  # median of tau, in log-odds


def spread(prefix: str, tau: Any, inequality: Any) -> tuple[Any, Any]:
    """Free variables ``tau`` and ``inequality``: of the priors given, or of the defaults.

    The spread of the classes about the base log-odds of a column, log-Normal about 0.5 with
    standard deviation 1, and how unequal the columns are in it, half-Normal with 0.5.
    """
    import pymc as pm

    names = f"{prefix}tau", f"{prefix}inequality"
    return (
        variable(names[0], tau, (), lambda: pm.LogNormal(names[0], np.log(SPREAD), 1.0)),
        variable(names[1], inequality, (), lambda: pm.HalfNormal(names[1], 0.5)),
    )


def stretch(excess: Any) -> Any:
    """exp(asinh(excess)) > 0: grows and falls like a line, so that NUTS meets no cliff."""
    import pytensor.tensor as pt

    return excess + pt.sqrt(1 + pt.sqr(excess))
