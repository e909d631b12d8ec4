"""From (model, X) to log p(class, x): the one path every prediction takes.

Three numbers that are not the same:

- ``"posterior_predictive"``: p(y | x, D), the parameters integrated out;
- ``"posterior_mean"``, ``"map"``, ``"mle"``: p(y | x, theta-hat), one theta plugged in;
- the mean over draws of p(y | x, theta), which no method here returns: it averages normalised
  probabilities, and weighs a theta under which x is absurd as much as one that explains it.

The first two are closed forms, or estimates from posterior draws where those are given.
"""

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.names import CLASS_WEIGHTS, METHODS, Method
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.model import ClassModel, ClassStats, log_weights
from bayesgen.posterior.monte_carlo import MonteCarlo, estimate, warn_in_doubt
from bayesgen.posterior.scores import Quantity, plug_in_score


def check_method(method: str) -> Method:
    """`method` if it is one of `names.METHODS`, else an error that lists them."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    return method


def log_joint(
    model: ClassModel,
    stats: ClassStats,
    X: Matrix,
    method: Method = "posterior_predictive",
    class_prior: Array | None = None,
    theta: Theta | None = None,
    quantity: Quantity = "density",
    exact_weights: bool = True,
) -> Array:
    """(N, C) log p(y = c, x_i), up to nothing: the densities are normalised.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    stats : ClassStats
        Behind the posterior; only ``"mle"`` reads them.
    X : (N, D)
    method : one of `names.METHODS`
    class_prior : (C,), optional
        Class weights that replace the fitted ones (label shift).
    theta : {name: (chain, draw, *dims)}, optional
        Posterior draws, which replace the closed form. ``"posterior_predictive"`` averages the
        joint densities over them and warns (`MonteCarloWarning`) where that cannot be trusted;
        ``"posterior_mean"`` plugs in their mean.
    quantity : {"density", "probability"}
        What will be made of the result. For a probability a term that the classes of a row have
        in common may be left out; and it decides what the warning is about: draws too few for a
        density may be plenty for the probability of a class that is certain.
    exact_weights : bool
        Whether `model` has the exact posterior of the class weights, as in `monte_carlo`.
    """
    if method == "posterior_predictive":
        if theta is not None:
            result = monte_carlo(model, theta, X, class_prior, exact_weights)
            warn_in_doubt(result, quantity)
            return result.log_joint
        weights = model.class_weights(method, stats) if class_prior is None else class_prior
        log_x = model.family.log_predictive(X)
    else:
        plug_in = model.estimate(method, stats) if theta is None else _mean(theta, method)
        if class_prior is not None:
            weights = class_prior
        elif theta is not None and CLASS_WEIGHTS in theta:
            weights = plug_in[CLASS_WEIGHTS]
        else:
            weights = model.class_weights(method, stats)
        log_x = plug_in_score(model.family, method, quantity)(X, plug_in)
    log_x += log_weights(weights)
    return log_x


def monte_carlo(
    model: ClassModel,
    theta: Theta,
    X: Matrix,
    class_prior: Array | None = None,
    exact_weights: bool = True,
) -> MonteCarlo:
    """The posterior predictive estimated from draws, with its error; as in `log_joint`.

    The class weights are those of `model`: integrated exactly, not drawn. With `exact_weights`
    false (some training rows had no label, so that pi and theta are dependent) they are drawn.

    Examples
    --------
    A row (1, 1) after one such row of the first class and twelve others: exactly 0.348987.

    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> ones, zeros = np.array([[2.0, 2], [5, 5]]), np.array([[1.0, 1], [9, 9]])
    >>> model = ClassModel(np.array([2.0, 13.0]), BetaBernoulli(ones, zeros))
    >>> draws = model.draw(np.random.default_rng(0), 4000)
    >>> theta = {name: value.reshape(4, 1000, *value.shape[1:]) for name, value in draws.items()}
    >>> result = monte_carlo(model, theta, np.array([[1, 1]]))
    >>> float(result.probability[0, 0]), float(result.mcse[0, 0])
    (0.3485, 0.0025)
    """
    weights = class_prior
    if weights is None:
        exact = exact_weights or model.family.discriminative
        weights = model.mean_weights() if exact else theta[CLASS_WEIGHTS]
    return estimate(model.family, theta, X, weights)


def _mean(theta: Theta, method: Method) -> dict[str, Array]:
    """Mean over chains and draws."""
    if method != "posterior_mean":
        raise ValueError(
            f"method={method!r} cannot be read from posterior draws; leave `posterior` out, or "
            "use method='posterior_predictive' or 'posterior_mean'"
        )
    return {name: np.asarray(value).mean(axis=(0, 1)) for name, value in theta.items()}


class ImpossibleRowError(ValueError):
    """Rows that have probability 0 under every class, so that p(y | x) is 0/0."""


def log_class_probability(joint: Array, method: Method) -> Array:
    """Normalise (N, C) log joint densities, in place; refuses rows that no class can produce."""
    if _log_softmax(joint):
        impossible = np.isneginf(joint).all(axis=1)
        rows = np.flatnonzero(impossible)
        if method == "posterior_predictive":  # estimated from draws: the closed form is positive
            why = "under every posterior draw"
            instead = "leave `posterior` out for the closed form"
        else:
            why = "the black swan of maximum likelihood"
            instead = "use method='posterior_predictive', or predict_joint_log_proba to see which"
        raise ImpossibleRowError(
            f"{len(rows)} row(s), the first at position {rows[0]}, have probability 0 under every "
            f"class by method={method!r}, so p(y | x) is 0/0 ({why}); {instead}"
        )
    return joint


def _log_softmax(joint: Array) -> int:
    """Normalise the rows in place; how many are -inf throughout, which stay so."""
    if kernels.pays(8 * joint.size):
        from bayesgen.numerics.kernels.softmax import log_softmax as compiled
        from bayesgen.numerics.kernels.threads import over_blocks

        def part(start: int, stop: int) -> int:
            return compiled(joint[start:stop])

        return sum(over_blocks(part, joint.shape[0], joint.shape[1], most=32))
    possible = ~np.isneginf(joint).all(axis=1)
    joint[possible] = log_softmax(joint[possible])
    return int((~possible).sum())
