r"""Average of a log-linear pool and of its members alone, weighted by leave-one-out scores.

.. math:: p(y = c \mid x) = w_0\, p_{\text{pool}}(c \mid x) + \sum_m w_m\, p_m(c \mid x), \qquad
          p_m(c \mid x) \propto \exp(\eta_m J_{mc}(x) + b_{mc})

A pool of all members has many exponents for few rows, and members that are sure and wrong in the
same rows cost most; one member alone, calibrated, has one. Weights are those of pseudo Bayesian
model averaging with the Bayesian bootstrap,

.. math:: w_s = E\left[\frac{\pi_s \exp z_s}{\sum_t \pi_t \exp z_t}\right], \qquad
          z_s = \sum_i g_i \ell_{si}, \quad g / N \sim \text{Dirichlet}(1, ..., 1)

with l the log probability of the label of row i without that row; half of the prior weight is the
pool's. Bootstrapped sums are taken as Normal, with the mean and covariance that they have, so that
the order of rows is of no consequence. Source: Yao, Vehtari, Simpson and Gelman (2018), Using
stacking to average Bayesian predictive distributions.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bayesgen.inference import exponents as pooling
from bayesgen.inference.exponents import ExponentPrior, Exponents, pooled
from bayesgen.numerics.special import Array, log_softmax

POOL_WEIGHT = 0.5  # prior weight of the pool of all members; tests/benchmarks/pools.py
_ALONE_SHAPE = 4.0  # of the Gamma prior, mean 1, of a member's exponent alone
_POINTS = 1024
_JITTER = 1e-10  # of the trace: the covariance of scores that are nearly one has a Cholesky factor


class Average(NamedTuple):
    """The members alone, and weights: of the pool of all first, then of each alone."""

    alone: tuple[Exponents, ...]
    weights: Array  # (1 + M,)

    def draw(self, pool: Exponents, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """(n, M) exponents, 0 for members that have no part, and (n, C) intercepts."""
        eta, b = (np.array(drawn) for drawn in pool.draw(rng, n))
        component = rng.choice(len(self.weights), size=n, p=self.weights)
        for m, part in enumerate(self.alone):
            here = np.flatnonzero(component == m + 1)
            if len(here):
                eta[here] = 0.0
                own, b[here] = part.draw(rng, len(here))
                eta[here, m] = own[:, 0]
        return eta, b

    def log_pool(self, log_p: Array) -> Array:
        """(N, C) log of the pool's part of the average, from its log probabilities."""
        with np.errstate(divide="ignore"):
            out: Array = log_p + np.log(self.weights[0])
        return out

    def log_alone(self, m: int, scores: Array) -> Array:
        """(N, C) log of member m's part of the average, from its `comparable` scores."""
        part = self.alone[m]
        own = log_softmax(part.exponents[0] * scores + part.intercepts)
        with np.errstate(divide="ignore"):  # a weight may underflow
            out: Array = own + np.log(self.weights[m + 1])
        return out

    def terms(self, pool: Exponents, scores: Array, pairs: Array) -> tuple[Array, Array]:
        """Exponents (N, M) and intercepts (N,) whose sum is the log-odds of a pair of classes.

        The log of a ratio of sums a_s and b_s is the mean of log a_s / b_s with weights L(a_s, b_s)
        / L(a, b), L the logarithmic mean (a - b) / log(a / b): exactly, whatever the classes
        besides the pair. Source: Vartia (1976), Ideal log-change index numbers.
        """
        first, second = pairs.T
        rows = np.arange(len(pairs))
        log_pool = self.log_pool(pooled(scores, pool.exponents, pool.intercepts))
        parts = [log_pool, *(self.log_alone(m, own) for m, own in enumerate(scores))]
        log_a = np.stack([part[rows, first] for part in parts])
        log_b = np.stack([part[rows, second] for part in parts])
        whole = _log_mean(np.logaddexp.reduce(log_a, axis=0), np.logaddexp.reduce(log_b, axis=0))
        share = np.exp(_log_mean(log_a, log_b) - whole)
        eta = share[0][:, None] * pool.exponents
        b = share[0] * (pool.intercepts[first] - pool.intercepts[second])
        for m, part in enumerate(self.alone):
            eta[:, m] += share[m + 1] * part.exponents[0]
            b += share[m + 1] * (part.intercepts[first] - part.intercepts[second])
        return eta, b


def fit(
    pool: Exponents,
    scores: Array,
    codes: Array,
    weight: Array,
    prior: ExponentPrior,
) -> Average:
    """Each member's exponent and intercepts by itself, and the weights.

    Arguments as of `exponents.fit`, whose result `pool` is.
    """
    data = codes, weight
    own = ExponentPrior(_ALONE_SHAPE, 1.0, prior.intercept_scale)
    parts = tuple(pooling.fit(scores[[m]], *data, own) for m in range(len(scores)))
    log_p = _left_out(pool, parts, scores, *data, prior)
    label = log_p[:, np.arange(len(codes)), codes]
    return Average(parts, _weights(label, weight))


def fit_without_each_row(
    found: Average,
    pool: Exponents,
    scores: Array,
    codes: Array,
    weight: Array,
    prior: ExponentPrior,
) -> Array:
    """(N, C) log probabilities of each row by what the other rows lead to, weights included.

    As `exponents.fit_without_each_row`; weights lose the row's factor.
    """
    log_p = _left_out(pool, found.alone, scores, codes, weight, prior)
    own = log_p[:, np.arange(len(codes)), codes]
    with np.errstate(divide="ignore"):
        log_w = np.log(found.weights)[:, None] - weight * own
    log_w -= np.logaddexp.reduce(log_w, axis=0)
    out: Array = np.logaddexp.reduce(log_p + log_w[:, :, None], axis=0)
    return out


def _left_out(
    pool: Exponents,
    parts: tuple[Exponents, ...],
    scores: Array,
    codes: Array,
    weight: Array,
    prior: ExponentPrior,
) -> Array:
    """(1 + M, N, C) log probabilities of rows without themselves."""
    own = ExponentPrior(_ALONE_SHAPE, 1.0, prior.intercept_scale)
    data = codes, weight
    out = [pooling.fit_without_each_row(pool, scores, *data, prior)]
    for m, part in enumerate(parts):
        out.append(pooling.fit_without_each_row(part, scores[[m]], *data, own))
    return np.stack(out)


def _weights(label: Array, weight: Array) -> Array:
    """(S,) of the log probabilities (S, N) of the labels."""
    n_parts, total = len(label), weight.sum()
    sums = label @ weight
    centred = (label - (sums / total)[:, None]) * np.sqrt(weight)
    covariance = centred @ centred.T * (total / (total + 1))
    covariance += np.eye(n_parts) * max(_JITTER * np.trace(covariance), np.finfo(float).tiny)
    points = _standard_normal(n_parts) @ np.linalg.cholesky(covariance).T
    prior = np.full(n_parts, (1 - POOL_WEIGHT) / max(n_parts - 1, 1))
    prior[0] = POOL_WEIGHT
    z = points + sums + np.log(prior)
    return np.asarray(np.exp(log_softmax(z)).mean(axis=0))


def _log_mean(log_a: Array, log_b: Array) -> Array:
    """Log of the logarithmic mean of a and b."""
    with np.errstate(invalid="ignore"):  # both are 0, of a part whose weight has underflown
        gap = np.where(log_a == log_b, 0.0, np.abs(log_a - log_b))
    small = gap < 1e-8  # where the ratio is 1 - gap / 2
    ratio = np.where(small, 1 - gap / 2, -np.expm1(-gap) / np.where(small, 1.0, gap))
    return np.asarray(np.maximum(log_a, log_b) + np.log(ratio))


def _standard_normal(d: int) -> Array:
    """(n, d) quasi-random points of the standard Normal."""
    from scipy.stats import qmc

    u = qmc.Sobol(d, rng=np.random.default_rng(0)).random(_POINTS)
    return np.asarray(ndtri(np.clip(u, 1e-12, 1 - 1e-12)))
