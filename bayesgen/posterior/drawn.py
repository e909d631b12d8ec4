"""The posterior as draws, from a sampler or from a tree that the user gives."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS_WEIGHTS, Method
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.model import (
    ClassModel,
    ClassStats,
    Quantity,
    draw_shape,
    log_class_weights,
    log_weights,
    log_weights_without,
    plug_in_score,
)
from bayesgen.posterior.monte_carlo import (
    MonteCarlo,
    estimate,
    log_densities,
    smoothed_weights,
    warn_in_doubt,
    warn_large_k,
)

_SAME = 1e-10  # spread of a log likelihood over draws that is rounding


@dataclass(frozen=True, eq=False)
class DrawnPosterior:
    """Draws of theta, with the interface of `ExactPosterior`.

    Parameters
    ----------
    prior : ClassModel
    model : ClassModel
        A posterior whose family scores the draws: the one in closed form, or that of a pilot fit.
        Of its hyper-parameters only those matter on which theta is silent: a category never seen,
        columns left out, the contexts of a language model.
    stats : ClassStats
        Behind `model`.
    theta : {name: (chain, draw, *dims)}
    exact_weights : bool
        Whether `model` has the exact posterior of the class weights, independent of theta. False
        if some training rows had no label: then pi and theta are dependent, and pi is drawn.
    """

    prior: ClassModel
    model: ClassModel
    stats: ClassStats
    theta: Theta
    exact_weights: bool = True

    def refuse_invalid(self) -> None:
        """Raise a ValueError for draws from a file under which a row has no density."""
        if not self.model.generative:
            return  # any coefficients will do
        weights = self.theta[CLASS_WEIGHTS]
        if np.any(weights < 0) or not np.allclose(weights.sum(axis=-1), 1, rtol=1e-6):
            raise ValueError(f"{CLASS_WEIGHTS!r} of the posterior are no probabilities")
        with np.errstate(all="ignore"):
            row, _ = self.simulate(np.random.default_rng(0), 1, np.zeros(1, dtype=int), False)
            for _, joint in self.log_joint_draws(row):
                if np.isnan(joint).any():
                    raise ValueError("a draw of the posterior is no parameter of the model")

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """{name: dims} of every parameter."""
        return self.model.params

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of chains, and of draws of each."""
        return draw_shape(self.model.family, self.theta)

    def class_weights(self, method: Method = "posterior_predictive") -> Array:
        """(C,) p(y = c); the mean of the draws, where these are all that is known of it."""
        if self.exact_weights or not self.model.generative:
            return self.model.class_weights(method, self.stats)
        weights: Array = self.theta[CLASS_WEIGHTS].mean(axis=(0, 1))
        return weights

    def log_joint(
        self,
        X: Matrix,
        method: Method = "posterior_predictive",
        class_prior: Array | None = None,
        quantity: Quantity = "density",
    ) -> Array:
        """(N, C) log p(y = c, x_i): joint densities averaged over draws, or their mean plugged in.

        Warns
        -----
        MonteCarloWarning
            Where the average cannot be trusted for what `quantity` says: draws too few for a
            density may be plenty for the probability of a class that is certain.
        """
        if method == "posterior_predictive":
            result = self.estimate(X, class_prior)
            warn_in_doubt(result, quantity)
            return result.log_joint
        theta = self._mean(method)
        log_x = plug_in_score(self.model.family, method, quantity)(X, theta)
        if class_prior is None:
            generative = CLASS_WEIGHTS in theta
            class_prior = theta[CLASS_WEIGHTS] if generative else self.class_weights(method)
        log_x += log_weights(class_prior)
        return log_x

    def estimate(self, X: Matrix, class_prior: Array | None = None) -> MonteCarlo:
        """The posterior predictive with its Monte Carlo error.

        The class weights are integrated exactly where that is possible, and not drawn.

        Examples
        --------
        A row (1, 1) after one such row of the first class and twelve others: exactly 0.348987.

        >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
        >>> ones, zeros = np.array([[2.0, 2], [5, 5]]), np.array([[1.0, 1], [9, 9]])
        >>> model = ClassModel(np.array([2.0, 13.0]), BetaBernoulli(ones, zeros))
        >>> draws = model.draw(np.random.default_rng(0), 4000)
        >>> theta = {k: value.reshape(4, 1000, *value.shape[1:]) for k, value in draws.items()}
        >>> result = DrawnPosterior(model, model, None, theta).estimate(np.array([[1, 1]]))
        >>> float(result.probability[0, 0]), float(result.mcse[0, 0])
        (0.3485, 0.0025)
        """
        weights = class_prior
        if weights is None:
            exact = self.exact_weights or not self.model.generative
            weights = self.model.mean_weights() if exact else self.theta[CLASS_WEIGHTS]
        return estimate(self.model.family, self.theta, X, weights)

    def log_joint_draws(
        self, X: Matrix, class_prior: Array | None = None, quantity: Quantity = "density"
    ) -> Iterator[tuple[slice, Array]]:
        """(rows, (chain, draw, n, C) log p(y = c, x_i | theta)) in blocks of rows."""
        return log_joint_blocks(self.model.family, self.theta, X, class_prior, quantity)

    def log_joint_without(
        self, X: Matrix, codes: Array, weight: Array
    ) -> tuple[Array, Array | None]:
        """(N, C) log p(y = c, x_i) of training rows, each without itself, and Pareto k (N,).

        By Pareto-smoothed importance sampling: a draw has the weight of one over the likelihood
        of the row under it (Vehtari et al. 2017). A row that is not in the posterior (code -1 or
        weight 0), or is as likely under every draw (no observed cell), keeps every draw: its k is
        -inf.

        Warns
        -----
        MonteCarloWarning
            Where k is too large for the estimate to be trusted (`largest_good_k`).
        """
        family, exact = self.model.family, self.exact_weights and self.model.generative
        out = np.empty((X.shape[0], len(self.model.alpha)))
        k = np.full(X.shape[0], -np.inf)
        inside = (codes >= 0) & (weight > 0)
        moving = any(np.ptp(v.reshape(-1, *v.shape[2:]), axis=0).any() for v in self.theta.values())
        given = np.zeros(len(self.model.alpha)) + 1.0 if exact else None
        for rows, draws in log_joint_blocks(family, self.theta, X, given):
            joint = draws.reshape(-1, *draws.shape[2:])  # (S, n, C)
            n_draws = len(joint)
            log_w = np.full((joint.shape[1], n_draws), -np.log(n_draws))
            own = np.flatnonzero(inside[rows])
            if len(own):
                y, w = codes[rows][own], weight[rows][own]
                log_likelihood = w[:, None] * joint[:, own, y].T
                with np.errstate(invalid="ignore"):  # impossible under every draw
                    says_nothing = np.ptp(log_likelihood, axis=1) < _SAME
                if moving and says_nothing.any():
                    own, log_likelihood = own[~says_nothing], log_likelihood[~says_nothing]
            if len(own):
                log_w[own], k[np.arange(rows.start, rows.stop)[own]] = smoothed_weights(
                    -log_likelihood
                )
            out[rows] = log_sum_exp(log_w.T[:, :, None] + joint, axis=0)
        if exact:
            alpha = self.model.alpha
            out += log_weights(alpha / alpha.sum())
            at = np.flatnonzero(inside)
            out[at] += log_weights_without(
                self.prior.alpha, self.stats.count, codes[at], weight[at]
            )
            out[at] -= log_weights(alpha / alpha.sum())
        warn_large_k(k, int(np.prod(self.shape)))
        return out, k

    def draw(self, rng: np.random.Generator, draws: int, chains: int) -> Theta:
        """The draws that there are, whatever is asked for."""
        return self.theta

    def draw_features(self, rng: np.random.Generator, draws: int, chains: int) -> Theta:
        """The same."""
        return self.theta

    def simulate(
        self, rng: np.random.Generator, n: int, codes: Array | None, one_theta: bool
    ) -> tuple[Any, Array]:
        """New rows and their class codes (n,).

        A row of a given class has a theta drawn with weight pi_c: class weights and theta are
        dependent where labels were missing in training.
        """
        family = self.model.family
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in self.theta.items()}
        pi = flat[CLASS_WEIGHTS]
        if one_theta:
            s = int(rng.integers(len(pi)))
            own = {k: v[s] for k, v in flat.items()}
            if codes is None:
                codes = rng.choice(pi.shape[1], size=n, p=pi[s] / pi[s].sum())
            return family.simulate(rng, own, codes), codes
        if codes is None:
            at = rng.integers(len(pi), size=n)
            codes = np.argmax(log_weights(pi[at]) + rng.gumbel(size=(n, pi.shape[1])), axis=1)
        else:
            at = np.empty(n, dtype=np.int64)
            for c in np.unique(codes):
                own_rows = np.flatnonzero(codes == c)
                at[own_rows] = rng.choice(len(pi), size=len(own_rows), p=pi[:, c] / pi[:, c].sum())
        return family.simulate(rng, {k: v[at] for k, v in flat.items()}, codes), codes

    def _mean(self, method: Method) -> dict[str, Array]:
        """Mean over chains and draws."""
        if method != "posterior_mean":
            raise UndefinedEstimateError(
                method,
                "the posterior is known by draws, which do not tell a maximum; use "
                "method='posterior_predictive' or 'posterior_mean', or a fit in closed form",
            )
        for name in self.model.family.positions:
            value = np.asarray(self.theta[name])
            if (value != value[:1, :1]).any():
                raise UndefinedEstimateError(
                    method,
                    f"{name} differ from draw to draw, and positions have no mean; "
                    "method='posterior_predictive' averages over them",
                )
        return {name: np.asarray(value).mean(axis=(0, 1)) for name, value in self.theta.items()}


def log_joint_blocks(
    family: Any,
    theta: Theta,
    X: Matrix,
    class_weights: Array | None = None,
    quantity: Quantity = "density",
) -> Iterator[tuple[slice, Array]]:
    """(rows, (chain, draw, n, C) log p(c, x_i | theta)) in blocks of rows.

    Parameters
    ----------
    family : Family
    theta : {name: (chain, draw, *dims)}
    X : (N, D)
    class_weights : (C,), optional
        In place of those of the draws.
    quantity : {"density", "probability"}
        As in `monte_carlo.log_densities`.
    """
    if class_weights is None:
        log_pi = log_class_weights(family, theta)[..., None, :]
    else:
        log_pi = log_weights(class_weights)
    for rows, density in log_densities(family, theta, X, log_pi.shape[-1], quantity):
        density += log_pi
        yield rows, density
