"""A pool as the content of one model file: its own numbers, and a record of each member."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree.names import LEAVE_ONE_OUT, MEMBER_RANKS
from bayesgen.encoding.selection import Selection
from bayesgen.encoding.views import TableView
from bayesgen.estimators.pool.members import Member
from bayesgen.estimators.saving import package_version, refuse_subclass
from bayesgen.inference.exponents import ExponentPrior, Exponents
from bayesgen.inference.pool_average import Average
from bayesgen.io import json_values
from bayesgen.numerics.special import Array
from bayesgen.predict.left_out import LeftOut
from bayesgen.predict.member_ranks import MemberRanks

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.estimators.pool.log_linear_pool import LogLinearPool

_FIT = "fit"
_ROUNDING = 1e-6  # of correlations


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
    if pool._draws is not None:
        for name, group in zip(("posterior", "sample_stats"), pool._draws, strict=True):
            groups[name] = group.drop_vars(["member", "class"], errors="ignore")
    found, prior = pool._exponents, pool._prior_
    if pool._loo_scores is not None or pool._data is not None:
        groups[LEAVE_ONE_OUT] = xr.Dataset(pool._left_out().arrays())
    if pool._ranks is not None:
        groups[MEMBER_RANKS] = xr.Dataset(pool._ranks.arrays())
    own = xr.Dataset(
        {
            "exponents": (("member",), found.exponents),
            "intercepts": (("class",), found.intercepts),
            "covariance": (("parameter", "parameter_bis"), found.covariance),
            "offset": (("class",), pool._offset_),
        }
    )
    if pool._average is not None:
        alone = pool._average.alone
        own["weights"] = ("component",), pool._average.weights
        own["exponent_alone"] = ("member",), np.concatenate([part.exponents for part in alone])
        own["intercepts_alone"] = ("member", "class"), np.stack([part.intercepts for part in alone])
        own["covariance_alone"] = (
            ("member", "parameter_alone", "parameter_alone_bis"),
            np.stack([part.covariance for part in alone]),
        )
    parameters = {
        name: json_values.to_json(value, name)
        for name, value in pool.get_params(deep=False).items()
        if name != "members"
    }
    state = {
        "estimator": type(pool).__name__,
        "version": package_version(),
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
) -> None:
    """Fill a new pool from a model file."""
    from bayesgen.estimators import ESTIMATORS

    known = {estimator.__name__: estimator for estimator in ESTIMATORS}
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
        seen = entry.get("selection")  # none in files of the first release
        selection = None if seen is None else Selection.from_json(seen)
        members.append(Member(entry["name"], clf, view, selection=selection))
    pool._members_ = members
    pool.members_ = {member.name: member.clf for member in members}
    pool.members = "auto" if state["auto"] else [(m.name, m.clf) for m in members]
    exponents, intercepts, covariance, offset = (
        np.asarray(fit[name].values) for name in ("exponents", "intercepts", "covariance", "offset")
    )
    classes = pool.classes_.shape
    by_feature = state["parameters"]["exponents"] == "feature"
    number = sum(len(m.clf.fitted_.feature_names) for m in members) if by_feature else len(members)
    with_intercepts = number + (classes[0] if state["prior"][2] is not None else 0)
    sizes = {"exponents": (number,), "intercepts": classes, "offset": classes}
    sizes["covariance"] = (with_intercepts, with_intercepts)
    found = {"exponents": exponents, "intercepts": intercepts, "offset": offset}
    for name, value in (found | {"covariance": covariance}).items():
        if value.shape != sizes[name] or not np.isfinite(value).all():
            raise ValueError(f"{name!r} of the pool are not as many finite numbers as it needs")
    if not np.all(exponents > 0):
        raise ValueError(f"exponents of a pool are positive, not {exponents}")
    _refuse_no_covariance(covariance)
    pool._exponents = Exponents(exponents, intercepts, covariance)
    pool.exponents_, pool.intercepts_, pool._offset_ = exponents, intercepts, offset
    pool._average = _average(fit, len(members), len(pool.classes_)) if "weights" in fit else None
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
    pool._draws = None
    if "posterior" in groups:
        coords = {"member": pool._names(), "class": pool.classes_}
        pool._draws = tuple(
            group.assign_coords({k: v for k, v in coords.items() if k in group.dims})
            for group in (groups["posterior"], groups["sample_stats"])
        )
    pool.n_rows_, pool.left_out_ = json_values.whole(state, "n_rows"), dict(state["left_out"])
    n_features, names = json_values.columns_from_json(state)
    if n_features is not None:
        pool.n_features_in_ = n_features
    if names is not None:
        pool.feature_names_in_ = names


def _average(fit: "xr.Dataset", n_members: int, n_classes: int) -> Average:
    """The members alone and their weights."""
    eta, b, covariance, weights = (
        np.asarray(fit[name].values)
        for name in ("exponent_alone", "intercepts_alone", "covariance_alone", "weights")
    )
    shapes = {
        "exponent_alone": (eta, (n_members,)),
        "intercepts_alone": (b, (n_members, n_classes)),
        "covariance_alone": (covariance, (n_members, *covariance.shape[1:2] * 2)),
        "weights": (weights, (n_members + 1,)),
    }
    for name, (value, shape) in shapes.items():
        if value.shape != shape or not np.isfinite(value).all():
            raise ValueError(f"{name!r} of the pool are not as many finite numbers as it needs")
    if not (np.all(eta > 0) and np.all(weights >= 0) and np.isclose(weights.sum(), 1.0)):
        raise ValueError("exponents of a pool are positive, and its weights sum to 1")
    _refuse_no_covariance(covariance)
    parts = zip(eta[:, None], b, covariance, strict=True)
    return Average(tuple(Exponents(*part) for part in parts), weights)


def _refuse_no_covariance(value: Array) -> None:
    """Raise for matrices (..., P, P) that are not symmetric and positive semidefinite.

    As correlations: a wide prior of the intercepts makes variances of 1e15 beside others of 1, and
    the rounding errors of their covariances are as large as these.
    """
    variance = np.diagonal(value, axis1=-2, axis2=-1)
    floor = np.finfo(np.float64).eps * np.abs(value).max(axis=(-2, -1))[..., None]
    sd = np.sqrt(np.maximum(variance, np.where(floor > 0, floor, 1.0)))
    found = value / sd[..., :, None] / sd[..., None, :]
    turned = np.swapaxes(found, -1, -2)
    least = np.linalg.eigvalsh((found + turned) / 2)[..., 0]
    if np.abs(found - turned).max() > _ROUNDING or np.any(least < -_ROUNDING):
        raise ValueError("a covariance of the exponents of a pool is none")
