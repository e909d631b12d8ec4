"""Classifiers without a closed form: NUTS fits them, and they are used like all others."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, Literal

import numpy as np

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.arguments import PriorValue, SampledPrior, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.estimators.counts import BitColumns, CountColumns, refuse_no_threshold
from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
from bayesgen.families.sampled.logistic_regression import Features, LogisticRegression
from bayesgen.families.sampled.negative_binomial import NegativeBinomial
from bayesgen.families.sampled.student_t import StudentT
from bayesgen.numerics.special import Array


@make_constructor
class SampledClassifier(GenerativeClassifier):
    """Classifiers that are fitted by NUTS."""

    _: KW_ONLY
    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    random_state: int | None = None


@make_constructor
class StudentTNB(SampledClassifier):
    r"""Naive Bayes for real features with outliers: Student t given the class.

    .. math:: x_j \mid y = c \sim \text{t}(\nu_j, \mu_{cj}, \sigma_{cj}), \qquad
              \nu_j \sim \text{Gamma}(2, 0.1)

    Prefer it to `GaussianNB` where a few cells are far from all others of their class.

    Parameters
    ----------
    mu, sigma, nu : prior objects, optional
        Priors of the locations and scales (class, feature), in the unit of the feature, and of the
        degrees of freedom (feature,): a distribution of PyMC (``pm.Gamma.dist(2, 0.1)``), PreliZ
        or pymc-extras, or a function of (name, dims). None: mu Normal about the column's median,
        with 3.2 times its spread about the class medians; log sigma Normal about the log of that
        spread, with standard deviation 1, and above the rounding of the column (h/sqrt(12), h the
        median gap between the values that occur, 0 if no two are equal); nu Gamma(2, 0.1).
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Options of NUTS.
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

    mu: SampledPrior = None
    sigma: SampledPrior = None
    nu: SampledPrior = None
    _: KW_ONLY
    class_alpha: PriorValue = 1.0

    def _family(self, reader: Reader, classes: Array) -> StudentT:
        return StudentT(self.mu, self.sigma, self.nu)


@make_constructor
class NegativeBinomialNB(SampledClassifier, CountColumns):
    r"""Naive Bayes for counts that come in bursts: negative binomial given the class.

    A row of exposure w has counts of mean :math:`w\mu_{cj}` and variance
    :math:`w\mu_{cj}(1 + w\delta_j)`: delta = 0 is Poisson.

    .. math:: \log \mu_{cj} \sim \text{Normal}(\log \text{common}_j, \text{spread}^2), \qquad
              \text{spread} \sim \text{HalfNormal}(1)

    Prefer it to `PoissonNB` where the counts of a class vary more than their mean: words that
    are repeated once they have been used, visits, reads of a gene. There `PoissonNB` takes every
    repetition for new evidence and is far too sure. It also learns how far apart the classes'
    rates are, and shrinks those of rare features to a common rate.

    Parameters
    ----------
    mu, delta : prior objects, optional
        Priors of the rates (class, feature) and of the non-Poissonness (feature,), both in events
        per unit of exposure: a distribution of PyMC
        (``pm.Gamma.dist(2, 0.1)``), PreliZ or pymc-extras, or a function of (name, dims). None:
        mu log-Normal about a common rate, itself log-Normal about the rate of the column in all
        rows with standard deviation 1; delta Exponential with mean 1/(mean exposure) + that rate,
        with which a row's own rate varies as much as it is large.
    spread : prior object, optional
        Prior of the standard deviation of the classes' log rates about the common one. None:
        HalfNormal(1).
    exposure : int or str, optional
        Position or name of the column that holds each row's exposure: the length of a document,
        a time, an area; > 0, in any unit. It is given, and says nothing of the class; in
        ``posterior_`` its own mu and delta are draws of their priors, which nothing looks at.
        None: 1.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Options of NUTS.
    random_state : int, optional

    Notes
    -----
    A gradient costs one logarithm for each class, feature and count that occur, and one for each
    feature and distinct exposure: few distinct exposures (whole minutes, words) are fast.

    References
    ----------
    Mosteller and Wallace (1964), Inference and Disputed Authorship: The Federalist, chapters 3, 4.

    Examples
    --------
    >>> clf = NegativeBinomialNB(exposure="words", random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("mu", "delta", "spread")
    _target_accept = 0.95  # with few rows the spread of the rates is a funnel

    _family_type = NegativeBinomial

    mu: SampledPrior = None
    delta: SampledPrior = None
    spread: SampledPrior = None
    _: KW_ONLY
    exposure: int | str | None = None
    class_alpha: PriorValue = 1.0

    def _family(self, reader: Reader, classes: Array) -> NegativeBinomial:
        column = None if self.exposure is None else self._exposure_column(reader.columns)
        return NegativeBinomial(self.mu, self.delta, self.spread, exposure=column)

    def _exposure_column(self, names: list[Any]) -> Array:
        """Return (D,) 1 at the exposure's column."""
        j: Any = self.exposure
        if isinstance(j, str):
            if j not in names:
                raise ValueError(f"exposure={j!r} is not a column of X; those are {names}")
            j = names.index(j)
        if not -len(names) <= j < len(names):
            raise ValueError(f"exposure={j!r}, but X has {len(names)} columns")
        return np.eye(len(names))[j]


@make_constructor
class HierarchicalBernoulliNB(SampledClassifier, BitColumns):
    r"""Naive Bayes for bits that learns from the data how much the classes share.

    .. math:: x_j \mid y = c \sim \text{Bernoulli}(\theta_{cj}), \qquad
              \text{logit}\, \theta_{cj} = \mu_j + \tau z_{cj}

    Prefer it to `BernoulliNB` where there are many columns or few rows per class: each class
    borrows the base rate of a column from the others, and columns that do not tell the classes
    apart are shrunk to nothing. With many rows of every class the two agree.

    Parameters
    ----------
    mu, tau : prior objects, optional
        Priors of the base log-odds of the columns (feature,), and of the spread of the classes
        about them, in log-odds: a distribution of PyMC (``pm.HalfNormal.dist(1)``), PreliZ or
        pymc-extras, or a function of (name, dims). None: mu Normal about the mean log-odds of all
        columns, with variance 1 + their variance; log tau Normal(log 0.5, 1).
    binarize : float or None, default 0.0
        Values above it are 1, the others 0. None: X must hold only 0 and 1.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Options of NUTS.
    random_state : int, optional

    Notes
    -----
    ``posterior_`` has ``theta``, ``mu`` and ``tau``. With tau near 0 the classes are alike; with a
    large tau they share nothing.

    References
    ----------
    Gelman et al., Bayesian Data Analysis (2013), section 5.4.

    Examples
    --------
    >>> clf = HierarchicalBernoulliNB(draws=500, random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("mu", "tau")
    _target_accept = 0.9  # with few rows, far out in the tail of tau

    _family_type = HierarchicalBernoulli

    mu: SampledPrior = None
    tau: SampledPrior = None
    _: KW_ONLY
    binarize: float | None = 0.0
    class_alpha: PriorValue = 1.0

    def _family(self, reader: Reader, classes: Array) -> HierarchicalBernoulli:
        refuse_no_threshold(self.binarize)
        return HierarchicalBernoulli(self.mu, self.tau)


@make_constructor
class BayesianLogisticRegression(SampledClassifier):
    r"""Logistic (two classes) or softmax regression: p(y | x) alone, its coefficients by NUTS.

    .. math:: p(y = c \mid x) \propto \exp(b_c + w_c \cdot z + z^T Q_c z), \qquad
              z_j = (x_j - m_j)/s_j

    The discriminative counterpart of `LinearDiscriminant` (``features="linear"``, Q = 0) and of
    `QuadraticDiscriminant` (``features="quadratic"``): class probabilities of the same form,
    without a density of x. Prefer it with many rows, or where x is far from Normal in every class.
    With few rows the generative ones are usually better, and they alone accept missing cells, use
    rows without a label, compute the typicality of a row, and simulate rows.

    Parameters
    ----------
    features : {"linear", "quadratic"}
        The features themselves, or also their squares and products.
    coef_scale : float, default 2.5
        Prior standard deviation of w_aj - w_bj: in log-odds of class a against b, per standard
        deviation of the feature. Half of it for squares and products.
    intercept_scale : float, default 5.0
        Prior scale of b_a - b_b, the log-odds at the mean of all features.
    coef, intercept : prior objects, optional
        Priors of w (class, feature) and b (class,): a distribution of PyMC
        (``pm.Laplace.dist(0, 1)``), PreliZ or pymc-extras, or a function of (name, dims); they
        replace the scales. None: Normal about 0, with sum 0 over the classes.
    draws, tune, chains : int
        Options of NUTS.
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

    features: Features = "linear"
    coef_scale: float = 2.5
    intercept_scale: float = 5.0
    coef: SampledPrior = None
    intercept: SampledPrior = None

    def _family(self, reader: Reader, classes: Array) -> LogisticRegression:
        return LogisticRegression(
            self.coef, self.intercept, self.features, self.coef_scale, self.intercept_scale
        )

    def _reader(self) -> Reader:
        return Reader(type(self).__name__, self._family_type.sparse, LogisticRegression.missing)


@make_constructor
class MixtureDiscriminant(SampledClassifier):
    r"""Classes that consist of several Gaussian clusters.

    .. math:: p(x \mid y = c) = \sum_{k=1}^{K_c} w_{ck}\,
              \text{Normal}(x \mid \mu_{ck}, \Sigma_{ck})

    Prefer it to `QuadraticDiscriminant` where a class has several kinds of members: its density
    then has several modes, or a shape that no ellipse has.

    Parameters
    ----------
    n_components : int, {label: int} or array (class,), default 2
        Clusters of every class, or of each.
    mu, sigma : prior objects, optional
        Priors of the means and standard deviations of the clusters (class, component, feature), in
        the unit of the feature: a distribution of PyMC (``pm.Normal.dist(0, 5)``), PreliZ or
        pymc-extras, or a function of (name, dims). None: mu Normal about the column's median, with
        3.2 times its spread about the class medians; log sigma Normal about the log of that
        spread, with standard deviation 1, before the variance of rounding is added: h^2/12, where
        h is the median gap between the values that occur in the column, 0 if no two are equal. Data
        recorded to few digits have many equal values, on which a cluster would shrink to a point.
    covariance : {"full", "diagonal"}
        Covariance of each cluster: with correlations under an LKJ prior, or without.
    component_alpha : float, default 10.0
        Dirichlet concentration of the clusters' weights, in rows. With a small value, a cluster
        that is not needed may have no rows and lie anywhere. With a large value it overlaps another
        cluster.
    eta : float, default 2.0
        Shape of the LKJ prior: 1 is uniform over correlation matrices, and larger values favour
        small correlations.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Options of NUTS.
    random_state : int, optional

    Notes
    -----
    Chains start at the clusters that k-means finds. All start near one mode; another may
    be as good. Clusters have no order, and a chain may exchange them. R-hat is therefore that of
    ``log_density``, the densities of some training rows; do not read means of single clusters in
    ``posterior_``. A class with fewer clusters than another has entries of weight 0,
    which follow the prior.

    A class that is given more clusters than it has, or few rows for the covariances of many
    columns, can be divided in many ways, and chains seldom go from one to the other: a warning
    says that they disagree. Fewer clusters or ``covariance="diagonal"`` help; more draws take long.

    References
    ----------
    Hastie and Tibshirani (1996), Discriminant analysis by Gaussian mixtures; Stephens (2000),
    Dealing with label switching in mixture models.

    Examples
    --------
    >>> clf = MixtureDiscriminant({"a": 2, "b": 1}, draws=500, random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("mu", "sigma")
    _target_accept = 0.99  # clusters of few rows, in many columns, make funnels

    _family_type = GaussianMixture

    n_components: Any = 2
    mu: SampledPrior = None
    sigma: SampledPrior = None
    _: KW_ONLY
    covariance: Literal["full", "diagonal"] = "full"
    component_alpha: float = 10.0
    eta: float = 2.0
    class_alpha: PriorValue = 1.0

    def _family(self, reader: Reader, classes: Array) -> GaussianMixture:
        n_components: Any = self.n_components
        if isinstance(n_components, Mapping):
            labels = classes.tolist()
            absent = [label for label in labels if label not in n_components]
            unknown = [label for label in n_components if label not in labels]
            if absent or unknown:
                raise ValueError(
                    f"n_components must name every class and no other: {absent} are missing, "
                    f"{unknown} are no classes"
                )
            n_components = [n_components[label] for label in labels]
        return GaussianMixture(
            self.mu,
            self.sigma,
            n_components=n_components,
            component_alpha=self.component_alpha,
            eta=self.eta,
            covariance=self.covariance,
        )
