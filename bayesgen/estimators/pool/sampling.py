"""The exponents of a pool as a PyMC model, NUTS on it, and draws by either route as a tree."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.names import CHAIN, CLASS, DRAW, MEMBER, OBS
from bayesgen.inference.exponents import Exponents

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesgen.estimators.pool.log_linear_pool import LogLinearPool

_DRAWS_SEED = 0


def pymc_model(pool: "LogLinearPool") -> "pm.Model":
    """As `LogLinearPool.to_pymc`."""
    import pymc as pm
    import pytensor.tensor as pt

    scores, codes, weight = pool._rows_behind()
    prior = pool._prior_
    coords = {MEMBER: pool._names(), CLASS: pool.classes_, OBS: np.arange(len(codes))}
    with pm.Model(coords=coords) as model:
        j = pm.Data("score", scores, dims=(MEMBER, OBS, CLASS))
        eta = pm.Gamma("exponent", prior.shape, prior.shape / prior.mean, dims=MEMBER)
        logit = pt.tensordot(eta, j, axes=1) + pool._offset_
        if prior.intercept_scale is not None:
            logit += pm.Normal("intercept", 0.0, prior.intercept_scale, dims=CLASS)
        if (weight == 1).all():
            pm.Categorical("label", logit_p=logit, observed=codes, dims=OBS)
        else:
            log_p = pt.special.log_softmax(logit, axis=1)
            pm.Potential("label", (weight * log_p[pt.arange(len(codes)), codes]).sum())
    return model


def sampled(
    pool: "LogLinearPool", options: Mapping[str, Any]
) -> tuple[tuple["xr.Dataset", "xr.Dataset"], Exponents]:
    """(posterior, sample_stats) of NUTS, and the posterior medians in place of the mode."""
    from bayesgen.inference import diagnostics, nuts

    seed = {"random_seed": pool.random_state}
    posterior, stats = nuts.sample(pymc_model(pool), **(seed | dict(options)))
    diagnostics.warn_unless_sound(posterior, stats, "NUTS", "")
    eta = posterior["exponent"].values.reshape(-1, posterior["exponent"].shape[-1])
    b = np.zeros((len(eta), len(pool.classes_)))
    columns = np.log(eta)
    if "intercept" in posterior:
        b = posterior["intercept"].values.reshape(len(eta), -1)
        columns = np.concatenate([columns, b], axis=1)
    covariance = np.atleast_2d(np.cov(columns.T))
    return (posterior, stats), Exponents(np.median(eta, axis=0), np.median(b, axis=0), covariance)


def draws_of(pool: "LogLinearPool") -> "xr.DataTree":
    """As `LogLinearPool.posterior_`."""
    import xarray as xr

    coords = {MEMBER: pool._names(), CLASS: pool.classes_}
    if pool._draws is not None:
        posterior, stats = pool._draws
        groups = {"/posterior": posterior, "/sample_stats": stats}
    else:
        eta, b = pool._exponents.draw(np.random.default_rng(_DRAWS_SEED), 4000)
        variables = {"exponent": ((CHAIN, DRAW, MEMBER), eta.reshape(4, 1000, -1))}
        if pool.intercepts:
            variables["intercept"] = ((CHAIN, DRAW, CLASS), b.reshape(4, 1000, -1))
        groups = {"/posterior": tree.group(variables, coords)}
    out = xr.DataTree.from_dict(groups)
    out.attrs |= tree.provenance("LogLinearPool", pool.inference, pool.random_state)
    return out
