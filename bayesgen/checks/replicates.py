r"""Replicates of a model: theta from its prior, labelled rows from theta, draws given the rows.

What simulation-based calibration compares. A conjugate family draws its theta itself; those of a
family that is fitted by MCMC are drawn by PyMC from the model that is not conditioned on rows.
Its posterior is sampled as in a fit: coordinates and starting points are chosen anew by each
replicate's rows, hyper-parameters stay as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.families.capabilities import DataScaledDefaults, LearnedHyperparameters, StartingPoint
from bayesgen.families.contract import Theta
from bayesgen.families.names import CLASS, CLASS_WEIGHTS, FEATURE, FEATURE_BIS
from bayesgen.families.shared.graph_rows import third_parties
from bayesgen.inference import nuts
from bayesgen.numerics.rows import Matrix, class_counts
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel

Posterior = Callable[[np.random.Generator, Any, Array], Theta]
Generators = Sequence[np.random.Generator]


def hyperparameters(prior: ClassModel) -> dict[str, tuple[str, ...]]:
    """{name: dims} of what theta has a prior of, and that is drawn with it."""
    own = prior.family.capability(LearnedHyperparameters)
    return {} if own is None else own.hyperparameters


def sizes(prior: ClassModel) -> dict[str, int]:
    """{dim: length} of theta, as far as the prior tells."""
    out = {CLASS: len(prior.alpha)}
    if prior.family.conjugate:
        theta = prior.draw(np.random.default_rng(0), 1)
        shapes = {name: (dims, theta[name].shape[1:]) for name, dims in prior.params.items()}
    else:
        arrays = prior.family.arrays().items()
        shapes = {k: (dims, a.shape) for k, (dims, a) in arrays if a.ndim == len(dims)}
        out |= {dim: len(labels) for dim, labels in prior.family.coords().items()}
    for dims, shape in shapes.values():
        out |= dict(zip(dims, shape, strict=True))
    return out | ({FEATURE_BIS: out[FEATURE]} if FEATURE in out else {})


# ---------------------------------------------------------------------------------------- theta


def thetas(
    prior: ClassModel, coords: Mapping[str, Any], generators: Generators
) -> Iterator[dict[str, Array]]:
    """{name: (1, *dims)} of each replicate: parameters, and hyper-parameters with a prior."""
    if prior.family.conjugate:
        for rng in generators:
            yield prior.draw(rng, 1)
        return
    with third_parties():
        model = prior.to_pymc(coords)
    names = [*prior.params, *(k for k in hyperparameters(prior) if k in model.named_vars)]
    seed = int(generators[0].integers(1 << 31))
    drawn = nuts.draw_prior(model, names, len(generators), random_state=seed)
    drawn = tree.as_in_numpy(drawn, prior.params | hyperparameters(prior), coords)
    for k in range(len(generators)):
        yield {name: value[k : k + 1] for name, value in drawn.items()}


def rows(
    prior: ClassModel, rng: np.random.Generator, theta: Theta, n_rows: int, X: Matrix | None
) -> tuple[Any, Array]:
    """Rows and their class codes; of a discriminative model, rows of X and labels given them."""
    one = {name: value[0] for name, value in theta.items()}
    if prior.family.discriminative:
        assert X is not None  # `calibration` has asked for it
        X = X[rng.choice(X.shape[0], n_rows)]
        log_p = prior.family.log_likelihood(X, one)
        return X, np.argmax(log_p + rng.gumbel(size=log_p.shape), axis=1)
    weights = one[CLASS_WEIGHTS]
    y = rng.choice(len(weights), size=n_rows, p=weights / weights.sum())
    return prior.family.simulate(rng, one, y), y


# ------------------------------------------------------------------------------------ posteriors


def by_closed_form(prior: ClassModel, draws: int) -> Posterior:
    """Independent draws of the exact posterior."""

    def posterior(rng: np.random.Generator, X: Any, y: Array) -> Theta:
        stats = prior.stats(X, y, len(prior.alpha))
        return prior.update(stats).draw(rng, draws)

    return posterior


def by_nuts(
    prior: ClassModel, coords: Mapping[str, Any], draws: int, thin: int, options: dict[str, Any]
) -> Posterior:
    """Every `thin`-th draw of NUTS; on statistics of the rows where there are any, else on rows."""
    options = {"tune": 500, "chains": 1} | options

    def posterior(rng: np.random.Generator, X: Any, y: Array) -> Theta:
        start = None
        if prior.family.conjugate:
            model = prior.to_pymc(coords, stats=prior.stats(X, y, len(prior.alpha)))
        else:
            with third_parties():
                model, start = _conditioned(prior, coords, X, y)
        found, _ = nuts.sample(
            model,
            draws=-(-draws * thin // options["chains"]),
            random_state=int(rng.integers(1 << 31)),
            progressbar=False,
            start=start,
            **options,
        )
        more = {k: d for k, d in hyperparameters(prior).items() if k in found}
        drawn = tree.read_draws(found, prior.params | more, coords)
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in drawn.items()}
        return {name: value[::thin][:draws] for name, value in flat.items()}

    return posterior


def _conditioned(
    prior: ClassModel, coords: Mapping[str, Any], X: Any, y: Array
) -> tuple[Any, nuts.Start | None]:
    """The PyMC model of labelled rows, and where a chain starts, as a fit would choose them."""
    n_classes = len(prior.alpha)
    family = prior.family.without_guides()
    defaults = family.capability(DataScaledDefaults)
    if defaults is not None:
        family = defaults.with_defaults(X, y, n_classes)
    own = family.capability(StartingPoint)
    alpha = prior.alpha + class_counts(y, n_classes)

    def start(rng: np.random.Generator) -> dict[str, Array]:
        return {CLASS_WEIGHTS: rng.dirichlet(alpha), **own.start(rng)}

    some = own is not None and own.start(np.random.default_rng(0)) is not None
    model = replace(prior, family=family).to_pymc(coords, X=X, y=y, summed=True)
    return model, start if some else None
