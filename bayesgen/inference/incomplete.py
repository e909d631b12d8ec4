r"""Training rows without a label, or with cells missing where that has no closed form.

A row of unknown class contributes :math:`\log \sum_c \pi_c\, p(x | \theta_c)`: its label is
marginalised, not sampled. So are missing cells (`families.shared.gaps`). The posterior is then no
longer conjugate, and a sampler needs two things from here: the rows that statistics cannot hold,
few and weighted, and the posterior of a pilot fit that tells it where to look.
"""

from typing import NamedTuple

import numpy as np

from bayesgen.families.capabilities import MissingCells
from bayesgen.families.contract import ConjugateFamily, Family
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.model import ClassModel, ClassStats, PartialRows, log_weights

_STEPS = 30  # of expectation-maximisation, at most
_FEWEST_STEPS = 10  # where cells are missing
_SETTLED = 0.01  # change of every p(y | x) in a step, below which it ends


class IncompleteData(NamedTuple):
    """What a sampler needs of rows of which something is not known."""

    labelled: ClassModel  # posterior given the rows with a label alone
    pilot: ClassModel  # posterior if the unknown were known to be as expected
    pilot_stats: ClassStats
    stats: ClassStats | None  # of the rows that statistics can hold
    rows: PartialRows  # the others


def is_complete(family: ConjugateFamily, X: Matrix, codes: Array) -> bool:
    """Whether the rows have a closed form: every label is known, and every cell that must be."""
    if (codes < 0).any():
        return False
    return not has_nan(X) or not has_gaps(family)


def has_gaps(family: Family) -> bool:
    """Whether missing cells of training rows have no closed form in this family."""
    return family.capability(MissingCells) is not None


def resolved_prior(
    unresolved: ClassModel,
    X: Matrix,
    codes: Array,
    n_classes: int,
    weight: Array | None,
) -> ClassModel:
    """The prior with the hyper-parameters that the data set (defaults).

    They come from all rows: those without a label count for every class in equal parts.

    Parameters
    ----------
    unresolved : ClassModel
        Hyper-parameters as the user gave them, of a conjugate family.
    X : (N, D)
    codes : (N,)
        Class codes; -1 where there is no label.
    """
    belongs = _responsibilities(codes, n_classes, 1 / n_classes)
    row, c = np.nonzero(belongs)
    part = belongs[row, c] if weight is None else belongs[row, c] * weight[row]
    count = np.bincount(c, part, n_classes)
    own = unresolved.family.capability(MissingCells)
    of_rows = unresolved.family.stats if own is None else own.default_stats
    stats = ClassStats(count, of_rows(X[row], c, n_classes, part))
    return unresolved.resolve(stats)


def incomplete_data(
    prior: ClassModel, X: Matrix, codes: Array, weight: Array | None
) -> IncompleteData:
    """Split rows into statistics and the rest; X and codes as in `resolved_prior`."""
    n_classes = len(prior.alpha)
    weight = np.ones(len(codes)) if weight is None else weight
    known = codes >= 0
    labelled, pilot, pilot_stats = _pilot_fit(prior, X, codes, weight)

    loose = _distinct(X[~known], weight[~known])
    parts = [(*loose, np.ones((len(loose[1]), n_classes), dtype=bool))]
    stats = None
    missing = prior.family.capability(MissingCells)
    if missing is None:
        stats = prior.stats(X[known], codes[known], n_classes, weight[known])
    else:
        for c in range(n_classes):
            own = np.flatnonzero(codes == c)
            found = missing.condensed(X[own], weight[own])
            parts.append((*found, np.tile(np.arange(n_classes) == c, (len(found[1]), 1))))
    rows = PartialRows(
        _stacked([p[0] for p in parts]),
        np.concatenate([p[2] for p in parts]),
        np.concatenate([p[1] for p in parts]),
    )
    return IncompleteData(labelled, pilot, pilot_stats, stats, rows)


def _expected_stats(
    family: ConjugateFamily, X: Matrix, responsibility: Array, weight: Array
) -> ClassStats:
    """Statistics of rows with responsibilities (N, C), their cells completed by `family`."""
    out = None
    n_classes = responsibility.shape[1]
    missing = family.capability(MissingCells)
    for c in range(n_classes):
        rows = np.flatnonzero(responsibility[:, c] > 0)
        own = weight[rows] * responsibility[rows, c]
        x = X[rows] if missing is None else missing.completed(X[rows], c)
        part = family.stats(x, np.full(len(rows), c), n_classes, own)
        out = part if out is None else out.merge(part)
    return ClassStats(weight @ responsibility, out)


def _responsibilities(codes: Array, n_classes: int, unknown: float) -> Array:
    """(N, C) 1 in the class of a row; `unknown` in all of them where that is not known."""
    responsibility = (codes[:, None] == np.arange(n_classes)).astype(np.float64)
    responsibility[codes < 0] = unknown
    return responsibility


def _pilot_fit(
    prior: ClassModel, X: Matrix, codes: Array, weight: Array
) -> tuple[ClassModel, ClassModel, ClassStats]:
    """Expectation-maximisation with the predictive in place of a maximum; near enough to start.

    Missing cells that statistics refuse are at their conditional means.
    """
    unknown = codes < 0
    responsibility = _responsibilities(codes, len(prior.alpha), 0.0)
    stats = _expected_stats(prior.family, X, responsibility, weight)
    model = labelled = prior.update(stats)
    refits = prior.family.capability(MissingCells) is not None and has_nan(X)
    for step in range(_STEPS):
        before = responsibility[unknown]
        if unknown.any():
            joint = model.family.log_predictive(X[unknown])
            responsibility[unknown] = np.exp(log_softmax(joint + log_weights(model.alpha)))
        stats = _expected_stats(model.family, X, responsibility, weight)
        model = prior.update(stats)
        change = np.abs(responsibility[unknown] - before).max(initial=0.0)
        if change < _SETTLED and not (refits and step < _FEWEST_STEPS):
            break
    return labelled, model, stats


def _distinct(X: Matrix, weight: Array) -> tuple[Matrix, Array]:
    """Equal rows once, with their weights added up."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and len(X)):
        return X, weight
    rows, which = np.unique(X, axis=0, return_inverse=True)
    if len(rows) == len(X):
        return X, weight
    return rows, np.bincount(which.ravel(), weight)


def _stacked(parts: list[Matrix]) -> Matrix:
    """Rows of several tables, one below the other."""
    filled = [p for p in parts if p.shape[0]] or parts[:1]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)
