"""What a family may offer beyond the contract, and what is asked of it by whom.

A family offers a capability by having its methods; nothing is registered. It is asked for by
name, and what has to do without it says so::

    rule = family.capability(LinearRule)  # the object that answers, or None
    rule = require(family, LinearRule, "linear_form")  # or an error that names all three

The object is the family itself, or, of a product of families over blocks of columns, one made of
the blocks' own. Shapes as in `contract`.
"""

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesgen.families.errors import MissingCapabilityError
from bayesgen.numerics.rows import Matrix, Seed
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.contract import Family, Tensors, Theta


def require[K](family: "Family", kind: type[K], what: str) -> K:
    """Return the object by which `family` answers for a capability.

    Parameters
    ----------
    family : Family
    kind : protocol of this module
    what : str
        What was asked for, for the error.

    Raises
    ------
    MissingCapabilityError
        If the family does not offer it.
    """
    answer = family.capability(kind)
    if answer is None:
        owners = [b.family for b in family.blocks() if b.family.capability(kind) is None]
        members = [name for name in vars(kind) if not name.startswith("_")]
        raise MissingCapabilityError(
            what, kind.__name__, members, [type(f).__name__ for f in owners or [family]]
        )
    return answer


@runtime_checkable
class ThetaDensity(Protocol):
    """The density of theta: for ``bg.validate`` (coherence) and the group ``log_prior``."""

    def log_density(self, theta: "Theta") -> Array:
        """Return the log density of this prior or posterior at theta, with any leading axes.

        With respect to Lebesgue measure in the coordinates of `params`: all but one of
        probabilities that sum to 1, the upper triangle of a covariance. -inf outside the support;
        +inf at a pole. For every theta, ``log_evidence(stats)`` is the log likelihood of the
        rows plus the prior's `log_density` minus the posterior's: Chib's (1995) "candidate's
        formula".
        """


@runtime_checkable
class UnlabelledRows(Protocol):
    """The density of rows under every class as a tensor: asked for weighted and new rows."""

    def pymc_log_likelihood(self, X: Matrix, theta: "Tensors", *, prefix: str = ""):
        """Return (N, C) tensor of log p(x_i | theta_c).

        Parameters
        ----------
        X : rows as `log_likelihood` takes them
            Data of the PyMC model on the stack.
        theta : {name: tensor}
            What `to_pymc` returned.
        prefix : str
            As in `to_pymc`.
        """


@runtime_checkable
class StartingPoint(Protocol):
    """Where chains start, if not near the centre of the prior: asked by ``fit`` by MCMC.

    For posteriors with several modes, or far away.
    """

    def start(self, rng: np.random.Generator, X: Matrix, y: Array) -> dict[str, Array]:
        """Values of the free variables of `to_pymc`, near what the training rows say."""


@runtime_checkable
class DensityDraws(Protocol):
    """Draws of the class log-densities without drawing theta: asked by ``predict_interval``."""

    @property
    def draws_by_row(self) -> bool:
        """Return whether this costs less than draws of theta that all rows share."""

    def draw_log_density(self, seed: "Seed", X: Matrix, n: int) -> Array:
        """Return (n, N, C) draws of the class log-densities of each row.

        Up to a term common to the classes of a row. Joint over the classes of a row. A row has the
        same draws alone and among others: the generator is started anew for each row, or rows
        share its numbers.
        """


@runtime_checkable
class LinearRule(Protocol):
    """A decision rule that is linear in the features: asked by ``linear_form``."""

    def linear_form(self, theta: "Theta | None") -> tuple[Array, Array]:
        """Return w (..., C, D) and w0 (..., C) with log p(x | theta_c) = x w_c + w0_c + g(x).

        `theta` is a plug-in or draws; None asks for the posterior predictive. Raises
        `NotLinearError` with the reason where there is no such form.
        """


@runtime_checkable
class FeatureTerms(Protocol):
    """The log-odds of complete rows as a sum over features given theta: asked by ``explain``."""

    def log_odds_terms(self, X: Matrix, a: int, b: int, theta: "Theta") -> tuple[Array, Array]:
        """Terms (..., N, D) and rest (..., N) of log p(a | x, theta) - log p(b | x, theta)."""


class Urns(NamedTuple):
    """Tokens drawn from tables with Dirichlet priors (urns), as P different draws of rows.

    Given theta, a row's log-density in class c is the sum of ``n log theta`` over its draws.
    """

    row: Array  # (P,)
    feature: Array  # (P,)
    n: Array  # (P,) how often the row has drawn this token
    drawn: Array  # (P,) tokens that the row has drawn from this urn
    cell: Array  # (C, P) pseudo-counts of the token
    total: Array  # (C, P) pseudo-counts in the urn


@runtime_checkable
class TokenDraws(Protocol):
    """Rows that are tokens drawn from tables with Dirichlet priors: asked by ``explain``."""

    def urns(self, X: Matrix) -> Urns:
        """Return the draws of the rows."""


@runtime_checkable
class BetaMargins(Protocol):
    """Words or bits whose probabilities are Beta, each on its own: asked by ``bg.top_words``."""

    def beta_margins(self, stats) -> tuple[Array, Array, Array]:
        """Return (C, D) both parameters of each probability, and the counts behind them."""


@runtime_checkable
class FeatureInformation(Protocol):
    """What each feature tells of the class: asked by ``bg.mutual_information``."""

    def information(self, theta: "Theta", weights: Array) -> Array:
        """Return (D,) mutual information of each feature and the class at one theta, in nats."""
