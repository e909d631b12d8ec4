"""Training rows, each without itself: checked to be those of the fit, scored without a refit."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from bayesgen.encoding.labelled import weights
from bayesgen.encoding.labels import (
    array_of_labels,
    has_no_label,
    is_labelled,
    labels_and_mask,
    refuse_unlabelled,
)
from bayesgen.encoding.reader import Rows
from bayesgen.errors import InputError, InputTypeError
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CLASS
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import largest_good_k
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.fitted import Fitted
from bayesgen.posterior.model import log_weights_without
from bayesgen.posterior.training import KeptRows

SCORED = 4000  # rows of a summary's score: what all would take is too long for a summary
_LEAVES_OUT = ("closed form", "nuts", "hmc")
_SAME = 1e-7  # relative: two sums of the same rows in another order differ by 1e-12 or so

_TRAINING_ROWS = (
    "leave-one-out needs the training rows, labels and weights: all of them, or some with "
    "partial=True"
)


class TrainingRows(NamedTuple):
    """Training rows as the family takes them."""

    X: Any
    codes: Array  # (N,) -1 where there is no label
    weight: Array  # (N,)

    @property
    def scored(self) -> Array:
        """Positions of the rows that have a label and a weight."""
        return np.flatnonzero((self.codes >= 0) & (self.weight > 0))

    def only_scored(self) -> "TrainingRows":
        """Those rows; a ValueError if there is none."""
        at = self.scored
        if not len(at):
            raise ValueError("no training row has a label and a weight above 0")
        every = len(at) == len(self.codes)
        return self if every else TrainingRows(self.X[at], self.codes[at], self.weight[at])


def training_rows(
    fitted: Fitted,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    partial: bool = False,
) -> TrainingRows:
    """Rows, codes and weights; raises unless they are (some of) those of the fit.

    Of a pool they are those of each member, or some of them.
    """
    rows = fitted.read(X)
    values, masked = labels_and_mask(y)
    check_consistent_length(rows, values)
    parts = fitted.parts(rows, of_training=True)
    if any(part.training.unlabelled_weight for part, _ in parts):
        raise NoClosedFormError(
            "leave-one-out after unlabelled='weighted' needs the rows without a label again "
            "without each row: fit to the labelled rows, with unlabelled='ignore'"
        )
    if all(part.posterior.exact for part, _ in parts):
        refuse_unlabelled(masked)
        codes = fitted.codes_of(values)
    else:
        labelled = is_labelled(values, masked)
        codes = np.full(len(values), -1)
        codes[labelled] = fitted.codes_of(values[labelled])
    weight = np.ones(len(codes))
    if sample_weight is not None:
        weight = weights(sample_weight, len(codes))
    n = int((weight > 0).sum())
    for part, read in parts:
        some = partial or (part is not fitted and n != part.training.n_rows)
        check_training_rows(part, read, codes, weight, some)
    return TrainingRows(rows.encoded, codes, weight)


def check_training_rows(
    fitted: Fitted, rows: Rows, codes: Array, weight: Array, partial: bool
) -> None:
    """Raise unless these are the training rows of one model, or some of them."""
    check = _check_rows_of_fit if fitted.posterior.exact else _check_numbers
    check(fitted, TrainingRows(rows.encoded, codes, weight), partial)


def rows_of_fit(fitted: Fitted, training: Any = None, partial: bool = False) -> TrainingRows:
    """The training rows that were kept, or those that are given as (X, y) or (X, y, weight)."""
    if training is not None:
        if not isinstance(training, tuple | list) or len(training) not in (2, 3):
            raise ValueError("training must be (X, y) or (X, y, sample_weight)")
        return training_rows(fitted, *KeptRows(*training), partial)
    given = fitted.training.rows
    if given is None:
        raise ValueError(
            "the training rows, or their scores, are not known here (after a stream, a merge, "
            "partial_fit, forget, a large fit, or loading a model saved before they were "
            "first asked for): pass training=(X, y) or training=(X, y, sample_weight)"
        )
    try:
        return training_rows(fitted, *given)
    except ValueError as error:
        raise ValueError(
            "the rows that fit was given were changed since then: pass them as they were "
            f"by training=(X, y) or training=(X, y, sample_weight) ({error})"
        ) from error


def log_joint_without(fitted: Fitted, rows: TrainingRows, groups: Any = None) -> Array:
    """(N, C) log joint densities of training rows, each without itself or its whole group."""
    if groups is None:
        return fitted.posterior.log_joint_without(*rows)[0]
    own = fitted.posterior
    if not isinstance(own, ExactPosterior):
        raise NoClosedFormError(
            "groups= leaves many rows out at once, which draws cannot (importance weights "
            "would rest on a few of them); fit again without each group"
        )
    if not own.model.generative:
        raise NoClosedFormError(
            f"groups= is refused: the rows of every group have chosen a part of the structures of "
            f"{fitted.name}; fit again without each group"
        )
    inside = rows.scored
    found = group_codes(groups, len(rows.codes))[inside]
    order = np.argsort(found, kind="stable")
    cuts = np.flatnonzero(np.diff(found[order])) + 1
    parts = np.split(order, cuts)
    out = own.log_joint(rows.X)
    out[inside] = own.log_joint_without_groups(
        rows.X[inside], rows.codes[inside], rows.weight[inside], parts
    )
    return out


class LabelScore(NamedTuple):
    """Mean -log p(y_i | x_i, other rows) of training labels, in nats."""

    log_loss: float
    of_frequencies: float  # of p(y_i | other labels), with one pseudo-count of each class
    n_rows: int


def label_score(fitted: Fitted, rows: KeptRows | None = None) -> LabelScore | None:
    """Score of the labels of training rows, each without itself; None where that is not known.

    Parameters
    ----------
    fitted : Fitted
    rows : (X, y, weight), optional
        A sample of the training rows. None: those that are known, at most `SCORED` of them.

    Notes
    -----
    Not known: without the rows, after changes to them, and of draws that do not tell.
    """
    own: Any = fitted.posterior
    training = fitted.training
    if training.inference not in _LEAVES_OUT:
        return None
    scored, given = getattr(own, "scored", None), rows or training.rows
    if rows is None and training.scores is not None:
        codes, weight = training.scores.codes, training.scores.weight
        log_p = -np.logaddexp(0.0, -training.scores.label)
    elif rows is None and scored is not None:
        at = _some(len(scored.codes))
        codes, weight = scored.codes[at], scored.weight[at]
        joint, k = own.log_proba_without(scored.take(at))
        log_p = joint[np.arange(len(codes)), codes]
    elif given is None:
        return None
    else:
        n, at = len(given.y), _some(len(given.y))
        of_some = None if given.sample_weight is None else np.asarray(given.sample_weight)[at]
        X, y = (_safe_indexing(part, at) for part in (given.X, given.y))
        try:
            found = training_rows(fitted, X, y, of_some, rows is not None or len(at) < n)
        except ValueError:
            return None
        at = found.scored
        codes, weight = found.codes[at], found.weight[at]
        joint, k = own.log_joint_without(found.X[at], codes, weight)
        if k is not None and (k > largest_good_k(own.n_draws)).any():
            return None
        log_p = log_softmax(joint)[np.arange(len(codes)), codes]
    if not len(codes):
        return None
    each, n_classes = np.arange(len(codes)), len(fitted.classes)
    count = class_counts(codes, n_classes, weight)
    frequency = log_weights_without(np.ones(n_classes), count, codes, weight)[each, codes]
    return LabelScore(float(-log_p.mean()), float(-frequency.mean()), len(codes))


def _some(n: int) -> Array:
    """Positions of at most `SCORED` rows, drawn at random."""
    if n <= SCORED:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, SCORED, replace=False))


def _check_numbers(fitted: Fitted, rows: TrainingRows, partial: bool) -> None:
    """By the number of rows, and the class counts where the fit knew every label."""
    # rows of weight 0 are no rows to the fit
    n, seen = int(np.sum(rows.weight > 0)), fitted.training.n_rows
    if not partial and n != seen:
        raise ValueError(f"{_TRAINING_ROWS}; got {n} rows, and the fit had {seen}")
    if fitted.training.n_unlabelled:
        return
    known = rows.codes >= 0
    of_fit = fitted.posterior.stats.count
    count = class_counts(rows.codes[known], len(of_fit), rows.weight[known])
    if np.any(count > (1 + _SAME) * of_fit) if partial else _differ(count, of_fit):
        raise _other_counts(count, of_fit, fitted)


def _check_rows_of_fit(fitted: Fitted, rows: TrainingRows, partial: bool) -> None:
    """By the class counts and the evidence: a change of any cell changes it."""
    at = rows.scored
    some = TrainingRows(rows.X[at], rows.codes[at], rows.weight[at])
    prior, stats = fitted.posterior.prior, fitted.posterior.stats
    own = prior.stats(*some[:2], len(fitted.classes), some.weight)
    without_evidence = bool(prior.family.no_theta)
    if partial or without_evidence:
        try:
            rest = stats.remove(own)
        except ValueError as error:
            raise ValueError(f"{_TRAINING_ROWS}; some of these were not: {error}") from None
    if partial:
        return
    if _differ(own.count, stats.count):
        raise _other_counts(own.count, stats.count, fitted)
    if without_evidence:
        left = [v for dims, v in rest.features.arrays().values() if CLASS in dims]
        if any((np.abs(v) > _SAME).any() for v in left):
            raise ValueError(f"{_TRAINING_ROWS}; these are only some of them")
        return
    of_fit, given = prior.log_evidence(stats), prior.log_evidence(own)
    if not np.isclose(given, of_fit, rtol=_SAME, atol=_SAME * len(some.codes)):
        raise ValueError(
            f"{_TRAINING_ROWS}; these have the same classes and other features: their log "
            f"evidence is {given:.6f}, that of the fit {of_fit:.6f}"
        )


def _differ(count: Array, fitted: Array) -> bool:
    return not np.allclose(count, fitted, rtol=_SAME)


def _other_counts(count: Array, of_fit: Array, fitted: Fitted) -> ValueError:
    return ValueError(
        f"{_TRAINING_ROWS}; got weights {count.round(6).tolist()} of the classes "
        f"{fitted.classes.tolist()}, and the fit had {of_fit.round(6).tolist()}"
    )


def group_codes(groups: Any, n: int) -> Array:
    """(N,) codes of the groups."""
    if isinstance(groups, int | np.integer):
        if not 2 <= groups <= n:
            raise ValueError(f"groups must be at least 2 folds and at most {n} rows, got {groups}")
        return np.arange(n) % int(groups)
    names = array_of_labels(groups)
    if names.shape != (n,):
        raise ValueError(f"groups must have one entry for each of {n} rows, got {names.shape}")
    missing = has_no_label(names)
    if isinstance(groups, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(groups)
    if missing.any():
        raise InputError(
            "groups has no name",
            row=missing.argmax(),
            advice="give a row that belongs to no other a name of its own",
        )
    try:
        codes: Array = np.unique(names, return_inverse=True)[1].ravel()
    except TypeError:
        types = sorted({type(name).__name__ for name in names.tolist()})
        raise InputTypeError(f"groups must be of one type, got {', '.join(types)}") from None
    return codes
