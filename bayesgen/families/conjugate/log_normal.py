r"""Positive columns: a Normal of the logarithm.

:math:`\log x_j \mid y=c \sim \text{Normal}(\mu_{cj}, \sigma^2)`. The density of x is that of log x
times the Jacobian 1/x, which the classes share: p(y | x) is that of the logarithms, and the
evidence compares with that of any other density of x. It is `NormalInverseGamma` of changed cells,
in every formula.

Source: Gelman et al., Bayesian Data Analysis (3rd ed.), section 3.3.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesgen.families.conjugate.normal_inverse_gamma import GaussianStats, NormalInverseGamma
from bayesgen.families.contract import Tensors, Theta
from bayesgen.families.errors import NotLinearError
from bayesgen.families.shared.pymc_parts import log_likelihood_of_cells, observe_cells
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
        """Return (N, D) logarithms, which are Normal; 0 for cells that are not positive."""
        return np.log(np.where(X <= 0, 1.0, np.asarray(X, dtype=np.float64)))

    def _log_slope(self, X: Matrix) -> Array:
        """Return (N,) log Jacobian of `cells`, over the observed live cells."""
        cells = np.where(np.isnan(X) | ~self.live, 0.0, np.where(X <= 0, -np.inf, -self.cells(X)))
        return np.asarray(cells.sum(axis=1))

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> GaussianStats:
        """Counts, means and scatters of the logarithms; ValueError for a cell <= 0."""
        if np.any(X <= 0):
            raise ValueError("a lognormal column must be positive")
        return super().stats(self.cells(X), y, n_classes, weight)

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) Normal log densities of the logarithms, with the Jacobian."""
        return super().log_likelihood(self.cells(X), theta) + self._log_slope(X)[:, None]

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C), with the Jacobian."""
        return super().log_predictive(self.cells(X)) + self._log_slope(X)[:, None]

    def _log_evidence_terms(self, stats: GaussianStats) -> tuple[Array, Array]:
        """Add the Jacobian, minus the sum of the logarithms."""
        groups, means = super()._log_evidence_terms(stats)
        return groups, means - stats.n * (stats.mean + stats.shift) * self.live

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Return the densities of the logarithms, with the Jacobian."""
        log_x, left = super().log_predictive_without(self.cells(X), y, weight)
        return log_x + self._log_slope(X)[:, None], left

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Refused: the rule is linear in log x at best."""
        raise NotLinearError("the log-odds of lognormal columns are a function of log x, not of x")

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) positive rows."""
        return np.exp(np.clip(super().simulate(rng, theta, y), -_LARGEST, _LARGEST))

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Declare as `NormalInverseGamma` does; rows are log-Normal, statistics of logarithms."""
        import pymc as pm
        import pytensor.tensor as pt

        theta = super().to_pymc(prefix=prefix, stats=stats if X is None else None)
        if X is not None:

            def log_p(x, mu, sd):
                log_x = pt.log(pt.switch(x > 0, x, 1.0))  # a gradient at missing cells, too
                return pt.switch(x > 0, pm.logp(pm.Normal.dist(mu, sd), log_x) - log_x, -np.inf)

            def draw(mu, sd, size=None):
                return pt.exp(pm.Normal.dist(mu, sd, size=size))

            cells = theta["mu"][y], self._sd(theta)[y]
            observe_cells(prefix, X, draw, *cells, counted=self.live, log_density=log_p)
        return theta

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Return (N, C) tensor, over the observed cells of the live columns."""
        import pymc as pm

        cells = pm.LogNormal.dist(theta["mu"], self._sd(theta))
        return log_likelihood_of_cells(prefix, X, cells, self.live)
