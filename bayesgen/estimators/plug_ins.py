"""Plug-in estimates by name, and under the names that scikit-learn's users look for."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.datatree import tree
from bayesgen.estimators.estimator import Estimator
from bayesgen.families.errors import (
    MissingCapabilityError,
    NotLinearError,
    UndefinedEstimateError,
)
from bayesgen.families.names import CATEGORY, CLASS, CLASS_WEIGHTS, METHODS, Method
from bayesgen.inference.closed_form import NoClosedFormError
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr


class PlugIns(Estimator):
    """Estimates of the parameters of a posterior in closed form."""

    def estimates(self, method: Method = "posterior_mean") -> "xr.Dataset":
        """One estimate of every parameter, as ``predict_proba(X, method=...)`` plugs it in.

        Parameters
        ----------
        method : {"posterior_mean", "map", "mle"}

        Returns
        -------
        xarray.Dataset
            The parameters by their names in ``posterior_``, with dims and labels: of `GaussianNB`
            ``mu`` and ``sigma2`` (class, feature); ``pi`` (class), the class weights.

        Raises
        ------
        ValueError
            If the estimate does not exist (naming class and feature).
        NoClosedFormError
            After a fit by draws: ``posterior_`` has them.

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
        >>> clf.estimates("mle")["theta"].sel({"class": "a"}).values
        array([1. , 0.5])
        """
        self._refuse_no_closed_form()
        if method not in METHODS or method == "posterior_predictive":
            allowed = ", ".join(map(repr, METHODS[:0:-1]))
            raise ValueError(f"method must be one of {allowed}, got {method!r}")
        model = self.model_
        try:
            theta = model.estimate(method, self.stats_)
            weights = model.class_weights(method, self.stats_)
        except UndefinedEstimateError as error:
            raise error.renamed(self.classes_, self._feature_names()) from None
        own = {name: (dims, np.asarray(theta[name])) for name, dims in model.family.params.items()}
        out = tree.group(own | {CLASS_WEIGHTS: ((CLASS,), weights)}, self._coords())
        return out.assign_attrs(method=method)

    def _computed(self, name: str) -> Any:
        """Scikit-learn's attributes, when they are asked for."""
        try:
            return self._attribute(name)
        except (
            NotLinearError,
            UndefinedEstimateError,
            MissingCapabilityError,
            NoClosedFormError,
        ) as error:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: {error}; estimates() and posterior_ "
                "have the parameters"
            ) from error

    def _attribute(self, name: str) -> Any:
        """Of the posterior mean, but for `coef_` and counts."""
        model = self.model_
        if name == "class_count_":
            return np.array(self.stats_.count)
        if name == "class_log_prior_":
            return np.log(model.mean_weights())
        if name in ("coef_", "intercept_"):
            w, w0 = self._linear()
            return w if name == "coef_" else w0
        parameter = model.family.attributes[name]
        dims = model.family.params[parameter]
        value = np.asarray(model.estimate("posterior_mean", self.stats_)[parameter])
        if name.startswith("feature_log_"):
            with np.errstate(divide="ignore"):  # padding
                log_p = np.log(value)
            if dims[-1] != CATEGORY:
                return log_p
            real = value[0] > 0
            return [log_p[:, j, own] for j, own in enumerate(real)]
        if name == "var_":  # of a variance that classes or features share
            value = value[:, None] if dims == (CLASS,) else value
            return np.array(np.broadcast_to(value, model.family.mu.shape))
        return value

    def _linear(self) -> tuple[Array, Array]:
        """(1 or C, D) and (1 or C,): of the posterior predictive, or else of the posterior mean."""
        try:
            w, w0 = self.linear_form()
        except NotLinearError:
            w, w0 = self.linear_form("posterior_mean")
        return np.atleast_2d(w), np.atleast_1d(w0)
