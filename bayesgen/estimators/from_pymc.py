r"""Any PyMC model in which a Categorical label is observed, as a classifier.

.. math:: \theta \sim p(\theta), \qquad y_i \sim \text{Categorical}(p(\theta, z_i)), \qquad
          x_i \sim p(x \mid y_i, \theta, z_i)

The model has the observed label y, other observed variables x that depend on it, and data of rows
z that are given. The density of a row given its class and theta is that of
`families.shared.graph_rows`, and the `log_likelihood` of a family; all else is what every sampled
family has. What depends on other rows, or on arrays that have one value for each training row, is
refused.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from bayesgen.datatree.fit import drawn_posterior
from bayesgen.datatree.tree import POSTERIOR, posterior_group, read_draws
from bayesgen.encoding.reader import Reader
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.contract import Family, Stats, Theta
from bayesgen.families.names import CHAIN, CLASS, CLASS_WEIGHTS, DRAW
from bayesgen.families.shared.graph_rows import (
    GraphRows,
    Part,
    ancestors,
    at_a_point,
    believed,
    container,
    evaluated,
    log_p_of,
    name_of,
    part_of,
    points,
    rebuilt,
    to_class_order,
)
from bayesgen.inference import nuts
from bayesgen.inference.fitting import sampled_tree
from bayesgen.inference.sampled import check_options
from bayesgen.inference.trees import tree_of
from bayesgen.numerics.rows import Matrix, class_counts
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import ClassModel, ClassStats
from bayesgen.posterior.training import GIVEN, Training, kept

_WHOLE = "the log density of this PyMC model is of whole rows: leave incomplete rows out"
_OWN_ROWS = (
    "{} takes no rows: the model holds them. Set them there (pm.set_data), and call from_pymc again"
)


def from_pymc(model: Any, label: str = "label") -> "PyMCClassifier":
    """Return a classifier from a PyMC model of labels and rows.

    Parameters
    ----------
    model : pymc.Model
        With an observed Categorical variable, other observed variables whose parameters depend on
        it (``mu[label]``, or ``mu[y]`` with the `pm.Data` ``y`` that it observes), and priors of
        any kind. Data that new rows have too, covariates of a regression, are `pm.Data`.
    label : str
        Name of the Categorical variable.

    Returns
    -------
    PyMCClassifier
        It holds the rows of the model: ``fit()`` samples it, ``with_posterior(trace)`` takes
        existing draws. New rows are tables with a column for each column of the model's data, by
        their names (`columns_`): those of the data containers, or of the observed variables.

    Raises
    ------
    ValueError
        If rows do not depend on the label, or their density is not a product over rows; with the
        reason.

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
    return PyMCClassifier(model, label)._parsed()


# ------------------------------------------------------------------------------------------------
# What a model says of its rows.


class Roles(NamedTuple):
    """Which variable of a PyMC model is what."""

    model: Any
    label: Any
    label_data: Any  # the data container that it observes, if it is one
    codes: Array  # (N,) the observed label
    p: Any  # its probabilities
    parts: list[Part]  # observed first
    masks: dict[str, Any]  # {part: data container that is 0 where a cell is missing}
    length: Any  # of the dim of rows, if that can change
    classes: Array  # sorted
    order: Array  # (C,) the model's codes of the sorted classes
    by_row: bool  # whether the probabilities of labels depend on the row


def find_roles(model: Any, label: str) -> Roles:
    """Find labels, rows and classes; refuse what is no model of labelled rows."""
    import pymc as pm

    if not isinstance(model, pm.Model):
        raise TypeError(f"from_pymc takes a pymc.Model, got {type(model).__name__}")
    y = next((v for v in model.observed_RVs if v.name == label), None)
    if y is None or name_of(y) != "Categorical" or y.ndim != 1:
        known = ", ".join(f"{v.name} ({name_of(v)})" for v in model.observed_RVs)
        raise ValueError(
            f"{label!r} must be a Categorical variable of the model, one for each row and all "
            f"observed; observed are: {known or 'none'}. Name it by label=; write a Bernoulli "
            "label as pm.Categorical(name, pt.stack([1 - p, p], axis=-1), observed=...)"
        )
    observed = [v for v in model.observed_RVs if v is not y]
    if not observed:
        raise ValueError(
            "nothing but the label is observed: the model says how labels depend on data, not how "
            "rows depend on labels; see BayesianLogisticRegression"
        )
    codes = evaluated(model.rvs_to_values[y]).astype(np.int64)
    dims, n = model.named_vars_to_dims, len(codes)
    row_dim = (dims.get(label) or (None,))[0]

    parts, masks = [], {}
    for v in observed:
        if v.name.endswith("_observed") and v.name.replace("_observed", "_unobserved") in model:
            raise ValueError(f"cells of {v.name.removesuffix('_observed')!r} are missing: {_WHOLE}")
        parts.append(part_of(model, model.rvs_to_values[v], container(model.rvs_to_values[v]), v))
    y_data = container(model.rvs_to_values[y])
    held = [y_data, *(part.data for part in parts)]
    reached = ancestors([*y.owner.inputs, *(i for v in observed for i in v.owner.inputs)])
    for data in model.data_vars:
        own, value = dims.get(data.name), data.get_value()
        of_rows = own[0] == row_dim if own and row_dim else np.shape(value)[:1] == (n,)
        if of_rows and data in reached and not any(data is k for k in held):
            of = data.name.removesuffix("seen") + "cells"  # as `pymc_parts.observe_cells` has them
            if data.name.endswith("seen") and any(part.name == of for part in parts):
                masks[of] = data
            else:
                parts.append(part_of(model, data, data, None))
    for part in parts:
        if part.value.shape[:1] != (n,):
            raise ValueError(
                f"{part.name!r} has shape {part.value.shape}: its first axis must be the {n} rows"
            )
    every = [name for part in parts for name in part.columns]
    if len(set(every)) < len(every):
        parts = [p._replace(columns=[f"{p.name}[{c}]" for c in p.columns]) for p in parts]
    _refuse_independent(y, y_data, codes, observed)
    for v in model.potentials:
        if {y, *held, *observed} & {*ancestors([v])} - {None}:
            raise ValueError(
                f"the potential {v.name!r} depends on rows, and a potential has no terms of single "
                "rows: write it as an observed variable (pm.CustomDist)"
            )
    p = y.owner.op.dist_params(y.owner)[0]
    while p.ndim > 1 and p.type.shape[0] == 1 and len(p.owner.inputs) == 1:
        p = p.owner.inputs[0]  # an axis of length 1 for all rows
    length = model.dim_lengths.get(row_dim)
    given = {part.data for part in parts} - {None}
    by_row = p.ndim > 1 or bool(given & ancestors([p]))
    classes = _class_labels(model, p)
    order = np.argsort(classes, kind="stable")
    return Roles(model, y, y_data, codes, p, parts, masks, length, classes[order], order, by_row)


def _refuse_independent(y: Any, y_data: Any, codes: Array, observed: list[Any]) -> None:
    """Raise where rows do not depend on the label that is observed, or on a copy of it."""
    from pytensor.graph.basic import Constant

    depends = False
    for v in observed:
        reached = ancestors(v.owner.inputs)
        depends |= y in reached or y_data in reached
        copies = (c.data for c in reached if isinstance(c, Constant) and np.size(c.data) > 1)
        if any(np.shape(c) == codes.shape and np.array_equal(c, codes) for c in copies):
            raise ValueError(
                f"{v.name!r} depends on an array that equals the label, not on the label: in the "
                f"graph it is the same for every class. Write theta[{y.name}] with the variable "
                "that pm.Categorical returns (or one pm.Data for both) in place of the raw array"
            )
    if not depends:
        names = ", ".join(repr(v.name) for v in observed)
        raise ValueError(
            f"{names} do not depend on {y.name!r}, and are not evidence of the class: write "
            f"theta[{y.name}] with the variable that pm.Categorical returns"
        )


def _class_labels(model: Any, p: Any) -> Array:
    """(C,) labels of the classes in the model's order: of the dim of p, or of the one such dim."""
    n = int(np.shape(at_a_point(model, [p])[0])[-1])
    own = model.named_vars_to_dims.get(p.name) or ()
    named = {d for v in model.free_RVs for d in model.named_vars_to_dims.get(v.name) or ()}
    for dims in ([*own[-1:]], [d for d in sorted(map(str, named)) if d in model.coords]):
        found = [model.coords[d] for d in dims if len(model.coords.get(d) or ()) == n]
        if len(found) == 1:
            return np.asarray(list(found[0]))
    return np.arange(n)


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
    given : (N, D), optional
        Rows whose covariates the simulated rows have.
    """

    kind: ClassVar[str] = "pymc"
    no_pymc: ClassVar[str] = (
        "the model is one already, clf.to_pymc(): pm.sample_prior_predictive draws its prior"
    )

    roles: Any = field(default=None, metadata={"graph": True})
    shared: bool = field(default=True, metadata={"graph": True})
    given: Any = field(default=None, metadata={"graph": True})

    @cached_property
    def params(self) -> dict[str, tuple[str, ...]]:
        """Free variables of the model, but for class weights that are called ``pi``."""
        model, out = self.roles.model, {}
        for v in model.free_RVs:
            own = model.named_vars_to_dims.get(v.name) or (None,) * v.ndim
            out[v.name] = tuple(d or f"{v.name}_dim_{i}" for i, d in enumerate(own))
        out.pop(CLASS_WEIGHTS, None)
        return out

    @property
    def no_class_prior(self) -> str:
        """Where they depend on the row."""
        why = "the class weights of this model depend on the row, and no other can replace them"
        return why if self.roles.by_row else ""

    def coords(self) -> dict[str, Any]:
        """Those of the parameters."""
        known = self.roles.model.coords
        used = {d for dims in self.params.values() for d in dims}
        return {d: list(known[d]) for d in used if known.get(d) is not None}

    # -- densities ---------------------------------------------------------------------------

    @cached_property
    def graph(self) -> GraphRows:
        """Rows as functions of the free variables."""
        roles = self.roles
        theta = {v.name: v for v in roles.model.free_RVs if v.name != CLASS_WEIGHTS}
        labels = [v for v in (roles.label, roles.label_data) if v is not None]
        own = roles.parts, roles.masks, roles.length, roles.order
        return GraphRows(theta, self.params, labels, *own, self.shared)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) log p(x_i | y_i = c, theta).

        Where class weights depend on the row it is log p(y_i = c, x_i | theta) + log C: ``pi`` of
        the posterior is 1/C then.
        """
        out = self.graph.log_likelihood(X, theta)
        if self.roles.by_row:
            values, _ = self.graph.in_order(theta)
            p = self.label_probabilities(values, self.graph.cells(X))
            with np.errstate(divide="ignore"):
                out += np.log(p * p.shape[-1]).reshape(out.shape)
        return out

    def label_probabilities(self, values: list[Array], cells: list[Array]) -> Array:
        """(S, 1 or n, C) in the order of the sorted classes."""
        p: Array = self._probability(*cells, *values)
        p = p.reshape(-1, p.shape[-2] if self.roles.p.ndim > 1 else 1, p.shape[-1])
        shape = len(values[0]), *p.shape[1:]
        return np.broadcast_to(p, shape)[..., self.roles.order]

    @cached_property
    def _probability(self) -> Any:
        """(*rows, *draws) to (S, C), or (S, n, C), p(y | theta)."""
        free = {v: v.type(name=v.name) for v in self.roles.model.free_RVs}
        p = self.roles.p
        p = free[p] if p in free else rebuilt(p, self.graph.replaced | free)
        own = {v: t for v, t in free.items() if v.name in self.params or not self.roles.by_row}
        return self.graph.of_draws([], p, own)

    # -- draws -------------------------------------------------------------------------------

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) rows by PyMC's forward sampling.

        Raises
        ------
        NotImplementedError
            If rows depend on data without a distribution in the model.
        """
        absent = [part.name for part in self.roles.parts if part.variable is None]
        if absent and self.given is None:
            raise NotImplementedError(
                f"the model has no distribution of {', '.join(map(repr, absent))}, so rows cannot "
                "be simulated: posterior_groups draws the other columns given these"
            )
        return self.graph.simulate(rng, theta, y, self.given)

    def given_rows(self, X: Matrix) -> "PyMCFamily":
        """The family whose simulated rows have the covariates of X."""
        out = replace(self, given=X)
        out.__dict__["graph"] = self.graph  # with what it has compiled
        return out

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X."""
        return [name for part in self.roles.parts for name in part.columns]


def family_of(roles: Roles) -> PyMCFamily:
    """The family whose density of the model's own rows is the model's.

    Raises
    ------
    ValueError
        If no row has a density of its own.
    """
    own = PyMCFamily(roles)
    if not own.params:
        raise ValueError("the model has no free variable that rows could depend on")
    X = _rows(roles)
    log_p = log_p_of(roles.model)
    for point in points(roles.model):
        expected = log_p(point)
        if np.isfinite(expected):  # in the support of variables that are ordered, or truncated
            break
    theta = {
        k: to_class_order(point[roles.model[k]], dims, roles.order)
        for k, dims in own.params.items()
    }
    every = [point[v][None] for v in roles.model.free_RVs]

    def log_joint(family: PyMCFamily, rows: Array) -> Array:
        joint = family.log_likelihood(X[rows], theta)
        if roles.by_row:
            return joint - np.log(len(roles.order))
        return joint + np.log(family.label_probabilities(every, family.graph.cells(X))[0])

    place = np.argsort(roles.order)[roles.codes]
    try:
        candidates = (replace(own, shared=shared) for shared in (True, False))
        return believed(candidates, log_joint, place, expected)
    except ValueError as why:
        raise ValueError(_no_row_density(roles, why)) from None


def _rows(roles: Roles) -> Array:
    """(N, D) rows of the model; NaN is a missing cell."""
    out = []
    for part in roles.parts:
        cells, mask = part.value.astype(np.float64), roles.masks.get(part.name)
        cells = cells if mask is None else np.where(mask.get_value(), cells, np.nan)
        out.append(cells.reshape(len(cells), -1))
    return np.concatenate(out, axis=1)


def _no_row_density(roles: Roles, why: Any) -> str:
    """What to say where the density of rows is not that of each row."""
    from pytensor.graph.basic import Constant

    n, model = len(roles.codes), roles.model
    latent = [v.name for v, value in next(points(model)).items() if n in np.shape(value)]
    observed = [v for v in model.observed_RVs if v is not roles.label]
    reached = ancestors(i for v in (roles.label, *observed) for i in v.owner.inputs)
    arrays = [c.data for c in reached if isinstance(c, Constant) and np.shape(c.data)[:1] == (n,)]
    out = "the rows have no density of their own"
    if latent:
        out += (
            f": {latent[0]!r} has a value for each of the {n} rows, which a new row does not have; "
            "sum or integrate it out (pm.Mixture, pymc_extras.marginalize)"
        )
    elif arrays:
        first = ", ".join(f"{v:.4g}" for v in np.ravel(arrays[0])[:3])
        out += (
            f": the graph holds an array of {n} rows ({first}, ...), which new rows cannot "
            "replace; make it pm.Data, with the dim of the rows"
        )
    return f"{out} ({why})"


# ------------------------------------------------------------------------------------------------
# The classifier.


@dataclass(frozen=True, eq=False)
class PartsReader(Reader):
    """Columns of the data of a model, by their names; of arrays by position."""

    parts: tuple[Part, ...] = ()

    @property
    def columns(self) -> list[Any]:
        """Names of the columns."""
        return [name for part in self.parts for name in part.columns]

    def checked(self, X: Any, first: bool, ensure_all_finite: Any) -> tuple[Self, Any]:
        """Numbers in an array, of these columns in this order."""
        names = self.columns
        if hasattr(X, "data_vars") or isinstance(X, Mapping):  # an xarray.Dataset
            self._refuse_absent([p.name for p in self.parts], list(X))
            blocks = [np.asarray(X[p.name]) for p in self.parts]
            X = np.concatenate([np.reshape(b, (len(b), -1)) for b in blocks], axis=1)
        elif hasattr(X, "columns"):
            self._refuse_absent(names, list(X.columns))
            X = np.column_stack([np.asarray(X[name]) for name in names])
        elif hasattr(X, "dims"):  # an xarray.DataArray
            known = X.coords.get(X.dims[-1])
            if known is not None and known.dtype.kind in "OUS" and X.ndim == 2:
                self._refuse_absent(names, known.values.tolist())
                X = X.sel({X.dims[-1]: names})
            X = np.asarray(X).reshape(len(X), -1)
        return super().checked(X, first, ensure_all_finite)

    def _refuse_absent(self, names: list[str], known: list[Any]) -> None:
        if absent := [name for name in names if name not in known]:
            raise ValueError(
                f"X has no column {absent[0]!r}: the model's data are {', '.join(names)}"
            )


class PyMCClassifier(GenerativeClassifier):
    """A classifier from a PyMC model; `from_pymc` makes it.

    Parameters
    ----------
    model : pymc.Model
    label : str
        Name of its Categorical variable.

    Attributes
    ----------
    columns_ : list of str
        Columns of X: those of the model's data.
    """

    _unsaved = ("model",)
    class_alpha: Any = 1.0
    prior = "default"

    def __init__(self, model: Any = None, label: str = "label") -> None:
        self.model = model
        self.label = label

    def _parsed(self) -> Self:
        """Return itself, with what the model says of rows, which is looked for once."""
        family: Any = getattr(self, "_known", None)
        if family is None or family.roles.model is not self.model:
            roles = find_roles(self.model, self.label)
            self._refuse_taken_names(roles)
            self._known = family_of(roles)
        return self

    def _refuse_taken_names(self, roles: Roles) -> None:
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
        own = model.coords.get(CLASS)
        if own is not None and list(own) != [roles.classes[k] for k in np.argsort(roles.order)]:
            raise ValueError(
                "results call the dim of the labels 'class', and that dim of the model is "
                "something else: give it another name"
            )

    @property
    def columns_(self) -> list[str]:
        """Columns of X: those of the model's data."""
        return self._parsed()._known.columns

    # -- what an estimator chooses -------------------------------------------------------------

    @property
    def _family_type(self) -> type[Family]:
        return PyMCFamily

    def _reader(self) -> Reader:
        roles = self._parsed()._known.roles
        whole = "" if roles.masks else _WHOLE
        n = len(self.columns_)
        return PartsReader(type(self).__name__, whole=whole, n_features=n, parts=tuple(roles.parts))

    def _family(self, reader: Reader, classes: Array) -> Family:
        return self._parsed()._known

    # -- learning ------------------------------------------------------------------------------

    def fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, **sample_options: Any
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
        options = check_options({}, sample_options)
        undrawn = self._undrawn("nuts")
        draws, stats = nuts.sample(self.model, **options)
        tree = sampled_tree(undrawn, self._as_ours(draws), stats, options)
        self.fitted_ = self._drawn_fit(undrawn, tree)
        return self

    def with_posterior(self, tree: Any, X: Any = None, y: Any = None) -> Self:
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
        out = self.__class__(self.model, self.label)
        out._known = self._parsed()._known
        undrawn = out._undrawn(GIVEN)
        draws = tree_of(undrawn, {POSTERIOR: out._as_ours(posterior_group(tree))}, GIVEN)
        draws.attrs |= getattr(tree, "attrs", {})
        out.fitted_ = out._drawn_fit(undrawn, draws)
        return out

    def to_pymc(
        self,
        X: Any = None,
        y: Any = None,
        *,
        likelihood: Literal["statistics", "rows"] = "rows",
        observed: bool = True,
        X_new: Any = None,
    ) -> Any:
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
        family = self._parsed()._known
        roles = family.roles
        count = class_counts(np.argsort(roles.order)[roles.codes], len(roles.order), None)
        # NaN: the weights have a prior of the user's own, and only draws know them
        model = ClassModel(np.full(len(count), np.nan), family)
        labels = roles.classes[np.argsort(roles.order)[roles.codes]]
        training = Training(len(labels), 0, inference, rows=kept(_rows(roles), labels, None))
        posterior = DrawnPosterior(model, model, ClassStats(count, Stats()), {})
        return Fitted(type(self).__name__, roles.classes, self._reader(), posterior, training)

    def _drawn_fit(self, undrawn: Fitted, draws: Any) -> Fitted:
        posterior = drawn_posterior(undrawn, draws)
        return replace(undrawn, posterior=posterior).with_training(draws=draws)

    def _as_ours(self, draws: Any) -> Any:
        """Draws of the model's variables with ``pi`` (class), and dims ``class`` in our order."""
        family = self._known
        roles = family.roles
        model_coords = {k: list(v) for k, v in roles.model.coords.items() if v is not None}
        params = dict(family.params)
        pi = roles.model.named_vars.get(CLASS_WEIGHTS)
        if pi in roles.model.free_RVs:
            own = roles.model.named_vars_to_dims.get(CLASS_WEIGHTS)
            params[CLASS_WEIGHTS] = tuple(own or (f"{CLASS_WEIGHTS}_dim_0",))
        theta = read_draws(draws, params, model_coords)
        lead = next(iter(theta.values())).shape[:2]
        flat = [
            theta[v.name].reshape(-1, *theta[v.name].shape[2:]).astype(v.dtype)
            for v in roles.model.free_RVs
        ]
        if roles.by_row:
            weights = np.full((*lead, len(roles.order)), 1 / len(roles.order))
        else:
            p = family.label_probabilities(flat, family.graph.cells(_rows(roles)[:1]))
            weights = p[:, 0].reshape(*lead, -1)
        rest = draws.drop_vars([CLASS_WEIGHTS], errors="ignore")
        if CLASS in rest.dims:
            named = CLASS in rest.coords
            rest = rest.sel({CLASS: roles.classes}) if named else rest.isel({CLASS: roles.order})
        out = rest.assign({CLASS_WEIGHTS: ((CHAIN, DRAW, CLASS), weights)})
        return out.assign_coords({CLASS: roles.classes})
