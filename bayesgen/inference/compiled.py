"""Compiled log densities of PyMC models, kept for later models with the same graph.

Compiling takes longer than sampling (5 to 60 s against less than one), so a compiled log density
is kept and serves every later model with the same graph: hyper-parameters, statistics and rows are
data of the model (``pm.Data``), which a compiled program takes anew, be they more or fewer. Two
graphs are the same if PyTensor says so, node by node; nothing is inferred from names.

Only the log density is compiled. Draws are turned from unconstrained coordinates into the model's
variables afterwards, all at once, in NumPy, by a function that is kept with the density.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen.families.names import CHAIN, DRAW
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

_KEPT = 16  # compiled programs; each holds some MB of machine code
PROGRAMS: "deque[Program]" = deque(maxlen=_KEPT)
LOCK = threading.RLock()
_NUMBERS = 1 << 23  # of an intermediate array while draws are turned: 64 MB


@dataclass(frozen=True)
class Graph:
    """The log density and the variables of a model, and the inputs of their graph by name."""

    log_p: Any
    variables: list[Any]  # as functions of the unconstrained coordinates
    inputs: dict[str, Any]
    data: dict[str, Any]  # the shared variables among them
    layout: tuple[Any, ...]  # names of the variables, lengths of the dims
    sized: bool  # whether no data decide on how many coordinates there are

    @classmethod
    def of(cls, model: Any) -> "Graph":
        """That of a PyMC model; raises if two of its inputs have one name."""
        from pytensor.compile.sharedvalue import SharedVariable
        from pytensor.graph.basic import Constant
        from pytensor.graph.traversal import graph_inputs

        log_p, variables = model.logp(), _in_coordinates(model)
        found = [v for v in graph_inputs([log_p, *variables]) if not isinstance(v, Constant)]
        inputs: dict[str, Any] = {str(v.name): v for v in found}
        if len(inputs) < len(found):
            raise ValueError("two inputs of the model's log density have the same name")
        lengths = {k: v for k, v in inputs.items() if k in model.dim_lengths}
        data: dict[str, Any] = {
            k: v for k, v in inputs.items() if isinstance(v, SharedVariable) and k not in lengths
        }
        layout = (
            tuple(model.rvs_to_values[v].name for v in model.free_RVs),
            tuple(v.name for v in model.deterministics),
            tuple(model.named_vars_to_dims.get(v.name) for v in model.free_RVs),
            tuple(v.type.shape for v in model.free_RVs),
            tuple(sorted((k, len(v)) for k, v in model.coords.items() if v is not None)),
        )
        sized = all(v.name in model.named_vars_to_dims or _known(v) for v in model.free_RVs)
        return cls(log_p, variables, inputs, data, layout, sized)

    def same_as(self, other: "Graph") -> bool:
        """Whether a program compiled for one computes the other, given its data."""
        from pytensor.graph.basic import equal_computations

        if self.layout != other.layout or self.inputs.keys() != other.inputs.keys():
            return False
        for name, mine in self.data.items():
            theirs = other.data[name]
            if mine.type != theirs.type:
                return False
            shapes = (v.get_value(borrow=True).shape for v in (mine, theirs))
            if not self.sized and len(set(shapes)) > 1:
                return False
        pairs = [(v, other.inputs[k]) for k, v in self.inputs.items()]
        return equal_computations(
            [self.log_p, *self.variables],
            [other.log_p, *other.variables],
            [a for a, _ in pairs],
            [b for _, b in pairs],
        )

    def copied(self) -> "Graph":
        """The same computations on the same inputs, shared with no other graph."""
        from pytensor.graph.basic import clone

        inputs = [*self.inputs.values()]
        _, outputs = clone(inputs, [self.log_p, *self.variables], copy_inputs=False)
        return replace(self, log_p=outputs[0], variables=list(outputs[1:]))


def _known(variable: Any) -> bool:
    """Whether the type tells the shape."""
    return None not in variable.type.shape


def _in_coordinates(model: Any) -> list[Any]:
    """Free variables and deterministics as functions of the unconstrained coordinates."""
    found: list[Any] = model.replace_rvs_by_values([*model.free_RVs, *model.deterministics])
    return found


class Program(NamedTuple):
    """A compiled log density and the graph that it was compiled from."""

    graph: Graph
    compiled: Any  # nutpie's
    turning: "Turning"


def find(graph: Graph) -> Program | None:
    """A program that was compiled from the same graph, if one is kept."""
    return next((p for p in PROGRAMS if p.graph.same_as(graph)), None)


def compiled_program(model: Any, progressbar: bool) -> tuple[Program, Any]:
    """The program of a model, and nutpie's part with its data; call with the lock held."""
    import pandas as pd

    from bayesgen.inference.by_address import compile_model

    graph = Graph.of(model)
    program = find(graph)
    if program is None:
        graph = graph.copied()  # the compiler rewrites parts that the model's graphs share
        with _announced(progressbar):
            # without checks of the parameters: ours are checked, and the checks take time
            checked, model.check_bounds = model.check_bounds, False
            try:
                compiled = compile_model(model)
            finally:
                model.check_bounds = checked
        # labels of some types (uint8, dates) are no coordinates for nutpie, and are ours to write
        counted = {k: pd.RangeIndex(len(v)) for k, v in compiled.coords.items()}
        compiled = replace(compiled, _coords=counted)
        program = Program(graph, compiled, Turning.of(model, graph.variables))
        PROGRAMS.append(program)
        return program, compiled
    values = {name: variable.get_value() for name, variable in graph.data.items()}
    for name, value in values.items():  # the starting points look here, and the turning
        program.graph.data[name].set_value(value)
    used = {variable.name for variable in program.compiled.shared_var_keys}
    own = {k: v for k, v in values.items() if k in used}
    return program, program.compiled.with_data(**own)


@contextmanager
def _announced(progressbar: bool) -> Iterator[None]:
    """Say that compiling has begun, and how long it may take."""
    if not progressbar:
        yield
        return
    from rich.console import Console

    text = (
        "compiling the model: 5 to 60 s, once per process; the next model of this shape starts "
        "sampling at once"
    )
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(text)
    with console.status(text) if console.is_terminal else nullcontext():
        yield


# ------------------------------------------------------------------------------ draws to variables


def turned(model: Any, points: Array) -> "xr.Dataset":
    """The model's variables at unconstrained points, in their dims and coords.

    Parameters
    ----------
    points : (chain, draw, number of free coordinates)
        In the order of the model's free variables.
    """
    return Turning.of(model, _in_coordinates(model)).turned(model, points)


@dataclass(frozen=True)
class Turning:
    """A function of the free coordinates, whose values are a model's variables."""

    function: Any
    shapes: tuple[tuple[int, ...], ...]  # of the coordinates of each free variable

    @classmethod
    def of(cls, model: Any, variables: list[Any]) -> "Turning":
        """Of `_in_coordinates`; compiling takes a tenth of a second."""
        import pytensor
        import pytensor.tensor as pt
        from pytensor.compile.mode import Mode
        from pytensor.graph.replace import vectorize_graph

        values = [model.rvs_to_values[v] for v in model.free_RVs]
        batch = {v: pt.tensor(v.name, dtype=v.dtype, shape=(None, *v.type.shape)) for v in values}
        # Python's linker: one evaluation of a few dozen operations is not worth a compiler
        function = pytensor.function(
            list(batch.values()),
            vectorize_graph(variables, batch),
            mode=Mode(linker="py", optimizer="fast_compile"),
            on_unused_input="ignore",
        )
        shapes = model.eval_rv_shapes()
        return cls(function, tuple(tuple(map(int, shapes[v.name])) for v in values))

    def turned(self, model: Any, points: Array) -> "xr.Dataset":
        """Draws of the variables of `model`, whose data the function holds."""
        import xarray as xr

        variables = [*model.free_RVs, *model.deterministics]
        n_chains, n_draws = points.shape[:2]
        flat, start = [], 0
        for shape in self.shapes:
            stop = start + int(np.prod(shape))
            flat.append(points[..., start:stop].reshape(n_chains * n_draws, *shape))
            start = stop
        first = self.function(*(a[:1] for a in flat))
        size = sum(a.size for a in first) + sum(a[:1].size for a in flat)
        step = max(1, int(_NUMBERS / size**1.5))  # products of matrices hold a third axis
        starts = range(0, len(flat[0]), step)
        blocks = [self.function(*(a[i : i + step] for a in flat)) for i in starts]
        out = {}
        for variable, *parts in zip(variables, *blocks, strict=True):
            # a constant (the one weight of one class) has one value for all draws
            moving = variable in model.free_RVs or parts[0].ndim > variable.ndim
            whole = (
                np.concatenate(parts)
                if moving
                else np.broadcast_to(parts[0], (len(flat[0]), *parts[0].shape))
            )
            dims = model.named_vars_to_dims.get(variable.name)
            dims = dims or [f"{variable.name}_dim_{i}" for i in range(whole.ndim - 1)]
            shape = (n_chains, n_draws, *whole.shape[1:])
            out[variable.name] = ((CHAIN, DRAW, *dims), whole.reshape(shape))
        used = {d for dims, _ in out.values() for d in dims}
        coords = {k: np.asarray(v) for k, v in model.coords.items() if k in used and v is not None}
        return xr.Dataset(out, coords | {CHAIN: np.arange(n_chains), DRAW: np.arange(n_draws)})
