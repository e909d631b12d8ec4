"""What a fitted classifier says of new rows."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.estimators.estimator import Estimator, available_if
from bayesgen.estimators.extremes import refuse_large_cells
from bayesgen.estimators.lazy_rows import row_by_row
from bayesgen.explain import feature_relevance
from bayesgen.families.capabilities import LinearRule, require
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import CLASS, OBS, Method
from bayesgen.numerics.special import Array, log_sum_exp
from bayesgen.posterior.exact import ExactPosterior
from bayesgen.posterior.model import Quantity, log_weights
from bayesgen.posterior.monte_carlo import MISSING_WITHOUT_DENSITY, has_gap
from bayesgen.predict.probabilities import (
    check_method,
    log_class_probability,
)

if TYPE_CHECKING:
    import xarray as xr


class LinearForm(NamedTuple):
    """Weights of a linear rule.

    Two classes: ``w`` (D,) and ``w0`` a number, with ``X @ w + w0`` the log-odds of
    ``classes_[1]`` (that is `decision_function`). More: ``w`` (C, D) and ``w0`` (C,), with
    ``X @ w.T + w0`` the log joint densities up to a constant of the row.
    """

    w: Array
    w0: Array | float


def _has_density(self: Any) -> bool:
    """Whether rows have a density: scikit-learn tells it by the attribute ``score_samples``."""
    self._refuse_if_discriminative("score_samples")
    return True


class Predicting(Estimator):
    """Probabilities, labels, densities and new rows."""

    @row_by_row
    def predict_joint_log_proba(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
        posterior: Any = None,
        relevance: Any = None,
    ) -> Array:
        """(N, C) log p(y = c, x) of each row on its own.

        Parameters
        ----------
        X : (N, D)
            In memory; or, here and in the methods below, a dask array or data frame, for a dask
            array that is computed block by block when it is asked for; or an xarray.DataArray
            (rows first, or ``obs_id``), for one with dims (obs_id, class) and their labels.
        method : {"posterior_predictive", "posterior_mean", "map", "mle"}
            Integrate the parameters out, or plug one estimate in.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones; must sum to 1.
        posterior : xarray.DataTree, optional
            Draws of this model's parameters, as from `sample_posterior` or `draw_posterior`, that
            replace the closed form. Joint densities are averaged over draws, then normalised;
            `predict_monte_carlo` gives the error.
        relevance : "averaged" or Dataset, optional
            Average over which features depend on the class at all, by their posterior
            probabilities at prior odds 1, or at those of a `feature_relevance` table. None: all
            depend on it. For the posterior predictive in closed form.

        Warns
        -----
        MonteCarloWarning
            If `posterior` has too few draws for some rows.
        """
        self._refuse_if_discriminative("predict_joint_log_proba")
        return self._log_joint(X, method, class_prior, posterior, "density", relevance)

    def _log_joint(
        self,
        X: Any,
        method: Method,
        class_prior: Any,
        posterior: Any,
        quantity: Quantity,
        relevance: Any = None,
    ) -> Array:
        """As `predict_joint_log_proba`; `quantity` is what becomes of it."""
        own = self._posterior_of(posterior, method)
        if posterior is not None and method in ("map", "mle"):
            raise ValueError(
                f"method={method!r} cannot be read from posterior draws; leave `posterior` out, or "
                "use method='posterior_predictive' or 'posterior_mean'"
            )
        weights = self._given_weights(class_prior)
        X = self._read(X, reset=False)
        if relevance is not None:
            if method != "posterior_predictive" or posterior is not None:
                raise ValueError(
                    "relevance= averages the posterior predictive in closed form: leave "
                    "`posterior` out, and method at 'posterior_predictive'"
                )
            return self._log_joint_averaged(self._encode(X), weights, relevance)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is no number is refused later
                joint = self._scores(own, self._encode_as_read(X), method, weights, quantity)
        except UndefinedEstimateError as error:
            raise error.renamed(self.classes_, self._feature_names()) from None
        # NaN, or a row that no class can produce; the sum costs least and is seldom not finite
        if not (np.isfinite(joint.sum()) or np.isfinite(joint.max(axis=1)).all()):
            encoded = self._encode(X)
            refuse_large_cells(self.prior_.family, encoded, self._feature_names)
            for row in np.flatnonzero(np.isnan(joint).any(axis=1))[:1]:
                if has_gap(encoded, row):
                    raise ValueError(f"log p(x) of row {row} is NaN: {MISSING_WITHOUT_DENSITY}")
        return joint

    def _scores(
        self, own: Any, X: Any, method: Method, weights: Array | None, quantity: Quantity
    ) -> Array:
        """(N, C) of encoded rows, by a posterior."""
        scores: Array = own.log_joint(X, method, weights, quantity)
        return scores

    def _log_joint_averaged(self, encoded: Any, weights: Array | None, relevance: Any) -> Array:
        model, stats = self.model_, self.stats_
        if weights is None:
            weights = model.class_weights("posterior_predictive", stats)
        log_x = feature_relevance.log_predictive(self.prior_, model, stats, encoded, relevance)
        return log_x + log_weights(weights)

    @row_by_row
    def predict_log_proba(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
        posterior: Any = None,
        relevance: Any = None,
    ) -> Array:
        """(N, C) log of `predict_proba`."""
        return self._log_proba(X, method, class_prior, posterior, relevance)

    def _log_proba(
        self, X: Any, method: Method, class_prior: Any, posterior: Any, relevance: Any
    ) -> Array:
        joint = self._log_joint(X, method, class_prior, posterior, "probability", relevance)
        return self._normalised(joint, method)

    def _normalised(self, joint: Array, method: Method) -> Array:
        """(N, C) log probabilities."""
        closed_form = self.__dict__.get("inference_", "closed form") == "closed form"
        return log_class_probability(joint, method, closed_form)

    @row_by_row
    def predict_proba(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
        posterior: Any = None,
        relevance: Any = None,
    ) -> Array:
        """(N, C) p(y = c | x); by default the exact posterior predictive.

        A ratio of expectations, E[pi_c p(x | theta_c)] / sum_d E[pi_d p(x | theta_d)], for each
        row on its own. It is neither a plug-in nor the mean over draws of p(y | x, theta).

        Parameters
        ----------
        X, method, class_prior, posterior, relevance
            As in `predict_joint_log_proba`.

        Raises
        ------
        ValueError
            If the estimate that `method` plugs in does not exist (naming class and feature), or
            if a row has probability 0 under every class.
        """
        log_p = self._log_proba(X, method, class_prior, posterior, relevance)
        return np.exp(log_p, out=log_p)

    @row_by_row
    def predict(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
        posterior: Any = None,
        relevance: Any = None,
    ) -> Array:
        """(N,) most probable labels."""
        log_p = self._log_proba(X, method, class_prior, posterior, relevance)
        return self.classes_[np.argmax(log_p, axis=1)]

    @row_by_row
    def decision_function(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
        posterior: Any = None,
        relevance: Any = None,
    ) -> Array:
        """(N,) log-odds of ``classes_[1]`` for two classes, else (N, C) log p(y = c | x)."""
        joint = self._log_joint(X, method, class_prior, posterior, "probability", relevance)
        with np.errstate(invalid="ignore"):  # impossible rows are refused below
            log_odds = joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else None
        log_p = self._normalised(joint, method)  # refuses impossible rows
        return log_p if log_odds is None else log_odds

    @available_if(_has_density)
    @row_by_row
    def score_samples(
        self,
        X: Any,
        method: Method = "posterior_predictive",
        class_prior: Any = None,
        posterior: Any = None,
        relevance: Any = None,
    ) -> Array:
        """(N,) log p(x), of the mixture of the classes with their weights: low for odd rows.

        Absent of a discriminative classifier, which has no density of x.
        """
        return log_sum_exp(self._log_joint(X, method, class_prior, posterior, "density", relevance))

    @named_rows
    def predict_monte_carlo(
        self, X: Any, posterior: Any = None, class_prior: Any = None
    ) -> "xr.Dataset":
        """Class probabilities from posterior draws, and how far they can be trusted.

        Parameters
        ----------
        X, posterior, class_prior
            As in `predict_joint_log_proba`; the default posterior is ``posterior_``.

        Returns
        -------
        xarray.Dataset
            (obs_id, class) ``probability``; ``mcse``, its Monte Carlo standard error;
            ``weight_ess``, the number of draws that the mean of p(x | theta_c) rests on;
            ``log_density_sd`` of log p(x | theta_c) over draws. (obs_id) ``trusted``: False where
            the error is larger than ``mcse`` says (no warning is given here).

        Examples
        --------
        >>> import bayesgen as bg
        >>> clf = bg.GaussianNB().fit([[1.0], [1.4], [4.0], [4.4]], ["a", "a", "b", "b"])
        >>> table = clf.predict_monte_carlo([[1.1], [2.8]], clf.posterior_)
        >>> table.probability.sel({"class": "a"}).round(2).values, bool(table.trusted.all())
        (array([0.97, 0.43]), True)
        """
        weights = self._given_weights(class_prior)
        own = self._posterior_of(posterior)
        if isinstance(own, ExactPosterior):
            own = self._drawn_posterior(cast(Any, self).posterior_)
        result = own.estimate(self._encoded(X), weights)
        names = ("probability", "mcse", "weight_ess", "log_density_sd")
        table = {name: ((OBS, CLASS), getattr(result, name)) for name in names}
        trusted = ~result.probability_in_doubt()
        return tree.group(table | {"trusted": ((OBS,), trusted)}, {CLASS: self.classes_})

    def simulate(
        self,
        n: int,
        y: Any = None,
        random_state: Any = 0,
        source: Literal["predictive", "draw"] = "predictive",
    ) -> tuple[Any, Array]:
        """New labelled rows.

        Parameters
        ----------
        n : int
        y : label or array (n,) of labels, optional
            None draws them from the class weights.
        random_state : int or numpy.random.Generator
        source : {"predictive", "draw"}
            Fresh parameters for every row (the posterior predictive), or one posterior draw
            for all rows.

        Returns
        -------
        X, y
            Rows as the classifier reads them, and their labels.
        """
        self._refuse_if_discriminative("simulate")
        own = self._fitted()
        if source not in ("predictive", "draw"):
            raise ValueError(f"source must be 'predictive' or 'draw', got {source!r}")
        if n < 0:
            raise ValueError(f"n must be >= 0, got {n}")
        codes = None if y is None else np.broadcast_to(self._codes_of(y), (n,))
        X, codes = own.simulate(np.random.default_rng(random_state), n, codes, source == "draw")
        return self._decode(X), self.classes_[codes]

    def linear_form(self, method: Method = "posterior_predictive") -> LinearForm:
        """Weights (w, w0) of the rule, where it is linear in the features.

        Returns
        -------
        LinearForm
            Two classes: w (D,), w0 a number. More: w (C, D), w0 (C,).

        Raises
        ------
        NotLinearError
            With the reason: a full predictive is often curved where its plug-in is linear.
        """
        self._refuse_no_closed_form()
        check_method(method)
        model = self.model_
        theta = None
        try:
            if method != "posterior_predictive":
                theta = model.estimate(method, self.stats_)
            weights = model.class_weights(method, self.stats_)
        except UndefinedEstimateError as error:
            raise error.renamed(self.classes_, self._feature_names()) from None
        w, w0 = require(model.family, LinearRule, "linear_form").linear_form(theta)
        with np.errstate(divide="ignore"):
            w0 = w0 + np.log(weights)
        if len(self.classes_) == 2:
            return LinearForm(w[1] - w[0], float(w0[1] - w0[0]))
        return LinearForm(w, w0)
