"""Bits and counts: BernoulliNB, MultinomialNB, PoissonNB."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.utils import Tags

from bayesgen.encoding.cells import refuse_cells, stored
from bayesgen.encoding.reader import Reader, Rows
from bayesgen.encoding.suspects import ColumnWarning
from bayesgen.errors import warn
from bayesgen.estimators.arguments import PriorValue, RowsLike, make_constructor
from bayesgen.estimators.classifier import GenerativeClassifier
from bayesgen.families.conjugate.beta_bernoulli import BetaBernoulli
from bayesgen.families.conjugate.dirichlet_multinomial import DirichletMultinomial
from bayesgen.families.conjugate.gamma_poisson import GammaPoisson
from bayesgen.families.contract import Family
from bayesgen.families.shared.codes import are_bits, are_others, threshold_bits
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import Matrix, each_cell_once
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class Bits(Reader):
    """Columns of bits, or of numbers with a threshold."""

    binarize: float | None = 0.0

    def encode(self, rows: Rows) -> Matrix:
        """Return (N, D) 0 and 1; NaN where a cell is missing."""
        X, threshold = rows.X, 0.5 if self.binarize is None else self.binarize
        if sparse.issparse(X):
            X = each_cell_once(X)
        if self.binarize is None:
            self._refuse_numbers(X)
        if sparse.issparse(X):
            bits_already = 0 <= threshold < 1 and are_bits(X.data)
            return X if bits_already else _binarize(X, threshold)
        bits, is_finite = threshold_bits(X, threshold)
        if is_finite:
            return bits
        super().refuse_infinite(X)
        return np.asarray(0 * X + bits)  # NaN stays what it is

    def _refuse_numbers(self, X: Matrix) -> None:
        """Raise ValueError at the first cell that is not 0, 1 or missing."""
        cells = stored(X)
        if not are_bits(cells):
            super().refuse_infinite(X)
            refuse_cells(
                X,
                are_others(cells),
                lambda: self.columns,
                "BernoulliNB takes 0 and 1 only, got {value:g}",
                ", column {name!r}",
                "give a threshold in binarize",
            )

    def refuse_infinite(self, X: Matrix) -> None:
        """Leave dense rows to `encode`, which looks at each cell."""
        if sparse.issparse(X):
            super().refuse_infinite(X)

    def warn_of_doubts(self, rows: Rows) -> None:
        """Warn of the first column of numbers that are all above the threshold."""
        if self.binarize is None or sparse.issparse(rows.X) or not len(rows):
            return
        above = np.flatnonzero(rows.X[:100].min(axis=0) > self.binarize)
        numbers = rows.X[:, above]
        least, most = numbers.min(axis=0), numbers.max(axis=0)
        for j in above[(least > self.binarize) & (most > least)][:1]:
            name = self.columns[j]
            warn(
                ColumnWarning(
                    f"column {name!r} is above the threshold {self.binarize:g} in every row",
                    ": it becomes all ones and tells nothing",
                    column=name,
                    advice="give a threshold in binarize, or use GaussianNB or MixedNB",
                )
            )


class BitColumns(GenerativeClassifier):
    """Tables of bits, or of numbers that `binarize` makes bits."""

    binarize: float | None

    def _reader(self) -> Reader:
        return Bits(type(self).__name__, self._family_type.sparse, binarize=self.binarize)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a bit per column is too little for blobs
        return tags


@make_constructor
class BernoulliNB(BitColumns):
    r"""Naive Bayes for bits: x_j | y=c ~ Bernoulli(theta_cj), theta_cj ~ Beta(alpha, beta).

    For one row the posterior predictive is the plug-in of the posterior means. The interval of
    the class probability, the evidence and predictions for several rows at once are not.

    Parameters
    ----------
    alpha, beta : float or array broadcasting to (class, feature), default 1.0
        Pseudo-counts of 1 and of 0, in rows. 1 and 1 is the uniform prior; 1/2 Jeffreys'. A 1-D
        array has one value per feature, (C, 1) one value per class.
    binarize : float or None, default 0.0
        Values above it are 1, the others 0, as in scikit-learn. None: X must hold only 0 and 1.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"`` uses the alpha and beta as stated.
        ``"loo"`` multiplies them by the factors with the largest leave-one-out score of the labels,
        ``"empirical"`` by those with the largest evidence p(X, y). None is ``"loo"`` in `fit` if
        alpha and beta are not given, else ``"default"`` (see `GenerativeClassifier`).

    See Also
    --------
    GenerativeClassifier : attributes and methods.

    References
    ----------
    Murphy (2012), section 3.5.

    Examples
    --------
    Thirteen rows of two bits. Class 2 has never shown (1, 1), yet
    maximum likelihood prefers it; the predictive is 1568/4493.

    >>> import numpy as np
    >>> X = np.array([[1, 1]] + 4 * [[1, 0]] + 4 * [[0, 1]] + 4 * [[0, 0]])
    >>> clf = BernoulliNB().fit(X, [1] + 12 * [2])
    >>> clf.predict_proba([[1, 1]]).round(6)
    array([[0.341974, 0.658026]])
    >>> clf.predict_proba([[1, 1]], method="mle").round(6)
    array([[0.428571, 0.571429]])
    """

    _family_type = BetaBernoulli
    _by_column = ("alpha", "beta")

    alpha: PriorValue = 1.0
    beta: PriorValue = 1.0
    _: KW_ONLY
    binarize: float | None = 0.0
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _family(self, reader: Reader, classes: Array) -> Family:
        refuse_no_threshold(self.binarize)
        return BetaBernoulli(self.alpha, self.beta)


def refuse_no_threshold(binarize) -> None:
    """Raise for what is neither None nor one finite number."""
    if binarize is not None:
        broadcast_prior("binarize", binarize, (), positive=False)


def _binarize(X: sparse.csr_matrix, threshold: float) -> sparse.csr_matrix:
    """1 above the threshold, 0 otherwise, NaN where X is NaN."""
    if threshold < 0:
        raise ValueError("binarize must be >= 0 for sparse X: a zero cell would become 1")
    ones = X.copy()
    ones.data = np.where(np.isnan(ones.data), np.nan, (ones.data > threshold).astype(float))
    ones.eliminate_zeros()
    return ones


@dataclass(frozen=True, eq=False)
class Counts(Reader):
    """Columns of non-negative counts; `missing` is why a cell may not be missing, if that is so."""

    missing: str = "marginalised"
    whole_numbers: bool = False  # whether others are doubtful

    def warn_of_doubts(self, rows: Rows) -> None:
        """Warn of the first cell of a table that is no whole number."""
        if not self.whole_numbers or sparse.issparse(rows.X):
            return
        is_fraction = np.floor(rows.X) < rows.X
        for row, j in np.argwhere(is_fraction)[:1] if is_fraction.any() else ():
            name = self.columns[j]
            warn(
                ColumnWarning(
                    f"column {name!r} holds {rows.X[row, j]:g}",
                    f", and {self.owner} is a model of counts",
                    row=row,
                    column=name,
                    advice="for measurements use GaussianNB or MixedNB",
                )
            )

    def admit(self, X: RowsLike, *, first: bool = False) -> tuple[Self, Rows]:
        """Rows, checked; see `Reader.admit`."""
        reader, rows = super().admit(X, first=first)
        cells = stored(rows.X)
        if not cells.size or cells.min() >= 0:  # which NaN is not
            return reader, rows
        where = ", column {name!r}"
        what = (
            f"Negative values in data passed to {self.owner}: counts must be >= 0, got {{value:g}}"
        )
        refuse_cells(rows.X, cells < 0, lambda: reader.columns, what, where)
        if self.missing != "marginalised":
            what, gone = "Input X contains NaN: {value:g}", np.isnan(cells)
            refuse_cells(rows.X, gone, lambda: reader.columns, what, where, self.missing)
        return reader, rows


class CountColumns(GenerativeClassifier):
    """Tables of non-negative counts."""

    def _reader(self) -> Reader:
        family = self._family_type
        return Counts(
            type(self).__name__,
            family.sparse,
            missing=family.missing,
            whole_numbers=family is GammaPoisson,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


@make_constructor
class MultinomialNB(CountColumns):
    r"""Naive Bayes for documents of counts: x | y=c ~ Multinomial(L, theta_c), Dirichlet prior.

    The exact predictive of a document is Dirichlet-multinomial: each occurrence of a word makes the
    next one more probable. The plug-in of the posterior mean counts all occurrences alike.

    Parameters
    ----------
    alpha : float or array broadcasting to (class, feature), default 1.0
        Dirichlet concentration, in words.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"``: alpha as is stated. ``"loo"``: multiplied by the
        factors with the largest leave-one-out score of the labels. ``"empirical"``: by those with
        the largest evidence p(X, y). None: ``"loo"`` in `fit` if alpha is not given, else
        ``"default"`` (`GenerativeClassifier`).

    See Also
    --------
    MarkovNB : word sequences.

    Notes
    -----
    X may be fractional (tf-idf): the gamma function continues the factorials, and densities are
    no longer probabilities. ``log_evidence_`` and ``score_samples`` include the multinomial
    coefficient: they are probabilities of count vectors, not of word sequences.

    References
    ----------
    Murphy (2012), section 3.4.

    Examples
    --------
    >>> import numpy as np
    >>> clf = MultinomialNB().fit([[1, 0], [0, 1]], ["a", "b"])
    >>> clf.predict_proba([[5, 0]]).round(4)
    array([[0.8571, 0.1429]])
    >>> clf.predict_proba([[5, 0]], method="posterior_mean").round(4)
    array([[0.9697, 0.0303]])
    """

    _family_type = DirichletMultinomial
    _by_column = ("alpha",)

    alpha: PriorValue = 1.0
    _: KW_ONLY
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _family(self, reader: Reader, classes: Array) -> DirichletMultinomial:
        return DirichletMultinomial(self.alpha)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the checks' blobs: only proportions count
        return tags


@make_constructor
class PoissonNB(CountColumns):
    r"""Naive Bayes for counts without a common total: x_j | y=c ~ Poisson, Gamma prior.

    Parameters
    ----------
    shape : float or array broadcasting to (class, feature), default 1.0
        Shape of the Gamma prior of each rate: its weight, in events.
    rate : float or array broadcasting to (class, feature), optional
        Rate (inverse scale) of the Gamma prior: its weight, in rows. None: shape over the pooled
        mean count of the column, so that the prior mean is the pooled mean.
    class_alpha : float or array (class,), default 1.0
        Dirichlet concentration of the class weights, in rows.
    prior : {"loo", "default", "empirical"} or None
        Strength of the prior. ``"default"`` uses the shape and rate as stated.
        ``"loo"`` multiplies them by the factors with the largest leave-one-out score of the labels,
        ``"empirical"`` by those with the largest evidence p(X, y). None is ``"loo"`` in `fit` if
        shape and rate are not given, else ``"default"`` (see `GenerativeClassifier`).

    Notes
    -----
    X may be fractional (weights, tf-idf), and is taken as it is: the gamma function continues the
    factorials. Class probabilities and leave-one-out are those of a score then; the densities
    behind them sum to no 1, and ``log_evidence_`` and `score_samples` are no probabilities.

    References
    ----------
    Gelman et al. (2013), section 2.6; Mosteller and Wallace (1964).

    Examples
    --------
    >>> clf = PoissonNB().fit([[0, 3], [1, 4], [6, 0], [8, 1]], ["a", "a", "b", "b"])
    >>> clf.predict([[5, 1]])
    array(['b'], dtype='<U1')
    """

    _family_type = GammaPoisson
    _by_column = ("shape", "rate")

    shape: PriorValue = 1.0
    rate: PriorValue = None
    _: KW_ONLY
    class_alpha: PriorValue = 1.0
    prior: str | None = None

    def _family(self, reader: Reader, classes: Array) -> GammaPoisson:
        return GammaPoisson(self.shape, self.rate)
