r"""Positive and spiked columns: a Normal of the logarithm, or of the cells that are off one value.

``LogNormal``: :math:`\log x_j \mid y=c \sim \text{Normal}(\mu_{cj}, \sigma^2)`. The density of x is
that of log x times the Jacobian 1/x, which the classes share: p(y | x) is that of the logarithms,
and the evidence compares with that of any other density of x.

``SpikedNormal``: x_j is the value s_j with probability p_cj, and Normal otherwise. Because a Normal
hits s_j with probability 0, a cell tells which of the two it is: p_cj is a bit with a Beta prior
that every known cell shows, the Normal is that of the cells off s_j. The density is with respect to
Lebesgue measure plus a point of mass 1 at s_j. A density with respect to Lebesgue measure alone is
of another kind, and their evidences do not compare.

Both are `NormalInverseGamma` of changed cells, in every formula.

Source: Aitchison (1955), On the distribution of a positive random variable having a discrete
probability mass at the origin; Gelman et al., Bayesian Data Analysis (3rd ed.), section 3.3.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.capabilities import DensityDraws, SharedVariances
from bayesgen.families.conjugate.beta_bernoulli import BernoulliStats, BetaBernoulli
from bayesgen.families.conjugate.normal_inverse_gamma import GaussianStats, NormalInverseGamma
from bayesgen.families.contract import Stats, Theta
from bayesgen.families.errors import NotLinearError
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import array
from bayesgen.families.shared.gaussian import gaussian_information
from bayesgen.families.shared.pymc_parts import container, observe_cells, prefixed
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

_LARGEST = 340.0  # of the logarithm of a cell that is drawn: x stays within `Stats.largest_cell`


@dataclass(frozen=True, eq=False)
class LogNormal(NormalInverseGamma):
    """Independent positive features whose logarithms are Normal, with conjugate priors.

    Hyper-parameters are those of `NormalInverseGamma`, of log x: `mu` and `sigma2` do not depend on
    the unit of x but by a shift. A cell that is not positive has the density 0.

    Examples
    --------
    >>> family = LogNormal(mu=0.0, kappa=1.0, nu=1.0, sigma2=1.0)
    >>> stats = family.stats(np.array([[1.0], [100.0]]), np.array([0, 1]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> posterior.log_predictive(np.array([[1.0], [50.0]])).round(2)
    array([[-0.9 , -2.52],
           [-8.43, -6.24]])
    """

    kind: ClassVar[str] = "lognormal"

    def cells(self, X: Matrix) -> Array:
        """(N, D) logarithms, of which the density is Normal; 0 for cells that are not positive."""
        return np.log(np.where(X <= 0, 1.0, np.asarray(X, dtype=np.float64)))

    def _log_slope(self, X: Matrix) -> Array:
        """(N,) log Jacobian of `cells`, over the observed live cells."""
        own = np.where(np.isnan(X) | ~self.live, 0.0, np.where(X <= 0, -np.inf, -self.cells(X)))
        return np.asarray(own.sum(axis=1))

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> GaussianStats:
        """Counts, means and scatters of the logarithms; ValueError for a cell <= 0."""
        if np.any(X <= 0):
            raise ValueError("a lognormal column must be positive")
        return super().stats(self.cells(X), y, n_classes, weight)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) Normal log densities of the logarithms, with the Jacobian."""
        return super().log_likelihood(self.cells(X), theta) + self._log_slope(X)[:, None]

    def log_predictive(self, X: Matrix) -> Array:
        """(N, C), with the Jacobian."""
        return super().log_predictive(self.cells(X)) + self._log_slope(X)[:, None]

    def _log_evidence_terms(self, stats: GaussianStats) -> tuple[Array, Array]:
        """With the Jacobian: minus the sum of the logarithms."""
        groups, means = super()._log_evidence_terms(stats)
        return groups, means - stats.n * (stats.mean + stats.shift) * self.live

    def cgf(self, X: Matrix, t: Array) -> Array:
        """(..., N), as in `ConjugateFamily.cgf`."""
        total = np.atleast_2d(t).sum(axis=-1)
        return super().cgf(self.cells(X), t) + total * self._log_slope(X)

    def cell_cgf(self, x: Array, column: Array, classes: Array, t: Array) -> Array:
        """(K, n), as in `SeparateColumns`."""
        slope = np.where(self.live[column], np.where(x <= 0, -np.inf, -self.cells(x)), 0.0)
        return super().cell_cgf(self.cells(x), column, classes, t) + t.sum(axis=-1) * slope

    def density_cumulants(self, X: Matrix, seen: int) -> Array:
        """(5, N, C), as in `DensityCumulants`: the Jacobian moves the mean alone."""
        out = super().density_cumulants(self.cells(X), seen)
        out[0] += self._log_slope(X)[:, None]
        return out

    def draw_log_density(self, rng: np.random.Generator, X: Matrix, n: int) -> Array:
        """(n, N, C), up to the Jacobian, which the classes share."""
        return super().draw_log_density(rng, self.cells(X), n)

    def distance_draws(
        self, rng: np.random.Generator, X: Matrix, n: int, label: int | None = None
    ) -> tuple[Array, Array, Array]:
        """As in `SharedVariances`."""
        return super().distance_draws(rng, self.cells(X), n, label)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Refused: the rule is linear in log x at best."""
        raise NotLinearError("the log-odds of lognormal columns are a function of log x, not of x")

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) positive rows."""
        return np.exp(np.clip(super().simulate(rng, theta, y), -_LARGEST, _LARGEST))

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """As in `NormalInverseGamma`; rows are log-Normal, statistics those of the logarithms."""
        import pymc as pm
        import pytensor.tensor as pt

        theta = super().to_pymc(prefix=prefix, stats=stats if X is None else None)
        if X is not None:

            def log_p(x: Any, mu: Any, sd: Any) -> Any:
                log_x = pt.log(pt.switch(x > 0, x, 1.0))  # a gradient at missing cells, too
                return pt.switch(x > 0, pm.logp(pm.Normal.dist(mu, sd), log_x) - log_x, -np.inf)

            def draw(mu: Any, sd: Any, size: Any = None) -> Any:
                return pt.exp(pm.Normal.dist(mu, sd, size=size))

            cells = theta["mu"][y], self._sd(theta)[y]
            observe_cells(prefix, X, draw, *cells, counted=self.live, log_density=log_p)
        return theta

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """(N, C) tensor, over the observed cells of the live columns."""
        normal = super().pymc_log_likelihood(self.cells(X), theta, prefix=prefix)
        return normal + self._log_slope(X)[:, None]


@dataclass(frozen=True, eq=False)
class SpikedStats(GaussianStats):
    """Count, mean and scatter of the cells off the spike, and how many are on it."""

    on: Array = array(CLASS, FEATURE)

    def merge(self, other: Self) -> Self:
        """Of the rows of both."""
        return replace(super().merge(other), on=self.on + other.on)

    def remove(self, other: Self) -> Self:
        """Without the rows of `other`."""
        return replace(super().remove(other), on=self.bits.remove(other.bits).ones)

    @property
    def bits(self) -> BernoulliStats:
        """Whether a known cell is on the spike."""
        return BernoulliStats(self.on, self.n)


@dataclass(frozen=True, eq=False)
class SpikedNormal(NormalInverseGamma):
    """Independent real features with many cells at one value, each Normal elsewhere.

    Parameters
    ----------
    mu, kappa, nu, sigma2, shift, ignored, variance
        As in `NormalInverseGamma`, of the cells off the spike. A column that is constant there is
        its bit alone.
    spike : float or array (feature,)
        The value with a probability of its own.
    alpha, beta : float or array broadcasting to (class, feature), > 0
        Pseudo-counts of cells on the spike and off it, in rows.

    Examples
    --------
    >>> family = SpikedNormal(mu=0.0, kappa=1.0, nu=1.0, sigma2=1.0, spike=0.0)
    >>> X, y = np.array([[0.0], [0.0], [3.0], [5.0], [0.0]]), np.array([0, 0, 0, 1, 1])
    >>> stats = family.stats(X, y, n_classes=2)
    >>> np.exp(family.resolve(stats).update(stats).log_predictive(np.array([[0.0]])))
    array([[0.6, 0.5]])
    """

    kind: ClassVar[str] = "spiked"
    statistics: ClassVar[type[Stats]] = SpikedStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "sigma2", "alpha", "beta")

    spike: Any = array(FEATURE, default=0.0)
    alpha: Any = array(CLASS, FEATURE, default=1.0)
    beta: Any = array(CLASS, FEATURE, default=1.0)

    @cached_property
    def bits(self) -> BetaBernoulli:
        """The prior, or posterior, of whether a cell is on the spike."""
        return BetaBernoulli(self.alpha, self.beta)

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Those of the Normal, with spikes that differ by column."""
        bits = BetaBernoulli.examples(n_classes, n_features)[1]
        spikes = {"spike": np.arange(n_features) - 1.0, "alpha": bits.alpha, "beta": bits.beta}
        return [replace(example, **spikes) for example in super().examples(n_classes, n_features)]

    def cells(self, X: Matrix) -> Array:
        """(N, D) cells off the spike, of which the density is Normal; NaN for the others."""
        return np.where(self.spike == X, np.nan, X)

    def _on(self, X: Matrix) -> Array:
        """(N, D) 1 on the spike, 0 off it, NaN where missing."""
        return np.where(np.isnan(X), np.nan, self.spike == X)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``p``: probability of the spike; ``mu`` and ``sigma2`` of the cells off it."""
        return {"p": (CLASS, FEATURE), **super().params}

    def _with_p(self, theta: dict[str, Array], normal: dict[str, Array]) -> dict[str, Array]:
        return {"p": theta["theta"], **normal}

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> SpikedStats:
        """Counts on the spike; counts, means and scatters off it."""
        normal = super().stats(self.cells(X), y, n_classes, weight)
        on = self.bits.stats(self._on(X), y, n_classes, weight).ones
        return SpikedStats(normal.n, normal.mean, normal.scatter, normal.shift, on)

    def observed_cells(self, stats: Any) -> Array:
        """(C, D) rows of each class in which the column was not missing."""
        return self.bits.observed_cells(stats.bits)

    def resolve(self, stats: Any) -> Self:
        """The defaults of the Normal from the cells off the spike."""
        bits = self.bits.resolve(stats.bits)
        spike = np.broadcast_to(np.asarray(self.spike, float), stats.shift.shape)
        return replace(super().resolve(stats), spike=spike, alpha=bits.alpha, beta=bits.beta)

    def update(self, stats: Any) -> Self:
        """Each part by its own cells."""
        bits = self.bits.update(stats.bits)
        return replace(super().update(stats), alpha=bits.alpha, beta=bits.beta)

    def mle(self, stats: Any) -> dict[str, Array]:
        """Each part by its own cells."""
        return self._with_p(self.bits.mle(stats.bits), super().mle(stats))

    def map(self) -> dict[str, Array]:
        """Of both parts."""
        return self._with_p(self.bits.map(), super().map())

    def mean(self) -> dict[str, Array]:
        """Of both parts."""
        return self._with_p(self.bits.mean(), super().mean())

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Of both parts, which are independent."""
        return self._with_p(self.bits.draw(rng, n), super().draw(rng, n))

    def n_parameters(self) -> int:
        """Probabilities, means and variances."""
        return self.mu.size + super().n_parameters()

    def log_density(self, theta: Theta) -> Array:
        """(...) of both parts."""
        return super().log_density(theta) + self.bits.log_density({"theta": theta["p"]})

    def log_evidence(self, stats: Any) -> float:
        """Of both parts."""
        return super().log_evidence(stats) + self.bits.log_evidence(stats.bits)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) of both parts."""
        bits = self.bits.log_likelihood(self._on(X), {"theta": theta["p"]})
        return super().log_likelihood(self.cells(X), theta) + bits

    def log_predictive(self, X: Matrix) -> Array:
        """(N, C) of both parts."""
        return super().log_predictive(self.cells(X)) + self.bits.log_predictive(self._on(X))

    def cgf(self, X: Matrix, t: Array) -> Array:
        """(..., N) of both parts."""
        return super().cgf(self.cells(X), t) + self.bits.cgf(self._on(X), t)

    def cell_cgf(self, x: Array, column: Array, classes: Array, t: Array) -> Array:
        """(K, n), as in `SeparateColumns`."""
        on = x == self.spike[column]
        normal = super().cell_cgf(np.where(on, self.shift[column] + 1.0, x), column, classes, t)
        return np.where(on, 0.0, normal) + self.bits.cell_cgf(on.astype(float), column, classes, t)

    def density_cumulants(self, X: Matrix, seen: int) -> Array:
        """(5, N, C) of both parts."""
        bits = self.bits.density_cumulants(self._on(X), seen)
        return super().density_cumulants(self.cells(X), seen) + bits

    @cached_property
    def _without_formula(self) -> tuple[type, ...]:
        """The Normal part has draws of densities, both together have none."""
        return (*super()._without_formula, DensityDraws, SharedVariances)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Refused: the rule jumps at the spike."""
        raise NotLinearError("the log-odds of spiked columns jump at the spike: not linear in x")

    def draw_null(self, rng: np.random.Generator, stats: Any) -> SpikedStats:
        """Cells on the spike dealt to the classes; those off it as Normal rows."""
        bits, whole = self.bits.draw_null(rng, stats.bits), stats.pooled()
        share = bits.zeros / np.maximum(whole.n, np.finfo(float).tiny)
        mean = np.broadcast_to(whole.about(stats.shift), share.shape)
        null = replace(stats, n=bits.zeros, on=bits.ones, mean=mean, scatter=whole.scatter * share)
        drawn: Any = super().draw_null(rng, null)
        own: SpikedStats = drawn
        return own

    def information(self, theta: Theta, weights: Array) -> Array:
        """(D,) of the bit, and of the cell where it is off the spike; in nats."""
        p, mu = np.asarray(theta["p"]), np.asarray(theta["mu"])
        sigma2 = np.broadcast_to(self._variance_of(theta), mu.shape)
        off = weights[:, None] * (1 - p)
        share = off.sum(axis=0)
        each = off / np.where(share > 0, share, 1.0)
        cells = [
            gaussian_information(mu[:, [j]], sigma2[:, [j]], each[:, j])[0] if share[j] > 0 else 0.0
            for j in range(mu.shape[1])
        ]
        return self.bits.information({"theta": p}, weights) + share * cells * self.live

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) rows, on the spike and off it."""
        on = self.bits.simulate(rng, {"theta": theta["p"]}, y)
        return np.where(on, self.spike, super().simulate(rng, theta, y))

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """As in `NormalInverseGamma`, with a Beta prior for the spike; cells are of both parts."""
        import pymc as pm
        import pytensor.tensor as pt

        theta = super().to_pymc(prefix=prefix, stats=stats if X is None else None)
        alpha, beta, spike = (
            pm.modelcontext(None)[f"prior_{prefix}{name}"] for name in ("alpha", "beta", "spike")
        )
        p = pm.Beta(f"{prefix}p", alpha, beta, dims=prefixed(prefix, (CLASS, FEATURE)))
        if X is not None:

            def log_p(x: Any, p: Any, spike: Any, live: Any, mu: Any, sd: Any) -> Any:
                off = pt.log1p(-p) + live * pm.logp(pm.Normal.dist(mu, sd), x)
                return pt.switch(pt.eq(x, spike), pt.log(p), off)

            def draw(p: Any, spike: Any, live: Any, mu: Any, sd: Any, size: Any = None) -> Any:
                on = pm.Bernoulli.dist(p, size=size)
                return pt.switch(on, spike, pm.Normal.dist(mu, sd, size=size))

            cells = p[y], spike, self.live * 1.0, theta["mu"][y], self._sd(theta)[y]
            observe_cells(prefix, X, draw, *cells, log_density=log_p)
        elif stats is not None:
            on, off = (
                container(f"{prefix}stats_{name}", value, prefixed(prefix, (CLASS, FEATURE)))
                for name, value in (("on", stats.on), ("off", stats.n))
            )
            pm.Potential(f"{prefix}on_x", (on * pt.log(p) + off * pt.log1p(-p)).sum())
        return {"p": p, **theta}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """(N, C) tensor of both parts."""
        bits = self.bits.pymc_log_likelihood(self._on(X), {"theta": theta["p"]}, prefix=prefix)
        return super().pymc_log_likelihood(self.cells(X), theta, prefix=prefix) + bits
