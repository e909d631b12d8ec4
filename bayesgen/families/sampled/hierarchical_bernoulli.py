r"""Bits whose classes share strength: log-odds about the column's own, how far is learned.

.. math:: x_j \mid y = c \sim \text{Bernoulli}(\theta_{cj}), \quad
          \text{logit}\, \theta_{cj} = \mu_j + \tau z_{cj}, \quad \sum_c z_{cj} = 0

.. math:: \mu_j \sim \text{Normal}(m, s^2), \quad z_j \sim \text{ZeroSumNormal}(1), \quad
          \log \tau \sim \text{Normal}(\log 0.5, 1)

Classes are pooled towards the base rate of their column, and columns towards a common spread tau,
in log-odds. m and s^2 are the mean and 1 + variance of the columns' log-odds, all classes together.
Deviations that sum to 0 leave mu the mean of the classes: with free deviations the rows would not
tell mu from their mean, and NUTS would walk along that ridge. Contrasts of the classes have the
same prior as under independent Normal deviations.

Prefer it to Beta priors where there are many columns or few rows per class: a rare word needs no
pseudo-count of its own, its classes share one base rate, and columns that tell little are shrunk
to less. Log-odds rather than a Beta with learned concentration: at a base rate of 0.001 a Beta of
small concentration has its mass at log-odds of -100 and beyond, where nothing is believed and no
sampler goes.

Source: Gelman et al., Bayesian Data Analysis (2013), section 5.4 and chapter 16.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.contract import Family, Theta
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.families.records import Hyperparameter, PriorObject, array, prior_object
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.codes import pymc_log_likelihood_of_bits
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class HierarchicalBernoulli(Family):
    """Independent bits, log-odds of the classes partially pooled.

    Parameters
    ----------
    mu : prior object, optional
        Of the base log-odds (feature,). None: the default above, as in all.
    tau : prior object, optional
        Of the spread of the classes about them, in log-odds, ().
    location, scale : array (feature,), optional
        m and s, in log-odds. None: from the rows.
    """

    holds: ClassVar[str] = "bit"
    kind: ClassVar[str] = "bernoulli"
    sums_rows: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    mu: PriorObject = prior_object()
    tau: PriorObject = prior_object()
    location: Hyperparameter = array(FEATURE, default=None)
    scale: Hyperparameter = array(FEATURE, default=None)

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: p(x_j = 1 | y = c)."""
        return {"theta": (CLASS, FEATURE)}

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Columns that are alike, and columns that differ in base rate and spread."""
        unit = np.ones(n_features)
        return [
            cls(location=0 * unit, scale=unit),
            cls(location=-unit.cumsum(), scale=2 * unit),
        ]

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) sums over the observed cells: the density of `BetaBernoulli`.

        The graph's own would visit every cell for every draw, where this is a matrix product.
        """
        # a log-odds beyond 37 rounds to certainty, which no finite log-odds is
        p = np.clip(np.asarray(theta["theta"], dtype=np.float64), 1e-300, 1 - 2.0**-53)
        return BetaBernoulli().log_likelihood(X, {"theta": p})

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) rows of 0 and 1, as uint8."""
        return BetaBernoulli().simulate(rng, theta, y)

    def with_defaults(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> Self:
        """Return the columns' log-odds with half a row of either bit."""
        one = np.zeros(X.shape[0], dtype=np.int64)
        n = BetaBernoulli().stats(X, one, 1, weight)
        log_odds = np.log((n.ones[0] + 0.5) / (n.zeros[0] + 0.5))
        unit = np.ones_like(log_odds)
        scale = np.sqrt(1 + log_odds.var())
        return self.filled(location=log_odds.mean() * unit, scale=scale * unit)

    def mle_of_rows(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> dict[str, Array]:
        """Return the share of ones among the observed cells of each class and column."""
        bits = BetaBernoulli()
        return bits.mle(bits.stats(X, y, n_classes, weight))

    def to_pymc(
        self,
        *,
        prefix: str = "",
        X: Matrix | None = None,
        y=None,
        stats=None,
        summed: bool = False,
    ) -> dict[str, Any]:
        """Normal log-odds; Bernoulli rows, summed by their counts of ones and zeros."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        dims = pymc_parts.prefixed(prefix, self.params["theta"])
        mu = pymc_parts.variable(
            f"{prefix}mu",
            self.mu,
            dims[1:],
            lambda name, dims: pm.Normal(name, prior["location"], prior["scale"], dims=dims),
        )
        tau = pymc_parts.variable(
            f"{prefix}tau", self.tau, (), lambda name, _: pm.LogNormal(name, np.log(0.5), 1.0)
        )
        log_odds = mu + tau * pymc_parts.declare_contrasts(prefix, dims[1])
        theta = pm.Deterministic(f"{prefix}theta", pt.sigmoid(log_odds), dims=dims)
        if X is not None and not summed:
            pymc_parts.observe_cells(prefix, X, _cells, theta[y])
        elif X is not None:
            n = BetaBernoulli().stats(X, y.get_value(), len(pm.modelcontext(None).coords[CLASS]))
            ones = pm.Data(f"{prefix}ones", n.ones)
            total = pm.Data(f"{prefix}n", n.ones + n.zeros)
            log_p = ones * log_odds - total * pt.softplus(log_odds)
            pm.Potential(f"{prefix}x", log_p.sum())
        return {"theta": theta}

    pymc_log_likelihood = pymc_log_likelihood_of_bits


def _cells(theta, **size):
    import pymc as pm

    return pm.Bernoulli.dist(p=theta, **size)
