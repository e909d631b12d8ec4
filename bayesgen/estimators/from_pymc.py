r"""Any PyMC model in which a label is observed, as a classifier.

.. math:: \theta \sim p(\theta), \qquad y_i \sim \text{Categorical}(p(\theta, z_i)), \qquad
          x_i \sim p(x \mid y_i, \theta, z_i)

The model has the observed label y, other observed variables x that depend on it, and data of rows
z that are given. The density of a row given its class and theta is that of
`families.shared.graph_rows`, and the `log_likelihood` of a family; all else is what every sampled
family has. What depends on other rows, or on arrays that have one value for each training row, is
refused.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from bayesgen.datatree.tree import POSTERIOR, posterior_group, read_draws
from bayesgen.encoding.reader import Reader
from bayesgen.encoding.tables import kept
from bayesgen.errors import InputError
from bayesgen.estimators.arguments import Labels, PerRow, RowsLike, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.contract import Family, Stats, Theta
from bayesgen.families.names import CHAIN, CLASS, CLASS_WEIGHTS, DRAW
from bayesgen.families.shared.graph_rows import (
    GraphRows,
    RowColumns,
    ancestors,
    at_a_point,
    believed,
    columns_of,
    container,
    evaluated,
    likely_point,
    name_of,
    points,
    rebuilt,
    to_class_order,
)
from bayesgen.inference import nuts
from bayesgen.inference.trees import sampled_tree, tree_of, with_draws
from bayesgen.numerics.rows import Matrix, class_counts, has_nan
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.fitted import GIVEN, Fitted, Training
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    import pymc as pm

_OWN_ROWS = (
    "{} takes no rows: the model holds them. Set them there (pm.set_data), and call from_pymc again"
)


type Variable = Any  # of PyTensor, which has no types


def from_pymc(model: "pm.Model", label: str = "label") -> "PyMCClassifier":
    """Return a classifier from a PyMC model of labels and rows.

    Parameters
    ----------
    model : pymc.Model
        The model has an observed Categorical or Bernoulli variable, the label. The parameters of
        the other observed variables depend on it (``mu[label]``, or ``mu[y]`` with the `pm.Data`
        ``y`` that it observes). Priors are of any kind. Masked arrays hold missing cells. Declare
        data that new rows have too, such as covariates of a regression, as `pm.Data`.
    label : str
        Name of the variable that holds the labels.

    Returns
    -------
    PyMCClassifier
        The classifier holds the rows of the model. ``fit()`` samples it, and
        ``with_posterior(trace)`` uses existing draws. New rows are tables with the columns of the
        model's data. `columns_` names them, after the data containers or the observed variables.
        NaN is a missing cell. It is integrated out, or refused if the model needs its value.

    Raises
    ------
    ValueError
        If rows do not depend on the label, or their density is not a product over rows. The
        message gives the reason.

    Examples
    --------
    >>> import pymc as pm
    >>> import xarray as xr
    >>> import bayesgen as bg
    >>> bill = np.array([38.0, 39.5, 47.0, 48.1, 46.2])
    >>> with pm.Model(coords={"species": ["Adelie", "Gentoo"]}) as model:
    ...     weights = pm.Dirichlet("weights", [1.0, 1.0], dims="species")
    ...     species = pm.Categorical("label", weights, observed=[0, 0, 1, 1, 1])
    ...     mu = pm.Normal("mu", 43, 10, dims="species")
    ...     x = pm.Normal("bill", mu[species], 2.0, observed=bill)
    >>> clf = bg.from_pymc(model)
    >>> clf.columns_
    ['bill']
    >>> dims = ("chain", "draw", "species")
    >>> mu_draws = np.array([[[38.0, 47.0], [39.0, 46.5], [38.5, 47.2], [39.2, 47.5]]])
    >>> trace = xr.Dataset({"weights": (dims, [[[0.4, 0.6]] * 4]), "mu": (dims, mu_draws)})
    >>> clf.with_posterior(trace).predict_proba([[38.0]]).round(2)
    array([[1., 0.]])
    """
    clf = PyMCClassifier(model, label)
    clf._of_rows  # noqa: B018 - refuses a model of other kinds
    return clf


# ------------------------------------------------------------------------------------------------
# What a model says of its rows.


class Roles(NamedTuple):
    """Which variable of a PyMC model is what."""

    model: Variable
    label: Variable
    label_data: Variable  # the data container that it observes, if it is one
    codes: Array  # (N,) the observed label
    p: Variable  # its probabilities, the last axis of which are classes
    free: list[Variable]  # free variables, without cells that PyMC imputes
    parts: list[RowColumns]  # observed first
    masks: dict[str, Variable]  # of parts whose cells may be missing: see `GraphRows`
    needed: dict[str, str]  # {part whose cells must be known: why}
    length: Variable  # of the dim of rows, if that can change
    classes: Array  # sorted
    order: Array  # (C,) the model's codes of the sorted classes
    by_row: bool  # whether the probabilities of labels depend on the row


def find_roles(model, label: str, columns: bool = True) -> Roles:
    """Find labels, rows and classes; refuse what is no model of labelled rows.

    `columns`: whether data of N entries without a dim of the rows are a column.
    """
    y = _label(model, label)
    observed = [v for v in model.observed_RVs if v is not y]
    if not observed:
        raise ValueError(
            "nothing but the label is observed: the model says how labels depend on data, not how "
            "rows depend on labels; see BayesianLogisticRegression"
        )
    codes = evaluated(model.rvs_to_values[y]).astype(np.int64)
    label_data = container(model.rvs_to_values[y])
    parts = [columns_of(model, v) for v in observed]
    held = [label_data, *(block.data for block in parts)]
    parts, masks = _with_given(model, label, len(codes), parts, held, columns)
    _refuse_other_lengths(parts, y, codes)
    _refuse_independent(y, label_data, codes, parts)
    for v in model.potentials:
        if {y, *held, *observed} & ancestors([v]) - {None}:
            raise ValueError(
                f"the potential {v.name!r} depends on rows, and a potential has no terms of single "
                "rows: write it as an observed variable (pm.CustomDist)"
            )
    p = _probabilities(y)
    needed = _needed(parts, masks, ancestors([p]))
    names = [name for block in parts for name in block.columns]
    if len(set(names)) < len(names):
        parts = [k._replace(columns=[f"{k.name}[{c}]" for c in k.columns]) for k in parts]
    imputed = {f"{block.name}_unobserved" for block in parts if block.joined is not None}
    free = [v for v in model.free_RVs if v.name not in imputed]
    length = model.dim_lengths.get((model.named_vars_to_dims.get(label) or (None,))[0])
    by_row = p.ndim > 1 or bool({block.data for block in parts} - {None} & ancestors([p]))
    classes = _class_labels(model, y, p)
    order = np.argsort(classes, kind="stable")
    ways = masks, needed, length, classes[order], order, by_row
    return Roles(model, y, label_data, codes, p, free, parts, *ways)


def _refuse_taken_names(roles: Roles) -> None:
    """Raise where a name that results need means something else in the model."""
    model = roles.model
    observed = [i for v in model.observed_RVs if v is not roles.label for i in v.owner.inputs]
    pi = model.named_vars.get(CLASS_WEIGHTS)
    if pi is not None and (
        pi is not roles.p or roles.by_row or pi in ancestors(observed, [roles.label])
    ):
        raise ValueError(
            f"results call the class weights {CLASS_WEIGHTS!r}, and that variable of the model "
            "is something else: give it another name"
        )
    ours = model.coords.get(CLASS)
    if ours is not None and list(ours) != [roles.classes[k] for k in np.argsort(roles.order)]:
        raise ValueError(
            "results call the dim of the labels 'class', and that dim of the model is "
            "something else: give it another name"
        )


def _label(model, label: str):
    """Return the variable of labels; raise if the model has none."""
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise TypeError(f"from_pymc takes a pymc.Model, got {type(model).__name__}")
    for v in model.observed_RVs:
        if name_of(v) == "MinibatchRandomVariable":
            raise ValueError(
                f"{v.name!r} has total_size=, and counts its rows more than once: leave it out, "
                "and observe all rows"
            )
    if f"{label}_unobserved" in model:
        raise ValueError(
            f"cells of {label!r} are missing: leave rows without a label out of the model"
        )
    y = next((v for v in model.observed_RVs if v.name == label), None)
    if y is None or name_of(y) not in ("Categorical", "Bernoulli") or y.ndim != 1:
        names = ", ".join(f"{v.name} ({name_of(v)})" for v in model.observed_RVs)
        raise ValueError(
            f"{label!r} must be a Categorical or Bernoulli variable of the model, one for each row "
            f"and all observed; observed are: {names or 'none'}. Name it by label=, or add it, and "
            "write rows of all classes as one variable with parameters theta[label]"
        )
    return y


def _with_given(
    model, label: str, n: int, parts: list[RowColumns], held: list[Variable], columns: bool
) -> tuple[list[RowColumns], dict[str, Variable]]:
    """Parts of observed variables, and of the data that rows are given with; masks of cells.

    Hyper-parameters, which rows depend on through free variables alone, are no columns.
    """
    dims = model.named_vars_to_dims
    row_dim = (dims.get(label) or (None,))[0]
    depend = [i for v in model.observed_RVs for i in v.owner.inputs]
    direct, masks = ancestors(depend, model.free_RVs), {}
    for data in model.data_vars:
        dim, shape = dims.get(data.name), np.shape(data.get_value())
        of_rows = dim[0] == row_dim if dim and row_dim else shape[:1] == (n,) and columns
        if not of_rows or data not in direct or any(data is k for k in held):
            continue
        of = data.name.removesuffix("seen") + "cells"  # as `pymc_parts.observe_cells` has them
        if data.name.endswith("seen") and any(block.name == of for block in parts):
            masks[of] = data
        else:
            parts = [*parts, columns_of(model, None, data)]
    return parts, masks


def _refuse_other_lengths(parts: list[RowColumns], y, codes: Array) -> None:
    """Raise where the first axis of a part are not the rows."""
    n, counts = len(codes), np.bincount(codes)
    for block in parts:
        shape = block.value.shape
        if shape[:1] == (n,):
            continue
        depends = block.variable is not None and y in ancestors(block.variable.owner.inputs)
        advice = ""
        if depends:
            advice = (
                ". If its entries are words or cells, each with the number of its row, give every "
                "row one line: counts in a pm.Multinomial, or a column for each cell"
            )
        elif len(shape) and shape[0] in counts:
            advice = (
                ". If it holds the rows of one class, write one variable for all classes, with "
                f"theta[{y.name}] for its parameters"
            )
        raise ValueError(
            f"{block.name!r} has shape {shape}: its first axis must be the {n} rows{advice}"
        )


def _refuse_independent(y, label_data, codes: Array, parts: list[RowColumns]) -> None:
    """Raise where rows do not depend on the label that is observed, or on a copy of it."""
    from pytensor.graph.basic import Constant

    depends = False
    observed = [block for block in parts if block.variable is not None]
    for block in observed:
        reached = ancestors(block.variable.owner.inputs)
        depends |= y in reached or label_data in reached
        copies = (c.data for c in reached if isinstance(c, Constant) and np.size(c.data) > 1)
        if any(np.shape(c) == codes.shape and np.array_equal(c, codes) for c in copies):
            raise ValueError(
                f"{block.name!r} depends on an array that equals the label, not on the label: in "
                f"the graph it is the same for every class. Write theta[{y.name}] with the "
                f"variable that pm.{name_of(y)} returns (or one pm.Data for both) in place of the "
                "raw array"
            )
    if not depends:
        names = ", ".join(repr(block.name) for block in observed)
        raise ValueError(
            f"{names} do not depend on {y.name!r}, and are not evidence of the class: write "
            f"theta[{y.name}] with the variable that pm.{name_of(y)} returns"
        )


def _needed(
    parts: list[RowColumns], masks: dict[str, Variable], of_label: set[Variable]
) -> dict[str, str]:
    """{part whose cells must be known: why}; the masks of all others are added to `masks`."""
    needed = {}
    variables = [block.variable for block in parts if block.variable is not None]
    reached = ancestors(i for v in variables for i in v.owner.inputs) | of_label
    for block in parts:
        if block.name in masks:
            continue
        if block.variable is None:
            needed[block.name] = "the model has no distribution of this column: fill its cells"
        elif block.variable.owner.op.ndim_supp:
            needed[block.name] = (
                f"the density of {block.name!r} ({name_of(block.variable)}) is of whole rows: "
                "leave incomplete rows out"
            )
        elif {block.data, block.variable, block.joined} & reached - {None}:
            needed[block.name] = (
                f"other columns depend on {block.name!r}: leave incomplete rows out"
            )
        else:
            masks[block.name] = None
        if block.name in needed and block.joined is not None:
            raise ValueError(f"cells of {block.name!r} are missing: {needed[block.name]}")
    return needed


def _probabilities(y):
    """Return (C,) or (N, C) probabilities of the label."""
    import pytensor.tensor as pt

    p = y.owner.op.dist_params(y.owner)[0]
    one = 1 if name_of(y) == "Categorical" else 0  # axes of one probability distribution
    while p.ndim > one and p.type.shape[0] == 1 and p.owner and len(p.owner.inputs) == 1:
        p = p.owner.inputs[0]  # an axis of length 1 for all rows
    return p if one else pt.stack([1 - p, p], axis=-1)


def _class_labels(model, y, p) -> Array:
    """Return (C,) labels of the classes in the model's order, by the dim that has them.

    That is the dim of p, or of an axis that the label indexes, or the one dim of that length.
    """
    n = p.type.shape[-1] or int(np.shape(at_a_point(model, [p])[0])[-1])
    dims = model.named_vars_to_dims
    nodes = [v.owner for v in ancestors(model.observed_RVs) if v.owner is not None]
    indexed = {dims[k.inputs[0].name][0] for k in nodes if y in k.inputs[1:] and _has_dims(k, dims)}
    named = {d for v in model.free_RVs for d in dims.get(v.name) or ()}
    for candidates in ((dims.get(p.name) or ())[-1:], indexed, named):
        labels = [list(model.coords[d]) for d in candidates if len(model.coords.get(d) or ()) == n]
        if len(labels) == 1:
            return np.asarray(labels[0])
    return np.arange(n)


def _has_dims(node, dims) -> bool:
    """Return whether the first input of a node is a variable with named dims."""
    return bool(dims.get(node.inputs[0].name) if node.inputs else None)


# ------------------------------------------------------------------------------------------------
# The family.


@dataclass(frozen=True, eq=False)
class PyMCFamily(Family):
    """Rows as a PyMC model has them: densities by its graph, draws by its forward sampling.

    Parameters
    ----------
    roles : Roles
    shared : bool
        Whether one label serves all rows of a call; else each has its own, at a higher cost.
    covariates : (N, D), optional
        Rows whose covariates the simulated rows have.
    """

    kind: ClassVar[str] = "pymc"
    no_pymc: ClassVar[str] = (
        "the model is one already, clf.to_pymc(): pm.sample_prior_predictive draws its prior"
    )

    roles: Any = field(default=None, metadata={"graph": True})
    shared: bool = field(default=True, metadata={"graph": True})
    covariates: Any = field(default=None, metadata={"graph": True})

    @cached_property
    def params(self) -> dict[str, tuple[str, ...]]:
        """Free variables of the model, but for class weights that are called ``pi``."""
        model, dims_of = self.roles.model, {}
        for v in self.roles.free:
            dims = model.named_vars_to_dims.get(v.name) or (None,) * v.ndim
            dims_of[v.name] = tuple(d or f"{v.name}_dim_{i}" for i, d in enumerate(dims))
        dims_of.pop(CLASS_WEIGHTS, None)
        return dims_of

    @property
    def no_class_prior(self) -> str:
        """Why class weights cannot be replaced: they depend on the row."""
        why = "the class weights of this model depend on the row, and no other can replace them"
        return why if self.roles.by_row else ""

    def coords(self) -> dict[str, Any]:
        """Return the coordinates of the dims of the parameters."""
        coords = self.roles.model.coords
        used = {d for dims in self.params.values() for d in dims}
        return {d: list(coords[d]) for d in used if coords.get(d) is not None}

    # -- densities ---------------------------------------------------------------------------

    @cached_property
    def graph(self) -> GraphRows:
        """Rows as functions of the free variables."""
        roles = self.roles
        theta = {v.name: v for v in roles.free if v.name != CLASS_WEIGHTS}
        labels = [v for v in (roles.label, roles.label_data) if v is not None]
        rows_of_graph = roles.parts, roles.masks, roles.length, roles.order
        return GraphRows(theta, self.params, labels, *rows_of_graph, self.shared)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) log p(x_i | y_i = c, theta).

        Where class weights depend on the row it is log p(y_i = c, x_i | theta) + log C: ``pi`` of
        the posterior is 1/C then.
        """
        log_p = self.graph.log_likelihood(X, theta)
        if self.roles.by_row:
            values, _ = self.graph.in_order(theta)
            p = self.label_probabilities(values, self.graph.cells(X))
            with np.errstate(divide="ignore"):
                log_p += np.log(p * p.shape[-1]).reshape(log_p.shape)
        return log_p

    def label_probabilities(self, values: list[Array], cells: list[Array]) -> Array:
        """Return (S, 1 or n, C) label probabilities in the order of the sorted classes."""
        p: Array = self._probability(*cells, *values)
        p = p.reshape(-1, p.shape[-2] if self.roles.p.ndim > 1 else 1, p.shape[-1])
        shape = len(values[0]), *p.shape[1:]
        return np.broadcast_to(p, shape)[..., self.roles.order]

    @cached_property
    def _probability(self):
        """Return a function of rows and draws: p(y | theta) (S, C), or (S, n, C)."""
        free = {v: v.type(name=v.name) for v in self.roles.free}
        p = self.roles.p
        p = free[p] if p in free else rebuilt(p, self.graph.replaced | free)
        values = {v: t for v, t in free.items() if v.name in self.params or not self.roles.by_row}
        return self.graph.of_draws([], p, values)

    # -- draws -------------------------------------------------------------------------------

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) rows by PyMC's forward sampling.

        Raises
        ------
        NotImplementedError
            If rows depend on data without a distribution in the model.
        """
        absent = [block.name for block in self.roles.parts if block.variable is None]
        if absent and self.covariates is None:
            raise NotImplementedError(
                f"the model has no distribution of {', '.join(map(repr, absent))}, so rows cannot "
                "be simulated: posterior_groups draws the other columns given these"
            )
        return self.graph.simulate(rng, theta, y, self.covariates)

    # -- a local optimum -----------------------------------------------------------------------

    def held_model(self, theta: Theta) -> tuple[Any, dict[str, Array]]:
        """Return the model, which holds its rows, and draws (S, ...) of its free variables."""
        values, _ = self.graph.in_order(theta)
        draws = dict(zip(self.params, values, strict=True))
        if any(v.name == CLASS_WEIGHTS for v in self.roles.free):
            weights = theta[CLASS_WEIGHTS].reshape(-1, len(self.roles.order))
            draws[CLASS_WEIGHTS] = weights[:, np.argsort(self.roles.order)]
        return self.roles.model, draws

    def theta_of(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Theta and class weights, by sorted classes, of values of the free variables."""
        order = self.roles.order
        theta = {k: to_class_order(values[k], dims, order) for k, dims in self.params.items()}
        free = [np.asarray(values[v.name], v.dtype)[None] for v in self.roles.free]
        return theta | {CLASS_WEIGHTS: self.class_weights(free)[0]}

    def class_weights(self, free: list[Array]) -> Array:
        """Return (S, C) of draws of the free variables; 1/C where they depend on the row."""
        n = len(self.roles.order)
        if self.roles.by_row:
            return np.full((len(free[0]), n), 1 / n)
        return self.label_probabilities(free, self.graph.cells(_rows(self.roles)[:1]))[:, 0]

    def given_rows(self, X: Matrix) -> "PyMCFamily":
        """Return the family whose simulated rows have the covariates of X."""
        family = replace(self, covariates=X)
        family.__dict__["graph"] = self.graph  # with what it has compiled
        return family

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X."""
        return [name for block in self.roles.parts for name in block.columns]

    @property
    def exposure(self) -> Array:
        """Return (D,) whether a column is given, and has no distribution in the model."""
        return np.array(
            [block.variable is None for block in self.roles.parts for _ in block.columns]
        )


def family_of(model, label: str) -> PyMCFamily:
    """Return the family whose density of the model's own rows is the model's.

    Data of as many entries as rows are columns, or else a hyper-parameter.

    Raises
    ------
    ValueError
        If no row has a density of its own.
    """
    roles = find_roles(model, label)
    _refuse_taken_names(roles)
    if not PyMCFamily(roles).params:
        raise ValueError("the model has no free variable that rows could depend on")
    point, expected = likely_point(model)
    values = {v.name: point[v] for v in roles.free}
    every = [point[v][None] for v in roles.free]

    def log_joint(family: PyMCFamily, rows: Array) -> Array:
        X, theta = _rows(family.roles)[rows], family.theta_of(values)
        joint = family.log_likelihood(X, theta)
        if family.roles.by_row:
            return joint - np.log(len(roles.order))
        return joint + np.log(family.label_probabilities(every, family.graph.cells(X))[0])

    def candidates() -> Iterator[PyMCFamily]:
        yield from (PyMCFamily(roles, shared=shared) for shared in (True, False))
        fewer = find_roles(model, label, columns=False)
        if len(fewer.parts) < len(roles.parts):
            yield from (PyMCFamily(fewer, shared=shared) for shared in (True, False))

    place = np.argsort(roles.order)[roles.codes]
    try:
        return believed(candidates(), log_joint, place, expected)
    except ValueError as why:
        raise ValueError(_no_row_density(roles, why)) from None


def _rows(roles: Roles) -> Array:
    """Return (N, D) rows of the model; NaN is a missing cell."""
    blocks = []
    for block in roles.parts:
        cells, mask = block.value.astype(np.float64), roles.masks.get(block.name)
        cells = cells if mask is None else np.where(mask.get_value(), cells, np.nan)
        blocks.append(cells.reshape(len(cells), -1))
    return np.concatenate(blocks, axis=1)


def _no_row_density(roles: Roles, why) -> str:
    """Return the message for a model whose density is no product over rows."""
    from pytensor.graph.basic import Constant

    n, model = len(roles.codes), roles.model
    values = next(points(model))
    latent = [v.name for v in roles.free if n in np.shape(values[v])]
    observed = [v for v in model.observed_RVs if v is not roles.label]
    reached = ancestors(i for v in (roles.label, *observed) for i in v.owner.inputs)
    arrays = [c.data for c in reached if isinstance(c, Constant) and np.shape(c.data)[:1] == (n,)]
    message = "the rows have no density of their own"
    if latent:
        message += (
            f": {latent[0]!r} has a value for each of the {n} rows, which a new row does not have; "
            "sum or integrate it out (pm.Mixture, pm.BetaBinomial and the like)"
        )
    elif arrays:
        first = ", ".join(f"{v:.4g}" for v in np.ravel(arrays[0])[:3])
        message += (
            f": the graph holds an array of {n} rows ({first}, ...), which new rows cannot "
            "replace; make it pm.Data, with the dim of the rows"
        )
    return f"{message} ({why})"


# ------------------------------------------------------------------------------------------------
# The classifier.


@dataclass(frozen=True, eq=False)
class PartsReader(Reader):
    """Columns of the data of a model, by their names; of arrays by position."""

    parts: tuple[RowColumns, ...] = ()
    needed: Mapping[str, str] = field(default_factory=dict)  # {part whose cells are known: why}

    @property
    def columns(self) -> list[Any]:
        """Names of the columns."""
        return [name for block in self.parts for name in block.columns]

    def checked(self, X: RowsLike, first: bool) -> tuple[Self, Array]:
        """Numbers in an array, of these columns in this order."""
        names = self.columns
        if hasattr(X, "columns"):
            if absent := [name for name in names if name not in X.columns]:
                raise ValueError(
                    f"X has no column {absent[0]!r}: the model's data are {', '.join(names)}"
                )
            X = np.column_stack([np.asarray(X[name]) for name in names])
        reader, X = super().checked(X, first)
        reader.refuse_missing(X, "")
        return reader, X

    def refuse_missing(self, X: Array, why: str) -> None:
        """Raise at the first missing cell of a column that must be known."""
        start = 0
        for block in self.parts:
            cells = X[:, start : start + len(block.columns)]
            if block.name in self.needed and has_nan(cells):
                row, j = np.argwhere(np.isnan(cells))[0]
                what = f"Input X contains NaN: column {block.columns[j]!r}"
                advice = self.needed[block.name]
                raise InputError(what, row=row, column=block.columns[j], advice=advice)
            start += len(block.columns)


@make_constructor
class PyMCClassifier(GenerativeClassifier):
    """A classifier from a PyMC model; `from_pymc` makes it.

    Parameters
    ----------
    model : pymc.Model
    label : str
        Name of its variable of labels.

    Attributes
    ----------
    columns_ : list of str
        Columns of X: those of the model's data.
    rows_ : (X, y)
        Rows and labels of the model.
    """

    _unsaved = ("model",)
    class_alpha = 1.0
    prior = "default"

    model: Any = None
    label: str = "label"

    @property
    def _of_rows(self) -> PyMCFamily:
        """Return what the model says of rows, which is looked for once."""
        family: PyMCFamily | None = vars(self).get("_known")
        if family is None or family.roles.model is not self.model:
            self._known = family = family_of(self.model, self.label)
        return family

    @property
    def columns_(self) -> list[str]:
        """Columns of X: those of the model's data."""
        return self._of_rows.columns

    # -- what an estimator chooses -------------------------------------------------------------

    @property
    def _family_type(self) -> type[Family]:
        return PyMCFamily

    def _reader(self) -> Reader:
        roles = self._of_rows.roles
        covariates = {block.name for block in roles.parts if block.variable is None}
        return PartsReader(
            type(self).__name__,
            whole=next((why for name, why in roles.needed.items() if name not in covariates), ""),
            n_features=len(self.columns_),
            parts=tuple(roles.parts),
            needed=roles.needed,
        )

    def _family(self, reader: Reader, classes: Array) -> Family:
        return self._of_rows

    # -- learning ------------------------------------------------------------------------------

    def fit(
        self,
        X: RowsLike = None,
        y: Labels = None,
        sample_weight: PerRow = None,
        **sample_options: Any,
    ) -> Self:
        """Sample the model, which holds the rows.

        Parameters
        ----------
        X, y, sample_weight : None
            Rows are data of the model: change them by `pm.set_data`, or write a model of other
            rows.
        **sample_options
            Options of NUTS: see `GenerativeClassifier.fit`.

        Returns
        -------
        self

        Warns
        -----
        SamplingWarning
            If NUTS reports divergences, or the chains disagree or are too short.
        """
        if X is not None or y is not None or sample_weight is not None:
            raise TypeError(_OWN_ROWS.format("fit()"))
        options = nuts.check_options({}, sample_options)
        undrawn = self._undrawn("nuts")
        draws, stats = nuts.sample(self.model, **options)
        tree = sampled_tree(undrawn, self._as_ours(draws), stats, options)
        self.fitted_ = with_draws(undrawn, tree)
        return self

    def with_posterior(self, tree: Any, X: RowsLike = None, y: Labels = None) -> Self:
        """Return a classifier with these draws of the model's free variables as its posterior.

        Parameters
        ----------
        tree : xarray.DataTree or Dataset
            The result of `pymc.sample`, or its group ``posterior``. Draws that `arviz.extract` has
            stacked are unstacked.
        X, y : None
            The model holds the rows.

        Raises
        ------
        ValueError
            If a free variable of the model is absent, or has other dims.
        """
        if X is not None or y is not None:
            raise TypeError(_OWN_ROWS.format("with_posterior(tree)"))
        clf = self.__class__(self.model, self.label)
        clf._known = self._of_rows
        undrawn = clf._undrawn(GIVEN)
        draws = tree_of(undrawn, {POSTERIOR: clf._as_ours(posterior_group(tree))}, GIVEN)
        draws.attrs |= getattr(tree, "attrs", {})
        clf.fitted_ = with_draws(undrawn, draws)
        return clf

    @property
    def rows_(self) -> tuple[Array, Array]:
        """Return the rows and labels of the model: ``clf.loo(*clf.rows_)``."""
        roles = self._of_rows.roles
        return _rows(roles), roles.classes[np.argsort(roles.order)[roles.codes]]

    def to_pymc(
        self,
        X: RowsLike = None,
        y: Labels = None,
        *,
        likelihood: Literal["statistics", "rows"] = "rows",
        observed: bool = True,
        X_new: RowsLike = None,
    ) -> "pm.Model":
        """Return the model."""
        if likelihood != "rows" or not observed or any(v is not None for v in (X, y, X_new)):
            raise ValueError("the model is the user's own, with the rows that it observes")
        return self.model

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Refuse, because a PyMC model cannot be written to a file.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            "a model file cannot hold a PyMC model: keep the model and its draws "
            "(clf.posterior_.to_netcdf), and call from_pymc(model).with_posterior(trace)"
        )

    def _undrawn(self, inference: str) -> Fitted:
        """Return a fit without draws."""
        family = self._of_rows
        roles = family.roles
        count = class_counts(np.argsort(roles.order)[roles.codes], len(roles.order), None)
        # NaN: the weights have a prior of the user's own, and only draws know them
        model = ClassModel(np.full(len(count), np.nan), family)
        X, labels = self.rows_
        training = Training(len(labels), 0, inference, rows=kept(X, labels, None))
        posterior = DrawnPosterior(model, model, ClassStats(count, Stats()), {})
        return Fitted(type(self).__name__, roles.classes, self._reader(), posterior, training)

    def _as_ours(self, draws):
        """Draws of the model's variables with ``pi`` (class), and dims ``class`` in our order."""
        family = self._of_rows
        roles = family.roles
        model_coords = {k: list(v) for k, v in roles.model.coords.items() if v is not None}
        params = dict(family.params)
        if any(v.name == CLASS_WEIGHTS for v in roles.free):
            dims = roles.model.named_vars_to_dims.get(CLASS_WEIGHTS)
            params[CLASS_WEIGHTS] = tuple(dims or (f"{CLASS_WEIGHTS}_dim_0",))
        theta = read_draws(draws, params, model_coords)
        lead = next(iter(theta.values())).shape[:2]
        flat = [
            theta[v.name].reshape(-1, *theta[v.name].shape[2:]).astype(v.dtype) for v in roles.free
        ]
        weights = family.class_weights(flat).reshape(*lead, -1)
        variables = draws.drop_vars([CLASS_WEIGHTS], errors="ignore")
        if CLASS in variables.dims:
            named = CLASS in variables.coords
            by_name, by_place = {CLASS: roles.classes}, {CLASS: roles.order}
            variables = variables.sel(by_name) if named else variables.isel(by_place)
        posterior = variables.assign({CLASS_WEIGHTS: ((CHAIN, DRAW, CLASS), weights)})
        return posterior.assign_coords({CLASS: roles.classes})
