r"""Classes of several clusters: x | y=c is a mixture of K_c Normals.

.. math:: p(x \mid y = c) = \sum_{k=1}^{K_c} w_{ck}\,
          \text{Normal}(x \mid \mu_{ck}, \Sigma_{ck}), \quad
          \Sigma_{ck} = \text{diag}(\sigma_{ck})\, \Omega_{ck}\, \text{diag}(\sigma_{ck})

          w_c \sim \text{Dirichlet}(a, \ldots, a), \quad
          \mu_{ckj} \sim \text{Normal}(m_j, 10 s_j^2), \quad
          \sigma_{ckj}^2 = r_{ckj}^2 + h_j^2 / 12, \quad
          \log r_{ckj} \sim \text{Normal}(\log s_j, 1), \quad
          \Omega_{ck} \sim \text{LKJ}(\eta)

m and s are the median of a column and its spread about the class medians. Which cluster a row is of
is summed out. Prefer it to the discriminants where a class has several kinds of members.

h is the step in which a column is recorded, the median gap between the values that occur: rounding
has a variance of h^2/12, which no cluster can fall below. Without it n equal values, as in all data
of few digits, draw a cluster into one point: the likelihood grows as sigma^-n, and a log-Normal
prior gives way down to e^-n of the scale. 29 of the 50 setosas of iris have petals 0.2 cm wide.
Where no two values are equal h is 0.

a is 10. If a class has fewer clusters than it is given, those to spare are left without rows where
a is small (mode after mode, with parameters that follow their priors), and coincide with others
where it is large.

The likelihood does not tell the clusters of a class apart: every posterior has K_c! copies of each
of its modes, and a chain may go from one to another. Densities of rows do not depend on the order.
Parameters of single clusters do, so that chains are compared by the densities of training rows.

Source: Diebolt and Robert (1994), Estimation of finite mixture distributions through Bayesian
sampling; Rousseau and Mengersen (2011), Asymptotic behaviour of the posterior distribution in
overfitted mixture models (a); Hastie and Tibshirani (1996), Discriminant analysis by Gaussian
mixtures; Stephens (2000), Dealing with label switching in mixture models.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.errors import refuse_not_positive, refuse_unknown
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CHAIN, CLASS, COMPONENT, DRAW, FEATURE, FEATURE_BIS
from bayesgen.families.records import Hyperparameter, PriorObject, array, prior_object
from bayesgen.families.shared import gaussian, pymc_parts
from bayesgen.families.shared.gaussian import (
    log_normal_of_draws,
    recorded_step,
    robust_location_and_scale,
)
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, log_sum_exp

_CHECKED_ROWS = 100  # whose densities chains are compared by


@dataclass(frozen=True, eq=False)
class GaussianMixture(Family):
    """Mixtures of Normals, as many in each class as it needs; missing cells integrated out.

    Parameters
    ----------
    mu, sigma : prior objects, optional
        Of the means and scales (class, component, feature), in the unit of the feature. None: the
        default above. A prior of sigma that is given is taken as it is, without the floor.
    location, scale, resolution : array (feature,), optional
        m, s and h of the default priors. None: from the rows.
    concentration : array (class, component), optional
        Of the Dirichlet priors of the weights; 0 is padding: no cluster. None: `component_alpha`
        for as many as `n_components` says.
    n_components : int or one int per class
    component_alpha : float, > 0
    eta : float, > 0
        Shape of the LKJ prior.
    covariance : {"full", "diagonal"}
    """

    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian mixture"
    sums_rows: ClassVar[bool] = True

    mu: PriorObject = prior_object()
    sigma: PriorObject = prior_object()
    location: Hyperparameter = array(FEATURE, default=None)
    scale: Hyperparameter = array(FEATURE, default=None)
    resolution: Hyperparameter = array(FEATURE, default=None)
    concentration: Hyperparameter = array(CLASS, COMPONENT, default=None)
    n_components: Any = 2
    component_alpha: float = 10.0
    eta: float = 2.0
    covariance: str = "full"

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``weight`` of the clusters; ``mu``, ``sigma``, ``correlation``: their Normals."""
        each = (CLASS, COMPONENT)
        dims_of: dict[str, tuple[str, ...]] = {
            "weight": each,
            "mu": (*each, FEATURE),
            "sigma": (*each, FEATURE),
        }
        if self.covariance == "full":
            dims_of["correlation"] = (*each, FEATURE, FEATURE_BIS)
        return dims_of

    def coords(self) -> dict[str, Any]:
        """Return the clusters, counted from 0."""
        n = 1 if self.concentration is None else np.shape(self.concentration)[1]
        return {COMPONENT: np.arange(n)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Return equal and unequal numbers of clusters; coarse columns of other units, and fine."""
        unit = np.exp2(np.arange(n_features))
        sizes = [1 + c % 2 for c in range(n_classes)]
        return [
            cls(
                location=unit - 2,
                scale=unit,
                resolution=step * unit,
                n_components=k,
                covariance=covariance,
            )._sized(n_classes)
            for k, covariance, step in ((2, "full", 1.0), (sizes, "diagonal", 0.0))
        ]

    def _sized(self, n_classes: int) -> Self:
        """Fill in `concentration`."""
        if self.concentration is not None:
            return self
        asked = np.asarray(self.n_components)
        if asked.dtype.kind not in "iu" or asked.ndim > 1 or np.any(asked < 1):
            raise ValueError(
                f"n_components must be an integer >= 1, or one for each class, got "
                f"{self.n_components!r}"
            )
        if asked.ndim and len(asked) != n_classes:
            raise ValueError(
                f"n_components has {len(asked)} entries, but there are {n_classes} classes"
            )
        sizes = np.broadcast_to(asked, n_classes)
        real = np.arange(sizes.max()) < sizes[:, None]
        plain = asked.tolist()  # numbers that JSON can hold
        concentration = np.where(real, float(self.component_alpha), 0.0)
        return replace(self, concentration=concentration, n_components=plain)

    @property
    def sizes(self) -> Array:
        """Return (C,) numbers of clusters."""
        return np.asarray((np.asarray(self.concentration) > 0).sum(axis=1))

    # -- density -----------------------------------------------------------------------------

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) log of the weighted sum over the clusters."""
        flat, lead = self._flat(theta)
        n_draws, n_classes, n_components, dim = flat["mu"].shape
        log_density = np.empty((n_draws, X.shape[0], n_classes))
        for draws in row_blocks(n_draws, X.shape[0] * n_classes * n_components):
            some = {name: value[draws] for name, value in flat.items()}
            mu = some["mu"].reshape(-1, n_classes * n_components, dim)
            sigma = self._covariances(some).reshape(-1, n_classes * n_components, dim, dim)
            log_x = log_normal_of_draws(X, mu, sigma, np.arange(dim))
            with np.errstate(divide="ignore"):  # a weight of 0 is padding
                log_weight = np.log(some["weight"])[:, None]
            shape = (*log_x.shape[:2], n_classes, n_components)
            log_joint = log_x.reshape(shape) + log_weight
            log_density[draws] = log_sum_exp(log_joint)
        empty = np.isnan(np.asarray(X, dtype=np.float64)).all(axis=1)
        log_density[:, empty] = 0.0  # not the log of a sum of weights
        return log_density.reshape(*lead, *log_density.shape[1:])

    def _flat(self, theta: Theta) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Draws along one axis, and the axes that they had."""
        arrays = {k: np.asarray(theta[k], dtype=np.float64) for k in self.params}
        lead = arrays["weight"].shape[:-2]
        n = math.prod(lead)
        return {k: v.reshape(n, *v.shape[len(lead) :]) for k, v in arrays.items()}, lead

    def _covariances(self, theta):
        """Return (..., D, D); arrays or tensors."""
        sigma = theta["sigma"]
        if self.covariance == "diagonal":
            eye = np.eye(np.size(self.scale) if self.scale is not None else sigma.shape[-1])
            return (sigma * sigma)[..., None] * eye
        return sigma[..., :, None] * theta["correlation"] * sigma[..., None, :]

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) rows, each of a cluster of its class."""
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.rows_of(theta, "weight", y))
        k = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), axis=1)
        cluster = {name: self.rows_of(theta, name, y)[np.arange(len(y)), k] for name in self.params}
        z = rng.standard_normal(cluster["mu"].shape)
        if self.covariance == "full":
            z = (np.linalg.cholesky(cluster["correlation"]) @ z[..., None])[..., 0]
        return np.asarray(cluster["mu"] + cluster["sigma"] * z)

    # -- fit ---------------------------------------------------------------------------------

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Median of each column, spread about the class medians, and step of its values."""
        refuse_not_positive(component_alpha=self.component_alpha, eta=self.eta)
        refuse_unknown("covariance", self.covariance, ("full", "diagonal"))
        location, scale = robust_location_and_scale(X, y)
        step = recorded_step(X, scale, weight)
        return self._sized(n_classes).filled(location=location, scale=scale, resolution=step)

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y=None,
        stats=None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Dirichlet weights as shares of Gammas, Normal means, log-Normal scales, LKJ correlations.

        ``mu_raw`` is mu in units of s about m, ``sigma_raw`` is r, sigma without the rounding.
        Clusters that a class has not follow their priors, with a weight of 0.
        """
        import pymc as pm

        prior = pymc_parts.declare(self, "prior", prefix)
        m, s = prior["location"], prior["scale"]
        theta = {"weight": self._declare_weights(prefix, prior["concentration"])}
        theta["mu"] = pymc_parts.declare_location(self, prefix, m, s)
        theta["sigma"] = pymc_parts.scale_above_rounding(self, prefix, s, prior["resolution"])
        if self.covariance == "full":
            theta["correlation"] = pymc_parts.declare_correlation(self, prefix)
        if X is not None and not summed:
            self._observe(prefix, np.asarray(X, dtype=np.float64), y, theta)
        elif X is not None:
            codes, X = y.get_value(), np.asarray(X, dtype=np.float64)
            terms = [
                self._log_mixture(X[codes == c], theta, int(c), f"{prefix}rows{c}").sum()
                for c in np.unique(codes)
            ]
            pm.Potential(f"{prefix}x", sum(terms))
        return theta

    def _observe(self, prefix: str, X: Array, y, theta) -> None:
        """Rows as they are, each of a cluster of its class."""
        import pymc as pm
        import pytensor.tensor as pt

        def draw(y, weight, mu, sigma, size):
            k = pm.Categorical.dist(p=weight[y], size=y.shape if size is None else size)
            return pm.MvNormal.dist(mu[y, k], sigma[y, k], size=size)

        def log_likelihood(x, seen, weight, mu, sigma):
            columns = []
            for c, k in enumerate(self.sizes):
                log_x = gaussian.log_density_of_cells(x, seen, mu[c, :k], sigma[c, :k])
                columns.append(pt.logsumexp(log_x + pt.log(weight[c, :k]), axis=1))
            return pt.stack(columns, axis=1)

        pymc_parts.observe_rows(
            prefix,
            X,
            y,
            "NormalMixture",
            draw,
            log_likelihood,
            "(c,k),(c,k,d),(c,k,d,d)->(d)",
            theta["weight"],
            theta["mu"],
            self._covariances(theta),
        )

    def _declare_weights(self, prefix: str, concentration):
        import pymc as pm
        import pytensor.tensor as pt

        dims = pymc_parts.prefixed(prefix, self.params["weight"])
        real = np.asarray(self.concentration) > 0
        shape = pt.switch(real, concentration, 1.0)
        share = real * pm.Gamma(f"{prefix}weight_raw", shape, 1.0, dims=dims)
        return pm.Deterministic(
            f"{prefix}weight", share / share.sum(axis=1, keepdims=True), dims=dims
        )

    def _log_mixture(self, X: Array, theta, c: int, name: str):
        """Return (N,) tensor of log densities of rows in class c."""
        import pytensor.tensor as pt

        k = int(self.sizes[c])
        sigma = self._covariances({name: value[c, :k] for name, value in theta.items()})
        log_x = gaussian.log_density(X, theta["mu"][c, :k], sigma, name)
        return pt.logsumexp(log_x + pt.log(theta["weight"][c, :k]), axis=1)

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Log of the weighted sum over the clusters of each class."""
        import pytensor.tensor as pt

        X = np.asarray(X, dtype=np.float64)
        classes = range(len(self.sizes))
        columns = [self._log_mixture(X, theta, c, f"{prefix}rows{c}") for c in classes]
        return pt.stack(columns, axis=1)

    # -- chains ------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator, X: Matrix, y: Array) -> dict[str, Array]:
        """Near the clusters that k-means finds in each class."""
        X = (np.asarray(X, dtype=np.float64) - self.location) / self.scale
        n_classes, n_components = np.shape(self.concentration)
        dim = X.shape[1]
        mu, sigma = np.zeros((n_classes, n_components, dim)), np.ones((n_classes, 1, 1))
        weight = np.ones((n_classes, n_components))
        for c, k in enumerate(self.sizes):
            x = X[(y == c) & ~np.isnan(X).all(axis=1)]
            if len(x):
                mu[c, :k], weight[c, :k], sigma[c] = _clusters(x, int(k))
        mu += 0.1 * sigma * rng.standard_normal(mu.shape)
        sigma = sigma * np.exp(0.1 * rng.standard_normal(mu.shape))
        values = {
            "mu": self.location + self.scale * mu,  # of a prior that was given
            "mu_raw": mu,
            "sigma": self.scale * sigma,
            "sigma_raw": self.scale * sigma,
            "weight_raw": weight * np.exp(0.1 * rng.standard_normal(weight.shape)),
        }
        if self.covariance == "full" and dim > 1:
            noise = 0.05 * rng.standard_normal((n_classes, n_components, dim, dim))
            factor = np.tril(noise, -1) + np.eye(dim)
            values["correlation_factor"] = factor / np.linalg.norm(factor, axis=-1, keepdims=True)
        return values

    def row_densities(
        self, theta: Theta, X: Matrix, y: Array
    ) -> dict[str, tuple[tuple[str, ...], Array]]:
        """Log densities of some training rows in their classes: what chains must agree on."""
        labelled = np.flatnonzero(y >= 0)
        chosen = labelled[:: max(1, math.ceil(len(labelled) / _CHECKED_ROWS))]
        log_density = self.log_likelihood(np.asarray(X, dtype=np.float64)[chosen], theta)
        own_class = log_density[..., np.arange(len(chosen)), y[chosen]]
        return {"log_density": ((CHAIN, DRAW, "checked_row"), own_class)}


def _clusters(x: Array, k: int) -> tuple[Array, Array, float]:
    """Means (k, D) by k-means, numbers of rows (k,) + 1, and the root mean square distance."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    x = np.where(np.isnan(x), np.nanmean(x, axis=0, where=~np.isnan(x).all(axis=0)), x)
    x = np.nan_to_num(x)  # a column without cells
    x = np.resize(x, (max(len(x), k), x.shape[1]))  # few rows are repeated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        means = KMeans(k, n_init=10, random_state=0).fit(x)
    number = np.bincount(means.labels_, minlength=k)
    width = np.sqrt(means.inertia_ / x.size)
    return means.cluster_centers_, number + 1.0, max(float(width), 0.05)
