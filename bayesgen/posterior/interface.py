"""What every posterior answers, in closed form, by draws, or pooled: nobody asks which it is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.names import CLASS_WEIGHTS, Method
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import (
    ClassModel,
    Quantity,
    log_weights,
    log_weights_without,
    score,
)

BLOCK = 1 << 21  # log densities held at a time: 16 MiB of float64
KEPT = 1 << 28  # bytes of draws, of theta or of posteriors, that are kept
_SHAPE = 0.75  # of the Gamma distribution of row weights: of 1 intervals are too narrow

Training = Callable[[], Any]  # to the training rows: X, codes, weight


class DrawRequest(NamedTuple):
    """Which draws of the log joint densities of rows.

    Parameters
    ----------
    n_draws : int, optional
        None: as many as are usual.
    seed : int
    class_prior : (C,), optional
        Class weights that replace the fitted ones, and are not uncertain.
    training : callable, optional
        To the training rows, where `draws_need_rows`: the model is fitted to them again with
        random weights, once for each draw.
    """

    n_draws: int | None
    seed: int
    class_prior: Array | None = None
    training: Training | None = None


class JointDraws(NamedTuple):
    """Draws of log p(y = c, x | theta), up to a term that the classes of a row have in common.

    Parameters
    ----------
    blocks : iterator of (rows, (chain, draw, n, C))
        Rows in their order; each block may be overwritten.
    shape : (chain, draw, N, C)
    joint : bool
        Whether a draw is one theta for all rows; else each row is drawn on its own.
    independent : bool
        Whether the draws are independent, so that their effective number is their number.
    """

    blocks: Iterator[tuple[slice, Array]]
    shape: tuple[int, int, int, int]
    joint: bool = True
    independent: bool = True


class Posterior(ABC):
    """Prior and posterior `ClassModel`, statistics of the rows, and what they say of rows."""

    prior: ClassModel
    model: ClassModel
    stats: Any

    exact: ClassVar[bool] = False  # in closed form
    drawn: ClassVar[bool] = False  # theta is known by draws
    exact_weights: bool  # the posterior of the class weights is known, and independent of theta
    members: tuple[Any, ...]  # of a pool
    mixture: tuple[Any, ...] = ()  # (probability, posterior) whose predictives are averaged
    scored: Any = None  # members' scores of the training rows, by which a pool was fitted

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """{name: dims} of every parameter."""
        return self.model.params

    @property
    def n_draws(self) -> int:
        """Return the number of draws that the predictive is an average over, of all chains."""
        return 0

    @property
    def has_weights(self) -> bool:
        """Return whether there are class weights, which others may replace."""
        return self.model.generative

    @property
    def draws_need_rows(self) -> bool:
        """Return whether draws are fits to the training rows with random weights."""
        return not self.drawn and self.model.family.discriminative

    @abstractmethod
    def class_weights(self, method: Method = "posterior_predictive") -> Array:
        """Return (C,) p(y = c) under a method."""

    @abstractmethod
    def estimate(self, method: Method) -> Theta:
        """Return one estimate of theta; UndefinedEstimateError where there is none."""

    def log_class_weights(self, codes: Array | None = None, weight: Array | None = None) -> Array:
        """Return (C,) log class weights in the joint densities; (n, C) without each row.

        `codes` and `weight` (n,) are of training rows, each of which is left out.
        """
        if codes is None or weight is None or not self.exact_weights:
            # of draws: one row more or less is nothing to their mean
            return log_weights(self.class_weights())
        return log_weights_without(self.prior.alpha, self.stats.count, codes, weight)

    # -- log joint densities of rows ---------------------------------------------------------

    def log_joint(
        self,
        X: Matrix,
        method: Method = "posterior_predictive",
        class_prior: Array | None = None,
        quantity: Quantity = "density",
    ) -> Array:
        """Return (N, C) log p(y = c, x_i) of each row on its own.

        Parameters
        ----------
        X : (N, D) as the family takes it
        method : one of `names.METHODS`
            The parameters integrated out, or one estimate of them plugged in.
        class_prior : (C,), optional
            Class weights that replace the fitted ones (label shift).
        quantity : {"density", "probability"}
            What will be made of the result. For a probability a term that the classes of a row
            have in common may be left out of a plug-in.

        Raises
        ------
        UndefinedEstimateError
            If the estimate that is plugged in does not exist.
        """
        if method == "posterior_predictive":
            return self._predictive(X, class_prior, quantity)
        return self._plugged_in(X, method, class_prior, quantity)

    @abstractmethod
    def _predictive(self, X: Matrix, class_prior: Array | None, quantity: Quantity) -> Array:
        """`log_joint` with the parameters integrated out."""

    def _plugged_in(
        self, X: Matrix, method: Method, class_prior: Array | None, quantity: Quantity
    ) -> Array:
        """`log_joint` under one estimate of all parameters."""
        theta = self.estimate(method)
        if class_prior is None and CLASS_WEIGHTS in theta:
            class_prior = theta[CLASS_WEIGHTS]
        weights = self.class_weights(method) if class_prior is None else class_prior
        log_x = score(self.model.family.for_plug_in(method), quantity)(X, theta)
        log_x += log_weights(weights)
        return log_x

    def log_joint_without(
        self, X: Matrix, codes: Array, weight: Array, groups: Array | None = None
    ) -> tuple[Array, Array]:
        """Return (N, C) log p(y = c, x_i) of training rows, each without itself or its whole group.

        Parameters
        ----------
        X : (N, D) training rows, all or some
        codes : (N,)
            Their classes; -1: a row that is not in the posterior, so that nothing leaves.
        weight : (N,)
            Weight of each row in the fit, which leaves whole.
        groups : (N,) int, optional
            Rows of the same number leave together. Of label trees they are those of the fit.

        Returns
        -------
        log_joint : (N, C)
        pareto_k : (N,)
            How far importance sampling can be trusted (`drawn.largest_good_k`); -inf where nothing
            leaves, or the row leaves exactly.
        """
        inside = (codes >= 0) & (weight > 0)
        if inside.all():
            return self.without_each(X, codes, weight, groups)
        log_joint, k = self._as_it_is(X), np.full(len(codes), -np.inf)
        if len(rows := np.flatnonzero(inside)):
            of_rows = None if groups is None else groups[rows]
            some_rows = X[rows], codes[rows], weight[rows], of_rows
            log_joint[rows], k[rows] = self.without_each(*some_rows)
        return log_joint, k

    def _as_it_is(self, X: Matrix) -> Array:
        """`log_joint` of rows that the posterior does not hold."""
        return self.log_joint(X)

    @abstractmethod
    def without_each(
        self, X: Matrix, codes: Array, weight: Array, groups: Array | None = None
    ) -> tuple[Array, Array]:
        """`log_joint_without` of rows that are all in the posterior."""

    # -- draws -------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, rng: np.random.Generator, draws: int, chains: int) -> Theta:
        """{name: (chain, draw, *dims)} draws of every parameter."""

    def draw_features(self, rng: np.random.Generator, draws: int, chains: int) -> Theta:
        """Return the same of the features' parameters; class weights may be among them."""
        return self.draw(rng, draws, chains)

    @abstractmethod
    def log_joint_draws(self, X: Matrix, request: DrawRequest) -> JointDraws:
        """Draw log p(y = c, x_i | theta); a row has the same draws alone and among others."""

    @abstractmethod
    def simulate(
        self, rng: np.random.Generator, n: int, codes: Array | None, one_theta: bool
    ) -> tuple[Matrix, Array]:
        """New rows and their class codes (n,).

        Parameters
        ----------
        codes : (n,), optional
            Classes of the rows. None: drawn from the class weights.
        one_theta : bool
            One posterior draw for all rows; else a fresh theta for each, the posterior predictive.
        """


def weights_of_draws(n_draws: int, seed: int, n_rows: int) -> Array:
    """Draw (S, N) factors of the weights of training rows: Gamma, mean 1, variance 4/3.

    Always the same for a seed, so that the members of a pool see the same weights. Source: Rubin
    (1981), The Bayesian bootstrap, whose weights have variance 1.
    """
    rng = np.random.default_rng([seed, 3])
    return rng.standard_gamma(_SHAPE, (n_draws, n_rows)) / _SHAPE
