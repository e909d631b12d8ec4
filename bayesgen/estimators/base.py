"""The scikit-learn interface of every generative classifier: read once, fit, delegate.

No mathematics lives here. `Estimator` says what a kind of estimator chooses. On it rest, side by
side, what is said of new rows (`predicting`, `uncertainty`, `explaining`), of training rows
(`leave_one_out`) and of the one against the other (`typicality`) and, one on the other, `learning`
from rows, the `posterior` as others read it, and `saving`; `summary` says what there is.
"""

from typing import Any

from bayesgen.estimators.estimator import Align
from bayesgen.estimators.plug_ins import PlugIns
from bayesgen.estimators.predicting import LinearForm
from bayesgen.estimators.saving import Saving
from bayesgen.estimators.summary import Summarising
from bayesgen.estimators.typicality import Typicality
from bayesgen.estimators.uncertainty import Uncertainty
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.contract import Family

__all__ = ["Align", "GenerativeClassifier", "LinearForm"]


class GenerativeClassifier(PlugIns, Uncertainty, Typicality, Summarising, Saving):
    """Classifier from any conjugate family, the user's own included.

    Parameters
    ----------
    family : ConjugateFamily, optional
        An unresolved prior, e.g. ``NormalInverseGamma(variance="tied")``. None: Normal features
        with a variance per class, as `GaussianNB`.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows; in the order of ``classes_``.
    prior : {"default", "empirical", "loo"}
        ``"empirical"`` multiplies the family's hyper-parameters by factors between 1/100 and 100
        for the largest evidence p(X, y), ``"loo"`` by factors between 1/256 and 256 for the largest
        exact leave-one-out score of the labels (Notes).

    Attributes
    ----------
    classes_ : array (class,)
        Labels, sorted.
    prior_, model_ : ClassModel
        Prior and posterior: hyper-parameters as arrays.
    stats_ : ClassStats
        Sufficient statistics of all rows seen.
    log_evidence_ : float
        log p(X, y), everything integrated out.
    posterior_ : xarray.DataTree
        Posterior draws and hyper-parameters.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X had column names.
    class_count_, class_log_prior_ : array (class,)
        As in scikit-learn, here and below, after a fit in closed form: weights of the rows; logs of
        the posterior means of the class weights.
    coef_, intercept_ : array (1, feature) and (1,) of two classes, else (class, feature), (class,)
        Where a rule is linear: that of the posterior predictive (bits), else of the posterior
        means. ``linear_form(method)`` has the others.
    theta_, var_, means_, covariance_, feature_log_prob_ : array
        Where scikit-learn's class has them: posterior means, of probabilities their logs.
        ``estimates(method)`` has them and others with names.

    Notes
    -----
    ``prior="empirical"`` maximises p(X, y), in which the features outweigh the labels: it is no
    guide to classification. Where rows are few and columns many it may classify worse than the
    default (the quadratic rule up to 8 times its log loss), and better where the model is right.

    ``prior="loo"`` maximises the sum over rows of log p(y_i | x_i, the other rows), less
    (log f - log 4)^2 / (2 log^2 5) for each factor f, a prior of its logarithm: models leave out
    dependence, and their probabilities are too extreme under the default where the score cannot
    show it. Leave-one-out is exact (`loo`), at most 40 times, of at most 4000 rows. With a full
    covariance it also tries variances without correlations; a factor of nu0 then leaves nu0 / psi0
    as it is. The score is never below the default's, whatever the order of the rows, and after
    choosing optimistic by a little. Most is gained where the model is wrong, as naive Bayes is with
    dependent columns. It needs the rows: `partial_fit`, `merge`, `forget`, `bayesgen.fit_stream`
    and `bayesgen.fit_dask` refuse it. What both reach on open data:
    ``tests/benchmarks/priors_on_open_sets.py --chosen``.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
    >>> X, y = np.array([[1.0], [1.4], [4.0], [4.4]]), ["a", "a", "b", "b"]
    >>> clf = GenerativeClassifier(NormalInverseGamma(variance="tied")).fit(X, y)
    >>> clf.predict([[1.1], [4.2]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self, family: Any = None, *, class_alpha: Any = 1.0, prior: str = "default"
    ) -> None:
        self.family = family
        self.class_alpha = class_alpha
        self.prior = prior

    @property
    def _family_type(self) -> type[Family]:  # type: ignore[override]
        if self.family is None:
            return NormalInverseGamma
        if not isinstance(self.family, Family):
            raise TypeError(f"family must be an instance of a Family, got {self.family!r}")
        return type(self.family)

    def _make_family(self) -> Family:
        family: Family = NormalInverseGamma() if self.family is None else self.family
        return family
