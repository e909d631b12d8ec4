r"""Counts of failures with a Beta prior: x_j | y=c ~ Geometric(p_cj), p_cj ~ Beta(a_cj, b_cj).

:math:`p(x \mid p) = p\,(1 - p)^x` on x = 0, 1, 2, ...: how often something failed before it first
succeeded. Posterior: a + number of rows, b + sum of counts. The predictive is a beta-negative
binomial distribution,

.. math:: p(x \mid D) = \frac{B(a + 1,\; b + x)}{B(a, b)}

Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions (2005), chapter 5 and section
6.2.3.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import NotLinearError, refuse_undefined
from bayesgen.families.names import CLASS, FEATURE, PROBABILITY
from bayesgen.families.records import array
from bayesgen.families.shared import densities
from bayesgen.families.shared.hyperparameters import broadcast_priors
from bayesgen.families.shared.pymc_parts import declare, observe_cells, prefixed, refuse_fractional
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_gamma_difference


@dataclass(frozen=True, eq=False)
class GeometricStats(Stats):
    """Weighted numbers of observed cells, and sums of their counts."""

    rows: Array = array(CLASS, FEATURE)
    total: Array = array(CLASS, FEATURE)


@dataclass(frozen=True, eq=False)
class BetaGeometric(ConjugateFamily):
    """Independent geometric counts with Beta priors.

    Parameters
    ----------
    alpha, beta : float or array broadcasting to (class, feature), > 0
        Pseudo-counts of successes and of failures.

    Examples
    --------
    >>> import numpy as np
    >>> family = BetaGeometric()
    >>> stats = family.stats(np.array([[0.0], [3.0]]), np.array([0, 1]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[0.0]]))).round(3)
    array([[0.667, 0.333]])
    """

    describes: ClassVar[str] = PROBABILITY
    holds: ClassVar[str] = "count"
    kind: ClassVar[str] = "geometric"
    statistics: ClassVar[type[Stats]] = GeometricStats
    tunable: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    separable: ClassVar[bool] = True

    alpha: Any = array(CLASS, FEATURE, default=1.0)
    beta: Any = array(CLASS, FEATURE, default=1.0)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``p``: the probability of success, p(x_j = 0 | y = c)."""
        return {"p": (CLASS, FEATURE)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sum of log p + x log(1 - p) over the observed cells."""
        counts, seen = _split(X)
        p = np.asarray(theta["p"])
        certain = p == 1  # of success: no failure is possible
        out = passes.dot_log(seen, p) + passes.dot(counts, np.log1p(-np.where(certain, 0.0, p)))
        if certain.any():
            out = np.where(passes.dot(counts, certain.astype(np.float64)) > 0, -np.inf, out)
        return out

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) counts, as int64."""
        return rng.geometric(self.rows_of(theta, "p", y)) - 1

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """Beta priors; rows (the observed cells, whole counts), or the sums of the counts."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = declare(self, "prior", prefix)
        dims = prefixed(prefix, self.params["p"])
        p = pm.Beta(f"{prefix}p", prior["alpha"], prior["beta"], dims=dims)
        if X is not None:
            passes.refuse_negative_counts(X)
            refuse_fractional(X)
            # PyMC's Geometric counts from 1; this one is on 0, 1, 2, ...
            observe_cells(
                prefix, X, lambda p, **size: pm.NegativeBinomial.dist(n=1, p=p, **size), p[y]
            )
        elif stats is not None:
            n = declare(stats, "stats", prefix)
            pm.Potential(f"{prefix}x", (n["rows"] * pt.log(p) + n["total"] * pt.log1p(-p)).sum())
        return {"p": p}

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """As `log_likelihood`."""
        import pymc as pm
        import pytensor.tensor as pt

        counts, seen = (
            pm.Data(f"{prefix}{name}", cells)[:, None, :]
            for name, cells in zip(("counts", "seen"), _split(X), strict=True)
        )
        return (seen * pt.log(theta["p"]) + counts * pt.log1p(-theta["p"])).sum(axis=-1)

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> GeometricStats:
        """Numbers of observed cells and sums of counts."""
        counts, seen = _split(X)
        return GeometricStats(
            passes.class_sums(seen, y, n_classes, weight),
            passes.class_sums(counts, y, n_classes, weight),
        )

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """The same everywhere, and unequal by class and feature."""
        pattern = 2.0 + np.arange(n_classes * n_features).reshape(n_classes, n_features) % 5
        flat = np.full((n_classes, n_features), 3.0)
        return [cls(flat, flat), cls(pattern, pattern[::-1] + 0.5)]

    def observed_cells(self, stats: GeometricStats) -> Array:
        """(C, D) rows of each class in which the column was not missing."""
        return stats.rows

    def resolve(self, stats: GeometricStats) -> Self:
        """Broadcast the pseudo-counts to (class, feature)."""
        return broadcast_priors(self, stats.rows.shape, "alpha", "beta")

    def update(self, stats: GeometricStats) -> Self:
        """alpha + rows, beta + total: a row is one success after x failures."""
        return replace(self, alpha=self.alpha + stats.rows, beta=self.beta + stats.total)

    def mle(self, stats: GeometricStats) -> dict[str, Array]:
        """Rows over rows plus counts: 1/(1 + mean)."""
        refuse_undefined("mle", stats.rows <= 0, "it has no observed row (0/0)")
        return {"p": stats.rows / (stats.rows + stats.total)}

    def map(self) -> dict[str, Array]:
        """(alpha - 1)/(alpha + beta - 2), the mode on the probability scale."""
        return {"p": densities.beta_mode(self.alpha, self.beta)}

    def mean(self) -> dict[str, Array]:
        """alpha/(alpha + beta)."""
        return {"p": self.alpha / (self.alpha + self.beta)}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent Beta draws."""
        return {"p": rng.beta(self.alpha, self.beta, size=(n, *self.alpha.shape))}

    def log_density(self, theta: Theta) -> Array:
        """(...) sum of log Beta densities."""
        return densities.density_by_draws(
            lambda t: densities.log_beta_density(t["p"], self.alpha, self.beta), theta, self.params
        )

    def log_predictive(self, X: Matrix) -> Array:
        """(N, C) sum over cells of log B(alpha + 1, beta + x) - log B(alpha, beta)."""
        return np.stack([self.cgf(X, e) for e in np.eye(len(self.alpha))], axis=-1)

    def log_evidence(self, stats: GeometricStats) -> float:
        """Sum over cells of log B(posterior) - log B(prior)."""
        return float(_log_beta_ratio(self.alpha, self.beta, stats.rows, stats.total).sum())

    def cgf(self, X: Matrix, t: Array) -> Array:
        """Sum over cells and classes of log B(alpha + t, beta + t x) - log B(alpha, beta)."""
        counts, seen = _split(X)

        def rows_at(rows: slice, t: Array) -> Array:
            out: Any = 0.0
            for c in range(len(self.alpha)):
                tc = t[..., c, None]  # (..., n or 1, 1)
                if not tc.any():
                    continue
                cells = _log_beta_ratio(
                    self.alpha[c], self.beta[c], tc * seen[rows], tc * counts[rows]
                )
                out = out + cells.sum(axis=-1)
            return out

        return passes.cgf_by_rows(rows_at, len(counts), counts.shape[1], t)

    # -- capabilities ------------------------------------------------------------------------

    def density_cumulants(self, X: Matrix, seen: int) -> Array:
        """Derivatives of `cgf`: of log B(alpha + t, beta + t x), polygammas."""
        counts, here = _split(X)
        own = [
            densities.log_gamma_derivatives(a, here, seen)
            + densities.log_gamma_derivatives(b, counts, seen)
            - densities.log_gamma_derivatives(a + b, here + counts, seen)
            for a, b in zip(self.alpha, self.beta, strict=True)
        ]
        return np.stack(own, axis=-1).sum(axis=2)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """log(1 - p) as weights of the counts, the sum of log p beside them; plug-ins only."""
        if theta is None:
            raise NotLinearError(
                "the posterior predictive of a geometric count is beta-negative binomial: its "
                "log is not linear in x; ask for the linear form of a plug-in, such as "
                "method='posterior_mean'"
            )
        with np.errstate(divide="ignore"):
            return np.log1p(-theta["p"]), np.log(theta["p"]).sum(axis=-1)


def _split(X: Matrix) -> tuple[Array, Array]:
    """Counts (N, D), 0 where a cell is missing, and 1 where one is observed."""
    passes.refuse_negative_counts(X)
    X = np.asarray(X, dtype=np.float64)
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0), seen.astype(np.float64)


def _log_beta_ratio(a: Any, b: Any, m: Any, n: Any) -> Array:
    """log B(a + m, b + n) - log B(a, b); 0 where m and n are 0."""
    both = log_gamma_difference(a, m) + log_gamma_difference(b, n)
    return both - log_gamma_difference(a + b, m + n)
