"""Real features, fitted by NUTS: LKJDiscriminant, StudentTNB."""

from typing import Any, Literal

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.sampled.lkj_normal import LKJNormal
from bayesgen.families.sampled.student_t import StudentT
from bayesgen.numerics.special import Array


class LKJDiscriminant(SampledClassifier):
    r"""Gaussian discriminant analysis with separate priors for means, scales and correlations.

    .. math:: x \mid y = c \sim \text{Normal}(\mu_c,
              \text{diag}(\sigma_c)\, \Omega_c\, \text{diag}(\sigma_c)), \qquad
              \Omega_c \sim \text{LKJ}(\eta)

    Prefer it to `QuadraticDiscriminant` and `LinearDiscriminant` where classes or columns differ
    much in scale and rows are few, or where something is known of means, scales or correlations
    that one inverse Wishart cannot say.

    Parameters
    ----------
    mu, sigma : prior objects, optional
        Of the means (class, feature) and the standard deviations (class, feature), (feature,) with
        one covariance for all, in the unit of the feature: a distribution of PyMC
        (``pm.LogNormal.dist(0, 1)``), PreliZ or pymc-extras, or a function of (name, dims). None:
        mu Normal about the column's median, with 3.2 times its spread about the class medians;
        sigma half-Normal with 2.5 times that spread.
    eta : float, default 2.0
        Of the LKJ prior: 1 is uniform over correlation matrices, more is closer to no correlation.
    covariance : {"class", "shared"}
        A covariance for each class (quadratic), or one for all (linear).
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
    random_state : int, optional

    Notes
    -----
    Missing cells are integrated out, in training too. The cost of a step does not depend on the
    number of rows. Under the half-Normal prior a column that does not vary within a class, or that
    is a linear function of others, has no proper posterior and is refused.

    References
    ----------
    Barnard, McCulloch and Meng (2000), Modeling covariance matrices in terms of standard
    deviations and correlations; Lewandowski, Kurowicka and Joe (2009), section 2.4.

    Examples
    --------
    >>> clf = LKJDiscriminant(eta=4.0, draws=500, random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("mu", "sigma")
    _target_accept = 0.95  # with few rows scales and strong correlations make a funnel

    _family_type = LKJNormal

    def __init__(
        self,
        mu: Any = None,
        sigma: Any = None,
        *,
        eta: float = 2.0,
        covariance: Literal["class", "shared"] = "class",
        class_alpha: Any = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.mu = mu
        self.sigma = sigma
        self.eta = eta
        self.covariance = covariance
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> LKJNormal:
        if self.covariance not in ("class", "shared"):
            raise ValueError(f"covariance must be 'class' or 'shared', got {self.covariance!r}")
        shared = self.covariance == "shared"
        return LKJNormal(self.mu, self.sigma, eta=self.eta, shared=shared)


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
