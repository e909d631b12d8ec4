r"""Real features with outliers: x_j | y=c ~ Student t(nu_j, mu_cj, sigma_cj).

.. math:: \mu_{cj} \sim \text{Normal}(m_j, 10 s_j^2), \quad
          \sigma_{cj}^2 = r_{cj}^2 + h_j^2/12, \quad
          \log r_{cj} \sim \text{Normal}(\log s_j, 1), \quad
          \nu_j \sim \text{Gamma}(2, 0.1)

m and s are the median of a column and its spread about the class medians (interquartile range
over 1.349), which outliers do not move. Prefer it to the Normal family where a few cells are far
from all others: there one cell drags a mean and inflates a variance, here it costs the tails.
With clean columns nu_j is large and nothing is lost but time.

A column recorded in steps of h_j has the variance h^2/12 of rounding, below which no scale is to be
believed: without it sigma would fall on values that are tied, with nu near 0 and the density of the
ties without bound. h is the median gap between the values that occur, and 0 if no two are equal.

Source: Juárez and Steel (2010), Model-based clustering of non-Gaussian panel data based on skew-t
distributions (prior of nu); Lange, Little and Taylor (1989), Robust statistical modeling using the
t distribution.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from bayesgen.families.contract import Family, Tensors, Theta
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import Hyperparameter, PriorObject, array, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.gaussian import recorded_step, robust_location_and_scale
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class StudentT(Family):
    """Independent Student t features, degrees of freedom unknown.

    Parameters
    ----------
    mu, sigma, nu : prior objects, optional
        Of the locations and scales (class, feature), in the unit of the feature, and of the
        degrees of freedom (feature,). None: the default above; a prior of sigma given here is
        taken as it is, without rounding.
    location, scale, resolution : array (feature,), optional
        m, s and h of the default priors. None: from the rows.
    """

    holds: ClassVar[str] = "real"
    kind: ClassVar[str] = "student t"
    separable: ClassVar[bool] = True

    mu: PriorObject = prior_object()
    sigma: PriorObject = prior_object()
    nu: PriorObject = prior_object()
    location: Hyperparameter = array(FEATURE, default=None)
    scale: Hyperparameter = array(FEATURE, default=None)
    resolution: Hyperparameter = array(FEATURE, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``mu``, ``sigma``: locations and scales; ``nu``: degrees of freedom of a column."""
        return {"mu": (CLASS, FEATURE), "sigma": (CLASS, FEATURE), "nu": (FEATURE,)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Return the defaults for columns of other units; continuous, and rounded to one unit."""
        unit = np.exp2(np.arange(n_features))
        return [cls(location=unit - 2, scale=unit, resolution=h * unit) for h in (0.0, 1.0)]

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) rows."""
        mu, sigma = (self.rows_of(theta, name, y) for name in ("mu", "sigma"))
        nu = np.broadcast_to(self.rows_of(theta, "nu", y), mu.shape)
        return np.asarray(mu + sigma * rng.standard_t(nu))

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Median and spread about the class medians of each column."""
        location, scale = robust_location_and_scale(X, y)
        step = recorded_step(X, scale, weight)
        return self.filled(resolution=step, location=location, scale=scale)

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Normal locations, log-Normal scales, Gamma degrees of freedom; Student t rows.

        ``mu_raw`` is mu in units of s about m, ``sigma_raw`` is r, sigma without the rounding.
        """
        import pymc as pm

        prior = pymc_parts.declare(self, "prior", prefix)
        m, s = prior["location"], prior["scale"]
        nu = pymc_parts.parameter(
            self, prefix, "nu", lambda nu, dims: pm.Gamma(nu, 2.0, 0.1, dims=dims)
        )
        sigma = pymc_parts.scale_above_rounding(self, prefix, s, prior["resolution"])
        mu = pymc_parts.declare_location(self, prefix, m, s)
        if X is not None:
            pymc_parts.observe_cells(prefix, X, _cells, nu, mu[y], sigma[y])
        return {"mu": mu, "sigma": sigma, "nu": nu}

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Sums over the observed cells."""
        cells = _cells(theta["nu"], theta["mu"], theta["sigma"])
        return pymc_parts.log_likelihood_of_cells(prefix, X, cells)


def _cells(nu, mu, sigma, **size):
    """PyMC's distribution of cells; its other parametrisation is by precision."""
    import pymc as pm

    return pm.StudentT.dist(nu=nu, mu=mu, sigma=sigma, **size)
