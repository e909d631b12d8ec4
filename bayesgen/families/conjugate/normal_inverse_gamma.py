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
from functools import cached_property, reduce
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import issparse

from bayesgen.errors import refuse_unknown
from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta
from bayesgen.families.errors import NotLinearError, refuse_negative, refuse_undefined
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.densities import (
    density_by_draws,
    log_inverse_gamma_density,
    log_normal_density,
)
from bayesgen.families.shared.gaussian import (
    gaussian_information,
    prior_location,
    unit_information,
    warn_lost_digits,
)
from bayesgen.families.shared.hyperparameters import LARGEST, broadcast_prior
from bayesgen.families.shared.pymc_parts import centred_normal, observe_cells, prefixed
from bayesgen.numerics import kernels
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_gamma_difference, log_sum_exp

# ------------------------------------------------------------------------------------------------
# Counts, means and scatters of cells: the sufficient statistics of independent Normal columns.


@dataclass(frozen=True, eq=False)
class GaussianStats(Stats):
    """Count, mean and scatter of each cell, about a fixed reference row.

    Means are relative to `shift`, so that an offset of 1e8 costs no digits. Merging is Chan's
    update. Removal is exact up to rounding of the scatter *before* removal.
    """

    n: Array = array(CLASS, FEATURE)  # weight of the observed rows
    mean: Array = array(CLASS, FEATURE, signed=True)  # minus shift
    scatter: Array = array(CLASS, FEATURE)  # sum of squares about the mean
    shift: Array = array(FEATURE, signed=True)

    @classmethod
    def of_rows(cls, X: Matrix, y: Array, n_classes: int, weight: Array | None = None) -> Self:
        """Block by block: centred sums about the first observed value of each column."""
        shape = (n_classes, X.shape[1])
        shift = passes.first_observed(X)
        zero = np.zeros(shape)
        stats = cls(zero, zero, zero, shift)
        if kernels.pays(X.shape[0] * X.shape[1]) and not issparse(X):
            return _compiled(X, y, weight, stats)
        for rows in passes.row_blocks(*X.shape):
            d = passes.dense_block(X, rows) - shift
            codes, w = y[rows], None if weight is None else weight[rows]
            indicator = passes.one_hot(codes, n_classes, w)
            if passes.has_nan(d):
                seen = ~np.isnan(d)
                n = indicator @ seen.astype(np.float64)
                d = np.where(seen, d, 0.0)
            else:
                seen = None
                n = np.broadcast_to(passes.class_counts(codes, n_classes, w)[:, None], shape)
            mean = np.divide(indicator @ d, n, out=np.zeros(shape), where=n > 0)
            d -= mean[codes]
            if seen is not None:
                d[~seen] = 0.0
            stats = stats.merge(cls(n, mean, indicator @ np.square(d, out=d), shift))
        return stats

    def merge(self, other: Self) -> Self:
        """Chan, Golub and LeVeque's pairwise update."""
        shift = np.where(self.n.sum(axis=0) > 0, self.shift, other.shift)
        b = other.about(shift)
        a = np.where(_cells(self.n) > 0, self.about(shift), b)  # no rows, no mean to step from
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros(n.shape), where=n > 0)
        step = np.where(_cells(other.n) > 0, b - a, 0.0)
        scatter = self.scatter + other.scatter + self.squares(self.n * share, step)
        return replace(self, n=n, mean=a + step * _cells(share), scatter=scatter, shift=shift)

    def remove(self, other: Self) -> Self:
        """Run the update backwards; warn when the rows removed carried almost all the scatter."""
        n = self.n - other.n
        refuse_negative("n", n, self.n)
        left = n > 1e-12 * self.n
        n = np.where(left, n, 0.0)
        removed = other.about(self.shift)
        # mean_left = mean + (mean - mean_gone) n_gone/n_left
        ratio = _cells(np.divide(other.n, n, out=np.zeros(n.shape), where=left))
        mean = np.where(_cells(left), self.mean + (self.mean - removed) * ratio, 0.0)
        step = np.where(_cells(left & (other.n > 0)), removed - mean, 0.0)
        back = other.n * n / np.where(left, self.n, 1.0)
        scatter = self.scatter - other.scatter - self.squares(back, step)
        groups = self.grouped(n)
        is_left = groups.reshape(groups.shape + (1,) * (scatter.ndim - 2)) > 0
        stats = replace(self, n=n, mean=mean, scatter=np.where(is_left, scatter, 0.0))
        refuse_negative("scatter", stats.variation(), self.variation())
        warn_lost_digits(stats.variation(), self.variation(), groups)
        if scatter.ndim == 2:  # no rounding below 0; a matrix stays as it is
            return replace(stats, scatter=np.maximum(stats.scatter, 0.0))
        return stats

    def about(self, shift: Array) -> Array:
        """Return (C, D) means minus another reference."""
        return self.mean + (self.shift - shift)

    def squares(self, weight: Array, step: Array) -> Array:
        """Return the weighted squares of steps of the means (C, D), as a scatter."""
        return weight * step * step

    def variation(self) -> Array:
        """Return (G, D) the scatter of each column."""
        return self.scatter

    def grouped(self, n: Array) -> Array:
        """Return the weights behind `variation`, of those of the classes."""
        return n


def _cells(n: Array) -> Array:
    """Return (C, D) or (C, 1)."""
    return n if n.ndim == 2 else n[:, None]


def _compiled[S: GaussianStats](X: Array, y: Array, weight: Array | None, zero: S) -> S:
    """Return `GaussianStats.of_rows` of a large dense X."""
    from bayesgen.numerics.kernels.compiling import as_data, as_rows
    from bayesgen.numerics.kernels.dense import add_moments
    from bayesgen.numerics.kernels.threads import run_in_threads

    codes = as_data(np.ascontiguousarray(y, dtype=np.int64))
    weights = as_data(np.ascontiguousarray(() if weight is None else weight, dtype=np.float64))

    def add(rows: slice) -> S:
        moments = zero.n.copy(), zero.mean.copy(), zero.scatter.copy()
        add_moments(as_rows(X[rows]), codes[rows], weights[rows], as_data(zero.shift), *moments)
        return type(zero)(*moments, zero.shift)

    blocks = passes.shared_blocks(X, zero.n.size)
    return reduce(type(zero).merge, run_in_threads(add, blocks))


# ------------------------------------------------------------------------------------------------
# The posterior predictive: a product over variance groups of multivariate Student t densities.
#
# With nu degrees of freedom at m, scale2 = s2 (1 + 1/kappa), group by group; the theta of a group
# is integrated out at once, so that columns that share a variance are dependent.

_CELLS = 1 << 16  # of rows, classes and columns at a time: 512 KiB of float64


def _compiled_densities(f: "NormalInverseGamma", X: Array) -> Array:
    """Return `log_predictive` of a large dense X, where each column has its own variance."""
    from bayesgen.numerics.kernels.compiling import as_data, as_rows
    from bayesgen.numerics.kernels.dense import sum_student_t
    from bayesgen.numerics.kernels.threads import run_in_threads

    scale = np.broadcast_to(f.sum_of_squares, f.mu.shape)
    spread = np.sqrt(scale * (1 + 1 / f.kappa))
    log_norm = f.log_norm - np.log1p(1 / f.kappa) / 2
    power = np.broadcast_to((f.nu + 1) / 2, f.mu.shape)
    columns = np.flatnonzero(f.live)
    columns = columns[np.argsort(power[0, columns], kind="stable")]  # equal powers share a log
    shift = as_data(np.broadcast_to(f.shift, X.shape[1])[columns])
    mu, inverse, log_norm, power = (
        as_data(np.ascontiguousarray(table[:, columns]))
        for table in (f.mu, 1 / spread, log_norm, power)
    )
    log_density = np.zeros((X.shape[0], len(f.mu)))

    def add_columns(rows: slice) -> None:
        cells = as_rows(X[rows]), as_data(columns), shift
        sum_student_t(*cells, mu, inverse, log_norm, power, log_density[rows])

    run_in_threads(add_columns, passes.row_blocks(*X.shape))
    return log_density


def _student(
    away: Array,
    kappa: Array,
    seen: Array,
    squares: Array,
    nu: Array,
    joint: bool,
    log_norm: Array | None = None,
) -> Array:
    """Return (n, C) log Student t densities: of each cell, or of all that are seen together.

    Parameters
    ----------
    away : (n, C, D) distance from the mean, in a unit; 0 where a cell is not seen
    kappa : broadcasts to (n, C, D)
    seen : (n, 1, D)
    squares, nu : broadcast to (n, C, D), or to (n, C, 1) if `joint`
        Sums of squares and degrees of freedom of the variances.
    log_norm : of single cells, where it is known
    """
    r = away * np.sqrt(kappa / ((kappa + 1) * squares))
    m: Any = seen.sum(axis=-1, keepdims=True) if joint else 1.0
    power, width = (nu + m) / 2, np.log1p(1 / kappa) / 2
    if joint:
        with np.errstate(divide="ignore"):  # logs, because a square may overflow
            log_q = log_sum_exp(2 * np.log(np.abs(r)))
        distance = power[..., 0] * np.logaddexp(0.0, log_q)
    else:
        distance = _weighted_logs(r, power)
    if log_norm is None:
        log_norm = log_gamma_difference(nu / 2, m / 2) - m / 2 * np.log(np.pi * squares)
    if joint:
        return np.asarray(log_norm[..., 0] - distance - np.where(seen, width, 0.0).sum(axis=-1))
    cells = log_norm - width
    norm = seen[:, 0] @ cells.T if cells.ndim == 2 else np.where(seen, cells, 0.0).sum(axis=-1)
    return np.asarray(norm - distance)


def _weighted_logs(r: Array, power: Array) -> Array:
    """Return (n, C) sums over columns of power log(1 + r^2); r (n, C, D).

    Columns of one power share a logarithm: the product of 1 + u and 1 + v is 1 + (u + v + u v).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        u = np.square(np.moveaxis(r, -1, 0))
        if (power == power[..., :1]).all():
            power = power[..., :1]
            while len(u) > 1:
                half = len(u) // 2
                joined = 1.0 + u[:half]
                joined *= u[half : 2 * half]
                joined += u[:half]
                u = joined if len(u) % 2 == 0 else np.concatenate([joined, u[-1:]])
    if np.isfinite(u).all():
        logs = np.moveaxis(np.log1p(u), 0, -1)
    else:
        with np.errstate(divide="ignore"):
            logs = np.logaddexp(0.0, 2 * np.log(np.abs(r)))
    return np.asarray((power * logs).sum(axis=-1))


Variance = Literal["class", "tied", "class_spherical", "spherical"]

_PARAM_DIMS: dict[Variance, tuple[str, ...]] = {
    "class": (CLASS, FEATURE),
    "tied": (FEATURE,),
    "class_spherical": (CLASS,),
    "spherical": (),
}


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
        Weight of the prior variance, in rows. None: 3, the smallest integer with a finite mean.
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

    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian"
    statistics: ClassVar[type[Stats]] = GaussianStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "sigma2")
    attributes: ClassVar[Mapping[str, str]] = {"theta_": "mu", "means_": "mu", "var_": "sigma2"}
    separable: ClassVar[bool] = True

    mu: Hyperparameter = array(CLASS, FEATURE, default=None)
    kappa: Hyperparameter = array(CLASS, FEATURE, default=None)
    nu: Hyperparameter = array(CLASS, FEATURE, default=None)
    sigma2: Hyperparameter = array(CLASS, FEATURE, default=None)
    shift: Hyperparameter = array(FEATURE, default=0.0)
    ignored: Hyperparameter = array(FEATURE, default=False)
    variance: Variance = "class"

    def __post_init__(self) -> None:
        """Refuse an unknown variance structure."""
        if self.variance not in _PARAM_DIMS:
            refuse_unknown("variance", self.variance, _PARAM_DIMS)

    # -- variance groups ---------------------------------------------------------------------

    @cached_property
    def over_classes(self) -> bool:
        """Return whether the classes share variances."""
        return self.variance in ("tied", "spherical")

    @cached_property
    def over_features(self) -> bool:
        """Return whether the columns do."""
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
    def log_norm(self) -> Array:
        """Log norm of the density of each cell alone, of the variance groups."""
        return log_gamma_difference(self.nu / 2, 0.5) - 0.5 * np.log(np.pi * self.sum_of_squares)

    @cached_property
    def live(self) -> Array:
        """Return (D,) False for the columns that are left out."""
        return ~np.broadcast_to(self.ignored, self.mu.shape[1])

    def _variance_of(self, theta: Theta) -> Array:
        """theta["sigma2"] with its class and feature axes back: (..., C or 1, D or 1)."""
        return self.with_axes(np.asarray(theta["sigma2"]))

    def with_axes(self, sigma2):
        """Array or tensor of the variances with its class and feature axes back."""
        if self.over_classes:
            sigma2 = sigma2[..., None, :] if self.variance == "tied" else sigma2[..., None]
        return sigma2[..., None] if self.over_features else sigma2

    def as_theta(self, sigma2):
        """Inverse of `with_axes`, for the last two axes."""
        if self.over_features:
            sigma2 = sigma2[..., 0]
            return sigma2[..., 0] if self.over_classes else sigma2
        return sigma2[..., 0, :] if self.over_classes else sigma2

    @property
    def independent(self) -> bool:
        """Return a variance that columns share makes them dependent once it is integrated out."""
        return not self.over_features

    # -- contract ----------------------------------------------------------------------------

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: class means; ``sigma2``: variances, with the dims of the variance groups."""
        return {"mu": (CLASS, FEATURE), "sigma2": _PARAM_DIMS[self.variance]}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) sum of Normal log-densities over the observed cells."""
        mu = np.asarray(theta["mu"])
        sigma2 = np.broadcast_to(self._variance_of(theta), mu.shape)
        *batch, n_classes, _ = mu.shape
        n, live = int(np.prod(batch)), self.live
        shape = n, n_classes, int(live.sum())
        mu, sigma2 = mu[..., live].reshape(shape), sigma2[..., live].reshape(shape)
        log_p = np.empty((n, n_classes, X.shape[0]))
        for c in range(n_classes if n else 0):
            normal_log_densities(X, live, mu[:, c], sigma2[:, c], log_p[:, c])
        return np.moveaxis(log_p.reshape(*batch, n_classes, X.shape[0]), -1, -2)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) Normal rows."""
        mean = self.rows_of(theta, "mu", y)
        sigma2 = self.rows_of(theta, "sigma2", y)
        if self.over_features:
            sigma2 = sigma2[..., None]
        return mean + np.sqrt(sigma2) * rng.standard_normal((len(y), mean.shape[-1]))

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Inverse-gamma variances, Normal means; Normal rows, or their counts, means and scatter.

        Columns that are `ignored` keep their prior.
        """
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        nu, scale = self.as_theta(prior["nu"]), self.as_theta(prior["sigma2"])
        dims = {name: prefixed(prefix, d) for name, d in self.params.items()}
        sigma2 = pm.InverseGamma(
            f"{prefix}sigma2", nu / 2, nu * scale / 2, dims=dims["sigma2"] or None
        )
        variance = self.with_axes(sigma2)
        mu = centred_normal(
            f"{prefix}mu",
            prior["shift"] + prior["mu"],
            pt.sqrt(variance / prior["kappa"]),
            pt.sqrt(self.with_axes(scale)),
            dims["mu"],
        )
        if stats is not None and X is None:
            about = {"n": stats.n, "mean": stats.about(self.shift), "scatter": stats.scatter}
            n, mean, scatter = (
                pymc_parts.container(
                    f"{prefix}stats_{name}",
                    np.asarray(value * self.live, dtype=np.float64),
                    (CLASS, f"{prefix}{FEATURE}"),
                )
                for name, value in about.items()
            )
            step = mean - (mu - prior["shift"])
            log_p = n * pt.log(2 * np.pi * variance) + (scatter + n * step * step) / variance
            pm.Potential(f"{prefix}x", -0.5 * log_p.sum())
        elif X is not None:
            sd = self._sd({"mu": mu, "sigma2": sigma2})
            observe_cells(prefix, X, pm.Normal.dist, mu[y], sd[y], counted=self.live)
        return {"mu": mu, "sigma2": sigma2}

    def _sd(self, theta: Mapping[str, Any]):
        """Return (class, feature) tensor of the standard deviations."""
        import pytensor.tensor as pt

        return pt.broadcast_to(pt.sqrt(self.with_axes(theta["sigma2"])), theta["mu"].shape)

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Each variance structure, with unequal numbers by class and feature."""
        pattern = np.arange(n_classes * n_features).reshape(n_classes, n_features) % 4
        priors = []
        for variance in _PARAM_DIMS:
            proto = cls(variance=variance)
            group = proto._group_sum(np.ones((n_classes, n_features))).shape
            step = 1.0 + np.arange(np.prod(group)).reshape(group) % 3
            priors.append(
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
        return priors

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> GaussianStats:
        """Block by block: centred sums about the first observed value of each column."""
        return GaussianStats.of_rows(X, y, n_classes, weight)

    def observed_cells(self, stats: GaussianStats) -> Array:
        """Return (C, D) rows of each class in which the column was not missing."""
        return stats.n

    def resolve(self, stats: GaussianStats) -> Self:
        """Fill in the data-scaled defaults from the pooled statistics."""
        shape = stats.mean.shape
        group = self._group_sum(np.ones(shape)).shape
        default = unit_information(stats.n, stats.mean, stats.scatter, stats.shift)
        mu, shift = prior_location(self.mu, self.shift, default, stats.shift, shape[0])
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
            "the variance has no expectation while nu0 + rows <= 2",
            "use nu0 > 2 or more rows",
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
        for block in passes.row_blocks(n, self.mu.size):  # no copy of them all
            mu[block] *= np.sqrt(sigma2[block] / self.kappa)
            mu[block] += self.mu + self.shift
        return {"mu": mu, "sigma2": self.as_theta(sigma2)}

    def n_parameters(self) -> int:
        """Means and variances."""
        return self.mu.size + self.nu.size

    def log_density(self, theta: Theta) -> Array:
        """Add inverse-Gamma densities of the variances, and Normal ones of the means given them."""

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

    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) by quadrature of the mixture entropy, in nats."""
        mu = np.asarray(theta["mu"])
        sigma2 = np.broadcast_to(self._variance_of(theta), mu.shape)
        return gaussian_information(mu, sigma2, weights) * self.live

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C), as in `ConjugateFamily.log_predictive`."""
        joint = self.over_features
        log_norm = None if joint else self.log_norm
        if not joint and not issparse(X) and kernels.pays(X.shape[0] * self.mu.size):
            return _compiled_densities(self, X)
        squares, nu = self.sum_of_squares, self.nu
        log_p = np.empty((X.shape[0], len(self.mu)))
        for rows in passes.row_blocks(X.shape[0], self.mu.size, _CELLS):
            x = np.asfortranarray(passes.dense_block(X, rows) - self.shift)[:, None]  # by column
            seen = ~np.isnan(x) & self.live
            away = x - self.mu
            if not seen.all():
                away = np.where(seen, away, 0.0)
            log_p[rows] = _student(away, self.kappa, seen, squares, nu, joint, log_norm)
        return log_p

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract the row from means, precisions and sums of squares, cell by cell."""
        log_x, left = NormalInverseGamma.log_predictive(self, X), np.ones(X.shape[0])
        for rows in passes.row_blocks(X.shape[0], self.mu.size, _CELLS):
            x = passes.dense_block(X, rows) - self.shift
            log_x[rows], left[rows] = self._without(x, y[rows], weight[rows], log_x[rows])
        return log_x, left

    def _without(self, x: Array, y: Array, weight: Array, log_x: Array) -> tuple[Array, Array]:
        """Densities of rows (n, D) without themselves; `log_x` (n, C) are those with themselves."""
        n, seen, kappa = np.arange(len(x)), ~np.isnan(x) & self.live, self.kappa[y]
        cells = np.where(seen, weight[:, None], 0.0)
        remaining, is_lost = passes.without_weight(kappa, cells)
        step = np.where(seen, x - self.mu[y], 0.0)
        taken = cells * kappa / remaining * np.square(step)
        whole, nu = (v[0 * y if self.over_classes else y] for v in (self.sum_of_squares, self.nu))
        if self.over_features:
            taken, cells = (v.sum(axis=1, keepdims=True) for v in (taken, cells))
        squares, freedom = whole - taken, nu - cells
        left = np.where(is_lost.any(axis=1), 0.0, (squares / whole).min(axis=1, initial=1.0))
        # with shared variances the row is missed by all classes, of which its own has moved away
        own_class = y if self.over_classes else 0 * y
        mu = self.mu[None] if self.over_classes else self.mu[y][:, None]
        away = np.where(seen[:, None], x[:, None] - mu, 0.0)
        kappas = np.array(np.broadcast_to(self.kappa[: away.shape[1]], away.shape))
        away[n, own_class], kappas[n, own_class] = step * kappa / remaining, remaining
        density = _student(
            away, kappas, seen[:, None], squares[:, None], freedom[:, None], self.over_features
        )
        if self.over_classes:
            return density, left
        log_x[n, y] = density[:, 0]
        return log_x, left

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Return (N, C) tensor, over the observed cells of the live columns."""
        import pymc as pm

        cells = pm.Normal.dist(theta["mu"], self._sd(theta))
        return pymc_parts.log_likelihood_of_cells(prefix, X, cells, self.live)


# ------------------------------------------------------------------------------------------------
# Log densities of rows of independent Normal cells, for many draws of the means and variances.
#
# About a centre m near all the means, :math:`\mu = m + \delta` and w = 1/variance,
#
# .. math:: -\tfrac12 \sum_j w_j (x_j - \mu_j)^2 = \sum_j \left[-\tfrac12 w_j (x_j - m_j)^2
#           + w_j \delta_j (x_j - m_j) - \tfrac12 w_j \delta_j^2\right]
#
# is one product of two matrices: rows with their squares, and draws. It has the digits of the
# direct form as long as no mean is many standard deviations from the centre; other draws take that
# form.

_NEAR = 25.0  # squared distance from the centre, in variances, on the average over the columns


def normal_log_densities(X: Matrix, live: Array, mu: Array, sigma2: Array, out: Array) -> None:
    """Sums over the observed live cells of each row, into `out` (S, N).

    Parameters
    ----------
    X : (N, D), in the unit of the features
        NaN is a missing cell.
    live : bool (D,)
    mu, sigma2 : (S, L)
        Of the live columns.
    """
    n_live = mu.shape[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_norm = -0.5 * np.log(2 * np.pi * sigma2)
        w = 1 / sigma2
        centre = np.average(mu, axis=0, weights=w) if len(mu) > 1 else mu[0]
        delta = mu - centre
        squares = w * delta * delta
        constant = log_norm - 0.5 * squares
        far = np.flatnonzero(~(squares.sum(axis=1) <= _NEAR * n_live))
        whole = np.hstack([-0.5 * w, w * delta, constant.sum(axis=1, keepdims=True)])
        gappy = np.hstack([-0.5 * w, w * delta, constant])
    for rows in passes.row_blocks(X.shape[0], 2 * n_live + 1):
        x = passes.dense_block(X, rows)[:, live]
        gaps = passes.has_nan(x)
        d = x - centre
        seen = np.ones((len(x), 1))
        if gaps:
            seen = np.isfinite(x).astype(np.float64)
            d[np.isnan(x)] = 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            table = np.hstack([d * d, d, seen])
            np.matmul(gappy if gaps else whole, table.T, out=out[:, rows])
        direct = far if np.isfinite(table).all() else np.arange(len(mu))
        total = np.nansum if gaps else np.sum
        with np.errstate(over="ignore"):
            for s in direct:
                z = x - mu[s]
                z *= z
                out[s, rows] = total(log_norm[s] - z / (2 * sigma2[s]), axis=1)
