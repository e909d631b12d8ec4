"""MixtureDiscriminant: real features in several clusters per class."""

from collections.abc import Mapping
from typing import Any, Literal

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.arguments import PriorValue, SampledPrior
from bayesgen.estimators.sampled import SampledClassifier
from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
from bayesgen.numerics.special import Array


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
        Of the means and the standard deviations of the clusters (class, component, feature), in
        the unit of the feature: a distribution of PyMC (``pm.Normal.dist(0, 5)``), PreliZ or
        pymc-extras, or a function of (name, dims). None: mu Normal about the column's median, with
        3.2 times its spread about the class medians; log sigma Normal about the log of that
        spread, with standard deviation 1, before the variance of rounding is added: h^2/12, where
        h is the median gap between the values that occur in the column, 0 if no two are equal. Data
        recorded to few digits have many equal values, on which a cluster would shrink to a point.
    covariance : {"full", "diagonal"}
        Of each cluster: with correlations under an LKJ prior, or without.
    component_alpha : float, default 10.0
        Dirichlet concentration of the clusters' weights, in rows. With less, a cluster that is not
        needed may be left without rows, anywhere; with more it is all the more part of another one.
    eta : float, default 2.0
        Of the LKJ prior: 1 is uniform over correlation matrices, more is closer to no correlation.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
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

    def __init__(
        self,
        n_components: Any = 2,
        mu: SampledPrior = None,
        sigma: SampledPrior = None,
        *,
        covariance: Literal["full", "diagonal"] = "full",
        component_alpha: float = 10.0,
        eta: float = 2.0,
        class_alpha: PriorValue = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.mu = mu
        self.sigma = sigma
        self.covariance = covariance
        self.component_alpha = component_alpha
        self.eta = eta
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

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
