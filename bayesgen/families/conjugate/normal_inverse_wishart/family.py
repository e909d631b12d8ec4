r"""Correlated real features: x | y=c ~ Normal(mu_c, Sigma), Normal-inverse-Wishart prior.

.. math:: \Sigma \sim \text{InvWishart}(\nu, \Psi), \qquad
          \mu_c \mid \Sigma \sim \text{Normal}(m_c, \Sigma/\kappa_c)

One Sigma per class is quadratic discriminant analysis; one Sigma shared by the classes is linear
discriminant analysis. The posterior adds the rows to nu and their scatter, plus
kappa n/(kappa + n) (xbar - m)(xbar - m)^T, to Psi. The predictive is a multivariate Student t with
nu - D + 1 degrees of freedom; it exists for n_c <= D, and for no rows at all.

Source: Gelman et al., Bayesian Data Analysis (3rd ed.), section 3.6; Murphy (2007), section 9;
Geisser (1964), Posterior odds for multivariate normal classifications; seed generative_models_gda.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import digamma

from bayesgen.families.conjugate.normal_inverse_wishart import bartlett, margins
from bayesgen.families.conjugate.normal_inverse_wishart.scatter import ScatterStats
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import NotLinearError, UndefinedEstimateError, refuse_undefined
from bayesgen.families.names import CLASS, FEATURE, FEATURE_BIS
from bayesgen.families.records import array
from bayesgen.families.shared import gaps
from bayesgen.families.shared.assembly import cgf_by_rows, density_by_draws
from bayesgen.families.shared.densities import log_inverse_wishart_density
from bayesgen.families.shared.gaussian import gaussian_information, unit_information
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.mahalanobis import (
    linear_scores,
    log_normal_of_draws,
    pattern_blocks,
    patterns,
    reader,
    squared_distances,
)
from bayesgen.numerics.kernels.blas import sharing
from bayesgen.numerics.rows import (
    Matrix,
    class_sums,
    dense_block,
    first_observed,
    has_nan,
)
from bayesgen.numerics.special import Array, log1p, log_gamma_difference, log_multigamma_difference


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
        psi/(nu - D - 1), E Sigma^-1 = nu psi^-1. None: nu times the diagonal matrix of pooled
        within-class variances (`gaussian.unit_information`), which matches the precision.
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

    statistics: ClassVar[type[Stats]] = ScatterStats
    tunable: ClassVar[tuple[str, ...]] = ("kappa", "nu", "psi")
    missing: ClassVar[str] = "marginalised"
    fits_missing: ClassVar[bool] = False

    mu: Any = array(CLASS, FEATURE, default=None)
    kappa: Any = array(CLASS, default=None)
    nu: Any = array(CLASS, default=None)
    psi: Any = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    shift: Any = array(FEATURE, default=0.0)
    ignored: Any = array(FEATURE, default=False)
    shared: bool = False

    @cached_property
    def _factor(self) -> Array:
        """(C or 1, D, D) lower Cholesky factors of psi."""
        try:
            return np.linalg.cholesky(self.psi)
        except np.linalg.LinAlgError:
            raise ValueError(
                "psi0 must be symmetric positive definite; add a little to its diagonal"
            ) from None

    @cached_property
    def _log_det(self) -> Array:
        return 2 * np.log(np.diagonal(self._factor, axis1=1, axis2=2)).sum(axis=1)

    @property
    def _dim(self) -> int:
        return self.mu.shape[1]

    def marginal(self, columns: Array) -> Self:
        """The same family for some of the columns: nu drops by the number of the others."""
        return replace(
            self,
            mu=self.mu[:, columns],
            nu=self.nu - (self._dim - len(columns)),
            psi=self.psi[:, columns[:, None], columns],
            shift=self.shift[columns],
            ignored=np.zeros(len(columns), dtype=bool),
        )

    @property
    def _live(self) -> Array:
        return np.flatnonzero(~np.broadcast_to(self.ignored, self._dim))

    # -- contract ----------------------------------------------------------------------------

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: class means; ``Sigma``: covariance, with a class dim unless shared."""
        sigma = (FEATURE, FEATURE_BIS)
        return {"mu": (CLASS, FEATURE), "Sigma": sigma if self.shared else (CLASS, *sigma)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) Normal log-densities of the observed part of each row."""
        mu, sigma = self._flat(theta)
        out = log_normal_of_draws(X, mu, sigma, self._live)
        return out.reshape(*np.shape(theta["mu"])[:-2], *out.shape[1:])

    def discriminant(self, X: Matrix, theta: Theta) -> Array:
        """Linear in the features where the classes share one covariance."""
        if not self.shared:
            return self.log_likelihood(X, theta)
        mu, sigma = self._flat(theta)
        centre = mu.sum(axis=(0, 1)) / max(1, mu[..., 0].size)

        def scores(rows: Array | slice, columns: Array) -> Array:
            step = (mu - centre)[..., columns]
            own = sigma[:, 0, columns[:, None], columns]
            with sharing(False):  # BLAS's own threads spin on, and would take a core from ours
                w = np.swapaxes(np.linalg.solve(own, np.swapaxes(step, 1, 2)), 1, 2)
            level = -0.5 * (w * step).sum(axis=-1)
            return linear_scores(X, rows, columns, centre[columns], w, level)

        out = scores(slice(None), self._live)
        if has_nan(out):  # a pass over X to look for missing cells would take as long
            for rows, columns in patterns(X, self._live):
                out[:, rows] = scores(rows, columns)
        return out.reshape(*np.shape(theta["mu"])[:-2], *out.shape[1:])

    def _flat(self, theta: Theta) -> tuple[Array, Array]:
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
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
    ) -> dict[str, Any]:
        """The exact prior in Bartlett's coordinates; Normal rows, or count, mean and scatter.

        Columns that are `ignored` keep their prior. The coordinates: `bartlett`.
        """
        if X is not None:
            of_rows = self.stats(X, y.get_value(), len(self.mu))  # refuses missing cells
            stats = of_rows if stats is None else stats
        at = bartlett.coordinates(self, self.__dict__.get("_rough") if stats is None else stats)
        return bartlett.declare(self, at, prefix, X, y, stats is not None)

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Normal densities of the observed cells; the others are integrated out."""
        sigma = theta["Sigma"][None] if self.shared else theta["Sigma"]
        return gaps.log_density(self._seen_cells(X), theta["mu"], sigma, f"{prefix}rows")

    def prepared(self, stats: ScatterStats) -> Self:
        """With coordinates in which the posterior of such rows is nearly standard Normal."""
        out = replace(self)
        out.__dict__["_rough"] = stats
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
        shift = first_observed(X)
        n = class_sums(1.0 - np.isnan(X), y, n_classes, weight)
        total = class_sums(np.nan_to_num(X - shift), y, n_classes, weight)
        mean = total / np.where(n > 0, n, 1.0)
        step = np.nan_to_num(X - shift - mean[y])
        scatter = class_sums(step * step, y, n_classes, weight)
        diagonal = scatter[:, :, None] * np.eye(X.shape[1])
        if self.shared:
            diagonal = diagonal.sum(axis=0, keepdims=True)
        return ScatterStats(n, mean, diagonal, shift, self.shared)

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
            psi = weight[:, None, None] * np.diag(default.variance)
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
        out._factor  # noqa: B018 - raises where psi is not positive definite
        return out

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
        live = len(self._live)
        return self._theta(self.nu - (self._dim - live) + live + 1 + means)

    def mean(self) -> dict[str, Array]:
        """E mu = m; E Sigma = psi/(nu - D - 1), which needs nu > D + 1."""
        d = self.nu - self._dim - 1
        refuse_undefined(
            "posterior_mean",
            d <= 0,
            f"the covariance has no expectation while nu0 + rows <= D + 1 = {self._dim + 1}; "
            "use a larger nu0 or more rows",
        )
        return self._theta(d)

    def _theta(self, divisor: Array) -> dict[str, Array]:
        sigma = self.psi / divisor[:, None, None]
        return {"mu": self.mu + self.shift, "Sigma": sigma[0] if self.shared else sigma}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Bartlett's decomposition of the precision, then mu given Sigma."""
        k, dim = len(self.psi), self._dim
        a = np.tril(rng.standard_normal((n, k, dim, dim)), -1)
        df = self.nu[:, None] - np.arange(dim)
        a[..., np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(df, size=(n, k, dim)))
        # psi = L L^T, precision = (L^-T A)(L^-T A)^T, hence Sigma = B^T B with B = A^-1 L^T
        b = np.linalg.solve(a, np.broadcast_to(np.swapaxes(self._factor, 1, 2), a.shape))
        sigma = np.swapaxes(b, -1, -2) @ b
        z = rng.standard_normal((n, *self.mu.shape))
        step = np.einsum("skji,scj->sci" if self.shared else "scji,scj->sci", b, z)
        mu = self.mu + self.shift + step / np.sqrt(self.kappa)[:, None]
        return {"mu": mu, "Sigma": sigma[:, 0] if self.shared else sigma}

    def n_parameters(self) -> int:
        """Means and covariance matrices."""
        return self.mu.size + self.psi.size

    def log_density(self, theta: Theta) -> Array:
        """(...) inverse Wishart densities of Sigma, Normal ones of mu given Sigma, live columns."""
        live = self._live
        part = self if len(live) == self._dim else self.marginal(live)

        def density(t: dict[str, Array]) -> Array:
            sigma = t["Sigma"][:, None] if self.shared else t["Sigma"]
            sigma = sigma[..., live[:, None], live]
            factor, inside = _cholesky(sigma)
            out = log_inverse_wishart_density(factor, part.nu, part._factor).sum(axis=-1)
            length = np.linalg.norm(factor, axis=-1)
            step = (t["mu"][..., live] - part.shift - part.mu) / length
            white = np.linalg.solve(factor / length[..., None], step[..., None])[..., 0]
            log_norm = len(live) * np.log(part.kappa / (2 * np.pi))
            log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
            q = part.kappa * np.square(white).sum(axis=-1)
            out += 0.5 * (log_norm - log_det - q).sum(axis=-1)
            return np.where(inside, out, -np.inf)

        return density_by_draws(density, theta, self.params)

    def log_predictive(self, X: Matrix) -> Array:
        """(N, C) multivariate t: df nu - D + 1, shape psi (1 + 1/kappa)/df, of observed cells."""
        out = np.empty((X.shape[0], len(self.mu)))
        for rows, columns in patterns(X, self._live):
            part = self if len(columns) == self._dim else self.marginal(columns)
            dim = len(columns)
            df = part.nu - dim + 1
            log_norm = (
                log_gamma_difference(df / 2, dim / 2)
                - dim / 2 * (np.log(np.pi) + np.log1p(1 / part.kappa))
                - part._log_det / 2
            )
            read, n = reader(X, rows, columns)
            q = squared_distances(read, n, part.shift, part.mu, part._factor)
            q *= part.kappa / (part.kappa + 1)
            np.log1p(q, out=q)
            q *= -(part.nu + 1) / 2
            q += log_norm
            out[rows] = q
        return out

    def log_evidence(self, stats: ScatterStats) -> float:
        """log p(X | y) of the live columns, means and covariances integrated out."""
        live = self._live
        if len(live) < self._dim:
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
            log_multigamma_difference(self.nu / 2, n / 2, self._dim)
            - n * self._dim / 2 * np.log(np.pi)
            - self.nu / 2 * (posterior._log_det - self._log_det)
            - n / 2 * posterior._log_det
        )
        return float(groups.sum() - self._dim / 2 * np.log1p(stats.n / self.kappa).sum())

    def cgf(self, X: Matrix, t: Array) -> Array:
        """Joint cgf of the class log-densities of the observed cells; one pattern at a time."""
        t = np.asarray(t)
        t = t[None] if t.ndim == 1 else t
        dtype = np.complex128 if np.iscomplexobj(t) else np.float64
        out = np.empty((*t.shape[:-2], X.shape[0]), dtype=dtype)
        with np.errstate(invalid="ignore", divide="ignore"):  # real t outside the domain: NaN
            for rows, columns in pattern_blocks(X, self._live):
                part = self if len(columns) == self._dim else self.marginal(columns)
                x = dense_block(X, rows)[:, columns] - part.shift
                t_rows = t if t.shape[-2] == 1 else t[..., rows, :]
                out[..., rows] = part._cgf_complete(x, t_rows)
        return out

    def draw_log_density(self, rng: np.random.Generator, X: Matrix, n: int) -> Array:
        r"""Exact for each row at a cost that does not grow with D: no covariance is drawn.

        With W ~ Wishart(nu, G), G the products of a row's distances from the class means in the
        metric of psi^-1, the squared distance of class c is
        :math:`[(z + \sqrt{\kappa W_{cc}})^2 + \chi^2_{D-1}]/\kappa`.
        """
        out = np.zeros((n, X.shape[0], len(self.mu)))
        for rows, columns in pattern_blocks(X, self._live):
            if len(columns):
                part = self if len(columns) == self._dim else self.marginal(columns)
                x = dense_block(X, rows)[:, columns] - part.shift
                out[:, rows] = part._draw_complete(rng, x, n)
        return out

    def _draw_complete(self, rng: np.random.Generator, x: Array, n: int) -> Array:
        n_classes, dim = len(self.mu), self._dim
        out = np.empty((n, len(x), n_classes))
        z = rng.standard_normal(size=(n, n_classes))
        rest = np.zeros((n, n_classes))
        if dim > 1:
            rest = rng.chisquare(dim - 1, size=(n, n_classes))
        for members in [np.arange(n_classes)] if self.shared else np.arange(n_classes)[:, None]:
            k = members[0]
            d = (x[:, None] - self.mu[members]).reshape(-1, dim).T
            d = solve_triangular(self._factor[k], d, lower=True).T.reshape(len(x), -1, dim)
            rank = min(len(members), dim)
            size, axes = np.linalg.eigh(np.einsum("ncd,ned->nce", d, d))
            root = axes[..., -rank:] * np.sqrt(np.maximum(size[:, None, -rank:], 0.0))
            bartlett = np.zeros((n, rank, rank))
            i, j = np.tril_indices(rank, -1)
            bartlett[:, i, j] = rng.standard_normal(size=(n, len(i)))
            diagonal = rng.chisquare(self.nu[k] - np.arange(rank), size=(n, rank))
            bartlett[:, np.arange(rank), np.arange(rank)] = np.sqrt(diagonal)
            common: Any = 0.0
            if not self.shared:  # |precision| |psi| is a product of chi-squares, the first of W's
                others = rng.chisquare(self.nu[k] - np.arange(1, dim), size=(n, dim - 1))
                log_det = np.log(diagonal[:, 0]) + np.log(others).sum(axis=1) - self._log_det[k]
                common = 0.5 * log_det[:, None] - dim / 2 * np.log(2 * np.pi)
            wide = bartlett.transpose(1, 2, 0).reshape(rank, rank * n)
            for m, c in enumerate(members):
                w = np.square(root[:, m] @ wide).reshape(len(x), rank, n).sum(axis=1)
                u = np.sqrt(self.kappa[c] * w.T)
                q = (np.square(z[:, c, None] + u) + rest[:, c, None]) / self.kappa[c]
                out[:, :, c] = common - 0.5 * q
        return out

    def _cgf_complete(self, x: Array, t: Array) -> Array:
        n_classes, dim = len(self.mu), self._dim
        whitened = [
            solve_triangular(
                self._factor[0 if self.shared else c], (x - self.mu[c]).T, lower=True
            ).T
            for c in range(n_classes)
        ]  # C arrays (n, D): their products are delta_c psi^-1 delta_d
        groups = [list(range(n_classes))] if self.shared else [[c] for c in range(n_classes)]

        def cell(rows: slice, t: Array) -> Array:
            out: Any = 0.0
            for k, members in enumerate(groups):
                z = np.stack([whitened[c][rows] for c in members], axis=1)
                gram = np.einsum("ncd,ned->nce", z, z)
                tg = t[..., members]
                total = tg.sum(axis=-1)
                kappa = self.kappa[members]
                tau = tg * kappa / (kappa + tg)
                out = (
                    out
                    + log_multigamma_difference(self.nu[k] / 2, total / 2, dim)
                    - total / 2 * (dim * np.log(np.pi) + self._log_det[k])
                    - dim / 2 * log1p(tg / kappa).sum(axis=-1)
                    - (self.nu[k] + total) / 2 * _log_det_plus_identity(tau, gram)
                )
            return out

        return cgf_by_rows(cell, len(x), n_classes * n_classes, t)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """w = Sigma^-1 mu for plug-ins with a shared covariance."""
        if theta is None:
            raise NotLinearError(
                "the posterior predictive is a multivariate Student t: even with one covariance "
                "its boundary is curved unless the classes have equal counts; a plug-in "
                "(method='posterior_mean', 'map' or 'mle') with a shared covariance is linear"
            )
        if not self.shared:
            raise NotLinearError(
                "each class has its own covariance, so the rule is quadratic; "
                "LinearDiscriminant is linear"
            )
        live, mu = self._live, np.asarray(theta["mu"])
        w = np.zeros(mu.shape)
        sigma = np.asarray(theta["Sigma"])[live[:, None], live]
        w[:, live] = np.linalg.solve(sigma, mu[:, live].T).T
        return w, -0.5 * (w * mu).sum(axis=-1)

    def log_odds_terms(
        self, X: Matrix, a: int, b: int, theta: Theta | None = None
    ) -> tuple[Array, Array]:
        r"""One covariance: w_j (x_j - midpoint of the means); else shares of the quadratic forms.

        With one covariance, :math:`w = \Sigma^{-1}(\mu_a - \mu_b)` and nothing is left over. Else
        feature j has :math:`-\tfrac12 u_j (\Sigma_a^{-1} u)_j` with u = x - mu_a, less the same of
        b: every product of two features is shared by them equally (their Shapley values). What
        remains is half the log-ratio of the determinants.
        """
        lead = () if theta is None else np.shape(theta["mu"])[:-2]
        out, rest = np.zeros((*lead, *X.shape)), np.zeros((*lead, X.shape[0]))
        for rows, columns in pattern_blocks(X, self._live):
            if not len(columns):
                continue
            part = self if len(columns) == self._dim else self.marginal(columns)
            x = dense_block(X, rows)[:, columns]
            if theta is None:
                terms, log_det = part._expected_terms(x - part.shift, a, b)
            else:
                mu, sigma = np.asarray(theta["mu"]), np.asarray(theta["Sigma"])
                mu, sigma = mu[..., columns], sigma[..., columns[:, None], columns]
                terms, log_det = _terms_given(
                    x, mu[..., a, :], mu[..., b, :], sigma, a, b, self.shared
                )
            at = np.arange(X.shape[0])[rows]
            out[..., at[:, None], columns] = terms
            rest[..., at] = log_det[..., None]
        return out, rest

    def rest_cgf(self, X: Matrix, t: Array) -> Array:
        """Of half the log determinant of each class's precision, over the observed columns."""
        if self.shared:
            return np.zeros((len(t), X.shape[0]), dtype=t.dtype)
        out = np.zeros((len(t), X.shape[0]), dtype=t.dtype)
        for rows, columns in pattern_blocks(X, self._live):
            part, dim = self.marginal(columns), len(columns)
            for c in range(len(self.mu)):
                tc = t[:, 0, c]
                own = log_multigamma_difference(part.nu[c] / 2, tc / 2, dim)
                own = own + tc / 2 * (dim * np.log(2) - part._log_det[c])
                out[:, rows] += own[:, None]
        return out

    def _expected_terms(self, x: Array, a: int, b: int) -> tuple[Array, Array]:
        """(n, D) and () expectations of the terms of complete rows x, minus shift."""
        if self.shared:
            inverse = cho_solve((self._factor[0], True), np.eye(self._dim))
            w = self.nu[0] * inverse @ (self.mu[a] - self.mu[b])
            level = -0.5 * (1 / self.kappa[a] - 1 / self.kappa[b])
            return w * (x - (self.mu[a] + self.mu[b]) / 2) + level, np.zeros(())
        terms, log_det = [], []
        for c in (a, b):
            u = x - self.mu[c]
            solved = cho_solve((self._factor[c], True), u.T).T
            terms.append(-0.5 * (self.nu[c] * u * solved + 1 / self.kappa[c]))
            halves = (self.nu[c] - np.arange(self._dim)) / 2
            log_det.append(0.5 * (digamma(halves).sum() - self._log_det[c]))
        return terms[0] - terms[1], np.asarray(log_det[0] - log_det[1])

    def information(self, theta: Theta, weights: Array) -> Array:
        """(D,) of each feature on its own (its Normal margins), in nats; 0 where ignored."""
        mu = np.asarray(theta["mu"])
        variances = np.diagonal(theta["Sigma"], axis1=-2, axis2=-1)
        out = gaussian_information(mu, np.broadcast_to(variances, mu.shape), weights)
        return np.where(self.ignored, 0.0, out)

    def margins(self) -> ConjugateFamily:
        """Normal-inverse-gamma."""
        return margins.of_family(self)

    def margin_stats(self, stats: ScatterStats) -> Stats:
        """Counts, means and scatters of the columns."""
        return margins.of_stats(stats)

    def scaled(self, factors: Mapping[str, float]) -> Self:
        """As in `ConjugateFamily`; nu is scaled above its limit D - 1."""
        out = super().scaled({k: f for k, f in factors.items() if k != "nu"})
        limit = self._dim - 1
        return replace(out, nu=limit + (self.nu - limit) * factors.get("nu", 1.0))


def _terms_given(
    x: Array, mu_a: Array, mu_b: Array, sigma: Array, a: int, b: int, shared: bool
) -> tuple[Array, Array]:
    """(..., n, D) and (...) terms of complete rows under theta."""
    if shared:
        w = np.linalg.solve(sigma, (mu_a - mu_b)[..., None])[..., 0]
        terms = w[..., None, :] * (x - (mu_a + mu_b)[..., None, :] / 2)
        return terms, np.zeros(mu_a.shape[:-1])
    terms, log_det = [], []
    for mu, own in ((mu_a, sigma[..., a, :, :]), (mu_b, sigma[..., b, :, :])):
        u = x - mu[..., None, :]
        solved = np.swapaxes(np.linalg.solve(own, np.swapaxes(u, -1, -2)), -1, -2)
        terms.append(-0.5 * u * solved)
        log_det.append(-0.5 * np.linalg.slogdet(own)[1])
    return terms[0] - terms[1], log_det[0] - log_det[1]


def _scale_matrices(psi: Any, groups: int, n_features: int) -> Array:
    """psi as (groups, D, D) symmetric matrices."""
    value = np.asarray(psi, dtype=np.float64)
    if value.ndim <= 1:
        diagonal = broadcast_prior("psi0", value, (n_features,))
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


def _cholesky(sigma: Array) -> tuple[Array, Array]:
    """Lower factors of matrices (S, G, D, D), and (S,) whether all G are positive definite.

    Where they are not the factor is the identity.
    """
    try:
        return np.linalg.cholesky(sigma), np.ones(len(sigma), dtype=bool)
    except np.linalg.LinAlgError:
        pass
    factor = np.broadcast_to(np.eye(sigma.shape[-1]), sigma.shape).copy()
    inside = np.zeros(len(sigma), dtype=bool)
    for s, matrices in enumerate(sigma):
        try:
            factor[s] = np.linalg.cholesky(matrices)
            inside[s] = True
        except np.linalg.LinAlgError:
            continue
    return factor, inside


def _log_det_plus_identity(tau: Array, gram: Array) -> Array:
    """log det(I + diag(tau) G), tau (..., n, k), G (n, k, k) positive semi-definite.

    Summed over eigenvalues: each 1 + lambda stays in the right half plane for imaginary t, so
    principal logarithms add up to the continuous branch; the log of the determinant would not.
    """
    used = np.flatnonzero(tau.reshape(-1, tau.shape[-1]).any(axis=0))
    if len(used) < tau.shape[-1]:
        tau, gram = tau[..., used], gram[:, used[:, None], used]
    if len(used) <= 1:  # none: the sum is 0
        return log1p((tau * np.diagonal(gram, axis1=1, axis2=2)).sum(axis=-1))
    if len(used) == 2 and np.iscomplexobj(tau):  # the log-odds of two classes: 50 times faster
        half = (tau[..., 0] * gram[:, 0, 0] + tau[..., 1] * gram[:, 1, 1]) / 2
        det = gram[:, 0, 0] * gram[:, 1, 1] - gram[:, 0, 1] ** 2
        root = np.sqrt(half * half - tau[..., 0] * tau[..., 1] * det)
        root = np.where((half.conj() * root).real < 0, -root, root)
        larger = half + root  # no cancellation; the other by the product of both
        with np.errstate(invalid="ignore", divide="ignore"):
            smaller = tau[..., 0] * tau[..., 1] * det / larger
        return log1p(larger) + np.where(larger == 0, 0.0, log1p(smaller))
    product = tau[..., :, None] * gram
    if np.iscomplexobj(tau):
        return log1p(np.linalg.eigvals(product)).sum(axis=-1)
    sign, log_det = np.linalg.slogdet(np.eye(tau.shape[-1]) + product)
    return np.where(sign > 0, log_det, np.nan)
