r"""The closed forms of a model against each other, against draws, and against its PyMC graph.

For every theta, with D the training rows,

.. math:: \log p(D) = \log p(D | \theta) + \log p(\theta) - \log p(\theta | D):

evidence, likelihood, prior and posterior are tied to each other at any point of the parameter
space. Source: Chib (1995), "Marginal likelihood from the Gibbs output", equation 5 ("candidate's
formula"). Of a family that does not tell the density of theta, its graph is asked for it.

The rest needs no formula: the evidence of a few rows is the sum of their one-step log predictives,
to more digits than the evidence of many has; halves merge to the whole; no theta near an estimate
by ``"mle"`` or ``"map"`` is more probable; ``"posterior_mean"`` is the mean of draws. Every space
of parameters here is convex (probabilities that sum to 1, positive numbers, covariances), so that a
step from an estimate towards a draw stays inside; a small one away from it nearly always does.

Rows that are drawn from a density p and others from q overlap alike, by both densities:

.. math:: E_p\Big[\frac{q}{p + q}\Big] = E_q\Big[\frac{p}{p + q}\Big].
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from bayesgen.checks.comparison import (
    DENSITIES,
    ESTIMATES,
    INDEPENDENT,
    MERGED,
    PARAMETERS,
    Scores,
    compare,
    compare_mean,
    drawn,
    identity,
    skipped,
)
from bayesgen.datatree.tree import group
from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS_WEIGHTS, FEATURE, FEATURE_BIS
from bayesgen.families.shared.graph_rows import at_a_point, declared, numpy_mode, points
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import log_densities
from bayesgen.posterior.model import ClassModel, ClassStats

if TYPE_CHECKING:
    import pandas as pd

THETAS = 50  # at which densities are compared
NUMBERS = 1 << 26  # of draws: 512 MB
_FEW_ROWS = 5
_DIGITS_OF_FEW = 1e-9  # of the evidence of a few rows
_STEPS = (1e-2, 1e-4, -1e-4)  # of the way from an estimate to a draw, and away from it
_GAIN = 1e-11  # of a log density: what rounding may gain
_DRAWS = 20_000  # their mean is taken
_LIGHT_TAILS = 100.0  # rows of each class, beyond which it has a Normal error
_PRIOR_DRAWS = 2000

Theta = Mapping[str, Array]


@dataclass(frozen=True)
class Case:
    """Prior, posterior and the rows between them: X as the family takes it, class codes, weights.

    `classes` and `coords` are labels, for the words.
    """

    prior: ClassModel
    model: ClassModel
    stats: ClassStats
    X: Any
    y: Array
    weight: Array
    classes: Sequence[Any]
    coords: Mapping[str, Any]

    @property
    def few(self) -> Array:
        """Positions of a few rows."""
        return spaced(self.X.shape[0], _FEW_ROWS)

    def cause(self, error: UndefinedEstimateError) -> str:
        """Return why there is no estimate, in the names of classes and columns."""
        return error.renamed(self.classes, self.coords.get(FEATURE, ())).cause

    def fitted_to(self, rows: Array) -> ClassModel:
        """Return the posterior of some of the rows."""
        return self.prior.update(self.stats_of(rows))

    def stats_of(self, rows: Array) -> ClassStats:
        """Return their statistics."""
        return self.prior.stats(self.X[rows], self.y[rows], len(self.classes), self.weight[rows])

    def log_likelihood(self, theta: Theta) -> Array:
        """Return (S,) log p(X | y, theta) of draws {name: (S, *dims)}, each row by its weight."""
        chain = {name: np.asarray(value)[None] for name, value in theta.items()}
        total: Any = 0.0
        for rows, density in log_densities(self.model.family, chain, self.X, len(self.classes)):
            own_class = density[0][:, np.arange(density.shape[2]), self.y[rows]]
            total = total + own_class @ self.weight[rows]
        return np.asarray(total)


def spaced(n: int, most: int) -> Array:
    """Return at most so many of n positions, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, most).astype(int))


def log_joint(model: ClassModel, X) -> Array:
    """Return (N, C) log p(y = c, x | D) by class weights and family."""
    log_x: Array = np.log(model.alpha / model.alpha.sum()) + model.family.log_predictive(X)
    return log_x


# ---------------------------------------------------------------------------- without draws


def chain_rule(case: Case) -> "pd.DataFrame":
    """Compare the evidence of a few rows, the last in any class, with one-step predictives."""
    prior, model, rows = case.prior, case.prior, case.few
    n_classes, total, size = len(case.classes), 0.0, 0.0
    value, expected, sizes = [], [], []
    for k in range(len(rows)):
        X, y = case.X[rows[: k + 1]], case.y[rows[: k + 1]]
        joint = log_joint(model, X[k:])[0]
        value.append(total + joint)
        labels = [np.append(y[:k], c) for c in range(n_classes)]
        expected.append([prior.log_evidence(prior.stats(X, z, n_classes)) for z in labels])
        sizes.append(size + np.abs(joint))
        total, size = value[-1][y[k]], sizes[-1][y[k]]
        model = model.update(model.stats(X[k:], y[k:], n_classes))
    return identity(
        DENSITIES,
        "evidence and predictive",
        {"one-step log predictives": value, "log evidence": expected},
        size=sizes,
        place=lambda k, c: f"rows {rows[: k + 1].tolist()}, the last in {case.classes[c]!r}",
        digits=_DIGITS_OF_FEW,
        note="the evidence, the predictive or the update is wrong",
    )


def merged(case: Case) -> "pd.DataFrame":
    """Compare merged statistics of two halves of the rows with those of all."""
    halves = [np.flatnonzero(np.arange(len(case.y)) % 2 == k) for k in (0, 1)]
    a, b = map(case.stats_of, halves)
    routes = {}
    for name, stats in {"two halves, merged": a.merge(b), "all rows": case.stats}.items():
        joint = log_joint(case.prior.update(stats), case.X[case.few])
        routes[name] = np.append(joint.ravel(), case.prior.log_evidence(stats))
    note = "log p(y, x | D), or the evidence: merge, or the statistics, are wrong"
    return identity(MERGED, "merge", routes, note=note)


def theta_densities(case: Case) -> "pd.DataFrame":
    """Compare the evidence with densities at some theta, by Chib's formula."""
    require(case.model.family, ThetaDensity, "whether densities fit together, by Chib's formula,")
    theta = case.model.draw(np.random.default_rng(0), THETAS)
    labels = np.log(theta[CLASS_WEIGHTS])[:, case.y] @ case.weight
    terms = [labels + case.log_likelihood(theta), case.prior.log_density(theta)]
    terms.append(-case.model.log_density(theta))
    evidence = case.prior.log_evidence(case.stats)
    return identity(
        DENSITIES,
        "densities of theta",
        {"log likelihood + log prior - log posterior": sum(terms), "log evidence": evidence},
        size=np.abs(terms).sum(axis=0) + abs(evidence),
        note="the update, the evidence or a density is wrong",
    )


def maxima(case: Case) -> Iterator["pd.DataFrame"]:
    """Compare densities at ``mle`` and ``map`` with those on the way to draws."""
    family = case.model.family
    n = int(np.clip((NUMBERS >> 3) // family.n_parameters(), 2, THETAS))
    draws = family.draw(np.random.default_rng(1), n)
    mle = partial(family.mle, case.stats.features)
    yield _maximum(case, "mle", "likelihood", mle, case.log_likelihood, draws)
    try:
        density = family.capability(ThetaDensity)
        log_density = graph_posterior(case) if density is None else density.log_density
    except NotImplementedError as error:
        yield skipped(ESTIMATES, "method='map'", error)
    else:
        yield _maximum(case, "map", "posterior density", family.map, log_density, draws)


def _maximum(
    case: Case,
    name: str,
    what: str,
    estimate: Callable[[], Theta],
    log_density: Callable[[Theta], Array],
    draws: Theta,
) -> "pd.DataFrame":
    variable = f"method={name!r}"
    try:
        best = estimate()
    except UndefinedEstimateError as error:
        return skipped(ESTIMATES, variable, case.cause(error))
    at_best = float(log_density({k: np.asarray(v)[None] for k, v in best.items()})[0])
    if not np.isfinite(at_best):
        return skipped(ESTIMATES, variable, f"it is at the edge, where the {what} is not finite")
    highest = at_best
    for step in _STEPS:
        near = {k: v + step * (draws[k] - v) for k, v in best.items()}
        try:
            highest = max(highest, float(np.nanmax(log_density(near))))
        except ValueError:  # away from draws it may be outside the space
            continue
    note = f"its log {what} is not the highest"
    routes = {"a theta near it": highest, name: at_best}
    return identity(ESTIMATES, variable, routes, digits=_GAIN, note=note)


# -------------------------------------------------------------------------------- with draws


def means(case: Case, rng: np.random.Generator) -> Iterator["pd.DataFrame"]:
    """Compare ``mean`` with draws, after the same rows many times over, where tails are light."""
    stats = case.stats
    theta = case.model.family.draw(np.random.default_rng(0), 1)
    least = _LIGHT_TAILS + 2 * max(value.shape[-1] for value in theta.values())
    for _ in range(int(np.ceil(np.log2(max(1.0, least / stats.count[stats.count > 0].min()))))):
        stats = stats.merge(stats)
    family = case.prior.update(stats).family
    try:
        exact = family.mean()
    except UndefinedEstimateError as error:
        yield skipped(ESTIMATES, "method='posterior_mean'", case.cause(error))
        return
    draws = family.draw(rng, int(np.clip(NUMBERS // family.n_parameters(), 2000, _DRAWS)))
    for name, value in exact.items():
        labels, mean = elements(case, name, value)
        scores = compare_mean(elements(case, name, draws[name])[1][None], mean, independent=True)
        places = [f"E {label}" for label in labels]
        yield drawn(ESTIMATES, f"E {name}", places, scores, INDEPENDENT)
        if left := int(np.isnan(scores["mean"].difference).sum()):
            yield skipped(
                ESTIMATES,
                f"method='posterior_mean' of {left} of {len(labels)} elements of {name}",
                "the mean of independent draws has an error that is far from Normal",
            )


def elements(case: Case, name: str, value: Array) -> tuple[list[str], Array]:
    """Return names and values (..., K) of the elements of a parameter that rows tell anything of.

    Not those of ignored columns, nor of categories that do not exist.
    """
    dims = case.model.params[name]
    lead = [f"axis {k}" for k in range(np.ndim(value) - len(dims))]
    variable = group({name: ((*lead, *dims), value)}, case.coords)[name]
    ignored = getattr(case.model.family, "ignored", None)
    if ignored is not None:
        used = ~np.asarray(ignored, dtype=bool)
        variable = variable.isel({d: used for d in (FEATURE, FEATURE_BIS) if d in variable.dims})
    axes = [variable[d].values.tolist() for d in variable.dims[len(lead) :]]
    labels = [f"{name}[{', '.join(map(str, place))}]" for place in itertools.product(*axes)]
    return labels, variable.values.reshape(*variable.shape[: len(lead)], -1)


def overlaps(pairs: Sequence[Sequence[Array]]) -> dict[str, Scores]:
    """Compare the overlaps of n rows of p and n rows of q, pair by pair.

    Each pair is (2, n) log densities under p and q of rows of p, and the same of rows of q. A row
    that its own density does not allow is an error.
    """
    gaps = []
    for of_p, of_q in pairs:
        share_of_q = np.nan_to_num(expit(of_p[1] - of_p[0]), nan=1.0)
        gaps.append(share_of_q - np.nan_to_num(expit(of_q[0] - of_q[1])))
    return compare_mean(np.stack(gaps, axis=-1)[None], np.zeros(len(gaps)), independent=True)


# --------------------------------------------------------------------------- against the graph


def graph_statistics(case: Case) -> "pd.DataFrame":
    """Compare `to_pymc` given statistics with the prior times the likelihood of the rows."""
    family, what = case.prior.family, (DENSITIES, "statistics")
    prior, tensors = declared(family, case.coords)
    summed, same = declared(family, case.coords, stats=case.stats.features)
    if {v.name for v in summed.free_RVs} != {v.name for v in prior.free_RVs}:
        return skipped(*what, "to_pymc has other free variables given statistics")
    before, after = _log_density(prior), _log_density(summed)
    by_graph, by_rows = [], []
    for point in points(prior):
        values = at_a_point(prior, [*tensors.values()], point)
        by_name = {v.name: value for v, value in point.items()}
        there = {v: by_name[v.name] for v in summed.free_RVs}
        if not all(map(np.allclose, at_a_point(summed, [*same.values()], there), values)):
            return skipped(*what, "to_pymc has other coordinates given statistics")
        theta = {k: np.asarray(v)[None] for k, v in zip(tensors, values, strict=True)}
        by_graph.append(after(by_name) - before(by_name))
        by_rows.append(float(case.log_likelihood(theta)[0]))
    graph, rows = np.array(by_graph), np.array(by_rows)
    finite = np.isfinite(graph - rows)
    if finite.sum() < 2:
        return skipped(*what, "the rows have no density at draws of the prior")
    graph, rows = graph[finite] - graph[finite][0], rows[finite] - rows[finite][0]
    note = (
        "log densities at one theta less those at another; to_pymc must use stats=, and stats must "
        "use the weights"
    )
    routes = {"to_pymc given the statistics": graph, "log_likelihood of the weighted rows": rows}
    size = np.abs(by_rows).max()
    return identity(*what, routes, size, note=note)


def graph_draws(case: Case) -> "pd.DataFrame":
    """Compare `draw` of the prior with PyMC's draws of `to_pymc`."""
    import pandas as pd
    import pymc as pm

    family, rng = case.prior.family, np.random.default_rng(2)
    model, tensors = declared(family, case.coords)
    try:
        with model:
            drawn_by_pymc = pm.draw([*tensors.values()], draws=_PRIOR_DRAWS, random_seed=2)
    except NotImplementedError as error:
        return skipped(PARAMETERS, "draw", f"PyMC cannot draw theta: {error}")
    drawn_by_family = family.draw(rng, _PRIOR_DRAWS)
    routes = "draw of the prior", "PyMC's draws of to_pymc"
    lines = []
    for name, theirs in zip(tensors, drawn_by_pymc, strict=True):
        labels, mine = elements(case, name, drawn_by_family[name])
        scores = compare(mine[None], elements(case, name, theirs)[1])
        lines.append(drawn(PARAMETERS, name, labels, scores, *routes))
    return pd.concat(lines)


def graph_posterior(case: Case) -> Callable[[Theta], Array]:
    """Return the log posterior density of theta, up to a constant, by prior and likelihood.

    Raises
    ------
    NotImplementedError
        If theta is not the free variables of `to_pymc`.
    """
    family = case.prior.family
    if not isinstance(case.X, np.ndarray):
        raise NotImplementedError("the rows are not an array")
    model, tensors = declared(family, case.coords)
    if {*tensors.values()} != {*model.free_RVs}:
        raise NotImplementedError("theta of to_pymc is not its free variables")
    prior = _log_density(model)

    def log_density(theta: Theta) -> Array:
        each = [{k: v[s] for k, v in theta.items()} for s in range(len(theta[next(iter(theta))]))]
        return case.log_likelihood(theta) + [prior(one) for one in each]

    return log_density


def _log_density(model) -> Callable[[Theta], float]:
    """Return the log density of a model's free variables, in their own coordinates."""
    from pymc.model.transform.conditioning import remove_value_transforms

    plain = remove_value_transforms(model)
    f = plain.compile_fn(plain.logp(jacobian=False), mode=numpy_mode("fast_compile"))
    return lambda theta: float(f({v.name: theta[v.name] for v in plain.value_vars}))
