"""NUTS: a PyMC model in, draws of all its variables out, compiled once a process.

Compiling takes longer than sampling (5 to 60 s against less than one), so a compiled log density
is kept and serves every later model with the same graph: hyper-parameters, statistics and rows are
data of the model (``pm.Data``), which a compiled program takes anew, be they more or fewer. Two
graphs are the same if PyTensor says so, node by node; nothing is inferred from names.

Only the log density is compiled. Draws are turned from unconstrained coordinates into the model's
variables afterwards, all at once, in NumPy, by a function that is kept with the density.
"""

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bayesgen.families.names import CHAIN, DRAW
from bayesgen.inference.diagnostics import refuse_incomplete
from bayesgen.inference.interrupts import Interrupts, not_swallowed
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

Sampler = Literal["nutpie", "pymc"]
Start = Callable[[np.random.Generator], dict[str, Array]]
SAMPLERS: tuple[Sampler, ...] = ("nutpie", "pymc")
_KEPT = 16  # compiled programs; each holds some MB of machine code
_PROGRAMS: "deque[_Program]" = deque(maxlen=_KEPT)
_LOCK = threading.RLock()
_NUMBERS = 1 << 23  # of an intermediate array while draws are turned: 64 MB


def sample(
    model: Any,
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    sampler: Sampler = "nutpie",
    progressbar: bool = True,
    start: "Start | None" = None,
    **options: Any,
) -> tuple["xr.Dataset", "xr.Dataset"]:
    """Posterior draws of a PyMC model, and what the sampler says of them.

    Parameters
    ----------
    model : pymc.Model
    draws, tune, chains : int
        Draws of each chain, after `tune` steps that are thrown away.
    random_seed : int, optional
    sampler : {"nutpie", "pymc"}
    progressbar : bool
        Also says when compilation begins.
    start : callable, optional
        Values of the free variables, by name, where a chain starts. None: near the prior's centre.
    **options
        To the sampler: ``target_accept``, ``maxdepth`` (nutpie), ``nuts`` (pymc), ...

    Returns
    -------
    posterior : xarray.Dataset
        Free variables and deterministics, (chain, draw, *dims).
    sample_stats : xarray.Dataset
        ``diverging``, ``step_size``, ``tree_depth`` and others of the sampler.

    Raises
    ------
    SamplingError
        If a chain ended early, or has draws that are not finite.
    KeyboardInterrupt
        On an interrupt, at once; no draws are returned then.
    """
    check(draws, tune, chains, sampler)
    if not model.free_RVs:
        raise ValueError("the model has no free variable: there is nothing to sample")
    run = _by_nutpie if sampler == "nutpie" else _by_pymc
    with third_parties(), not_swallowed() as interrupts:
        posterior, stats = run(
            model, draws, tune, chains, random_seed, progressbar, start, interrupts, options
        )
    found = {str(name): variable.values for name, variable in posterior.data_vars.items()}
    refuse_incomplete(found, chains, draws, f"NUTS ({sampler})")
    return posterior, stats


def check(draws: int, tune: int, chains: int, sampler: str) -> None:
    """Raise a ValueError for arguments of `sample` that make no sense."""
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1)):
        if not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    if sampler not in SAMPLERS:
        raise ValueError(
            f"sampler must be one of {', '.join(map(repr, SAMPLERS))}, got {sampler!r}"
        )


def is_compiled(model: Any) -> bool:
    """Whether `sample` (by nutpie) of this model needs no compilation in this process."""
    with _LOCK, third_parties():
        return _find(_Graph.of(model)) is not None


# -------------------------------------------------------------------------------- two samplers


def _by_pymc(
    model: Any,
    draws: int,
    tune: int,
    chains: int,
    random_seed: int | None,
    progressbar: bool,
    start: "Start | None",
    interrupts: Interrupts,
    options: dict[str, Any],
) -> tuple["xr.Dataset", "xr.Dataset"]:
    import pymc as pm

    if start is not None:
        rng = np.random.default_rng(random_seed)
        free = {v.name for v in model.free_RVs}
        first = [{k: v for k, v in start(rng).items() if k in free} for _ in range(chains)]
        options = {"initvals": first, **options}
    own = options.pop("callback", None)

    def at_each_draw(**what: Any) -> None:
        interrupts()
        if own is not None:
            own(**what)

    tree = pm.sample(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=random_seed,
        model=model,
        nuts_sampler="pymc",
        progressbar=progressbar,
        compute_convergence_checks=False,
        quiet=True,
        callback=at_each_draw,
        **options,
    )
    return tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()


def _by_nutpie(
    model: Any,
    draws: int,
    tune: int,
    chains: int,
    random_seed: int | None,
    progressbar: bool,
    start: "Start | None",
    interrupts: Interrupts,
    options: dict[str, Any],
) -> tuple["xr.Dataset", "xr.Dataset"]:
    import nutpie

    with _LOCK:  # the functions of a program hold the data of one user at a time
        program, compiled = _program(model, progressbar)
        if start is not None:
            compiled = replace(
                compiled,
                initial_point_func=starting_points(model, start, compiled.initial_point_func),
            )
        interrupts()
        tree = nutpie.sample(
            compiled,
            draws=draws,
            tune=max(tune, 1),  # nutpie stops with a panic at 0
            chains=chains,
            seed=random_seed,
            save_warmup=False,
            store_unconstrained=True,
            progress_bar=progressbar,
            **options,
        )
        points = tree["sample_stats"]["unconstrained_draw"].values
        posterior = program.turning.turned(model, points)
    stats = tree["sample_stats"].to_dataset()
    stats = stats.drop_vars(["unconstrained_draw", *_OF_ADAPTATION], errors="ignore")
    stats = stats.drop_dims("unconstrained_parameter", errors="ignore")
    stats = stats.rename({k: v for k, v in _ARVIZ_NAMES.items() if k in stats})
    return posterior, stats


def starting_points(model: Any, start: "Start", default: Any) -> Any:
    """What nutpie asks for: the unconstrained coordinates of a starting point, by its seed."""
    import pytensor
    from pytensor.compile.mode import Mode

    outputs = []
    for variable in model.free_RVs:
        transform = model.rvs_to_transforms[variable]
        known = transform is None
        outputs.append(variable if known else transform.forward(variable, *variable.owner.inputs))
    mode = Mode(linker="py", optimizer="fast_compile")
    forward = pytensor.function(model.free_RVs, outputs, mode=mode, on_unused_input="ignore")

    one_at_a_time = threading.Lock()  # a function of PyTensor holds what it works on

    def point(seed: Any) -> Array:
        values = start(np.random.default_rng(seed))
        with one_at_a_time, np.errstate(all="ignore"):
            parts = forward(*(values[v.name] for v in model.free_RVs))
        flat = np.concatenate([np.ravel(part) for part in parts]).astype(np.float64)
        return flat if np.isfinite(flat).all() else default(seed)  # a probability underflowed to 0

    return point


# nutpie's names where ArviZ has another
_ARVIZ_NAMES = {"depth": "tree_depth", "mean_tree_accept": "acceptance_rate", "logp": "lp"}
_OF_ADAPTATION = (
    "divergence_message",
    "fisher_distance",
    "transformation_index",
    "transformation_update_id",
)


# ------------------------------------------------------------------------------ compiled programs


@dataclass(frozen=True)
class _Graph:
    """The log density and the variables of a model, and the inputs of their graph by name."""

    log_p: Any
    variables: list[Any]  # as functions of the unconstrained coordinates
    inputs: dict[str, Any]
    data: dict[str, Any]  # the shared variables among them
    layout: tuple[Any, ...]  # names of the variables, lengths of the dims
    sized: bool  # whether no data decide on how many coordinates there are

    @classmethod
    def of(cls, model: Any) -> "_Graph":
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

    def same_as(self, other: "_Graph") -> bool:
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

    def copied(self) -> "_Graph":
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


class _Program(NamedTuple):
    """A compiled log density and the graph that it was compiled from."""

    graph: _Graph
    compiled: Any  # nutpie's
    turning: "_Turning"


def _find(graph: _Graph) -> _Program | None:
    return next((p for p in _PROGRAMS if p.graph.same_as(graph)), None)


def _program(model: Any, progressbar: bool) -> tuple[_Program, Any]:
    """The program of a model, and nutpie's part with its data; call with the lock held."""
    import nutpie
    import pandas as pd

    graph = _Graph.of(model)
    program = _find(graph)
    if program is None:
        graph = graph.copied()  # the compiler rewrites parts that the model's graphs share
        with _announced(progressbar):
            # without checks of the parameters: ours are checked, and the checks take time
            checked, model.check_bounds = model.check_bounds, False
            try:
                compiled = nutpie.compile_pymc_model(model, var_names=[])
            finally:
                model.check_bounds = checked
        # labels of some types (uint8, dates) are no coordinates for nutpie, and are ours to write
        counted = {k: pd.RangeIndex(len(v)) for k, v in compiled.coords.items()}
        compiled = replace(compiled, _coords=counted)
        program = _Program(graph, compiled, _Turning.of(model, graph.variables))
        _PROGRAMS.append(program)
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
        "compiling the model: 5 to 60 s, once a process; the next model of this shape starts "
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
    return _Turning.of(model, _in_coordinates(model)).turned(model, points)


@dataclass(frozen=True)
class _Turning:
    """A function of the free coordinates, whose values are a model's variables."""

    function: Any
    shapes: tuple[tuple[int, ...], ...]  # of the coordinates of each free variable

    @classmethod
    def of(cls, model: Any, variables: list[Any]) -> "_Turning":
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


def draw_prior(
    model: Any, names: Iterable[str], n: int, random_seed: int | None = None
) -> dict[str, Array]:
    """{name: (n, *dims)} of a model that is conditioned on nothing.

    By Python's linker: a few thousand draws of a few variables are not worth a compiler.
    """
    import pymc as pm
    from pytensor.compile.mode import Mode

    names = list(names)
    mode = Mode(linker="py", optimizer="fast_compile")
    with third_parties(), model:
        found = pm.draw([model[k] for k in names], draws=n, random_seed=random_seed, mode=mode)
    pairs = zip(names, found, strict=True)
    # of one draw PyMC leaves the axis out
    return {name: np.asarray(value)[None] if n == 1 else np.asarray(value) for name, value in pairs}


@contextmanager
def third_parties() -> Iterator[None]:
    """Warnings of PyMC, PyTensor, numba and nutpie about each other are theirs to mend."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message="Cannot cache compiled function")
        yield
