r"""Correlated real features, scales and correlations apart: x | y=c ~ Normal(mu_c, Sigma_c).

.. math:: \Sigma_c = \text{diag}(\sigma_c)\, \Omega_c\, \text{diag}(\sigma_c), \quad
          \mu_{cj} \sim \text{Normal}(m_j, 10 s_j^2), \quad
          \sigma_{cj} \sim \text{HalfNormal}(2.5 s_j), \quad \Omega_c \sim \text{LKJ}(\eta)

m and s are the median of a column and its spread about the class medians. An inverse Wishart prior
has one number, its degrees of freedom, for how sure it is of all scales and all correlations, ties
large variances to strong correlations, and ties the prior of a mean to the covariance. Here each is
said by itself. Prefer it to the conjugate discriminants where the scales of the features or of the
classes differ by much and there are few rows per class, or where something is known of scales or
means.

Source: Barnard, McCulloch and Meng (2000), Modeling covariance matrices in terms of standard
deviations and correlations; Lewandowski, Kurowicka and Joe (2009) (prior of Omega); Stan User's
Guide, multivariate priors for hierarchical models.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, DENSITY, FEATURE, FEATURE_BIS
from bayesgen.families.records import array, prior_object
from bayesgen.families.shared import gaussian, pymc_parts
from bayesgen.families.shared.gaussian import log_normal_of_draws, robust_location_and_scale
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class LKJNormal(Family):
    """Normal features with full covariance, per class or shared; missing cells integrated out.

    Parameters
    ----------
    mu, sigma : prior objects, optional
        Of the means (class, feature), and of the scales (class, feature), (feature,) if shared, in
        the unit of the feature. None: the default above.
    location, scale : array (feature,), optional
        m and s of the default priors. None: from the rows.
    eta : float, > 0
        Shape of the LKJ prior: 1 is uniform over correlation matrices, more is closer to none.
    shared : bool
        One covariance for all classes.
    """

    describes: ClassVar[str] = DENSITY
    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian"
    sums_rows: ClassVar[bool] = True

    mu: Any = prior_object()
    sigma: Any = prior_object()
    location: Any = array(FEATURE, default=None)
    scale: Any = array(FEATURE, default=None)
    eta: float = 2.0
    shared: bool = False

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``: means; ``sigma``: standard deviations; ``correlation``: matrices."""
        group = self._group
        return {
            "mu": (CLASS, FEATURE),
            "sigma": (*group, FEATURE),
            "correlation": (*group, FEATURE, FEATURE_BIS),
        }

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """A covariance per class and one for all, of columns with different units."""
        unit = np.exp2(np.arange(n_features))
        return [cls(location=unit - 2, scale=unit, shared=shared) for shared in (False, True)]

    @property
    def _group(self) -> tuple[str, ...]:
        return () if self.shared else (CLASS,)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) Normal log densities of the observed cells of each row."""
        mu = np.asarray(theta["mu"], dtype=np.float64)
        Sigma = self._covariance({k: np.asarray(v, np.float64) for k, v in theta.items()})
        *lead, n_classes, n_features = mu.shape
        n = math.prod(lead)
        Sigma = Sigma.reshape(n, *Sigma.shape[-3:])
        mu = mu.reshape(n, n_classes, n_features)
        out = log_normal_of_draws(X, mu, Sigma, np.arange(n_features))
        return out.reshape(*lead, *out.shape[1:])

    def _covariance(self, theta: Any) -> Any:
        """(..., C, D, D), or (..., 1, D, D); arrays or tensors."""
        sigma, omega = theta["sigma"], theta["correlation"]
        Sigma = sigma[..., :, None] * omega * sigma[..., None, :]
        return Sigma[..., None, :, :] if self.shared else Sigma

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) Normal rows."""
        mean, sigma = self.rows_of(theta, "mu", y), self.rows_of(theta, "sigma", y)
        factor = np.linalg.cholesky(self.rows_of(theta, "correlation", y))
        z = rng.standard_normal((len(y), mean.shape[-1]))
        return np.asarray(mean + sigma * (factor @ z[..., None])[..., 0])

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Median and spread about the class medians of each column.

        Raises
        ------
        ValueError
            If, under the default prior, the posterior would have no finite integral: a column
            that does not vary within a class (or, if shared, within any), or columns that are
            linear functions of others.
        """
        if not self.eta > 0:
            raise ValueError(f"eta must be > 0, got {self.eta!r}")
        if self.sigma is None:
            self._refuse_degenerate(np.asarray(X, dtype=np.float64), y, n_classes)
        location, scale = robust_location_and_scale(X, y)
        return self.filled(location=location, scale=scale)

    def _refuse_degenerate(self, X: Array, y: Array, n_classes: int) -> None:
        """Raise where the likelihood grows without bound at scales of 0 or correlations of 1."""
        known = y >= 0
        residual = X[known] - _class_means(X[known], y[known], n_classes)[0][y[known]]
        groups = [residual]
        if not self.shared:
            groups = [residual[y[known] == c] for c in range(n_classes)]
        for c, x in enumerate(groups):
            where = "within every class" if self.shared else f"within class {c} (counted from 0)"
            several = (~np.isnan(x)).sum(axis=0) > (n_classes if self.shared else 1)
            span = np.nan_to_num(np.abs(x)).max(axis=0, initial=0.0)
            flat = several & (span <= 1e-12 * np.nan_to_num(np.abs(X)).max(axis=0, initial=0.0))
            if flat.any():
                raise ValueError(
                    f"feature {int(flat.argmax())} (counted from 0) does not vary {where}: under a "
                    "half-Normal prior its scale would be 0. Leave the column out, give a prior "
                    "that keeps away from 0 (sigma=pm.LogNormal.dist(...)), or use "
                    "LinearDiscriminant"
                )
            x = x[~np.isnan(x).any(axis=1)]
            if len(x) > x.shape[1] + (n_classes if self.shared else 1):
                unit = np.linalg.svd(x / np.sqrt(np.square(x).sum(axis=0)), compute_uv=False)
                if unit[-1] < 1e-7 * unit[0]:
                    raise ValueError(
                        f"columns are linear functions of each other {where}: no LKJ prior makes "
                        "their covariance proper. Leave one of them out, or use LinearDiscriminant "
                        "or QuadraticDiscriminant"
                    )

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
        summed: bool = False,
    ) -> dict[str, Any]:
        r"""Normal means, half-Normal scales, LKJ correlations in partial correlations.

        Where rows are summed, the means of the default prior are sampled as their distance from
        the class's mean row, ``mu_white`` :math:`= (\mu_{cj} - \bar x_{cj}) \sqrt{n_c} /
        \sigma_{cj}`: with few rows a mean is as uncertain as its scale says. The rows of each class
        and pattern of missing cells are then replaced by at most 2D points that no Normal can tell
        from them (`gaps.sigma_points`).
        """
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        m, s = prior["location"], prior["scale"]
        dims = {name: pymc_parts.prefixed(prefix, d) for name, d in self.params.items()}
        codes = y.get_value() if summed and X is not None else None
        sigma = pymc_parts.parameter(
            self, prefix, "sigma", lambda sigma, dims: pm.HalfNormal(sigma, 2.5 * s, dims=dims)
        )
        correlation = pymc_parts.declare_correlation(self, prefix)
        if codes is None or self.mu is not None:
            mu = pymc_parts.declare_location(self, prefix, m, s)
        else:
            n_classes = len(pm.modelcontext(None).coords[CLASS])
            centre, count = _class_means(np.asarray(X, dtype=np.float64), codes, n_classes)
            seen = count > 0
            numbers = {
                "centre": np.where(seen, centre, self.location),
                "root_count": np.sqrt(np.maximum(count, 1.0)),
                "has_rows": seen * 1.0,
            }
            centre, root, has_rows = (
                pymc_parts.container(f"{prefix}{k}", v, dims["mu"]) for k, v in numbers.items()
            )
            tau = np.sqrt(10.0) * s
            unit = pt.switch(has_rows, sigma / root, tau)
            name = f"{prefix}mu_white"
            white = pm.Normal(name, (m - centre) / unit, tau / unit, dims=dims["mu"])
            mu = pm.Deterministic(f"{prefix}mu", centre + unit * white, dims=dims["mu"])
        theta = {"mu": mu, "sigma": sigma, "correlation": correlation}
        if codes is None and X is not None:
            self._observe(prefix, X, y, theta)
        elif codes is not None:
            Sigma, terms = self._covariance(theta), []
            for c in np.unique(codes):
                own = np.asarray(X, dtype=np.float64)[codes == c]
                points, weight = gaussian.sigma_points(own, np.ones(len(own)))
                group = slice(0, 1) if self.shared else slice(c, c + 1)
                density = gaussian.log_density(
                    points, mu[c : c + 1], Sigma[group], f"{prefix}rows{c}"
                )
                terms.append((pm.Data(f"{prefix}rows{c}_weight", weight) * density[:, 0]).sum())
            pm.Potential(f"{prefix}x", sum(terms))
        return theta

    def _observe(self, prefix: str, X: Matrix, y: Any, theta: Any) -> None:
        """Rows as they are."""
        import pymc as pm

        def draw(y: Any, mu: Any, sigma: Any, size: Any) -> Any:
            return pm.MvNormal.dist(mu[y], sigma[0 * y if self.shared else y], size=size)

        density, params = gaussian.log_density_of_cells, (theta["mu"], self._covariance(theta))
        pymc_parts.observe_rows(
            prefix, X, y, "MvNormal", draw, density, "(c,d),(g,d,d)->(d)", *params
        )

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Normal densities of the observed cells; the others are integrated out."""
        X = np.asarray(X, dtype=np.float64)
        return gaussian.log_density(X, theta["mu"], self._covariance(theta), f"{prefix}rows")


def _class_means(X: Array, codes: Array, n_classes: int) -> tuple[Array, Array]:
    """Means and numbers of the observed cells, (C, D); the mean of none is NaN."""
    indicator = np.equal.outer(np.arange(n_classes), codes).astype(np.float64)
    seen = ~np.isnan(X)
    count = indicator @ seen
    total = indicator @ np.where(seen, X, 0.0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), count
