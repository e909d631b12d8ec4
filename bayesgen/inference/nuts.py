"""NUTS: a PyMC model in, draws of all its variables out, compiled once a structure."""

import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bayesgen.errors import Facts, refuse_below, refuse_unknown, warn
from bayesgen.families.names import CHAIN, COMPONENT, DRAW
from bayesgen.families.shared.graph_rows import numpy_mode, third_parties
from bayesgen.numerics.special import Array, generator, integer_seed

if TYPE_CHECKING:
    import xarray as xr

Sampler = Literal["nutpie", "pymc", "numpyro", "blackjax"]
Start = Callable[[np.random.Generator], dict[str, Array]]
SAMPLERS: tuple[Sampler, ...] = ("nutpie", "pymc", "numpyro", "blackjax")


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
    """Raise an error that names the first chain without `n_draws` finite draws.

    PyMC and nutpie catch an interrupt and return the draws that there are, some with NaN for the
    rest. Such draws end in the KeyboardInterrupt that they were.

    Parameters
    ----------
    draws : {name: (chain, draw, *dims)}
    chains, n_draws : int
        How many were asked for.
    sampler : str
        For the message.

    Raises
    ------
    KeyboardInterrupt
        If draws are missing.
    SamplingError
        If a draw is not finite.
    """
    finite = {k: np.isfinite(v.reshape(*v.shape[:2], -1)).all(axis=2) for k, v in draws.items()}
    if not all(value.shape == (chains, n_draws) for value in finite.values()) or any(
        not np.any([value[chain, -1] for value in finite.values()]) for chain in range(chains)
    ):
        raise KeyboardInterrupt(f"{sampler} was interrupted: nothing was kept")
    for name, value in finite.items():
        sound = value.sum(axis=1)
        if len(short := np.flatnonzero(sound < n_draws)):
            raise SamplingError(
                f"{sampler}: chain {short[0]} has {sound[short[0]]} finite of {n_draws} draws of "
                f"{name!r}; nothing was kept; sample again, and if it stays, look at the priors"
            )


class Diagnosis(NamedTuple):
    """The worst of all parameters."""

    divergences: int
    r_hat: float
    r_hat_of: str
    ess: float
    ess_of: str
    n_chains: int

    def attributes(self) -> dict[Hashable, float | str]:
        """For the attributes of a tree; ``verdict`` is ``"sound"`` or `complaints`."""
        numbers = {"divergences": self.divergences, "r_hat": self.r_hat, "ess": self.ess}
        return numbers | {"verdict": "; ".join(self.complaints()) or "sound"}

    def complaints(self) -> list[str]:
        """Say what is wrong, and what to try; empty if nothing is."""
        complaints = []
        if self.divergences:
            complaints.append(
                f"{self.divergences} draw(s) diverged: regions of the posterior may have been left "
                "out; try target_accept=0.95, or priors that say more"
            )
        if self.r_hat > LARGEST_R_HAT:
            complaints.append(
                f"R-hat of {self.r_hat_of} is {self.r_hat:.4g} (> {LARGEST_R_HAT}): the chains "
                "disagree; try more tune and draws, and if it stays, the posterior has several "
                "modes: label more rows, give priors that tell the classes apart, or divide a "
                "class into fewer components"
            )
        if self.ess < FEWEST_DRAWS * self.n_chains:
            complaints.append(
                f"{self.ess_of} has {self.ess:.0f} effective draws (< {FEWEST_DRAWS} a chain): "
                "its quantiles are not to be trusted; try more draws"
            )
        return complaints


def diagnose(posterior: "xr.Dataset", sample_stats: "xr.Dataset") -> Diagnosis:
    """Return divergences, the largest R-hat and the smallest effective sample size, by ArviZ.

    Components of a mixture have no order, hence no R-hat: densities of rows stand for them.
    """
    import arviz as az

    posterior = posterior.drop_dims(COMPONENT, errors="ignore")
    n_chains, n_draws = posterior.sizes[CHAIN], posterior.sizes[DRAW]
    diverging = int(sample_stats["diverging"].sum()) if "diverging" in sample_stats else 0
    if n_draws < 4:
        n_all = float(n_chains * n_draws)
        return Diagnosis(diverging, np.nan, "", n_all, "every parameter", n_chains)
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite draw has no deviation
        over = (CHAIN, DRAW)
        span = {
            k: (v.min(over, skipna=False), v.max(over, skipna=False)) for k, v in posterior.items()
        }
        moving = {str(k): (low != high).values for k, (low, high) in span.items()}
    moving = {name: cells for name, cells in moving.items() if cells.any()}
    if not moving:
        return Diagnosis(diverging, np.inf, "every parameter", 0.0, "it", n_chains)
    varying = posterior[list(moving)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant among numbers that vary has no R-hat
        r_hats, sizes = az.rhat(varying), [az.ess(varying, method=m) for m in ("bulk", "tail")]
    # a component that varies and has no R-hat or size is the worst there is
    r_hat = {
        name: float(np.nan_to_num(r_hats[name].values, nan=np.inf)[cells].max())
        for name, cells in moving.items()
    }
    ess = {
        name: min(float(np.nan_to_num(size[name].values)[cells].min()) for size in sizes)
        for name, cells in moving.items()
    }
    worst, fewest = max(r_hat, key=r_hat.__getitem__), min(ess, key=ess.__getitem__)
    return Diagnosis(diverging, r_hat[worst], worst, ess[fewest], fewest, n_chains)


def warn_unless_sound(
    posterior: "xr.Dataset",
    sample_stats: "xr.Dataset",
    sampler: str = "NUTS",
) -> Diagnosis:
    """One `SamplingWarning` with all `Diagnosis.complaints`, if there are any."""
    diagnosis = diagnose(posterior, sample_stats)
    complaints = diagnosis.complaints()
    if complaints:
        warn(f"{sampler}: " + "; ".join(complaints), SamplingWarning)
    return diagnosis


# ------------------------------------------------------------------------------------------------
# Compiled models, kept for later models with the same graph.
#
# Compiling takes longer than sampling (10 to 60 s against less than one). Hyper-parameters,
# statistics and rows are data of a model (``pm.Data``), which a compiled one takes anew. Two
# models have one structure if their arrays have the same shapes and PyTensor says that their
# graphs compute the same.


class Compiled(NamedTuple):
    """A model that nutpie has compiled, and the graph that later models are compared with."""

    model: Any
    outputs: list[Any]
    inputs: list[Any]
    layout: tuple[Any, ...]
    program: Any  # nutpie's


KEPT: deque[Compiled] = deque(maxlen=16)  # each holds some MB of machine code
LOCK = threading.RLock()
_COMPILING = (
    "compiling the model: 10 to 60 s, once per process; the next model of this shape starts "
    "sampling at once"
)


def graph_of(model):
    """Return what a model computes, from what, and the names and shapes of all of it."""
    outputs = [model.logp(), *model.replace_rvs_by_values(model.deterministics)]
    inputs = [*model.value_vars, *model.data_vars, *model.dim_lengths.values()]
    layout = (
        [(v.name, v.type.dtype, v.type.shape) for v in model.value_vars],
        [(v.name, v.type.dtype, v.get_value(borrow=True).shape) for v in model.data_vars],
        [
            (name, int(length.get_value() if hasattr(length, "get_value") else length.eval()))
            for name, length in model.dim_lengths.items()
        ],
        [(v.name, model.named_vars_to_dims.get(v.name)) for v in model.unobserved_RVs],
    )
    return outputs, inputs, layout


def compiled(model, progressbar: bool) -> Compiled:
    """Return a compiled model of the same structure with the data of `model`; hold the lock."""
    import nutpie
    from pytensor.graph.basic import clone, equal_computations

    outputs, inputs, layout = graph_of(model)
    for kept in KEPT:
        if kept.layout == layout and equal_computations(outputs, kept.outputs, inputs, kept.inputs):
            data = {v.name: v.get_value() for v in model.data_vars}
            for name, value in data.items():  # starting points look here
                kept.model[name].set_value(value)
            used = {v.name for v in kept.program.shared_var_keys}
            program = kept.program.with_data(**{k: v for k, v in data.items() if k in used})
            return kept._replace(program=program)
    _, outputs = clone(inputs, outputs, copy_inputs=False)  # the compiler rewrites in place
    if progressbar:
        sys.stderr.write(f"{_COMPILING}\n")
    program = nutpie.compile_pymc_model(model)
    KEPT.append(Compiled(model, list(outputs), inputs, layout, program))
    return KEPT[-1]


# ------------------------------------------------------------------------------------- sampling


def sample(
    model,
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
    """Draw from the posterior of a PyMC model.

    Parameters
    ----------
    model : pymc.Model
    draws, tune, chains : int
        Draws of each chain, after `tune` steps that are thrown away.
    random_state : int, optional
    nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
        The last two run in JAX and must be installed.
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
        If a chain has draws that are not finite.
    KeyboardInterrupt
        On an interrupt, when the sampler has returned. No draws are kept then.
    ImportError
        If the sampler is not installed.
    """
    refuse_seed(options)
    check(draws, tune, chains, nuts_sampler)
    if not model.free_RVs:
        raise ValueError("the model has no free variable: there is nothing to sample")
    run = _by_nutpie if nuts_sampler == "nutpie" else partial(_by_pymc, nuts_sampler)
    sizes = {"draws": draws, "tune": tune, "chains": chains}
    with third_parties():
        tree = run(model, sizes, random_state, progressbar, start, options)
    posterior, stats = (tree[name].to_dataset() for name in ("posterior", "sample_stats"))
    values = {str(name): variable.values for name, variable in posterior.data_vars.items()}
    refuse_incomplete(values, chains, draws, f"NUTS ({nuts_sampler})")
    labels = {
        name: np.asarray(label)
        for name, label in model.coords.items()
        if name in posterior.dims and label is not None
    }
    stats = stats.drop_vars(_OF_ADAPTATION, errors="ignore")
    stats = stats.rename({k: v for k, v in _ARVIZ_NAMES.items() if k in stats})
    return posterior.assign_coords(labels), stats


def refuse_seed(options) -> None:
    """Raise TypeError where the seed has PyMC's name: each sampler would get two."""
    if "random_seed" in options:
        raise TypeError("there is no argument 'random_seed': use random_state=")


def check_options(defaults, options) -> dict[str, Any]:
    """Return the options of the sampler, checked before any work.

    Parameters
    ----------
    defaults, options : dict
        Of the classifier's constructor, and of the call, which go first.
    """
    refuse_seed(options)
    options = defaults | options
    if options.get("random_state") is not None:
        options["random_state"] = integer_seed(options["random_state"])
    sizes = {"draws": 1, "tune": 1, "chains": 1, "nuts_sampler": "nutpie"}
    check(*(options.get(name, default) for name, default in sizes.items()))
    return options


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


def _by_pymc(
    sampler: str,
    model,
    sizes: dict[str, int],
    random_state: int | None,
    progressbar: bool,
    start: Start | None,
    options,
):
    import pymc as pm

    initial = None
    if start is not None:
        rng, names = generator(random_state), {v.name for v in model.free_RVs}
        points = [start(rng) for _ in range(sizes["chains"])]
        initial = [{k: v for k, v in point.items() if k in names} for point in points]
    return pm.sample(
        **sizes,
        model=model,
        random_seed=random_state,
        nuts_sampler=sampler,
        initvals=initial,
        progressbar=progressbar,
        compute_convergence_checks=False,
        quiet=True,
        **(options if sampler == "pymc" else {"nuts": options}),
    )


def _by_nutpie(
    model,
    sizes: dict[str, int],
    random_state: int | None,
    progressbar: bool,
    start: Start | None,
    options,
):
    import nutpie

    with LOCK:  # a kept model holds the data of one user at a time
        program = compiled(model, progressbar).program
        if start is not None:
            default = program.initial_point_func
            program = replace(program, initial_point_func=_points(model, start, default))
        sizes = sizes | {"tune": max(sizes["tune"], 1)}  # nutpie panics at 0
        shown = {"progress_bar": progressbar, "save_warmup": False}
        try:
            return nutpie.sample(program, **sizes, seed=random_state, **shown, **options)
        except RuntimeError as error:  # with the stack of a compiled library
            raise SamplingError(
                f"NUTS (nutpie) stopped: {str(error).strip().splitlines()[0]}. The density is 0 or "
                "not finite wherever the chains began: a prior may have no mass where its "
                "parameter must lie, as a scale must be positive"
            ) from None


def to_coordinates(model, variables):
    """Compile the function from values of free variables to the coordinates that samplers move."""
    import pytensor

    coordinates = [
        v
        if (transform := model.rvs_to_transforms[v]) is None
        else transform.forward(v, *v.owner.inputs)
        for v in variables
    ]
    mode = numpy_mode("fast_compile")
    return pytensor.function(variables, coordinates, mode=mode, on_unused_input="ignore")


def _points(model, start: "Start", default):
    """Return what nutpie asks for: the unconstrained coordinates of a start, by its seed."""
    forward = to_coordinates(model, model.free_RVs)
    one_at_a_time = threading.Lock()  # a function of PyTensor holds what it works on

    def point(seed) -> Array:
        values = start(np.random.default_rng(seed))
        with one_at_a_time, np.errstate(all="ignore"):
            parts = forward(*(values[v.name] for v in model.free_RVs))
        flat = np.concatenate([np.ravel(coordinate) for coordinate in parts]).astype(np.float64)
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
    model, names: Iterable[str], n: int, random_state: int | None = None
) -> dict[str, Array]:
    """{name: (n, *dims)} of a model that is conditioned on nothing.

    By Python's linker: a few thousand draws of a few variables are not worth a compiler.
    """
    import pymc as pm
    from pytensor.compile.mode import Mode

    names = list(names)
    mode = Mode(linker="py", optimizer="fast_compile")
    with third_parties(), model:
        drawn = pm.draw([model[k] for k in names], draws=n, random_seed=random_state, mode=mode)
    pairs = zip(names, drawn, strict=True)
    # of one draw PyMC leaves the axis out
    return {name: np.asarray(value)[None] if n == 1 else np.asarray(value) for name, value in pairs}
