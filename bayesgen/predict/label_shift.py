r"""Class proportions of a new population from its unlabelled rows (label shift).

The new population has its own proportions, the classes look as they did:

.. math:: \rho \sim \text{Dirichlet}(\alpha), \qquad
          x_1, \dots, x_m \mid \rho, \theta \sim \sum_c \rho_c \, p(x \mid \theta_c)

All m rows share one theta, which the training rows D leave uncertain. So p(x_1..m | rho, D) is *no*
product over rows: the m rows err together, and more of them do not cure it. What to do about theta:

- ``"drawn"``: p(rho | theta, x_1..m) averaged over p(theta | D). Its width ends where that of theta
  does. The new rows teach nothing of theta, hence cannot bend the classes to their own clusters.
- ``"updated"``: p(rho | D, x_1..m), the posterior of the whole model; the new rows teach theta too.
  Narrower where D is small, and as wrong as the model is.
- ``"integrated"``: the product over rows of p(x_i | D), as EM on predicted probabilities assumes.
  Deterministic for two classes; its intervals are too short unless D is far larger than m.

Over data drawn from the prior (5 binary features, 5 rows per class, m = 50; 150 replicates) nominal
90 % intervals of the three covered 92, 92 and 69 %; with m = 500 the last one 34 %.
"""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, xlogy
from sklearn.utils.validation import _num_samples

from bayesgen.datatree import tree
from bayesgen.datatree.tree import POSTERIOR, PREDICTIONS, SUMMARY
from bayesgen.encoding.labels import by_label, codes_of
from bayesgen.errors import refuse_below, warn
from bayesgen.families.errors import refuse_unknown
from bayesgen.families.names import BOUND, CHAIN, CLASS, DRAW, OBS
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.fitted import fitted_of, through_pipelines
from bayesgen.predict.draws import intervals_of_joint
from bayesgen.predict.request import IntervalRequest, KindName

if TYPE_CHECKING:
    import xarray as xr


# ------------------------------------------------------------------------------------------------
# The weights of a mixture whose components are known: their posterior from unlabelled rows.
#
# .. math:: \rho \sim \text{Dirichlet}(\alpha), \qquad x_i \sim \sum_c \rho_c f_c(x_i)
#
# Two components: :math:`p(\rho \mid x)` is a density of one variable, integrated on a mesh. More:
# Gibbs sampling of two weights at a time, in the same variable. The mode is that of expectation
# maximisation: Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a classifier to
# new a priori probabilities.
#
# Shapes: f is (..., C, m), densities at m rows in any unit of a row's own, the largest of each row
# 1; leading axes are mixtures of their own. Results lead with the same axes.

_CELLS = 1 << 21  # numbers of one temporary: 16 MiB
_FACTORS = 8  # densities multiplied before a logarithm is taken; none is below 1e-38 in effect
_TAIL = 45.0  # natural logarithms of a density that are followed to either side
_FIRST_MESH, _NEXT_MESH = 128, 16  # intervals of the probability below an interval; in later passes
_SEARCH = 33  # nodes while the mass is sought


def relative(log_f: Array) -> Array:
    """Return (..., C, m) f from log densities (..., m, C), each row in the unit of its largest."""
    log_f = np.moveaxis(log_f, -1, -2)
    top = log_f.max(axis=-2, keepdims=True)
    # a row that no component can produce tells nothing of their weights
    return np.where(np.isneginf(top), 1.0, np.exp(log_f - np.where(np.isneginf(top), 0.0, top)))


# ------------------------------------------------------------------ two components: quadrature


class MeshDensity(NamedTuple):
    """Posterior of the log-odds l of the second weight: piecewise linear on S meshes of K nodes."""

    l: Array  # (S, K)
    density: Array  # (S, K), integrates to 1
    below: Array  # (S, K), probability below a node

    def quantile(self, p: Array) -> Array:
        """Return (S, Q) log-odds below which lies the probability p (S, Q)."""
        return np.stack([np.interp(q, f, l) for q, f, l in zip(p, self.below, self.l, strict=True)])

    def expectation(self, value: Array) -> Array:
        """Return (S, ...) mean of `value` (S, K, ...) at the nodes."""
        return np.einsum("sk,sk...->s...", _weights(self.l) * self.density, value)


def two_components(f: Array, alpha: Array, nodes: int) -> MeshDensity:
    """Posterior for two components.

    Parameters
    ----------
    f : (S, 2, m)
    alpha : (2,)
        Dirichlet concentrations.
    nodes : int
        Of the mesh: percentiles err by less than 10/nodes^2.
    """
    # closer around 0: a narrow peak of the likelihood is found in wide tails of the prior
    low, high = np.arcsinh(_ends(alpha, f.shape[-1]))
    start = np.sinh(np.linspace(low, high, 2 * _SEARCH - 1))
    l = np.broadcast_to(start, (len(f), len(start)))
    for _ in range(8):
        l = _mesh(l, _log_density(l, f, alpha), _SEARCH, 0.5)
    l = _mesh(l, _log_density(l, f, alpha), nodes, 0.0)
    return _normalised(l, _log_density(l, f, alpha))


def _ends(alpha: Array, m: int) -> Array:
    """Return (2,) log-odds between which the second weight has its mass given m rows.

    The density only falls beyond the modes of the posteriors in which all rows are of one class.
    """
    mode = np.log((alpha[::-1] + m) / alpha)
    high, low = np.maximum(_TAIL / alpha, np.maximum(mode, 0) + 1 + 2 / 3 * _TAIL / alpha)
    return np.array([-low, high])


def _log_density(l: Array, f: Array, alpha: Array) -> Array:
    """Return (S, K) log density of the log-odds, up to a constant."""
    log_p = alpha[0] * log_expit(-l) + alpha[1] * log_expit(l)
    return log_p + _log_likelihood(f, np.stack([expit(-l), expit(l)], axis=1))


def _normalised(l: Array, log_p: Array) -> MeshDensity:
    density = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    cells = (density[:, 1:] + density[:, :-1]) / 2 * np.diff(l)
    below = np.pad(np.cumsum(cells, axis=1), ((0, 0), (1, 0)))
    total = below[:, -1:]
    return MeshDensity(l, density / total, below / total)


def _mesh(l: Array, log_p: Array, nodes: int, kept: float) -> Array:
    """Nodes that share the integral of the density's cube root, where trapezoids err evenly.

    `kept` is the part of them that follows the old mesh.
    """
    share = (1 - kept) * _normalised(l, log_p / 3).below + kept * np.linspace(0, 1, l.shape[1])
    wanted = np.linspace(0, 1, nodes)
    return np.stack([np.interp(wanted, f, x) for f, x in zip(share, l, strict=True)])


def _weights(l: Array) -> Array:
    """Return the weights of the trapezoidal rule."""
    step = np.diff(l)
    return (np.pad(step, ((0, 0), (1, 0))) + np.pad(step, ((0, 0), (0, 1)))) / 2


def _log_likelihood(f: Array, rho: Array) -> Array:
    """Return (S, K) log prod_i sum_c rho_c f_ci of weights (S, C, K)."""
    log_p = np.zeros((len(rho), rho.shape[2]))
    step = max(_FACTORS, _CELLS // log_p.size // _FACTORS * _FACTORS)
    for start in range(0, f.shape[-1], step):
        block = f[..., start : start + step]
        mixed = np.einsum("scm,sck->smk", block, rho)
        padding = -mixed.shape[1] % _FACTORS
        mixed = np.pad(mixed, ((0, 0), (0, padding), (0, 0)), constant_values=1.0)
        product = mixed.reshape(len(mixed), -1, _FACTORS, mixed.shape[2]).prod(axis=2)
        with np.errstate(divide="ignore"):
            log_p += np.log(product).sum(axis=1)
    return log_p


# ------------------------------------------------------------------------ more: Gibbs sampling


def sweep(rng: np.random.Generator, f: Array, alpha: Array, rho: Array) -> Array:
    """Draw (S, C) weights: one step of S Gibbs samplers from (S, C) `rho`, each with f (C, m).

    How two weights share their sum is drawn given the others, for a chain of pairs through all
    components in random order. The components of the rows are summed out: drawing them as well
    would bind each step to the last the closer, the less the rows tell.
    """
    rho = rho.copy()
    order = rng.permutation(len(alpha))
    for a, b in pairwise([*order, order[0]] if len(order) > 2 else order):
        both = rho[:, a] + rho[:, b]
        others = rho.copy()
        others[:, [a, b]] = 0
        others_mix = np.matmul(others[:, None], f)[:, 0]
        parts = np.stack([others_mix, both[:, None] * f[:, b], both[:, None] * f[:, a]], axis=1)
        with np.errstate(divide="ignore"):
            start = np.log(rho[:, a]) - np.log(rho[:, b])
        l = _slice(rng, parts, alpha[[b, a]], start)
        rho[:, a], rho[:, b] = both * expit(l), both * expit(-l)
    return rho


def _slice(rng: np.random.Generator, parts: Array, alpha: Array, start: Array) -> Array:
    """Draw (S,) log-odds l by a slice-sampling step; densities 1, 1 - rho, rho times `parts`.

    Source: Neal (2003), Slice sampling, section 4: the whole range first, then shrunk.
    """

    def log_density(l: Array, of: Array) -> Array:
        weights = np.stack([np.ones_like(l), expit(-l), expit(l)], axis=1)[..., None]
        prior = alpha[0] * log_expit(-l) + alpha[1] * log_expit(l)
        return prior + _log_likelihood(of, weights)[:, 0]

    low, high = (np.full_like(start, end) for end in _ends(alpha, parts.shape[-1]))
    l = np.clip(start, low, high)
    level = log_density(l, parts) - rng.standard_exponential(len(l))
    drawn, left = l.copy(), np.arange(len(l))
    while left.size:
        new = rng.uniform(low[left], high[left])
        inside = log_density(new, parts[left]) >= level[left]
        inside |= high[left] - low[left] < 1e-12  # nothing but the start itself, to rounding
        drawn[left[inside]] = new[inside]
        left, new = left[~inside], new[~inside]
        below = new < l[left]
        low[left] = np.where(below, new, low[left])
        high[left] = np.where(below, high[left], new)
    return drawn


def far_apart(chains: int, n_classes: int) -> Array:
    """Return (chains, C) starts in different corners: chains agree only once they forget."""
    rho = np.full((chains, n_classes), 0.1 / n_classes)
    rho[np.arange(chains), np.arange(chains) % n_classes] += 0.9
    return rho


def responsibilities(f: Array, rho: Array) -> Array:
    """Return (S, C, m) probability of each component for each row, given weights (S, C)."""
    p = f * rho[:, :, None]
    return p / p.sum(axis=1, keepdims=True)


# --------------------------------------------------------------------------------------- mode


def mode(f: Array, alpha: Array) -> Array:
    """Find the (C,) mode of the weights' posterior; NaN where a concentration is below 1.

    Expectation maximisation for f (C, m), extrapolated from every two steps (Varadhan and Roland,
    2008), which changes the speed alone.
    """
    prior = alpha - 1
    if (prior < 0).any() or f.shape[1] + prior.sum() == 0:
        return np.full(len(alpha), np.nan)

    def step(rho: Array) -> Array:
        p = f * rho[:, None]
        counts = (p / p.sum(axis=0)).sum(axis=1) + prior
        return counts / counts.sum()

    def height(rho: Array) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(rho @ f).sum() + xlogy(prior, rho).sum())

    rho = np.full(len(alpha), 1 / len(alpha))
    for _ in range(2000):
        one = step(rho)
        two = step(one)
        first, second = one - rho, two - 2 * one + rho
        if np.abs(first).max() < 1e-11:
            break
        size = np.linalg.norm(first) / max(np.linalg.norm(second), 1e-300)
        further = rho + 2 * size * first + size**2 * second
        further = np.maximum(further, 0) / np.maximum(further, 0).sum()
        inside = np.isfinite(further).all() and (further > 0)[two > 0].all()
        rho = further if size > 1 and inside and height(further) >= height(two) else two
    return rho


VARIABLE = "class_prior"  # as the argument of `predict_proba`
_WARM_UP = 25  # sweeps thrown away: each draws every weight anew
_APART = 0.05  # R-hat minus 1 from which on it is said that chains disagree
_BLOCK = 1 << 19  # densities held at a time: 4 MiB
_NODES, _FEW_NODES = 2049, 129  # of the mesh of one density, and of each of many


@tree.named_rows
@through_pipelines
def estimate_class_prior(
    clf: Any,
    X: Any,
    prior: Any = 1.0,
    theta: Literal["drawn", "updated", "integrated"] = "drawn",
    method: Literal["auto", "quadrature", "gibbs"] = "auto",
    draws: int = 250,
    chains: int = 4,
    prob: float | None = None,
    kind: KindName | None = None,
    random_state: Any = 0,
) -> "xr.DataTree":
    """Posterior of the class proportions of the population that unlabelled rows come from.

    Parameters
    ----------
    clf : fitted classifier
    X : (m, D)
        Unlabelled rows, at least one.
    prior : float, array (class,), {label: concentration} or pandas.Series by label, default 1.0
        Dirichlet concentrations of the new proportions, in rows. 1 is flat: the proportions of the
        training rows are not used.
    theta : {"drawn", "updated", "integrated"}
        What is done about theta, which training rows leave uncertain and all m rows share.
        ``"drawn"``: proportions given theta, averaged over p(theta | D). ``"updated"``: the
        posterior of the whole model, in which the new rows tell of theta too; narrower where D is
        small, and more sensitive to a wrong model. ``"integrated"``: as if the m rows were
        independent given the proportions; quick, and its intervals are too short unless D is far
        larger than m.
    method : {"auto", "quadrature", "gibbs"}
        Given theta, quadrature needs two classes, has no error to speak of and is taken there.
    draws, chains : int
        Of theta and of the proportions together; after a fit by NUTS, one for each of its draws.
    prob, kind : optional
        Of the interval; default ``az.rcParams["stats.ci_prob"]`` and ``["stats.ci_kind"]``.
    random_state : int or numpy.random.Generator

    Returns
    -------
    xarray.DataTree
        - ``posterior``: ``class_prior`` (chain, draw, class).
        - ``summary``: ``mean``, ``sd``, ``interval`` (class, bound); ``map``, the mode with theta
          integrated, which for a flat prior is the EM estimate of Saerens et al. (2002), NaN where
          there is none; ``ess``, ``r_hat``. With ``theta="integrated"`` and two classes these are
          integrals, else averages of the draws.
        - ``predictions``: ``class_probability`` (obs_id, class) of the rows X themselves,
          p(y_i | D, x_1..m): they are among what the proportions were learnt from. ``obs_id`` is
          the index of a frame.

    Raises
    ------
    ValueError
        If an argument or a row is not as above.
    NoClosedFormError
        If ``theta="updated"`` and the posterior has no closed form.

    Warns
    -----
    MonteCarloWarning
        If the chains disagree on the proportions.

    Notes
    -----
    The classes must look as they did in training, p(x | y) unchanged: that is assumed, not tested.
    Proportions rest on the densities p(x | y) alone, and intervals do not tell of wrong ones: where
    columns depend on each other more than the model has it, they can miss by far. Ask held-out
    rows of the training population first; a model whose interval misses their class frequencies
    is not to be asked of others.

    Intervals of .9, over data drawn from the prior (5 bits, 5 training rows per class, m = 50; 150
    replicates), covered .92 (``"drawn"``), .92 (``"updated"``) and .69 (``"integrated"``; .34 with
    m = 500).

    For a row that is not in X, ``clf.predict_proba(x, class_prior=summary["mean"])`` is p(y | x, D,
    x_1..m) exactly where theta is integrated row by row: joint densities are linear in the
    proportions. Otherwise it leaves out that proportions and theta were learnt together.

    Examples
    --------
    Half of the training rows are ill, few of the new ones.

    >>> import bayesgen as bg
    >>> X, y = [[1.0], [1.4], [1.1], [4.0], [4.4], [4.1]], 3 * ["fine"] + 3 * ["ill"]
    >>> clf = bg.GaussianNB().fit(X, y)
    >>> shift = bg.estimate_class_prior(clf, [[0.9 + 0.02 * i] for i in range(30)], prob=0.9)
    >>> shift["summary"]["interval"].sel({"class": "ill"}).values.round(2)
    array([0.  , 0.09])
    """
    import xarray as xr

    fitted = fitted_of(clf, "estimate_class_prior")
    if not _num_samples(X):
        raise ValueError("X holds no rows, of which the class proportions are to be learned")
    n_classes = len(clf.classes_)
    _check(theta, method, n_classes, draws, chains)
    request = IntervalRequest.of(prob, kind)
    alpha = _concentrations(prior, clf.classes_)
    quadrature = n_classes == 2 and method != "gibbs" and theta != "updated"
    rng = generator(random_state)

    # for theta integrated row by row, and for the mode of every route
    even = np.full(n_classes, 1 / n_classes)
    with warnings.catch_warnings():
        if theta != "integrated":  # only the mode rests on them
            warnings.simplefilter("ignore", MonteCarloWarning)
        joint = clf.predict_joint_log_proba(X, class_prior=even)
    f = relative(np.asarray(joint))
    encoded = fitted.read(X).encoded
    exact = None
    if theta == "integrated":
        exact = two_components(f[None], alpha, _NODES) if quadrature else None
        result = _integrated(rng, f, alpha, chains, draws, exact)
    elif theta == "updated":
        result = _updated(rng, fitted.closed_form.model.family, encoded, alpha, chains, draws)
    else:
        posterior = fitted.posterior
        drawn: Any = posterior.draw_features(rng, draws, chains)
        result = _drawn(rng, posterior.model.family, drawn, encoded, alpha, quadrature)

    coords = {CLASS: clf.classes_, BOUND: ["lower", "upper"]}
    group = tree.group({VARIABLE: ((CHAIN, DRAW, CLASS), result.rho)}, coords)
    summary = _summary(result.rho, request) if exact is None else _of_density(exact, request)
    diagnostics = _diagnostics(group)
    if exact is None:
        _warn_if_apart(diagnostics["r_hat"][1], result.rho.shape[1])
    summary |= {"map": ((CLASS,), mode(f, alpha)), **diagnostics}
    rows = tree.group({"class_probability": ((OBS, CLASS), result.responsibilities.T)}, coords)
    tree_of_results = xr.DataTree.from_dict(
        {
            f"/{POSTERIOR}": group,
            f"/{SUMMARY}": tree.group(summary, coords).assign_attrs(
                prob=request.prob, kind=request.kind
            ),
            f"/{PREDICTIONS}": rows,
        }
    )
    route = "quadrature" if quadrature else "gibbs"
    family = type(fitted.family).__name__
    tree_of_results.attrs |= tree.provenance(family, route, random_state)
    tree_of_results.attrs |= {"theta": theta, "method": route}
    tree_of_results.attrs |= {"prior": alpha.tolist(), "rows": f.shape[1]}
    return tree_of_results


# ------------------------------------------------------------------------------- the posteriors


class _Result(NamedTuple):
    rho: Array  # (chain, draw, C)
    responsibilities: Array  # (C, m), mean over draws of p(y_i | rho, theta, x_i)


def _integrated(
    rng: np.random.Generator, f: Array, alpha: Array, chains: int, draws: int, density
) -> _Result:
    if density is not None:
        rho = _on_simplex(density.quantile(rng.random((1, chains * draws)))[0])
        return _Result(rho.reshape(chains, draws, 2), _mean_responsibilities(f, rho))
    now, kept = far_apart(chains, len(alpha)), []
    each = np.broadcast_to(f, (chains, *f.shape))
    for step in range(_WARM_UP + draws):
        now = sweep(rng, each, alpha, now)
        if step >= _WARM_UP:
            kept.append(now)
    rho = np.stack(kept, axis=1)
    return _Result(rho, _mean_responsibilities(f, rho.reshape(-1, len(alpha))))


def _drawn(
    rng: np.random.Generator,
    family,
    theta: dict[str, Array],
    X: Matrix,
    alpha: Array,
    quadrature: bool,
) -> _Result:
    """One draw of the proportions for each draw of theta, each with a sampler of its own."""
    theta = {name: theta[name] for name in family.params}
    chains, draws = next(iter(theta.values())).shape[:2]
    n, n_classes = chains * draws, len(alpha)
    flat = {name: value.reshape(n, *value.shape[2:]) for name, value in theta.items()}
    start = np.repeat(far_apart(chains, n_classes), draws, axis=0)
    rho, total = np.empty((n, n_classes)), np.zeros((n_classes, X.shape[0]))
    step = max(1, _BLOCK // (n_classes * X.shape[0]))
    for first in range(0, n, step):
        some = slice(first, min(first + step, n))
        f = relative(family.log_likelihood(X, {k: v[some] for k, v in flat.items()}))
        if quadrature:
            mixture = two_components(f, alpha, _FEW_NODES)
            now = _on_simplex(mixture.quantile(rng.random((len(f), 1)))[:, 0])
        else:
            now = start[some]
            for _ in range(_WARM_UP):
                now = sweep(rng, f, alpha, now)
        rho[some] = now
        total += responsibilities(f, now).sum(axis=0)
    return _Result(rho.reshape(chains, draws, n_classes), total / n)


def _updated(
    rng: np.random.Generator, family, X: Matrix, alpha: Array, chains: int, draws: int
) -> _Result:
    """Gibbs: proportions given theta, labels given both, theta given rows and labels."""
    n_classes = len(alpha)
    theta, now, kept = family.draw(rng, chains), far_apart(chains, n_classes), []
    total = np.zeros((n_classes, X.shape[0]))
    for step in range(4 * _WARM_UP + draws):
        f = relative(family.log_likelihood(X, theta))
        now = sweep(rng, f, alpha, now)
        probability = responsibilities(f, now)
        u = rng.random((chains, 1, X.shape[0]))
        codes = (u >= np.cumsum(probability, axis=1)[:, :-1]).sum(axis=1)
        each = [family.update(family.stats(X, y, n_classes)).draw(rng, 1) for y in codes]
        theta = {name: np.concatenate([t[name] for t in each]) for name in each[0]}
        if step >= 4 * _WARM_UP:
            kept.append(now)
            total += probability.mean(axis=0)
    return _Result(np.stack(kept, axis=1), total / draws)


def _on_simplex(l: Array) -> Array:
    """Return (S, 2) weights from log-odds of the second."""
    return np.stack([expit(-l), expit(l)], axis=-1)


def _mean_responsibilities(f: Array, rho: Array) -> Array:
    """Return (C, m) from f (C, m) and weights (S, C)."""
    total = np.zeros(f.shape)
    step = max(1, _BLOCK // max(1, f.size))
    for first in range(0, len(rho), step):
        total += responsibilities(f[None], rho[first : first + step]).sum(axis=0)
    return total / len(rho)


# -------------------------------------------------------------------------------- what is said

Variables = dict[str, tuple[tuple[str, ...], Array]]


def _summary(rho: Array, request: IntervalRequest) -> Variables:
    with np.errstate(divide="ignore"):
        ends = intervals_of_joint(np.log(rho)[:, :, None], request)
    return {
        "mean": ((CLASS,), rho.mean(axis=(0, 1))),
        "sd": ((CLASS,), rho.std(axis=(0, 1))),
        "interval": ((CLASS, BOUND), expit(np.stack([ends.lower[0], ends.upper[0]], axis=-1))),
    }


def _of_density(density: MeshDensity, request: IntervalRequest) -> Variables:
    low, high = _interval_ends(density.quantile, request)
    back = -high, -low
    mean = density.expectation(_on_simplex(density.l))[0]
    sd = np.sqrt(density.expectation(np.square(expit(density.l) - mean[1]))[0])
    return {
        "mean": ((CLASS,), mean),
        "sd": ((CLASS,), np.array([sd, sd])),
        "interval": ((CLASS, BOUND), expit([[*back[0], *back[1]], [*low, *high]])),
    }


def _interval_ends(
    quantile: Callable[[Array], Array], request: IntervalRequest
) -> tuple[Array, Array]:
    """Return the ends (1,), as log odds, of an interval of a probability by quantiles.

    The shortest interval begins at the probability below it, u, that minimises its length: 1 - prob
    and 0 are allowed, and finer meshes follow.
    """
    prob, left = request.prob, 1 - request.prob
    if request.kind == "eti":
        low, high = quantile(np.array([[left / 2, left / 2 + prob]])).T
        return low, high
    u = left * np.sin(np.linspace(0, np.pi / 2, _FIRST_MESH + 1)) ** 2  # denser at both ends
    for _ in range(3):
        low, high = _beyond(quantile, u, prob, left)
        with np.errstate(invalid="ignore"):
            length = expit(high) * expit(-low) * -np.expm1(np.minimum(low - high, 0.0))
        best = int(np.argmin(length))
        ends = low[best : best + 1], high[best : best + 1]
        u = np.linspace(u[max(best - 1, 0)], u[min(best + 1, len(u) - 1)], _NEXT_MESH + 1)
    return ends


def _beyond(
    quantile: Callable[[Array], Array], u: Array, prob: float, left: float
) -> tuple[Array, Array]:
    """Quantiles at u and u + prob, infinite where nothing is beyond them."""
    inner = np.clip(u, 1e-12, left * (1 - 1e-12))
    low, high = quantile(inner[None])[0], quantile(inner[None] + prob)[0]
    return np.where(u <= 0, -np.inf, low), np.where(u >= left * (1 - 1e-12), np.inf, high)


def _diagnostics(group: "xr.Dataset") -> Variables:
    from arviz_stats import ess, rhat

    with np.errstate(invalid="ignore", divide="ignore"):  # of a constant, as with one class
        return {
            "ess": ((CLASS,), ess(group)[VARIABLE].values),
            "r_hat": ((CLASS,), rhat(group)[VARIABLE].values),
        }


def _warn_if_apart(r_hat: Array, draws: int) -> None:
    worst = np.nanmax(r_hat, initial=1.0)
    most = 1 + max(_APART, 12 / draws)  # few draws differ by chance
    if worst > most:
        warn(
            f"the chains disagree on the class proportions (R-hat {worst:.3f}, where "
            f"{most:.3f} is the most that can be trusted): give more `draws`",
            MonteCarloWarning,
        )


# ------------------------------------------------------------------------------------- checks


def _check(theta: str, method: str, n_classes: int, draws: int, chains: int) -> None:
    refuse_unknown("theta", theta, ("drawn", "updated", "integrated"))
    refuse_unknown("method", method, ("auto", "quadrature", "gibbs"))
    if method == "quadrature" and (n_classes != 2 or theta == "updated"):
        raise ValueError(
            f"method='quadrature' is for two classes at known theta, not for {n_classes} classes "
            f"with theta={theta!r}: use method='gibbs'"
        )
    refuse_below(4, draws=draws)
    refuse_below(1, chains=chains)


def _concentrations(prior, classes: Array) -> Array:
    """Return (C,) from a number, an array, or by label."""
    if (named := by_label(prior)) is not None:
        codes = codes_of(list(named), classes)
        missing = np.setdiff1d(np.arange(len(classes)), codes)
        if missing.size:
            raise ValueError(f"prior has no concentration for {classes[missing].tolist()}")
        prior = np.asarray(list(named.values()))[np.argsort(codes)]
    return broadcast_prior("prior", prior, classes.shape)
