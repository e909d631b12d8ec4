"""The scikit-learn interface of every generative classifier: read once, fit, delegate.

No mathematics lives here. `Estimator` says what a kind of estimator chooses. On it rest, side by
side, what is said of new rows (`predicting`, `uncertainty`, `explaining`), of training rows
(`leave_one_out`) and of the one against the other (`typicality`) and, one on the other, `learning`
from rows, the `posterior` as others read it, and `saving`.
"""

from typing import Any

from bayesgen.estimators.estimator import Align
from bayesgen.estimators.explaining import Explaining
from bayesgen.estimators.predicting import LinearForm, Predicting
from bayesgen.estimators.saving import Saving
from bayesgen.estimators.typicality import Typicality
from bayesgen.estimators.uncertainty import Uncertainty
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.contract import Family

__all__ = ["Align", "GenerativeClassifier", "LinearForm"]


class GenerativeClassifier(Predicting, Uncertainty, Typicality, Explaining, Saving):
    """Classifier from any conjugate family, the user's own included.

    Parameters
    ----------
    family : ConjugateFamily, optional
        An unresolved prior, e.g. ``NormalInverseGamma(variance="tied")``. None: Normal features
        with a variance per class, as `GaussianNB`.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows; in the order of ``classes_``.
    prior : {"default", "empirical"}
        ``"empirical"`` rescales the family's hyper-parameters to the largest evidence.

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
