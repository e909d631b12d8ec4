"""A fitted classifier as a netCDF file, and back."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, get_args

from bayesgen.datatree.fit import (
    fit_dataset,
    read_fit,
    refuse_invalid,
    refuse_other_posterior,
)
from bayesgen.datatree.names import CONSTANT_DATA, FIT, LEAVE_ONE_OUT, POSTERIOR
from bayesgen.estimators.estimator import package_version
from bayesgen.estimators.posterior import Posterior
from bayesgen.families.names import CLASS, FEATURE
from bayesgen.inference.sampled import Inference
from bayesgen.io import json_values, storage
from bayesgen.posterior.drawn import DrawnPosterior
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.predict.left_out import LeftOut

if TYPE_CHECKING:
    import xarray as xr


def refuse_subclass(clf: Any) -> None:
    """Raise TypeError for a classifier whose file `bayesgen.load` would not know."""
    from bayesgen.estimators import ESTIMATORS

    if type(clf) not in ESTIMATORS:
        raise TypeError(
            f"model files hold classifiers of bayesgen, and {type(clf).__name__} is a class of "
            "your own, which bayesgen.load does not know: pickle it"
        )


class Saving(Posterior):
    """Storage without pickle."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a netCDF file; `bayesgen.load` reads it. No pickle."""
        record = self._record()
        refuse_subclass(self)
        storage.write(path, *record)

    def _record(self) -> tuple["xr.Dataset", dict[str, Any], dict[str, "xr.Dataset"]]:
        """What `storage.write` takes."""
        own = self._fitted()
        parameters = {
            name: json_values.to_json(self._named(name, value), name)
            for name, value in self.get_params(deep=False).items()
            if name not in self._unsaved()
        }
        state = {
            "estimator": type(self).__name__,
            "version": package_version(),
            "parameters": parameters,
            "unsaved": [name for name in self._unsaved() if getattr(self, name) is not None],
            "classes": json_values.labels_to_json(self.classes_),
            "n_features": getattr(self, "n_features_in_", None),
            "feature_names": (
                self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
            ),
            "n_rows_seen": int(self.n_rows_seen_),
            "n_unlabelled": int(self.n_unlabelled_),
            "inference": self.inference_,
            "closed_form": "model_" in self.__dict__,
            **self._state(),
        }
        coords = self._coords()
        fit = fit_dataset(own.prior, own.model, own.stats, coords)
        fit = fit.drop_vars([CLASS], errors="ignore")
        draws = {}
        if isinstance(own, DrawnPosterior):
            state["draws"] = {
                str(k): json_values.to_json(v, str(k)) for k, v in self._draws.attrs.items()
            }
            draws = {name: self._draws[name].to_dataset() for name in self._draws.children}
            draws = {
                name: group.drop_vars(list(coords), errors="ignore")  # known by `state`
                for name, group in draws.items()
                if name not in (FIT, CONSTANT_DATA)
            }
        scores = self.__dict__.get("_loo_scores")
        if scores is not None:
            import xarray as xr

            draws[LEAVE_ONE_OUT] = xr.Dataset(scores.arrays())
        return fit, state, draws

    def _load(
        self, fit: "xr.Dataset", state: Mapping[str, Any], draws: Mapping[str, "xr.Dataset"]
    ) -> Self:
        """Fill a new instance from a model file."""
        self.classes_ = json_values.labels_from_json(state["classes"])
        n_features, names = json_values.columns_from_json(state)
        if n_features is not None:
            self.n_features_in_ = n_features
        elif any(FEATURE in str(dim) for dim in fit.sizes):
            raise ValueError("it does not say how many columns its rows have")
        if names is not None:
            self.feature_names_in_ = names
        self.n_rows_seen_ = json_values.whole(state, "n_rows_seen")
        self.encoder_ = None
        self._restore(state)
        given = self._in_order()._make_family()
        family = type(given)
        if family.__name__ != fit.attrs["family"]:
            raise ValueError(f"the file holds a {fit.attrs['family']}, not a {family.__name__}")
        self.inference_ = state.get("inference", "closed form")
        if self.inference_ not in get_args(Inference):
            raise ValueError(f"it was fitted by {self.inference_!r}, which is unknown")
        exact = self.inference_ == "closed form"
        if exact and not family.conjugate:
            raise ValueError(f"the posterior of a {family.__name__} has no closed form")
        self.n_unlabelled_ = json_values.whole({"n_unlabelled": 0, **state}, "n_unlabelled")
        draws = dict(draws)
        if LEAVE_ONE_OUT in draws:
            held = draws.pop(LEAVE_ONE_OUT)
            self._loo_scores = LeftOut(**{str(k): held[k].values for k in held.data_vars})
            self._loo_scores.refuse_invalid(len(self.classes_))
        prior, model, stats = read_fit(fit, family)
        self.prior_ = replace(prior, family=prior.family.with_prior_objects(given))
        self._posterior = (
            ExactPosterior(self.prior_, model, stats)
            if exact
            else DrawnPosterior(self.prior_, model, stats, {})
        )
        refuse_invalid(self._unresolved(), prior, model, stats, coords=self._coords())
        if exact or state.get("closed_form", True):
            refuse_other_posterior(self.prior_, model, stats)
            self.model_, self.stats_ = model, stats
        if exact:
            return self
        attrs = {k: json_values.from_json(v) for k, v in state["draws"].items()}
        if any(v.dtype.kind not in "biuf" for v in draws[POSTERIOR].data_vars.values()):
            raise ValueError("its draws are not all numbers")
        self._draws = self._tree(draws, attrs["route"])
        # who drew them and when: what a file of version 0.1 does not tell stays unknown
        untold = ("created_at", "inference_library", "inference_library_version")
        self._draws.attrs |= dict.fromkeys(untold, "unknown") | attrs
        self._posterior = self._drawn_posterior(self._draws)
        self._posterior.refuse_invalid()
        return self
