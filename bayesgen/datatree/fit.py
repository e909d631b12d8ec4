"""The group ``fit``: prior and posterior hyper-parameters and statistics, and back.

Enough to resume, merge or predict; a model file holds it and little else. ``constant_data`` of a
posterior, the prior as its PyMC model holds it, is made here too.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.datatree.tree import (
    CONSTANT_DATA,
    FIT,
    OBSERVED_DATA,
    Coords,
    group,
    labelled,
    read_draws,
)
from bayesgen.families.contract import Family
from bayesgen.families.names import CLASS
from bayesgen.families.shared.pymc_parts import Cells
from bayesgen.numerics.special import Array
from bayesgen.posterior.fitted import GIVEN, Fitted
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    import xarray as xr

_ROLES = ("prior", "posterior", "stats")


def assembled(
    groups: Mapping[str, "xr.Dataset"],
    prior: ClassModel,
    model: ClassModel | None,
    stats: ClassStats,
    coords: Coords,
) -> "xr.DataTree":
    """Return a tree of `groups` and of what every route has beside its draws.

    That is ``constant_data``, and where there is a posterior in closed form, `model`, also
    ``observed_data`` (the statistics) and ``fit``.
    """
    import xarray as xr

    every = {name: labelled(group, coords) for name, group in groups.items()}
    every[CONSTANT_DATA] = prior_dataset(prior, stats, coords)
    if model is not None:
        fit = fit_dataset(prior, model, stats, coords)
        observed = [name for name in fit.data_vars if str(name).startswith("stats_")]
        every |= {OBSERVED_DATA: fit[observed].drop_attrs(deep=False), FIT: fit}
    return xr.DataTree.from_dict({f"/{name}": group for name, group in every.items()})


def fit_dataset(
    prior: ClassModel, posterior: ClassModel, stats: ClassStats, coords: Coords
) -> "xr.Dataset":
    """Return hyper-parameters and statistics as variables ``{role}_{name}``.

    An axis of length 1 that stands for all (one variance for all classes) has no dim; the
    attribute ``axes`` of each variable lists the full axes for `read_fit`.
    """
    import xarray as xr

    variables: dict[str, xr.Variable] = {}
    attrs: dict[str, str] = {}
    coords = _padded(coords)
    sizes = {name: len(value) for name, value in coords.items()}
    for role, weights, record in (
        ("posterior", posterior.alpha, posterior.family),  # first: the plain dims are its own
        ("prior", prior.alpha, prior.family),
        ("stats", stats.count, stats.features),
    ):
        variables[f"{role}_class"] = xr.Variable((CLASS,), weights, {"axes": json.dumps([CLASS])})
        for name, (dims, value) in record.arrays().items():
            variables[f"{role}_{name}"] = _variable(role, dims, value, sizes)
        attrs[f"{role}_settings"] = json.dumps(record.settings(), default=np.generic.item)
    attrs["family"] = type(prior.family).__name__
    used = {d for v in variables.values() for d in v.dims}
    return xr.Dataset(variables, {k: v for k, v in coords.items() if k in used}, attrs)


def prior_dataset(prior: ClassModel, stats: ClassStats, coords: Coords) -> "xr.Dataset":
    """Return hyper-parameters of the prior, as the data containers of its PyMC model hold them."""
    dims = {f"prior_{name}": d for name, (d, _) in prior.family.arrays().items()}
    variables: dict[str, tuple[tuple[str, ...], Array]] = {"prior_class": ((CLASS,), prior.alpha)}
    for name, value in prior.family.pymc_data(stats.features).items():
        last = ("",) * value.ndim + dims.get(name, ())
        named = [
            d if d and n == len(coords.get(d, ())) else f"{name}_dim_{i}"
            for i, (d, n) in enumerate(
                zip(last[len(last) - value.ndim :], value.shape, strict=True)
            )
        ]
        variables[name] = (tuple(named), value)
    return group(variables, _padded(coords))


def _padded(coords: Coords) -> Coords:
    """Return coordinates under which categories keep a dim of their own, padded as in NumPy."""
    return {name: labels for name, labels in coords.items() if not isinstance(labels, Cells)}


def _variable(
    role: str, dims: tuple[str, ...], value: Array, sizes: dict[str, int]
) -> "xr.Variable":
    import xarray as xr

    if value.ndim < len(dims):  # a scalar that stands for a whole array
        value = value.reshape((1,) * (len(dims) - value.ndim) + value.shape)
    kept, names = [], []
    for axis, dim in enumerate(dims):
        size = value.shape[axis]
        if size == 1 and sizes.get(dim, 1) != 1:
            continue
        if sizes.setdefault(dim, size) != size:  # e.g. no n-grams in the prior
            dim = f"{role}_{dim}"
            sizes[dim] = size
        kept.append(size)
        names.append(dim)
    return xr.Variable(names, value.reshape(kept), {"axes": json.dumps(list(dims))})


def read_fit(
    dataset: "xr.Dataset", family: type[Family]
) -> tuple[ClassModel, ClassModel, ClassStats]:
    """Return (prior, posterior, stats) of `fit_dataset`."""
    arrays: dict[str, dict[str, Array]] = {role: {} for role in _ROLES}
    for name, variable in dataset.data_vars.items():
        role, field = str(name).split("_", 1)
        axes = json.loads(variable.attrs["axes"])
        shape = []
        for axis in axes:
            dim = next((d for d in (axis, f"{role}_{axis}") if d in variable.dims), None)
            shape.append(1 if dim is None else variable.sizes[dim])
        arrays[role][field] = np.asarray(variable.values).reshape(shape)
    weights = {role: arrays[role].pop("class") for role in _ROLES}
    settings = {role: json.loads(dataset.attrs[f"{role}_settings"]) for role in _ROLES}
    models = {
        role: ClassModel(weights[role], family.from_parts(arrays[role], settings[role]))
        for role in ("prior", "posterior")
    }
    features = models["prior"].family.read_stats(arrays["stats"], settings["stats"])
    return models["prior"], models["posterior"], ClassStats(weights["stats"], features)


def drawn_posterior(fitted: Fitted, draws, *, given: bool = False):
    """Return the posterior as a tree of draws has it.

    `given`: the draws are not those of the fit, and their class weights may have another prior.
    """
    posterior = fitted.posterior
    theta = read_draws(draws, posterior.params, fitted.coords)
    return posterior.with_draws(theta, not given and fitted.training.inference != GIVEN)
