"""The only builder and reader of the DataTree: arrays with named dims in and out.

``posterior`` holds draws (chain, draw, *dims); ``fit`` holds prior and posterior hyper-parameters
and the statistics, which is enough to resume, merge or predict.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree.names import POSTERIOR
from bayesgen.families.contract import Family
from bayesgen.families.names import CHAIN, CLASS, DRAW
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    import xarray as xr

Coords = Mapping[str, Any]
_ROLES = ("prior", "posterior", "stats")


def fit_dataset(
    prior: ClassModel, posterior: ClassModel, stats: ClassStats, coords: Coords
) -> "xr.Dataset":
    """Hyper-parameters and statistics as variables ``{role}_{name}``.

    An axis of length 1 that stands for all (one variance for all classes) has no dim; the
    attribute ``axes`` of each variable lists the full axes for `read_fit`.
    """
    import xarray as xr

    variables: dict[str, xr.Variable] = {}
    attrs: dict[str, str] = {}
    sizes = {name: len(value) for name, value in coords.items()}
    for role, weights, record in (
        ("posterior", posterior.alpha, posterior.family),  # first: the plain dims are its own
        ("prior", prior.alpha, prior.family),
        ("stats", stats.count, stats.features),
    ):
        variables[f"{role}_class"] = xr.Variable((CLASS,), weights, {"axes": json.dumps([CLASS])})
        for name, (dims, value) in record.arrays().items():
            variables[f"{role}_{name}"] = _variable(role, dims, value, sizes)
        attrs[f"{role}_settings"] = json.dumps(record.settings())
    attrs["family"] = type(prior.family).__name__
    used = {d for v in variables.values() for d in v.dims}
    return xr.Dataset(variables, {k: v for k, v in coords.items() if k in used}, attrs)


def prior_dataset(prior: ClassModel, stats: ClassStats, coords: Coords) -> "xr.Dataset":
    """Hyper-parameters of the prior, as the data containers of its PyMC model hold them."""
    dims = {f"prior_{name}": d for name, (d, _) in prior.family.arrays().items()}
    variables: dict[str, tuple[tuple[str, ...], Array]] = {"prior_class": ((CLASS,), prior.alpha)}
    for name, value in prior.family.pymc_data(stats.features).items():
        known = dims.get(name, ())
        full = known[len(known) - value.ndim :] if len(known) >= value.ndim else ("",) * value.ndim
        own = [
            d if d and n == len(coords.get(d, ())) else f"{name}_dim_{i}"
            for i, (d, n) in enumerate(zip(full, value.shape, strict=True))
        ]
        variables[name] = (tuple(own), value)
    return group(variables, coords)


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
    """(prior, posterior, stats) of `fit_dataset`."""
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


def draws_dataset(
    draws: Mapping[str, Array], params: Mapping[str, tuple[str, ...]], coords: Coords
) -> "xr.Dataset":
    """Draws {name: (chain, draw, *dims)} as a Dataset."""
    import xarray as xr

    variables = {name: ((CHAIN, DRAW, *params[name]), value) for name, value in draws.items()}
    used = {d for dims in params.values() for d in dims}
    n_chains, n_draws = next(iter(draws.values())).shape[:2]
    index = {CHAIN: np.arange(n_chains), DRAW: np.arange(n_draws)}
    return xr.Dataset(variables, index | {k: v for k, v in coords.items() if k in used})


def read_draws(
    tree: Any, params: Mapping[str, tuple[str, ...]], coords: Coords
) -> dict[str, Array]:
    """Draws of `params` from a posterior, by whatever route it was sampled.

    Parameters
    ----------
    tree : xarray.DataTree or xarray.Dataset
        With a group ``posterior``, or that group. Its other variables are not looked at.
    params : {name: dims}
    coords : {dim: labels}
        Where the posterior has the same labels in another order, they are put in this one.

    Returns
    -------
    {name: (chain, draw, *dims)}
        float64.

    Raises
    ------
    TypeError
        If `tree` is neither.
    ValueError
        If a parameter is not there, has other dims or labels, or a draw that is not finite.
    """
    dataset = _posterior_group(tree)
    sizes = {name: len(labels) for name, labels in coords.items()}
    orders: dict[str, Array | None] = {}
    out = {}
    for name, dims in params.items():
        wanted = (CHAIN, DRAW, *dims)
        if name not in dataset.data_vars:
            raise ValueError(
                f"the posterior has no variable {name!r} with dims {wanted}, only "
                f"{sorted(map(str, dataset.data_vars))}; draw it from this classifier's own model: "
                "posterior_, draw_posterior() or to_pymc()"
            )
        variable = dataset[name].variable
        if set(variable.dims) != set(wanted):
            raise ValueError(
                f"{name!r} of the posterior has dims {variable.dims}, expected {wanted}; rename "
                "or unstack them, or draw it from to_pymc(), which names its dims"
            )
        variable = variable.transpose(*wanted)
        for dim in dims:
            if variable.sizes[dim] != sizes.get(dim, variable.sizes[dim]):
                raise ValueError(
                    f"{name!r} of the posterior has {variable.sizes[dim]} along {dim!r}, but the "
                    f"classifier has {sizes[dim]}; use draws of this classifier's own model"
                )
            if dim not in orders:
                orders[dim] = _order(dataset, dim, coords)
            if orders[dim] is not None:
                variable = variable.isel({dim: orders[dim]})
        value = np.asarray(variable.values, dtype=np.float64)
        if value.size == 0 and 0 in value.shape[:2]:
            raise ValueError(f"{name!r} of the posterior has no draws: {dict(variable.sizes)}")
        if not np.isfinite(value).all():
            chain, draw = np.argwhere(~np.isfinite(value))[0][:2]
            raise ValueError(
                f"{name!r} of the posterior is not finite, first in chain {chain}, draw {draw}; "
                "drop the draws that failed, or sample again"
            )
        out[name] = value
    return out


def _posterior_group(tree: Any) -> "xr.Dataset":
    import xarray as xr

    if isinstance(tree, xr.DataTree):
        if POSTERIOR in tree.children:
            return tree.children[POSTERIOR].to_dataset()
        if CHAIN in tree.dims:
            return tree.to_dataset()
        raise ValueError(
            f"the DataTree has no group {POSTERIOR!r}, only {sorted(tree.children)}; give one "
            "with posterior draws, as posterior_ or sample_posterior() return"
        )
    if isinstance(tree, xr.Dataset):
        return tree
    raise TypeError(
        "posterior must be an xarray.DataTree with a group 'posterior', or that group as a "
        f"Dataset, got {type(tree).__name__}"
    )


def _order(dataset: "xr.Dataset", dim: str, coords: Coords) -> Array | None:
    """Positions that put the labels of `dim` in the order of `coords`; None: they are."""
    if dim not in coords or dim not in dataset.coords:
        return None
    mine, theirs = (np.asarray(c[dim]).tolist() for c in (coords, dataset.coords))
    if mine == theirs:
        return None
    place = {label: k for k, label in enumerate(theirs)}
    if len(place) < len(theirs) or set(place) != set(mine):
        differ = ((t, m) for t, m in zip(theirs, mine, strict=True) if t != m)
        first = next(((t, m) for t, m in differ if t not in mine or m not in place), None)
        raise ValueError(
            f"the labels of {dim!r} in the posterior are not those of the classifier"
            + (f" ({first[0]!r} where it has {first[1]!r})" if first else " (some occur twice)")
            + "; use draws of this classifier's own model, or rename them"
        )
    return np.array([place[label] for label in mine])


def group(variables: Mapping[str, tuple[tuple[str, ...], Array]], coords: Coords) -> "xr.Dataset":
    """{name: (dims, values)} as a Dataset; what has no labels in `coords` is counted from 0."""
    import xarray as xr

    out = xr.Dataset({name: (list(dims), value) for name, (dims, value) in variables.items()})
    counted = {d: np.arange(n) for d, n in out.sizes.items()}
    labels = {k: v for k, v in coords.items() if out.sizes.get(k) == len(v)}
    return out.assign_coords(counted | labels)


def with_draws(
    variables: Mapping[str, tuple[tuple[str, ...], Array]],
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """The same with dims (chain, draw) in front."""
    return {name: ((CHAIN, DRAW, *dims), value) for name, (dims, value) in variables.items()}


def split_chains(draws: Mapping[str, Array], chains: int) -> dict[str, Array]:
    """{name: (chains * n, ...)} to {name: (chains, n, ...)}."""
    return {k: v.reshape(chains, -1, *v.shape[1:]) for k, v in draws.items()}
