"""Why a fitted classifier says what it says: terms of the log-odds, feature by feature."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.checks.criticism import log_joint_blocks
from bayesgen.datatree import tree
from bayesgen.estimators.predicting import Predicting
from bayesgen.families.names import BOUND, FEATURE, OBS
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    import xarray as xr

_BYTES = 4 << 30  # a table that would be larger is refused


class Explaining(Predicting):
    """Contributions of the features to the log-odds of two classes."""

    def explain(
        self,
        X: Any,
        classes: Any = None,
        prob: float | None = None,
        kind: Literal["eti", "hdi"] | None = None,
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
        from bayesgen.explain import contributions

        check_is_fitted(self, "prior_")
        weights = self._given_weights(class_prior)
        seed = int(np.random.default_rng(random_state).integers(2**63))
        request = contributions.Request.of(
            prob, kind, method=method, class_prior=weights, seed=seed
        )
        encoded = self._encode(self._read(X, reset=False))
        names = self._term_names(encoded)
        size = 8 * 6 * encoded.shape[0] * (len(names) + 1)
        if size > _BYTES:
            raise ValueError(
                f"the contributions of {len(names)} features in {encoded.shape[0]} rows would take "
                f"{size / (1 << 30):.1f} GiB: give fewer rows at a time"
            )
        theta = self._draws_of(posterior)
        model = self._scorer() if theta is not None else self.model_
        joint = self._log_joint_of_rows(
            encoded, "posterior_predictive", weights, theta, "probability"
        )
        pairs = self._pairs(classes, joint)
        shape = (model, encoded, len(names), pairs, request)
        totals = {}
        if theta is None:
            found = contributions.terms(*shape)
            totals["mean"] = contributions.mean_log_odds(model, encoded, pairs, weights)
            with np.errstate(invalid="ignore"):  # impossible under both
                totals["predictive"] = _odds(joint, pairs)
            if method == "draws":
                rng = np.random.default_rng(seed)
                own = tree.split_chains(model.draw(rng, contributions.N_DRAWS), 4)
                drawn = contributions.terms_of_draws(shape[0], own, *shape[1:])
                found = found._replace(lower=drawn.lower, upper=drawn.upper, error=drawn.error)
        else:
            found = contributions.terms_of_draws(shape[0], theta, *shape[1:])
            blocks = log_joint_blocks(model.family, theta, encoded, weights)
            each = [_odds(density, pairs[rows]).mean(axis=(0, 1)) for rows, density in blocks]
            totals["mean"] = np.concatenate(each) if each else np.empty(0)
        by_feature = (OBS, FEATURE)
        ends = np.stack([found.lower, found.upper], axis=-1)
        variables: dict[str, Any] = {
            "mean": (by_feature, found.mean[:, :-1]),
            "interval": ((*by_feature, BOUND), ends[:, :-1]),
            "error": (by_feature, found.error[:, :-1]),
            "mean_intercept": ((OBS,), found.mean[:, -1]),
            "interval_intercept": ((OBS, BOUND), ends[:, -1]),
            "label": ((OBS,), self.classes_[pairs[:, 0]]),
            "against": ((OBS,), self.classes_[pairs[:, 1]]),
        }
        if theta is None and contributions.additive(model.family):
            variables["predictive"] = (by_feature, found.predictive[:, :-1])
            variables["predictive_intercept"] = ((OBS,), found.predictive[:, -1])
        variables |= {f"{name}_log_odds": ((OBS,), total) for name, total in totals.items()}
        out = tree.group(variables, {FEATURE: names, BOUND: ["lower", "upper"]})
        return out.assign_attrs(
            prob=request.prob, kind=request.kind, unit="nats", pair=_RULES[self._rule(classes)]
        )

    def _term_names(self, encoded: Any) -> list[Any]:
        """Names of the features that terms of the log-odds belong to."""
        return self._feature_names()

    def _rule(self, classes: Any) -> str:
        if classes is None:
            return "second" if len(self.classes_) == 2 else "top"
        return "pair" if isinstance(classes, list | tuple | np.ndarray) else "label"

    def _pairs(self, classes: Any, joint: Array) -> Array:
        """(N, 2) class codes."""
        n, n_classes = joint.shape
        if n_classes < 2:
            raise ValueError("explain: log-odds need two classes, and the classifier knows one")
        rule = self._rule(classes)
        if rule == "second":
            return np.broadcast_to([1, 0], (n, 2))
        if rule == "top":
            return np.argsort(-joint, axis=1, kind="stable")[:, :2]
        labels = list(classes) if rule == "pair" else [classes]
        if rule == "pair" and len(labels) != 2:
            raise ValueError(
                f"classes must be one label or a pair of labels, got {len(labels)} of them"
            )
        codes = [int(k) for k in self._codes_of(labels)]
        if len(codes) == 1:
            others = np.array(joint)
            others[:, codes[0]] = -np.inf
            rival = np.argmax(others, axis=1)
            rival[rival == codes[0]] = 0 if codes[0] else 1  # all others are impossible
            return np.stack([np.full(n, codes[0]), rival], axis=1)
        if codes[0] == codes[1]:
            raise ValueError(f"classes must be two different labels, got {labels[0]!r} twice")
        return np.broadcast_to(codes, (n, 2))


_RULES = {
    "second": "the second class against the first",
    "top": "the most probable class of each row against its runner-up",
    "label": "the label given against the most probable other class of each row",
    "pair": "the pair given",
}


def _odds(joint: Array, pairs: Array) -> Array:
    """(..., N) of log joint densities (..., N, C)."""
    rows = np.arange(len(pairs))
    return np.asarray(joint[..., rows, pairs[:, 0]] - joint[..., rows, pairs[:, 1]])
