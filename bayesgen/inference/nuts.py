"""NUTS: a PyMC model in, draws of all its variables out, compiled once per process."""

import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bayesgen.errors import Facts, refuse_below, refuse_other_spelling, warn
from bayesgen.families.errors import refuse_unknown
from bayesgen.families.names import CHAIN, COMPONENT, DRAW
from bayesgen.families.shared.graph_rows import third_parties
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr


# ------------------------------------------------------------------------------------------------
# Ctrl-C while a sampler of another package runs: never swallowed.
#
# PyMC and nutpie catch KeyboardInterrupt and return the draws that there are, padded with NaN
# where a chain has none; ``pymc.sample`` on one core even goes on with the next chain. Here an
# interrupt is an exception that they do not know, so that nothing is returned, and a
# KeyboardInterrupt again for the caller.


class _Interrupted(BaseException):
    """A KeyboardInterrupt under a name that no sampler catches."""


class Interrupts:
    """Whether an interrupt has come; call it where work that takes long begins or goes on.

    It raises again what was lost: an exception in a finalizer, or in a function that C calls (the
    compilers have such), is printed and forgotten.
    """

    def __init__(self) -> None:
        self.seen = False

    def __call__(self, *_: Any, **__: Any) -> None:
        """Raise if one has come; takes any arguments, as callbacks do."""
        if self.seen:
            raise _Interrupted


@contextmanager
def not_swallowed() -> Iterator[Interrupts]:
    """Within, an interrupt of the main thread is a KeyboardInterrupt for the caller, always.

    The program's own handler of SIGINT decides whether a signal is an interrupt: it is if that
    handler raises KeyboardInterrupt, as Python's does. Other threads never get signals.
    """
    before, interrupts = signal.getsignal(signal.SIGINT), Interrupts()
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return
    process = os.getpid()

    def handle(number: int, frame: Any) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            if os.getpid() != process:
                raise  # a forked worker ends quietly, as its own package has it
            interrupts.seen = True
            raise _Interrupted from None

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupts
    except BaseException:
        if interrupts.seen:  # an error on the way out, of a worker that was ended, says less
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts.seen:
        raise KeyboardInterrupt


# ------------------------------------------------------------------------------------------------
# What a sampler's own numbers say of its draws, as one warning that says what to try.
#
# Source: Vehtari et al. (2021), Rank-normalization, folding, and localization: an improved R-hat;
# Betancourt (2016), Diagnosing suboptimal cotangent disintegrations (divergences).

LARGEST_R_HAT = 1.01
FEWEST_DRAWS = 100  # effective, of each chain


class SamplingWarning(Facts, UserWarning):
    """Posterior draws with divergences, or of chains that disagree or are too short."""


class SamplingError(Facts, RuntimeError):
    """A sampler returned fewer draws than were asked for, or draws that are not finite."""


def refuse_incomplete(draws: Mapping[str, Array], chains: int, n_draws: int, sampler: str) -> None:
    """Raise a `SamplingError` that names the first chain without `n_draws` finite draws.

    Parameters
    ----------
    draws : {name: (chain, draw, *dims)}
    chains, n_draws : int
        How many were asked for.
    sampler : str
        For the message.
    """
    retry = "nothing was kept; sample again, and if it stays, look at the priors"
    for name, value in draws.items():
        if value.shape[0] < chains:
            raise SamplingError(
                f"{sampler}: {value.shape[0]} of {chains} chains were returned; {retry}"
            )
        finite = np.ones(value.shape[:2], dtype=bool)
        if value.dtype.kind in "fc":
            finite = np.isfinite(value).all(axis=tuple(range(2, value.ndim)))
        for chain, n in enumerate(finite.sum(axis=1)):
            if n < n_draws:
                raise SamplingError(
                    f"{sampler}: chain {chain} has {n} of {n_draws} draws of {name!r}; the others "
                    f"are missing or not finite; {retry}"
                )


class Diagnosis(NamedTuple):
    """The worst of all parameters."""

    divergences: int
    r_hat: float
    r_hat_of: str
    ess: float
    ess_of: str
    n_chains: int
    broken: str = ""  # what no number tells: chains that do not move, or are one chain

    def attributes(self) -> dict[Hashable, Any]:
        """For the attributes of a tree; ``verdict`` is ``"sound"`` or `complaints`."""
        own = {"divergences": self.divergences, "r_hat": self.r_hat, "ess": self.ess}
        return own | {"verdict": "; ".join(self.complaints()) or "sound"}

    def complaints(self) -> list[str]:
        """What is wrong, and what to try; empty if nothing is."""
        out = [self.broken] if self.broken else []
        if self.divergences:
            out.append(
                f"{self.divergences} draw(s) diverged: regions of the posterior may have been left "
                "out; try target_accept=0.95, or priors that say more"
            )
        if self.r_hat > LARGEST_R_HAT:
            out.append(
                f"R-hat of {self.r_hat_of} is {self.r_hat:.4g} (> {LARGEST_R_HAT}): the chains "
                "disagree; try more tune and draws, and if it stays, the posterior has several "
                "modes: label more rows, give priors that tell the classes apart, or divide a "
                "class into fewer components"
            )
        if self.ess < FEWEST_DRAWS * self.n_chains:
            out.append(
                f"{self.ess_of} has {self.ess:.0f} effective draws (< {FEWEST_DRAWS} a chain): "
                "its quantiles are not to be trusted; try more draws"
            )
        return out


def diagnose(posterior: "xr.Dataset", sample_stats: "xr.Dataset") -> Diagnosis:
    """Divergences, the largest R-hat and the smallest effective sample size (bulk and tail).

    Components of a mixture have no order, hence no R-hat: densities of rows stand for them.
    """
    posterior = posterior.drop_dims(COMPONENT, errors="ignore")
    n_chains, n_draws = posterior.sizes[CHAIN], posterior.sizes["draw"]
    diverging = int(sample_stats["diverging"].sum()) if "diverging" in sample_stats else 0
    if n_draws < 4:
        return Diagnosis(
            diverging, np.nan, "", float(n_chains * n_draws), "every parameter", n_chains
        )
    with np.errstate(invalid="ignore", over="ignore"):  # what is infinite is no constant
        moving = {str(k): v.std((CHAIN, "draw")).values != 0 for k, v in posterior.items()}
    moving = {k: at for k, at in moving.items() if at.any()}
    broken = _broken({k: posterior[k].values for k in moving})
    if not moving:
        return Diagnosis(diverging, np.inf, "every parameter", 0.0, "it", n_chains, broken)
    own = posterior[list(moving)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant among numbers that vary has no R-hat
        import arviz as az

        found = {"r_hat": az.rhat(own)}
        found |= {method: az.ess(own, method=method) for method in ("bulk", "tail")}
    # a component that varies and has none is the worst there is
    r_hat = {
        k: float(np.where(np.isnan(v := found["r_hat"][k].values), np.inf, v)[at].max())
        for k, at in moving.items()
    }
    ess = {
        k: min(float(np.nan_to_num(found[m][k].values)[at].min()) for m in ("bulk", "tail"))
        for k, at in moving.items()
    }
    worst, fewest = max(r_hat, key=r_hat.__getitem__), min(ess, key=ess.__getitem__)
    return Diagnosis(diverging, r_hat[worst], worst, ess[fewest], fewest, n_chains, broken)


def _broken(draws: Mapping[str, Array]) -> str:
    """What is wrong with chains {name: (chain, draw, *dims)} of which R-hat may say nothing."""
    retry = "sample again with another random_state, and look at the priors"
    if not draws:
        return f"no parameter varies: the chains never moved; {retry}"
    flat = np.concatenate([v.reshape(*v.shape[:2], -1) for v in draws.values()], axis=2)
    if not np.isfinite(flat).all():
        return f"some draws are not finite; {retry}"
    stuck = np.flatnonzero((flat == flat[:, :1]).all(axis=(1, 2)))
    if len(stuck):
        return f"chain {stuck[0]} never moved; {retry}"
    if len(flat) == 1:
        return "one chain has no other to be compared with; try chains=4"
    for chain in range(1, len(flat)):
        twin = np.flatnonzero((flat[:chain] == flat[chain]).all(axis=(1, 2)))
        if len(twin):
            return f"chains {twin[0]} and {chain} are identical, hence one chain; {retry}"
    return ""


def warn_unless_sound(
    posterior: "xr.Dataset",
    sample_stats: "xr.Dataset",
    sampler: str = "NUTS",
) -> Diagnosis:
    """One `SamplingWarning` with all `Diagnosis.complaints`, if there are any."""
    found = diagnose(posterior, sample_stats)
    complaints = found.complaints()
    if complaints:
        warn(f"{sampler}: " + "; ".join(complaints), SamplingWarning)
    return found


# ------------------------------------------------------------------------------------------------
# Compiled log densities of PyMC models, kept for later models with the same graph.
#
# Compiling takes longer than sampling (5 to 60 s against less than one), so a compiled log density
# is kept and serves every later model with the same graph: hyper-parameters, statistics and rows
# are data of the model (``pm.Data``), which a compiled program takes anew, be they more or fewer.
# Two graphs are the same if PyTensor says so, node by node; nothing is inferred from names.
#
# Only the log density is compiled. Draws are turned from unconstrained coordinates into the
# model's variables afterwards, all at once, in NumPy, by a function that is kept with the density.

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


# ------------------------------------------------------------------------------------------------
# PyMC's log density for nutpie, called where PyTensor has put its machine code.
#
# PyTensor keeps the compiled graph on disk (``pytensor.config.base_compiledir / "numba"``, by
# default ``~/.pytensor/numba``), by a hash of its operations and by numba's version; processes may
# share the folder. nutpie wraps the function so that numba compiles it once more, in every
# process: 10 of the 12 seconds before the first draw of iris. Here the wrapper calls it by its
# address and has a few lines of its own, compiled in a second. What is computed is the same
# function.
#
# The builder of the wrapper is no public name of nutpie. Where it is not what it was in nutpie
# 0.16, its own takes over.

_LOG_P = """
def log_p(dim, x_, out_, log_p_, data_):
    if dim != {n}:
        return -1
    shared = carray(data_, (), record)["shared"]
    total, out = carray(log_p_, (1,)), carray(out_, ({n},))
    value, gradient = call({arguments})
    if gradient.size != {n}:
        return 1
    total[0] = value.item()
    for i in range({n}):
        out[i] = gradient[i]
        if not isfinite(out[i]):
            return 3
    return 0 if isfinite(total[0]) else 4
"""
_ARRAY = 'carray(pointer(shared["data"]["{key}"][()]), {shape}, dtype_{i})'


def compile_model(model: Any) -> Any:
    """As ``nutpie.compile_pymc_model(model, var_names=[])``; call with the lock held."""
    import nutpie

    try:
        with _wrapper():
            return nutpie.compile_pymc_model(model, var_names=[])
    except _ChangedError as error:
        warn(
            f"this version of nutpie or numba is another than bayesgen knows ({error}): every "
            "process compiles its models anew, 10 s and more",
            UserWarning,
        )
        return nutpie.compile_pymc_model(model, var_names=[])


class _ChangedError(Exception):
    """nutpie or numba is not as it was."""


@contextmanager
def _wrapper() -> Iterator[None]:
    """Our builder of the wrapper in place of nutpie's."""
    from nutpie import compile_pymc as theirs

    own = getattr(theirs, "_make_c_logp_func", None)
    if own is None or not hasattr(theirs, "address_as_void_pointer"):
        raise _ChangedError("nutpie.compile_pymc")
    theirs._make_c_logp_func = _log_p
    try:
        yield
    finally:
        theirs._make_c_logp_func = own


def _log_p(n_dim: int, function: Any, data: Any, keys: list[str], arrays: Any) -> tuple[Any, Any]:
    """The function that nutpie calls for log density and gradient, and its C signature."""
    import numba
    from nutpie.compile_pymc import address_as_void_pointer

    types = numba.types
    own = [numba.typeof(arrays[key]) for key in keys]
    try:
        address = _address(function, (types.Array(types.float64, 1, "C"), *own))
    except (AttributeError, KeyError, TypeError, NotImplementedError) as error:
        raise _ChangedError(repr(error)) from error

    @numba.njit
    def call(*arguments: Any) -> Any:  # pragma: no cover - compiled
        return address(arguments)

    names: dict[str, Any] = {
        "carray": numba.carray,
        "isfinite": np.isfinite,
        "pointer": address_as_void_pointer,
        "record": data.dtype,
        "call": call,
    }
    given = [f"carray(x_, ({n_dim},))"]
    for i, key in enumerate(keys):
        lengths = "".join(f'shared["shape"]["{key}"][{k}], ' for k in range(arrays[key].ndim))
        names[f"dtype_{i}"] = arrays[key].dtype
        given.append(_ARRAY.format(key=key, shape=f"({lengths})", i=i))
    source = _LOG_P.format(n=n_dim, arguments=", ".join(given))
    exec(source, names)
    pointers = (types.CPointer(types.double),) * 3
    return names["log_p"], types.int64(types.uint64, *pointers, types.voidptr)


def _address(dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    """A function of numba's own that is called by its address, with one tuple of arguments."""
    from numba import types

    star = types.StarArgTuple.from_types(arguments)
    dispatcher.compile((star,))  # or read from disk
    result = dispatcher.overloads[(star,)]
    place = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    if not place:
        raise KeyError(result.fndesc.llvm_cfunc_wrapper_name)

    class Address(types.WrapperAddressProtocol):
        code = result  # keeps the machine code

        def __wrapper_address__(self) -> int:
            return int(place)

        def signature(self) -> Any:
            return result.signature.return_type(star)

    return Address()


Sampler = Literal["nutpie", "pymc", "numpyro", "blackjax"]
Start = Callable[[np.random.Generator], dict[str, Array]]
SAMPLERS: tuple[Sampler, ...] = ("nutpie", "pymc", "numpyro", "blackjax")


def sample(
    model: Any,
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    random_state: int | None = None,
    nuts_sampler: Sampler = "nutpie",
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
    random_state : int, optional
    nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
        The last two run in JAX and must be installed. JAX calls our own kernels on the host, up to
        a millisecond a call.
    progressbar : bool
        Also says when compilation begins.
    start : callable, optional
        Values of the free variables, by name, where a chain starts. None: near the prior's centre.
    **options
        To the sampler: ``target_accept``, ``maxdepth`` (nutpie), ``nuts`` (pymc),
        ``chain_method`` (numpyro, blackjax), ...

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
    ImportError
        If the sampler is not installed.
    KeyboardInterrupt
        On an interrupt: at once, in JAX when it returns to Python. No draws are returned then.
    """
    refuse_other_spelling("sample", options)
    check(draws, tune, chains, nuts_sampler)
    if not model.free_RVs:
        raise ValueError("the model has no free variable: there is nothing to sample")
    run = _by_nutpie if nuts_sampler == "nutpie" else partial(_by_pymc, nuts_sampler)
    with third_parties(), not_swallowed() as interrupts:
        sizes = {"draws": draws, "tune": tune, "chains": chains}
        posterior, stats = run(model, sizes, random_state, progressbar, start, interrupts, options)
    found = {str(name): variable.values for name, variable in posterior.data_vars.items()}
    refuse_incomplete(found, chains, draws, f"NUTS ({nuts_sampler})")
    return posterior, stats


def check(draws: int, tune: int, chains: int, nuts_sampler: str) -> None:
    """Raise an error for arguments of `sample` that make no sense, or a sampler that is missing."""
    refuse_below(0, tune=tune)
    refuse_below(1, draws=draws, chains=chains)
    refuse_unknown("nuts_sampler", nuts_sampler, SAMPLERS)
    if find_spec(nuts_sampler) is None:
        raise ImportError(
            f"nuts_sampler={nuts_sampler!r} needs a package that is not installed: "
            f"pip install {nuts_sampler}; 'nutpie' and 'pymc' are always there"
        )


# ----------------------------------------------------------------------------------- samplers


def _by_pymc(
    nuts_sampler: Sampler,
    model: Any,
    sizes: dict[str, int],
    random_state: int | None,
    progressbar: bool,
    start: "Start | None",
    interrupts: Interrupts,
    options: dict[str, Any],
) -> tuple["xr.Dataset", "xr.Dataset"]:
    import pymc as pm

    if start is not None:
        rng = generator(random_state)
        free = {v.name for v in model.free_RVs}
        each = (start(rng) for _ in range(sizes["chains"]))
        first = [{k: v for k, v in one.items() if k in free} for one in each]
        options = {"initvals": first, **options}
    if nuts_sampler == "pymc":
        own = options.get("callback")

        def at_each_draw(**what: Any) -> None:
            interrupts()
            if own is not None:
                own(**what)

        options |= {"callback": at_each_draw}
    else:  # in JAX
        options = {"initvals": options.pop("initvals", None), "nuts": options}

    tree = pm.sample(
        **sizes,
        random_seed=random_state,
        model=model,
        nuts_sampler=nuts_sampler,
        progressbar=progressbar,
        compute_convergence_checks=False,
        quiet=True,
        **options,
    )
    return tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()


def _by_nutpie(
    model: Any,
    sizes: dict[str, int],
    random_state: int | None,
    progressbar: bool,
    start: "Start | None",
    interrupts: Interrupts,
    options: dict[str, Any],
) -> tuple["xr.Dataset", "xr.Dataset"]:
    import nutpie

    with LOCK:  # the functions of a program hold the data of one user at a time
        program, compiled = compiled_program(model, progressbar)
        if start is not None:
            compiled = replace(
                compiled,
                initial_point_func=starting_points(model, start, compiled.initial_point_func),
            )
        interrupts()
        try:
            tree = nutpie.sample(
                compiled,
                **sizes | {"tune": max(sizes["tune"], 1)},  # nutpie panics at 0
                seed=random_state,
                save_warmup=False,
                store_unconstrained=True,
                progress_bar=progressbar,
                **options,
            )
        except RuntimeError as error:  # with the stack of a compiled library
            raise SamplingError(
                f"NUTS (nutpie) stopped: {str(error).strip().splitlines()[0]}. The density is 0 or "
                "not finite wherever the chains began: a prior may have no mass where its "
                "parameter must lie, as a scale must be positive"
            ) from None
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


def draw_prior(
    model: Any, names: Iterable[str], n: int, random_state: int | None = None
) -> dict[str, Array]:
    """{name: (n, *dims)} of a model that is conditioned on nothing.

    By Python's linker: a few thousand draws of a few variables are not worth a compiler.
    """
    import pymc as pm
    from pytensor.compile.mode import Mode

    names = list(names)
    mode = Mode(linker="py", optimizer="fast_compile")
    with third_parties(), model:
        found = pm.draw([model[k] for k in names], draws=n, random_seed=random_state, mode=mode)
    pairs = zip(names, found, strict=True)
    # of one draw PyMC leaves the axis out
    return {name: np.asarray(value)[None] if n == 1 else np.asarray(value) for name, value in pairs}
