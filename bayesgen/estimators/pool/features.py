"""Scores of a member column by column, for an exponent of each column."""

from typing import Any

import numpy as np

from bayesgen.estimators.pool.members import Member
from bayesgen.families.contract import Theta
from bayesgen.families.names import FEATURE
from bayesgen.inference.closed_form import NoClosedFormError
from bayesgen.numerics.special import Array
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.removal import log_predictive_by_column

_MOST = 2.5e8  # scores held: 2 GB


def feature_scores(member: Member, X: Any, y: Any, weight: Array) -> Array:
    """(D, N, C) log predictive densities of cells, relative to each cell's best class.

    Parameters
    ----------
    X : rows
    y : (N,) labels of training rows, each of which is left out; None: new rows
    weight : (N,)

    Raises
    ------
    NoClosedFormError
        Of a member by draws.
    MissingCapabilityError
        Of a density that is no product over the columns.
    MemoryError
        If the scores would not fit.
    """
    clf = member.clf
    own = clf._fitted()
    if not isinstance(own, ExactPosterior):
        raise NoClosedFormError(
            f"exponents='feature' needs scores of each column in closed form, and {member.name!r} "
            "is known by draws; use exponents='model'"
        )
    if y is None:
        rows, codes = clf._encoded(member.rows(X)), np.full(len(weight), -1)
    else:
        training = clf._training_rows(member.rows(X), y, weight, partial=len(y) != clf.n_rows_seen_)
        rows, codes = training.X, training.codes
    size = rows.shape[0] * rows.shape[1] * len(clf.classes_)
    if size > _MOST:
        raise MemoryError(
            f"exponents='feature' holds a score for each of {rows.shape[0]} rows, {rows.shape[1]} "
            f"columns and {len(clf.classes_)} classes, {size * 8 / 2**30:.1f} GiB: use "
            "exponents='model', a smaller max_rows, or predict fewer rows at a time"
        )
    out = log_predictive_by_column(own.model.family, rows, codes, weight)
    out -= out.max(axis=2, keepdims=True)
    return out


def feature_draws(member: Member, rows: Any, theta: Theta, exponents: Array) -> tuple[Array, int]:
    """(draws, N, C) sum over columns of exponents times log densities, and how many columns.

    Parameters
    ----------
    rows : as the family takes them
    theta : {name: (1, draws, *dims)}
    exponents : (draws, D or more)
    """
    family = member.clf._fitted().model.family
    n_draws, n_classes = len(exponents), len(member.clf.classes_)
    out = np.zeros((n_draws, rows.shape[0], n_classes))
    used = 0
    for block in family.blocks(theta=theta):
        x = rows[:, block.columns]
        where = np.arange(x.shape[1]) if isinstance(block.columns, slice) else block.columns
        for j, at in enumerate(where):
            one = block.family.at(FEATURE, [j])
            own = {
                name: np.take(block.theta[name], [j], axis=_axis(dims))
                if FEATURE in dims
                else block.theta[name]
                for name, dims in block.family.params.items()
            }
            cells = one.log_likelihood(x[:, [j]], own)[0]
            out += exponents[:, at, None, None] * cells
            used += 1
    return out, used


def _axis(dims: tuple[str, ...]) -> int:
    return dims.index(FEATURE) - len(dims)
