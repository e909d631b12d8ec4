"""NegativeBinomialNB: counts that come in bursts."""

from typing import Any

import numpy as np

from bayesgen.encoding.reader import Reader
from bayesgen.estimators.counts import CountColumns
from bayesgen.estimators.sampled.classifier import SampledClassifier
from bayesgen.families.sampled.negative_binomial import NegativeBinomial
from bayesgen.numerics.special import Array


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
