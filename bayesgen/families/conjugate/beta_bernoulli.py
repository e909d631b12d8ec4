r"""Bits with a Beta prior: x_j | y=c ~ Bernoulli(theta_cj), theta_cj ~ Beta(alpha_cj, beta_cj).

Posterior: alpha + number of ones, beta + number of zeros. Predictive of a bit: the posterior mean,
so that for one row the plug-in of posterior means *is* the posterior predictive.

Source: Murphy, Machine Learning: a Probabilistic Perspective (2012), section 3.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import digamma, polygamma, xlogy

from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta
from bayesgen.families.errors import refuse_undefined
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared.codes import (
    checked_bits,
    count_all_codes,
    look_up,
    pymc_log_likelihood_of_bits,
)
from bayesgen.families.shared.densities import (
    beta_mode,
    density_by_draws,
    log_beta_density,
)
from bayesgen.families.shared.hyperparameters import broadcast_priors
from bayesgen.families.shared.pymc_parts import declare, observe_cells, prefixed
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, draw_log_gamma, log_gamma_difference

_DRAWN = 256  # columns of 0 that are drawn one by one


@dataclass(frozen=True, eq=False)
class BernoulliStats(Stats):
    """Weighted counts of ones and zeros; missing cells are in neither."""

    ones: Array = array(CLASS, FEATURE)
    zeros: Array = array(CLASS, FEATURE)


@dataclass(frozen=True, eq=False)
class BetaBernoulli(ConjugateFamily):
    """Independent bits with Beta priors.

    Parameters
    ----------
    alpha, beta : float or array broadcasting to (class, feature), > 0
        Pseudo-counts of 1 and of 0, in rows.

    Examples
    --------
    >>> import numpy as np
    >>> family = BetaBernoulli()
    >>> stats = family.stats(np.array([[1, 0], [1, 1]]), np.array([0, 0]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[1, 1]]))).round(3)
    array([[0.375, 0.25 ]])
    """

    holds: ClassVar[str] = "bit"
    kind: ClassVar[str] = "bernoulli"
    sparse: ClassVar[bool] = True
    statistics: ClassVar[type[Stats]] = BernoulliStats
    tunable: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    attributes: ClassVar[Mapping[str, str]] = {"feature_log_prob_": "theta"}
    separable: ClassVar[bool] = True

    alpha: Hyperparameter = array(CLASS, FEATURE, default=1.0)
    beta: Hyperparameter = array(CLASS, FEATURE, default=1.0)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = 1 | y = c)."""
        return {"theta": (CLASS, FEATURE)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) sum of log Bernoulli masses over the observed cells."""
        X = checked_bits(X)
        missing = passes.has_nan(X)

        def tables(p: Array):
            if missing or (p == 0).any() or (p == 1).any():
                return p, None
            off = np.log1p(-p)
            return passes.columns_of(np.log(p) - off), off.sum(axis=-1).ravel()

        def score(block: Matrix, rows: slice, tables, score_sum: Array) -> None:
            weights, no_ones = tables
            if no_ones is None:
                score_sum[:] = np.moveaxis(self._log_masses(block, weights), 0, 1).reshape(
                    score_sum.shape
                )
            else:
                passes.multiply(block, weights, score_sum)
                score_sum += no_ones

        return passes.over_draws(X, np.asarray(theta["theta"]), tables, score)

    def _log_masses(self, X: Matrix, p: Array) -> Array:
        """`log_likelihood` where cells are missing, or bits impossible."""
        # log p of the ones, and log (1 - p) of the zeros as (all - ones - missing) cells: the
        # complement of a sparse X is never made
        certain = p == 1
        log_zero = np.log1p(-np.where(certain, 0.0, p))
        ones, missing = passes.split_missing(X)
        log_mass = passes.dot_log(ones, p) + self._over_zeros(ones, missing, log_zero)
        if certain.any():
            impossible = self._over_zeros(ones, missing, certain.astype(np.float64)) > 0.5
            log_mass = np.where(impossible, -np.inf, log_mass)
        return log_mass

    @staticmethod
    def _over_zeros(ones: Matrix, missing: Matrix | None, table: Array) -> Array:
        """Return (..., N, C) sum of `table` (..., C, D) over the cells of each row that are 0."""
        if missing is not None:  # a row without observed cells is worth 0, not a rounding error
            return -passes.sum_except(ones + missing, passes.exact_parts(-table))
        return table.sum(axis=-1)[..., None, :] - passes.dot(ones, table)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) rows of 0 and 1, as uint8."""
        p = self.rows_of(theta, "theta", y)
        return (rng.random((len(y), p.shape[-1])) < p).astype(np.uint8)

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Beta priors; Bernoulli rows (the observed cells), or the counts of ones and zeros."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = declare(self, "prior", prefix)
        dims = prefixed(prefix, self.params["theta"])
        theta = pm.Beta(f"{prefix}theta", prior["alpha"], prior["beta"], dims=dims)
        if stats is not None and X is None:
            n = declare(stats, "stats", prefix)
            log_p = n["ones"] * pt.log(theta) + n["zeros"] * pt.log1p(-theta)
            pm.Potential(f"{prefix}x", log_p.sum())
        elif X is not None:
            observe_cells(prefix, X, pm.Bernoulli.dist, theta[y])
        return {"theta": theta}

    pymc_log_likelihood = pymc_log_likelihood_of_bits

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> BernoulliStats:
        """Counts of ones and zeros among the observed cells."""
        if X.dtype.kind == "f" and not issparse(X):  # with gaps: one pass counts them too
            counts = count_all_codes(X, y, n_classes, 2, weight)
            if counts[..., 2].any():
                checked_bits(X)
            return BernoulliStats(counts[..., 1].copy(), counts[..., 0].copy())
        ones, missing = passes.split_missing(checked_bits(X))
        n_ones = others = passes.class_sums(ones, y, n_classes, weight)
        if missing is not None:
            others = n_ones + passes.class_sums(missing, y, n_classes, weight)
        n_zeros = passes.remainder(passes.class_counts(y, n_classes, weight)[:, None], others)
        return BernoulliStats(n_ones, n_zeros)

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Uniform, and unequal by class and feature."""
        pattern = 0.5 + np.arange(n_classes * n_features).reshape(n_classes, n_features) % 5
        flat = np.ones((n_classes, n_features))
        return [cls(flat, flat), cls(pattern, pattern[::-1])]

    def beta_margins(self, stats: BernoulliStats) -> tuple[Array, Array, Array]:
        """Return the Beta parameters of ones, and how often each was 1."""
        return self.alpha, self.beta, stats.ones

    def observed_cells(self, stats: BernoulliStats) -> Array:
        """Return (C, D) rows of each class in which the column was not missing."""
        return np.asarray(stats.ones + stats.zeros)

    def resolve(self, stats: BernoulliStats) -> Self:
        """Broadcast the pseudo-counts to (class, feature)."""
        return broadcast_priors(self, stats.ones.shape, "alpha", "beta")

    def update(self, stats: BernoulliStats) -> Self:
        """alpha + ones, beta + zeros."""
        return replace(self, alpha=self.alpha + stats.ones, beta=self.beta + stats.zeros)

    def mle(self, stats: BernoulliStats) -> dict[str, Array]:
        """Relative frequency of ones."""
        n = stats.ones + stats.zeros
        refuse_undefined("mle", n <= 0, "it has no observed row (0/0)")
        return {"theta": stats.ones / n}

    def map(self) -> dict[str, Array]:
        """Return (alpha - 1)/(alpha + beta - 2), the mode on the probability scale."""
        return {"theta": beta_mode(self.alpha, self.beta)}

    def mean(self) -> dict[str, Array]:
        """alpha/(alpha + beta)."""
        return {"theta": self.alpha / (self.alpha + self.beta)}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent Beta draws."""
        return {"theta": rng.beta(self.alpha, self.beta, size=(n, *self.alpha.shape))}

    def log_density(self, theta: Theta) -> Array:
        """Return (...) sum of log Beta densities."""
        return density_by_draws(
            lambda t: log_beta_density(t["theta"], self.alpha, self.beta), theta, self.params
        )

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C); bits are independent given the class: the posterior mean is plugged in."""
        log_one, log_zero = self._log_mean()
        if X.dtype.kind == "f" and not issparse(X):
            none, gap = np.full(log_one.shape, np.nan), np.zeros(log_one.shape)
            log_p = look_up(X, np.stack([log_zero, log_one, none, gap], axis=-1))
            if np.isnan(log_p).any():
                checked_bits(X)
            return log_p
        ones, missing = passes.split_missing(checked_bits(X))
        if missing is None:
            return self._linear(ones, None, log_one, log_zero)
        return passes.dot(ones, log_one) + self._over_zeros(ones, missing, log_zero)

    def _log_mean(self) -> tuple[Array, Array]:
        """Logs of the mean probabilities of 1 and 0: 1 - mean has no digits left near 1."""
        return -np.log1p(self.beta / self.alpha), -np.log1p(self.alpha / self.beta)

    def log_evidence(self, stats: BernoulliStats) -> float:
        """Sum over cells of log B(posterior) - log B(prior): the probability of this sequence."""
        a, b = self.alpha, self.beta
        cells = log_gamma_difference(a, stats.ones) + log_gamma_difference(b, stats.zeros)
        cells = cells - log_gamma_difference(a + b, stats.ones + stats.zeros)
        return float(cells.sum())

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract the row from the pseudo-counts of its class."""
        log_x, left = self.log_predictive(X), np.ones(X.shape[0])
        X = checked_bits(X)
        for c, w, rows in passes.equal_weights(y, weight):
            a, b = self.alpha[c], self.beta[c]
            (one, one_is_lost), (zero, zero_is_lost) = (passes.without_weight(p, w) for p in (a, b))
            cells = passes.split_missing(X[rows])
            log_x[rows, c] = self._linear(
                *cells, -np.log1p(b / one)[None], -np.log1p(a / zero)[None]
            )[:, 0]
            lost = [each.astype(np.float64)[None] for each in (one_is_lost, zero_is_lost)]
            if any(each.any() for each in lost):
                left[rows[self._linear(*cells, *lost)[:, 0] > 0.5]] = 0.0
        return log_x, left

    @staticmethod
    def _linear(ones: Matrix, missing: Matrix | None, one: Array, zero: Array) -> Array:
        """Add up tables (..., C, D) over the ones and the zeros of each row: (..., N, C)."""
        total = passes.dot(ones, one - zero) + zero.sum(axis=-1)[..., None, :]
        return total if missing is None else total - passes.dot(missing, zero)

    def draw_log_density(self, seed: passes.Seed, X: Matrix, n: int) -> Array:
        """Draw log theta and log(1 - theta), as 1 - theta itself underflows near 1: (n, N, C).

        Of very many columns that are 0 most enter as one Normal variable with their mean and
        variance: each is small beside the sum, since those that vary most are drawn.
        """
        X, n_classes = checked_bits(X), len(self.alpha)
        total = self.alpha + self.beta
        mean = digamma(self.beta) - digamma(total)
        variance = polygamma(1, self.beta) - polygamma(1, total)

        def draw(rng: np.random.Generator, row: Matrix) -> Array:
            x = passes.dense_block(row, slice(None))[0]
            off = x == 0
            drawn = ~off & ~np.isnan(x)
            log_x = np.empty((n, 1, n_classes))
            for c, spread in enumerate(np.where(off, variance, -1.0)):
                many = np.argpartition(spread, -_DRAWN)[-_DRAWN:] if len(x) > _DRAWN else off
                apart = np.zeros(len(x), dtype=bool)
                apart[many] = True
                others = off & ~apart
                columns = np.flatnonzero(drawn | (apart & off))
                one, zero = (
                    draw_log_gamma(rng, p[c, columns], (n, len(columns)))
                    for p in (self.alpha, self.beta)
                )
                log_p = np.where(off[columns], zero, one) - np.logaddexp(one, zero)
                normal = rng.standard_normal(n) * np.sqrt(variance[c, others].sum())
                log_x[:, 0, c] = log_p.sum(axis=1) + mean[c, others].sum() + normal
            return log_x

        return passes.draws_of_each_row(draw, seed, X)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Log-odds weights of the bits; the posterior predictive is linear too."""
        if theta is None:
            on, off = self._log_mean()
        else:
            with np.errstate(divide="ignore"):
                on, off = np.log(theta["theta"]), np.log1p(-theta["theta"])
        return on - off, off.sum(axis=-1)

    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) sum over classes and values of pi p log(p / mean p), 0 log 0 = 0; in nats."""
        p, pi = theta["theta"], weights[:, None]
        mean = (pi * p).sum(axis=0)
        terms = xlogy(p, p) + xlogy(1 - p, 1 - p)
        return (pi * terms).sum(axis=0) - xlogy(mean, mean) - xlogy(1 - mean, 1 - mean)
