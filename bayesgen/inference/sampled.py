"""Fitting by draws: families without closed forms, labels or cells that are not known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.capabilities import (
    DataScaledDefaults,
    PartlyIdentified,
    PreparedPrior,
    SamplerCoordinates,
    StartingPoint,
)
from bayesgen.families.contract import Family, Stats
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.families.shared.cells import by_cell
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.inference import approximation, gibbs, nuts
from bayesgen.inference.closed_form import posterior as closed_form_posterior
from bayesgen.inference.incomplete import has_gaps, incomplete_data, is_complete, resolved_prior
from bayesgen.inference.label_score import LabelledRows
from bayesgen.numerics.rows import Matrix, class_counts, has_nan
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats, PartialRows

if TYPE_CHECKING:
    import xarray as xr

Coords = Mapping[str, Any]
Start = Callable[[np.random.Generator], dict[str, Array]]
Inference = Literal["closed form", "nuts", "gibbs", "laplace", "advi", "pathfinder"]
SAMPLED: tuple[str, ...] = get_args(Inference)[1:]


@dataclass(frozen=True)
class Data:
    """Training rows.

    Parameters
    ----------
    X : (N, D) as the family takes it
    codes : (N,)
        Class codes; -1 where there is no label.
    n_classes : int
    weight : (N,), optional
    """

    X: Any
    codes: Array
    n_classes: int
    weight: Array | None = None


@dataclass(frozen=True)
class Target:
    """What a sampler is given.

    Parameters
    ----------
    prior : ClassModel
        Resolved.
    pilot, pilot_stats : ClassModel, ClassStats
        A posterior near the one to be sampled, and what is behind it; that itself, if `exact`.
    exact : bool
        Whether the rows are complete and the family conjugate.
    to_pymc : callable
        Coords {dim: labels} to the PyMC model of the rows.
    start : callable
        Coords to where a chain starts; None is near the centre of the prior.
    """

    prior: ClassModel
    pilot: ClassModel
    pilot_stats: ClassStats
    exact: bool
    to_pymc: Callable[[Coords], Any]
    start: Callable[[Coords], Start | None] = lambda coords: None


def target(unresolved: ClassModel, prior: str, data: Data) -> Target:
    """The posterior of training rows, for a sampler.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them.
    prior : {"default", "empirical", "loo"}
    data : Data

    Raises
    ------
    ValueError
        If the evidence, or a leave-one-out score, is to be maximised and has no closed form.
    """
    family = unresolved.family
    if not family.conjugate:
        if prior != "default":
            raise ValueError(
                f"prior={prior!r} maximises {_goal(prior)}, which has no closed form for "
                f"{type(family).__name__}: leave prior at 'default'"
            )
        return _of_rows(unresolved, data)
    if is_complete(family, data.X, data.codes):
        stats = unresolved.stats(data.X, data.codes, data.n_classes, data.weight)
        rows = LabelledRows(data.X, data.codes, data.weight)
        return _of_stats(*closed_form_posterior(unresolved, prior, stats, rows), stats)
    if prior != "default":
        raise ValueError(
            f"prior={prior!r} maximises {_goal(prior)}, which has no closed form where labels "
            "or cells are missing: fit the complete rows first and give the hyper-parameters "
            "of its prior_"
        )
    resolved = resolved_prior(unresolved, data.X, data.codes, data.n_classes, data.weight)
    return _of_incomplete_rows(resolved, data)


def _goal(prior: str) -> str:
    return "the leave-one-out score of the labels" if prior == "loo" else "the evidence"


def target_under(prior: ClassModel, data: Data) -> Target:
    """The posterior of other rows under a prior that is resolved; parameters as in `target`."""
    family = prior.family
    if not family.conjugate:
        guided = with_defaults(family.without_guides(), data.X, data.codes, data.n_classes)
        return _of_rows(replace(prior, family=guided), data)
    if is_complete(family, data.X, data.codes):
        stats = prior.stats(data.X, data.codes, data.n_classes, data.weight)
        return _of_stats(prior, prior.update(stats), stats)
    return _of_incomplete_rows(prior, data)


def observing(prior: ClassModel, data: Data, coords: Coords, stats: ClassStats | None) -> Any:
    """PyMC model of labelled rows, each observed; `stats` are those of the fit, if there are any.

    Raises
    ------
    ValueError
        If rows can only be integrated over: without a label, or without cells whose prior is
        conjugate for whole rows.
    """
    instead = "leave them out, or use likelihood='statistics', whose potential sums over them"
    unknown = int((data.codes < 0).sum())
    if unknown:
        raise ValueError(
            f"likelihood='rows' observes a label and x of each row, and {unknown} rows have no "
            f"label: {instead}"
        )
    if prior.family.conjugate and not is_complete(prior.family, data.X, data.codes):
        raise ValueError(
            "likelihood='rows' observes whole rows of x under this prior of covariances, and some "
            f"rows have missing cells: {instead}"
        )
    return prior.to_pymc(coords, X=data.X, y=data.codes, stats=stats)


def _of_stats(prior: ClassModel, model: ClassModel, stats: ClassStats) -> Target:
    """Of complete rows and a conjugate family."""
    to_pymc = partial(prepared(prior, stats).to_pymc, stats=stats)
    return Target(prior, model, stats, True, to_pymc)


def prepared(prior: ClassModel, stats: ClassStats) -> ClassModel:
    """The same prior in the coordinates that suit a posterior given `stats`."""
    own = prior.family.capability(PreparedPrior)
    return prior if own is None else replace(prior, family=own.prepared(stats.features))


def with_defaults(
    family: Family, X: Matrix, codes: Array, n_classes: int, weight: Array | None = None
) -> Family:
    """The prior with the defaults that the rows set, as in `DataScaledDefaults`."""
    own = family.capability(DataScaledDefaults)
    return family if own is None else own.with_defaults(X, codes, n_classes, weight)


def _of_rows(unresolved: ClassModel, data: Data) -> Target:
    """Of a family that has no sufficient statistics."""
    X, codes, weight, n_classes = data.X, data.codes, data.weight, data.n_classes
    known = codes >= 0
    alpha = broadcast_prior("class_alpha", unresolved.alpha, (n_classes,))
    family = with_defaults(unresolved.family, X, codes, n_classes, weight)
    own = None if weight is None else weight[known]
    count = class_counts(codes[known], n_classes, own)
    prior, pilot = ClassModel(alpha, family), ClassModel(alpha + count, family)
    whole = known if weight is None else np.zeros_like(known)  # one by one, without weights
    some = None
    if not prior.generative and not whole.all():  # without a label it says nothing
        X, codes, whole = X[known], codes[known], whole[known]
        weight = own
    if not whole.all():
        loose = np.flatnonzero(~whole)
        possible = codes[loose, None] == np.arange(n_classes)
        possible |= codes[loose, None] < 0
        ones = np.ones(len(loose))
        some = PartialRows(X[loose], possible, ones if weight is None else weight[loose])
    rows = {"X": X[whole], "y": codes[whole], "summed": True} if whole.any() else {}
    to_pymc = partial(prior.to_pymc, partial=some, **rows)
    start = partial(_chosen_start, prior, pilot)
    return Target(prior, pilot, ClassStats(count, Stats()), False, to_pymc, start)


def _chosen_start(prior: ClassModel, pilot: ClassModel, coords: Coords) -> Start | None:
    """Where chains start: the family's choice, if it has one."""
    own = prior.family.capability(StartingPoint)
    if own is None or own.start(np.random.default_rng(0)) is None:
        return None

    def start(rng: np.random.Generator) -> dict[str, Array]:
        return {CLASS_WEIGHTS: rng.dirichlet(pilot.alpha), **(own.start(rng) or {})}

    return start


def _of_incomplete_rows(prior: ClassModel, data: Data) -> Target:
    """Of a conjugate family, where labels or cells are missing.

    Chains start at draws of the posterior given the labelled rows alone: wider than what is
    sampled, and on the side of the labels. Classes without rows in the right place would often
    trade their meanings.
    """
    found = incomplete_data(prior, data.X, data.codes, data.weight)
    features = found.pilot_stats.features
    ready, labelled = (prepared(m, found.pilot_stats) for m in (prior, found.labelled))

    def start(coords: Coords) -> Start:
        def point(rng: np.random.Generator) -> dict[str, Array]:
            theta = labelled.draw(rng, 1)
            own = ready.family.capability(SamplerCoordinates)
            free = {} if own is None else own.pymc_coordinates(theta, features)
            listed = {k: by_cell(prior.params[k], v, coords)[1] for k, v in theta.items()}
            return {k: v[0] for k, v in (listed | {k: v for k, (_, v) in free.items()}).items()}

        return point

    to_pymc = partial(ready.to_pymc, stats=found.stats, partial=found.rows)
    return Target(prior, found.pilot, found.pilot_stats, False, to_pymc, start)


# ------------------------------------------------------------------------------------- sampling


def check_options(inference: str, own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Options of the sampler, checked before any work.

    Parameters
    ----------
    own, given : dict
        Of the classifier's constructor, and of the call, which go first.
    """
    if inference in approximation.APPROXIMATIONS:
        own = dict(own)
        for name in ("tune", "chains", "target_accept"):  # of a sampler
            own.pop(name, None)
            if name in given:
                raise TypeError(f"fit() got {name}, which inference={inference!r} has not")
        approximation.check((own | given).get("draws", 1))
        return own | given
    defaults = {"draws": 1, "tune": 1, "chains": 1, "sampler": "nutpie"}
    asked: dict[str, Any] = defaults | own | given
    nuts.check(*(asked[k] for k in defaults))
    return own | given


def sample(
    goal: Target, data: Data, coords: Coords, inference: Any, options: dict[str, Any]
) -> tuple["xr.Dataset", "xr.Dataset"]:
    """Draws of a posterior by the inference named, and what the sampler says of them.

    Returns
    -------
    posterior : xarray.Dataset
        (chain, draw, *dims) of the variables of the PyMC model. Labels that the likelihood does
        not distinguish (which cluster is the first) have one meaning in all draws.
    sample_stats : xarray.Dataset
    """
    import xarray as xr

    if inference == "gibbs":
        _refuse_gibbs(goal.prior.family, data.X)
        draws = gibbs.sample(goal.prior, data.X, data.codes, data.weight, **options)
        return tree.draws_dataset(draws, goal.prior.params, coords), xr.Dataset()
    graph = goal.to_pymc(coords)
    if inference == "nuts":
        posterior, sample_stats = nuts.sample(graph, start=goal.start(coords), **options)
    else:
        posterior, sample_stats = approximation.sample(
            graph, inference, start=goal.start(coords), **options
        )
    draws = {str(k): np.asarray(v.values) for k, v in posterior.data_vars.items()}
    own = goal.pilot.family.capability(PartlyIdentified)
    changed = {} if own is None else own.relabelled(draws, data.X, data.codes)
    posterior = posterior.assign({k: (posterior[k].dims, v) for k, v in changed.items()})
    return posterior, sample_stats


def _refuse_gibbs(family: Family, X: Any) -> None:
    if not family.conjugate:
        raise NoClosedFormError(
            f"inference='gibbs' draws theta from a conjugate posterior, and "
            f"{type(family).__name__} has none: use 'nuts'"
        )
    if has_gaps(family) and has_nan(X):
        raise NoClosedFormError(
            "inference='gibbs' draws labels, not missing cells, which have no closed form "
            "under a full covariance: use 'nuts', or leave those rows out"
        )
