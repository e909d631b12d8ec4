"""The label given the features, nothing said of the features: BayesianLogisticRegression."""

from typing import Any

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.sampled.logistic_regression import Features, LogisticRegression
from bayesgen.numerics.special import Array


class BayesianLogisticRegression(SampledClassifier):
    r"""Logistic (two classes) or softmax regression: p(y | x) alone, its coefficients by NUTS.

    .. math:: p(y = c \mid x) \propto \exp(b_c + w_c \cdot z + z^T Q_c z), \qquad
              z_j = (x_j - m_j)/s_j

    The discriminative counterpart of `LinearDiscriminant` (``features="linear"``, Q = 0) and of
    `QuadraticDiscriminant` (``features="quadratic"``): class probabilities of the same form,
    without a density of x. Prefer it with many rows, or where x is far from Normal in every class.
    With few rows the generative ones are usually better, and they alone take missing cells, use
    rows without a label, say how odd a row is, and make new ones.

    Parameters
    ----------
    features : {"linear", "quadratic"}
        The features themselves, or also their squares and products.
    coef_scale : float, default 2.5
        Prior standard deviation of w_aj - w_bj: in log-odds of class a against b, per standard
        deviation of the feature. Half of it for squares and products.
    intercept_scale : float, default 5.0
        Of b_a - b_b, the log-odds at the mean of all features.
    coef, intercept : prior objects, optional
        Of w (class, feature) and b (class,): a distribution of PyMC
        (``pm.Laplace.dist(0, 1)``), PreliZ or pymc-extras, or a function of (name, dims); they
        replace the scales. None: Normal about 0, with sum 0 over the classes.
    draws, tune, chains : int
        Of NUTS.
    random_state : int, optional

    Notes
    -----
    ``posterior_`` has ``intercept``, ``coef`` and ``quadratic`` (the matrices Q_c) of the
    standardised features; ``constant_data`` has m and s as ``prior_location`` and
    ``prior_scale``. What asks for a density of x is refused: `score_samples`, `simulate`,
    `predict_joint_log_proba`, and ``class_prior=``. `explain` shows contributions relative to the
    mean of each feature. Rows without a label are left out.

    References
    ----------
    Bishop (2006), section 4.3; Ng and Jordan (2001), On discriminative vs. generative
    classifiers; Gelman et al. (2008), A weakly informative default prior (Cauchy there).

    Examples
    --------
    >>> clf = BayesianLogisticRegression(features="quadratic", random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("coef", "intercept")
    class_alpha = 1.0  # there are no class weights

    _family_type = LogisticRegression

    def __init__(
        self,
        features: Features = "linear",
        coef_scale: float = 2.5,
        intercept_scale: float = 5.0,
        coef: Any = None,
        intercept: Any = None,
        *,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.coef_scale = coef_scale
        self.intercept_scale = intercept_scale
        self.coef = coef
        self.intercept = intercept
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> LogisticRegression:
        return LogisticRegression(
            self.coef, self.intercept, self.features, self.coef_scale, self.intercept_scale
        )

    def _reader(self) -> Reader:
        return Reader(type(self).__name__, self._family_type.sparse, LogisticRegression.missing)
