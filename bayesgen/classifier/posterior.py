"""The posterior as others read it: DataTree of draws, PyMC model, file."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from bayesgen import storage, tree
from bayesgen.classifier.face import Face
from bayesgen.names import CLASS, FIT, POSTERIOR

if TYPE_CHECKING:
    import xarray as xr

_DRAW_BYTES = 1 << 30  # posterior_ draws fewer parameters than asked rather than exceed this


class Posterior(Face):
    """Evidence, draws, PyMC and storage."""

    @property
    def log_evidence_(self) -> float:
        """log p(X, y) of the training rows, everything integrated out."""
        check_is_fitted(self, "model_")
        return float(self.prior_.log_evidence(self.stats_))

    @property
    def posterior_(self) -> "xr.DataTree":
        """DataTree with groups ``posterior`` (4 chains of 500 exact draws) and ``fit``.

        Made on first use, with seed 0; `draw_posterior` gives another number of draws.
        """
        check_is_fitted(self, "model_")
        if "_draws" not in self.__dict__:
            self._draws = self.draw_posterior()
        return self._draws

    def draw_posterior(
        self, draws: int = 500, chains: int = 4, random_state: Any = 0
    ) -> "xr.DataTree":
        """Independent draws of all parameters from the closed-form posterior.

        Parameters
        ----------
        draws, chains : int
            Draws of each chain. Fewer, with a warning, if they would exceed 1 GiB.
        random_state : int or numpy.random.Generator

        Returns
        -------
        xarray.DataTree
            Groups ``posterior`` (chain, draw, ...) and ``fit``.
        """
        import warnings

        import xarray as xr

        check_is_fitted(self, "model_")
        family = self.model_.family
        fit = max(1, int(_DRAW_BYTES / (8 * chains * family.n_parameters())))
        if fit < draws:
            warnings.warn(
                f"{draws} draws of {family.n_parameters()} parameters would take more than "
                f"1 GiB: drawing {fit} a chain",
                UserWarning,
                stacklevel=2,
            )
            draws = fit
        sampled = self.model_.draw(np.random.default_rng(random_state), draws * chains)
        coords = self._coords()
        posterior = tree.draws_dataset(
            tree.split_chains(sampled, chains), self.model_.params, coords
        )
        out = xr.DataTree.from_dict({f"/{POSTERIOR}": posterior, f"/{FIT}": self._fit_dataset()})
        out.attrs |= {"route": "closed form", "estimator": type(self).__name__}
        out.attrs |= {"family": type(family).__name__, "bayesgen_version": _version()}
        if isinstance(random_state, int):
            out.attrs["seed"] = random_state
        return out

    def _fit_dataset(self) -> "xr.Dataset":
        return tree.fit_dataset(self.prior_, self.model_, self.stats_, self._coords())

    def to_pymc(
        self,
        X: Any = None,
        y: Any = None,
        *,
        likelihood: Literal["statistics", "rows"] = "statistics",
        observed: bool = True,
    ) -> Any:
        """The model as a PyMC graph: the same priors on the same data.

        Parameters
        ----------
        X, y : rows and labels, optional
            Needed for ``likelihood="rows"``: a fitted classifier keeps statistics, not rows.
        likelihood : {"statistics", "rows"}
            Potentials of the sufficient statistics, so that a gradient costs the same for 10^3
            rows as for 10^8; or the rows as given, ``label`` and ``x`` observed. The log
            posteriors differ by a constant.
        observed : bool
            False: the prior alone.

        Returns
        -------
        pymc.Model
            Variable names, dims and coords are those of ``posterior_``.
        """
        check_is_fitted(self, "model_")
        coords = self._coords()
        if not observed:
            return self.prior_.to_pymc(coords)
        if likelihood == "statistics":
            return self.prior_.to_pymc(coords, stats=self.stats_)
        if likelihood != "rows":
            raise ValueError(f"likelihood must be 'statistics' or 'rows', got {likelihood!r}")
        if X is None or y is None:
            raise ValueError(
                "likelihood='rows' needs the rows: call to_pymc(X, y, likelihood='rows')"
            )
        encoded = self._encode(self._read(X, reset=False))
        return self.prior_.to_pymc(coords, X=encoded, y=self._codes_of(column_or_1d(y)))

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
            "version": _version(),
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
        fit = self._fit_dataset().drop_vars([CLASS], errors="ignore")
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


def _version() -> str:
    from bayesgen import __version__

    return __version__
