"""Fitting by draws: families without closed forms, labels or cells that are not known."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.groups import labels_given_x
from bayesgen.errors import refuse_other_spelling, warn
from bayesgen.families import capabilities
from bayesgen.families.contract import ConjugateFamily, Family, Stats
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CHAIN, CLASS_WEIGHTS, DRAW
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.pymc_parts import by_cell
from bayesgen.inference import approximation, nuts
from bayesgen.inference.chosen_priors import LabelledRows
from bayesgen.inference.closed_form import posterior as closed_form_posterior
from bayesgen.inference.nuts import refuse_incomplete
from bayesgen.numerics.rows import Matrix, class_counts, has_nan
from bayesgen.numerics.seeds import integer
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.model import ClassModel, ClassStats, PartialRows, log_weights

if TYPE_CHECKING:
    import xarray as xr


# ------------------------------------------------------------------------------------------------
# Training rows without a label, or with cells missing where that has no closed form.
#
# A row of unknown class contributes :math:`\log \sum_c \pi_c\, p(x | \theta_c)`: its label is
# marginalised, not sampled. So are missing cells (`families.shared.gaps`). The posterior is then
# no longer conjugate, and a sampler needs two things from here: the rows that statistics cannot
# hold, few and weighted, and the posterior of a pilot fit that tells it where to look.

_STEPS = 30  # of expectation-maximisation, at most
_FEWEST_STEPS = 10  # where cells are missing
_SETTLED = 0.01  # change of every p(y | x) in a step, below which it ends


class IncompleteData(NamedTuple):
    """What a sampler needs of rows of which something is not known."""

    labelled: ClassModel  # posterior given the rows with a label alone
    pilot: ClassModel  # posterior if the unknown were known to be as expected
    pilot_stats: ClassStats
    stats: ClassStats | None  # of the rows that statistics can hold
    rows: PartialRows  # the others


def is_complete(family: ConjugateFamily, X: Matrix, codes: Array) -> bool:
    """Whether the rows have a closed form: every label is known, and every cell that must be."""
    if (codes < 0).any():
        return False
    return not has_nan(X) or not has_gaps(family)


def has_gaps(family: Family) -> bool:
    """Whether missing cells of training rows have no closed form in this family."""
    return family.capability(capabilities.MissingCells) is not None


def resolved_prior(
    unresolved: ClassModel,
    X: Matrix,
    codes: Array,
    n_classes: int,
    weight: Array | None,
) -> ClassModel:
    """The prior with the hyper-parameters that the data set (defaults).

    They come from all rows: those without a label count for every class in equal parts.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them, of a conjugate family.
    X : (N, D)
    codes : (N,)
        Class codes; -1 where there is no label.
    """
    belongs = _responsibilities(codes, n_classes, 1 / n_classes)
    row, c = np.nonzero(belongs)
    part = belongs[row, c] if weight is None else belongs[row, c] * weight[row]
    count = np.bincount(c, part, n_classes)
    own = unresolved.family.capability(capabilities.MissingCells)
    of_rows = unresolved.family.stats if own is None else own.default_stats
    stats = ClassStats(count, of_rows(X[row], c, n_classes, part))
    return unresolved.resolve(stats)


def incomplete_data(
    prior: ClassModel, X: Matrix, codes: Array, weight: Array | None
) -> IncompleteData:
    """Split rows into statistics and the rest; X and codes as in `resolved_prior`."""
    n_classes = len(prior.alpha)
    weight = np.ones(len(codes)) if weight is None else weight
    known = codes >= 0
    labelled, pilot, pilot_stats = _pilot_fit(prior, X, codes, weight)

    loose = _distinct(X[~known], weight[~known])
    parts = [(*loose, np.ones((len(loose[1]), n_classes), dtype=bool))]
    stats = None
    missing = prior.family.capability(capabilities.MissingCells)
    if missing is None:
        stats = prior.stats(X[known], codes[known], n_classes, weight[known])
    else:
        for c in range(n_classes):
            own = np.flatnonzero(codes == c)
            found = missing.condensed(X[own], weight[own])
            parts.append((*found, np.tile(np.arange(n_classes) == c, (len(found[1]), 1))))
    rows = PartialRows(
        _stacked([p[0] for p in parts]),
        np.concatenate([p[2] for p in parts]),
        np.concatenate([p[1] for p in parts]),
    )
    return IncompleteData(labelled, pilot, pilot_stats, stats, rows)


def _expected_stats(
    family: ConjugateFamily, X: Matrix, responsibility: Array, weight: Array
) -> ClassStats:
    """Statistics of rows with responsibilities (N, C), their cells completed by `family`."""
    out = None
    n_classes = responsibility.shape[1]
    missing = family.capability(capabilities.MissingCells)
    for c in range(n_classes):
        rows = np.flatnonzero(responsibility[:, c] > 0)
        own = weight[rows] * responsibility[rows, c]
        x = X[rows] if missing is None else missing.completed(X[rows], c)
        part = family.stats(x, np.full(len(rows), c), n_classes, own)
        out = part if out is None else out.merge(part)
    return ClassStats(weight @ responsibility, out)


def _responsibilities(codes: Array, n_classes: int, unknown: float) -> Array:
    """(N, C) 1 in the class of a row; `unknown` in all of them where that is not known."""
    responsibility = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
    responsibility[codes < 0] = unknown
    return responsibility


def _pilot_fit(
    prior: ClassModel, X: Matrix, codes: Array, weight: Array
) -> tuple[ClassModel, ClassModel, ClassStats]:
    """Expectation-maximisation with the predictive in place of a maximum; near enough to start.

    Missing cells that statistics refuse are at their conditional means.
    """
    unknown = codes < 0
    responsibility = _responsibilities(codes, len(prior.alpha), 0.0)
    stats = _expected_stats(prior.family, X, responsibility, weight)
    model = labelled = prior.update(stats)
    refits = prior.family.capability(capabilities.MissingCells) is not None and has_nan(X)
    for step in range(_STEPS):
        before = responsibility[unknown]
        if unknown.any():
            joint = model.family.log_predictive(X[unknown])
            responsibility[unknown] = np.exp(log_softmax(joint + log_weights(model.alpha)))
        stats = _expected_stats(model.family, X, responsibility, weight)
        model = prior.update(stats)
        change = np.abs(responsibility[unknown] - before).max(initial=0.0)
        if change < _SETTLED and not (refits and step < _FEWEST_STEPS):
            break
    return labelled, model, stats


def _distinct(X: Matrix, weight: Array) -> tuple[Matrix, Array]:
    """Equal rows once, with their weights added up."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and len(X)):
        return X, weight
    rows, which = np.unique(X, axis=0, return_inverse=True)
    if len(rows) == len(X):
        return X, weight
    return rows, np.bincount(which.ravel(), weight)


def _stacked(parts: list[Matrix]) -> Matrix:
    """Rows of several tables, one below the other."""
    filled = [p for p in parts if p.shape[0]] or parts[:1]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)


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
        Coords {dim: labels} to the PyMC model of the rows, and of ``X_new=``.
    start : callable
        Coords to where a chain starts; None is near the centre of the prior.
    """

    prior: ClassModel
    pilot: ClassModel
    pilot_stats: ClassStats
    exact: bool
    to_pymc: Callable[..., Any]
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


def observing(
    prior: ClassModel, data: Data, coords: Coords, stats: ClassStats | None, X_new: Any = None
) -> Any:
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
    return prior.to_pymc(coords, X=data.X, y=data.codes, stats=stats, X_new=X_new)


def _of_stats(prior: ClassModel, model: ClassModel, stats: ClassStats) -> Target:
    """Of complete rows and a conjugate family."""
    to_pymc = partial(prepared(prior, stats).to_pymc, stats=stats)
    return Target(prior, model, stats, True, to_pymc)


def prepared(prior: ClassModel, stats: ClassStats) -> ClassModel:
    """The same prior in the coordinates that suit a posterior given `stats`."""
    own = prior.family.capability(capabilities.PreparedPrior)
    return prior if own is None else replace(prior, family=own.prepared(stats.features))


def with_defaults(
    family: Family, X: Matrix, codes: Array, n_classes: int, weight: Array | None = None
) -> Family:
    """The prior with the defaults that the rows set, as in `DataScaledDefaults`."""
    own = family.capability(capabilities.DataScaledDefaults)
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
    own = prior.family.capability(capabilities.StartingPoint)
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
            own = ready.family.capability(capabilities.SamplerCoordinates)
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
    refuse_other_spelling("fit", given)
    if (own | given).get("random_state") is not None:
        given = given | {"random_state": integer((own | given)["random_state"])}
    if inference in approximation.APPROXIMATIONS:
        own = dict(own)
        for name in ("tune", "chains", "target_accept"):  # of a sampler
            own.pop(name, None)
            if name in given:
                raise TypeError(f"fit() got {name}, which inference={inference!r} has not")
        nuts.check((own | given).get("draws", 1), 0, 1, "nutpie")
        return own | given
    defaults = {"draws": 1, "tune": 1, "chains": 1, "nuts_sampler": "nutpie"}
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
        draws = sample_labels(goal.prior, data.X, data.codes, data.weight, **options)
        return tree.draws_dataset(draws, goal.prior.params, coords), xr.Dataset()
    graph = goal.to_pymc(coords)
    if inference == "nuts":
        posterior, sample_stats = nuts.sample(graph, start=goal.start(coords), **options)
    else:
        posterior, sample_stats = approximation.sample(
            graph, inference, start=goal.start(coords), **options
        )
    draws = {str(k): np.asarray(v.values) for k, v in posterior.data_vars.items()}
    own = goal.pilot.family.capability(capabilities.PartlyIdentified)
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


# ------------------------------------------------------------------------------------------------
# Draws of what training rows do not tell: labels and cells that are missing.

_BYTES = 1 << 30  # imputations that would be larger are left out
UNLABELLED, CELL = "unlabelled_row", "cell"


class Imputed(NamedTuple):
    """Draws of missing labels and cells, and which rows and columns they stand in."""

    variables: dict[str, Any]
    unlabelled: Array  # (L,) rows
    row: Array  # (M,) of the cells
    column: Array  # (M,)

    def named(self, features: list[Any], at: Array | None) -> "xr.Dataset":
        """As a Dataset; `at` are the positions of the rows among those that were given."""
        place = (lambda rows: rows) if at is None else at.__getitem__
        coords: dict[str, Any] = {}
        if len(self.unlabelled):
            coords[UNLABELLED] = place(self.unlabelled)
        if "imputed" in self.variables:
            names = np.array([str(n) for n in features])
            coords |= {"row": (CELL, place(self.row)), "column": (CELL, names[self.column])}
        return tree.group(self.variables, {}).assign_coords(coords)


def imputed(
    posterior: DrawnPosterior, exact: bool, rng: np.random.Generator, data: Data
) -> Imputed | None:
    """Draws given theta and what the rows do tell; None if nothing is missing.

    Parameters
    ----------
    posterior : DrawnPosterior
    exact : bool
        Whether the rows have a closed form: missing cells then need no draws.
    rng : numpy.random.Generator
    data : Data
        Training rows.

    Warns
    -----
    UserWarning
        If the draws would take more than 1 GiB, and are not made.
    """
    model, X, codes = posterior.model, data.X, data.codes
    family, theta = model.family, posterior.theta
    unlabelled = np.flatnonzero(codes < 0)
    gaps = np.array([], dtype=int)
    if not exact and has_gaps(family):
        gaps = np.flatnonzero(np.isnan(X).any(axis=1))
    if not (len(unlabelled) or len(gaps)) or not model.generative:
        return None
    lead = posterior.shape
    size = len(unlabelled) + (int(np.isnan(X[gaps]).sum()) if len(gaps) else 0)
    if 8 * size * int(np.prod(lead)) > _BYTES:
        warn(
            f"draws of {size} missing labels and cells would take more than 1 GiB: "
            "posterior_ has no group posterior_predictive; the rest is not affected",
            UserWarning,
        )
        return None
    variables: dict[str, Any] = {}
    row = column = np.array([], dtype=int)
    drawn = np.broadcast_to(codes, (*lead, len(codes))).copy()
    if len(unlabelled):
        found = labels_given_x(rng, family, theta, X[unlabelled])
        drawn[..., unlabelled] = found
        variables["imputed_label"] = ((CHAIN, DRAW, UNLABELLED), found)
    if len(gaps):
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in theta.items()}
        own = drawn[..., gaps].reshape(-1, len(gaps))
        cells = capabilities.require(family, capabilities.MissingCells, "draws of missing cells")
        values, row, column = cells.draw_missing(rng, X[gaps], own, flat)
        variables["imputed"] = ((CHAIN, DRAW, CELL), values.reshape(*lead, -1))
        row = gaps[row]
    return Imputed(variables, unlabelled, row, column)


# ------------------------------------------------------------------------------------------------
# Rows without a label, by data augmentation: labels given theta, theta given labels.
#
# Each sweep draws the unknown labels from p(y | x, theta), adds their rows to the statistics, and
# draws theta from the conjugate posterior: exact in the limit, nothing to compile, and as fast as
# one pass over the unlabelled rows. It mixes slowly where most labels are missing and classes
# overlap; R-hat and the effective sample size say so.
#
# Source: Tanner and Wong (1987), The calculation of posterior distributions by data augmentation.


def sample_labels(
    prior: ClassModel,
    X: Matrix,
    codes: Array,
    weight: Array | None = None,
    *,
    draws: int = 1000,
    tune: int = 200,
    chains: int = 4,
    random_state: int | None = None,
    progressbar: bool = True,
) -> dict[str, Array]:
    """Posterior draws {name: (chain, draw, *dims)} given labelled and unlabelled rows.

    Parameters
    ----------
    prior : ClassModel
        Of a conjugate family, resolved.
    X : (N, D) as the family's `stats` takes it
    codes : (N,)
        Class codes; -1 where there is no label.
    weight : (N,), optional
        Of the rows; whole numbers where there is no label, since each of so many equal rows has
        a label of its own.
    draws, tune, chains : int
        Sweeps of each chain that are kept, after `tune` that are not.
    """
    unknown = codes < 0
    n_classes = len(prior.alpha)
    loose = np.flatnonzero(unknown)
    copies = None if weight is None else weight[loose]
    if copies is not None and np.any(copies != np.floor(copies)):
        raise ValueError(
            "inference='gibbs' draws a label for each row, so the weight of a row without one must "
            "be a whole number; use inference='nuts'"
        )
    known = np.flatnonzero(~unknown)
    own = None if weight is None else weight[known]
    labelled = prior.stats(X[known], codes[known], n_classes, own)
    rows = X[loose]
    out: dict[str, Array] = {}
    seeds = np.random.SeedSequence(random_state).spawn(chains)
    with _progress(chains * (draws + tune), progressbar) as advance:
        for chain, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            model = prior.update(labelled)  # the first labels come from the labelled rows alone
            for sweep in range(-tune, draws):
                theta = {name: value[0] for name, value in model.draw(rng, 1).items()}
                if len(loose):
                    stats = _with_labels(rng, prior, theta, rows, copies)
                    model = prior.update(labelled.merge(stats))
                if sweep >= 0:
                    for name, value in theta.items():
                        if name not in out:
                            out[name] = np.empty((chains, draws, *np.shape(value)))
                        out[name][chain, sweep] = value
                advance()
    refuse_incomplete(out, chains, draws, "Gibbs")
    return out


def _with_labels(
    rng: np.random.Generator,
    prior: ClassModel,
    theta: dict[str, Array],
    X: Matrix,
    copies: Array | None,
) -> ClassStats:
    """Statistics of rows whose labels are drawn from p(y | x, theta)."""
    joint = prior.family.log_likelihood(X, theta) + log_weights(theta[CLASS_WEIGHTS])
    n_classes = joint.shape[1]
    if copies is None:
        codes = np.argmax(joint + rng.gumbel(size=joint.shape), axis=1)
        return prior.stats(X, codes, n_classes)
    share = rng.multinomial(copies.astype(np.int64), np.exp(log_softmax(joint)))
    row, codes = np.nonzero(share)
    return prior.stats(X[row], codes, n_classes, share[row, codes].astype(np.float64))


@contextmanager
def _progress(total: int, shown: bool) -> Iterator[Any]:
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Gibbs sweeps", total=total)
        yield lambda: bar.advance(task)
