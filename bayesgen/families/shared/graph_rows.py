"""Rows of a PyMC graph as functions of their class and of theta, vectorised over draws.

The log density of a row is the distribution of the observed variables with theta, the label and
the data of rows replaced by inputs, vectorised over draws and evaluated at each class. It runs in
NumPy, operation by operation, so that nothing is compiled, in blocks of draws and rows that fit a
cache. The label is one number for all rows of a call, hence parameters are (draw, 1, column) and
what depends on them alone is computed once per draw. Rows are drawn by PyMC's forward sampling.

The graph is that of a user's model (`from_pymc`), or what a family without densities of its own
declares (`of_family`). A function is believed after it has given the model's own log density of
its rows, with the rows in another order and in two parts.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayesgen.families.names import CLASS, FEATURE, OBS, Label, Tensor
from bayesgen.numerics.special import Array

Theta = Mapping[str, Array]
_CELLS = 1 << 17  # of a temporary: 1 MiB of float64
_ROWS = 256  # of a block, so that a parameter of a draw serves many rows
_AGREE = 1e-8  # relative difference of log densities that are the same
_POINTS = 4  # draws from the prior, of which the most likely is tried
_OTHER_ROWS = 5  # at which the graph of a family is tried


def tensor_named(name: str, dtype, shape: tuple[int | None, ...]):
    """Return a variable; `pytensor.tensor.tensor` refuses names such as "long" and "half"."""
    import pytensor.tensor as pt

    return pt.TensorType(dtype=str(dtype), shape=shape)(name)


@contextmanager
def third_parties() -> Iterator[None]:
    """Warnings of PyMC, PyTensor, numba and nutpie about each other are theirs to mend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        for message in ("Cannot cache compiled function", "Loop fusion failed"):
            warnings.filterwarnings("ignore", message=message)
        yield


class RowColumns(NamedTuple):
    """Columns of X that are one array of the model."""

    name: str
    columns: list[str]
    value: Array  # (N, ...) in the model; NaN is a missing cell
    data: Tensor  # the data container, if it is one
    variable: Tensor  # the observed variable, as a distribution of all cells; None of what is given
    x: Tensor  # input of functions of rows
    joined: Tensor = None  # observed and imputed cells together, where PyMC imputes some


def name_of(variable) -> str:
    """Return the name of its distribution."""
    op = variable.owner.op
    return str(getattr(op, "_print_name", (type(op).__name__,))[0])


def ancestors(variables: Iterable[Tensor], without: Iterable[Tensor] = ()) -> set[Tensor]:
    """Variables that others are functions of, themselves included; not what `without` hides."""
    from pytensor.graph import traversal

    return set(traversal.ancestors(variables, blockers=list(without)))


def evaluated(variable) -> Array:
    """Return the value of a variable that depends on data alone."""
    return np.asarray(variable.eval(mode=numpy_mode("fast_compile")))


def numpy_mode(optimizer: str = "fast_run"):
    """NumPy, operation by operation, without checks of parameters."""
    from pytensor.compile.mode import Mode

    plain = Mode(linker="py", optimizer=optimizer)
    return plain.excluding("fusion", "inplace").including("local_remove_check_parameter")


def container(value):
    """Return the data container that a variable observes, as it is or in another dtype."""
    from pytensor.compile.sharedvalue import SharedVariable

    while value.owner is not None and len(value.owner.inputs) == 1:
        value = value.owner.inputs[0]
    return value if isinstance(value, SharedVariable) else None


def columns_of(model, variable, data=None) -> RowColumns:
    """Return the columns of an observed variable, or of data that rows are given with."""
    joined, value = None, data if variable is None else model.rvs_to_values[variable]
    base = "" if variable is None else variable.name.removesuffix("_observed")
    if variable is not None and data is None:
        data = container(value)
    cells = evaluated(value)
    if base and f"{base}_unobserved" in model:
        joined = model[base]
        variable, cells = _whole(joined, variable, cells)
    named = data if data is not None else variable if joined is None else joined
    dtype = data.dtype if data is not None else cells.dtype if joined is None else variable.dtype
    dims = model.named_vars_to_dims.get(named.name) or ()
    columns = [named.name]
    if cells.ndim > 1:
        labels = [model.coords.get(d) for d in dims[1:]]
        index = labels[0] if len(labels) == 1 and cells.ndim == 2 else None
        positions = [",".join(map(str, i)) for i in np.ndindex(*cells.shape[1:])]
        columns = [f"{named.name}[{i}]" for i in positions] if index is None else list(index)
    x = tensor_named(named.name, dtype, (None, *cells.shape[1:]))
    return RowColumns(named.name, [str(c) for c in columns], cells, data, variable, x, joined)


def _whole(joined, observed, values: Array) -> tuple[Tensor, Array]:
    """Return the distribution of all cells of a variable of which PyMC imputes some, and its cells.

    PyMC divides it into two variables, whose parameters are those of some cells each.
    """
    from pymc.distributions.distribution import PartialObservedRV
    from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

    nodes = (v.owner for v in ancestors([joined]) if v.owner is not None)
    filled = next(
        n for n in nodes if isinstance(n.op, AdvancedIncSubtensor) and n.inputs[1] is observed
    )
    cells = np.full(evaluated(joined.shape), np.nan)
    cells[tuple(evaluated(i) for i in filled.inputs[2:])] = values
    node = observed.owner
    if isinstance(node.op, PartialObservedRV):
        return node.inputs[0], cells
    masks = {i for i in ancestors(filled.inputs[2:]) if i.owner is None}

    def of_all(parameter):
        chosen = parameter.owner
        if chosen is None or not isinstance(chosen.op, AdvancedSubtensor):
            return parameter
        same = any(_is_same(i, mask) for i in ancestors(chosen.inputs[1:]) for mask in masks)
        return chosen.inputs[0] if same else parameter

    parameters = [of_all(v) for v in node.op.dist_params(node)]
    return node.op.make_node(node.inputs[0], cells.shape, *parameters).outputs[1], cells


def _is_same(a, b) -> bool:
    """Return whether both are one array."""
    first, second = getattr(a, "data", None), getattr(b, "data", None)
    if first is None or second is None:
        return a is b
    return np.array_equal(first, second)


def points(model) -> Iterator[dict[Tensor, Array]]:
    """Yield draws of the free variables from the prior, and where it has its centre."""
    import pymc as pm
    from pymc.initial_point import make_initial_point_fn

    try:
        with third_parties(), model:
            mode = numpy_mode("fast_compile")
            draws = pm.draw(model.free_RVs, draws=_POINTS, random_seed=0, mode=mode)
        for values in zip(*draws, strict=True):
            yield dict(zip(model.free_RVs, map(np.asarray, values), strict=True))
    except NotImplementedError:  # a flat prior
        pass
    centre = make_initial_point_fn(model=model, return_transformed=False)(0)
    yield {v: np.asarray(centre[v.name]) for v in model.free_RVs}


def likely_point(model) -> tuple[dict[Tensor, Array], float]:
    """Return the most likely prior draw, and the model's own log density of what is observed.

    The centre, where rows have no density under any draw.
    """
    best: tuple[dict[Tensor, Array], float] = {}, -np.inf
    log_densities = observed_log_densities(model)
    for i, point in enumerate(points(model)):
        value = float(sum(np.sum(cells) for cells in log_densities(point)))
        if not best[0] or (np.isfinite(value) and not value <= best[1]):
            best = point, value
        if i == _POINTS - 1 and np.isfinite(best[1]):
            break  # the centre takes longer than all draws
    return best


def at_a_point(model, variables: list[Tensor], point=None) -> list[Array]:
    """Values of functions of the free variables and of data; None: at a draw from the prior."""
    import pytensor

    point = next(points(model)) if point is None else point
    f = pytensor.function(
        list(point), variables, mode=numpy_mode("fast_compile"), on_unused_input="ignore"
    )
    values: list[Array] = f(*point.values())
    return values


def rebuilt(variable, new: Mapping[Tensor, Tensor]):
    """Return the variable as a function of other inputs, whose shapes may be others."""
    from pymc.distributions.distribution import SymbolicRandomVariable
    from pytensor.graph.basic import Apply
    from pytensor.graph.traversal import io_toposort
    from pytensor.scalar import upcast
    from pytensor.tensor.basic import MakeVector

    new = {k: v for k, v in new.items() if k is not variable and k is not None}
    for node in io_toposort(list(new), [variable]):
        inputs = [new.get(i, i) for i in node.inputs]
        if isinstance(node.op, SymbolicRandomVariable):  # its inner graph has the old shapes, but
            types = [o.type for o in node.outputs]  # a distribution of a size is made anew
            free = [t.clone(shape=(None,) * t.ndim) if hasattr(t, "ndim") else t for t in types]
            made = Apply(node.op, inputs, [t() for t in free])
        elif isinstance(node.op, MakeVector):  # which has the dtype of its old inputs
            made = MakeVector(upcast(*(i.dtype for i in inputs))).make_node(*inputs)
        else:
            made = node.clone_with_new_inputs(inputs, strict=False)
        for old, replacement in zip(node.outputs, made.outputs, strict=True):
            new.setdefault(old, replacement)
    return new.get(variable, variable)


def in_double(variable):
    """Return the variable with wide constants: PyTensor takes log(1.5), or log(3), in float32."""
    from pytensor.graph.basic import Constant

    constants: list[Tensor] = [c for c in ancestors([variable]) if isinstance(c, Constant)]
    wide = {"float32": "float64", "int8": "int64", "int16": "int64"}
    dtypes = {c: wide.get(getattr(c.type, "dtype", "")) for c in constants}
    try:
        return rebuilt(variable, {c: c.astype(dtype) for c, dtype in dtypes.items() if dtype})
    except TypeError:  # an operation of float32 alone
        return variable


def resized(variable, new: Mapping[Tensor, Tensor], size: tuple[Tensor, ...]):
    """Return the distribution of a variable as a function of other inputs, of another size."""
    from pymc.distributions.custom import CustomSymbolicDistRV
    from pymc.distributions.shape_utils import change_dist_size
    from pytensor.graph.basic import Apply

    node = variable.owner
    if isinstance(node.op, CustomSymbolicDistRV):  # takes its first parameters again
        loose = [_of_any_length(i) for i in node.inputs]  # by whose shapes it is made
        made = Apply(node.op, loose, [v.type() for v in node.outputs]).outputs[0]
        return rebuilt(change_dist_size(made, size), new)
    return change_dist_size(rebuilt(variable, new), size)


def _of_any_length(variable):
    """Return a variable like this, with axes of any length but for those of length 1."""
    shape = getattr(variable.type, "shape", None)
    return (
        variable
        if shape is None
        else variable.type.clone(shape=[s if s == 1 else None for s in shape])()
    )


def to_class_order(value: Array, dims: tuple[str, ...], order: Array) -> Array:
    """Return a parameter whose dim ``class`` is in the order of the sorted classes."""
    for axis, dim in enumerate(dims, value.ndim - len(dims)):
        if dim == CLASS:
            value = value.take(order, axis)
    return value


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Rows as a PyMC graph has them.

    Parameters
    ----------
    theta : {name: tensor}
        What rows depend on, given their class.
    dims : {name: dims of theta}
    labels : list
        Variables that stand for the class codes of rows.
    parts : list of RowColumns
    masks : {name of a part: data container}
        That is 0 where a cell is missing. None: cells are independent given theta, and those that
        are missing are left out here.
    length : tensor, optional
        Number of rows, if that can change.
    order : (C,)
        The codes of the sorted classes.
    shared : bool
        Whether one label serves all rows of a call; else each has its own, at a higher cost.
    """

    theta: Mapping[str, Tensor]
    dims: Mapping[str, tuple[str, ...]]
    labels: list[Tensor]
    parts: list[RowColumns]
    masks: dict[str, Tensor]
    length: Tensor
    order: Array
    shared: bool = True

    # -- arguments ---------------------------------------------------------------------------

    def in_order(self, theta: Theta) -> tuple[list[Array], tuple[int, ...]]:
        """Draws (S, ...) of theta as the graph has them, and the leading axes."""
        first = next(iter(self.dims))
        lead = np.shape(theta[first])[: np.ndim(theta[first]) - len(self.dims[first])]
        ordered = []
        for name, tensor in self.theta.items():
            value = np.asarray(theta[name])
            value = value.reshape(-1, *value.shape[len(lead) :])
            value = to_class_order(value, self.dims[name], np.argsort(self.order))
            ordered.append(value.astype(tensor.dtype))
        return ordered, lead

    def cells(self, X) -> list[Array]:
        """Return the parts of rows (n, D), and masks."""
        blocks, start = [], 0
        masks = {}
        for piece in self.parts:
            stop = start + len(piece.columns)
            cells = np.asarray(X[:, start:stop]).reshape(len(X), *piece.value.shape[1:])
            if piece.name in self.masks:
                seen = ~np.isnan(cells)
                masks[piece.name] = seen
                cells = np.where(seen, cells, 0)
            if np.dtype(piece.x.dtype).kind in "biu" and np.any(cells % 1):
                raise ValueError(
                    f"{piece.name!r} holds whole numbers in the model, and X has others"
                )
            blocks.append(cells.astype(piece.x.dtype))
            start = stop
        return blocks + [masks[name].astype(self._mask(name).dtype) for name in self.masks]

    def _mask(self, name: str):
        """Return the input of a mask."""
        return self._inputs[1][name]

    @cached_property
    def _inputs(self) -> tuple[dict[Tensor, Tensor], dict[str, Tensor]]:
        """{what is replaced: input} of the data of rows, and {part: input} of masks."""
        import pytensor.tensor as pt

        new, masks = {}, {}
        for piece in self.parts:
            if piece.data is not None:
                new[piece.data] = piece.x
            for variable in (piece.variable, piece.joined):
                if variable is not None:
                    new[variable] = piece.x.astype(variable.dtype)
        for name, mask in self.masks.items():
            if mask is None:
                (ndim,) = (piece.x.ndim for piece in self.parts if piece.name == name)
                masks[name] = pt.tensor(f"{name} seen", dtype="bool", shape=(None,) * ndim)
            else:
                shape = (None, *mask.type.shape[1:])
                masks[name] = new[mask] = tensor_named(mask.name, mask.dtype, shape)
        if self.length is not None:
            new[self.length] = self.parts[0].x.shape[0].astype(self.length.dtype)
        return new, masks

    @property
    def replaced(self) -> dict[Tensor, Tensor]:
        """{variable of the graph: what stands for it} of the data of rows."""
        return self._inputs[0]

    @property
    def inputs(self) -> list[Tensor]:
        """Return the inputs that `cells` gives values for."""
        return [*(piece.x for piece in self.parts), *self._inputs[1].values()]

    def of_draws(self, before: list[Tensor], variable, free: dict[Tensor, Tensor]):
        """Return a function of `before`, rows, and draws of free variables, {variable: input}."""
        import pytensor
        from pytensor.graph.replace import vectorize_graph

        batch = {t: tensor_named(t.name, t.dtype, (None, *t.type.shape)) for t in free.values()}
        return pytensor.function(
            [*before, *self.inputs, *batch.values()],
            vectorize_graph(in_double(variable), batch),
            mode=numpy_mode(),
            on_unused_input="ignore",
        )

    def _replaced_by(self, y) -> tuple[dict[Tensor, Tensor], dict[Tensor, Tensor]]:
        """{variable: input} of theta, and of all, where `y` are the class codes."""
        free = {v: v.type(name=name) for name, v in self.theta.items()}
        return free, self.replaced | free | {v: y.astype(v.dtype) for v in self.labels}

    # -- densities ---------------------------------------------------------------------------

    def log_likelihood(self, X, theta: Theta) -> Array:
        """Return (..., N, C) log p(x_i | y_i = c, theta)."""
        values, lead = self.in_order(theta)
        n_draws, n_classes = len(values[0]), len(self.order)
        log_p = np.empty((n_draws, len(X), n_classes))
        width = 4 * max(np.size(piece.value[0]) for piece in self.parts)
        step = max(1, min(_ROWS, len(X)))
        many = max(1, _CELLS // (step * width))
        for start in range(0, len(X), step):
            rows = slice(start, min(start + step, len(X)))
            cells = self.cells(X[rows])
            density = self._masked if np.isnan(X[rows]).any() else self._density
            for first in range(0, n_draws, many):
                some = slice(first, min(first + many, n_draws))
                block = [v[some] for v in values]
                for k, code in enumerate(self.order):
                    y = np.full(1 if self.shared else len(cells[0]), code)
                    with np.errstate(all="ignore"):
                        log_p[some, rows, k] = density(y, *cells, *block)
        return log_p.reshape(*lead, len(X), n_classes)

    @cached_property
    def _density(self):
        """Return (y, *rows, *draws) to (S, n) log p(x | y, theta) of complete rows."""
        return self._compiled(False)

    @cached_property
    def _masked(self):
        """Return the same of rows in which cells are missing."""
        return self._compiled(True)

    def _compiled(self, masked: bool):
        import pymc as pm
        import pytensor.tensor as pt

        y = pt.tensor("y", dtype="int64", shape=(1,) if self.shared else (None,))
        free, new = self._replaced_by(y)
        total: Tensor = 0.0
        for piece in self.parts:
            v, x = piece.variable, piece.x
            if v is None:
                continue
            batch = v.ndim - v.owner.op.ndim_supp
            dist = resized(v, new, tuple(x.shape[i] for i in range(batch)))
            log_p = pm.logp(dist, x.astype(v.dtype))
            if masked and self.masks.get(piece.name, "") is None:
                if log_p.ndim != x.ndim:
                    raise ValueError(
                        f"X contains NaN: {piece.name!r} has a density of whole rows, none of cells"
                    )
                log_p = pt.switch(self._mask(piece.name), log_p, 0.0)
            total = total + log_p.sum(axis=tuple(range(1, batch)))
        return self.of_draws([y], total, free)

    # -- draws -------------------------------------------------------------------------------

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array, given=None) -> Array:
        """Draw (N, D) rows by PyMC's forward sampling; data come from `given`.

        Raises
        ------
        NotImplementedError
            If the distribution of rows depends on rows, as the length of a document may.
        """
        drawn_pairs = [
            (piece.data, piece.variable) for piece in self.parts if piece.variable is not None
        ]
        if given is None and any(
            d in ancestors(v.owner.op.dist_params(v.owner)) for d, v in drawn_pairs
        ):
            raise NotImplementedError(
                "the distribution of rows depends on rows, for example on their sums, and no rows "
                "are given: define simulate"
            )
        values, lead = self.in_order(theta)
        codes = self.order[y]
        width = sum(len(piece.columns) for piece in self.parts)
        cells = self.cells(np.zeros((len(y), width)) if given is None else given)
        if not lead:
            return self._forward(rng, [v[0] for v in values], cells, codes)
        rows = []
        for i in range(len(y)):
            one = [c[i : i + 1] for c in cells]
            rows.append(self._forward(rng, [v[i] for v in values], one, codes[i : i + 1]))
        return np.concatenate(rows) if rows else np.empty((0, width))

    def _forward(
        self, rng: np.random.Generator, values: list[Array], cells: list[Array], codes: Array
    ) -> Array:
        function, generators = self._drawing
        for generator in generators:
            generator.set_value(np.random.default_rng(rng.integers(1 << 63)), borrow=True)
        drawn = function(codes, *cells, *values)
        flat = [np.reshape(x, (len(codes), -1)).astype(np.float64) for x in drawn]
        return np.concatenate(flat, axis=1)

    @cached_property
    def _drawing(self) -> tuple[Tensor, list[Tensor]]:
        """Compile (y, *rows, *theta) to draws of the parts, with their random generators."""
        import pytensor
        import pytensor.tensor as pt
        from pytensor.compile.sharedvalue import SharedVariable
        from pytensor.tensor.random.type import RandomGeneratorType

        y = pt.tensor("y", dtype="int64", shape=(None,))
        free, new = self._replaced_by(y)
        outputs = []
        for piece in self.parts:
            v = piece.variable
            if v is None:
                outputs.append(piece.x)
                continue
            size = (y.shape[0], *piece.value.shape[1 : v.ndim - v.owner.op.ndim_supp])
            new[v] = resized(v, new, size)
            outputs.append(new[v])
            if piece.data is not None:
                new[piece.data] = new[v].astype(piece.data.dtype)
        function = pytensor.function(
            [y, *self.inputs, *free.values()],
            outputs,
            mode=numpy_mode("fast_compile"),
            on_unused_input="ignore",
        )
        shared = [v for v in ancestors(outputs) if isinstance(v, SharedVariable)]
        return function, [v for v in shared if isinstance(v.type, RandomGeneratorType)]


# ------------------------------------------------------------------------------------------------
# Whether a row has a density of its own.


def observed_log_densities(model) -> Callable[[Mapping[Tensor, Array]], list[Array]]:
    """Return free variables to PyMC's log densities of the cells of each observed variable."""
    import pytensor
    from pymc.logprob.basic import conditional_logp

    values = {v: v.type(name=v.name) for v in model.free_RVs}
    observed = {v: model.rvs_to_values[v] for v in model.observed_RVs}
    terms = conditional_logp(values | observed, warn_rvs=False)
    f = pytensor.function(
        [*values.values()],
        [in_double(terms[value]) for value in observed.values()],
        mode=numpy_mode("fast_compile"),
        on_unused_input="ignore",
    )

    def at(point: Mapping[Tensor, Array]) -> list[Array]:
        with np.errstate(all="ignore"):
            cells: list[Array] = f(*(np.asarray(point[v], v.dtype) for v in values))
        return cells

    return at


def believed[Rows](
    candidates: Iterable[Rows],
    log_joint: Callable[[Rows, Array], Array],
    place: Array,
    expected: float,
) -> Rows:
    """Return the first candidate whose rows have the model's log density.

    Parameters
    ----------
    candidates : with a density of rows, the cheapest first
    log_joint : (candidate, positions of rows) to (n, C)
    place : (N,)
        The class of each row.
    expected : float
        Of the rows in the model.

    Raises
    ------
    ValueError
        With the last reason, if none has it.
    """
    why: list[str] = []
    back = np.arange(len(place))[::-1]
    for candidate in candidates:
        total = size = 0.0
        try:
            for rows in np.array_split(back, 2):
                row_density = log_joint(candidate, rows)[np.arange(len(rows)), place[rows]]
                total, size = (
                    total + float(row_density.sum()),
                    size + float(np.abs(row_density).sum()),
                )
        except (ValueError, TypeError, IndexError, AssertionError, NotImplementedError) as error:
            why = str(error).strip().splitlines()[:1] or [type(error).__name__]
            continue
        if total == expected or abs(total - expected) <= _AGREE * size:
            return candidate
        why = [f"{total:.6g} row by row, {expected:.6g} in the model"]
    raise ValueError(why[0])


# ------------------------------------------------------------------------------------------------
# The graph that a family declares.


def declared(
    family, coords: Mapping[str, Sequence[Label]], X=None, y=None, stats=None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the model of a family alone, given rows or statistics if there are any, and its theta.

    Class codes are the data container ``y``.
    """
    import pymc as pm

    rows = {} if X is None else {OBS: np.arange(len(y))}
    with pm.Model(coords={**coords, **rows}) as model:
        on = {} if X is None else {"X": X, "y": pm.Data("y", y, dims=OBS)}
        on |= {} if stats is None else {"stats": stats}
        theta = family.to_pymc(**on)
    if theta.keys() != family.params.keys():
        raise ValueError(
            f"to_pymc of {type(family).__name__} returns {', '.join(theta)}, and its params are "
            f"{', '.join(family.params)}"
        )
    return model, theta


def of_family(family, sizes: Mapping[str, int], X=None) -> GraphRows:
    """Rows as `to_pymc` of a family declares them.

    Parameters
    ----------
    family : Family
    sizes : {dim: length} of the dims of theta, and of ``feature``
    X : (N, D), optional
        Rows at which the graph is tried.

    Raises
    ------
    ValueError
        If rows have no density of their own in the graph, with the reason.
    """
    name = type(family).__name__
    cells = np.ones((1, sizes[FEATURE])) if X is None or not len(X) else np.asarray(X)
    whole = cells[~np.isnan(cells).any(axis=1)] if np.isnan(cells).any() else cells
    whole = whole if len(whole) else np.nan_to_num(cells[:1], nan=1.0)
    rows = whole[np.arange(_OTHER_ROWS) % len(whole)]
    y = np.arange(_OTHER_ROWS) % sizes[CLASS]
    coords = {dim: np.arange(n) for dim, n in sizes.items()} | family.coords()
    model, theta = declared(family, coords, rows, y)
    parts = [columns_of(model, v) for v in model.observed_RVs]
    if len(parts) != 1 or parts[0].value[0].size != rows.shape[1]:
        raise ValueError(
            f"to_pymc of {name} must observe rows as one variable with dims (obs_id, feature); "
            f"it observes {', '.join(piece.name for piece in parts) or 'nothing'}"
        )
    (piece,), (x,) = parts, model.observed_RVs
    named = [v for v in model.data_vars if v.name.endswith("seen")]
    masks = {piece.name: named[0] if named else None}
    if not named and (x.owner.op.ndim_supp or piece.value.ndim != 2):
        masks = {}
    label, parameters = model["y"], {*theta.values()}
    used = ancestors(x.owner.inputs, [*parameters, label]) & ({*model.free_RVs} - parameters)
    if used:
        raise ValueError(
            f"rows depend on {min(v.name for v in used)!r} of to_pymc, and params of {name} "
            "do not name it"
        )
    length, order = model.dim_lengths.get(OBS), np.arange(sizes[CLASS])
    graph = GraphRows(theta, family.params, [label], parts, masks, length, order)
    if X is None:
        return graph
    point, expected = likely_point(model)
    theta_values = dict(zip(theta, at_a_point(model, [*theta.values()], point), strict=True))
    try:
        return believed(
            (replace(graph, shared=shared) for shared in (True, False)),
            lambda parameters, some: parameters.log_likelihood(rows[some], theta_values),
            y,
            expected,
        )
    except ValueError as error:
        raise ValueError(
            f"rows of {name} have no density of their own in to_pymc: {error}. What depends on "
            "single rows there must be part of X"
        ) from None
