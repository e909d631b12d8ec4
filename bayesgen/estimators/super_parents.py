"""Averaged n-dependence estimators: AnDE."""

from typing import Any, Literal

import numpy as np

from bayesgen.encoding.reader import Reader
from bayesgen.encoding.views import MissingCells
from bayesgen.estimators.binned import BinnedClassifier
from bayesgen.families.conjugate.dirichlet_super_parents import DirichletSuperParents, declare
from bayesgen.numerics.special import Array
from bayesgen.posterior.model import ClassStats


class AnDE(BinnedClassifier):
    r"""Averaged one- and two-dependence estimators (AODE, A2DE), their tables integrated out.

    Within a class every column depends on the same n super-parents s, and

    .. math:: p(x \mid y=c, D) = \sum_s u_s\, p(x_s \mid D_c) \prod_{j \notin s}
              p(x_j \mid x_s, D_c)

    averages over every set s of n columns, each factor a ratio of counts with pseudo-counts.

    Parameters
    ----------
    n : {1, 2}
        Super-parents. 1 costs D^2 for each row and class, 2 costs D^3/6 and sees what three
        columns say of the class together.
    strength : float, array (class,), or None
        A: pseudo-counts in the table of each set of columns, in rows; divided evenly among its
        cells. None: of the largest evidence, the same for all classes.
    weights : {"uniform", "evidence"}
        u. ``"uniform"``: the same for every set, whatever the rows. ``"evidence"``: the posterior
        probability of s given the rows of the class, the predictive of the mixture of all sets:
        with many rows one set has nearly all of it.
    n_bins, cuts, columns, categories, missing, unseen
        As in `TreeAugmentedNB`; missing cells of a new row are summed over in closed form, however
        many they are.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"default", "empirical", "loo"}
        ``"empirical"`` multiplies the strength by a factor for the largest evidence p(X, y),
        ``"loo"`` for the largest leave-one-out score of the labels, in `fit` alone
        (`GenerativeClassifier`).

    Notes
    -----
    Uniform weights are those of the literature. They are not those of a Bayesian mixture, which are
    the posterior probabilities of the sets and end at one of them; the average is seldom worse, as
    the rules that it averages are of nearly the same quality. ``log_evidence_`` is that of
    the mixture with uniform prior weights under both; with ``weights="uniform"`` it is not the
    product of the predictives of one row after the other.

    Draws and intervals take one s for each draw and class, by u. With uniform weights their spread
    is that of the sets and of one set's tables, not how uncertain the average is: intervals are
    wide. Take ``weights="evidence"``, or a `LogLinearPool`, which counts the average.

    Everything is conditional on the bins, the categories and, where it is None, the strength:
    exact leave-one-out does not learn these again. ``partial_fit`` and streams take the bins and
    categories of the first rows; parts that are merged must have the same: declare `cuts`,
    `categories` and `missing`. At most 2^25 counts are kept, of all classes together.

    `to_pymc` declares ``pi`` (class) and ``tables_{c}_{j}`` (context_{c}_{j}, code_{j}), in class
    number c: codes of what column j depends on, of super-parents the earlier ones, and of j.

    References
    ----------
    Webb, Boughton and Wang (2005), Not so naive Bayes: aggregating one-dependence estimators; Webb
    et al. (2012), Learning by extrapolation from marginal to full-multivariate probability
    distributions: decreasingly naive Bayesian classification.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[a, b, a ^ b ^ c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 9)
    >>> y = [c for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 9  # no two columns tell of it
    >>> AnDE(2).fit(X.astype(bool), y).predict_proba([[True, True, False]]).round(2)
    array([[0.97, 0.03]])
    """

    _family_type = DirichletSuperParents

    def __init__(
        self,
        n: int = 1,
        strength: Any = None,
        *,
        weights: Literal["uniform", "evidence"] = "uniform",
        n_bins: int = 5,
        cuts: Any = None,
        columns: Any = None,
        categories: Any = None,
        missing: MissingCells = "auto",
        unseen: str = "ignore",
        class_alpha: Any = 1.0,
        prior: str = "default",
    ) -> None:
        self.n = n
        self.strength = strength
        self.weights = weights
        self._set_bins(n_bins, cuts, columns, categories, missing)
        self.unseen = unseen
        self.class_alpha = class_alpha
        self.prior = prior

    def _family(self, reader: Reader, classes: Array) -> DirichletSuperParents:
        levels = reader.encoder.levels
        return DirichletSuperParents(levels, self.strength, n=self.n, weights=self.weights)

    def _declare(self, prior: Any, features: Any, structure: Any, X_new: Any) -> None:
        declare(prior, None if features is None else prior.update(features), structure)

    def _structure(self, prior: Any, stats: ClassStats, structure: Any) -> list[int]:
        """(C,) which set of super-parents each class has."""
        if structure is None:
            largest: list[int] = prior.update(stats.features).log_weights.argmax(axis=1).tolist()
            return largest
        known = prior.layout.parents.columns
        given = np.sort(np.atleast_1d(structure))
        if len(given) != known.shape[1] or not (known == given).all(axis=1).any():
            raise ValueError(
                f"structure must be {known.shape[1]} different positions of columns "
                f"0 .. {len(prior.levels) - 1}, got {structure!r}"
            )
        found = np.flatnonzero((known == given).all(axis=1))[0]
        return [int(found)] * len(self.classes_)
