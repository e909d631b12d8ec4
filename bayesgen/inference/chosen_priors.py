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

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesgen.errors import refuse_unknown, warn
from bayesgen.families.contract import ConjugateFamily
from bayesgen.families.errors import NoClosedFormError
from bayesgen.numerics.rows import Matrix, row_blocks
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.exact import ExactPosterior, leave_out_each
from bayesgen.posterior.fitted import LabelledRows
from bayesgen.posterior.model import ClassModel, ClassStats

_LIMIT = 100  # of a factor: kappa0 = 0.1 grows to 10 rows, so that no class mean is given up
_LOG_LIMIT = np.log(_LIMIT)


def maximise_evidence(prior: ConjugateFamily, stats) -> tuple[ConjugateFamily, dict[str, float]]:
    """Rescale the resolved `prior` to the largest log evidence of `stats`; return the factors too.

    Warns when a factor runs to the limit of 100 or 1/100: the data ask for a prior that says more
    than they do, or next to nothing.
    """
    families: list[ConjugateFamily] = []
    factors: dict[str, float] = {}
    for block in prior.blocks(stats):  # their evidences add: one at a time
        of_block = _maximising_factors(block.family, block.stats)
        families.append(block.family.scaled(of_block))
        factors |= {f"{block.prefix}{name}": f for name, f in of_block.items() if f != 1}
    best: ConjugateFamily = prior.with_blocks(families)
    return best, factors


def _maximising_factors(prior: ConjugateFamily, stats) -> dict[str, float]:
    """Return the factors of the hyper-parameters of one block."""
    from scipy.optimize import minimize  # 0.1 s of import that a plain fit does not need

    names = prior.tunable
    if not names:
        raise ValueError(f"{type(prior).__name__} has no hyper-parameters for prior='empirical'")

    def factors(log_factors: Array) -> dict[str, float]:
        return dict(zip(names, np.exp(log_factors).tolist(), strict=True))

    def loss(log_factors: Array) -> float:
        value = prior.scaled(factors(log_factors)).log_evidence(stats)
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
    return factors(np.round(best.x, 4))


# ------------------------------------------------------------------------------------------------
# Hyper-parameters by the exact leave-one-out score of the labels: ``prior="loo"``.
#
# The family that is searched is small and stated: of each block of columns one factor for each
# name in ``family.tunable``, as for empirical Bayes, and the scales that the family offers in
# addition to its default (`ConjugateFamily.other_scales`). The goal is
#
# .. math:: \sum_i w_i \log p(y_i \mid x_i, D_{-i}) - \sum_f (\log f - \log 2)^2 / (2 s^2),
#           \qquad s^2 = \log^2 2 \; (1 + \sum_i w_i / 100)
#
# among the default and priors whose score, the first sum, is above the default's. The second sum
# is the log density of a prior, Normal about log 2 for the log of each factor: the models leave
# out dependence, so that their probabilities are too extreme under the default, and where next to
# no row is in doubt the score cannot show it. It is narrow where rows are few: there the noise of
# the score would choose factors that lose (1.67 times the log loss at worst with s = log 5 and a
# median of 4, 12 rows per class). The numbers are from
# ``tests/benchmarks/priors_on_open_sets.py``. The search starts at the default and takes
# better points alone; steps along one factor at a time, by 4, then 2, then the root of 2.
# The score after choosing is optimistic by a little: a handful of numbers was fitted to it.
#
# A scale that was learned from all rows has seen the row that is left out, and exact
# leave-one-out then favours scales with many numbers (3.8 times the log loss at worst). Families
# with such scales (`ConjugateFamily.learns_scales`) are scored by ten folds, in which the scales
# too are learned from the rows of the other folds. So are groups of rows, of which a fold holds
# all or none.
#
# Source: Vehtari, Gelman and Gabry (2017), section 2, for the score; Hooke and Jeeves (1961),
# "Direct search" solution of numerical and statistical problems, for the search.

_MOST_SCORES = 60
_FOLDS = 10
_MOST_ROWS = 4000  # that are scored; the posterior is of all
_STEPS = (4.0, 2.0, 2.0**0.5)
_LABEL_LIMIT = 256.0  # of a factor and its reciprocal
_CENTRE, _SPREAD = 2.0, 2.0  # exp of mean and sd of the log of a factor, of few rows
_ROWS = 100.0  # with which the variance of the log is twice as large
_LEAST_GAIN = 0.01  # nats; less may be rounding


class _Fold(NamedTuple):
    """Some rows to score, and the statistics and scales that the rows of other folds make."""

    rows: Array
    stats: ClassStats
    resolved: ClassModel
    scales: "_Scales"


_Scales = list[list[tuple[str, ConjugateFamily]]]  # of each block, the default first


class _Point(NamedTuple):
    """Which scale of each block (0: the default), and the logs of all factors."""

    scales: tuple[int, ...]
    log_factors: tuple[float, ...]


def maximise_label_score(
    given: ConjugateFamily, prior: ClassModel, stats: ClassStats, rows: LabelledRows
) -> tuple[ClassModel, "PriorChoice"]:
    """Return the resolved `prior` at the largest penalised leave-one-out score of the labels.

    Parameters
    ----------
    given : ConjugateFamily
        Hyper-parameters as the user gave them: what is given is scaled, and not replaced.
    prior : ClassModel
        Resolved.
    stats : ClassStats
        Of all rows.
    rows : LabelledRows
        With groups, each row is scored without its whole group.

    Notes
    -----
    At most 60 scores of at most 4000 rows, each a pass at the cost of a prediction. Of more rows
    those are scored whose cells have the smallest hash: a sample that no order of rows changes.
    The default is kept where its score is not finite.
    """
    search = _Search(given, prior, stats, rows)
    best = search.best()
    return search.at(best, prior, search.scales), search.choice(best)


class _Search:
    """The objective over points, and the walk."""

    def __init__(
        self, given: ConjugateFamily, prior: ClassModel, stats: ClassStats, rows: LabelledRows
    ) -> None:
        self.prior, self.stats = prior, stats
        self.n_rows = float(stats.count.sum())
        self.prefixes = [block.prefix for block in prior.family.blocks()]
        self.scales = _scales(given, prior, stats)
        self.names = [
            (k, n) for k, of_block in enumerate(self.scales) for n in of_block[0][1].tunable
        ]
        if not self.names:
            name = type(prior.family).__name__
            raise ValueError(f"{name} has no hyper-parameters for prior='loo'")
        weight, self.rows = rows.weight, rows._replace(groups=None)
        self.folds: list[_Fold] = []
        scored = np.arange(len(weight))
        in_folds = rows.groups is not None or any(
            of_block[0][1].learns_scales for of_block in self.scales
        )
        if in_folds or len(weight) > _MOST_ROWS:
            keys = _keys(rows.X)
            if len(weight) > _MOST_ROWS:
                least = np.flatnonzero(keys <= np.partition(keys, _MOST_ROWS - 1)[_MOST_ROWS - 1])
                order = np.lexsort((weight[least], rows.codes[least], keys[least]))
                scored = np.sort(least[order[:_MOST_ROWS]])
            if in_folds:
                self._divide(given, keys, rows.groups, scored)
        self.scored = self.rows.at(scored)
        self.known: dict[_Point, float] = {}
        self.least = -np.inf  # of a score, but the default's

    def _divide(
        self, given: ConjugateFamily, keys: Array, groups: Array | None, scored: Array
    ) -> None:
        """Divide the rows into folds, each class evenly; whole groups stay together."""
        X, codes, weight, _ = self.rows
        if groups is None:
            order = np.lexsort((weight, keys, codes))
            number = np.empty(len(order), dtype=np.int64)
            number[order] = np.arange(len(order))
        else:
            _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
            least = keys[first]
            np.minimum.at(least, groups, keys)
            number = np.argsort(np.argsort(least, kind="stable"))[groups]
        fold = number % _FOLDS
        parts = [fold_rows for k in range(_FOLDS) if len(fold_rows := np.flatnonzero(fold == k))]
        unresolved = ClassModel(self.prior.alpha, given)

        def stats_of(rows: Array) -> ClassStats:
            return self.prior.stats(X[rows], codes[rows], len(self.prior.alpha), weight[rows])

        def keep(rows: Array, stats: ClassStats) -> None:
            rows, resolved = np.intersect1d(rows, scored), unresolved.resolve(stats)
            scales = _scales(given, resolved, stats)
            self.folds.append(_Fold(rows, stats, resolved, scales))

        leave_out_each(parts, stats_of, stats_of(np.arange(0)), keep)

    def best(self) -> _Point:
        """Return the point where no step leads further up, or the scores are used up."""
        start = here = _Point((0,) * len(self.scales), (0.0,) * len(self.names))
        if not np.isfinite(self._value(start)):
            return start
        self.least = self.known[start] + _penalty(start, self.n_rows) + _LEAST_GAIN
        for step in np.log(_STEPS):
            before = None
            while before != here:
                before = here
                for k, alternatives in enumerate(self.scales):
                    for other in range(len(alternatives)):
                        scales = (*here.scales[:k], other, *here.scales[k + 1 :])
                        here = self._better(here, here._replace(scales=scales))
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
        value = self.known.get(point)
        if value is None:
            if len(self.known) >= _MOST_SCORES:
                return -np.inf
            score = self._score(point)
            allowed = np.isfinite(score) and score >= self.least
            self.known[point] = value = score - _penalty(point, self.n_rows) if allowed else -np.inf
        return value

    def at(self, point: _Point, resolved: ClassModel, scales: _Scales) -> ClassModel:
        """Return the prior of a point; `resolved` and `scales` are of all rows or of some folds."""
        families = []
        for k, alternatives in enumerate(scales):
            factors = {
                name: np.exp(log_factor)
                for (block, name), log_factor in zip(self.names, point.log_factors, strict=True)
                if block == k and log_factor
            }
            family = dict(alternatives).get(self.scales[k][point.scales[k]][0], alternatives[0][1])
            families.append(family.strengthened(factors) if factors else family)
        return ClassModel(resolved.alpha, resolved.family.with_blocks(families))

    def _score(self, point: _Point) -> float:
        """Sum over rows of weight times the log probability of the label without the row."""
        if not self.folds:
            prior, rows = self.at(point, self.prior, self.scales), self.scored
            posterior = ExactPosterior(prior, prior.update(self.stats), self.stats)
            with np.errstate(invalid="ignore"):  # next to 1e15 other weights are rounded away
                log_joint, _ = posterior.without_each(rows.X, rows.codes, rows.weight)
            return self._sum_of_scores([log_joint], [rows])
        joints, parts = [], []
        for fold in self.folds:
            prior = self.at(point, fold.resolved, fold.scales)
            posterior = ExactPosterior(prior, prior.update(fold.stats), fold.stats)
            parts.append(self.rows.at(fold.rows))
            joints.append(posterior.log_joint(parts[-1].X))
        return self._sum_of_scores(joints, parts)

    def _sum_of_scores(self, joints: list[Array], parts: list[LabelledRows]) -> float:
        """Return the weighted sum, of all rows if only some are scored."""
        codes = np.concatenate([of_part.codes for of_part in parts])
        weight = np.concatenate([of_part.weight for of_part in parts])
        log_p = log_softmax(np.concatenate(joints))[np.arange(len(codes)), codes]
        return float(weight @ log_p / weight.sum() * self.n_rows)

    def choice(self, point: _Point) -> "PriorChoice":
        """Return the factors and scales of a point by name."""
        factors = {
            f"{self.prefixes[k]}{name}": float(np.exp(log_factor))
            for (k, name), log_factor in zip(self.names, point.log_factors, strict=True)
            if log_factor
        }
        parts = zip(self.prefixes, self.scales, point.scales, strict=True)
        scales = [
            f"{prefix}{alternatives[scale][0]}" for prefix, alternatives, scale in parts if scale
        ]
        return PriorChoice("loo", factors, tuple(scales))


def _penalty(point: _Point, n_rows: float) -> float:
    """Minus the prior log density of the logs of the factors, but for a constant."""
    from_centre = np.array(point.log_factors) - np.log(_CENTRE)
    variance = np.log(_SPREAD) ** 2 * (1 + n_rows / _ROWS)
    return float(from_centre @ from_centre / (2 * variance))


def _scales(given: ConjugateFamily, prior: ClassModel, stats: ClassStats) -> _Scales:
    """Return the names and families of the scales of each block, the default first."""
    pairs = zip(given.blocks(), prior.family.blocks(stats.features), strict=True)
    return [
        [
            ("", block_now.family),
            *block_now.family.other_scales(user.family, block_now.stats).items(),
        ]
        for user, block_now in pairs
    ]


# -- keys of rows: samples and folds that no order of rows changes --------------------------------


def _keys(X: Matrix) -> Array:
    """Return (N,) a hash of the cells of each row."""
    if sp.issparse(X):
        row, column = X.nonzero()
        values = np.asarray(X[row, column], dtype=np.float64).ravel()
        keys = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(keys, row, _mixed(values.view(np.uint64) ^ _mixed(column.astype(np.uint64))))
        return _mixed(keys)
    if X.dtype == object:  # documents
        return np.fromiter(map(_key, X), dtype=np.uint64, count=len(X))
    return np.concatenate(list(_dense_keys(X)))


def _dense_keys(X: Array) -> Iterator[Array]:
    columns = _mixed(np.arange(X.shape[1], dtype=np.uint64))
    for rows in row_blocks(len(X), X.shape[1]):
        cells = np.asarray(X[rows], dtype=np.float64) + 0.0  # -0 is 0
        cells = np.where(np.isnan(cells), np.nan, cells)
        yield _mixed(_mixed(cells.view(np.uint64) ^ columns).sum(axis=1, dtype=np.uint64))


def _key(document) -> int:
    tokens = np.asarray(document).astype(np.float64)
    place = _mixed(np.arange(tokens.size, dtype=np.uint64))
    return int(_mixed(tokens.ravel().view(np.uint64) ^ place).sum(dtype=np.uint64))


def _mixed(z: Array) -> Array:
    """Finalise as splitmix64 (Steele, Lea and Flood 2014): every bit depends on every bit."""
    z = (z + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


# ------------------------------------------------------------------------------------------------
# Statistics to prior and posterior, for one fit, a stream, or a merge alike.

PRIORS = ("default", "empirical", "loo")
NEEDS_ROWS = "prior='loo' chooses the hyper-parameters by scores of the training rows themselves"


class PriorChoice(NamedTuple):
    """Which prior a fit has."""

    source: str = "default"  # one of PRIORS
    factors: Mapping[str, float] | None = None  # of stated hyper-parameters, where they are not 1
    scales: Sequence[str] = ()  # that are not the stated ones

    def words(self) -> str:
        """Describe the choice; "" for the stated prior."""
        if self.source == "default":
            return ""
        how = {"loo": "leave-one-out", "empirical": "the evidence"}[self.source]
        changes = [f"{name} x {factor:.3g}" for name, factor in (self.factors or {}).items()]
        changed = ", ".join([*changes, *self.scales]) or "the stated prior is kept"
        return f"Prior chosen by {how} (prior={self.source!r}): {changed}"


def posterior(
    unresolved: ClassModel, prior: str | None, stats: ClassStats, rows: LabelledRows | None = None
) -> tuple[ClassModel, ClassModel, PriorChoice]:
    """Return (prior, posterior, choice of the prior) given everything seen so far.

    A function of the statistics alone, but for a prior chosen by leave-one-out: however the rows
    arrived, in one fit or in parts, the data-scaled defaults and the posterior are the same.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them, of a conjugate family.
    prior : {"default", "empirical", "loo"} or None
        None: ``"loo"`` with `rows`, else ``"default"``.
    stats : ClassStats
    rows : LabelledRows, optional
        Those behind `stats`, for leave-one-out.
    """
    if prior is None:
        prior = "default" if rows is None else "loo"
    refuse_unknown("prior", prior, PRIORS)
    model, choice = unresolved.resolve(stats), PriorChoice()
    if prior == "empirical":
        best, factors = maximise_evidence(model.family, stats.features)
        model, choice = ClassModel(model.alpha, best), PriorChoice(prior, factors)
    elif prior == "loo":
        if rows is None:
            raise NoClosedFormError(f"{NEEDS_ROWS}: fit all rows together")
        model, choice = maximise_label_score(unresolved.family, model, stats, rows)
    return model, model.update(stats), choice
