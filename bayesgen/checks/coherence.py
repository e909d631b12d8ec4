r"""Whether the densities of a closed form fit together: exact, and without a sampler.

For every theta, with D the training rows,

.. math:: \log p(D) = \log p(D | \theta) + \log p(\theta) - \log p(\theta | D),

and the same for one more row: evidence, predictive, likelihood, prior and posterior are tied to
each other at any point of the parameter space. Source: Chib (1995), "Marginal likelihood from the
Gibbs output", equation 5 ("candidate's formula").

The rest needs no formula either: the evidence of a few rows is the product of their one-step
predictives, to more digits than the evidence of many has; rows without one of them are fitted
again; halves merge to the whole; contributions add up to the log-odds that they explain.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.names import CLASS_WEIGHTS
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.drawn import log_densities
from bayesgen.posterior.model import ClassModel, ClassStats

_THETAS = 50  # at which the formula is tried
_ROWS = 5  # whose predictive is
_DIGITS = 1e-8  # of the sum of the magnitudes in it
_DIGITS_OF_FEW = 1e-9  # of the evidence of a few rows


def class_weights(used: Array, expected: Array, classes: Sequence[Any]) -> str:
    """Return what is wrong with the class weights (N, C) of predictions, or ""."""
    gap = np.log(used) - np.log(expected)
    if _is_rounding(gap, np.log(expected)):
        return ""
    row, c = np.unravel_index(np.argmax(np.abs(np.nan_to_num(gap, nan=np.inf))), gap.shape)
    return (
        f"p(y = {classes[int(c)]!r} | D) used by prediction is {used[row, c]:.6g}, and "
        f"(class_alpha + rows of the class)/(their sum) is {expected[c]:.6g}: the class prior or "
        "the count of rows is wrong"
    )


def unequal(name: str, found: Array, expected: Array) -> str:
    """Return how two arrays of probabilities differ by more than rounding, or ""."""
    gap = np.abs(np.nan_to_num(found - expected, nan=np.inf))
    if gap.max(initial=0.0) <= _DIGITS:
        return ""
    place = np.unravel_index(gap.argmax(), gap.shape)
    return f"{name} is {found[place]:.8g}, and should be {expected[place]:.8g}"


def chain_rule(prior: ClassModel, X, y: Array) -> str:
    """Return what is wrong with the evidence of a few rows X, y, or "".

    An error that the magnitudes in the evidence of many rows hide shows here.
    """
    n_classes, model, terms = len(prior.alpha), prior, []
    for i, c in enumerate(y):
        row = X[i : i + 1]
        terms.append(float(_log_joint(model, row)[0, c]))
        model = model.update(model.stats(row, y[i : i + 1], n_classes))
    evidence = prior.log_evidence(prior.stats(X, y, n_classes))
    gap = np.asarray(evidence - np.sum(terms))
    if _is_rounding(gap, np.abs(terms).sum(), digits=_DIGITS_OF_FEW):
        return ""
    return (
        f"log evidence of {len(y)} rows, {evidence:.10g}, is off by {float(gap):.2g} from the sum "
        "of their one-step log predictives: the evidence, the predictive or the update is wrong"
    )


def left_out(found: Array, prior: ClassModel, X, y: Array, weight: Array, rows: Array) -> str:
    """Return what is wrong with leave-one-out (n, C), by refits without each row, or ""."""
    for k, i in enumerate(rows):
        expected = _log_joint(_without(prior, X, y, weight, i), X[i : i + 1])[0]
        gap = np.where(found[k] == expected, 0.0, found[k] - expected)
        if not _is_rounding(gap, np.where(gap == 0, 0.0, expected)):
            c = int(np.argmax(np.abs(np.nan_to_num(gap, nan=np.inf))))
            return (
                f"leave-one-out of row {i} has log p(y, x | the other rows) {found[k, c]:.6g}, and "
                f"a fit to the other rows {expected[c]:.6g}: what is left of the row is wrong"
            )
    return ""


def typical(
    by_class: Array, overall: Array, prior: ClassModel, X, y: Array, weight: Array, rows: Array
) -> str:
    """Return what is wrong with typicalities (n, C) and (n,) of some rows, or ""."""
    fits = [_without(prior, X, y, weight, i) for i in rows]
    model = prior.update(prior.stats(X, y, len(prior.alpha), weight))
    densities = [
        f.family.log_predictive(X[i : i + 1])[0, y[i]] for f, i in zip(fits, rows, strict=True)
    ]
    each = [log_sum_exp(_log_joint(f, X[i : i + 1]))[0] for f, i in zip(fits, rows, strict=True)]
    density, every = model.family.log_predictive(X[rows]), np.ones(len(rows), dtype=bool)
    cases = [
        (f"in class {c}", by_class[:, c], density[:, c], densities, y[rows] == c)
        for c in range(density.shape[1])
    ]
    cases.append(("among all rows", overall, log_sum_exp(_log_joint(model, X[rows])), each, every))
    for where, value, score, others, use in cases:
        gap, among = np.subtract.outer(score, np.array(others)[use]), weight[rows][use]
        slack = 1e-9 * (1 + np.abs(score))[:, None]  # of ties, which rounding decides
        least, most = ((1 + (gap >= s) @ among) / (1 + among.sum()) for s in (slack, -slack))
        wrong = np.flatnonzero(~((value >= least - 1e-9) & (value <= most + 1e-9)))
        if wrong.size:
            k = wrong[0]
            return (
                f"typicality of row {rows[k]} {where} is {value[k]:.6g}, and {least[k]:.6g} by "
                "its rank among the densities of rows that fits leave out"
            )
    return ""


def _without(prior: ClassModel, X, y: Array, weight: Array, i: int) -> ClassModel:
    """Return the posterior of a fit to all rows but one."""
    others = np.arange(len(y)) != i
    return prior.update(prior.stats(X[others], y[others], len(prior.alpha), weight[others]))


def merged(prior: ClassModel, stats: ClassStats, X, y: Array, weight: Array, rows: Array) -> str:
    """Return what is wrong with merged statistics of two halves of the rows, or ""."""
    halves = [np.arange(len(y)) % 2 == k for k in (0, 1)]
    a, b = (prior.stats(X[h], y[h], len(prior.alpha), weight[h]) for h in halves)
    whole, parts = (
        np.append(_log_joint(prior.update(s), X[rows]).ravel(), prior.log_evidence(s))
        for s in (stats, a.merge(b))
    )
    gap = np.where(whole == parts, 0.0, whole - parts)
    if _is_rounding(gap, np.where(gap == 0, 0.0, whole)):
        return ""
    worst = float(np.abs(np.nan_to_num(gap, nan=np.inf)).max())
    return (
        "log p(y, x | D) or the evidence, from statistics of two halves of the rows, merged, is "
        f"off by {worst:.2g} from that of all rows: merge, or the statistics, are wrong"
    )


def additive(contributions: Array, intercept: Array, log_odds: Array) -> str:
    """Return what contributions (n, D) and intercepts (n,) fail to add up to, or ""."""
    total = contributions.sum(axis=1) + intercept
    size = np.abs(contributions).sum(axis=1) + np.abs(intercept)
    if _is_rounding(total - log_odds, size):
        return ""
    i = int(np.argmax(np.abs(np.nan_to_num(total - log_odds, nan=np.inf))))
    return (
        f"contributions of row {i} and the intercept add up to {total[i]:.8g}, and the "
        f"log-odds of predict_proba are {log_odds[i]:.8g}: explain is wrong"
    )


def _log_joint(model: ClassModel, X) -> Array:
    """Return (N, C) log p(y = c, x | D) by class weights and family."""
    log_x: Array = np.log(model.alpha / model.alpha.sum()) + model.family.log_predictive(X)
    return log_x


def contradictions(
    prior: ClassModel,
    model: ClassModel,
    stats: ClassStats,
    X,
    y: Array,
    weight: Array,
    classes: Sequence[Any],
) -> tuple[str, ...]:
    """Return what does not fit together, in words; an empty list if all does.

    Parameters
    ----------
    prior, model : ClassModel
        Prior and posterior.
    stats : ClassStats
        Of the rows.
    X, y, weight : rows as the family takes them, class codes (N,), weights (N,)
    classes : sequence
        Labels, for the words.

    Raises
    ------
    MissingCapabilityError
        If the family does not tell the density of theta.
    """
    require(model.family, ThetaDensity, "whether the densities fit together, by Chib's formula,")
    theta = model.draw(np.random.default_rng(0), _THETAS)
    with np.errstate(all="ignore"):  # what is broken may well divide by zero
        complaints = [
            _evidence(prior, model, stats, theta, X, y, weight),
            _predictive(model, theta, X, classes),
        ]
    return tuple(words for words in complaints if words)


def _evidence(
    prior: ClassModel,
    model: ClassModel,
    stats: ClassStats,
    theta: dict[str, Array],
    X,
    y: Array,
    weight: Array,
) -> str:
    likelihood = np.log(theta[CLASS_WEIGHTS])[:, y] @ weight
    chain = {name: value[None] for name, value in theta.items()}
    for rows, density in log_densities(model.family, chain, X, len(model.alpha)):
        likelihood += density[0][:, np.arange(density.shape[2]), y[rows]] @ weight[rows]
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


def _predictive(model: ClassModel, theta: dict[str, Array], X, classes: Sequence[Any]) -> str:
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


def _is_rounding(gap: Array, *terms, digits: float = _DIGITS) -> bool:
    """Return whether a sum that should be 0 is, to the digits that its terms have."""
    scale = 1.0 + sum(np.abs(term) for term in terms)
    return bool(np.all(np.abs(gap) <= digits * scale))
