"""Fit a family without a closed form: its prior of the rows, its PyMC model, draws by NUTS."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.families.capabilities import StartingPoint
from bayesgen.families.contract import Stats
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.inference import nuts
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, integer_seed
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.model import ClassModel, ClassStats
from bayesgen.posterior.training import LabelledRows

if TYPE_CHECKING:
    import xarray as xr

Coords = Mapping[str, Any]
Start = Callable[[np.random.Generator], dict[str, Array]]


def undrawn(unresolved: ClassModel, rows: LabelledRows, n_classes: int) -> DrawnPosterior:
    """Return the posterior of rows before it is sampled, with the prior that they set.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them.
    rows : LabelledRows
    n_classes : int
    """
    X, codes, weight, _ = rows
    alpha = broadcast_prior("class_alpha", unresolved.alpha, (n_classes,))
    family = unresolved.family.with_defaults(X, codes, n_classes, weight)
    count = class_counts(codes, n_classes, weight)
    prior, model = ClassModel(alpha, family), ClassModel(alpha + count, family)
    return DrawnPosterior(prior, model, ClassStats(count, Stats()), {})


def graph(prior: ClassModel, rows: LabelledRows, coords: Coords, X_new=None):
    """Return the PyMC model of rows, whose likelihood is as few terms as the family knows."""
    weight = None if (rows.weight == 1).all() else rows.weight
    return prior.to_pymc(coords, X=rows.X, y=rows.codes, weight=weight, summed=True, X_new=X_new)


def _chosen_start(prior: ClassModel, rows: LabelledRows) -> Start | None:
    """Return where chains start, if the family has a choice."""
    family = prior.family.capability(StartingPoint)
    if family is None:
        return None
    alpha = prior.alpha + class_counts(rows.codes, len(prior.alpha), rows.weight)

    def start(rng: np.random.Generator) -> dict[str, Array]:
        return {CLASS_WEIGHTS: rng.dirichlet(alpha), **family.start(rng, rows.X, rows.codes)}

    return start


def check_options(defaults, options) -> dict[str, Any]:
    """Return the options of the sampler, checked before any work.

    Parameters
    ----------
    defaults, options : dict
        Of the classifier's constructor, and of the call, which go first.
    """
    nuts.refuse_seed(options)
    options = defaults | options
    if options.get("random_state") is not None:
        options["random_state"] = integer_seed(options["random_state"])
    sizes = {"draws": 1, "tune": 1, "chains": 1, "nuts_sampler": "nutpie"}
    nuts.check(*(options.get(name, default) for name, default in sizes.items()))
    return options


def sample(
    prior: ClassModel, rows: LabelledRows, coords: Coords, options
) -> tuple["xr.Dataset", "xr.Dataset"]:
    """Draw from the posterior of rows under a prior that `undrawn` has made.

    Returns
    -------
    posterior : xarray.Dataset
        (chain, draw, *dims) of the variables of the PyMC model. Where the likelihood does not
        tell labels apart (which cluster is the first), densities of rows as well.
    sample_stats : xarray.Dataset
    """
    model = graph(prior, rows, coords)
    draws, stats = nuts.sample(model, start=_chosen_start(prior, rows), **options)
    theta = {str(k): np.asarray(v.values) for k, v in draws.data_vars.items()}
    return draws.assign(prior.family.row_densities(theta, rows.X, rows.codes)), stats
