"""Real features: GaussianNB, LinearDiscriminant, QuadraticDiscriminant."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from bayesgen.encoding.reader import Reader, Rows
from bayesgen.errors import refuse_unknown, warn
from bayesgen.estimators.arguments import PriorValue, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.conjugate.normal_inverse_gamma import NormalInverseGamma
from bayesgen.families.conjugate.normal_inverse_wishart import NormalInverseWishart
from bayesgen.families.contract import ConjugateFamily, Family
from bayesgen.numerics.special import Array

Covariance = Literal["full", "diagonal", "spherical"]


_NO_CLOSED_FORM = (
    "training rows with missing cells have no closed form with a full covariance: drop or "
    "impute the rows, or use covariance='diagonal' or GaussianNB"
)


@dataclass(frozen=True, eq=False)
class Reals(Reader):
    """Columns of real numbers; care for float32 data that have lost their digits."""

    def encode(self, rows: Rows) -> Array:
        """Return (N, D) the numbers themselves."""
        X: Array = rows.X
        self._warn_lost_digits(X)
        return X

    def _warn_lost_digits(self, X: Array) -> None:
        if X.dtype != np.float32 or len(X) < 2:
            return
        head = np.asarray(X[:1000], dtype=np.float64)
        seen = np.isfinite(head)
        n = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, head, 0).sum(axis=0) / n
        sd = np.sqrt(np.where(seen, np.square(head - mean), 0).sum(axis=0) / n)
        coarse = (sd > 0) & (np.finfo(np.float32).eps * np.abs(mean) > 0.01 * sd)
        if coarse.any():
            j = int(coarse.argmax())
            warn(
                f"column {self.columns[j]!r} is float32 with mean {mean[j]:.3g} and "
                f"standard deviation {sd[j]:.3g}: its values have fewer than two correct digits "
                "of their variation; store it as float64, or subtract an offset first",
                UserWarning,
            )


@make_constructor
class GaussianNB(GenerativeClassifier):
    r"""Naive Bayes for real features: Normal given the class, means and variances unknown.

    .. math:: \sigma^2 \sim \text{scaled-inv-}\chi^2(\nu_0, \sigma^2_0), \qquad
              \mu_{cj} \mid \sigma^2 \sim \text{Normal}(\mu_0, \sigma^2/\kappa_0)

    The predictive is a Student t, so three rows per class do not give probabilities of 0 and 1.

    Parameters
    ----------
    mu0 : float or array broadcasting to (class, feature), optional
        Prior mean of the class means, in the unit of the feature. None: pooled mean of the column.
        This argument and the next three may also be a mapping {column: value} of all columns.
    kappa0 : float or array broadcasting to (class, feature), optional
        Weight of mu0, in rows. None: 0.1.
    nu0 : float or array broadcasting to the variances, optional
        Weight of sigma2_0, in rows. None: 3.
    sigma2_0 : float or array broadcasting to the variances, optional
        Prior scale of the variance, in the unit of the feature squared. None: pooled
        within-class variance of the column, with one observation's worth of total variance.
    variance : {"class", "tied", "spherical", "class_spherical"}
        "class": one variance per class and feature. "tied": one per feature, shared by the
        classes. "spherical": one for all. "class_spherical": one per class.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"`` uses the hyper-parameters as stated.
        ``"loo"`` multiplies them by the factors with the largest leave-one-out score of the labels,
        ``"empirical"`` by those with the largest evidence p(X, y). None is ``"loo"`` in `fit` if
        hyper-parameters are not given, else ``"default"`` (see `GenerativeClassifier`).

    Notes
    -----
    The defaults are equivariant under shift and scale of each column (with a spherical variance:
    of all columns together). They come from the experiment in
    ``tests/benchmarks/priors_on_open_sets.py``. nu0 = 3 is the smallest integer for which the prior
    mean of the variance exists. kappa0 = 0.1 lets class means lie about three within-class standard
    deviations from the pooled mean. The within-class variance gives lower log loss than the total.
    A column that does not vary in training does not change the class probabilities.

    References
    ----------
    Gelman et al. (2013), section 3.3; Murphy (2007), Conjugate Bayesian analysis of the Gaussian
    distribution.

    Examples
    --------
    >>> clf = GaussianNB().fit([[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"])
    >>> clf.predict_proba([[2.5]]).round(3)
    array([[0.647, 0.353]])
    """

    _family_type = NormalInverseGamma
    _by_column = ("mu0", "kappa0", "nu0", "sigma2_0")

    mu0: PriorValue = None
    kappa0: PriorValue = None
    nu0: PriorValue = None
    sigma2_0: PriorValue = None
    _: KW_ONLY
    variance: Literal["class", "tied", "spherical", "class_spherical"] = "class"
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _reader(self) -> Reader:
        return Reals(type(self).__name__, self._family_type.sparse)

    def _family(self, reader: Reader, classes: Array) -> NormalInverseGamma:
        return NormalInverseGamma(
            self.mu0, self.kappa0, self.nu0, self.sigma2_0, variance=self.variance
        )


@make_constructor
class _Discriminant(GenerativeClassifier):
    """Shared constructor and choice of family of the two discriminants."""

    _by_column = ("mu0", "psi0")
    _shared: ClassVar[bool]
    _diagonal: ClassVar[Literal["class", "tied"]]
    _spherical: ClassVar[Literal["class_spherical", "spherical"]]

    mu0: PriorValue = None
    kappa0: PriorValue = None
    nu0: PriorValue = None
    psi0: PriorValue = None
    _: KW_ONLY
    covariance: Covariance = "full"
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    @property
    def _family_type(self) -> type[Family]:
        return NormalInverseWishart if self.covariance == "full" else NormalInverseGamma

    def _reader(self) -> Reader:
        why = _NO_CLOSED_FORM if self.covariance == "full" else ""
        return Reals(type(self).__name__, self._family_type.sparse, no_closed_form=why)

    def _family(self, reader: Reader, classes: Array) -> ConjugateFamily:
        refuse_unknown("covariance", self.covariance, get_args(Covariance))
        if self.covariance == "full":
            return NormalInverseWishart(
                self.mu0, self.kappa0, self.nu0, self.psi0, shared=self._shared
            )
        nu = _by_class(self.nu0)
        if self.psi0 is not None and nu is None:
            nu = 3.0
        return NormalInverseGamma(
            self.mu0,
            _by_class(self.kappa0),
            nu,
            None if self.psi0 is None else _diagonal_of(self.psi0) / nu,
            variance=self._diagonal if self.covariance == "diagonal" else self._spherical,
        )


def _by_class(value):
    """Return a 1-D hyper-parameter with one value per class, as a column."""
    return np.asarray(value, dtype=float)[:, None] if np.ndim(value) == 1 else value


def _diagonal_of(psi) -> Array:
    """Return the diagonal of psi0 for a model without correlations."""
    psi = np.asarray(psi, dtype=np.float64)
    if psi.ndim < 2:
        return psi
    diagonal = np.diagonal(psi, axis1=-2, axis2=-1)
    off = psi - diagonal[..., None] * np.eye(psi.shape[-1])
    if np.any(off):
        raise ValueError("psi0 has off-diagonal elements, but the covariance has none")
    return diagonal


class LinearDiscriminant(_Discriminant):
    r"""Gaussian discriminant analysis with one covariance for all classes.

    .. math:: \Sigma \sim \text{InvWishart}(\nu_0, \Psi_0), \qquad
              \mu_c \mid \Sigma \sim \text{Normal}(\mu_0, \Sigma/\kappa_0)

    Parameters
    ----------
    mu0 : float or array broadcasting to (class, feature), optional
        Prior mean of the class means, in the units of the features; or {column: value}, of all
        columns. None: pooled mean.
    kappa0 : float or array (class,), optional
        Weight of mu0, in rows. None: 0.1.
    nu0 : float, optional
        Degrees of freedom, > D - 1. None: D + 2, the smallest integer with a finite prior mean.
    psi0 : float, array (feature,) or (feature, feature), optional
        Scale matrix; a number, a vector or {column: value} is its diagonal. E Sigma =
        psi0/(nu0 - D - 1). None: nu0 times pooled within-class variances and correlations, the
        correlations shrunken towards 0 by how doubtful they are.
    covariance : {"full", "diagonal", "spherical"}
        Diagonal: a variance for each feature; spherical: one for all. Then each variance is
        scaled-inverse-chi2(nu0, psi0/nu0), the inverse Wishart of one dimension, with nu0 = 3 by
        default.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"`` uses the hyper-parameters as stated.
        ``"loo"`` multiplies them by the factors with the largest leave-one-out score of the labels,
        ``"empirical"`` by those with the largest evidence p(X, y). None is ``"loo"`` in `fit` if
        hyper-parameters are not given, else ``"default"`` (see `GenerativeClassifier`).

    Notes
    -----
    Plug-in rules are linear (`linear_form`); the posterior predictive is a ratio of multivariate
    Student t densities, its boundaries curved unless the classes have equal counts and weights.
    Fits any number of rows, n <= D included. Missing cells are marginalised in prediction; in
    training they have no closed form with a full covariance and are refused. Columns that are
    constant in training are left out, under the default psi0.

    References
    ----------
    Geisser (1964); Murphy (2012), section 4.2.

    Examples
    --------
    >>> X = [[1.0, 2.0], [2.0, 3.5], [1.5, 2.0], [6.0, 1.0], [7.0, 2.5], [6.5, 1.5]]
    >>> clf = LinearDiscriminant().fit(X, ["a"] * 3 + ["b"] * 3)
    >>> clf.predict([[2.0, 2.0]])
    array(['a'], dtype='<U1')
    >>> w, w0 = clf.linear_form(method="posterior_mean")
    >>> w.round(2)
    array([ 7.46, -6.69])
    """

    _short_name = "lda"  # on the command line

    _shared = True
    _diagonal = "tied"
    _spherical = "spherical"


class QuadraticDiscriminant(_Discriminant):
    r"""Gaussian discriminant analysis with a covariance for each class.

    .. math:: \Sigma_c \sim \text{InvWishart}(\nu_0, \Psi_0), \qquad
              \mu_c \mid \Sigma_c \sim \text{Normal}(\mu_0, \Sigma_c/\kappa_0)

    Parameters
    ----------
    mu0 : float or array broadcasting to (class, feature), optional
        Prior mean of the class means, in the units of the features; or {column: value}, of all
        columns. None: pooled mean.
    kappa0 : float or array (class,), optional
        Weight of mu0, in rows. None: 0.1.
    nu0 : float or array (class,), optional
        Degrees of freedom, > D - 1. None: D + 2, the smallest integer with a finite prior mean.
    psi0 : float, array (feature,), (feature, feature) or (class, feature, feature), optional
        Scale matrix; a number, a vector or {column: value} is its diagonal. E Sigma =
        psi0/(nu0 - D - 1). None: nu0 times pooled within-class variances and correlations, the
        correlations shrunken towards 0 by how doubtful they are; ``prior="loo"`` may choose the
        standard deviations of each class, no correlations, or those of the pooled scatter, which
        makes psi0 an empirical choice.
    covariance : {"full", "diagonal", "spherical"}
        Diagonal: a variance for each class and feature (`GaussianNB`); spherical: one per class.
        Then each variance is scaled-inverse-chi2(nu0, psi0/nu0), with nu0 = 3 by default.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"`` uses the hyper-parameters as stated.
        ``"loo"`` multiplies them by the factors with the largest leave-one-out score of the labels,
        ``"empirical"`` by those with the largest evidence p(X, y). None is ``"loo"`` in `fit` if
        hyper-parameters are not given, else ``"default"`` (see `GenerativeClassifier`).

    Notes
    -----
    Fits any number of rows, n_c <= D and a class without rows included: where there are few, the
    Student t has few degrees of freedom and heavy tails. Missing cells and constant columns as in
    `LinearDiscriminant`.

    References
    ----------
    Geisser (1964); Murphy (2012), section 4.2.

    Examples
    --------
    >>> X = [[1.0, 2.0], [2.0, 3.5], [1.5, 2.0], [6.0, 1.0], [7.0, 2.5], [6.5, 1.5]]
    >>> clf = QuadraticDiscriminant().fit(X, ["a"] * 3 + ["b"] * 3)
    >>> clf.predict_proba([[4.0, 2.0]]).round(2)
    array([[0.44, 0.56]])
    """

    _short_name = "qda"  # on the command line

    _shared = False
    _diagonal = "class"
    _spherical = "class_spherical"
