"""Real features in several clusters per class: MixtureDiscriminant, and how many clusters."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesgen.encoding.labelled import weights
from bayesgen.encoding.labels import is_labelled, labels_and_mask
from bayesgen.encoding.reader import Reader
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.names import CLASS, DRAW
from bayesgen.families.sampled.gaussian_mixture import GaussianMixture
from bayesgen.inference.nuts import LARGEST_R_HAT, SamplingWarning
from bayesgen.numerics.special import Array
from bayesgen.posterior.drawn import MonteCarloWarning
from bayesgen.posterior.fitted import Fitted

if TYPE_CHECKING:
    import xarray as xr


class MixtureDiscriminant(SampledClassifier):
    r"""Classes that consist of several Gaussian clusters.

    .. math:: p(x \mid y = c) = \sum_{k=1}^{K_c} w_{ck}\,
              \text{Normal}(x \mid \mu_{ck}, \Sigma_{ck})

    Prefer it to `QuadraticDiscriminant` where a class has several kinds of members: its density
    then has several modes, or a shape that no ellipse has.

    Parameters
    ----------
    n_components : int, {label: int}, array (class,) or "cv", default 2
        Clusters of every class, or of each. ``"cv"``: as many, from 1 to 3, as cross-validation
        asks for (`choose_n_components`), which samples 15 times.
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

    Attributes
    ----------
    component_choice_ : xarray.Dataset
        With ``"cv"``: what `choose_n_components` returned.

    Notes
    -----
    Chains start at the clusters that k-means finds, and the clusters of every draw are renumbered
    afterwards, the heaviest of a class first, so that means and R-hat of ``posterior_`` speak of
    clusters. All chains start near one mode: that no other is as good is not shown. A class with
    fewer clusters than another has entries of weight 0 in ``posterior_``, which follow the prior.

    A class that is given more clusters than it has, or few rows for the covariances of many
    columns, can be divided in many ways, and chains seldom go from one to the other: R-hat of the
    clusters stays above 1.01, and a warning names the class. ``n_components="cv"`` or
    ``covariance="diagonal"`` help; more draws take long.

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

    component_choice_: "xr.Dataset"

    _family_type = GaussianMixture

    def __init__(
        self,
        n_components: Any = 2,
        mu: Any = None,
        sigma: Any = None,
        *,
        covariance: Literal["full", "diagonal"] = "full",
        component_alpha: float = 10.0,
        eta: float = 2.0,
        class_alpha: Any = 1.0,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Self:
        """As in `GenerativeClassifier`; with ``n_components="cv"`` the choice comes first.

        Parameters
        ----------
        X, y, sample_weight, **options
            As there. Rows without a label or of weight 0 have no part in the choice, and other
            weights none.
        """
        self.__dict__.pop("component_choice_", None)
        if isinstance(self.n_components, str):
            if self.n_components != "cv":
                raise ValueError(
                    f"n_components must be an integer, {{label: integer}}, an array or 'cv', got "
                    f"{self.n_components!r}"
                )
            values, masked = labels_and_mask(y)
            use = is_labelled(values, masked)
            if sample_weight is not None:
                use = use & (weights(sample_weight, len(values)) > 0)
            rows = np.asarray(X, dtype=np.float64)[use]
            labels = np.array(values[use].tolist())
            self.component_choice_ = choose_n_components(rows, labels, estimator=self)
        return super().fit(X, y, sample_weight, **options)

    def _why_apart(self, fitted: Fitted, draws: Any) -> str:
        """Which classes' clusters differ from chain to chain."""
        if draws.sizes[DRAW] < 4:
            return ""
        import arviz as az

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the weight of one cluster is constant
            tables = az.rhat(draws[["weight", "mu", "sigma"]])
        family: Any = fitted.family
        real = family.concentration > 0  # (C, K), elsewhere padding
        worst = np.zeros(len(real))
        for name in ("weight", "mu", "sigma"):
            by_cluster = tables[name].values.reshape(*real.shape, -1)
            by_cluster = np.where(real[..., None], np.nan_to_num(by_cluster), 0.0)
            worst = np.maximum(worst, by_cluster.max(axis=(1, 2)))
        several = [
            f"{label!r} ({r:.3g})"
            for label, r, k in zip(fitted.classes.tolist(), worst, real.sum(axis=1), strict=True)
            if k > 1 and r > LARGEST_R_HAT
        ]
        if not several:
            return ""
        return (
            f"there is more than one way to divide class {', '.join(several)} into so many "
            "clusters, and the chains do not go about equally in all of them. Class probabilities "
            "are averages over the ways that were found; means of single clusters say little. Try "
            "fewer clusters there (n_components={label: number}, or 'cv'), or more draws"
        )

    def _family(self, reader: Reader, classes: Array) -> GaussianMixture:
        n_components: Any = self.n_components
        if "component_choice_" in self.__dict__:
            n_components = self.component_choice_["chosen"].values.tolist()
        elif isinstance(n_components, Mapping):
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


def choose_n_components(
    X: Any,
    y: Any,
    n_components: Sequence[int] = (1, 2, 3),
    *,
    folds: int = 5,
    estimator: MixtureDiscriminant | None = None,
    **sample_options: Any,
) -> "xr.Dataset":
    """How many clusters each class needs, by cross-validated predictive densities.

    The classes share no parameter, so that each has its own choice. Of the numbers whose held-out
    log density is within one standard error of the best, the smallest is chosen.

    Parameters
    ----------
    X : (N, D)
    y : (N,)
    n_components : sequence of int
        To choose from.
    folds : int, >= 2
        Each class must have as many rows. There is a fit for every fold and number, but one
        compilation for every number: rows held out are rows with no cell observed.
    estimator : MixtureDiscriminant, optional
        Its priors, covariance, `random_state` and, unless given here, `draws` are used, but for
        `chains`, which is 2.
    **sample_options
        As in ``fit``: ``draws``, ``tune``, ``chains``, ``random_state``, ``progressbar``.

    Returns
    -------
    xarray.Dataset
        ``elpd`` (class, n_components): sum of log p(x | y, other folds) of the rows of the class;
        ``se``: its standard error; ``difference``, ``difference_se``: to the best of the class;
        ``chosen`` (class,).

    Notes
    -----
    Warnings of the sampler in a fold are not shown: with more clusters than there are the posterior
    has many modes, and chains that disagree are expected.
    """
    import xarray as xr

    X, y = np.array(X, dtype=np.float64), np.asarray(y)
    numbers = [int(k) for k in n_components]
    labels, codes, count = np.unique(y, return_inverse=True, return_counts=True)
    if folds < 2 or count.min() < folds:
        raise ValueError(
            f"folds must be at least 2 and at most the rows of the smallest class "
            f"({int(count.min())}), got {folds}"
        )
    model = clone(MixtureDiscriminant() if estimator is None else estimator)
    seed = 0 if model.random_state is None else model.random_state
    options = {"chains": 2, "progressbar": False, "random_state": seed} | sample_options
    log_p = np.empty((len(numbers), len(X)))
    for k, number in enumerate(numbers):
        model.set_params(n_components=number)
        split = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for _, held_out in split.split(X, codes):
            known = X.copy()
            known[held_out] = np.nan
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SamplingWarning)
                warnings.simplefilter("ignore", MonteCarloWarning)
                model.fit(known, y, **options)
                flat = dict.fromkeys(labels.tolist(), 1 / len(labels))
                joint = model.predict_joint_log_proba(X[held_out], class_prior=flat)
            own = joint[np.arange(len(held_out)), codes[held_out]]
            log_p[k, held_out] = own + np.log(len(labels))
    shape = (len(labels), len(numbers))
    elpd, se, difference, difference_se = (np.zeros(shape) for _ in range(4))
    chosen = np.empty(len(labels), dtype=np.int64)
    for c, n in enumerate(count):
        own = log_p[:, codes == c]
        elpd[c], se[c] = own.sum(axis=1), np.sqrt(n) * own.std(axis=1, ddof=1)
        gap = own - own[elpd[c].argmax()]
        difference[c], difference_se[c] = gap.sum(axis=1), np.sqrt(n) * gap.std(axis=1, ddof=1)
        near = np.flatnonzero(difference[c] >= -difference_se[c])
        chosen[c] = min(numbers[k] for k in near)
    table = (CLASS, "n_components")
    return xr.Dataset(
        {
            "elpd": (table, elpd),
            "se": (table, se),
            "difference": (table, difference),
            "difference_se": (table, difference_se),
            "chosen": (CLASS, chosen),
        },
        {CLASS: labels, "n_components": numbers},
    )
