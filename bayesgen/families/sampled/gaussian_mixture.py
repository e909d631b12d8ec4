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
where it is large: with a = 2 a chain for penguins took five times as many steps for a draw.

The likelihood does not tell the clusters of a class apart: every posterior has K_c! copies of each
of its modes. Predictions do not depend on that. Summaries do, so that after sampling the clusters
of every draw are renumbered (`GaussianMixture.relabelled`). A constraint on the order of the
means, the alternative, cuts the posterior where clusters overlap, and needs a direction.

Source: Diebolt and Robert (1994), Estimation of finite mixture distributions through Bayesian
sampling; Rousseau and Mengersen (2011), Asymptotic behaviour of the posterior distribution in
overfitted mixture models (a); Hastie and Tibshirani (1996), Discriminant analysis by Gaussian
mixtures.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit

from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, COMPONENT, DENSITY, FEATURE, FEATURE_BIS
from bayesgen.families.records import array, prior_object
from bayesgen.families.shared import gaussian, pymc_parts
from bayesgen.families.shared.gaussian import (
    log_normal_of_draws,
    recorded_step,
    robust_location_and_scale,
)
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, log_softmax, log_sum_exp

_ROWS = 200  # of a class, by which clusters are distinguished


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

    describes: ClassVar[str] = DENSITY
    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "gaussian mixture"
    sums_rows: ClassVar[bool] = True

    mu: Any = prior_object()
    sigma: Any = prior_object()
    location: Any = array(FEATURE, default=None)
    scale: Any = array(FEATURE, default=None)
    resolution: Any = array(FEATURE, default=None)
    concentration: Any = array(CLASS, COMPONENT, default=None)
    n_components: Any = 2
    component_alpha: float = 10.0
    eta: float = 2.0
    covariance: str = "full"

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``weight`` of the clusters; ``mu``, ``sigma``, ``correlation``: their Normals."""
        each = (CLASS, COMPONENT)
        out: dict[str, tuple[str, ...]] = {
            "weight": each,
            "mu": (*each, FEATURE),
            "sigma": (*each, FEATURE),
        }
        if self.covariance == "full":
            out["correlation"] = (*each, FEATURE, FEATURE_BIS)
        return out

    def identified(self, theta: Theta) -> dict[str, tuple[tuple[str, ...], Array]]:
        """Each parameter of a class's clusters from the smallest to the largest, one by one."""
        out = {}
        for name, dims in self.params.items():
            value = np.array(theta[name], dtype=np.float64)
            axis = dims.index(COMPONENT) - len(dims)
            for c, k in enumerate(self.sizes):
                own: Any = (..., c, slice(0, k), *(slice(None),) * (-1 - axis))
                value[own] = np.sort(value[own], axis=axis)
            out[name] = (dims, value)
        return out

    def coords(self) -> dict[str, Any]:
        """The clusters, counted from 0."""
        n = 1 if self.concentration is None else np.shape(self.concentration)[1]
        return {COMPONENT: np.arange(n)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """As many clusters in every class, and not; coarse columns of different units, and fine."""
        unit = np.exp2(np.arange(n_features))
        own = [1 + c % 2 for c in range(n_classes)]
        return [
            cls(
                location=unit - 2,
                scale=unit,
                resolution=step * unit,
                n_components=k,
                covariance=covariance,
            )._sized(n_classes)
            for k, covariance, step in ((2, "full", 1.0), (own, "diagonal", 0.0))
        ]

    def _sized(self, n_classes: int) -> Self:
        """With `concentration` filled in."""
        if self.concentration is not None:
            return self
        given = np.asarray(self.n_components)
        if given.dtype.kind not in "iu" or given.ndim > 1 or np.any(given < 1):
            raise ValueError(
                f"n_components must be an integer >= 1, or one for each class, got "
                f"{self.n_components!r}"
            )
        if given.ndim and len(given) != n_classes:
            raise ValueError(
                f"n_components has {len(given)} entries, but there are {n_classes} classes"
            )
        sizes = np.broadcast_to(given, n_classes)
        real = np.arange(sizes.max()) < sizes[:, None]
        plain = given.tolist()  # numbers that JSON can hold
        concentration = np.where(real, float(self.component_alpha), 0.0)
        return replace(self, concentration=concentration, n_components=plain)

    @property
    def sizes(self) -> Array:
        """(C,) numbers of clusters."""
        return np.asarray((np.asarray(self.concentration) > 0).sum(axis=1))

    # -- density -----------------------------------------------------------------------------

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """(..., N, C) log of the weighted sum over the clusters."""
        flat, lead = self._flat(theta)
        n_classes, n_components = flat["weight"].shape[1:]
        out = np.empty((len(flat["weight"]), X.shape[0], n_classes))
        for draws in row_blocks(len(out), X.shape[0] * n_classes * n_components):
            out[draws] = log_sum_exp(self._log_joint(X, {k: v[draws] for k, v in flat.items()}))
        empty = np.isnan(X).all(axis=1) if X.dtype.kind == "f" else np.zeros(len(X), dtype=bool)
        out[:, empty] = 0.0  # not the log of a sum of weights
        return out.reshape(*lead, *out.shape[1:])

    def _log_joint(self, X: Matrix, flat: dict[str, Array]) -> Array:
        """(S, N, C, K) log weight plus log density of each cluster; -inf in the padding."""
        weight, mu = flat["weight"], flat["mu"]
        n, n_classes, n_components, dim = mu.shape
        sigma = self._covariances(flat).reshape(n, -1, dim, dim)
        found = log_normal_of_draws(X, mu.reshape(n, -1, dim), sigma, np.arange(dim))
        with np.errstate(divide="ignore"):
            log_weight = np.log(weight)
        return found.reshape(n, -1, n_classes, n_components) + log_weight[:, None]

    def _flat(self, theta: Theta) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Draws along one axis, and the axes that they had."""
        arrays = {k: np.asarray(theta[k], dtype=np.float64) for k in self.params}
        lead = arrays["weight"].shape[:-2]
        n = math.prod(lead)
        return {k: v.reshape(n, *v.shape[len(lead) :]) for k, v in arrays.items()}, lead

    def _covariances(self, theta: Any) -> Any:
        """(..., D, D); arrays or tensors."""
        sigma = theta["sigma"]
        if self.covariance == "diagonal":
            eye = np.eye(np.size(self.scale) if self.scale is not None else sigma.shape[-1])
            return (sigma * sigma)[..., None] * eye
        return sigma[..., :, None] * theta["correlation"] * sigma[..., None, :]

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) rows, each of a cluster of its class."""
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.rows_of(theta, "weight", y))
        k = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), axis=1)
        own = {name: self.rows_of(theta, name, y)[np.arange(len(y)), k] for name in self.params}
        z = rng.standard_normal(own["mu"].shape)
        if self.covariance == "full":
            z = (np.linalg.cholesky(own["correlation"]) @ z[..., None])[..., 0]
        return np.asarray(own["mu"] + own["sigma"] * z)

    # -- fit ---------------------------------------------------------------------------------

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Median of each column, spread about the class medians, and step of its values."""
        for name in ("component_alpha", "eta"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)!r}")
        if self.covariance not in ("full", "diagonal"):
            raise ValueError(f"covariance must be 'full' or 'diagonal', got {self.covariance!r}")
        location, scale = robust_location_and_scale(X, y)
        step = recorded_step(X, scale, weight)
        out = self._sized(n_classes).filled(location=location, scale=scale, resolution=step)
        out.__dict__["_first"] = first_point(out, X, y)
        return out

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y: Any = None,
        stats: Any = None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Weights by breaking a stick, Normal means, log-Normal scales, LKJ correlations.

        ``stick`` is the share of what is left that each cluster but the last takes: Beta, so that
        the weights are Dirichlet. ``sigma_raw`` is r, sigma without the rounding. Clusters that a
        class has not follow their priors, with a weight of 0.
        """
        import pymc as pm

        prior = pymc_parts.declare(self, "prior", prefix)
        m, s = prior["location"], prior["scale"]
        dims = {name: pymc_parts.prefixed(prefix, d) for name, d in self.params.items()}
        theta = {"weight": self._declare_weights(prefix, prior["concentration"], dims["weight"])}
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

    def _observe(self, prefix: str, X: Array, y: Any, theta: Any) -> None:
        """Rows as they are, each of a cluster of its class."""
        import pymc as pm
        import pytensor.tensor as pt

        def draw(y: Any, weight: Any, mu: Any, sigma: Any, size: Any) -> Any:
            k = pm.Categorical.dist(p=weight[y], size=y.shape if size is None else size)
            return pm.MvNormal.dist(mu[y, k], sigma[y, k], size=size)

        def log_likelihood(x: Any, seen: Any, weight: Any, mu: Any, sigma: Any) -> Any:
            own = (slice(n) for n in self.sizes)
            each = [
                gaussian.log_density_of_cells(x, seen, mu[c, k], sigma[c, k]) + pt.log(weight[c, k])
                for c, k in enumerate(own)
            ]
            return pt.stack([pt.logsumexp(cluster, axis=1) for cluster in each], axis=1)

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

    def _declare_weights(self, prefix: str, a: Any, dims: tuple[str, ...]) -> Any:
        import pymc as pm
        import pytensor.tensor as pt

        n_classes, n_components = np.shape(self.concentration)
        name = f"{prefix}weight"
        if n_components == 1:
            return pm.Deterministic(name, pt.ones((n_classes, 1)), dims=dims)
        last = np.arange(1, n_components) >= self.sizes[:, None]  # or no cluster of the class
        later = pt.stack([a[:, k:].sum(axis=1) for k in range(1, n_components)], axis=1)
        pm.modelcontext(None).add_coords({f"{prefix}break": np.arange(n_components - 1)})
        share = pm.Beta(
            f"{prefix}stick",
            pt.switch(last, 1.0, a[:, :-1]),
            pt.switch(last, 1.0, later),
            dims=(CLASS, f"{prefix}break"),
        )
        share = pt.switch(last, 1.0, share)
        left, parts = pt.ones(n_classes), []
        for k in range(n_components - 1):
            parts.append(left * share[:, k])
            left = left * (1 - share[:, k])
        return pm.Deterministic(name, pt.stack([*parts, left], axis=1), dims=dims)

    def _log_mixture(self, X: Array, theta: Any, c: int, name: str) -> Any:
        """(N,) tensor of log densities of rows in class c."""
        import pytensor.tensor as pt

        own = slice(None, int(self.sizes[c]))
        sigma = self._covariances({k: v[c, own] for k, v in theta.items()})
        density = gaussian.log_density(X, theta["mu"][c, own], sigma, name)
        return pt.logsumexp(density + pt.log(theta["weight"][c, own]), axis=1)

    def pymc_log_likelihood(self, X: Matrix, theta: Any, *, prefix: str = "") -> Any:
        """Log of the weighted sum over the clusters of each class."""
        import pytensor.tensor as pt

        X = np.asarray(X, dtype=np.float64)
        columns = [
            self._log_mixture(X, theta, c, f"{prefix}rows{c}") for c in range(len(self.sizes))
        ]
        return pt.stack(columns, axis=1)

    def start(self, rng: np.random.Generator) -> dict[str, Array] | None:
        """Near the clusters that k-means finds in each class; the same for all chains."""
        if "_first" not in self.__dict__:  # no rows have been seen
            return None
        mu, sigma, shares = self.__dict__["_first"]
        near = mu + 0.1 * sigma * rng.standard_normal(mu.shape)
        wide = sigma * np.exp(0.1 * rng.standard_normal(sigma.shape))
        # nutpie refuses a slope of 0
        beside = {
            k: expit(logit(v) + 0.1 * rng.standard_normal(v.shape)) for k, v in shares.items()
        }
        sigma = self.scale * wide
        return {
            "mu": self.location + self.scale * near,
            "sigma": sigma,  # of a prior that was given
            "sigma_raw": sigma,
            **beside,
        }

    # -- label switching ---------------------------------------------------------------------

    def relabelled(self, draws: dict[str, Array], X: Matrix, y: Array) -> dict[str, Array]:
        """Clusters renumbered in every draw, the heaviest of a class first."""
        beside = ("sigma_raw", "correlation_partial")
        names = [name for name in (*self.params, *beside) if name in draws]
        lead = draws["weight"].shape[:2]
        n = math.prod(lead)
        flat = {k: np.array(draws[k]).reshape(n, *draws[k].shape[2:]) for k in names}
        X = np.asarray(X, dtype=np.float64)
        for c, k in enumerate(self.sizes):
            rows = X[(y == c) & ~np.isnan(X).all(axis=1)]
            if k < 2 or not len(rows):
                continue
            rows = rows[:: max(1, len(rows) // _ROWS)]
            order = self._order(rows, {name: v[:, c : c + 1, :k] for name, v in flat.items()})
            for value in flat.values():
                at = order.reshape(*order.shape, *(1,) * (value.ndim - 3))
                value[:, c, :k] = np.take_along_axis(value[:, c, :k], at, axis=1)
        weight = flat["weight"]
        if "stick" in draws:
            left = 1 - weight.cumsum(axis=-1)[..., :-1] + weight[..., :-1]
            last = np.arange(weight.shape[2] - 1) >= self.sizes[:, None] - 1
            own = np.array(draws["stick"]).reshape(n, *last.shape)
            flat["stick"] = np.where(last, own, weight[..., :-1] / np.where(last, 1.0, left))
        return {k: v.reshape(*lead, *v.shape[1:]) for k, v in flat.items()}

    def _order(self, X: Array, flat: dict[str, Array]) -> Array:
        """(S, K) which cluster of each draw comes first, second, ...; flat is of one class."""
        n, _, k = flat["weight"].shape
        log_p = np.empty((n, len(X), k))
        density = np.empty(n)
        for some in row_blocks(n, len(X) * k):
            part = self._log_joint(X, {name: v[some] for name, v in flat.items()})[:, :, 0]
            density[some] = log_sum_exp(part).sum(axis=1)
            log_p[some] = log_softmax(part)
        order = renumbering(log_p, density)
        weight = np.take_along_axis(flat["weight"][:, 0], order, axis=1).mean(axis=0)
        return order[:, np.argsort(-weight, kind="stable")]


# ------------------------------------------------------------------------------------------------
# Clusters of each class: where chains start, and numbers that mean the same in every draw.
#
# Chains start at what k-means finds. A mixture's likelihood does not change when its clusters
# change places, and a chain may do so at any time. Afterwards the clusters of each draw are
# renumbered such that what they say of the rows, the probabilities that a row is of each of them,
# differs as little as possible from the mean over draws, in Kullback-Leibler divergence.
#
# Source: Stephens (2000), Dealing with label switching in mixture models, algorithm 2.


def first_point(f: "GaussianMixture", X: Matrix, y: Array) -> tuple[Array, Array, dict[str, Array]]:
    """Means and scales of the clusters, in units of the columns, and the shares beside."""
    X = (np.asarray(X, dtype=np.float64) - f.location) / f.scale
    n_classes, n_components = np.shape(f.concentration)
    dim = X.shape[1]
    mu = np.zeros((n_classes, n_components, dim))
    sigma = np.ones(mu.shape)
    weight = np.array(f.concentration, dtype=np.float64)
    for c, k in enumerate(f.sizes):
        x = X[(y == c) & ~np.isnan(X).all(axis=1)]
        if not len(x):
            continue
        mean = np.nan_to_num(np.where(np.isnan(x), 0.0, x).sum(axis=0))
        mean = mean / np.maximum((~np.isnan(x)).sum(axis=0), 1)
        x = np.where(np.isnan(x), mean, x)
        centres, label = _clusters(x, int(k))
        mu[c, :k] = centres
        for cluster in range(k):
            own = x[label == cluster]
            weight[c, cluster] += len(own)
            if len(own) > 1:
                sigma[c, cluster] = np.sqrt(np.square(own - own.mean(axis=0)).mean(axis=0))
    sigma = np.maximum(sigma, 0.05)
    left = weight[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1]
    share = np.divide(weight[:, :-1], left, out=np.full(left.shape, 0.5), where=left > 0)
    shares = {"stick": np.clip(share, 0.05, 0.95)} if n_components > 1 else {}
    if f.covariance == "full" and dim > 1:
        pairs = dim * (dim - 1) // 2
        shares["correlation_partial"] = np.full((n_classes, n_components, pairs), 0.5)
    return mu, sigma, shares


def _clusters(x: Array, k: int) -> tuple[Array, Array]:
    """Centres (k, D) and labels (n,) by k-means, the best of some starts; few rows are repeated."""
    rng = np.random.default_rng(0)
    if len(np.unique(x, axis=0)) <= k:
        centres = np.resize(np.unique(x, axis=0), (k, x.shape[1]))
        centres = centres + 0.1 * rng.standard_normal(centres.shape)
        return centres, np.square(x[:, None] - centres).sum(axis=-1).argmin(axis=1)
    if k == 1:
        return x.mean(axis=0, keepdims=True), np.zeros(len(x), dtype=int)
    best, least = None, np.inf
    for _ in range(10):
        first = x[rng.choice(len(x), k, replace=False)]
        with warnings.catch_warnings():
            # which keeps its centre
            warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
            centres, label = kmeans2(x, first, minit="matrix", missing="warn")
        loss = np.square(x - centres[label]).sum()
        if loss < least:
            best, least = (centres, label), loss
    assert best is not None
    return best


_SWEEPS = 20  # at most


def renumbering(log_p: Array, log_density: Array) -> Array:
    """Which cluster of each draw comes first, second, ...

    Parameters
    ----------
    log_p : (S, N, K)
        Log probability that row n is of cluster k, by draw s.
    log_density : (S,)
        Of all rows; the draw with the largest is what the others are first compared with.

    Returns
    -------
    (S, K)
        Permutations; their order among each other is that of the draw with the largest density.
    """
    p = np.exp(log_p)
    order = np.tile(np.arange(p.shape[2]), (len(p), 1))
    mean = p[log_density.argmax()]
    for _ in range(_SWEEPS):
        loss = -np.einsum("snj,nk->skj", p, np.log(np.maximum(mean, 1e-12)))
        new = np.array([linear_sum_assignment(table)[1] for table in loss])
        mean = np.take_along_axis(p, new[:, None, :], axis=2).mean(axis=0)
        if np.array_equal(new, order):
            break
        order = new
    return order
