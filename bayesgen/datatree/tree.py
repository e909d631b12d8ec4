"""The only builder and reader of the DataTree: arrays with named dims in and out.

``posterior`` and its like hold draws (chain, draw, *dims); `bayesgen.datatree.fit` makes the group
of hyper-parameters. Every tree says by whom, how and when it was made (`provenance`).
"""

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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
        With a group ``posterior``, or that group. Its other variables are not looked at. Arrays
        are (chain, draw, *dims). Without chain they are one chain, without both one draw.
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
    import xarray as xr

    draws = {}
    dataset = xr.Dataset() if isinstance(tree, dict) else posterior_group(tree)
    variables = tree if isinstance(tree, dict) else dataset.variables
    for name, dims in params.items():
        cells = cells_of(dims, coords)
        if cells is not None:
            dims = (*dims[:-2], str(cells_dim(dims)))
        wanted = (CHAIN, DRAW, *dims)
        if name not in variables:
            raise ValueError(
                f"the posterior has no variable {name!r} with dims {wanted}, only "
                f"{sorted(map(str, variables))}; draw it from this classifier's own model: "
                "posterior_, draw_posterior() or to_pymc()"
            )
        variable = variables[name]
        if isinstance(tree, dict):
            value = np.asarray(variable)
            variable = xr.Variable(wanted[max(0, len(wanted) - value.ndim) :], value)
        absent = {dim: 1 for dim in (CHAIN, DRAW) if dim not in variable.dims}
        variable = variable.set_dims(absent | dict(variable.sizes))
        if set(variable.dims) != set(wanted):
            raise ValueError(
                f"{name!r} of the posterior has dims {variable.dims}, expected {wanted}; rename "
                "or unstack them, or draw it from to_pymc(), which names its dims"
            )
        variable = variable.transpose(*wanted)
        for dim in dims:
            if variable.sizes[dim] != len(coords.get(dim, range(variable.sizes[dim]))):
                raise ValueError(
                    f"{name!r} of the posterior has {variable.sizes[dim]} along {dim!r}, but the "
                    f"classifier has {len(coords[dim])}; use draws of this classifier's own model"
                )
            if dim in coords and dim in dataset.indexes:
                variable = variable.isel({dim: _order(dataset, dim, coords)})
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
    """Return the draws of a tree, or draws as they are; those of `arviz.extract` are one chain."""
    import xarray as xr

    if isinstance(tree, xr.DataTree):
        tree = tree.children.get(POSTERIOR, tree)
        if not tree.data_vars:
            raise ValueError(
                f"the DataTree has no group {POSTERIOR!r}, only {sorted(tree.children)}; give one "
                "with posterior draws, as posterior_ or sample_posterior() return"
            )
        tree = tree.to_dataset()
    if not isinstance(tree, xr.Dataset):
        raise TypeError(
            "posterior must be an xarray.DataTree with a group 'posterior', that group as a "
            f"Dataset, or a dict of arrays, got {type(tree).__name__}"
        )
    if _STACKED not in tree.dims:
        return tree
    plain = tree.drop_vars([_STACKED, CHAIN, DRAW], errors="ignore")
    return plain.rename({_STACKED: DRAW}).expand_dims(CHAIN)


def _order(dataset: "xr.Dataset", dim: str, coords: Coords) -> Array:
    """Return positions that put the labels of `dim` in the order of `coords`."""
    import pandas as pd

    mine, theirs = pd.Index(np.asarray(coords[dim])), dataset.indexes[dim]
    if set(mine) != set(theirs) or not theirs.is_unique:
        other = theirs.difference(mine, sort=False).tolist()
        absent = mine.difference(theirs, sort=False).tolist()
        why = f"{other[0]!r} where it has {absent[0]!r}" if other and absent else "some occur twice"
        raise ValueError(
            f"the labels of {dim!r} in the posterior are not those of the classifier ({why}); use "
            "draws of this classifier's own model, or rename them"
        )
    return theirs.get_indexer(mine)


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
    POSTERIOR_PREDICTIVE: {LABEL: "class code drawn from p(y | x, theta), given x of the row"},
    PRIOR_PREDICTIVE: {LABEL: "class code drawn from the class weights pi, whatever x of the row"},
    LOG_LIKELIHOOD: {
        LABEL: "log p(y | x, theta) of the observed label",
        JOINT: "log p(y, x | theta) of the observed label and features",
    },
}


def described(
    dataset: "xr.Dataset", name: str = OBSERVED_DATA, classes: Iterable[object] = ()
) -> "xr.Dataset":
    """Let the variables of the group `name` say what they are, in the attribute ``long_name``.

    `label` is drawn from different distributions in different groups, and PyMC draws its own
    from another one than we do: the name does not tell them apart, this does. Class codes have
    the classes beside them, in the attribute ``classes``.
    """
    for variable, text in _LONG_NAMES.get(name, {}).items():
        if variable in dataset:
            dataset[variable].attrs["long_name"] = text
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
