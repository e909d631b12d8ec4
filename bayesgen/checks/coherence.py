r"""Whether the densities of a closed form fit together: exact, and without a sampler.

For every theta, with D the training rows,

.. math:: \log p(D) = \log p(D | \theta) + \log p(\theta) - \log p(\theta | D),

and the same for one more row: evidence, predictive, likelihood, prior and posterior are tied to
each other at any point of the parameter space. Source: Chib (1995), "Marginal likelihood from the
Gibbs output", equation 5 ("candidate's formula").
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.errors import MissingCapabilityError
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel, ClassStats
from bayesgen.posterior.monte_carlo import log_densities

_THETAS = 50  # at which the formula is tried
_ROWS = 5  # whose predictive is
_DIGITS = 1e-8  # of the sum of the magnitudes in it


def contradictions(
    prior: ClassModel,
    model: ClassModel,
    stats: ClassStats,
    X: Any,
    y: Array,
    weight: Any,
    classes: Sequence[Any],
) -> tuple[str, ...]:
    """What does not fit together, in words; empty if all does.

    Parameters
    ----------
    prior, model : ClassModel
        Prior and posterior.
    stats : ClassStats
        Of the rows.
    X, y, weight : rows as the family takes them, class codes (N,), weights (N,) or None
    classes : sequence
        Labels, for the words.
    """
    if model.family.capability(ThetaDensity) is None:
        return ()  # see `unchecked`
    theta = model.draw(np.random.default_rng(0), _THETAS)
    with np.errstate(all="ignore"):  # what is broken may well divide by zero
        found = [
            _evidence(prior, model, stats, theta, X, y, weight),
            _predictive(model, theta, X, classes),
        ]
    return tuple(words for words in found if words)


def unchecked(family: ConjugateFamily) -> tuple[str, ...]:
    """What `contradictions` cannot tell of a family, in words."""
    try:
        require(family, ThetaDensity, "whether the densities fit together, by Chib's formula,")
    except MissingCapabilityError as error:
        return (f"not checked: {error}",)
    return ()


def _evidence(
    prior: ClassModel,
    model: ClassModel,
    stats: ClassStats,
    theta: dict[str, Array],
    X: Any,
    y: Array,
    weight: Any,
) -> str:
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    likelihood = np.log(theta[CLASS_WEIGHTS])[:, y] @ w
    chain = {name: value[None] for name, value in theta.items()}
    for rows, density in log_densities(model.family, chain, X, len(model.alpha)):
        likelihood += density[0][:, np.arange(density.shape[2]), y[rows]] @ w[rows]
    terms = likelihood, prior.log_density(theta), -model.log_density(theta)
    evidence = prior.log_evidence(stats)
    gap = np.sum(terms, axis=0) - evidence
    if _is_rounding(gap, *terms, evidence):
        return ""
    other = evidence + float(gap[np.argmax(np.abs(gap))])
    return (
        f"log evidence {evidence:.6g} is not log likelihood + log prior - log posterior, which is "
        f"{other:.6g} at one theta: the update, the evidence or a density is wrong"
    )


def _predictive(model: ClassModel, theta: dict[str, Array], X: Any, classes: Sequence[Any]) -> str:
    family: ConjugateFamily = model.family
    what = "a check of coherence"
    few = {name: value[:3] for name, value in theta.items()}
    before = require(family, ThetaDensity, what).log_density(few)
    for i in np.unique(np.linspace(0, X.shape[0] - 1, _ROWS).astype(int)):
        row = X[i : i + 1]
        predictive, likelihood = family.log_predictive(row)[0], family.log_likelihood(row, few)
        for c, label in enumerate(classes):
            grown = family.update(family.stats(row, np.array([c]), len(classes)))
            after = require(grown, ThetaDensity, what).log_density(few)
            gap = likelihood[:, 0, c] + before - after - predictive[c]
            if not _is_rounding(gap, likelihood[:, 0, c], before, after, predictive[c]):
                worst = float(gap[np.argmax(np.abs(gap))])
                return (
                    f"log p(x | y, D) of row {i}, class {label!r} is {predictive[c]:.6g}, off by "
                    f"{-worst:.2g} from what the densities of theta say: the predictive or the "
                    "update is wrong"
                )
    return ""


def _is_rounding(gap: Array, *terms: Any) -> bool:
    """Whether a sum that should be 0 is, to the digits that its terms have."""
    scale = 1.0 + sum(np.abs(term) for term in terms)
    return bool(np.all(np.abs(gap) <= _DIGITS * scale))
