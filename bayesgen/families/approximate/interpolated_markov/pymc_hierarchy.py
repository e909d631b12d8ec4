"""The hierarchy of Dirichlet distributions behind interpolation with d = 0, as a PyMC model."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.names import CLASS
from bayesgen.families.shared.pymc_parts import container
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.approximate.interpolated_markov.family import InterpolatedMarkov


def declare(f: "InterpolatedMarkov", prefix: str, X: Array | None, stats: Any) -> dict[str, Any]:
    """As `Family.to_pymc`: tables of the contexts of the family's own n-grams or of `stats`."""
    import pymc as pm
    import pytensor.tensor as pt

    if X is not None:
        raise ValueError(
            "the hierarchy is a model of the counts of n-grams: likelihood='statistics'"
        )
    if (f.discount > 0).any():
        raise ValueError(
            "with a discount above 0 the hierarchy is of Pitman-Yor processes, which have no "
            "density: the PyMC model is for discount=0"
        )
    whole = f if stats is None else f.update(stats)
    b = container(f"{prefix}prior_concentration", f.concentration, (CLASS,))[:, None, None]
    width = f.n_tokens + 1
    root = container(f"{prefix}prior_strength", f.strength, (CLASS,))[:, None, None]
    above: Any = root * pt.ones((1, 1, width)) / width
    for k, level in enumerate(whole.levels):
        about = b * above[:, whole.levels[k - 1].context] if k else above
        last = k == f.order - 1
        above = pm.Dirichlet(
            f"{prefix}theta" if last else f"{prefix}theta_{k}",
            about,
            shape=(len(f.discount), len(level.index.starts), width),
        )
    if stats is not None:
        index = whole.levels[-1].index
        context = np.searchsorted(index.starts, np.arange(len(index.grams)), side="right") - 1
        n = container(f"{prefix}stats_counts", whole.counts, (CLASS, f"{prefix}gram"))
        pm.Potential(f"{prefix}x", (n * pt.log(above[:, context, index.grams[:, -1]])).sum())
    return {"theta": above}
