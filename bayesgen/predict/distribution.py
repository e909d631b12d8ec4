"""The distribution of p(y = c | x, theta) of rows, from either kind of posterior.

Each function is generic in the posterior (`functools.singledispatch`): what has a closed form is
computed, what is known by draws is estimated from them. Nothing above this page asks which it is.
"""

from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array, softmax
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import split_chains
from bayesgen.posterior.monte_carlo import warn_of_weights
from bayesgen.predict import from_draws
from bayesgen.predict.draws import log_joint_draws
from bayesgen.predict.from_draws import write_probabilities
from bayesgen.predict.interval.engine import Intervals, class_probability_intervals
from bayesgen.predict.interval.request import IntervalRequest
from bayesgen.predict.uncertainty import entropies

_LEAST_SPARE, _MOST_SPARE = 1 << 26, 1 << 29  # bytes of the draws of theta held at a time
_ONE_THETA, _EACH_ROW = "one theta for all rows", "each row on its own"


# ------------------------------------------------------------------------------------ intervals


@singledispatch
def credible_intervals(
    own: Any, X: Matrix, joint: Array, request: IntervalRequest, class_prior: Any, rng: Any
) -> Intervals:
    """Credible interval of each class probability of each row.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X : (N, D) as the family takes it
    joint : (N, C)
        Log joint densities of the posterior predictive, which say what is impossible.
    request : IntervalRequest
    class_prior : (C,), optional
    rng : int, Generator
        Of routes that draw; a drawn posterior needs none.
    """
    raise NotImplementedError


@credible_intervals.register
def _(own: ExactPosterior, X: Any, joint: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    return class_probability_intervals(own.model, X, request, class_prior, rng, joint=joint)


@credible_intervals.register
def _(own: DrawnPosterior, X: Any, joint: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    # p(y | x, theta) alone says nothing of theta where x has no density
    if request.given == "training" or not own.model.generative:
        blocks = own.log_joint_draws(X, class_prior, "probability")
        return from_draws.by_rows(partial(from_draws.interval, request=request), blocks)
    blocks = own.log_joint_draws(X, class_prior, "density")
    found = from_draws.by_rows(partial(from_draws.weighted_interval, request=request), blocks)
    warn_of_weights(found.weight_ess)
    return found


# ------------------------------------------------------------------------------------ entropies


class Summary(NamedTuple):
    """Of N rows and C classes; entropies in the unit asked for."""

    total: Array  # (N,)
    aleatoric: Array  # (N,)
    mean: Array  # (N, C)
    sd: Array  # (N, C)
    top: Array  # (N, C)
    route: Array  # (N,)
    error: Array  # (N,)


@singledispatch
def summary(
    own: Any, X: Matrix, given: str, unit: str, class_prior: Array | None, rng: Any
) -> Summary:
    """Entropies and moments of the class probabilities.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X : (N, D) as the family takes it
    given : {"training", "training and row"}
        Whose posterior of theta; the second is not known by draws.
    unit : {"nats", "bits"}
    class_prior : (C,), optional
    rng : int, Generator
    """
    raise NotImplementedError


@summary.register
def _(own: ExactPosterior, X: Any, given: str, unit: Any, class_prior: Any, rng: Any) -> Summary:
    pairs: dict[str, Any] = {"training": "posterior", "training and row": "predictive"}
    found = entropies(own.model, X, pairs[given], unit, class_prior, rng)
    moments = found.mean, found.sd, found.top
    return Summary(found.total, found.aleatoric, *moments, found.method, found.error)


@summary.register
def _(own: DrawnPosterior, X: Any, given: str, unit: Any, class_prior: Any, rng: Any) -> Summary:
    if given != "training":
        raise ValueError("given='training and row' has no route from posterior draws")
    blocks = own.log_joint_draws(X, class_prior, "probability")
    found = from_draws.by_rows(from_draws.averages, blocks)
    scale = 1.0 if unit == "nats" else 1 / np.log(2)
    route = np.full(len(found.total), "draws")
    total, aleatoric = found.total * scale, found.aleatoric * scale
    return Summary(total, aleatoric, found.mean, found.sd, found.top, route, found.error)


# ---------------------------------------------------------------------------------------- draws


class DrawRequest(NamedTuple):
    """How many draws, of what, in how much memory.

    Parameters
    ----------
    draws, chains : int
        A drawn posterior has its own.
    per_row : bool
        Draw what each row's probabilities depend on in place of theta: rows are then not jointly
        distributed. A drawn posterior has theta alone.
    max_memory : float
        GiB for the result and what is held on the way.
    """

    draws: int
    chains: int
    per_row: bool
    max_memory: float


@singledispatch
def probability_draws(
    own: Any, X: Matrix, request: DrawRequest, class_prior: Array | None, rng: np.random.Generator
) -> tuple[Array, str]:
    """(chain, draw, N, C) draws of the class probabilities, and what a draw is.

    Parameters
    ----------
    own : ExactPosterior or DrawnPosterior
    X : (N, D) as the family takes it
    request : DrawRequest
    class_prior : (C,), optional
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If the result alone is larger than the memory allowed.
    """
    raise NotImplementedError


@probability_draws.register
def _(own: DrawnPosterior, X: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    chains, draws = own.shape
    out, _ = _room(chains, draws, X.shape[0], len(own.model.alpha), request.max_memory)
    flat = out.reshape(out.shape[0] * out.shape[1], *out.shape[2:])
    write_probabilities(flat, own.model.family, own.theta, X, class_prior)
    return out, _ONE_THETA


@probability_draws.register
def _(own: ExactPosterior, X: Any, request: Any, class_prior: Any, rng: Any) -> Any:
    model, shape = own.model, (request.chains, request.draws)
    out, spare = _room(*shape, X.shape[0], len(model.alpha), request.max_memory)
    flat = out.reshape(out.shape[0] * out.shape[1], *out.shape[2:])
    if request.per_row:
        step = max(1, (1 << 23) // max(1, len(flat) * flat.shape[2]))
        for start in range(0, flat.shape[1], step):
            rows = slice(start, start + step)
            flat[:, rows] = softmax(log_joint_draws(model, X[rows], rng, len(flat), class_prior))
        return out, _EACH_ROW
    budget = min(max(spare, _LEAST_SPARE), _MOST_SPARE)
    step = max(1, int(budget / (8 * model.family.n_parameters())))
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        theta = split_chains(model.draw(rng, len(part)), 1)
        write_probabilities(part, model.family, theta, X, class_prior)
    return out, _ONE_THETA


def _room(
    chains: int, draws: int, n_rows: int, n_classes: int, max_memory: float
) -> tuple[Array, float]:
    """An array for the result, and the bytes that are left beside it."""
    size = 8 * chains * draws * n_rows * n_classes
    spare = max_memory * (1 << 30) - size
    if spare < 0:
        raise ValueError(
            f"{chains * draws} draws of {n_rows} rows and {n_classes} classes would take "
            f"{size / (1 << 30):.1f} GiB, more than max_memory: give fewer rows at a time or "
            "fewer draws, or use predict_interval, which keeps none"
        )
    return np.empty((chains, draws, n_rows, n_classes)), spare
