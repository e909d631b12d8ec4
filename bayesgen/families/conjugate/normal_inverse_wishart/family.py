r"""Correlated real features: x | y=c ~ Normal(mu_c, Sigma), Normal-inverse-Wishart prior.

.. math:: \Sigma \sim \text{InvWishart}(\nu, \Psi), \qquad
          \mu_c \mid \Sigma \sim \text{Normal}(m_c, \Sigma/\kappa_c)

One Sigma per class is quadratic discriminant analysis; one Sigma shared by the classes is linear
discriminant analysis. The posterior adds the rows to nu and their scatter, plus
kappa n/(kappa + n) (xbar - m)(xbar - m)^T, to Psi. The predictive is a multivariate Student t with
nu - D + 1 degrees of freedom; it exists for n_c <= D, and for no rows at all.

Source: Gelman et al., Bayesian Data Analysis (3rd ed.), section 3.6; Murphy (2007), section 9;
Geisser (1964), Posterior odds for multivariate normal classifications.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.capabilities import DensityCumulants, SharedVariances
from bayesgen.families.conjugate.normal_inverse_wishart import (
    bartlett,
    cumulants,
    densities,
    density_draws,
    log_odds,
    margins,
    removal,
    term_draws,
)
from bayesgen.families.conjugate.normal_inverse_wishart.default_scale import shrunken_correlations
from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
from bayesgen.families.names import (
    CLASS,
    DENSITY,
    FEATURE,
    FEATURE_BIS,
)
from bayesgen.families.records import array
from bayesgen.families.shared import gaps
from bayesgen.families.shared.gaussian import (
    UnitInformation,
    gaussian_information,
    unit_information,
)
from bayesgen.families.shared.hyperparameters import LARGEST, broadcast_prior
from bayesgen.families.shared.mahalanobis import log_normal_of_draws, whitening
from bayesgen.numerics.rows import (
    Matrix,
    has_nan,
)
from bayesgen.numerics.special import Array, log_multigamma_difference


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(ConjugateFamily):
    """Normal features with full covariance, per class or shared.

    Parameters
    ----------
    mu : float or array broadcasting to (class, feature), or None
        Prior mean of the class means, minus `shift`; in the units of the features. None: the
        pooled mean.
    kappa : float or array (class,), > 0, or None
        Weight of the prior mean, in rows. None: 0.1.
    nu : float or array (class,) (one number if shared), > D - 1, or None
        Degrees of freedom of the inverse Wishart. None: D + 2, the least integer with a finite
        prior mean.
    psi : float, (D,), (D, D) or (class, D, D), positive definite, or None
        Scale matrix of the inverse Wishart: a number or a vector is its diagonal. E Sigma =
        psi/(nu - D - 1), E Sigma^-1 = nu psi^-1. None: nu times the matrix of pooled within-class
        variances and shrunken correlations (`scatter`), which matches the precision.
    shift : array (feature,)
        Reference row: locations are held relative to it.
    ignored : bool array (feature,)
        Columns that are left out of every density, as if missing. Set by the default prior for
        columns that are constant in training: they have no unit and no correlation.
    shared : bool
        One covariance for all classes (linear discriminant analysis).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0]]), np.array([0, 0, 1])
    >>> family = NormalInverseWishart(mu=0.0, kappa=1.0, nu=4.0, psi=1.0)
    >>> stats = family.stats(X, y, n_classes=2)
    >>> family.resolve(stats).update(stats).log_predictive(np.array([[1.0, 1.0]])).round(3)
    array([[-1.556, -3.546]])
    """

    describes: ClassVar[str] = DENSITY
    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian"
    statistics: ClassVar[type[Stats]] = ScatterStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "psi")
    attributes: ClassVar[Mapping[str, str]] = {"means_": "mu", "covariance_": "Sigma"}
    missing: ClassVar[str] = "marginalised"
    fits_missing: ClassVar[bool] = False

    mu: Any = array(CLASS, FEATURE, default=None)
    kappa: Any = array(CLASS, default=None)
    nu: Any = array(CLASS, default=None)
    psi: Any = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    shift: Any = array(FEATURE, default=0.0)
    ignored: Any = array(FEATURE, default=False)
    shared: bool = False

    # methods with a page of their own
    student = cached_property(densities.student)
    log_density = densities.log_density
    log_predictive = densities.log_predictive
    log_predictive_without = removal.log_predictive_without
    cgf = cumulants.cgf
    draw_log_density = density_draws.draw
    density_cumulants = cumulants.density_cumulants
    distance_draws = density_draws.distances
    linear_form = log_odds.weights
    log_odds_terms = log_odds.terms
    draw_log_odds_terms = term_draws.draw
    rest_cgf = log_odds.rest_cgf
    margins = margins.of_family

    @cached_property
    def factor(self) -> Array:
        """(C or 1, D, D) lower Cholesky factors of psi."""
        try:
            return np.linalg.cholesky(self.psi)
        except np.linalg.LinAlgError:
            raise ValueError(
                "psi0 must be symmetric positive definite; add a little to its diagonal"
            ) from None

    @cached_property
    def log_det(self) -> Array:
        """(C or 1,) log determinants of psi."""
        return 2 * np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)

    @cached_property
    def whitening(self) -> tuple[Array, Array, Array]:
        """Of rows, as in `mahalanobis.whitening`."""
        return whitening(self.mu, self.factor)

    @cached_property
    def dim(self) -> int:
        """D, with the ignored columns."""
        return self.mu.shape[1]

    def marginal(self, columns: Array) -> Self:
        """The same family for some of the columns: nu drops by the number of the others."""
        return replace(
            self,
            mu=self.mu[:, columns],
            nu=self.nu - (self.dim - len(columns)),
            psi=self.psi[:, columns[:, None], columns],
            shift=self.shift[columns],
            ignored=np.zeros(len(columns), dtype=bool),
        )

    @cached_property
    def live(self) -> Array:
        """Columns that are not ignored."""
        return np.flatnonzero(~np.broadcast_to(self.ignored, self.dim))

    # -- contract ----------------------------------------------------------------------------

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: class means; ``Sigma``: covariance, with a class dim unless shared."""
        sigma = (FEATURE, FEATURE_BIS)
        return {"mu": (CLASS, FEATURE), "Sigma": sigma if self.shared else (CLASS, *sigma)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) Normal log-densities of the observed part of each row."""
        mu, sigma = self.flat(theta)
        out = log_normal_of_draws(X, mu, sigma, self.live)
        return out.reshape(*np.shape(theta["mu"])[:-2], *out.shape[1:])

    def discriminant(self, X: Matrix, theta: Theta) -> Array:
        """Linear in the features where the classes share one covariance."""
        if not self.shared:
            return self.log_likelihood(X, theta)
        return log_odds.scores(self, X, theta)

    def flat(self, theta: Theta) -> tuple[Array, Array]:
        """mu (S, C, D) and Sigma (S, G, D, D) of all draws."""
        mu, sigma = (np.asarray(theta[name], dtype=np.float64) for name in ("mu", "Sigma"))
        if self.shared:
            sigma = sigma[..., None, :, :]
        n = math.prod(mu.shape[:-2])
        return mu.reshape(n, *mu.shape[-2:]), sigma.reshape(n, *sigma.shape[-3:])

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) Normal rows."""
        mean, sigma = self.rows_of(theta, "mu", y), self.rows_of(theta, "Sigma", y)
        z = rng.standard_normal((len(y), mean.shape[-1]))
        return mean + np.einsum("nij,nj->ni", np.linalg.cholesky(sigma), z)

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """The exact prior in Bartlett's coordinates; Normal rows, or count, mean and scatter.

        Columns that are `ignored` keep their prior. The coordinates: `bartlett`.
        """
        if X is not None:
            of_rows = self.stats(X, y.get_value(), len(self.mu))  # refuses missing cells
            stats = of_rows if stats is None else stats
        at = bartlett.coordinates(self, self.__dict__.get("_pilot") if stats is None else stats)
        return bartlett.declare(self, at, prefix, X, y, stats is not None)

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Normal densities of the observed cells; the others are integrated out."""
        sigma = theta["Sigma"][None] if self.shared else theta["Sigma"]
        return gaps.log_density(self._seen_cells(X), theta["mu"], sigma, f"{prefix}rows")

    def prepared(self, stats: ScatterStats) -> Self:
        """With coordinates in which the posterior of such rows is nearly standard Normal."""
        out = replace(self)
        out.__dict__["_pilot"] = stats
        return out

    def _seen_cells(self, X: Matrix) -> Array:
        """Rows in float64, ignored columns as if missing."""
        return np.where(self.ignored, np.nan, np.asarray(X, dtype=np.float64))

    def completed(self, X: Matrix, c: int) -> Array:
        """By linear regression on the observed cells."""
        X, k = np.asarray(X, dtype=np.float64), 0 if self.shared else c
        return gaps.conditional_mean(X, self.mu[c] + self.shift, self.psi[k])

    def condensed(self, X: Matrix, weight: Array) -> tuple[Array, Array]:
        """Sigma points of each pattern of missing cells."""
        return gaps.sigma_points(self._seen_cells(X), weight)

    def draw_missing(
        self, rng: np.random.Generator, X: Matrix, y: Array, theta: Theta
    ) -> tuple[Array, Array, Array]:
        """Conditional Normal draws."""
        sigma = theta["Sigma"][:, None] if self.shared else theta["Sigma"]
        return gaps.draw_missing(rng, X, y, theta["mu"], sigma)

    def default_stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None
    ) -> ScatterStats:
        """Counts, means and variances of the observed cells: ``n`` is (C, D)."""
        if not has_nan(X):
            return self.stats(X, y, n_classes, weight)
        return ScatterStats.of_observed_cells(X, y, n_classes, weight, shared=self.shared)

    def pymc_coordinates(
        self, theta: Theta, stats: ScatterStats | None
    ) -> dict[str, tuple[tuple[str, ...], Array]]:
        """``precision_diagonal``, ``precision_lower`` and ``mu_white`` behind mu and Sigma."""
        return bartlett.of_draws(bartlett.coordinates(self, stats), theta, self.shared)

    def pymc_data(self, stats: ScatterStats | None) -> dict[str, Array]:
        """The coordinate system, which holds prior and statistics."""
        return bartlett.coordinates(self, stats)._asdict()

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Per class and shared, with correlated psi."""
        pattern = np.arange(n_classes * n_features).reshape(n_classes, n_features) % 4
        psi = 2.0 * (np.eye(n_features) + 0.4)
        out = []
        for shared in (False, True):
            k = 1 if shared else n_classes
            out.append(
                cls(
                    mu=pattern - 1.0,
                    kappa=0.5 + np.arange(n_classes),
                    nu=n_features + 4.0 + np.arange(k),
                    psi=psi * (1.0 + np.arange(k))[:, None, None],
                    shift=np.zeros(n_features),
                    ignored=np.zeros(n_features, dtype=bool),
                    shared=shared,
                )
            )
        return out

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> ScatterStats:
        """Block by block: centred products about the first row."""
        return ScatterStats.of_rows(X, y, n_classes, weight, shared=self.shared)

    def resolve(self, stats: ScatterStats) -> Self:
        """Fill in the data-scaled defaults from the pooled statistics."""
        n_classes, n_features = shape = stats.mean.shape
        groups = (1,) if self.shared else (n_classes,)
        diagonal = np.diagonal(stats.scatter, axis1=1, axis2=2)
        n = stats.n if stats.n.ndim == 2 else stats.n[:, None]  # of the cells, if some are missing
        default = unit_information(n, stats.mean, diagonal, stats.shift)
        ignored = default.constant & (self.psi is None)
        if self.mu is None:
            mu, shift = np.array(np.broadcast_to(default.mean, shape)), stats.shift
        else:
            mu = broadcast_prior("mu0", self.mu, shape, positive=False)
            shift = broadcast_prior("shift", self.shift, shape[1:], positive=False)
        nu = broadcast_prior("nu0", n_features + 2.0 if self.nu is None else self.nu, groups)
        if np.any(nu <= n_features - 1):
            raise ValueError(
                f"nu0 must be > D - 1 = {n_features - 1} for a proper inverse Wishart prior of "
                f"{n_features} features, got {np.min(nu):g}"
            )
        if self.psi is None:  # the live columns have nu - n_ignored degrees of freedom
            weight = nu - ignored.sum() if not ignored.all() else np.ones(groups)
            psi = weight[:, None, None] * self._default_scale(stats, default, n)
        else:
            psi = _scale_matrices(self.psi, groups[0], n_features)
        out = replace(
            self,
            mu=mu,
            kappa=broadcast_prior("kappa0", 0.1 if self.kappa is None else self.kappa, shape[:1]),
            nu=nu,
            psi=psi,
            shift=shift,
            ignored=ignored,
        )
        out.factor  # noqa: B018 - raises where psi is not positive definite
        return out

    @staticmethod
    def _default_scale(stats: ScatterStats, default: UnitInformation, n: Array) -> Array:
        """(D, D) pooled within-class variances and shrunken correlations of the live columns."""
        live = np.flatnonzero(~default.constant)
        freedom = np.maximum(n - 1, 0).sum(axis=0).min(initial=np.inf)
        pooled = stats.scatter.sum(axis=0)[live[:, None], live]
        out = np.eye(len(default.variance))
        out[live[:, None], live] = shrunken_correlations(pooled, freedom)
        width = np.sqrt(default.variance)
        return out * width * width[:, None]

    def update(self, stats: ScatterStats) -> Self:
        """Add rows to kappa and nu, scatter and the step of the mean to psi."""
        prior = self.mu + (self.shift - stats.shift)
        kappa = self.kappa + stats.n
        step = np.where((stats.n > 0)[:, None], stats.mean - prior, 0.0)
        share = stats.n / kappa
        added = stats.outer(self.kappa * share, step)
        n = stats.n.sum(keepdims=True) if self.shared else stats.n
        return replace(
            self,
            mu=prior + share[:, None] * step,
            kappa=kappa,
            nu=self.nu + n,
            psi=self.psi + stats.scatter + added,
            shift=stats.shift,
        )

    def mle(self, stats: ScatterStats) -> dict[str, Array]:
        """Sample means; scatter over count, per class or pooled."""
        refuse_undefined("mle", stats.n <= 0, "it has no row")
        n = stats.n.sum(keepdims=True) if self.shared else stats.n
        sigma = stats.scatter / n[:, None, None]
        for c in range(len(sigma)):
            scale = np.sqrt(np.diagonal(sigma[c]))
            with np.errstate(invalid="ignore", divide="ignore"):
                correlation = sigma[c] / np.outer(scale, scale)
            if not np.all(scale > 0) or np.linalg.eigvalsh(correlation)[0] < 1e-12:
                raise UndefinedEstimateError(
                    "mle",
                    f"the sample covariance of {n[c]:g} rows in {self._dim_of(stats)} features "
                    "is singular; use method='map' or the posterior predictive",
                    None if self.shared else c,
                )
        return {"mu": stats.mean + stats.shift, "Sigma": sigma[0] if self.shared else sigma}

    @staticmethod
    def _dim_of(stats: ScatterStats) -> int:
        return stats.mean.shape[1]

    def map(self) -> dict[str, Array]:
        """Joint mode in (mu, Sigma): psi/(nu + D + 1 + J), J the number of means on one Sigma.

        D and nu are those of the live columns: the mode does not know of columns left out.
        """
        means = len(self.mu) if self.shared else 1
        live = len(self.live)
        return self._theta(self.nu - (self.dim - live) + live + 1 + means)

    def mean(self) -> dict[str, Array]:
        """E mu = m; E Sigma = psi/(nu - D - 1), which needs nu > D + 1."""
        d = self.nu - self.dim - 1
        refuse_undefined(
            "posterior_mean",
            d <= 0,
            f"the covariance has no expectation while nu0 + rows <= D + 1 = {self.dim + 1}; "
            "use a larger nu0 or more rows",
        )
        return self._theta(d)

    def _theta(self, divisor: Array) -> dict[str, Array]:
        sigma = self.psi / divisor[:, None, None]
        return {"mu": self.mu + self.shift, "Sigma": sigma[0] if self.shared else sigma}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Bartlett's decomposition of the precision, then mu given Sigma."""
        k, dim = len(self.psi), self.dim
        a = np.tril(rng.standard_normal((n, k, dim, dim)), -1)
        df = self.nu[:, None] - np.arange(dim)
        a[..., np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(df, size=(n, k, dim)))
        # psi = L L^T, precision = (L^-T A)(L^-T A)^T, hence Sigma = B^T B with B = A^-1 L^T
        b = np.linalg.solve(a, np.broadcast_to(np.swapaxes(self.factor, 1, 2), a.shape))
        sigma = np.swapaxes(b, -1, -2) @ b
        z = rng.standard_normal((n, *self.mu.shape))
        step = np.einsum("skji,scj->sci" if self.shared else "scji,scj->sci", b, z)
        mu = self.mu + self.shift + step / np.sqrt(self.kappa)[:, None]
        return {"mu": mu, "Sigma": sigma[:, 0] if self.shared else sigma}

    def n_parameters(self) -> int:
        """Means and covariance matrices."""
        return self.mu.size + self.psi.size

    def log_evidence(self, stats: ScatterStats) -> float:
        """log p(X | y) of the live columns, means and covariances integrated out."""
        live = self.live
        if len(live) < self.dim:
            part = replace(
                stats,
                mean=stats.mean[:, live],
                scatter=stats.scatter[:, live[:, None], live],
                shift=stats.shift[live],
            )
            return self.marginal(live).log_evidence(part)
        posterior = self.update(stats)
        n = stats.n.sum(keepdims=True) if self.shared else stats.n
        groups = (
            log_multigamma_difference(self.nu / 2, n / 2, self.dim)
            - n * self.dim / 2 * np.log(np.pi)
            - self.nu / 2 * (posterior.log_det - self.log_det)
            - n / 2 * posterior.log_det
        )
        return float(groups.sum() - self.dim / 2 * np.log1p(stats.n / self.kappa).sum())

    def capability[K](self, kind: type[K]) -> K | None:
        """Of `SharedVariances` and `DensityCumulants` that one whose formula holds."""
        if kind is (DensityCumulants if self.shared else SharedVariances):
            return None
        return super().capability(kind)

    def information(self, theta: Theta, weights: Array) -> Array:
        """(D,) of each feature on its own (its Normal margins), in nats; 0 where ignored."""
        mu = np.asarray(theta["mu"])
        variances = np.diagonal(theta["Sigma"], axis1=-2, axis2=-1)
        out = gaussian_information(mu, np.broadcast_to(variances, mu.shape), weights)
        return np.where(self.ignored, 0.0, out)

    def margin_stats(self, stats: ScatterStats) -> Stats:
        """Counts, means and scatters of the columns."""
        return margins.of_stats(stats)

    def scaled(self, factors: Mapping[str, float]) -> Self:
        """As in `ConjugateFamily`; nu is scaled above its limit D - 1."""
        out = super().scaled({k: f for k, f in factors.items() if k != "nu"})
        limit = self.dim - 1
        return replace(out, nu=limit + (self.nu - limit) * factors.get("nu", 1.0))

    def with_strength(self, k: float) -> Self:
        """By `strengthened`: psi moves with nu."""
        return self.strengthened({"kappa": k, "nu": k})

    def strengthened(self, factors: Mapping[str, float]) -> Self:
        """nu above its limit, or all of it; psi in proportion, so that E Sigma^-1 stays."""
        f = factors.get("nu", 1.0)
        out = self.scaled(factors)
        nu = self.nu * f if f > 1 else out.nu
        return replace(out, nu=nu, psi=out.psi * (nu / self.nu)[:, None, None])

    def other_scales(self, given: Self) -> list[Self]:
        """Variances without correlations, where psi is the default."""
        if given.psi is not None:
            return []
        return [replace(self, psi=self.psi * np.eye(self.dim))]


def _scale_matrices(psi: Any, groups: int, n_features: int) -> Array:
    """psi as (groups, D, D) symmetric matrices."""
    value = np.asarray(psi, dtype=np.float64)
    if value.ndim <= 1:
        diagonal = broadcast_prior("psi0", value, (n_features,), largest=LARGEST**2)
        value = np.diag(diagonal)
    try:
        out = np.array(np.broadcast_to(value, (groups, n_features, n_features)))
    except ValueError:
        raise ValueError(
            f"psi0 has shape {value.shape}; give a number, ({n_features},), "
            f"({n_features}, {n_features}) or ({groups}, {n_features}, {n_features})"
        ) from None
    if not np.all(np.isfinite(out)) or not np.allclose(out, np.swapaxes(out, 1, 2), rtol=1e-8):
        raise ValueError("psi0 must be finite and symmetric")
    return out
