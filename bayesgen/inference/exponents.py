r"""Exponents and intercepts of a log-linear pool of predictives, by convex optimisation.

.. math:: p(y_i = c) \propto \exp\Big(\sum_m \eta_m J_{imc} + b_c\Big), \qquad
          \eta_m \sim \text{Gamma}(a, a M), \qquad b_c \sim \text{Normal}(0, s^2)

J are log joint densities of M members for row i *without that row*: a multinomial logistic
regression on M + C columns whose coefficients of scores are positive. The mode is taken in the
coordinates (log eta, b), where the prior of log eta_m has no boundary; in eta the objective

.. math:: -\sum_i w_i \log p(y_i) - a \sum_m \log \eta_m + a M \sum_m \eta_m
          + \sum_c b_c^2 / 2 s^2

is convex, so that Newton's method finds its only minimum. The posterior near it is Normal in
(log eta, b): Laplace's method. Source: Genest, Weerahandi and Zidek (1984), Aggregating opinions
through logarithmic pooling; Raina et al. (2003), Classification with hybrid generative and
discriminative models.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array, log_softmax

FURTHEST = 300.0  # nats below the row's best class: further away is no evidence of more
_STEPS = 200
_SMALLEST = 1e-100  # of a prior's number: it and its inverse have squares
_CONVERGED = 1e-10  # of the objective, relative
_CLASSES = 16  # of a row, the most probable ones, whose curvature is taken out with it
_HEAVY = 0.1  # share of the weight from which one Newton step is not enough: 10 rows at the most


@dataclass(frozen=True)
class ExponentPrior:
    """Prior of exponents and intercepts.

    Parameters
    ----------
    shape : float, > 0
        Shape of the Gamma prior of each exponent, whose mean is `mean`.
    mean : float, > 0
        1 / M for the members of a pool; 1 for the features of one model.
    intercept_scale : float, > 0, or None
        Standard deviation of each intercept; None: there are none.
    """

    shape: float
    mean: float
    intercept_scale: float | None

    def __post_init__(self) -> None:
        """Refuse what is no number > 0, or whose square is not representable."""
        for name in ("shape", "mean", "intercept_scale"):
            value = getattr(self, name)
            if name == "intercept_scale" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not _SMALLEST <= value <= 1 / _SMALLEST:
                raise ValueError(
                    f"{name} must be > 0, and between {_SMALLEST:g} and {1 / _SMALLEST:g}, "
                    f"got {value!r}"
                )


class Exponents(NamedTuple):
    """The mode, and the Normal around it in (log exponents, intercepts)."""

    exponents: Array  # (M,)
    intercepts: Array  # (C,) zeros where there are none
    covariance: Array  # (M + C or M, ...) of log exponents and intercepts

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """(n, M) and (n, C) draws of Laplace's approximation."""
        n_members = len(self.exponents)
        values, vectors = np.linalg.eigh(self.covariance)
        z = rng.standard_normal((n, len(values))) * np.sqrt(np.maximum(values, 0.0))
        step = z @ vectors.T
        eta = self.exponents * _factor(step[:, :n_members])
        intercepts = np.broadcast_to(self.intercepts, (n, len(self.intercepts)))
        with_intercepts = step.shape[1] > n_members
        return eta, intercepts + step[:, n_members:] if with_intercepts else intercepts


def comparable(scores: Array) -> Array:
    """Log joint densities (..., C) relative to the row's best class, none below -`FURTHEST`.

    A row that no class can produce says nothing.
    """
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    out: Array = np.maximum(scores - top, -FURTHEST)
    out[~np.isfinite(scores).any(axis=-1)] = 0.0
    return out


def pooled(scores: Array, exponents: Array, intercepts: Array) -> Array:
    """(N, C) log probabilities from `comparable` scores (M, N, C)."""
    out: Array = log_softmax(np.tensordot(exponents, scores, axes=1) + intercepts)
    return out


def fit(
    scores: Array,
    codes: Array,
    weight: Array,
    prior: ExponentPrior,
    offset: Array | None = None,
) -> Exponents:
    """Mode and Laplace approximation.

    Parameters
    ----------
    scores : (M, N, C) `comparable` log joint densities of rows without themselves
    codes, weight : (N,) classes and weights of the rows
    prior : ExponentPrior
    offset : (C,), optional
        Added to the pooled scores of every row.

    Raises
    ------
    ValueError
        If there are no rows.
    """
    n_members, n_rows, n_classes = scores.shape
    if not n_rows:
        raise ValueError("exponents need rows to be fitted to")
    target = _Objective(scores, codes, weight, prior, offset)
    point = np.zeros(n_members + target.n_intercepts)
    point[:n_members] = prior.mean
    value = target.value(point)
    for _ in range(_STEPS):
        gradient, hessian = target.slopes(point)
        step = -_inverse(hessian) @ gradient
        down = step[:n_members] < 0
        room = point[:n_members][down] / -step[:n_members][down]
        length = min(1.0, 0.95 * room.min(initial=np.inf))  # exponents stay positive
        least = 1e-12 * length  # where the curvature is none, the whole step may be 1e14 long
        while length > least:
            trial = point + length * step
            new = target.value(trial)
            if new <= value + 1e-4 * length * (gradient @ step):
                break
            length /= 2
        else:
            break
        point, change, value = trial, value - new, new
        if change <= _CONVERGED * (1 + abs(value)):
            break
    _, hessian = target.slopes(point)
    unit = np.ones(len(point))
    unit[:n_members] = point[:n_members]  # d eta / d log eta
    covariance = _semidefinite(_inverse(hessian * unit * unit[:, None]))
    intercepts = np.zeros(n_classes)
    if target.n_intercepts:
        intercepts = point[n_members:]
    return Exponents(point[:n_members], intercepts, covariance)


def fit_without_each_row(
    found: Exponents,
    scores: Array,
    codes: Array,
    weight: Array,
    prior: ExponentPrior,
    offset: Array | None = None,
) -> Array:
    """(N, C) log probabilities of each row under the exponents that the other rows lead to.

    One Newton step of (log exponents, intercepts) from the mode of all rows, with gradient and
    Hessian of the row taken out, in place of a fit for each; without rows of a tenth of the weight
    or more it is fitted anew. Arguments as of `fit`, whose result is `found`. Source: Rad and
    Maleki (2020), A scalable estimate of the out-of-sample prediction error via approximate
    leave-one-out cross-validation.
    """
    target = _Objective(scores, codes, weight, prior, offset)
    m, k = target.n_members, target.n_intercepts
    _, hessian = target.slopes(np.concatenate([found.exponents, found.intercepts[:k]]))
    unit = np.concatenate([found.exponents, np.ones(k)])  # d eta / d log eta
    inverse = _inverse(hessian * unit * unit[:, None])
    n_top = min(_CLASSES, target.n_classes)
    out = np.empty(scores.shape[1:])
    for rows in row_blocks(target.n_rows, (n_top + 2) * (m + k) + target.n_classes):
        j = scores[:, rows].transpose(1, 0, 2)
        p = np.exp(pooled(scores[:, rows], found.exponents, found.intercepts + target.offset))
        slopes = found.exponents[:, None] * j
        mean = np.concatenate([np.einsum("nmc,nc->nm", slopes, p), p[:, :k]], axis=1)
        top = np.argpartition(-p, n_top - 1, axis=1)[:, :n_top]
        columns = _Columns(slopes, mean, inverse, k > 0)
        u, own = columns.solved(top), columns.solved(codes[rows, None])
        share = weight[rows, None] * np.take_along_axis(p, top, axis=1)
        within = np.eye(n_top) - share[:, :, None] * columns.along(top, u)
        x = np.linalg.solve(within, share[:, :, None] * columns.along(top, own))
        step = -weight[rows, None] * (own[:, 0] + np.einsum("nap,na->np", u, x[:, :, 0]))
        eta = found.exponents * _factor(step[:, :m])
        pool = np.einsum("nm,nmc->nc", eta, j) + found.intercepts + target.offset
        if k:
            pool += step[:, m:]
        out[rows] = log_softmax(pool)
    if target.n_rows > 1:
        for i in np.flatnonzero(weight >= _HEAVY * weight.sum()):
            rest = np.delete(scores, i, axis=1), np.delete(codes, i), np.delete(weight, i)
            less = fit(*rest, prior, offset)
            out[[i]] = pooled(scores[:, [i]], less.exponents, less.intercepts + target.offset)
    return out


def _factor(step: Array) -> Array:
    """What exponents are multiplied by; beyond 30 nats predictions change no more."""
    return np.asarray(np.exp(np.clip(step, -30.0, 30.0)))


def _inverse(hessian: Array) -> Array:
    """Of a Hessian that is positive definite but for rounding, beside priors of 1e15."""
    try:
        return np.linalg.inv(hessian)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(hessian, hermitian=True))


def _semidefinite(inverse: Array) -> Array:
    """The inverse as the covariance that it is but for rounding, beside priors of 1e15."""
    out = (inverse + inverse.T) / 2
    values, vectors = np.linalg.eigh(out)
    return out if values[0] >= 0 else (vectors * np.maximum(values, 0.0)) @ vectors.T


class _Columns(NamedTuple):
    """Slopes of the classes' log scores in (log eta, b), less their mean, for some rows.

    The curvature that a row adds is a sum over classes of such a column times itself, so that the
    Hessian without the row is inverted from that of all rows (Woodbury), for its `_CLASSES` most
    probable classes; what the others add is below 1 / `_CLASSES` of the row's own share.
    """

    of_exponents: Array  # (n, M, C)
    mean: Array  # (n, M + C or M)
    inverse: Array
    with_intercepts: bool

    def solved(self, classes: Array) -> Array:
        """(n, L, P): the inverse Hessian times the columns of classes (n, L)."""
        m = self.of_exponents.shape[1]
        some = np.take_along_axis(self.of_exponents, classes[:, None, :], axis=2)
        out = some.transpose(0, 2, 1) @ self.inverse[:m]
        if self.with_intercepts:
            out += self.inverse[m + classes]
        out -= (self.mean @ self.inverse)[:, None]
        return np.asarray(out)

    def along(self, classes: Array, x: Array) -> Array:
        """(n, K, L): the columns of classes (n, K) times vectors (n, L, P)."""
        m = self.of_exponents.shape[1]
        some = np.take_along_axis(self.of_exponents, classes[:, None, :], axis=2)
        out = some.transpose(0, 2, 1) @ x[:, :, :m].transpose(0, 2, 1)
        if self.with_intercepts:
            out += np.take_along_axis(x, m + classes[:, None, :], axis=2).transpose(0, 2, 1)
        out -= np.einsum("np,nlp->nl", self.mean, x)[:, None]
        return np.asarray(out)


class _Objective:
    """Minus the log posterior density of (log eta, b) at (eta, b), up to a constant."""

    def __init__(
        self,
        scores: Array,
        codes: Array,
        weight: Array,
        prior: ExponentPrior,
        offset: Array | None,
    ) -> None:
        self.offset: Array = np.zeros(scores.shape[2]) if offset is None else offset
        self.scores, self.codes, self.weight, self.prior = scores, codes, weight, prior
        self.n_members, self.n_rows, self.n_classes = scores.shape
        self.n_intercepts = 0 if prior.intercept_scale is None else self.n_classes

    def _parts(self, point: Array) -> tuple[Array, Array]:
        m = self.n_members
        return point[:m], point[m:] if self.n_intercepts else np.zeros(self.n_classes)

    def value(self, point: Array) -> float:
        eta, b = self._parts(point)
        rows = np.arange(self.n_rows)
        loss = -self.weight @ pooled(self.scores, eta, b + self.offset)[rows, self.codes]
        a, mean = self.prior.shape, self.prior.mean
        loss += a * (eta / mean - np.log(eta)).sum()
        if self.prior.intercept_scale is not None:
            loss += np.square(b / self.prior.intercept_scale).sum() / 2
        return float(loss)

    def slopes(self, point: Array) -> tuple[Array, Array]:
        """Gradient and Hessian, blocks of rows at a time."""
        m, k = self.n_members, self.n_intercepts
        eta, b = self._parts(point)
        gradient, hessian = np.zeros(m + k), np.zeros((m + k, m + k))
        for rows in row_blocks(self.n_rows, (m + 1) * self.n_classes):
            j = self.scores[:, rows]
            p = np.exp(pooled(j, eta, b + self.offset))
            w = self.weight[rows, None]
            error = p.copy()
            error[np.arange(len(p)), self.codes[rows]] -= 1
            error *= w
            p_w = p * w
            mean = np.einsum("mnc,nc->mn", j, p)
            centred = (j - mean[:, :, None]).reshape(m, -1)
            gradient[:m] += np.einsum("mnc,nc->m", j, error)
            hessian[:m, :m] += (centred * p_w.ravel()) @ centred.T
            if k:
                gradient[m:] += error.sum(axis=0)
                cross = np.einsum("mnc,nc->mc", centred.reshape(j.shape), p_w)
                hessian[:m, m:] += cross
                hessian[m:, :m] += cross.T
                hessian[m:, m:] += np.diag(p_w.sum(axis=0)) - p.T @ p_w
        a, mean_eta = self.prior.shape, self.prior.mean
        gradient[:m] += a / mean_eta - a / eta
        hessian[range(m), range(m)] += a / eta**2
        if self.prior.intercept_scale is not None:
            variance = self.prior.intercept_scale**2
            gradient[m:] += b / variance
            hessian[range(m, m + k), range(m, m + k)] += 1 / variance
        return gradient, hessian
