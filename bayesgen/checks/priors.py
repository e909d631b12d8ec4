r"""Measure the sensitivity to a prior, and make a prior from ranges of the columns.

Strength k multiplies the pseudo-counts of a conjugate prior and leaves its centre and scale as they
are: Beta(ka, kb), Dirichlet(k alpha), Gamma(ka, kb), (k kappa0, k nu0 at the same variance; of a
covariance k times nu0 above its limit D - 1, at the same psi0 / nu0). The prior is proper for every
k > 0, so that p(y | x, D, k) has a closed form. Draws of the posterior under k = 1 are weighted by
the ratio of the two priors. The other way, a power of the prior's density, leaves Beta(1, 1) as it
is, and may make a prior improper.

Source: Berger (1990), Robust Bayesian analysis: sensitivity to the prior; Kallioinen et al. (2024),
Detecting and diagnosing prior and likelihood sensitivity with power-scaling.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import optimize, stats

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.errors import warn
from bayesgen.families.capabilities import ThetaDensity, require
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.errors import refuse_unknown
from bayesgen.families.names import BOUND, METHODS, OBS
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted, fitted_of, through_pipelines
from bayesgen.posterior.model import ClassModel
from bayesgen.predict import incomplete
from bayesgen.predict.left_out import log_odds
from bayesgen.predict.probabilities import posterior_of

if TYPE_CHECKING:
    import xarray as xr

ALL = "all"
_CLASS_ALPHA = "class_alpha"
_STRENGTHS = (0.5, 0.5**0.5, 2**0.5, 2.0)  # beside 1
_ENOUGH = 50  # draws that weights leave
_BATCHES = 20  # of draws, whose sums tell the Monte Carlo error with autocorrelation
_STEP = 0.05  # of log k; the stencil's error is about its fourth power
_STENCIL = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}


@named_rows
@through_pipelines
def prior_sensitivity(clf: Any, X: Any, *, posterior: Any = None) -> "xr.Dataset":
    """Return how the class probabilities of each row depend on the strength of the prior.

    Parameters
    ----------
    clf : fitted classifier with a conjugate prior
    X : (N, D)
    posterior : xarray.DataTree, optional
        Draws of this model's parameters that replace the closed form.

    Returns
    -------
    xarray.Dataset
        (obs_id) ``label``, the most probable class, and its ``probability``. (obs_id,
        hyperparameter), for that class: ``sensitivity``, d log odds / d log k at k = 1 against all
        others; ``range`` (..., bound) of its probability over five strengths k from 1/2 to 2;
        ``changes``, whether another class is the most probable at one of them. The
        hyper-parameters are "class_alpha", those of the features, scaled one by one if they are
        not parts of one pseudo-count (kappa, nu), and "all" at once. With draws also ``mcse``, the
        largest Monte Carlo standard error of a probability in the range, and (hyperparameter)
        ``weight_ess``, the least effective number of draws under the weights.

    Raises
    ------
    NotImplementedError
        If the prior is not conjugate: its strength cannot be separated from its shape.
        ``az.psense_summary`` scales powers of such priors.

    Warns
    -----
    MonteCarloWarning
        If fewer than 50 of the draws carry the weights of another strength.

    Notes
    -----
    In closed form the numbers are exact, but for the differentiation: 1e-6 or so, relative. A
    probability of .99 and one of .5 may have the same ``sensitivity``: look at ``range`` first.
    If the centre of a prior comes from the training rows (defaults), it is held fixed.

    Examples
    --------
    >>> import bayesgen as bg
    >>> clf = bg.BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> found = bg.prior_sensitivity(clf, [[1, 1]])
    >>> found["range"].sel(hyperparameter="all").values.round(2)
    array([[0.65, 0.79]])
    """
    fitted = fitted_of(clf, "prior_sensitivity")
    own = posterior_of(fitted, posterior)
    prior = own.prior
    if not prior.family.conjugate:
        raise NotImplementedError(
            f"prior_sensitivity scales pseudo-counts, and {type(prior.family).__name__} has no "
            "conjugate prior: az.psense_summary scales powers of its density"
        )
    rows = fitted.read(X).encoded
    if isinstance(own, ExactPosterior):
        at: Callable[[ClassModel], Any] = partial(_exact, fitted, own, rows)
    else:
        at = partial(_weighted, prior, _draws(own, rows))
    base, *_ = start = at(prior)
    each, best = np.arange(len(base)), base.argmax(axis=1)
    found, known = {}, _hyperparameters(prior.family)
    for name in (_CLASS_ALPHA, *known, ALL):
        near = [at(_stronger(prior, known, name, np.exp(k * _STEP)))[0] for k in _STENCIL]
        odds = log_odds(np.stack(near))[:, each, best]
        slope = np.array([*_STENCIL.values()]) / _STEP @ odds
        several = [start, *(at(_stronger(prior, known, name, k)) for k in _STRENGTHS)]
        p = np.exp([log_p[each, best] for log_p, _, _ in several])
        changes = np.any([log_p.argmax(axis=1) != best for log_p, _, _ in several], axis=0)
        mcse = np.max([error[each, best] for _, error, _ in several], axis=0)
        found[name] = (
            slope,
            np.stack([p.min(axis=0), p.max(axis=0)], axis=-1),
            changes,
            mcse,
            min(ess for _, _, ess in several),
        )
    slope, ends, changes, mcse, ess = map(np.stack, zip(*found.values(), strict=True))
    dims = (OBS, "hyperparameter")
    table = {
        "label": ((OBS,), fitted.classes[best]),
        "probability": ((OBS,), np.exp(base[each, best])),
        "sensitivity": (dims, slope.T),
        "range": ((*dims, BOUND), ends.swapaxes(0, 1)),
        "changes": (dims, changes.T),
    }
    if not isinstance(own, ExactPosterior):
        if ess.min() < _ENOUGH:
            warn(
                "posterior draws are too few for a prior of strength 0.5 to 2: weighted, "
                f"{ess.min():.1f} of them are left, where {_ENOUGH} are enough",
                MonteCarloWarning,
            )
        table |= {"mcse": (dims, mcse.T), "weight_ess": (dims[1:], ess)}
    return tree.group(table, {"hyperparameter": list(found), BOUND: ["lower", "upper"]})


def _hyperparameters(family: Any) -> dict[str, tuple[int, tuple[str, ...]]]:
    """{name: (block, names in its family)} of what can be stronger or weaker by itself."""
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    for b, block in enumerate(family.blocks()):
        own: type[ConjugateFamily] = type(block.family)
        names = own.tunable if own.pseudo_counts is None else own.pseudo_counts
        parts = [("kappa",), ("nu",)] if "kappa" in names else [names]
        found |= {block.prefix + ", ".join(part): (b, part) for part in parts if part}
    return found


def _stronger(prior: ClassModel, known: dict[str, Any], name: str, k: float) -> ClassModel:
    """The prior with one of the known hyper-parameters, or all, worth k times the rows."""
    families = [block.family for block in prior.family.blocks()]
    for b, names in known.values() if name == ALL else [known[name]] if name in known else []:
        old = families[b]
        new = old.scaled(dict.fromkeys(names, k))
        if "nu" in names and hasattr(old, "psi"):
            share = new.nu / old.nu
            new = replace(new, psi=old.psi * share.reshape(-1, *[1] * (np.ndim(old.psi) - 1)))
        families[b] = new
    alpha = prior.alpha * k if name in (ALL, _CLASS_ALPHA) else prior.alpha
    return replace(prior, alpha=alpha, family=prior.family.with_blocks(families))


def _exact(
    fitted: Fitted, own: ExactPosterior, rows: Any, prior: ClassModel
) -> tuple[Array, Array, float]:
    """(N, C) log probabilities under another prior, no error, and infinitely many draws."""
    other = replace(own, prior=prior, model=prior.update(own.stats))
    joint = incomplete.log_joint(fitted, other, rows, METHODS[0], None, "probability")
    return log_softmax(joint), np.zeros(joint.shape), np.inf


def _draws(own: Any, rows: Any) -> tuple[Any, Array]:
    """Draws of theta {name: (S, ...)} and their (S, N, C) log joint densities."""
    theta = {k: v.reshape(-1, *v.shape[2:]) for k, v in own.theta.items()}
    parts = [joint.reshape(-1, *joint.shape[2:]) for _, joint in own.log_joint_draws(rows)]
    return theta, np.concatenate(parts, axis=1)


def _weighted(
    before: ClassModel, draws: tuple[Any, Array], prior: ClassModel
) -> tuple[Array, Array, float]:
    """(N, C) log probabilities and standard errors of weighted draws, and what weights leave."""
    require(prior.family, ThetaDensity, "prior_sensitivity of draws")
    theta, joint = draws
    log_w = prior.log_density(theta) - before.log_density(theta)
    log_w = log_w - log_w.max()
    log_r = log_w[:, None, None] + joint
    log_joint = log_sum_exp(log_r, axis=0)
    log_p = log_softmax(log_joint)
    r = np.exp(log_r - log_sum_exp(log_joint)[:, None])  # sums to p over draws
    influence = r - np.exp(log_p) * r.sum(axis=2, keepdims=True)
    w = np.exp(log_w)
    batches = np.stack([part.sum(axis=0) for part in np.array_split(influence, _BATCHES)])
    error = np.sqrt(_BATCHES * batches.var(axis=0, ddof=1))  # of chains in turn
    return log_p, error, float(w.sum() ** 2 / (w @ w))


Kind = Literal["gaussian", "poisson", "bernoulli"]


def prior_from_range(
    given: Any,
    kind: Kind = "gaussian",
    *,
    prob: float = 0.95,
    kappa0: float = 1.0,
    nu0: float = 3.0,
) -> dict[str, Any]:
    """Return hyper-parameters from ranges, for example "bill length is 30 to 50".

    Parameters
    ----------
    given : (low, high) or {column: (low, high)}
        Range with probability `prob`: of a cell of a new row for a "gaussian" column; of the mean
        of a class, a rate or a share, for "poisson" and "bernoulli" columns.
    kind : {"gaussian", "poisson", "bernoulli"}
    prob : float in (0, 1)
    kappa0, nu0 : float
        Weights of the prior mean and variance of gaussian columns, in rows. A smaller `kappa0`
        attributes more of the range to differences between the classes.

    Returns
    -------
    {argument: number or {column: number}}
        For `GaussianNB` (mu0, kappa0, nu0, sigma2_0), `PoissonNB` (shape, rate) or `BernoulliNB`
        (alpha, beta), and for `MixedNB` with one range. Each tail has probability (1 - `prob`) / 2.

    Examples
    --------
    >>> import bayesgen as bg
    >>> bg.prior_from_range((30, 50))["sigma2_0"]
    4.9...
    >>> clf = bg.GaussianNB(**bg.prior_from_range({"bill_length_mm": (30, 50)}))
    >>> clf.mu0
    {'bill_length_mm': 40.0}
    """
    refuse_unknown("kind", kind, ("gaussian", "poisson", "bernoulli"))
    if not 0 < prob < 1:
        raise ValueError(f"prob must be a number between 0 and 1, got {prob!r}")
    if isinstance(given, Mapping):
        own = {c: prior_from_range(r, kind, prob=prob, kappa0=kappa0, nu0=nu0)
               for c, r in given.items()}  # fmt: skip
        return {a: {c: found[a] for c, found in own.items()} for a in next(iter(own.values()))}
    low, high = (float(end) for end in given)
    limits = {"gaussian": (-np.inf, np.inf), "poisson": (0, np.inf), "bernoulli": (0, 1)}[kind]
    if not limits[0] < low < high < limits[1]:
        raise ValueError(
            f"a {kind} range must be two rising numbers within {limits[0]:g} and {limits[1]:g}, "
            f"got {given!r}"
        )
    tails = (1 - prob) / 2, (1 + prob) / 2
    if kind == "gaussian":  # t with nu0 degrees of freedom and scale^2 = sigma2 (1 + 1 / kappa0)
        scale = (high - low) / 2 / stats.t.ppf(tails[1], nu0)
        sigma2 = float(scale**2 / (1 + 1 / kappa0))
        return {"mu0": (low + high) / 2, "kappa0": kappa0, "nu0": nu0, "sigma2_0": sigma2}
    if kind == "poisson":

        def ratio(log_shape: float) -> float:
            ends = stats.gamma.ppf(tails, np.exp(log_shape))
            return float(np.log(ends[1]) - np.log(ends[0]) - np.log(high / low))

        shape = float(np.exp(optimize.brentq(ratio, -5, 20, xtol=1e-12)))
        return {"shape": shape, "rate": float(stats.gamma.ppf(tails[1], shape) / high)}

    def off(logs: Array) -> Array:
        return stats.beta.cdf([low, high], *np.exp(logs)) - tails

    mean = (low + high) / 2
    size = max(4 * mean * (1 - mean) / (high - low) ** 2 * stats.norm.ppf(tails[1]) ** 2 - 1, 1.0)
    found = optimize.root(off, np.log([mean * size, (1 - mean) * size]), tol=1e-12)
    if not found.success:
        raise ValueError(f"no Beta distribution has {prob:g} of its mass from {low:g} to {high:g}")
    alpha, beta = np.exp(found.x).tolist()
    return {"alpha": alpha, "beta": beta}
