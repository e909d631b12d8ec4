"""NUTS: a PyMC model in, draws of all its variables out, compiled once per process (`compiled`)."""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesgen.families.errors import refuse_unknown
from bayesgen.inference.compiled import LOCK, compiled_program
from bayesgen.inference.diagnostics import SamplingError, refuse_incomplete
from bayesgen.inference.interrupts import Interrupts, not_swallowed
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

Sampler = Literal["nutpie", "pymc"]
Start = Callable[[np.random.Generator], dict[str, Array]]
SAMPLERS: tuple[Sampler, ...] = ("nutpie", "pymc")


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
    refuse_unknown("sampler", sampler, SAMPLERS)


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
                draws=draws,
                tune=max(tune, 1),  # nutpie stops with a panic at 0
                chains=chains,
                seed=random_seed,
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
