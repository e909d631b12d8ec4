"""Feature selection by mutual information, as a scikit-learn transformer."""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from bayesgen.encoding.reader import validated
from bayesgen.estimators import BernoulliNB, GenerativeClassifier
from bayesgen.estimators.arguments import Labels, PerRow, RowsLike
from bayesgen.explain.features import PlugIn, mutual_information
from bayesgen.numerics.special import Array


class MutualInformationSelector(SelectorMixin, BaseEstimator):
    """Keep the features that carry most information about the class.

    Parameters
    ----------
    estimator : classifier of this package, optional
        Its fitted parameters give the information. None: `BernoulliNB`.
    n_features : int or float, default 10
        How many to keep: a number, or a share in (0, 1]. All, if there are fewer.
    method : {"posterior_mean", "map", "mle"}
        Which theta is plugged in.

    Attributes
    ----------
    scores_ : array (feature,)
        Mutual information in bits.
    estimator_ : fitted classifier

    Examples
    --------
    >>> X = [[1, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]]
    >>> MutualInformationSelector(n_features=1).fit(X, [1, 1, 0, 0]).get_support()
    array([ True, False, False])
    """

    scores_: Array
    estimator_: GenerativeClassifier

    def __init__(
        self,
        estimator: GenerativeClassifier | None = None,
        *,
        n_features: int | float = 10,
        method: PlugIn = "posterior_mean",
    ) -> None:
        self.estimator = estimator
        self.n_features = n_features
        self.method = method

    def fit(self, X: RowsLike, y: Labels, sample_weight: PerRow = None) -> Self:
        """Fit the classifier and score the features.

        Parameters
        ----------
        X, y, sample_weight
            As in the classifier's ``fit``.
        """
        n = self.n_features
        whole = isinstance(n, int | np.integer) and not isinstance(n, bool)
        if not (n >= 1 if whole else isinstance(n, float) and 0 < n <= 1):
            raise ValueError(f"n_features must be an integer >= 1 or a share in (0, 1], got {n!r}")
        estimator = BernoulliNB(prior="default") if self.estimator is None else self.estimator
        self.estimator_ = clone(estimator).fit(X, y, sample_weight=sample_weight)
        validated(self, X, skip_check_array=True)  # names and number of features
        self.scores_ = mutual_information(self.estimator_, method=self.method).to_numpy()
        return self

    def _get_support_mask(self) -> Array:
        check_is_fitted(self, "scores_")
        total = len(self.scores_)
        keep = self.n_features
        count = max(1, round(keep * total)) if isinstance(keep, float) else min(keep, total)
        mask = np.zeros(total, dtype=bool)
        mask[np.argsort(-self.scores_, kind="stable")[:count]] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        inner = get_tags(BernoulliNB(prior="default") if self.estimator is None else self.estimator)
        tags.input_tags = inner.input_tags
        return tags
