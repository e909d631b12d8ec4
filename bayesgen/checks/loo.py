r"""Expected log predictive density by leave-one-out, as ArviZ's ELPDData.

The target ``"label"`` is :math:`\sum_i \log p(y_i \mid x_i, D_{-i})`, by which to choose a
classifier; ``"joint"`` is :math:`\sum_i \log p(x_i, y_i \mid D_{-i})`, which the features dominate:
a model may have the better joint score and the worse probabilities. Source: Vehtari, Gelman and
Gabry (2017), Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC.

This module imports ArviZ to subclass ELPDData. Only `loo` imports it, when it is called.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from arviz_stats.utils import ELPDDataLOO

from bayesgen.families.names import OBS
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import largest_good_k


@dataclass(kw_only=True, repr=False)
class ExactLOO(ELPDDataLOO):
    """Leave-one-out in closed form: no draws, no importance weights, no Pareto k."""

    target: str = "label"
    n_groups: int | None = None  # left out one at a time; None: each row on its own

    def _header(self) -> str:
        unit = "one row" if self.n_groups is None else f"one of {self.n_groups} groups"
        return (
            f"Exact leave-one-out of the {self.target} density: {self.n_data_points} rows, "
            f"{unit} at a time, parameters integrated out in closed form."
        )


def elpd(
    scores: Array,
    in_sample: Array,
    obs_id: Array,
    target: str,
    pareto_k: Array | None = None,
    n_draws: int = 0,
    n_groups: int | None = None,
) -> ELPDDataLOO:
    """Sum, standard error and pointwise terms.

    Parameters
    ----------
    scores : (n,) log predictive densities without the row
    in_sample : (n,) the same with it: their sum less that of `scores` is the effective number of
        parameters
    obs_id : (n,) names of the rows
    pareto_k : (n,), optional
        Of Pareto-smoothed importance sampling from `n_draws` draws; None: `scores` are of no draws.
    """
    n = len(scores)
    common: dict[str, Any] = {
        "elpd": float(scores.sum()),
        "se": float(np.sqrt(n * scores.var())),
        "p": float((in_sample - scores).sum()),
        "n_samples": n_draws,
        "n_data_points": n,
        "scale": "log",
        "elpd_i": xr.DataArray(scores, dims=OBS, coords={OBS: obs_id}, name="elpd_i"),
    }
    if pareto_k is None:
        return ExactLOO(**common, warning=False, good_k=0.7, target=target, n_groups=n_groups)
    good_k = largest_good_k(n_draws)
    return ELPDDataLOO(
        **common,
        warning=bool((pareto_k > good_k).any()),
        good_k=good_k,
        pareto_k=xr.DataArray(pareto_k, dims=OBS, coords={OBS: obs_id}, name="pareto_k"),
    )
