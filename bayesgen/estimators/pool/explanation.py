"""The log-odds of a pool as sums over its members and their features, column by column."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.encoding.labels import codes_of
from bayesgen.estimators.gaussian import QuadraticDiscriminant
from bayesgen.estimators.pool.members import Member
from bayesgen.families.contract import Theta
from bayesgen.families.errors import MissingCapabilityError, NoClosedFormError
from bayesgen.families.names import FEATURE, OBS
from bayesgen.inference.exponents import comparable
from bayesgen.numerics.special import Array
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.predict.leave_one_out import training_rows

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.estimators.pool.log_linear_pool import LogLinearPool


def explained(pool: "LogLinearPool", X: Any, classes: Any) -> "xr.Dataset":
    """As `LogLinearPool.explain`."""
    if len(pool.classes_) < 2:
        raise ValueError("explain: log-odds need two classes, and the pool knows one")
    scores = pool._scores(X)
    n = scores.shape[1]
    if classes is None:
        log_p = pool._exponents.log_proba(scores, pool._offset_)
        pairs = np.argsort(-log_p, axis=1, kind="stable")[:, :2]
    else:
        labels = list(classes)
        if len(labels) != 2:
            raise ValueError(f"classes must be a pair of labels, got {len(labels)} of them")
        pairs = np.tile(codes_of(labels, pool.classes_), (n, 1))
    a, b = pairs.T
    rows = np.arange(n)
    by_member = np.empty((n, len(pool._members_)))
    features = _feature_names(pool)
    by_feature = np.zeros((n, len(features)))
    exponents, intercept = pool._exponents.terms(scores, pool._offset_, pairs)
    parts = exponents * (scores[:, rows, a] - scores[:, rows, b]).T
    first = 0
    for m, member in enumerate(pool._members_):
        if pool.exponents == "feature":
            own = parts[:, first : first + len(member.clf.fitted_.feature_names)]
            first += own.shape[1]
            by_member[:, m] = own.sum(axis=1)
            _add(by_feature, own, features, member, pool)
            continue
        by_member[:, m] = parts[:, m]
        if isinstance(member.clf, QuadraticDiscriminant):
            continue  # products of features are no feature's own: they are in `rest`
        if member.selection is not None and member.selection.documents:
            by_feature[:, features.index(member.selection.chosen[0])] += by_member[:, m]
            continue
        try:
            terms = exponents[:, [m]] * _contributions(member, X, pairs)
        except (MissingCapabilityError, NotImplementedError, ValueError):
            continue  # its log-odds are known as a whole: they are in `rest`
        _add(by_feature, terms, features, member, pool)
    return tree.group(
        {
            "by_member": ((OBS, "member"), by_member),
            "by_feature": ((OBS, FEATURE), by_feature),
            "rest": ((OBS,), by_member.sum(axis=1) - by_feature.sum(axis=1)),
            "intercept": ((OBS,), intercept),
            "log_odds": ((OBS,), by_member.sum(axis=1) + intercept),
            "label": ((OBS,), pool.classes_[a]),
            "against": ((OBS,), pool.classes_[b]),
        },
        {"member": list(pool.members_), FEATURE: features},
    ).assign_attrs(unit="nats")


def _contributions(member: Member, X: Any, pairs: Array) -> Array:
    """(N, D of the member) posterior mean contributions to each row's log-odds."""
    from bayesgen.explain.contributions import Request
    from bayesgen.explain.explanation import explanation

    clf = member.clf
    encoded = clf.fitted_.encoded(member.rows(X))
    names = clf.fitted_.reader.term_names(encoded, clf.fitted_.family)
    joint = clf.fitted_.posterior.log_joint(encoded, quantity="probability")
    request = Request.of(0.9, "eti", method="approx", intervals=False)
    found = explanation(clf.fitted_.posterior, encoded, len(names), joint, pairs, request)
    terms: Array = found.terms.mean[:, :-1]
    return terms


def _feature_names(pool: "LogLinearPool") -> list[str]:
    if hasattr(pool, "feature_names_in_"):
        return [str(name) for name in pool.feature_names_in_]
    for member in pool._members_:
        if member.view is not None:
            return member.view.schema.labels
    return [str(name) for name in pool._members_[0].clf.fitted_.feature_names]


def _add(
    out: Array, terms: Array, features: list[str], member: Member, pool: "LogLinearPool"
) -> None:
    """Add a member's terms to those of the table's columns, if it says which they are."""
    at = {name: j for j, name in enumerate(features)}
    if member.origin is not None:
        origin = member.origin
        if member.selection is not None:
            origin = np.array([at[name] for name in member.selection.chosen])[origin]
        np.add.at(out.T, origin, terms.T)
        return
    own = [str(name) for name in member.clf.fitted_.feature_names]
    if member.front is None and own == [f"x{j}" for j in range(len(features))]:
        own = features  # by position: not every classifier reads the names of a DataArray
    if terms.shape[1] == len(own) and all(name in at for name in own):
        for k, name in enumerate(own):
            out[:, at[name]] += terms[:, k]


_MOST = 2.5e8  # scores held: 2 GB


def feature_scores(member: Member, X: Any, y: Any, weight: Array) -> Array:
    """(D, N, C) log predictive densities of cells, `comparable` between its classes.

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
    own = clf.fitted_.posterior
    if not isinstance(own, ExactPosterior):
        raise NoClosedFormError(
            f"exponents='feature' needs scores of each column in closed form, and {member.name!r} "
            "is known by draws; use exponents='model'"
        )
    if y is None:
        rows, codes = clf.fitted_.encoded(member.rows(X)), np.full(len(weight), -1)
    else:
        training = training_rows(
            clf.fitted_, member.rows(X), y, weight, partial=len(y) != clf.n_rows_seen_
        )
        rows, codes = training.X, training.codes
    size = rows.shape[0] * rows.shape[1] * len(clf.classes_)
    if size > _MOST:
        raise MemoryError(
            f"exponents='feature' holds a score for each of {rows.shape[0]} rows, {rows.shape[1]} "
            f"columns and {len(clf.classes_)} classes, {size * 8 / 2**30:.1f} GiB: use "
            "exponents='model', a smaller max_rows, or predict fewer rows at a time"
        )
    return comparable(own.log_columns_without(rows, codes, weight))


def feature_draws(member: Member, rows: Any, theta: Theta, exponents: Array) -> tuple[Array, int]:
    """(draws, N, C) exponents times `comparable` scores less their means, summed; how many columns.

    Parameters
    ----------
    rows : as the family takes them
    theta : {name: (1, draws, *dims)}
    exponents : (draws, D or more)
    """
    family = member.clf.fitted_.posterior.model.family
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
            cells = comparable(one.log_likelihood(x[:, [j]], own)[0])
            out += exponents[:, at, None, None] * (cells - cells.mean(axis=0))
            used += 1
    return out, used


def _axis(dims: tuple[str, ...]) -> int:
    return dims.index(FEATURE) - len(dims)
