"""A pool as the content of one model file: its own numbers, and a record of each member."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree.names import LEAVE_ONE_OUT, MEMBER_RANKS
from bayesgen.encoding.selection import Selection
from bayesgen.encoding.views import TableView
from bayesgen.estimators.pool.members import Member
from bayesgen.estimators.saving import refuse_subclass
from bayesgen.inference.exponents import ExponentPrior, Exponents
from bayesgen.io import json_values
from bayesgen.predict.left_out import LeftOut
from bayesgen.predict.member_ranks import MemberRanks
from bayesgen.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.estimators.pool.log_linear_pool import LogLinearPool

_FIT = "fit"


def record(pool: "LogLinearPool") -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
    """What `storage.write` takes."""
    import xarray as xr

    members, groups = [], {}
    for k, member in enumerate(pool._members_):
        if member.front is not None:
            raise TypeError(
                f"cannot save the pool: member {member.name!r} is a pipeline, and its steps before "
                "the classifier have no place in a model file; transform X before the pool"
            )
        refuse_subclass(member.clf)
        fit, state, draws = member.clf.__bayesgen_record__(member.clf.fitted_)
        for name, group in {_FIT: fit, **draws}.items():
            groups[f"member_{k}_{name}"] = group
        view = None if member.view is None else member.view.to_json()
        seen = None if member.selection is None else member.selection.to_json()
        members.append(
            {
                "name": member.name,
                "state": state,
                "view": view,
                "selection": seen,
                "draws": list(draws),
            }
        )
    found, prior = pool._exponents, pool._prior_
    if pool._loo_scores is not None or pool._data is not None:
        groups[LEAVE_ONE_OUT] = xr.Dataset(pool._left_out().arrays())
    if pool._ranks is not None:
        groups[MEMBER_RANKS] = xr.Dataset(pool._ranks.arrays())
    own = xr.Dataset(
        {
            "exponents": (("chain", "draw", "member"), found.exponents),
            "intercepts": (("chain", "draw", "class"), found.intercepts),
            "offset": (("class",), pool._offset_),
        }
    )
    parameters = {
        name: json_values.to_json(value, name)
        for name, value in pool.get_params(deep=False).items()
        if name != "members"
    }
    state = {
        "estimator": type(pool).__name__,
        "version": __version__,
        "parameters": parameters,
        "unsaved": [],
        "auto": isinstance(pool.members, str),
        "classes": json_values.labels_to_json(pool.classes_),
        "n_features": getattr(pool, "n_features_in_", None),
        "feature_names": (
            [str(name) for name in pool.feature_names_in_]
            if hasattr(pool, "feature_names_in_")
            else None
        ),
        "n_rows": pool.n_rows_,
        "prior": [prior.shape, prior.mean, prior.intercept_scale],
        "left_out": pool.left_out_,
        "members": members,
    }
    return own, state, groups


def read_record(
    pool: "LogLinearPool",
    fit: "xr.Dataset",
    state: Mapping[str, Any],
    groups: Mapping[str, "xr.Dataset"],
    known: Mapping[str, Any],
) -> None:
    """Fill a new pool from a model file; `known` are the classes that a member may be of."""
    pool.classes_ = json_values.labels_from_json(state["classes"])
    members = []
    for k, entry in enumerate(state["members"]):
        own = entry["state"]
        if own["unsaved"]:
            raise ValueError(
                f"member {entry['name']!r} was saved with {own['unsaved'][0]}=..., which a file "
                "cannot hold: save the members one by one, and pool them with prefit=True"
            )
        if own["estimator"] not in known:
            raise ValueError(f"member {entry['name']!r} is of an unknown class")
        arguments = json_values.arguments_from_json(own["parameters"])
        draws = {name: groups[f"member_{k}_{name}"] for name in entry["draws"]}
        clf = known[own["estimator"]](**arguments)
        clf.fitted_ = clf.__bayesgen_load__(groups[f"member_{k}_{_FIT}"], own, draws)
        if not np.array_equal(clf.classes_, pool.classes_):
            raise ValueError(f"member {entry['name']!r} knows other classes than the pool")
        view = None if entry["view"] is None else TableView.from_json(entry["view"])
        seen = entry["selection"]
        selection = None if seen is None else Selection.from_json(seen)
        members.append(Member(entry["name"], clf, view, selection=selection))
    pool._members_ = members
    pool.members_ = {member.name: member.clf for member in members}
    pool.members = "auto" if state["auto"] else [(m.name, m.clf) for m in members]
    eta, b, offset = (np.asarray(fit[k].values) for k in ("exponents", "intercepts", "offset"))
    by_feature = state["parameters"]["exponents"] == "feature"
    number = sum(len(m.clf.fitted_.feature_names) for m in members) if by_feature else len(members)
    size, n_classes = eta.shape[:2], len(pool.classes_)
    shapes = (*size, number), (*size, n_classes), (n_classes,)
    for value, shape in zip((eta, b, offset), shapes, strict=True):
        if value.shape != shape or not value.size or not np.isfinite(value).all():
            raise ValueError("the exponents of the pool are not as many finite numbers as it needs")
    if np.any(eta < 0):
        raise ValueError("exponents of a pool are not negative")
    pool._exponents, pool._offset_ = Exponents(eta, b), offset
    pool.exponents_, pool.intercepts_ = pool._exponents.mean
    pool._prior_ = ExponentPrior(*state["prior"])
    pool._data = pool._loo_scores = None
    if LEAVE_ONE_OUT in groups:
        held = groups[LEAVE_ONE_OUT]
        pool._loo_scores = LeftOut(**{str(k): held[k].values for k in held.data_vars})
        pool._loo_scores.refuse_invalid(len(pool.classes_))
    pool._ranks = None
    if MEMBER_RANKS in groups:
        held = groups[MEMBER_RANKS]
        pool._ranks = MemberRanks(**{str(k): held[k].values for k in held.data_vars})
        with_density = sum(member.has_density for member in members)
        pool._ranks.refuse_invalid(with_density, len(pool.classes_))
    pool.n_rows_, pool.left_out_ = json_values.whole(state, "n_rows"), dict(state["left_out"])
    n_features, names = json_values.columns_from_json(state)
    if n_features is not None:
        pool.n_features_in_ = n_features
    if names is not None:
        pool.feature_names_in_ = names
