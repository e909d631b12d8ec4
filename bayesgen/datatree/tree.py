"""The only builder and reader of the DataTree: arrays with named dims in and out.

``posterior`` and its like hold draws (chain, draw, *dims); `bayesgen.datatree.fit` makes the group
of hyper-parameters. Every tree says by whom, how and when it was made (`provenance`).
"""

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from bayesgen.families.names import CATEGORY, CHAIN, DRAW, FEATURE, OBS
from bayesgen.families.shared.pymc_parts import Cells, by_cell, cells_dim, cells_of, padded
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.datatree.result_table import ResultTable


# ------------------------------------------------------------------------------------------------
# Names of the groups of a DataTree, and of the variables in them that the package makes.
#
# ArviZ's names where it has one. Dimensions are in `bayesgen.families.names`.

POSTERIOR: Final = "posterior"
SAMPLE_STATS: Final = "sample_stats"
PRIOR: Final = "prior"
PRIOR_PREDICTIVE: Final = "prior_predictive"
POSTERIOR_PREDICTIVE: Final = "posterior_predictive"
LOG_LIKELIHOOD: Final = "log_likelihood"
LOG_PRIOR: Final = "log_prior"
OBSERVED_DATA: Final = "observed_data"
CONSTANT_DATA: Final = "constant_data"
PREDICTIONS: Final = "predictions"
SUMMARY: Final = "summary"  # mean, interval, diagnostics
FIT: Final = "fit"
LEAVE_ONE_OUT: Final = "leave_one_out"  # in a model file, scores of the training rows
TRAINING_ROWS: Final = "training_rows"  # and, of a pool, these rows
# groups that are made on request
REQUESTS: Final = (PRIOR, PRIOR_PREDICTIVE, POSTERIOR_PREDICTIVE, LOG_LIKELIHOOD, LOG_PRIOR)

LABEL: Final = "label"  # class codes; in log_likelihood, log p(y | x, theta), which scores them
FEATURES: Final = "x"
_STACKED: Final = "sample"  # ArviZ's dim of chains and draws in one
INDICATORS: Final = "indicators"  # asked for: of each class a variable is_<class>
JOINT: Final = "joint"  # in log_likelihood, log p(y, x | theta)


def indicator(label: object) -> str:
    """Name the variable that is 1 in rows of a class, 0 in others."""
    return f"is_{label}"


Coords = Mapping[str, Any]


def draws_dataset(
    draws: Mapping[str, Array], params: Mapping[str, tuple[str, ...]], coords: Coords
) -> "xr.Dataset":
    """Return draws {name: (chain, draw, *dims)} as a Dataset.

    Features with categories of their own (`Cells` among `coords`) are listed cell by cell.
    """
    return group(with_draws({name: (params[name], value) for name, value in draws.items()}), coords)


def read_draws(tree, params: Mapping[str, tuple[str, ...]], coords: Coords) -> dict[str, Array]:
    """Return draws of `params` from a posterior, by whatever route it was sampled.

    Parameters
    ----------
    tree : xarray.DataTree, xarray.Dataset, or {name: array}
        With a group ``posterior``, or that group. Its other variables are not looked at. Arrays,
        and variables without names of dims, are (chain, draw, *dims); without chain they are one
        chain, without both one draw.
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
    dataset = posterior_group(tree)
    sizes = {name: len(labels) for name, labels in coords.items()}
    orders: dict[str, Array | None] = {}
    draws = {}
    for name, padded_dims in params.items():
        dims, cells = padded_dims, cells_of(padded_dims, coords)
        if cells is not None:
            dims = (*dims[:-2], str(cells_dim(dims)))
        wanted = (CHAIN, DRAW, *dims)
        if name not in dataset.data_vars:
            raise ValueError(
                f"the posterior has no variable {name!r} with dims {wanted}, only "
                f"{sorted(map(str, dataset.data_vars))}; draw it from this classifier's own model: "
                "posterior_, draw_posterior() or to_pymc()"
            )
        variable = _with_draws(dataset[name].variable, dims)
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
        draws[name] = value if cells is None else padded(value, cells)
    return draws


def posterior_group(tree) -> "xr.Dataset":
    """Return the draws of a tree, or draws as they are."""
    import xarray as xr

    if isinstance(tree, xr.DataTree):
        if POSTERIOR in tree.children:
            return _unstacked(tree.children[POSTERIOR].to_dataset())
        if tree.data_vars:
            return _unstacked(tree.to_dataset())
        raise ValueError(
            f"the DataTree has no group {POSTERIOR!r}, only {sorted(tree.children)}; give one "
            "with posterior draws, as posterior_ or sample_posterior() return"
        )
    if isinstance(tree, xr.Dataset):
        return _unstacked(tree)
    if isinstance(tree, Mapping):
        arrays = {str(name): np.asarray(value) for name, value in tree.items()}
        unnamed = {k: tuple(f"{k}_dim_{i}" for i in range(v.ndim)) for k, v in arrays.items()}
        return xr.Dataset({name: (unnamed[name], value) for name, value in arrays.items()})
    raise TypeError(
        "posterior must be an xarray.DataTree with a group 'posterior', that group as a Dataset, "
        f"or a dict of arrays, got {type(tree).__name__}"
    )


def _unstacked(dataset: "xr.Dataset") -> "xr.Dataset":
    """Return draws that `arviz.extract` has stacked by chain and draw; some are one chain."""
    both = {CHAIN, DRAW}
    indexed = (dim for dim in dataset.dims if dim in dataset.indexes)
    stacked = next((dim for dim in indexed if both <= {*dataset.indexes[dim].names}), None)
    if stacked is not None:
        whole = dataset.unstack([stacked])
        if whole.sizes[CHAIN] * whole.sizes[DRAW] == dataset.sizes[stacked]:
            return whole
    elif _STACKED in dataset.dims:
        stacked = _STACKED
    else:
        return dataset
    plain = dataset.drop_vars([stacked, CHAIN, DRAW], errors="ignore")
    return plain.rename({stacked: DRAW}).expand_dims(CHAIN)


def _with_draws(variable: "xr.Variable", dims: tuple[str, ...]) -> "xr.Variable":
    """Return a parameter with dims chain and draw and its own, where those that it has tell them.

    Parameters
    ----------
    dims : names of the parameter's own dims, in the order of an array whose dims have no names
    """
    both = [CHAIN, DRAW]
    others = [dim for dim in variable.dims if dim not in both]
    unnamed = [dim for dim in others if "_dim_" in str(dim)]  # as xarray and PyMC count them
    names: dict[Hashable, str] = {}
    if dims and len(unnamed) >= len(dims):
        names |= zip(unnamed[-len(dims) :], dims, strict=True)
    lead = [dim for dim in others if dim not in names and dim not in dims]
    if len(lead) == 1 and DRAW not in variable.dims:
        names[lead[0]] = DRAW
    elif len(lead) == 2 and {*lead} <= {*unnamed}:
        names |= zip(lead, both, strict=True)
    renamed = type(variable)([names.get(dim, dim) for dim in variable.dims], variable.data)
    absent = {dim: 1 for dim in both if dim not in renamed.dims}
    return renamed.set_dims(absent | dict(renamed.sizes)) if absent else renamed


def _order(dataset: "xr.Dataset", dim: str, coords: Coords) -> Array | None:
    """Return positions that put the labels of `dim` in the order of `coords`; None: they are."""
    if dim not in coords or dim not in dataset.coords:
        return None
    each = np.asarray(coords[dim]), np.asarray(dataset.coords[dim])
    if all(labels.dtype.kind == "M" for labels in each):  # xarray has units of its own
        unit = np.result_type(*each)
        each = each[0].astype(unit).astype(str), each[1].astype(unit).astype(str)
    mine, theirs = (labels.tolist() for labels in each)
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
    """Return {name: (dims, values)} as a Dataset; without labels in `coords` dims are counted."""
    import xarray as xr

    if any(isinstance(labels, Cells) for labels in coords.values()):
        variables = {k: by_cell(dims, value, coords) for k, (dims, value) in variables.items()}
    dataset = xr.Dataset({name: (list(dims), value) for name, (dims, value) in variables.items()})
    counted = {d: np.arange(n) for d, n in dataset.sizes.items()}
    return labelled(dataset.assign_coords(counted), coords)


def labelled(dataset: "xr.Dataset", coords: Coords) -> "xr.Dataset":
    """Put labels on the dims of a group.

    Each cell's ``feature`` and ``category`` are attributes of the coordinate ``feature_category``.
    """
    for dim, cells in coords.items():
        if isinstance(cells, Cells) and dim in dataset.dims:
            # attributes: ArviZ stacks variables, which must have all their coordinates in common
            apart = {FEATURE: cells.feature.tolist(), CATEGORY: cells.category.tolist()}
            dataset = dataset.assign_coords({dim: (dim, list(cells), apart)})
    fits = (k for k, v in coords.items() if dataset.sizes.get(k) == len(v))
    return dataset.assign_coords({k: coords[k] for k in fits if not isinstance(coords[k], Cells)})


def result_table(
    dataset: "xr.Dataset", title: str, shown: Sequence[str] = (), first: str = ""
) -> "ResultTable":
    """Return a Dataset that prints as a table; arguments are attributes of `ResultTable`."""
    from bayesgen.datatree.result_table import ResultTable

    form = {"title": title, "shown": list(shown), "first": first}
    attrs = dataset.attrs | {name: value for name, value in form.items() if value}
    return ResultTable(dataset.data_vars, dataset.coords, attrs)


_LONG_NAMES = {  # {group: {variable: what it is}}
    OBSERVED_DATA: {LABEL: "class code of the row: position in classes"},
    POSTERIOR_PREDICTIVE: {
        LABEL: "class code drawn from p(y | x, theta), given the features x of the row",
    },
    PRIOR_PREDICTIVE: {
        LABEL: "class code drawn from the class weights pi, whatever the features of the row",
    },
    LOG_LIKELIHOOD: {
        LABEL: "log p(y | x, theta) of the observed label",
        JOINT: "log p(y, x | theta) of the observed label and features",
    },
    LOG_PRIOR: {
        "pi": "log prior density of the class weights",
        "theta": "log prior density of all parameters of the features",
    },
}


def described(
    dataset: "xr.Dataset",
    name: str = OBSERVED_DATA,
    *,
    classes=(),
    discriminative: bool = False,
) -> "xr.Dataset":
    """Let the variables of the group `name` say what they are, in the attribute ``long_name``.

    `label` is drawn from different distributions in different groups, and PyMC draws its own
    from another one than we do: the name does not tell them apart, this does. Class codes have
    the classes beside them, in the attribute ``classes``.
    """
    texts = _LONG_NAMES.get(name, {})
    if discriminative and name == PRIOR_PREDICTIVE:  # no class weights: the prior of theta decides
        texts = _LONG_NAMES[POSTERIOR_PREDICTIVE]
    if name == LOG_LIKELIHOOD:
        texts = texts | {
            indicator(c): f"log p of whether the label is {c}, given x and theta" for c in classes
        }
    for variable in set(texts) & set(map(str, dataset.data_vars)):
        dataset[variable].attrs["long_name"] = texts[variable]
    if LABEL in dataset and dataset[LABEL].dtype.kind in "iu":
        dataset[LABEL].attrs["classes"] = [str(c) for c in classes]
    return dataset


def with_draws(
    variables: Mapping[str, tuple[tuple[str, ...], Array]],
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Put the dims (chain, draw) in front."""
    return {name: ((CHAIN, DRAW, *dims), value) for name, (dims, value) in variables.items()}


def as_in_numpy(
    draws: Mapping[str, Array], params: Mapping[str, tuple[str, ...]], coords: Coords
) -> dict[str, Array]:
    """Return draws {name: (..., *dims)} of a PyMC model; what it lists by cell, padded again."""
    each = ((name, value, cells_of(params[name], coords)) for name, value in draws.items())
    return {name: v if cells is None else padded(v, cells) for name, v, cells in each}


def provenance(
    family: str, route: str, random_state=None, library: str = "bayesgen"
) -> dict[Hashable, Any]:
    """Return attributes of a tree: what made it, how and when.

    Parameters
    ----------
    family : str
        Name of the family.
    route : str
        ``"closed form"``, ``"nuts"``, ...
    random_state : int, optional
        Recorded as ``seed``; a generator has no number to record, and there is no ``seed``.
    library : str
        The distribution that drew: ``bayesgen``, or a sampler such as ``nutpie``.

    Returns
    -------
    dict
        ``created_at`` (ISO 8601, UTC), ``inference_library``, ``inference_library_version``,
        ``bayesgen_version``, ``family``, ``route``, and ``seed`` if it is known. They belong to
        the tree as a whole: groups that hold the same numbers are identical.
    """
    from datetime import UTC, datetime
    from importlib.metadata import version

    from bayesgen.version import __version__

    attrs: dict[Hashable, Any] = {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "inference_library": library,
        "inference_library_version": __version__ if library == "bayesgen" else version(library),
        "bayesgen_version": __version__,
        "family": family,
        "route": route,
    }
    if isinstance(random_state, int | np.integer):
        attrs["seed"] = int(random_state)
    return attrs


def row_names(X) -> Array | None:
    """Return the index (N,) of a pandas frame or series; None of rows that are counted from 0."""
    index: Any = getattr(X, "index", None)  # the method of a list, or labels of several levels:
    return index.to_numpy() if getattr(index, "nlevels", 0) == 1 else None


def named_rows[Function: Callable[..., Any]](function: Function) -> Function:
    """Decorate a function of (classifier, X, ...) to return X's index as ``obs_id``.

    Of a pandas frame or series: rows of others, and of a frame that was never indexed, are counted
    from 0. The result is a Dataset or a DataTree.
    """

    @functools.wraps(function)
    def wrapper(*args, **options):
        result = function(*args, **options)
        names = row_names(args[1] if len(args) > 1 else options["X"])
        if names is None:
            return result
        labels = {OBS: names}
        if not hasattr(result, "subtree"):
            return result.assign_coords(labels)
        for node in result.subtree:
            if OBS in node.dims:
                node.dataset = node.to_dataset(inherit=False).assign_coords(labels)
        return result

    return cast(Function, wrapper)
