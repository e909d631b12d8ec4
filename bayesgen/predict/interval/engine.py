r"""Credible intervals of the class probabilities under the posterior of the parameters.

The interval is of :math:`\rho_c(x) = p(y=c \mid x, \theta)`, theta distributed as the data leave
it. It is not an interval around p(y=c | x, D), which is another mean (`predict`), and need not be
centred on it.

Two classes: quantiles of the log-odds, by Cornish-Fisher or by inversion, and through the sigmoid,
which is monotone: exact. More classes: `against_rest` if they are independent given the data, else
draws. Everything happens on the scale of log-odds, so that a probability of 1e-30 has its digits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.draws import (
    REPLICATES,
    block_rows,
    log_joint_draws,
    log_odds_against_rest,
    order_statistic,
    percentile_error,
    quantile,
    replicates,
)
from bayesgen.predict.interval import cornish_fisher
from bayesgen.predict.interval.against_rest import POINTS, independent, margins, sobol
from bayesgen.predict.interval.contrast import cumulants, log_odds, possible_classes
from bayesgen.predict.interval.inversion import invert
from bayesgen.predict.interval.kinds import shortest

Kind = Literal["eti", "hdi"]
Route = Literal["auto", "exact", "approx", "draws"]
Quantile = Callable[[Array], Array]  # (n, Q) -> (n, Q)

N_DRAWS = 1 << 14
_BLOCK = 2048  # rows
_CELLS = 1 << 20  # numbers of one array: 8 MiB
_NAMES = "U14"
_CONVERGED = 5e-4  # error of a percentile with which an inverted series still counts as exact


def interval_of(prob: float | None, kind: Any) -> tuple[float, Kind]:
    """Probability and kind of an interval: the user's, or else ArviZ's settings; checked."""
    if prob is None or kind is None:
        from arviz_base import rcParams

        prob = rcParams["stats.ci_prob"] if prob is None else prob
        kind = rcParams["stats.ci_kind"] if kind is None else kind
    if not 0 < prob < 1:
        raise ValueError(f"prob must be between 0 and 1, got {prob}")
    if kind not in ("eti", "hdi"):
        raise ValueError(f"kind must be one of 'eti', 'hdi', got {kind!r}")
    return prob, kind


@dataclass(frozen=True)
class Intervals:
    """Credible intervals of N rows.

    Parameters
    ----------
    lower, upper : (N, C)
        Probabilities. NaN for a row that is impossible under every class.
    log_odds_lower, log_odds_upper : (N, C)
        The same ends as log p/(1 - p): what is left of them where a probability rounds to 1.
    method : (N,) str
        "constant", "cornish-fisher", "inversion", "margins" (`against_rest`) or "draws".
    error : (N,)
        Standard error (draws, margins) or bound (else) of the probability below an end.
    """

    lower: Array
    upper: Array
    log_odds_lower: Array
    log_odds_upper: Array
    method: Array
    error: Array


def interval(
    model: ClassModel,
    X: Matrix,
    prob: float = 0.9,
    kind: Kind = "eti",
    method: Route = "auto",
    class_prior: Array | None = None,
    rng: Any = 0,
    n_draws: int = N_DRAWS,
) -> Intervals:
    """Credible interval of each class probability of each row.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
        Rows as the family takes them.
    prob : float in (0, 1)
        Posterior probability of the interval.
    kind : {"eti", "hdi"}
        Equal tails, or the shortest interval of the probability.
    method : {"auto", "exact", "approx", "draws"}
        "exact" inverts characteristic functions; "auto" replaces that by Cornish-Fisher where its
        error is below .0015 in percentile; "approx" is Cornish-Fisher whatever its error; "draws"
        draws theta. Where a route is closed (no convergence; classes that share parameters) draws
        stand in, and `Intervals.method` says so.
    class_prior : (C,), optional
        Class weights >= 0 that replace the fitted ones, and are not uncertain.
    rng : int, Generator
        Of the Sobol points and draws; by default the same for every call.
    n_draws : int
        A power of 2.

    Returns
    -------
    Intervals

    Raises
    ------
    ValueError
        If prob, kind or method is not one of these.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> X = np.array([[1, 1]] + 4 * [[1, 0], [0, 1], [0, 0]])
    >>> model = ClassModel(1.0, BetaBernoulli(alpha=1.0, beta=1.0))
    >>> stats = model.stats(X, np.array([0] + 12 * [1]), 2)
    >>> found = interval(model.resolve(stats).update(stats), np.array([[1, 1]]), method="exact")
    >>> found.lower.round(4), found.upper.round(4)
    (array([[0.0447, 0.2768]]), array([[0.7232, 0.9553]]))
    """
    request = _Request(prob, kind, method, class_prior, rng, n_draws)
    n, n_classes = X.shape[0], len(model.alpha)
    size = _BLOCK if n_classes <= 2 else max(1, _CELLS // (request.points * n_classes))
    parts = [_block(model, X[k : k + size], request) for k in range(0, n, size)]
    parts = parts or [Ends.empty(0, n_classes)]
    low, high, names, error = (np.concatenate(f) for f in zip(*parts, strict=True))
    return Intervals(expit(low), expit(high), low, high, names, error)


@dataclass(frozen=True)
class _Request:
    prob: float
    kind: Kind
    method: Route
    class_prior: Array | None
    rng: Any
    n_draws: int

    def __post_init__(self) -> None:
        if not 0 < self.prob < 1:
            raise ValueError(f"prob must be between 0 and 1, got {self.prob}")
        for name, value, known in (
            ("kind", self.kind, ("eti", "hdi")),
            ("method", self.method, ("auto", "exact", "approx", "draws")),
        ):
            if value not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}"
                )

    @property
    def points(self) -> int:
        """Sobol points for classes that are independent."""
        return POINTS["exact" if self.method == "exact" else "auto"]

    @property
    def generator(self) -> np.random.Generator:
        """The same for every block of rows, unless the caller's own generator moves on."""
        return np.random.default_rng(self.rng)

    def ends(
        self, n: int, quantile: Quantile, draft: Quantile | None = None
    ) -> tuple[Array, Array]:
        """(n,) each: the interval's ends, from the quantile function (n, Q) -> (n, Q).

        `draft` is a cheaper one, good enough to find the shortest interval.
        """
        if self.kind == "eti":
            tail = (1 - self.prob) / 2
            p = np.broadcast_to([tail, 1 - tail], (n, 2))
            low, high = quantile(p).T
            return low, high
        u, _ = shortest(draft or quantile, n, self.prob)
        first, last = u <= 0, u >= (1 - self.prob) * (1 - 1e-12)
        u = np.where(first | last, (1 - self.prob) / 2, u)
        p = np.stack(
            [np.where(last, 1 - self.prob, u), np.where(first, 0.0, u) + self.prob], axis=1
        )
        low, high = quantile(p).T
        return np.where(first, -np.inf, low), np.where(last, np.inf, high)


class Ends(NamedTuple):
    """Ends of intervals of log-odds."""

    low: Array  # (n, C)
    high: Array  # (n, C)
    method: Array  # (n,)
    error: Array  # (n,)

    @classmethod
    def empty(cls, n: int, n_classes: int) -> Self:
        """All NaN, "constant"."""
        nan = np.full((n, n_classes), np.nan)
        return cls(nan, nan.copy(), np.full(n, "constant", dtype=_NAMES), np.zeros(n))

    def put(self, rows: Array, other: "Ends") -> None:
        """Overwrite some of the rows."""
        for mine, theirs in zip(self, other, strict=True):
            mine[rows] = theirs


def _block(model: ClassModel, X: Matrix, request: _Request) -> Ends:
    """Rows by the classes that can produce them at all."""
    out = Ends.empty(X.shape[0], len(model.alpha))
    for rows, classes in possible_classes(model, X, request.class_prior):
        if not len(classes):
            continue  # no class can produce these rows: NaN
        part = _CASES[min(len(classes), 3) - 1](model, X[rows], classes, request)
        out.low[rows], out.high[rows] = -np.inf, -np.inf
        out.low[np.ix_(rows, classes)], out.high[np.ix_(rows, classes)] = part.low, part.high
        out.method[rows], out.error[rows] = part.method, part.error
    return out


def _one_class(model: ClassModel, X: Matrix, classes: Array, request: _Request) -> Ends:
    certain = np.full((X.shape[0], 1), np.inf)
    return Ends.empty(X.shape[0], 1)._replace(low=certain, high=certain)


def _two_classes(model: ClassModel, X: Matrix, classes: Array, request: _Request) -> Ends:
    if request.method == "draws":
        return _by_draws(model, X, classes, request)
    out = Ends.empty(X.shape[0], 2)
    contrast = log_odds(model, X, int(classes[0]), int(classes[1]), request.class_prior)
    k = cumulants(contrast)

    def put(rows: Array, ends: tuple[Array, Array], method: str, error: Array | float) -> None:
        low, high = ends
        sides = np.stack([low, -high], axis=1), np.stack([high, -low], axis=1)
        out.put(rows, Ends(*sides, np.full(len(rows), method), np.broadcast_to(error, len(rows))))

    constant = (k.sd == 0) & (k.error == 0)
    put(np.flatnonzero(constant), (k.mean[constant], k.mean[constant]), "constant", 0.0)
    quick = ~constant & (request.method != "exact")
    if request.method == "auto":
        quick &= cornish_fisher.applies(k)
    own = k.part(quick)
    known = np.where(cornish_fisher.applies(own), cornish_fisher.ERROR, np.nan)
    ends = request.ends(int(quick.sum()), lambda p: cornish_fisher.quantile(own, p))
    put(np.flatnonzero(quick), ends, "cornish-fisher", known)
    for group in invert(contrast, k, np.flatnonzero(~constant & ~quick)):
        for _, part in group.blocks(16 * group.phi.shape[1]):
            draft = part.table().quantile if request.kind == "hdi" else None
            ends = request.ends(len(part.rows), part.quantile, draft)
            put(part.rows, ends, "inversion", part.error)
        rows = group.rows[group.error > _CONVERGED]
        if len(rows):
            out.put(rows, _by_draws(model, X[rows], classes, request))
    return out


def _many_classes(model: ClassModel, X: Matrix, classes: Array, request: _Request) -> Ends:
    n = X.shape[0]
    apart = np.zeros(n, dtype=bool) if request.method == "draws" else independent(model, X)
    out = Ends.empty(n, len(classes))
    rows = np.flatnonzero(apart)
    if len(rows):
        u = sobol(request.generator, request.points, len(classes))
        found = margins(model, X[rows], u, classes, request.class_prior)
        low, high = np.empty((2, len(rows), len(classes)))
        error = np.zeros(len(rows))
        for j in range(len(classes)):

            def by_p(p: Array, j: int = j) -> Array:
                l, each = found.quantile(j, p)
                np.maximum(error, each, out=error)
                return l

            low[:, j], high[:, j] = request.ends(len(rows), by_p, partial(found.draft, j))
        out.put(rows, Ends(low, high, np.full(len(rows), "margins"), error))
        apart[rows[~found.good]] = False
    rows = np.flatnonzero(~apart)
    if len(rows):
        out.put(rows, _by_draws(model, X[rows], classes, request))
    return out


def _by_draws(model: ClassModel, X: Matrix, classes: Array, request: _Request) -> Ends:
    out = Ends.empty(X.shape[0], len(classes))
    out.method[:] = "draws"
    size = block_rows(request.n_draws, len(model.alpha))
    each = request.n_draws // REPLICATES
    for start in range(0, X.shape[0], size):
        rows = np.arange(start, min(start + size, X.shape[0]))
        a = np.stack(
            [
                log_joint_draws(model, X[rows], g, each, request.class_prior).T[classes]
                for g in replicates(request.generator, request.n_draws)
            ],
            axis=-1,
        )  # (C, n, draw, replicate)
        for i, row in enumerate(rows):  # one row fits the cache
            l = log_odds_against_rest(a[:, i])
            flat = l.reshape(len(classes), -1)
            by_p = partial(quantile, flat)
            if request.kind == "hdi":
                by_p = partial(order_statistic, np.sort(flat, axis=1))
            out.low[row], out.high[row] = request.ends(len(classes), by_p)
            out.error[row] = max(percentile_error(l, e[row]).max() for e in (out.low, out.high))
    return out


_CASES = (_one_class, _two_classes, _many_classes)
