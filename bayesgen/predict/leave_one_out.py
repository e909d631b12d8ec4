"""Training rows, each without itself: checked to be those of the fit, scored without a refit."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from bayesgen.encoding.labels import group_codes, is_labelled, labels_of, weights
from bayesgen.encoding.tables import KeptRows
from bayesgen.families.errors import NoClosedFormError
from bayesgen.families.names import CLASS
from bayesgen.numerics.rows import class_counts
from bayesgen.numerics.special import Array, log_softmax
from bayesgen.posterior.drawn import largest_good_k
from bayesgen.posterior.fitted import Fitted, LabelledRows
from bayesgen.posterior.model import log_weights_without

SCORED = 4000  # rows of a summary's score: what all would take is too long for a summary
_LEAVES_OUT = ("closed form", "nuts", "hmc")
_SAME = 1e-7  # relative: two sums of the same rows in another order differ by 1e-12 or so

_TRAINING_ROWS = (
    "leave-one-out needs the training rows, labels and weights: all of them, or some with "
    "partial=True"
)


def training_rows(
    fitted: Fitted,
    X,
    y,
    sample_weight=None,
    partial: bool = False,
    groups=None,
) -> LabelledRows:
    """Rows, codes, weights and groups; raises unless they are (some of) those of the fit.

    Of a pool they are those of each member, or some of them. Without `groups` all rows have those
    of the fit, where they are known.
    """
    rows = fitted.read(X)
    values = labels_of(y)
    check_consistent_length(rows, values)
    parts = fitted.parts(rows, of_training=True)
    if any(member.training.unlabelled_weight for member, _ in parts):
        raise NoClosedFormError(
            "leave-one-out after unlabelled='weighted' needs the rows without a label again "
            "without each row: fit to the labelled rows, with unlabelled='ignore'"
        )
    if all(member.posterior.exact for member, _ in parts):
        codes = fitted.codes_of(values)
    else:
        labelled = is_labelled(values)
        codes = np.full(len(values), -1)
        codes[labelled] = fitted.codes_of(values[labelled])
    weight = np.ones(len(codes))
    if sample_weight is not None:
        weight = weights(sample_weight, len(codes))
    elif fitted.training.weight is not None and len(fitted.training.weight) == len(codes):
        weight = fitted.training.weight
    if groups is not None:
        if not all(member.posterior.exact for member, _ in parts):
            raise NoClosedFormError(
                "groups= leaves many rows out at once, which draws cannot (importance weights "
                "would rest on a few of them); fit again without each group"
            )
        groups = group_codes(groups, len(codes))
    elif fitted.training.groups is not None and len(fitted.training.groups) == len(codes):
        groups = fitted.training.groups
    elif fitted.training.groups is not None:
        raise ValueError(
            "fit left whole groups of rows out, and the groups of these rows are not known: give "
            "groups="
        )
    n = int((weight > 0).sum())
    for member, read in parts:
        some = partial or (member is not fitted and n != member.training.n_rows)
        check = _check_rows_of_fit if member.posterior.exact else _check_numbers
        check(member, LabelledRows(read.encoded, codes, weight), some)
    return LabelledRows(rows.encoded, codes, weight, groups)


def rows_of_fit(fitted: Fitted, training=None, partial: bool = False) -> LabelledRows:
    """Return the training rows kept, or those given as (X, y) or (X, y, weight)."""
    if training is not None:
        if not isinstance(training, tuple | list) or len(training) not in (2, 3):
            raise ValueError("training must be (X, y) or (X, y, sample_weight)")
        return training_rows(fitted, *KeptRows(*training), partial)
    kept_rows = fitted.training.rows
    if kept_rows is None:
        raise ValueError(
            "the training rows, or their scores, are not known here (after a stream, a merge, "
            "partial_fit, forget, a large fit, or loading a model saved before they were "
            "first asked for): pass training=(X, y) or training=(X, y, sample_weight)"
        )
    try:
        return training_rows(fitted, *kept_rows)
    except ValueError as error:
        raise ValueError(
            "the rows that fit was given were changed since then: pass them as they were "
            f"by training=(X, y) or training=(X, y, sample_weight) ({error})"
        ) from error


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
    posterior: Any = fitted.posterior
    training, scored = fitted.training, None if rows else fitted.posterior.scored
    kept_rows = rows or training.rows
    if training.inference not in _LEAVES_OUT:
        return None
    if rows is None and training.scores is not None:
        codes, weight = training.scores.codes, training.scores.weight
        log_p = -np.logaddexp(0.0, -training.scores.label)
    elif scored is not None:
        codes, weight = scored.codes, scored.weight
        log_p = posterior.log_proba_without(scored)[0][np.arange(len(codes)), codes]
    elif kept_rows is None:
        return None
    else:
        n = len(kept_rows.y)
        some = np.arange(n)
        if n > SCORED:
            some = np.sort(np.random.default_rng(0).choice(n, SCORED, replace=False))
        X, y, w = (None if of is None else _safe_indexing(of, some) for of in kept_rows)
        groups = None if training.groups is None else training.groups[some]
        try:
            read_rows = training_rows(fitted, X, y, w, rows is not None or n > SCORED, groups)
            read_rows = read_rows.only_scored()
        except ValueError:
            return None
        codes, weight = read_rows.codes, read_rows.weight
        joint, k = posterior.without_each(*read_rows)
        if (k > largest_good_k(posterior.n_draws)).any():
            return None
        log_p = log_softmax(joint)[np.arange(len(codes)), codes]
    each, n_classes = np.arange(len(codes)), len(fitted.classes)
    count = class_counts(codes, n_classes, weight)
    frequency = log_weights_without(np.ones(n_classes), count, codes, weight)[each, codes]
    copies_as_one = weight if training.weight is not None else np.ones(len(codes))
    loss, of_frequencies = (
        float(0.0 - np.average(values, weights=copies_as_one)) for values in (log_p, frequency)
    )
    return LabelScore(loss, of_frequencies, round(float(copies_as_one.sum())))


def _check_numbers(fitted: Fitted, rows: LabelledRows, partial: bool) -> None:
    """Check the number of rows, and class counts where the fit knew every label."""
    # rows of weight 0 are no rows to the fit
    n, seen = int(np.sum(rows.weight > 0)), fitted.training.n_rows
    if not partial and n != seen:
        raise ValueError(f"{_TRAINING_ROWS}; got {n} rows, and the fit had {seen}")
    if fitted.training.n_unlabelled:
        return
    labelled = rows.codes >= 0
    of_fit = fitted.posterior.stats.count
    count = class_counts(rows.codes[labelled], len(of_fit), rows.weight[labelled])
    if np.any(count > (1 + _SAME) * of_fit) if partial else _differ(count, of_fit):
        raise _other_counts(count, of_fit, fitted)


def _check_rows_of_fit(fitted: Fitted, rows: LabelledRows, partial: bool) -> None:
    """Check class counts and the evidence, which a change of any cell changes."""
    some = rows.at(rows.scored)
    prior, stats = fitted.posterior.prior, fitted.posterior.stats
    stats_here = prior.stats(*some[:2], len(fitted.classes), some.weight)
    without_evidence = bool(prior.family.no_theta)
    if partial or without_evidence:
        try:
            remainder = stats.remove(stats_here)
        except ValueError as error:
            raise ValueError(f"{_TRAINING_ROWS}; some of these were not: {error}") from None
    if partial:
        return
    if _differ(stats_here.count, stats.count):
        raise _other_counts(stats_here.count, stats.count, fitted)
    if without_evidence:
        left = [v for dims, v in remainder.features.arrays().values() if CLASS in dims]
        if any((np.abs(v) > _SAME).any() for v in left):
            raise ValueError(f"{_TRAINING_ROWS}; these are only some of them")
        return
    of_fit, evidence_here = prior.log_evidence(stats), prior.log_evidence(stats_here)
    if not np.isclose(evidence_here, of_fit, rtol=_SAME, atol=_SAME * len(some.codes)):
        raise ValueError(
            f"{_TRAINING_ROWS}; these have the same classes and other features: their log "
            f"evidence is {evidence_here:.6f}, that of the fit {of_fit:.6f}"
        )


def _differ(count: Array, fitted: Array) -> bool:
    return not np.allclose(count, fitted, rtol=_SAME)


def _other_counts(count: Array, of_fit: Array, fitted: Fitted) -> ValueError:
    return ValueError(
        f"{_TRAINING_ROWS}; got weights {count.round(6).tolist()} of the classes "
        f"{fitted.classes.tolist()}, and the fit had {of_fit.round(6).tolist()}"
    )
