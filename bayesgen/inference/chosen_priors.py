"""Empirical Bayes: the scale of each kind of hyper-parameter that maximises the evidence.

Type-II maximum likelihood over one multiplicative factor for each name in ``family.tunable``, so
that unequal hyper-parameters keep their proportions. The prior then depends on the data: the
evidence it reaches is optimistic when models are compared.

It is p(X, y) that is maximised, in which the features outweigh the labels. Where most columns say
nothing of the class the evidence asks for class means that are all equal (kappa without bound:
every row gets the class weights), and where columns repeat each other, for a scale of 0. Factors
therefore stay between 1/100 and 100.

Source: Bishop, Pattern Recognition and Machine Learning (2006), section 3.5.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesgen.errors import warn
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.errors import NoClosedFormError
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import ClassModel, ClassStats

_LIMIT = 100  # of a factor: kappa0 = 0.1 grows to 10 rows, so that no class mean is given up
_LOG_LIMIT = np.log(_LIMIT)


def maximise_evidence(prior: ConjugateFamily, stats: Any) -> ConjugateFamily:
    """The resolved `prior` rescaled to the largest log evidence of `stats`.

    Warns when a factor runs to the limit of 100 or 1/100: the data ask for a prior that says more
    than they do, or next to nothing.
    """
    blocks = prior.blocks(stats)  # their evidences add: one at a time
    best: ConjugateFamily = prior.with_blocks([_maximised(b.family, b.stats) for b in blocks])
    return best


def _maximised(prior: ConjugateFamily, stats: Any) -> ConjugateFamily:
    """The prior of one block."""
    from scipy.optimize import minimize  # 0.1 s of import that a plain fit does not need

    names = prior.tunable
    if not names:
        raise ValueError(f"{type(prior).__name__} has no hyper-parameters for prior='empirical'")

    def rescaled(log_factors: np.ndarray) -> ConjugateFamily:
        return prior.scaled(dict(zip(names, np.exp(log_factors), strict=True)))

    def loss(log_factors: np.ndarray) -> float:
        value = rescaled(log_factors).log_evidence(stats)
        return -value if np.isfinite(value) else 1e300

    start = np.zeros(len(names))
    scale = max(1.0, abs(loss(start)))
    best = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=[(-_LOG_LIMIT, _LOG_LIMIT)] * len(names),
        options={
            "xatol": 1e-6,
            "fatol": 1e-10 * scale,
            "maxiter": 500 * len(names),
            "initial_simplex": np.vstack([start, np.eye(len(names))]),
        },
    )
    at_limit = [n for n, v in zip(names, best.x, strict=True) if abs(v) > 0.999 * _LOG_LIMIT]
    if at_limit:
        warn(
            f"prior='empirical': the evidence has no interior maximum in {', '.join(at_limit)}; "
            f"the factor stopped at {_LIMIT} or 1/{_LIMIT} of the default",
            UserWarning,
        )
    # The evidence is flat at its top: digits beyond these are rounding, and would make repeated
    # rows and weighted rows differ.
    return rescaled(np.round(best.x, 4))


# ------------------------------------------------------------------------------------------------
# Hyper-parameters by the exact leave-one-out score of the labels: ``prior="loo"``.
#
# The family that is searched is small and stated: of each block of columns one factor for each
# name in ``family.tunable``, as for empirical Bayes, and the scales that the family offers beside
# its default (`ConjugateFamily.other_scales`). The goal is
#
# .. math:: \sum_i w_i \log p(y_i \mid x_i, D_{-i}) - \sum_f (\log f - \log 4)^2 / (2 \log^2 5)
#
# among the default and priors whose score, the first sum, is above the default's. The second sum
# is the log density of a prior, Normal about log 4 for the log of each factor: the models leave
# out dependence, so that their probabilities are too extreme under the default, and where next to
# no row is in doubt the score cannot show it. Both numbers are from
# ``tests/benchmarks/priors_on_open_sets.py --chosen``; without a prior, sets that are nearly
# separable lose to the noise of the score what others gain. The search starts at the default and
# takes better points alone; steps along one factor at a time, by 4, then 2, then the root of 2.
# The score after choosing is optimistic by a little: a handful of numbers was fitted to it.
#
# Source: Vehtari, Gelman and Gabry (2017), section 2, for the score; Hooke and Jeeves (1961),
# "Direct search" solution of numerical and statistical problems, for the search.

_MOST_SCORES = 40
_MOST_ROWS = 4000  # that are scored; the posterior is of all
_STEPS = (4.0, 2.0, 2.0**0.5)
_LABEL_LIMIT = 256.0  # of a factor and its reciprocal
_CENTRE, _SPREAD = 4.0, 5.0  # exp of mean and sd of the log of a factor, a priori
_LEAST_GAIN = 0.01  # nats; less may be rounding


class LabelledRows(NamedTuple):
    """Training rows as the family takes them, all of them."""

    X: Any
    codes: Array  # (N,)
    weight: Array | None = None  # (N,)
    groups: Array | None = None  # (N,) codes of groups that are left out whole


class _Point(NamedTuple):
    """Which scale of each block (0: the default), and the logs of all factors."""

    scales: tuple[int, ...]
    log_factors: tuple[float, ...]


def maximise_label_score(
    given: ConjugateFamily, prior: ClassModel, stats: ClassStats, rows: LabelledRows
) -> ClassModel:
    """The resolved `prior` at the largest penalised leave-one-out score of the labels.

    Parameters
    ----------
    given : ConjugateFamily
        Hyper-parameters as the user gave them: what is given is scaled, and not replaced.
    prior : ClassModel
        Resolved.
    stats : ClassStats
        Of all rows.
    rows : LabelledRows

    Notes
    -----
    At most 40 scores of at most 4000 rows, each a pass at the cost of a prediction. Of more rows
    those are scored whose cells have the smallest hash: a sample that no order of rows changes.
    """
    search = _Search(given, prior, stats, _scored(rows))
    return search.at(search.best())


class _Search:
    """The objective over points, and the walk."""

    def __init__(
        self, given: ConjugateFamily, prior: ClassModel, stats: ClassStats, rows: LabelledRows
    ) -> None:
        self.prior, self.stats, self.rows = prior, stats, rows
        pairs = zip(given.blocks(), prior.family.blocks(), strict=True)
        # of each block: the default and its alternatives
        self.scales = [[own.family, *own.family.other_scales(g.family)] for g, own in pairs]
        self.names = [(k, name) for k, own in enumerate(self.scales) for name in own[0].tunable]
        if not self.names:
            name = type(prior.family).__name__
            raise ValueError(f"{name} has no hyper-parameters for prior='loo'")
        self.known: dict[_Point, float] = {}
        self.least = -np.inf  # of a score, but the default's

    def best(self) -> _Point:
        """Where no step leads further up, or the scores are used up."""
        start = here = _Point((0,) * len(self.scales), (0.0,) * len(self.names))
        self._value(start)
        self.least = self.known[start] + _penalty(start) + _LEAST_GAIN
        for k, own in enumerate(self.scales):
            for other in range(1, len(own)):
                scales = (*here.scales[:k], other, *here.scales[k + 1 :])
                here = self._better(here, here._replace(scales=scales))
        for step in np.log(_STEPS):
            before = None
            while before != here:
                before = here
                for f in range(len(self.names)):
                    here = self._along(here, f, step)
        return here

    def _along(self, here: _Point, f: int, step: float) -> _Point:
        """One step up or down one factor, if it pays."""
        for move in (step, -step):
            value = here.log_factors[f] + move
            if abs(value) > np.log(_LABEL_LIMIT) + 1e-9:
                continue
            factors = (*here.log_factors[:f], round(value, 9), *here.log_factors[f + 1 :])
            there = self._better(here, here._replace(log_factors=factors))
            if there != here:
                return there
        return here

    def _better(self, here: _Point, there: _Point) -> _Point:
        gain = self._value(there) - self.known[here]
        return there if gain > _LEAST_GAIN else here

    def _value(self, point: _Point) -> float:
        """Penalised score; -inf if no better than the default, or after the last score."""
        found = self.known.get(point)
        if found is None:
            if len(self.known) >= _MOST_SCORES:
                return -np.inf
            score = _score(self.at(point), self.stats, self.rows)
            allowed = np.isfinite(score) and score >= self.least
            self.known[point] = found = score - _penalty(point) if allowed else -np.inf
        return found

    def at(self, point: _Point) -> ClassModel:
        """The prior of a point."""
        families = []
        for k, own in enumerate(self.scales):
            factors = {
                name: np.exp(log_factor)
                for (block, name), log_factor in zip(self.names, point.log_factors, strict=True)
                if block == k and log_factor
            }
            family = own[point.scales[k]]
            families.append(family.strengthened(factors) if factors else family)
        return ClassModel(self.prior.alpha, self.prior.family.with_blocks(families))


def _penalty(point: _Point) -> float:
    """Minus the prior log density of the logs of the factors, but for a constant."""
    from_centre = np.array(point.log_factors) - np.log(_CENTRE)
    return float(from_centre @ from_centre) / (2 * np.log(_SPREAD) ** 2)


def _score(prior: ClassModel, stats: ClassStats, rows: LabelledRows) -> float:
    """Sum over rows of weight times the log probability of the label without the row."""
    posterior = ExactPosterior(prior, prior.update(stats), stats)
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    with np.errstate(invalid="ignore"):  # beside a weight of 1e15 the others are rounded away
        log_joint, _ = posterior.log_joint_without(rows.X, rows.codes, weight, rows.groups)
    own = log_softmax(log_joint)[np.arange(len(rows.codes)), rows.codes]
    return float(weight @ own / weight.sum() * stats.count.sum())


# -- which rows are scored -----------------------------------------------------------------------


def _scored(rows: LabelledRows) -> LabelledRows:
    """At most 4000 of them, by their content."""
    n = len(rows.codes)
    if n <= _MOST_ROWS:
        return rows
    weight = np.ones(n) if rows.weight is None else rows.weight
    order = np.lexsort((weight, rows.codes, _keys(rows.X)))[:_MOST_ROWS]
    at = np.sort(order)
    groups = None if rows.groups is None else rows.groups[at]
    return LabelledRows(rows.X[at], rows.codes[at], weight[at], groups)


def _keys(X: Matrix) -> Array:
    """(N,) a hash of the cells of each row."""
    if sp.issparse(X):
        row, column = X.nonzero()
        values = np.asarray(X[row, column], dtype=np.float64).ravel()
        out = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(out, row, _mixed(values.view(np.uint64) ^ _mixed(column.astype(np.uint64))))
        return _mixed(out)
    if X.dtype == object:  # documents
        return np.fromiter(map(_key, X), dtype=np.uint64, count=len(X))
    return np.concatenate(list(_dense_keys(X)))


def _dense_keys(X: Array) -> Iterator[Array]:
    columns = _mixed(np.arange(X.shape[1], dtype=np.uint64))
    for rows in row_blocks(len(X), X.shape[1]):
        cells = np.asarray(X[rows], dtype=np.float64) + 0.0  # -0 is 0
        cells = np.where(np.isnan(cells), np.nan, cells)
        yield _mixed(_mixed(cells.view(np.uint64) ^ columns).sum(axis=1, dtype=np.uint64))


def _key(document: Any) -> int:
    tokens = np.asarray(document).astype(np.float64)
    place = _mixed(np.arange(tokens.size, dtype=np.uint64))
    return int(_mixed(tokens.ravel().view(np.uint64) ^ place).sum(dtype=np.uint64))


def _mixed(z: Array) -> Array:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014): every bit depends on every bit."""
    z = (z + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


# ------------------------------------------------------------------------------------------------
# Statistics to prior and posterior, for one fit, a stream, or a merge alike.

PRIORS = ("default", "empirical", "loo")
NEEDS_ROWS = "prior='loo' chooses the hyper-parameters by scores of the training rows themselves"


def posterior(
    unresolved: ClassModel, prior: str, stats: ClassStats, rows: LabelledRows | None = None
) -> tuple[ClassModel, ClassModel]:
    """(prior, posterior) given everything seen so far.

    A function of the statistics alone, but for ``prior="loo"``: however the rows arrived, in one
    fit or in parts, the data-scaled defaults and the posterior are the same.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them, of a conjugate family.
    prior : {"default", "empirical", "loo"}
    stats : ClassStats
    rows : LabelledRows, optional
        Those behind `stats`, for ``prior="loo"``.
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be 'default', 'empirical' or 'loo', got {prior!r}")
    model = unresolved.resolve(stats)
    if prior == "empirical":
        best = maximise_evidence(model.family, stats.features)
        model = ClassModel(model.alpha, best)
    elif prior == "loo":
        if rows is None:
            raise NoClosedFormError(f"{NEEDS_ROWS}: fit all rows together")
        model = maximise_label_score(unresolved.family, model, stats, rows)
    return model, model.update(stats)
