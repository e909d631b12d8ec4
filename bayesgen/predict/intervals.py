r"""Credible intervals under the posterior of the parameters.

Of class probabilities: the interval is of :math:`\rho_c(x) = p(y=c \mid x, \theta)`, theta
distributed as the training rows leave it, or as they and the row itself leave it: that is a mixture
over the labels of the row, of which every route below takes the average. Neither is an interval
around p(y=c | x, D), though that is the mean of the second, and need not be centred on it.

Two classes: quantiles of the log-odds by inversion of the characteristic function, and through the
sigmoid, which is monotone. More classes: quasi-random points through the law of each (`expansion`)
if they are independent given the data or given variances that they share, else draws. Everything
happens on the scale of log-odds, so that a probability of 1e-30 has its digits.

Other contrasts (`contrast_interval`) are inverted too, on the contrast's own scale.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit

from bayesgen.families.capabilities import DensityCumulants, DensityDraws, SharedVariances
from bayesgen.families.contract import ConjugateFamily
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.seeds import generator
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict import expansion, inversion
from bayesgen.predict.expansion import ERROR_AGAINST_REST, POINTS, Joints, Mixture, Points
from bayesgen.predict.inversion import LEAST, MANY, Contrast, Cumulants
from bayesgen.predict.request import KINDS, IntervalRequest, Length, difference, in_probability

N_DRAWS = 1 << 14
_BLOCK = 2048  # rows
_FEW_LABELS = 8  # of each of which the law is made; of more, each class given its own alone
_LIGHT = 1e-3  # probability, in all, of classes that are never inverted where there are many
_STEPS = 16 * POINTS["auto"][0]  # of one class of a row, under one label
_CELLS = 1 << 20  # numbers of one array: 8 MiB
_NAMES = "U14"
_ENOUGH = 0.01  # error of a percentile, beyond which more points are taken
_CONVERGED = 5e-4  # error of a percentile with which an inverted series still counts as exact


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
        "constant", "inversion", "margins" (`expansion`) or "draws".
    error : (N,)
        Standard error (draws, margins) or bound (else) of the probability below an end.
    """

    lower: Array
    upper: Array
    log_odds_lower: Array
    log_odds_upper: Array
    method: Array
    error: Array


class Ends(NamedTuple):
    """Ends of intervals of real variables."""

    low: Array  # (n,) or (n, C)
    high: Array
    method: Array  # (n,)
    error: Array  # (n,)

    @classmethod
    def empty(cls, *shape: int) -> Self:
        """All NaN, "constant"."""
        nan = np.full(shape, np.nan)
        return cls(nan, nan.copy(), np.full(shape[0], "constant", dtype=_NAMES), np.zeros(shape[0]))

    def put(self, rows: Array, other: "Ends") -> None:
        """Overwrite some of the rows."""
        for mine, theirs in zip(self, other, strict=True):
            mine[rows] = theirs

    @property
    def mirrored(self) -> Self:
        """Of the negative variables."""
        return self._replace(low=-self.high, high=-self.low)


# -------------------------------------------------------------------------------- one contrast


def contrast_interval(
    contrast: Contrast,
    request: IntervalRequest,
    length: Length = difference,
    k: Cumulants | None = None,
) -> Ends:
    """(n,) intervals of the variables of a contrast, `k` if known; nothing is drawn.

    `Ends.error` bounds the error of the probability beyond an end.
    """
    out = Ends.empty(contrast.X.shape[0])
    k = inversion.cumulants(contrast) if k is None else k
    out.low[:], out.high[:] = k.mean, k.mean
    for group in inversion.invert(contrast, k, np.flatnonzero((k.sd > 0) | (k.error > 0))):
        for _, part in group.blocks(16 * group.phi.shape[1]):
            at = part.rows
            out.low[at], out.high[at] = request.ends(len(at), part.quantile, part.pilot, length)
            out.method[at], out.error[at] = "inversion", part.error
    return out


# -------------------------------------------------------------------------- class probabilities


def class_probability_intervals(
    model: ClassModel,
    X: Matrix,
    request: IntervalRequest,
    class_prior: Array | None = None,
    rng: Any = 0,
    n_draws: int = N_DRAWS,
    joint: Array | None = None,
) -> Intervals:
    """Credible interval of each class probability of each row.

    Parameters
    ----------
    model : ClassModel
        The posterior.
    X : (N, D)
        Rows as the family takes them.
    request : IntervalRequest
        Where a route is closed (no convergence; classes that share parameters) draws stand in, and
        `Intervals.method` says so.
    class_prior : (C,), optional
        Class weights >= 0 that replace the fitted ones, and are not uncertain.
    rng : int, Generator
        Of the Sobol points and draws; by default the same for every call.
    n_draws : int
        A power of 2.
    joint : (N, C), optional
        log p(c, x | D) with the class prior, where it is known already.

    Returns
    -------
    Intervals

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
    >>> X = np.array([[1, 1]] + 4 * [[1, 0], [0, 1], [0, 0]])
    >>> model = ClassModel(1.0, BetaBernoulli(alpha=1.0, beta=1.0))
    >>> stats = model.stats(X, np.array([0] + 12 * [1]), 2)
    >>> asked = IntervalRequest(0.9)
    >>> posterior = model.resolve(stats).update(stats)
    >>> found = class_probability_intervals(posterior, np.array([[1, 1]]), asked)
    >>> found.lower.round(4), found.upper.round(4)
    (array([[0.0447, 0.2768]]), array([[0.7232, 0.9553]]))
    """
    n, n_classes = X.shape[0], len(model.alpha)
    labels = min(n_classes, _FEW_LABELS) if request.given == "training and row" else 1
    steps = _STEPS * n * n_classes * labels * (4 if n_classes > MANY else 1)
    source = _Source(model, request, class_prior, rng, n_draws, steps)
    parts = [Ends.empty(0, n_classes)]
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        parts.append(source.block(X[rows], None if joint is None else joint[rows]))
    low, high, names, error = (np.concatenate(f) for f in zip(*parts, strict=True))
    return Intervals(expit(low), expit(high), low, high, names, error)


def is_average(family: ConjugateFamily) -> bool:
    """Whether densities are averages over structures: cheap to draw, and slow to invert."""
    offer = family.capability
    quick = offer(DensityDraws) is None or offer(SharedVariances) is not None
    return not quick and offer(DensityCumulants) is None


def possible_classes(
    model: ClassModel,
    X: Matrix,
    class_prior: Array | None = None,
    joint: Array | None = None,
) -> Iterator[tuple[Array, Array]]:
    """(rows, classes) that can have produced them at all, a partition of the rows.

    `joint` (N, C) is log p(c, x | D) with the class prior, where it is known already.
    """
    if joint is None:
        possible = np.isfinite(model.family.log_predictive(X))
        if class_prior is not None:
            possible &= np.asarray(class_prior) > 0
    else:
        possible = np.isfinite(joint)
    patterns, which = np.unique(possible, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == k), np.flatnonzero(pattern)


@dataclass(frozen=True)
class _Source:
    """What a block of rows needs to be known of."""

    model: ClassModel
    request: IntervalRequest
    class_prior: Array | None
    rng: Any
    n_draws: int
    steps: int  # of all rows

    @cached_property
    def compiled(self) -> bool:
        """Whether the work on all rows pays for compiled loops."""
        return kernels.pays(self.steps)

    @cached_property
    def points(self) -> Points:
        """Of all blocks of rows."""
        return Points(generator(self.rng))

    def block(self, X: Matrix, joint: Array | None) -> Ends:
        """Rows by the classes that can produce them at all."""
        out = Ends.empty(X.shape[0], len(self.model.alpha))
        cases = (self.one_class, self.two_classes, self.many_classes)
        for rows, classes in possible_classes(self.model, X, self.class_prior, joint):
            if not len(classes):
                continue  # no class can produce these rows: NaN
            if len(classes) > MANY:  # quasi-random are those of the likely classes
                p = inversion.responsibilities(self.model, X[rows], classes, self.class_prior)
                classes = classes[np.argsort(-p.sum(axis=0), kind="stable")]
            part = cases[min(len(classes), 3) - 1](X[rows], classes)
            out.low[rows], out.high[rows] = -np.inf, -np.inf
            out.low[np.ix_(rows, classes)], out.high[np.ix_(rows, classes)] = part.low, part.high
            out.method[rows], out.error[rows] = part.method, part.error
        return out

    def one_class(self, X: Matrix, classes: Array) -> Ends:
        """Certain."""
        certain = np.full((X.shape[0], 1), np.inf)
        return Ends.empty(X.shape[0], 1)._replace(low=certain, high=certain)

    @cached_property
    def drawn(self) -> bool:
        """Whether draws are asked for, or take less time than inversion."""
        method = self.request.method
        return method == "draws" or (method == "auto" and is_average(self.model.family))

    def two_classes(self, X: Matrix, classes: Array) -> Ends:
        """By the log-odds of the first against the second."""
        if self.drawn:
            return self.by_draws(X, classes)
        found = self.of_log_odds(X, classes)
        back = found.mirrored
        if not KINDS[self.request.kind].symmetric:
            back = self.of_log_odds(X, classes[::-1])
        out = found._replace(
            low=np.stack([found.low, back.low], axis=1),
            high=np.stack([found.high, back.high], axis=1),
        )
        left = np.flatnonzero(found.error > _CONVERGED)
        if len(left):
            out.put(left, self.by_draws(X[left], classes))
        return out

    def of_log_odds(self, X: Matrix, classes: Array) -> Ends:
        """(n,) of the probability of the first of two classes, where no other is possible."""
        a, b = map(int, classes)
        tilts = [a, b] if self.request.given == "training and row" else []
        contrast = inversion.log_odds(self.model, X, a, b, self.class_prior, tilts)
        return contrast_interval(contrast, self.request, in_probability)

    def many_classes(self, X: Matrix, classes: Array) -> Ends:
        """Each class against all others: by the laws of all of them, or else by draws."""
        n, n_classes = X.shape[0], len(classes)
        out, left, rows = Ends.empty(n, n_classes), [], np.arange(n)
        joints = Joints(self.model, X, classes, self.class_prior, self.points, self.compiled)
        exact, shared = self.request.method == "exact", joints.shared is not None
        if self.drawn or not ((shared and not exact) or joints.independent.all()):
            return self.by_draws(X, classes)
        with_row = self.request.given == "training and row"
        weights = self.label_weights(joints) if with_row else np.ones((n, 1))
        labels = np.flatnonzero(weights.any(axis=0))
        very_many = n_classes > MANY and not exact
        heavy = self.label_weights(joints, _LIGHT) > 0 if very_many else None
        many = (not shared or very_many) and len(labels) > _FEW_LABELS
        sizes = POINTS["exact"] if exact else POINTS["auto"]
        if exact or shared or many or not KINDS[self.request.kind].invariant:
            sizes = sizes[-1:]
        # temporaries fit the cache; of very many classes rows share the calls of each
        block = _CELLS << 2 if n_classes > MANY else _CELLS >> 4
        for size in sizes:
            cells = size * n_classes * (2 if many else max(1, len(labels)))
            # of shared variances and many labels: one likeliest label
            step, again = 1 if many and shared else max(1, block // cells), [rows[:0]]
            for part in np.split(rows, np.arange(step, len(rows), step)):
                law = partial(joints.law, exact=exact, heavy=None if heavy is None else heavy[part])
                if many:
                    own = weights[part]
                    laws, ratio = joints.of_labels(law, size, part, own)
                    use = np.all([one.good.all(axis=1) for one in laws], axis=0)
                else:
                    own, ratio = weights[np.ix_(part, labels)], None
                    laws = [law(size, part, k) for k in (labels.tolist() if with_row else [None])]
                    good = np.stack([one.good.all(axis=1) for one in laws], axis=1)
                    use = (good | (own == 0)).all(axis=1)
                left.append(part[~use])
                if not use.any():
                    continue
                own, laws = own[use], laws if use.all() else [one.part(use) for one in laws]
                if many:
                    ratio = None if ratio is None else ratio[use]
                    mixture = Mixture.of_labels(own, laws, ratio, joints.compiled)
                else:
                    mixture = Mixture(own[..., None], laws, joints.compiled)
                least = 0.0 if exact else ERROR_AGAINST_REST
                low, high, error = mixture.intervals(self.request, least)
                error += LEAST if with_row else 0.0
                out.put(part[use], Ends(low, high, np.full(len(low), "margins"), error))
                again.append(part[use][error > _ENOUGH])
            rows = np.concatenate(again)
            if not len(rows):
                break
        rows = np.concatenate(left)
        if len(rows):
            out.put(rows, self.by_draws(X[rows], classes))
        return out

    def label_weights(self, joints: Joints, total: float = LEAST) -> Array:
        """(n, C) of the labels that rows may have; 0 for those that have less than `total`."""
        p = inversion.responsibilities(self.model, joints.X, joints.classes, self.class_prior)
        p = np.where(p > expansion.least_weight(p, total), p, 0.0)
        return p / p.sum(axis=1, keepdims=True)

    def by_draws(self, X: Matrix, classes: Array) -> Ends:
        """Quantiles of quasi-random draws, row by row."""
        rest = self.request, self.class_prior, self.rng, self.n_draws
        low, high, error = expansion.by_draws(self.model, X, classes, *rest)
        return Ends(low, high, np.full(len(low), "draws", dtype=_NAMES), error)
