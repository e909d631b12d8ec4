"""The contract of a family whose predictive is a closed form that is no exact posterior's."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.families.contract import ConjugateFamily, Theta
from bayesgen.families.errors import NoPosteriorError, UndefinedEstimateError
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class ApproximateFamily(ConjugateFamily):
    """A family with a predictive in closed form that is no exact posterior's.

    It has statistics that add up, `resolve`, `update`, `log_predictive`, `simulate_predictive` and
    the predictive without a row (`capabilities.RowRemoval`). What asks for a posterior of theta is
    refused with the reason.
    """

    def _refuse(self, what: str) -> NoPosteriorError:
        return NoPosteriorError(f"{what} is refused: {self.approximate}")

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Refused: theta is not known."""
        raise self._refuse("the likelihood of theta")

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Any:
        """Refused: theta is not known."""
        raise self._refuse("simulation under one theta")

    def mle(self, stats: Any) -> dict[str, Array]:
        """Refused: the predictive is the only estimate."""
        raise UndefinedEstimateError("mle", self.approximate)

    def map(self) -> dict[str, Array]:
        """Refused: the predictive is the only estimate."""
        raise UndefinedEstimateError("map", self.approximate)

    def mean(self) -> dict[str, Array]:
        """Refused: the predictive is the only estimate."""
        raise UndefinedEstimateError("posterior_mean", self.approximate)

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Refused: there is no posterior to draw from."""
        raise self._refuse("a draw of theta")

    def log_evidence(self, stats: Any) -> float:
        """Refused: it is not defined."""
        raise self._refuse("the evidence")

    def cgf(self, X: Matrix, t: Array) -> Array:
        """Refused: the spread of the class log-densities is not known."""
        raise self._refuse("the spread of class probabilities (intervals, uncertainty)")
