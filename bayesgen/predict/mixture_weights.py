r"""The weights of a mixture whose components are known: their posterior from unlabelled rows.

.. math:: \rho \sim \text{Dirichlet}(\alpha), \qquad x_i \sim \sum_c \rho_c f_c(x_i)

Two components: :math:`p(\rho \mid x)` is a density of one variable, integrated on a mesh. More:
Gibbs sampling of two weights at a time, in the same variable. The mode is that of expectation
maximisation: Saerens, Latinne and Decaestecker (2002), Adjusting the outputs of a classifier to new
a priori probabilities.

Shapes: f is (..., C, m), densities at m rows in any unit of a row's own, the largest of each row
1; leading axes are mixtures of their own. Results lead with the same axes.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from bayesgen.numerics.special import Array

_CELLS = 1 << 21  # numbers of one temporary: 16 MiB
_FACTORS = 8  # densities multiplied before a logarithm is taken; none is below 1e-38 in effect
_TAIL = 45.0  # natural logarithms of a density that are followed to either side
_SEARCH = 33  # nodes while the mass is sought


def relative(log_f: Array) -> Array:
    """(..., C, m) f from log densities (..., m, C), each row in the unit of its largest."""
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
        """(S, Q) log-odds below which lies the probability p (S, Q)."""
        return np.stack([np.interp(q, f, l) for q, f, l in zip(p, self.below, self.l, strict=True)])

    def expectation(self, value: Array) -> Array:
        """(S, ...) mean of `value` (S, K, ...) at the nodes."""
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
    """(2,) log-odds of the second weight between which its posterior given m rows has its mass.

    The density only falls beyond the modes of the posteriors in which all rows are of one class.
    """
    mode = np.log((alpha[::-1] + m) / alpha)
    high, low = np.maximum(_TAIL / alpha, np.maximum(mode, 0) + 1 + 2 / 3 * _TAIL / alpha)
    return np.array([-low, high])


def _log_density(l: Array, f: Array, alpha: Array) -> Array:
    """(S, K) log density of the log-odds, up to a constant."""
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
    """Of the trapezoidal rule."""
    step = np.diff(l)
    return (np.pad(step, ((0, 0), (1, 0))) + np.pad(step, ((0, 0), (0, 1)))) / 2


def _log_likelihood(f: Array, rho: Array) -> Array:
    """(S, K) log prod_i sum_c rho_c f_ci of weights (S, C, K)."""
    out = np.zeros((len(rho), rho.shape[2]))
    step = max(_FACTORS, _CELLS // out.size // _FACTORS * _FACTORS)
    for start in range(0, f.shape[-1], step):
        part = f[..., start : start + step]
        mixed = np.einsum("scm,sck->smk", part, rho)
        rest = -mixed.shape[1] % _FACTORS
        mixed = np.pad(mixed, ((0, 0), (0, rest), (0, 0)), constant_values=1.0)
        product = mixed.reshape(len(mixed), -1, _FACTORS, mixed.shape[2]).prod(axis=2)
        with np.errstate(divide="ignore"):
            out += np.log(product).sum(axis=1)
    return out


# ------------------------------------------------------------------------ more: Gibbs sampling


def sweep(rng: np.random.Generator, f: Array, alpha: Array, rho: Array) -> Array:
    """(S, C) weights after one step of S Gibbs samplers from (S, C) `rho`, each with f (C, m).

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
        rest = np.matmul(others[:, None], f)[:, 0]
        parts = np.stack([rest, both[:, None] * f[:, b], both[:, None] * f[:, a]], axis=1)
        with np.errstate(divide="ignore"):
            start = np.log(rho[:, a]) - np.log(rho[:, b])
        l = _slice(rng, parts, alpha[[b, a]], start)
        rho[:, a], rho[:, b] = both * expit(l), both * expit(-l)
    return rho


def _slice(rng: np.random.Generator, parts: Array, alpha: Array, start: Array) -> Array:
    """(S,) log-odds l after a step of slice sampling; densities 1, 1 - rho, rho times `parts`.

    Source: Neal (2003), Slice sampling, section 4: the whole range first, then shrunk.
    """

    def log_density(l: Array, of: Array) -> Array:
        weights = np.stack([np.ones_like(l), expit(-l), expit(l)], axis=1)[..., None]
        prior = alpha[0] * log_expit(-l) + alpha[1] * log_expit(l)
        return prior + _log_likelihood(of, weights)[:, 0]

    low, high = (np.full_like(start, end) for end in _ends(alpha, parts.shape[-1]))
    l = np.clip(start, low, high)
    level = log_density(l, parts) - rng.standard_exponential(len(l))
    out, left = l.copy(), np.arange(len(l))
    while left.size:
        new = rng.uniform(low[left], high[left])
        inside = log_density(new, parts[left]) >= level[left]
        inside |= high[left] - low[left] < 1e-12  # nothing but the start itself, to rounding
        out[left[inside]] = new[inside]
        left, new = left[~inside], new[~inside]
        below = new < l[left]
        low[left] = np.where(below, new, low[left])
        high[left] = np.where(below, high[left], new)
    return out


def far_apart(chains: int, n_classes: int) -> Array:
    """(chains, C) starting points in different corners: chains agree only once they forget."""
    rho = np.full((chains, n_classes), 0.1 / n_classes)
    rho[np.arange(chains), np.arange(chains) % n_classes] += 0.9
    return rho


def responsibilities(f: Array, rho: Array) -> Array:
    """(S, C, m) probability of each component for each row, given weights (S, C)."""
    p = f * rho[:, :, None]
    return p / p.sum(axis=1, keepdims=True)


# --------------------------------------------------------------------------------------- mode


def mode(f: Array, alpha: Array) -> Array:
    """(C,) mode of the posterior density of the weights; NaN where a concentration is below 1.

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
            chosen = np.log(rho @ f).sum() + np.sum(prior * np.log(rho), where=prior > 0)
        return float(chosen)

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
