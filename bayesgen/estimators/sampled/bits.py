"""HierarchicalBernoulliNB: bits that learn how much the classes share."""

from dataclasses import dataclass
from typing import Any

from bayesgen.encoding.reader import Reader, Rows
from bayesgen.estimators.counts import BernoulliNB, Bits, refuse_no_threshold
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.sampled.hierarchical_bernoulli import HierarchicalBernoulli
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class WholeBits(Bits):
    """Bits that are encoded as a whole: draws share one pass over rows."""

    def encode_as_read(self, rows: Rows) -> Any:
        """The same as `encode`."""
        return rows.encoded


class HierarchicalBernoulliNB(SampledClassifier, BernoulliNB):
    r"""Naive Bayes for bits that learns from the data how much the classes share.

    .. math:: x_j \mid y = c \sim \text{Bernoulli}(\theta_{cj}), \qquad
              \text{logit}\, \theta_{cj} = \mu_j + \tau z_{cj}

    Prefer it to `BernoulliNB` where there are many columns or few rows per class: each class
    borrows the base rate of a column from the others, and columns that do not tell the classes
    apart are shrunk to nothing. With many rows of every class the two agree.

    Parameters
    ----------
    mu, tau : prior objects, optional
        Of the base log-odds of the columns (feature,), and of the spread of the classes about
        them, in log-odds. A distribution of PyMC (``pm.HalfNormal.dist(1)``), PreliZ or
        pymc-extras, or a function of (name, dims). None: mu Normal about the mean log-odds of all
        columns, with variance 1 + their variance; log tau Normal(log 0.5, 1).
    binarize : float or None, default 0.0
        Values above it are 1, the others 0. None: X must hold only 0 and 1.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
    random_state : int, optional

    Notes
    -----
    ``posterior_`` has, beside ``theta``, ``mu`` and ``tau``. tau near 0: the classes are alike;
    large: they share nothing.

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

    def __init__(
        self,
        mu: Any = None,
        tau: Any = None,
        *,
        binarize: float | None = 0.0,
        class_alpha: Any = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.mu = mu
        self.tau = tau
        self.binarize = binarize
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> HierarchicalBernoulli:
        refuse_no_threshold(self.binarize)
        return HierarchicalBernoulli(self.mu, self.tau)

    def _reader(self) -> Reader:
        return WholeBits(type(self).__name__, self._family_type.sparse, binarize=self.binarize)
