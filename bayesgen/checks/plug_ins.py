r"""Plug-in estimates against their definitions.

- ``"mle"``: no other theta near by has a larger likelihood of the training rows.
- ``"map"``: none near by has a larger posterior density, in the coordinates of the family's
  parameters.
- ``"posterior_mean"``: the mean of independent draws.

The first two need no gradients. Every space of parameters here is convex (probabilities that sum
to 1, positive numbers, covariances), so that a small step from the estimate towards a draw of the
posterior stays inside; a step away from it may not, and counts only if the density there is not 0.
One parameter moves at a time, in all directions that the draws span: at a maximum no step gains.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesgen.checks.agreement import Agreement, compare_mean
from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import log_densities
from bayesgen.posterior.model import ClassModel, ClassStats

_STEPS = (1e-2, 1e-4)  # of the way to a draw, and away from it
_DIRECTIONS = 8  # fewer where theta is large
_NUMBERS = 1 << 23  # in all directions: 64 MB
_DIGITS = 1e-11  # of a log density: what rounding may gain
_FEW_ROWS = 50.0  # of the least frequent class, beyond which expectations have light tails

Theta = dict[str, Array]


class Wrong(NamedTuple):
    """What is wrong with an estimate, or why it could not be looked at; "" for nothing."""

    wrong: str = ""
    skipped: str = ""


def likelihood_maximum(
    model: ClassModel,
    stats: ClassStats,
    X,
    y: Array,
    weight: Array,
    classes: Sequence[Any],
) -> Wrong:
    """Return whether ``mle`` has the largest likelihood of the rows.

    Parameters
    ----------
    model, stats : posterior and statistics of the rows
    X, y, weight : rows as the family takes them, class codes (N,), weights (N,)
    classes : sequence
        Labels, for the words.
    """
    family: ConjugateFamily = model.family
    try:
        best = family.mle(stats.features)
    except UndefinedEstimateError as error:
        return Wrong(skipped=str(error))
    n_classes = len(classes)

    def by_class(theta: Theta) -> Array:
        """Return (S, C) log likelihood of the rows of each class."""
        chain = {name: value[None] for name, value in theta.items()}
        totals = np.zeros((len(next(iter(theta.values()))), n_classes))
        for rows, density in log_densities(family, chain, X, n_classes):
            terms = density[0][:, np.arange(density.shape[2]), y[rows]] * weight[rows]
            for c in range(n_classes):
                totals[:, c] += terms[:, y[rows] == c].sum(axis=1)
        return totals

    at_best_of_class = by_class({k: v[None] for k, v in best.items()})
    for name, moved in _steps(family, best):
        theta = {k: moved if k == name else _repeated(v, len(moved)) for k, v in best.items()}
        with np.errstate(all="ignore"):
            value, at_best = by_class(theta), at_best_of_class
        separate = family.params[name][:1] == (CLASS,)
        if not separate:  # a parameter that the classes share
            value, at_best = value.sum(axis=1, keepdims=True), at_best.sum(axis=1, keepdims=True)
        words = _gain(name, value, at_best, classes if separate else ())
        if words:
            return Wrong(f"method='mle': {words} of log likelihood: it is no maximum")
    return Wrong()


def density_maximum(model: ClassModel, classes: Sequence[Any]) -> Wrong:
    """Return whether ``map`` has the largest posterior density, as `likelihood_maximum` does."""
    family: ConjugateFamily = model.family
    try:
        best = family.map()
        density = require(family, ThetaDensity, "the mode of the density")
        at_best = density.log_density({k: v[None] for k, v in best.items()})
    except UndefinedEstimateError as error:
        return Wrong(skipped=str(error))
    except NotImplementedError as error:
        return Wrong(skipped=f"method='map': {error}")
    if not np.isfinite(at_best).all():
        return Wrong(skipped="method='map' is at the edge, where the density is not finite")
    for name, moved in _steps(family, best):
        separate = family.params[name][:1] == (CLASS,)
        for c in range(len(classes) if separate else 1):
            one = moved
            if separate:  # the others stay
                one = _repeated(best[name], len(moved)).copy()
                one[:, c] = moved[:, c]
            theta = {k: one if k == name else _repeated(v, len(moved)) for k, v in best.items()}
            with np.errstate(all="ignore"):
                value = np.nan_to_num(density.log_density(theta), nan=-np.inf)[:, None]
            words = _gain(name, value, at_best[None], [classes[c]] if separate else ())
            if words:
                return Wrong(f"method='map': {words} of log posterior density: it is no mode")
    return Wrong()


def expectation(
    model: ClassModel,
    stats: ClassStats,
    reference: Theta,
    rng: np.random.Generator,
    elements: Callable[[str, Array], Array],
) -> tuple[dict[str, Agreement], str]:
    """Compare ``mean`` with draws: {name: agreement of its elements}, or why it cannot be.

    Where the expectation of few rows cannot be estimated by draws (its error is not Normal), it is
    that of the same rows many times over, where the tails are light.

    Parameters
    ----------
    reference : {name: (R, *dims)}
        Independent draws of `model`.
    elements : callable
        (..., K) those of a parameter (..., *dims) that rows say anything of.
    """
    family: ConjugateFamily = model.family
    try:
        exact = family.mean()
    except UndefinedEstimateError as error:
        return {}, str(error)
    agreements: dict[str, Agreement] = {}
    more: ConjugateFamily | None = None
    for name, value in exact.items():
        agreement = _means(elements(name, reference[name]), elements(name, value))
        if np.isnan(agreement.z[:, 0]).any():
            if more is None:
                more = repeated_rows(model, stats).family
                draws, mean_of_more = more.draw(rng, len(reference[name])), more.mean()
            other = _means(elements(name, draws[name]), elements(name, mean_of_more[name]))
            fallback = np.isnan(agreement.z[:, 0])
            agreement = Agreement(
                *(
                    np.where(fallback.reshape(-1, *[1] * (a.ndim - 1)), b, a)
                    for a, b in zip(agreement, other, strict=True)
                )
            )
        agreements[name] = agreement
    return agreements, ""


def repeated_rows(model: ClassModel, stats: ClassStats) -> ClassModel:
    """Return the posterior after the same rows many times more: at least 50 + 2 D in each class."""
    seen = stats.count[stats.count > 0]
    theta = model.family.draw(np.random.default_rng(0), 1)
    least = _FEW_ROWS + 2 * max(value.shape[-1] for value in theta.values())
    for _ in range(int(np.ceil(np.log2(max(1.0, least / seen.min()))))):
        stats = stats.merge(stats)
    return model.update(stats)


def _means(draws: Array, exact: Array) -> Agreement:
    return compare_mean(draws[None], exact, independent=True)


def class_weights(model: ClassModel, stats: ClassStats, alpha: Array, count: Array) -> str:
    """Return what is wrong with the class weights of the plug-ins, or "".

    Parameters
    ----------
    alpha, count : (C,)
        Constructor's ``class_alpha``, and rows of each class, by weight.
    """
    posterior = alpha + count
    expected = {"mle": count / count.sum(), "posterior_mean": posterior / posterior.sum()}
    if len(alpha) > 1 and np.all(posterior > 1):
        expected["map"] = (posterior - 1) / (posterior - 1).sum()
    for method, value in expected.items():
        used = model.class_weights(method, stats)  # type: ignore[arg-type]
        if not np.allclose(used, value, rtol=1e-9, atol=1e-300):
            return f"method={method!r}: the class weights are {used}, and should be {value}"
    return ""


def _steps(family: ConjugateFamily, best: Theta) -> Iterator[tuple[str, Array]]:
    """Yield (name, (S, *dims)): each parameter moved a little, to draws and away from them."""
    size = max(1, sum(np.size(v) for v in best.values()))
    n = int(np.clip(_NUMBERS // (2 * len(_STEPS) * size), 2, _DIRECTIONS))
    draws, density = family.draw(np.random.default_rng(1), n), family.capability(ThetaDensity)
    for name, value in best.items():
        step = np.concatenate([e * (draws[name] - value) for e in _STEPS])
        away = [v for v in value - step if density and _is_inside(density, best | {name: v})]
        yield name, np.concatenate([value + step, *(v[None] for v in away)])


def _is_inside(density: ThetaDensity, theta: Theta) -> bool:
    """Return whether the density at one theta is known and not 0."""
    try:
        with np.errstate(all="ignore"):
            return bool(np.isfinite(density.log_density(theta)))
    except (NotImplementedError, np.linalg.LinAlgError):
        return False


def _repeated(value: Array, n: int) -> Array:
    return np.broadcast_to(value, (n, *np.shape(value)))


def _gain(name: str, value: Array, at_best: Array, classes: Sequence[Any]) -> str:
    """Return what a step gains, in words; "" if none gains more than rounding.

    Parameters
    ----------
    value : (S, K)
    at_best : (1, K)
    """
    gain = value - at_best - _DIGITS * (1 + np.abs(at_best))
    if not (gain > 0).any():
        return ""
    s, c = np.unravel_index(np.nanargmax(gain), gain.shape)
    place = f" of class {classes[int(c)]!r}" if len(classes) else ""
    return f"a small step of {name}{place} gains {float((value - at_best)[s, c]):.2g}"
