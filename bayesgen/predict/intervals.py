r"""Credible intervals under the posterior of the parameters.

Of class probabilities: the interval is of :math:`\rho_c(x) = p(y=c \mid x, \theta)`, theta
distributed as the training rows leave it, or as they and the row itself leave it: that is a mixture
over the labels of the row, of which every route below takes the average. Neither is an interval
around p(y=c | x, D), though that is the mean of the second, and need not be centred on it.

Two classes: quantiles of the log-odds, by Cornish-Fisher or by inversion, and through the sigmoid,
which is monotone: exact. More classes: `against_rest` if they are independent given the data or
given variances that they share, else draws. Everything happens on the scale of log-odds, so that a
probability of 1e-30 has its digits.

Of other contrasts (`contrast_interval`): the same routes, on the contrast's own scale.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit

from bayesgen.numerics import kernels
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassModel
from bayesgen.predict.expansion import ERROR_AGAINST_REST as EXPANDED_ERROR
from bayesgen.predict.expansion import (
    POINTS,
    Joints,
    Mixture,
    Points,
    by_draws,
    is_average,
    least_weight,
    under_all,
)
from bayesgen.predict.inversion import (
    ERROR,
    LEAST,
    MANY,
    Contrast,
    Cumulants,
    cornish_fisher,
    cornish_fisher_applies,
    cumulants,
    invert,
    log_odds,
    responsibilities,
)
from bayesgen.predict.request import KINDS, IntervalRequest, Length, difference, in_probability

N_DRAWS = 1 << 14
# ways to classes against the rest, until one is good enough for a row; what is left is drawn
_ROUTES: dict[str, tuple[str, ...]] = {
    "auto": ("cornish-fisher", "margins"),
    "approx": ("cornish-fisher",),
    "exact": ("margins",),
    "draws": (),
}
_OF_AVERAGES = _ROUTES | {"auto": ()}  # over structures, which are slow to invert
_BLOCK = 2048  # rows
_FEW_LABELS = 8  # of each of which the law is made; of more, each class given its own alone
_LIGHT = 1e-3  # probability, in all, of classes that are never inverted where there are many
_STEPS = 16 * POINTS["expanded"]  # of one class of a row, under one label
_CELLS = 1 << 20  # numbers of one array: 8 MiB
_NAMES = "U14"
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
        "constant", "cornish-fisher", "inversion", "margins" (`Joints.inverted`) or "draws".
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
    k = cumulants(contrast) if k is None else k
    n = len(k.mean)
    out = Ends(k.mean.copy(), k.mean.copy(), np.full(n, "constant", dtype=_NAMES), np.zeros(n))
    varies = (k.sd > 0) | (k.error > 0)
    mixture = contrast.tilts is not None and len(contrast.tilts) > 1
    good = cornish_fisher_applies(k, mixture)
    quick = varies & (request.method != "exact") & (good | (request.method == "approx"))
    found: list[tuple[Array, Ends]] = []
    if quick.any():
        own = k.part(quick)
        low, high = request.ends(len(own.mean), lambda p: cornish_fisher(own, p), length=length)
        error = np.where(good[quick], ERROR, np.nan)
        found.append((quick, Ends(low, high, np.full(len(low), "cornish-fisher"), error)))
    for group in invert(contrast, k, np.flatnonzero(varies & ~quick)):
        for _, part in group.blocks(16 * group.phi.shape[1]):
            low, high = request.ends(len(part.rows), part.quantile, part.pilot, length)
            ends = Ends(low, high, np.full(len(low), "inversion"), part.error)
            found.append((part.rows, ends))
    for rows, ends in found:
        out.put(rows, ends)
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
    >>> asked = IntervalRequest(0.9, method="exact")
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
        return Points(np.random.default_rng(self.rng))

    def block(self, X: Matrix, joint: Array | None) -> Ends:
        """Rows by the classes that can produce them at all."""
        out = Ends.empty(X.shape[0], len(self.model.alpha))
        cases = (self.one_class, self.two_classes, self.many_classes)
        for rows, classes in possible_classes(self.model, X, self.class_prior, joint):
            if not len(classes):
                continue  # no class can produce these rows: NaN
            if len(classes) > MANY:  # quasi-random are those of the likely classes
                p = responsibilities(self.model, X[rows], classes, self.class_prior)
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

    def two_classes(self, X: Matrix, classes: Array) -> Ends:
        """By the log-odds of the first against the second."""
        joints = Joints(self.model, X, classes, self.class_prior, self.points)
        if not (_OF_AVERAGES if is_average(self.model.family) else _ROUTES)[self.request.method]:
            return self.by_draws(X, classes)
        found = self.of_log_odds(joints)
        back = found.mirrored
        if not KINDS[self.request.kind].symmetric:
            back = self.of_log_odds(replace(joints, classes=classes[::-1]))
        out = found._replace(
            low=np.stack([found.low, back.low], axis=1),
            high=np.stack([found.high, back.high], axis=1),
        )
        left = np.flatnonzero((found.method == "inversion") & (found.error > _CONVERGED))
        if len(left):
            out.put(left, self.by_draws(X[left], classes))
        return out

    def of_log_odds(self, joints: Joints) -> Ends:
        """(n,) of the probability of the first of two classes, where no other is possible."""
        a, b = map(int, joints.classes)
        tilts = [a, b] if self.request.given == "training and row" else []
        k = None if tilts else joints.log_odds
        contrast = log_odds(self.model, joints.X, a, b, self.class_prior, tilts)
        return contrast_interval(contrast, self.request, in_probability, k)

    def many_classes(self, X: Matrix, classes: Array) -> Ends:
        """Each class against all others: by each route what the one before left."""
        out, left = Ends.empty(X.shape[0], len(classes)), np.arange(X.shape[0])
        joints = Joints(self.model, X, classes, self.class_prior, self.points, self.compiled)
        alone = KINDS[self.request.kind].invariant and joints.shared is None
        with_row, method = self.request.given == "training and row", self.request.method
        weights = self.label_weights(joints) if with_row else np.ones((len(left), 1))
        routes = (_OF_AVERAGES if is_average(self.model.family) else _ROUTES)[method]
        very_many, ratio = len(classes) > MANY, None
        mixed = method == "auto" and very_many
        heavy = self.label_weights(joints, _LIGHT) > 0 if mixed else weights
        for route in routes[1:] if mixed else routes:
            expanded, rows, left = route == "cornish-fisher", left, left[:0]
            apart = expanded or (mixed and joints.shared is not None)
            if not apart and not joints.independent[rows].all():
                left = rows
                continue
            law_of: Any = joints.expanded if expanded else joints.inverted
            kind = ("expanded" if alone else "shared") if expanded else "auto"
            size = POINTS["exact" if method == "exact" else kind]
            labels = np.flatnonzero(weights[rows].any(axis=0))
            many = (joints.shared is None or very_many) and len(labels) > _FEW_LABELS
            size = max(size, POINTS["auto"]) if many else size
            cells = size * len(classes) * (2 if many else max(1, len(labels)))
            block = _CELLS >> (3 if alone else 1)
            if very_many:
                block = _CELLS << 2  # rows share the calls of each class
            if expanded and alone and not joints.compiled:
                block //= 2  # temporaries of NumPy fit the cache
            step = max(1, block // cells)
            if many and joints.shared is not None:
                step = 1  # of one likeliest label
            for part in np.split(rows, np.arange(step, len(rows), step)):
                weight = weights[np.ix_(part, labels)]
                if mixed:
                    law_of = partial(joints.expanded, heavy=heavy[part].any(axis=0))
                if many:
                    weight = np.ones((len(part), 2))
                    found, ratio = joints.of_labels(law_of, size, part, weights[part])
                else:
                    given = labels.tolist() if with_row else [None]
                    found = [law_of(size, part, k) for k in given]
                laws = [law for law in found if law is not None]
                if not laws:  # the route is not for this family
                    left = np.append(left, part)
                    continue
                good = use = under_all([law.good for law in laws], weight)
                if method == "approx":
                    use = under_all([law.varies for law in laws], weight)
                left = np.append(left, part[~use])
                if use.any():
                    some = laws if use.all() else [law.part(use) for law in laws]
                    if many:
                        own = weights[part[use]], some, None if ratio is None else ratio[use]
                        mixture = Mixture.of_labels(*own, joints.compiled)
                    else:
                        mixture = Mixture(weight[use][..., None], some, joints.compiled)
                    least = EXPANDED_ERROR if expanded or mixed else 0.0
                    low, high, error = mixture.intervals(self.request, least)
                    if expanded:
                        error[~good[use]] = np.nan
                    error += LEAST if with_row else 0.0
                    out.put(part[use], Ends(low, high, np.full(len(low), route), error))
        if len(left):
            out.put(left, self.by_draws(X[left], classes))
        return out

    def label_weights(self, joints: Joints, total: float = LEAST) -> Array:
        """(n, C) of the labels that rows may have; 0 for those that have less than `total`."""
        p = responsibilities(self.model, joints.X, joints.classes, self.class_prior)
        p = np.where(p > least_weight(p, total), p, 0.0)
        return p / p.sum(axis=1, keepdims=True)

    def by_draws(self, X: Matrix, classes: Array) -> Ends:
        """Quantiles of quasi-random draws, row by row."""
        rest = self.request, self.class_prior, self.rng, self.n_draws
        low, high, error = by_draws(self.model, X, classes, *rest)
        return Ends(low, high, np.full(len(low), "draws", dtype=_NAMES), error)
