"""A fitted classifier as a netCDF file, and back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen import storage, tree
from bayesgen.classifier.face import Face, package_version
from bayesgen.names import CLASS

if TYPE_CHECKING:
    import xarray as xr


class Saving(Face):
    """Storage without pickle."""

    def save(self, path: Any) -> None:
        """Write the model to a netCDF file; `bayesgen.load` reads it. No pickle."""
        check_is_fitted(self, "model_")
        parameters = {
            name: storage.to_json(value, name)
            for name, value in self.get_params(deep=False).items()
            if name not in self._unsaved()
        }
        state = {
            "estimator": type(self).__name__,
            "version": package_version(),
            "parameters": parameters,
            "unsaved": [name for name in self._unsaved() if getattr(self, name) is not None],
            "classes": storage.labels_to_json(self.classes_),
            "n_features": getattr(self, "n_features_in_", None),
            "feature_names": (
                self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
            ),
            "n_rows_seen": int(self.n_rows_seen_),
            **self._state(),
        }
        fit = tree.fit_dataset(self.prior_, self.model_, self.stats_, self._coords())
        fit = fit.drop_vars([CLASS], errors="ignore")
        storage.write(path, fit, state)

    def _unsaved(self) -> tuple[str, ...]:
        """Constructor arguments that a file cannot hold."""
        return ("family",)

    def _load(self, fit: "xr.Dataset", state: Mapping[str, Any]) -> Self:
        """Fill a new instance from a model file."""
        self.classes_ = storage.labels_from_json(state["classes"])
        if state["n_features"] is not None:
            self.n_features_in_ = state["n_features"]
        if state["feature_names"] is not None:
            self.feature_names_in_ = np.array(state["feature_names"], dtype=object)
        self.n_rows_seen_ = state["n_rows_seen"]
        self.encoder_ = None
        self._restore(state)
        family = type(self._make_family())
        if family.__name__ != fit.attrs["family"]:
            raise ValueError(f"the file holds a {fit.attrs['family']}, not a {family.__name__}")
        self.prior_, self.model_, self.stats_ = tree.read_fit(fit, family)
        return self
