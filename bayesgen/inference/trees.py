"""The posterior as draws in a DataTree: exact, by NUTS, what they say of rows; its PyMC model.

Arguments are those of the methods of `GenerativeClassifier` of the same subject.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from bayesgen.datatree import tree
from bayesgen.datatree.fit import assembled, drawn_posterior
from bayesgen.datatree.groups import (
    OF_ROWS,
    Asked,
    CodedRows,
    add_groups,
    asked_for,
)
from bayesgen.datatree.tree import LOG_PRIOR, POSTERIOR, SAMPLE_STATS
from bayesgen.errors import refuse_unknown, warn
from bayesgen.families.capabilities import StartingPoint
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.inference import nuts
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, generator
from bayesgen.posterior.fitted import Fitted, LabelledRows
from bayesgen.posterior.model import ClassModel

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

Likelihood = Literal["statistics", "rows"]

_DRAW_BYTES = 1 << 30  # fewer parameters are drawn than asked rather than exceed this


def draw_posterior(
    fitted: Fitted, draws: int, chains: int, random_state, asked: Asked
) -> "xr.DataTree":
    """Independent draws of all parameters from the closed-form posterior."""
    exact = fitted.closed_form
    family = exact.model.family
    fit = max(1, int(_DRAW_BYTES / (8 * chains * family.n_parameters())))
    if fit < draws:
        warn(
            f"{draws} draws of {family.n_parameters()} parameters would take more than "
            f"1 GiB: drawing {fit} a chain",
            UserWarning,
        )
        draws = fit
    rng = generator(random_state)
    drawn = exact.draw(rng, draws, chains)
    posterior = tree.draws_dataset(drawn, exact.model.params, fitted.coords)
    free = exact.prior.family.pymc_coordinates(drawn, exact.stats.features)
    coordinates = tree.with_draws({k: v for k, v in free.items() if k not in drawn})
    posterior = posterior.merge(tree.group(coordinates, fitted.coords))
    with_groups = tree_of(fitted, {POSTERIOR: posterior}, "closed form", random_state)
    add_groups(fitted, with_groups, asked, drawn, rng, partial(draw_prior, fitted, rng))
    return with_groups


def sample_posterior(fitted: Fitted, model: "pm.Model", asked: Asked, **options) -> "xr.DataTree":
    """Draws of all parameters by NUTS from a PyMC `model` of the fit."""
    exact = fitted.closed_form
    other = [name for name in exact.model.params if name not in model.named_vars]
    if other:  # of an average over structures
        raise NotImplementedError(
            f"the PyMC model of {fitted.name} has no variable {other[0]!r}: its tables "
            "are not the parameters of posterior_, and its draws no draws of them. "
            "draw_posterior() has exact draws; pm.sample(model=clf.to_pymc()) samples the "
            "model as it is"
        )
    posterior, sample_stats = nuts.sample(model, **options)
    with_groups = sampled_tree(fitted, posterior, sample_stats, options)
    drawn = tree.read_draws(posterior, exact.model.params, fitted.coords)
    rng = np.random.default_rng(options["random_state"])
    add_groups(fitted, with_groups, asked, drawn, rng, partial(draw_prior, fitted, rng))
    with_groups.attrs["tune"] = options["tune"]
    return with_groups


def posterior_groups(
    fitted: Fitted,
    X,
    y,
    groups: Sequence[str] | None,
    replicate: Sequence[str],
    random_state,
) -> "xr.DataTree":
    """Return the draws of a fit with what they say of labelled rows."""
    if X is None or y is None:
        raise ValueError("posterior_groups is about labelled rows: give X and y")
    if fitted.posterior.members:
        raise NotImplementedError(
            "the draws of a pool are of exponents, of which rows tell by their scores without "
            "themselves: use loo(X, y), or ask a member, pool.members_[name]"
        )
    asked = asked_of(fitted, X, y, OF_ROWS if groups is None else groups, replicate)
    prior = fitted.posterior.prior
    if LOG_PRIOR in asked.names and not prior.family.conjugate:
        raise NoClosedFormError(
            f"log_prior of {type(prior.family).__name__} is known to PyMC alone: "
            "pm.compute_log_prior(tree, model=clf.to_pymc(X, y))"
        )
    draws = fitted.training.draws
    assert draws is not None, "the caller has made them"
    extended = draws.copy(deep=False)
    theta = tree.read_draws(extended, prior.params, fitted.coords)
    rng = generator(random_state)
    add_groups(fitted, extended, asked, theta, rng, partial(draw_prior, fitted, rng))
    return extended


def tree_of(
    fitted: Fitted,
    groups: dict[str, "xr.Dataset"],
    route: str,
    random_state=None,
    library: str = "bayesgen",
) -> "xr.DataTree":
    """Return a DataTree with what every route has: data, ``fit``, provenance."""
    posterior = fitted.posterior
    model = posterior.model if posterior.exact else None
    assembled_tree = assembled(groups, posterior.prior, model, posterior.stats, fitted.coords)
    family = type(posterior.prior.family).__name__
    assembled_tree.attrs |= {"estimator": fitted.name}
    if choice := fitted.training.prior and fitted.training.prior.words():
        assembled_tree.attrs |= {"prior": choice}
    assembled_tree.attrs |= tree.provenance(family, route, random_state, library)
    return assembled_tree


def asked_of(fitted: Fitted, X, y, groups: Sequence[str] | None, replicate: Sequence[str]) -> Asked:
    """Return the groups to make, of encoded rows; checked before any work."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together")
    rows = None if X is None else _rows(fitted, X, y)
    return asked_for(groups, replicate, rows, fitted.classes)


def _rows(fitted: Fitted, X, y) -> CodedRows:
    """Labelled rows as the fit encoded its own."""
    codes = fitted.codes_of(column_or_1d(y))
    rows = CodedRows(fitted.read(X).encoded, codes)
    check_consistent_length(codes, rows.X)
    return rows


def draw_prior(fitted: Fitted, rng: np.random.Generator, n: int) -> dict[str, Array]:
    """Return {name: (n, *dims)} from the prior of a family that only PyMC can draw."""
    coords, prior = fitted.coords, fitted.posterior.prior
    seed = int(rng.integers(1 << 31))
    drawn = nuts.draw_prior(prior.to_pymc(coords), prior.params, n, seed)
    return tree.as_in_numpy(drawn, prior.params, coords)


def to_pymc(
    fitted: Fitted,
    X,
    y,
    likelihood: Likelihood = "statistics",
    observed: bool = True,
    X_new=None,
) -> "pm.Model":
    """Return the model as a PyMC graph."""
    refuse_unknown("likelihood", likelihood, get_args(Likelihood))
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together")
    coords, posterior = fitted.coords, fitted.posterior
    new = {} if X_new is None else {"X_new": fitted.encoded(X_new)}
    if not observed:
        if X is not None:
            raise ValueError("observed=False is the prior alone: leave X and y out")
        return posterior.prior.to_pymc(coords, **new)
    if X is not None:
        fitted.reader.refuse_unseen(fitted.read(X))
    else:
        fitted.refuse_estimated_weights("to_pymc without rows")
    if not posterior.prior.family.conjugate:
        return _pymc_of_rows(fitted, X, y, likelihood, new)
    if X is None:
        if likelihood == "rows":
            raise ValueError(
                "likelihood='rows' needs the rows: call to_pymc(X, y, likelihood='rows')"
            )
        return posterior.prior.to_pymc(coords, stats=posterior.stats, **new)
    rows = _rows(fitted, X, y)
    if likelihood == "rows":
        return posterior.prior.to_pymc(coords, X=rows.X, y=rows.y, stats=posterior.stats, **new)
    stats = posterior.prior.stats(rows.X, rows.y, len(fitted.classes))
    return posterior.prior.to_pymc(coords, stats=stats, **new)


def _pymc_of_rows(fitted: Fitted, X, y, likelihood: str, new):
    """`to_pymc` of a family without sufficient statistics."""
    prior, coords = fitted.posterior.prior, fitted.coords
    if X is None:
        raise NoClosedFormError(
            f"{type(prior.family).__name__} has no sufficient statistics of rows, and a classifier "
            "keeps no rows: call to_pymc(X, y)"
        )
    rows = _rows(fitted, X, y)
    if likelihood == "rows":
        return prior.to_pymc(coords, X=rows.X, y=rows.y, **new)
    return graph_of_rows(prior, LabelledRows(rows.X, rows.y, np.ones(len(rows.y))), coords, **new)


# ------------------------------------------------------------------------------------------------
# Fits by draws.


def graph_of_rows(prior: ClassModel, rows: LabelledRows, coords: Mapping[str, Any], X_new=None):
    """Return the PyMC model of rows, whose likelihood is as few terms as the family knows."""
    weight = None if (rows.weight == 1).all() else rows.weight
    return prior.to_pymc(coords, X=rows.X, y=rows.codes, weight=weight, summed=True, X_new=X_new)


def sampled(fitted: Fitted, rows: LabelledRows, options) -> Fitted:
    """Return a fit of a family without a closed form with draws by NUTS given its rows.

    Where the likelihood does not tell labels apart (which cluster is the first), the draws hold
    densities of rows as well.
    """
    prior = fitted.posterior.prior
    model = graph_of_rows(prior, rows, fitted.coords)
    draws, stats = nuts.sample(model, start=_chosen_start(prior, rows), **options)
    theta = {str(k): np.asarray(v.values) for k, v in draws.data_vars.items()}
    draws = draws.assign(prior.family.row_densities(theta, rows.X, rows.codes))
    return with_draws(fitted, sampled_tree(fitted, draws, stats, options))


def _chosen_start(prior: ClassModel, rows: LabelledRows) -> nuts.Start | None:
    """Return where chains start, if the family has a choice."""
    family = prior.family.capability(StartingPoint)
    if family is None:
        return None
    alpha = prior.alpha + class_counts(rows.codes, len(prior.alpha), rows.weight)

    def start(rng: np.random.Generator) -> dict[str, Array]:
        return {CLASS_WEIGHTS: rng.dirichlet(alpha), **family.start(rng, rows.X, rows.codes)}

    return start


def sampled_tree(
    fitted: Fitted,
    draws: "xr.Dataset",
    sample_stats: "xr.Dataset",
    options,
) -> "xr.DataTree":
    """Return draws by NUTS as a tree; warn where they are not to be trusted."""
    sampler = options.get("nuts_sampler", "nutpie")
    groups = {POSTERIOR: draws, SAMPLE_STATS: sample_stats}
    with_groups = tree_of(fitted, groups, "nuts", options.get("random_state"), sampler)
    diagnosis = nuts.warn_unless_sound(draws, sample_stats)
    with_groups.attrs |= {"sampler": sampler} | diagnosis.attributes()
    return with_groups


def with_draws(fitted: Fitted, draws: "xr.DataTree") -> Fitted:
    """Return the fit whose posterior is the draws of a tree."""
    posterior = drawn_posterior(fitted, draws)
    return replace(fitted, posterior=posterior).with_training(draws=draws)
