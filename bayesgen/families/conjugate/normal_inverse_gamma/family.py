r"""Real features one by one: x_j | y=c ~ Normal(mu_cj, sigma2), Normal-inverse-gamma prior.

.. math:: \sigma^2 \sim \text{scaled-inv-}\chi^2(\nu, s^2), \qquad
          \mu_{cj} \mid \sigma^2 \sim \text{Normal}(m_{cj}, \sigma^2/\kappa_{cj})

Which means share a variance is the `variance` argument; cells that share one form a *variance
group*. With SS = nu s2, the posterior adds to nu the number of observed cells of the group, to SS
their scatter and kappa n/(kappa + n) (mean - m)^2. The predictive is a product over groups of
multivariate Student t: with one variance for all features (``"spherical"``) the D features of a row
are dependent although they are independent given theta.

Source: Gelman et al., Bayesian Data Analysis (3rd ed.), section 3.3; Murphy (2007), Conjugate
Bayesian analysis of the Gaussian distribution.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesgen.families.capabilities import (
    CellCumulants,
    DensityCumulants,
    DensityDraws,
    SharedVariances,
)
from bayesgen.families.conjugate.normal_inverse_gamma import (
    cumulants,
    density_draws,
    predictive,
    pymc_normals,
    removal,
)
from bayesgen.families.conjugate.normal_inverse_gamma.normal_densities import normal_log_densities
from bayesgen.families.conjugate.normal_inverse_gamma.statistics import GaussianStats
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import NotLinearError, refuse_undefined, refuse_unknown
from bayesgen.families.names import (
    CLASS,
    DENSITY,
    FEATURE,
)
from bayesgen.families.records import array
from bayesgen.families.shared.densities import (
    density_by_draws,
    log_inverse_gamma_density,
    log_normal_density,
)
from bayesgen.families.shared.gaussian import (
    gaussian_information,
    unit_information,
)
from bayesgen.families.shared.hyperparameters import LARGEST, broadcast_prior
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, log_gamma_difference

Variance = Literal["class", "tied", "class_spherical", "spherical"]

_PARAM_DIMS: dict[Variance, tuple[str, ...]] = {
    "class": (CLASS, FEATURE),
    "tied": (FEATURE,),
    "class_spherical": (CLASS,),
    "spherical": (),
}
_BY_FORMULA = (DensityDraws, SharedVariances, CellCumulants, DensityCumulants)


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(ConjugateFamily):
    """Independent Normal features with conjugate priors.

    Parameters
    ----------
    mu : float or array broadcasting to (class, feature), or None
        Prior mean of the class means, minus `shift`; in the unit of the feature. None: the
        pooled mean of the column.
    kappa : float or array broadcasting to (class, feature), > 0, or None
        Weight of the prior mean, in rows. None: 0.1, so that class means lie within about three
        standard deviations of the pooled mean.
    nu : float or array broadcasting to the variance groups, > 0, or None
        Weight of the prior variance, in rows. None: 3, the least integer with a finite prior mean.
    sigma2 : float or array broadcasting to the variance groups, > 0, or None
        Prior scale of the variance, in the unit of the feature squared. None: the pooled
        within-class variance of the column (`gaussian.unit_information`), averaged over the
        columns where they share one.
    shift : array (feature,)
        Reference row: locations are held relative to it.
    ignored : bool array (feature,)
        Columns that are left out of the density of every row, as if missing: their parameters keep
        the prior. Set by the default sigma2 for columns that are constant, or missing throughout,
        in training: they have no unit. Where columns share a variance they share a unit, and none
        is left out.
    variance : {"class", "tied", "class_spherical", "spherical"}
        One variance per class and feature; per feature, shared by the classes; per class, shared
        by the features; or one for all. nu and sigma2 have shape (C, D), (1, D), (C, 1), (1, 1).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [2.0], [7.0], [9.0]]), np.array([0, 0, 1, 1])
    >>> family = NormalInverseGamma(mu=0.0, kappa=1.0, nu=1.0, sigma2=1.0)
    >>> stats = family.stats(X, y, n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> posterior.mu + posterior.shift
    array([[1.        ],
           [5.33333333]])
    >>> posterior.log_predictive(np.array([[2.0]])).round(3)
    array([[-1.591, -2.841]])
    """

    describes: ClassVar[str] = DENSITY
    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian"
    statistics: ClassVar[type[Stats]] = GaussianStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "sigma2")
    pseudo_counts: ClassVar[tuple[str, ...]] = ("kappa", "nu")
    attributes: ClassVar[Mapping[str, str]] = {"theta_": "mu", "means_": "mu", "var_": "sigma2"}
    separable: ClassVar[bool] = True

    mu: Any = array(CLASS, FEATURE, default=None)
    kappa: Any = array(CLASS, FEATURE, default=None)
    nu: Any = array(CLASS, FEATURE, default=None)
    sigma2: Any = array(CLASS, FEATURE, default=None)
    shift: Any = array(FEATURE, default=0.0)
    ignored: Any = array(FEATURE, default=False)
    variance: Variance = "class"

    # methods with a page of their own
    student = cached_property(predictive.student)
    log_predictive = predictive.log_predictive
    log_predictive_without = removal.log_predictive_without
    pymc_log_likelihood = pymc_normals.log_likelihood
    cgf = cumulants.cgf
    density_cumulants = cumulants.density_cumulants
    cell_cgf = cumulants.cell_cgf
    cell_cumulants = cumulants.cell_cumulants
    draw_log_density = density_draws.draw
    distance_draws = density_draws.distances

    def __post_init__(self) -> None:
        """Refuse an unknown variance structure."""
        if self.variance not in _PARAM_DIMS:
            refuse_unknown("variance", self.variance, _PARAM_DIMS)

    # -- variance groups ---------------------------------------------------------------------

    @cached_property
    def over_classes(self) -> bool:
        """Whether the classes share variances."""
        return self.variance in ("tied", "spherical")

    @cached_property
    def over_features(self) -> bool:
        """Whether the columns do."""
        return self.variance in ("class_spherical", "spherical")

    def _group_sum(self, cells: Array) -> Array:
        """Sum (C, D) cells over each variance group, keeping two axes."""
        if self.over_classes:
            cells = cells.sum(axis=0, keepdims=True)
        if self.over_features:
            cells = cells.sum(axis=1, keepdims=True)
        return cells

    @cached_property
    def sum_of_squares(self) -> Array:
        """SS = nu sigma2, of the variance groups."""
        return self.nu * self.sigma2

    @cached_property
    def live(self) -> Array:
        """(D,) False for the columns that are left out."""
        return ~np.broadcast_to(self.ignored, self.mu.shape[1])

    def _variance_of(self, theta: Theta) -> Array:
        """theta["sigma2"] with its class and feature axes back: (..., C or 1, D or 1)."""
        return self.with_axes(np.asarray(theta["sigma2"]))

    def with_axes(self, sigma2: Any) -> Any:
        """Array or tensor of the variances with its class and feature axes back."""
        if self.over_classes:
            sigma2 = sigma2[..., None, :] if self.variance == "tied" else sigma2[..., None]
        return sigma2[..., None] if self.over_features else sigma2

    def as_theta(self, sigma2: Any) -> Any:
        """Inverse of `with_axes`, for the last two axes."""
        if self.over_features:
            sigma2 = sigma2[..., 0]
            return sigma2[..., 0] if self.over_classes else sigma2
        return sigma2[..., 0, :] if self.over_classes else sigma2

    @property
    def independent(self) -> bool:
        """A variance that columns share makes them dependent once it is integrated out."""
        return not self.over_features

    # -- contract ----------------------------------------------------------------------------

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: class means; ``sigma2``: variances, with the dims of the variance groups."""
        return {"mu": (CLASS, FEATURE), "sigma2": _PARAM_DIMS[self.variance]}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) sum of Normal log-densities over the observed cells."""
        mu = np.asarray(theta["mu"])
        sigma2 = np.broadcast_to(self._variance_of(theta), mu.shape)
        *batch, n_classes, _ = mu.shape
        n, live = int(np.prod(batch)), self.live
        shape = n, n_classes, int(live.sum())
        mu, sigma2 = mu[..., live].reshape(shape), sigma2[..., live].reshape(shape)
        out = np.empty((n, n_classes, X.shape[0]))
        for c in range(n_classes if n else 0):
            normal_log_densities(X, live, mu[:, c], sigma2[:, c], out[:, c])
        return np.moveaxis(out.reshape(*batch, n_classes, X.shape[0]), -1, -2)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) Normal rows."""
        mean = self.rows_of(theta, "mu", y)
        sigma2 = self.rows_of(theta, "sigma2", y)
        if self.over_features:
            sigma2 = sigma2[..., None]
        return mean + np.sqrt(sigma2) * rng.standard_normal((len(y), mean.shape[-1]))

    def to_pymc(
        self, *, prefix: str = "", X: Matrix | None = None, y: Any = None, stats: Any = None
    ) -> dict[str, Any]:
        """Inverse-gamma variances, Normal means; Normal rows, or their counts, means and scatter.

        Columns that are `ignored` keep their prior.
        """
        return pymc_normals.declare(self, prefix, X, y, stats)

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Each variance structure, with unequal numbers by class and feature."""
        pattern = np.arange(n_classes * n_features).reshape(n_classes, n_features) % 4
        out = []
        for variance in _PARAM_DIMS:
            proto = cls(variance=variance)
            group = proto._group_sum(np.ones((n_classes, n_features))).shape
            step = 1.0 + np.arange(np.prod(group)).reshape(group) % 3
            out.append(
                cls(
                    mu=pattern - 1.0,
                    kappa=0.5 + pattern,
                    nu=5.0 + step,
                    sigma2=0.5 * step,
                    shift=np.zeros(n_features),
                    ignored=np.zeros(n_features, dtype=bool),
                    variance=variance,
                )
            )
        return out

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> GaussianStats:
        """Block by block: centred sums about the first observed value of each column."""
        return GaussianStats.of_rows(X, y, n_classes, weight)

    def observed_cells(self, stats: GaussianStats) -> Array:
        """(C, D) rows of each class in which the column was not missing."""
        return stats.n

    def resolve(self, stats: GaussianStats) -> Self:
        """Fill in the data-scaled defaults from the pooled statistics."""
        shape = stats.mean.shape
        group = self._group_sum(np.ones(shape)).shape
        default = unit_information(stats.n, stats.mean, stats.scatter, stats.shift)
        if self.mu is None:
            mu, shift = np.array(np.broadcast_to(default.mean, shape)), stats.shift
        else:
            mu = broadcast_prior("mu0", self.mu, shape, positive=False)
            shift = broadcast_prior("shift", self.shift, shape[1:], positive=False)
        if self.over_features:  # one variance for columns of one unit, constant ones included
            sigma2 = default.variance[~default.constant] if (~default.constant).any() else [1.0]
            sigma2, ignored = np.mean(sigma2), np.zeros(shape[1], dtype=bool)
        else:
            sigma2, ignored = default.variance, default.constant & (self.sigma2 is None)
        nu = broadcast_prior("nu0", 3.0 if self.nu is None else self.nu, group)
        sigma2 = sigma2 if self.sigma2 is None else self.sigma2
        return replace(
            self,
            mu=mu,
            kappa=broadcast_prior("kappa0", 0.1 if self.kappa is None else self.kappa, shape),
            nu=nu,
            sigma2=broadcast_prior("sigma2_0", sigma2, group, largest=LARGEST**2 / (1 + nu)),
            shift=shift,
            ignored=ignored,
        )

    def update(self, stats: GaussianStats) -> Self:
        """Precision-weighted mean; counts and scatter added to each variance group.

        Columns that are `ignored` keep their prior.
        """
        prior = self.mu + (self.shift - stats.shift)
        n = stats.n * self.live
        kappa = self.kappa + n
        step = np.where(n > 0, stats.mean - prior, 0.0)
        share = n / kappa
        nu = self.nu + self._group_sum(n)
        added = stats.scatter * self.live + self.kappa * share * step * step
        scale = self.sum_of_squares + self._group_sum(added)
        return replace(
            self, mu=prior + share * step, kappa=kappa, nu=nu, sigma2=scale / nu, shift=stats.shift
        )

    def mle(self, stats: GaussianStats) -> dict[str, Array]:
        """Sample means; scatter over count in each variance group."""
        refuse_undefined("mle", stats.n <= 0, "it has no observed row")
        scatter = self._group_sum(stats.scatter)
        refuse_undefined(
            "mle",
            np.broadcast_to(scatter <= 0, stats.n.shape),
            "the rows do not vary, so the variance would be 0",
        )
        return {
            "mu": stats.mean + stats.shift,
            "sigma2": self.as_theta(scatter / self._group_sum(stats.n)),
        }

    def map(self) -> dict[str, Array]:
        """Joint mode in (mu, sigma2): SS/(nu + 2 + J), J the number of means in the group."""
        shared = self._group_sum(np.ones(self.mu.shape))
        return {
            "mu": self.mu + self.shift,
            "sigma2": self.as_theta(self.sum_of_squares / (self.nu + 2 + shared)),
        }

    def mean(self) -> dict[str, Array]:
        """E mu = m; E sigma2 = SS/(nu - 2), which needs nu > 2."""
        refuse_undefined(
            "posterior_mean",
            np.broadcast_to(self.nu <= 2, self.mu.shape),
            "the variance has no expectation while nu0 + rows <= 2; use nu0 > 2 or more rows",
        )
        return {
            "mu": self.mu + self.shift,
            "sigma2": self.as_theta(self.sum_of_squares / (self.nu - 2)),
        }

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """sigma2 = SS/chi2_nu, then mu given sigma2."""
        sigma2 = rng.chisquare(self.nu, size=(n, *self.nu.shape))
        np.divide(self.sum_of_squares, sigma2, out=sigma2)
        mu = rng.standard_normal((n, *self.mu.shape))
        for part in row_blocks(n, self.mu.size):  # no copy of them all
            mu[part] *= np.sqrt(sigma2[part] / self.kappa)
            mu[part] += self.mu + self.shift
        return {"mu": mu, "sigma2": self.as_theta(sigma2)}

    def n_parameters(self) -> int:
        """Means and variances."""
        return self.mu.size + self.nu.size

    def log_density(self, theta: Theta) -> Array:
        """(...) inverse-Gamma densities of the variances, Normal ones of the means given them."""

        def density(t: dict[str, Array]) -> Array:
            sigma2 = self._variance_of(t)
            variance = log_inverse_gamma_density(sigma2, self.nu / 2, self.sum_of_squares / 2)
            safe = np.where(sigma2 <= 0, 1.0, sigma2) / self.kappa
            # the distance from `shift` first: the location itself may be 1e8 times the spread
            mean = log_normal_density(t["mu"] - self.shift, self.mu, safe)
            return variance.sum(axis=(-2, -1)) + mean.sum(axis=(-2, -1))

        return density_by_draws(density, theta, self.params)

    def log_evidence(self, stats: GaussianStats) -> float:
        """log p(X | y) of the live columns, means and variances integrated out."""
        return float(sum(a.sum() for a in self._log_evidence_terms(stats)))

    def log_evidence_by_feature(self, stats: GaussianStats) -> Array:
        """(D,) terms of `log_evidence`, where columns share no variance."""
        if not self.independent:
            raise NotImplementedError(
                f"with variance={self.variance!r} the columns are dependent, and the evidence is "
                "no sum over them"
            )
        groups, means = self._log_evidence_terms(stats)
        return np.asarray(groups.sum(axis=0) + means.sum(axis=0))

    def _log_evidence_terms(self, stats: GaussianStats) -> tuple[Array, Array]:
        """Terms of the variance groups, and of the cells (C, D)."""
        posterior = self.update(stats)
        seen = stats.n * self.live
        n = self._group_sum(seen)
        growth = posterior.sum_of_squares / self.sum_of_squares
        groups = (
            log_gamma_difference(self.nu / 2, n / 2)
            - n / 2 * np.log(np.pi * posterior.sum_of_squares)
            - self.nu / 2 * np.log(growth)
        )
        return groups, -0.5 * np.log1p(seen / self.kappa)

    def capability[K](self, kind: type[K]) -> K | None:
        """Draws and cumulants where their formulas hold; the others as in `Family`."""
        if kind in _BY_FORMULA and kind in self._without_formula:
            return None
        return super().capability(kind)

    @cached_property
    def _without_formula(self) -> tuple[type, ...]:
        """Capabilities whose formulas do not hold for these variances and columns."""
        kappa, out = self.kappa[:, self.live], []
        alike = bool(kappa.size and not np.ptp(kappa, axis=1).any())  # within each class
        if not (self.over_classes and alike):
            out += [DensityDraws, SharedVariances]
        if self.over_classes or self.over_features:
            out += [CellCumulants]
        if self.over_classes or not kappa.size or (self.over_features and not alike):
            out += [DensityCumulants]
        return tuple(out)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """w = mu/sigma2 for plug-ins with variances shared by the classes."""
        if theta is None:
            raise NotLinearError(
                "the posterior predictive is a Student t in each feature, so its log-odds are not "
                "linear; a plug-in with variance='tied' or 'spherical' is"
            )
        if not self.over_classes:
            raise NotLinearError(
                f"with variance={self.variance!r} each class has its own variances and the rule "
                "is quadratic; variance='tied' or 'spherical' makes it linear"
            )
        w = theta["mu"] / self._variance_of(theta) * self.live
        return w, -0.5 * (w * theta["mu"]).sum(axis=-1)

    def draw_null(self, rng: np.random.Generator, stats: GaussianStats) -> GaussianStats:
        """Means and scatters of Normal rows, moved and scaled to the pooled ones."""
        n = stats.n
        total = np.maximum(n.sum(axis=0), np.finfo(float).tiny)
        root = np.sqrt(np.where(n > 0, n, 1.0))
        z = np.where(n > 0, rng.standard_normal(n.shape) / root, 0.0)
        scatter = rng.chisquare(np.maximum(n - 1, 1e-9)) * (n > 1)
        z -= (n * z).sum(axis=0) / total

        centre = (n * stats.mean).sum(axis=0) / total
        pooled = (stats.scatter + n * np.square(stats.mean - centre)).sum(axis=0)
        drawn = (scatter + n * np.square(z)).sum(axis=0)
        scale = np.divide(pooled, drawn, out=np.zeros_like(pooled), where=drawn > 0)
        return replace(stats, mean=centre + z * np.sqrt(scale), scatter=scatter * scale)

    def information(self, theta: Theta, weights: Array) -> Array:
        """(D,) by quadrature of the mixture entropy, in nats."""
        mu = np.asarray(theta["mu"])
        sigma2 = np.broadcast_to(self._variance_of(theta), mu.shape)
        return gaussian_information(mu, sigma2, weights) * self.live
