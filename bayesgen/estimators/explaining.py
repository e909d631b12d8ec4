"""Why a fitted classifier says what it says: terms of the log-odds, feature by feature."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesgen.datatree import tree
from bayesgen.datatree.tree import named_rows
from bayesgen.estimators.estimator import Estimator
from bayesgen.explain.contributions import Request
from bayesgen.explain.explanation import RULES, explanation, pairs_of, rule
from bayesgen.families.names import BOUND, FEATURE, OBS

if TYPE_CHECKING:
    import xarray as xr

    from bayesgen.predict.interval.request import KindName

_BYTES = 4 << 30  # a table that would be larger is refused


class Explaining(Estimator):
    """Contributions of the features to the log-odds of two classes."""

    @named_rows
    def explain(
        self,
        X: Any,
        classes: Any = None,
        prob: float | None = None,
        kind: "KindName | None" = None,
        method: Literal["auto", "exact", "approx", "draws"] = "auto",
        posterior: Any = None,
        class_prior: Any = None,
        random_state: Any = 0,
    ) -> "xr.Dataset":
        r"""Each feature's contribution to the log-odds of two classes, with its interval.

        Contributions and the intercept (class weights) add up to the log-odds, in two ways that
        are not the same numbers. ``predictive`` adds up to the log-odds of `predict_proba`, theta
        integrated out. ``mean`` adds up to the mean of the log-odds under the posterior of theta,
        and ``interval`` is the spread of each contribution under it. A missing cell contributes 0.

        Parameters
        ----------
        X : (N, D)
        classes : (label, label) or label, optional
            The log-odds are those of the first label against the second. One label: against the
            most probable other class of each row; the odds against all others together are no sum
            over features. None: ``classes_[1]`` against ``classes_[0]``, as `decision_function`;
            for more classes the most probable of each row against its runner-up.
        prob : float in (0, 1), optional
            Posterior probability of the intervals; default ``az.rcParams["stats.ci_prob"]``.
        kind : {"eti", "hdi"}, optional
            Equal tails, or the shortest interval; default ``az.rcParams["stats.ci_kind"]``.
        method : {"auto", "exact", "approx", "draws"}
            Of the intervals, as in `predict_interval`.
        posterior : xarray.DataTree, optional
            Draws of this model's parameters that replace the closed form; there is no
            ``predictive`` then.
        class_prior : array (class,) or {label: weight}, optional
            Class weights that replace the fitted ones, and are not uncertain.
        random_state : int or numpy.random.Generator
            Of intervals by draws.

        Returns
        -------
        xarray.Dataset
            In nats. (obs_id, feature) ``mean`` and ``predictive``; ``interval`` (obs_id, feature,
            bound), and ``error`` of the posterior probability beyond its ends. The same of the
            class weights: ``mean_intercept``, ``predictive_intercept``, ``interval_intercept``.
            (obs_id) ``mean_log_odds``, ``predictive_log_odds``; the classes, ``label`` and
            ``against``. The features of `MarkovNB` are the n-grams that X shows.

        Raises
        ------
        ValueError
            If a label is not known, or the table would be too large.
        NotImplementedError
            For a family whose log density is not known as a sum over features.

        Notes
        -----
        *Documents.* The tokens of `MultinomialNB` and `MarkovNB` are dependent once theta is
        integrated out: ``predictive`` is the mean of a token's terms in the chain rule over all
        orders of the tokens.

        *Correlated features.* `LinearDiscriminant`: :math:`w_j (x_j - m_j)` with w the weights of
        the linear rule and m the point halfway between the class means; its own value alone
        matters. `QuadraticDiscriminant`: the terms of the two quadratic forms, products shared
        equally by their two features; half the log-ratio of the determinants is in the intercept.
        Intervals are by 4096 draws. There is no ``predictive``, which would depend on the order of
        the features; nor is there for a variance that features share.

        *Forests.* `TreeAugmentedNB`, `TreeAugmentedGaussianNB` and `AnDE` of one super-parent: a
        column's own log density, and half of what each edge says beyond its two columns, averaged
        over the forests; the Shapley value of columns and edges. Two super-parents and a column
        depend on each other three at a time, and get none.

        Examples
        --------
        >>> import bayesgen as bg
        >>> X = [[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]]
        >>> clf = bg.BernoulliNB().fit(X, [1] + 12 * [2])
        >>> table = clf.explain([[1, 1]], classes=(1, 2), prob=0.9, method="exact")
        >>> table["predictive"].values.round(3), table["predictive_intercept"].values.round(3)
        (array([[0.624, 0.624]]), array([-1.872]))
        >>> table["interval"].sel(feature="x0").values.round(3)
        array([[-0.525,  1.509]])
        """
        own = self._posterior_of(posterior)
        weights = self._given_weights(class_prior)
        seed = int(np.random.default_rng(random_state).integers(2**63))
        request = Request.of(prob, kind, method=method, class_prior=weights, seed=seed)
        encoded = self._encoded_checked(X)
        names = self._term_names(encoded)
        size = 8 * 6 * encoded.shape[0] * (len(names) + 1)
        if size > _BYTES:
            raise ValueError(
                f"the contributions of {len(names)} features in {encoded.shape[0]} rows would take "
                f"{size / (1 << 30):.1f} GiB: give fewer rows at a time"
            )
        joint = own.log_joint(encoded, "posterior_predictive", weights, "probability")
        how = rule(classes, len(self.classes_))
        pairs = pairs_of(self._chosen(classes, how), joint)
        found = explanation(own, encoded, len(names), joint, pairs, request)
        terms, by_feature = found.terms, (OBS, FEATURE)
        ends = np.stack([terms.lower, terms.upper], axis=-1)
        variables: dict[str, Any] = {
            "mean": (by_feature, terms.mean[:, :-1]),
            "interval": ((*by_feature, BOUND), ends[:, :-1]),
            "error": (by_feature, terms.error[:, :-1]),
            "mean_intercept": ((OBS,), terms.mean[:, -1]),
            "interval_intercept": ((OBS, BOUND), ends[:, -1]),
            "label": ((OBS,), self.classes_[pairs[:, 0]]),
            "against": ((OBS,), self.classes_[pairs[:, 1]]),
            "mean_log_odds": ((OBS,), found.mean),
        }
        if found.additive:
            variables["predictive"] = (by_feature, terms.predictive[:, :-1])
            variables["predictive_intercept"] = ((OBS,), terms.predictive[:, -1])
        if found.predictive is not None:
            variables["predictive_log_odds"] = ((OBS,), found.predictive)
        out = tree.group(variables, {FEATURE: names, BOUND: ["lower", "upper"]})
        return out.assign_attrs(prob=request.prob, kind=request.kind, unit="nats", pair=RULES[how])

    def _chosen(self, classes: Any, how: str) -> list[int] | None:
        """Codes of the label or the two labels that the user names."""
        if len(self.classes_) < 2:
            raise ValueError("explain: log-odds need two classes, and the classifier knows one")
        if classes is None:
            return None
        labels = list(classes) if how == "pair" else [classes]
        if how == "pair" and len(labels) != 2:
            raise ValueError(
                f"classes must be one label or a pair of labels, got {len(labels)} of them"
            )
        codes = [int(k) for k in self._codes_of(labels)]
        if len(codes) == 2 and codes[0] == codes[1]:
            raise ValueError(f"classes must be two different labels, got {labels[0]!r} twice")
        return codes

    def _term_names(self, encoded: Any) -> list[Any]:
        """Names of the features that terms of the log-odds belong to."""
        return self._feature_names()
