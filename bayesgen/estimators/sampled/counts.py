"""Counts and documents, fitted by NUTS: documents, counts, correlated words."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.counts import CountColumns, Counts
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.contract import Family
from bayesgen.families.sampled.dirichlet_compound import DirichletCompound
from bayesgen.families.sampled.logistic_normal import FACTOR, LogisticNormal
from bayesgen.families.sampled.negative_binomial import NegativeBinomial
from bayesgen.numerics.special import Array


class DirichletCompoundMultinomialNB(SampledClassifier, CountColumns):
    r"""Naive Bayes for documents whose words come in bursts: Dirichlet-multinomial given the class.

    Each document has word probabilities of its own, about those of its class:

    .. math:: \theta_i \mid y = c \sim \text{Dirichlet}(s_c\,\text{mean}_c), \qquad
              x_i \sim \text{Multinomial}(L_i, \theta_i)

    Prefer it to `MultinomialNB` where a word, once used, is likely to be used again, which is all
    real text: there `MultinomialNB` takes every repetition for new evidence and is far too sure.
    The concentration s_c is learnt; large, the model is the multinomial.

    Parameters
    ----------
    mean, concentration : prior objects, optional
        Of the word probabilities (class, feature), which sum to 1 over the features, and of s
        (class,), in words: a distribution of PyMC (``pm.LogNormal.dist(3, 1)``), PreliZ or
        pymc-extras, or a function of (name, dims). None: mean Dirichlet(alpha); log s Normal about
        the log of the mean length of a document, with standard deviation 2.
    alpha : float or array broadcasting to (class, feature), default 1.0
        Dirichlet concentration of the default prior of `mean`, in words, as in `MultinomialNB`.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
    random_state : int, optional

    Notes
    -----
    A gradient costs one logarithm for each class, word and count that occur, however many
    documents there are. Sparse X is never made dense.

    References
    ----------
    Madsen, Kauchak and Elkan (2005), Modeling word burstiness using the Dirichlet distribution.

    Examples
    --------
    >>> clf = DirichletCompoundMultinomialNB(random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("mean", "concentration")

    _family_type = DirichletCompound

    def __init__(
        self,
        mean: Any = None,
        concentration: Any = None,
        *,
        alpha: Any = 1.0,
        class_alpha: Any = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.mean = mean
        self.concentration = concentration
        self.alpha = alpha
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> DirichletCompound:
        return DirichletCompound(self.mean, self.concentration, alpha=self.alpha)


@dataclass(frozen=True, eq=False)
class Factors(Counts):
    """Counts of a model with factors, which have labels of their own."""

    factors: int = 1

    def coords(self, family: Family) -> dict[str, Any]:
        """{dim: labels} of the posterior."""
        return {**super().coords(family), FACTOR: np.arange(self.factors)}


class LogisticNormalNB(SampledClassifier, CountColumns):
    r"""Documents whose words go together: softmax of a Normal given the class.

    Each document has word probabilities of its own, whose log-odds are Normal about those of the
    class, with a covariance of rank K:

    .. math:: \theta_i = \text{softmax}(\log \text{centre}_c + z_i^\top \Lambda_c), \qquad
              z_i \sim \text{Normal}(0, I_K), \qquad x_i \sim \text{Multinomial}(L_i, \theta_i)

    Prefer it to `MultinomialNB` where a class has several manners of speech: words that are used
    together are then one piece of evidence, not many. `DirichletCompoundMultinomialNB` knows of
    words that repeat themselves, but not of words that call for others.

    Parameters
    ----------
    centre, spread : prior objects, optional
        Of the word probabilities of a middling document (class, feature), which sum to 1 over the
        features, and of the standard deviation of the loadings (class, factor), in log-odds: a
        distribution of PyMC (``pm.HalfNormal.dist(0.5)``), PreliZ or pymc-extras, or a function of
        (name, dims). None: centre Dirichlet(alpha); spread HalfNormal(1).
    factors : int, default 1
        K, less than the number of words. 2 costs some 20 times as much as 1, and 3 is for tables of
        a few categories.
    alpha : float or array broadcasting to (class, feature), default 1.0
        Dirichlet concentration of the default prior of `centre`, in words, as in `MultinomialNB`.
    nodes : int, optional
        z is integrated out by the trapezoidal rule with so many nodes on each axis. None: 9 to
        129, by the lengths of the documents, with an error of p(x | theta) of about 0.2 % at all
        but the longest 5 % where words vary by a factor of e from document to document. The rule's
        density is a probability whatever its number of nodes (`families.logistic_normal`).
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
    random_state : int, optional

    Notes
    -----
    Centres and loadings are correlated a posteriori. With one factor and the default priors they
    are sampled in coordinates in which their posterior is round, and a draw takes some 15
    gradients: 1500 messages with 200 words take 200 CPU seconds at the defaults. With more factors,
    priors of your own, sample weights or some 1000 words and more they are not, and
    ``fit(X, y, adaptation="low_rank")`` (of nutpie) may help.

    References
    ----------
    Aitchison and Shen (1980), Logistic-normal distributions: some properties and uses; Blei and
    Lafferty (2007), A correlated topic model of Science.

    Examples
    --------
    >>> clf = LogisticNormalNB(random_state=1)
    >>> clf.fit(X, y).predict_proba(X_new)  # doctest: +SKIP
    """

    _unsaved = ("centre", "spread")

    _family_type = LogisticNormal

    def __init__(
        self,
        centre: Any = None,
        spread: Any = None,
        *,
        factors: int = 1,
        alpha: Any = 1.0,
        nodes: int | None = None,
        class_alpha: Any = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.centre = centre
        self.spread = spread
        self.factors = factors
        self.alpha = alpha
        self.nodes = nodes
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> LogisticNormal:
        return LogisticNormal(
            self.centre, self.spread, alpha=self.alpha, factors=self.factors, nodes=self.nodes
        )

    def _reader(self) -> Reader:
        family = self._family_type
        name = type(self).__name__
        return Factors(name, family.sparse, missing=family.missing, factors=self.factors)


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
        Of the rates (class, feature), in events per unit of exposure, and of the non-Poissonness
        (feature,), events per unit of exposure: a distribution of PyMC
        (``pm.Gamma.dist(2, 0.1)``), PreliZ or pymc-extras, or a function of (name, dims). None:
        mu log-Normal about a common rate, itself log-Normal about the rate of the column in all
        rows with standard deviation 1; delta Exponential with mean 1/(mean exposure) + that rate,
        with which a row's own rate varies as much as it is large.
    spread : prior object, optional
        Of the standard deviation of the classes' log rates about the common one; a number. None:
        HalfNormal(1).
    exposure : int or str, optional
        Position or name of the column that holds each row's exposure: the length of a document,
        a time, an area; > 0, in any unit. It is given, and says nothing of the class; in
        ``posterior_`` its own mu and delta are draws of their priors, which nothing looks at.
        None: 1.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    draws, tune, chains : int
        Of NUTS.
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

    _family_type = NegativeBinomial

    def __init__(
        self,
        mu: Any = None,
        delta: Any = None,
        spread: Any = None,
        *,
        exposure: int | str | None = None,
        class_alpha: Any = 1.0,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.mu = mu
        self.delta = delta
        self.spread = spread
        self.exposure = exposure
        self.class_alpha = class_alpha
        self._set_sampler(draws, tune, chains, random_state)

    def _family(self, reader: Reader, classes: Array) -> NegativeBinomial:
        at = None if self.exposure is None else self._exposure_column(reader.columns)
        return NegativeBinomial(self.mu, self.delta, self.spread, exposure=at)

    def _exposure_column(self, names: list[Any]) -> Array:
        """(D,) 1 at the exposure's column."""
        j: Any = self.exposure
        if isinstance(j, str):
            if j not in names:
                raise ValueError(f"exposure={j!r} is not a column of X; those are {names}")
            j = names.index(j)
        if not -len(names) <= j < len(names):
            raise ValueError(f"exposure={j!r}, but X has {len(names)} columns")
        return np.eye(len(names))[j]
