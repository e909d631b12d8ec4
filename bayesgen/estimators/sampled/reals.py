"""StudentTNB: real features with outliers."""

from typing import Any

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.sampled.student_t import StudentT
from bayesgen.numerics.special import Array


class StudentTNB(SampledClassifier):
    r"""Naive Bayes for real features with outliers: Student t given the class.

    .. math:: x_j \mid y = c \sim \text{t}(\nu_j, \mu_{cj}, \sigma_{cj}), \qquad
              \nu_j \sim \text{Gamma}(2, 0.1)

    Prefer it to `GaussianNB` where a few cells are far from all others of their class.

    Parameters
    ----------
    mu, sigma, nu : prior objects, optional
        Of the locations and scales (class, feature), in the unit of the feature, and of the
        degrees of freedom (feature,): a distribution of PyMC (``pm.Gamma.dist(2, 0.1)``), PreliZ
        or pymc-extras, or a function of (name, dims). None: mu Normal about the column's median,
        with 3.2 times its spread about the class medians; log sigma Normal about the log of that
        spread, with standard deviation 1, and above the rounding of the column (h/sqrt(12), h the
        median gap between the values that occur, 0 if no two are equal); nu Gamma(2, 0.1).
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
    random_state : int, optional

    References
    ----------
    Juárez and Steel (2010), Model-based clustering of non-Gaussian panel data (prior of nu).

    Examples
    --------
    >>> clf = StudentTNB(draws=500, random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("mu", "sigma", "nu")

    _family_type = StudentT

    def __init__(
        self,
        mu: Any = None,
        sigma: Any = None,
        nu: Any = None,
        *,
        class_alpha: Any = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.mu = mu
        self.sigma = sigma
        self.nu = nu
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> StudentT:
        return StudentT(self.mu, self.sigma, self.nu)
