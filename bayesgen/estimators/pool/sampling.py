"""The exponents of a pool as a PyMC model, and their draws as a tree."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.names import CHAIN, CLASS, DRAW, MEMBER, OBS

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesgen.estimators.pool.log_linear_pool import LogLinearPool


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


def draws_of(pool: "LogLinearPool") -> "xr.DataTree":
    """As `LogLinearPool.posterior_`."""
    import xarray as xr

    from bayesgen.inference.diagnostics import diagnose

    found = pool._exponents
    variables = {"exponent": ((CHAIN, DRAW, MEMBER), found.exponents)}
    if pool.intercepts:
        variables["intercept"] = ((CHAIN, DRAW, CLASS), found.intercepts)
    posterior = tree.group(variables, {MEMBER: pool._names(), CLASS: pool.classes_})
    out = xr.DataTree.from_dict({"/posterior": posterior})
    out.attrs |= tree.provenance(type(pool).__name__, "hmc", pool.random_state)
    out.attrs |= diagnose(posterior, xr.Dataset()).attributes()
    return out
