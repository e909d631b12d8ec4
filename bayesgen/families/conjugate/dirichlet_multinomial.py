r"""Documents of word counts: x | y=c ~ Multinomial(L, theta_c), theta_c ~ Dirichlet(alpha_c).

The length L of a document is given and says nothing about its class. Posterior: alpha + word
counts. Predictive of a document: Dirichlet-multinomial,

.. math::

    \frac{L!}{\prod_j x_j!}\,\frac{B(\alpha_c + x)}{B(\alpha_c)}
    = \prod_j r(\alpha_{cj}, x_j) \Big/ r(A_c, L), \qquad
    r(a, n) = \frac{\Gamma(a+n)}{\Gamma(a)\,n!},

not the plug-in of the mean: a word seen once makes its own repetition more likely. The product
runs over the words of the document alone, since r(a, 0) = 1. For very long documents numerator
and denominator are multiplied by the same powers, with which each factor is a negative binomial
mass, free of cancellation: :math:`\prod_j NB(x_j; \alpha_{cj}, b) / NB(L; A_c, b)`, b = A_c/L.

Source: Murphy, Machine Learning: a Probabilistic Perspective (2012), section 3.4; Madsen, Kauchak
and Elkan (2005), Modeling word burstiness using the Dirichlet distribution, ICML.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from bayesgen.families.capabilities import Urns
from bayesgen.families.contract import ConjugateFamily, Stats, Tensors, Theta
from bayesgen.families.errors import NotLinearError, refuse_undefined
from bayesgen.families.names import CLASS, FEATURE, OBS
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared import pymc_parts
from bayesgen.families.shared.codes import look_up_counts
from bayesgen.families.shared.densities import (
    density_by_draws,
    dirichlet_mode,
    log_dirichlet_density,
)
from bayesgen.families.shared.documents import (
    IN_STATISTICS,
    WordCounts,
    refuse_fractional_counts,
    row_of_cells,
)
from bayesgen.families.shared.hyperparameters import broadcast_priors
from bayesgen.numerics import kernels, special
from bayesgen.numerics import rows as passes
from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Masses of documents of any length, of which each is a CSR row of word counts.
#
# Sums of log-gammas cancel in long documents. There numerator and denominator of a multinomial are
# masses of independent counts and of their total, each of them free of cancellation.

LONG = 2.0**14  # documents of this length and more are scored without cancellation


def log_coefficient(cells: sparse.csr_matrix, length: Array) -> Array:
    """Return (n,) log multinomial coefficients."""
    each = np.zeros(len(cells.data))
    several = np.flatnonzero(cells.data != 1)  # most words of a text occur once
    each[several] = special.log_factorial(cells.data[several])
    return special.log_factorial(length) - passes.row_sums(each, cells.indptr)


def log_multinomial(cells: sparse.csr_matrix, length: Array, p: Array) -> Array:
    """Return log prod_j Poisson(x_j | L p_j) / Poisson(L | L): no digits lost in long documents.

    The words that do not occur contribute exp(-L sum of their p).
    """
    log_mass = -length[:, None] * passes.sum_except(passes.pattern(cells), passes.exact_parts(p))
    log_mass -= special.log_poisson(length, length)[:, None]
    expected = length[row_of_cells(cells)]
    for index in np.ndindex(p.shape[:-1]):
        words = special.log_poisson(cells.data, expected * p[index][cells.indices])
        log_mass[(*index[:-1], slice(None), index[-1])] += passes.row_sums(words, cells.indptr)
    return log_mass


def log_long(cells: sparse.csr_matrix, length: Array, alpha: Array) -> Array:
    """Return (n, C) log predictive mass of long documents.

    Given the rates of independent Poisson counts, the counts given their total are multinomial;
    with Gamma(alpha_j, b) rates the mass of numerator and denominator are known, for any b.
    """
    total = alpha.sum(axis=-1)
    b = total / length[:, None]  # (n, C)
    owner, n = row_of_cells(cells), cells.data
    absent = passes.sum_except(passes.pattern(cells), passes.exact_parts(alpha))
    log_mass = -absent * np.log1p(1 / b)  # of all words but those of the cells
    for c in range(len(alpha)):
        words = special.log_negative_binomial(n, alpha[c, cells.indices], b[owner, c])
        document = special.log_negative_binomial(length, total[c], b[:, c])
        log_mass[:, c] += passes.row_sums(words, cells.indptr) - document
    return log_mass


def _blocks(X: Matrix) -> Iterator[slice]:
    """Return blocks of rows with about as many stored cells each."""
    return passes.row_blocks(X.shape[0], 1 + passes.n_stored(X) // max(1, X.shape[0]))


def _cells(X: Matrix, rows: slice) -> tuple[Array, Array, Array]:
    """Return cells of some rows as `kernels.words` reads them, all if X is dense.

    Of a sparse X each cell is stored once.
    """
    from bayesgen.numerics.kernels.compiling import as_data

    if not sparse.issparse(X):
        counts = passes.dense_block(X, rows)
        indptr = np.arange(len(counts) + 1, dtype=np.int64) * X.shape[1]
        words = np.tile(np.arange(X.shape[1], dtype=np.int32), len(counts))
        return as_data(indptr), as_data(words), as_data(counts.ravel())
    indptr = X.indptr[rows.start : rows.stop + 1].astype(np.int64)
    cells = slice(indptr[0], indptr[-1])
    words = X.indices[cells].astype(np.int32, copy=False)
    counts = X.data[cells].astype(np.float64, copy=False)
    return as_data(indptr - indptr[0]), as_data(words), as_data(counts)


_STEPS = 4  # that a cell takes in `stats`
_LOOKED_UP = 255  # largest count whose term is looked up
_TABLE_CELLS = 1 << 22  # of terms that are looked up


_ROUNDING = 1e-12  # of all pseudo-counts: no other word is left


@dataclass(frozen=True, eq=False)
class MultinomialStats(Stats):
    """Weighted word counts, and what the evidence needs to be a probability of count vectors."""

    largest_cell: ClassVar[float] = special.LARGEST_COUNT

    counts: Array = array(CLASS, FEATURE)
    # sum of the documents' log multinomial coefficients
    log_coefficient: Array = array(CLASS, signed=True)


@dataclass(frozen=True, eq=False)
class DirichletMultinomial(WordCounts, ConjugateFamily):
    """Bags of words with a Dirichlet prior on the word probabilities of each class.

    Counts need not be whole numbers: the mass is continued by the gamma function.

    Parameters
    ----------
    alpha : float or array broadcasting to (class, feature), > 0
        Pseudo-counts of each word, in words.
    length : int
        Words in a simulated document (`simulate`). Nothing else looks at it.

    Examples
    --------
    >>> import numpy as np
    >>> family = DirichletMultinomial()
    >>> stats = family.stats(np.array([[3, 0], [0, 3]]), np.array([0, 1]), n_classes=2)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[2, 0]]))).round(3)
    array([[0.667, 0.067]])
    """

    statistics: ClassVar[type[Stats]] = MultinomialStats
    default_draws: ClassVar[int] = 500
    tunable: ClassVar[tuple[str, ...]] = ("alpha",)
    attributes: ClassVar[Mapping[str, str]] = {"feature_log_prob_": "theta"}

    alpha: Hyperparameter = array(CLASS, FEATURE, default=1.0)
    length: int = 100

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``theta``: probability of each word, which sum to 1 over the features."""
        return {"theta": (CLASS, FEATURE)}

    def log_likelihood(self, X: Matrix, theta: Theta) -> Array:
        """Return (..., N, C) log multinomial masses of the documents, coefficient included.

        For documents of 2^14 words and more it is the mass under theta/(sum of theta): the sum
        differs from 1 by rounding, which such a document would magnify.
        """
        self.check(X)
        p = np.asarray(theta["theta"], dtype=np.float64)
        length, coefficient = np.empty(X.shape[0]), np.empty(X.shape[0])
        for rows, cells in passes.stored_blocks(X, 0):
            length[rows] = passes.row_sums(cells.data, cells.indptr)
            coefficient[rows] = log_coefficient(cells, length[rows])

        def tables(p: Array):
            return (p, False) if (p == 0).any() else (passes.columns_of(np.log(p)), True)

        def score(block: Matrix, rows: slice, tables, log_p: Array) -> None:
            weights, possible = tables
            if possible:
                passes.multiply(block, weights, log_p)
            else:
                log_p[:] = np.moveaxis(passes.dot_log(block, weights), 0, 1).reshape(log_p.shape)
            log_p += coefficient[rows, None]

        log_p = passes.over_draws(X, p, tables, score)
        for row in passes.few_at_a_time(np.flatnonzero(length >= LONG)):
            log_p[..., row, :] = log_multinomial(passes.stored_cells(X, row), length[row], p)
        return log_p

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) documents of `length` words, as int64."""
        p = self.rows_of(theta, "theta", y)
        p = p / p.sum(axis=-1, keepdims=True)
        return rng.multinomial(self.length, np.broadcast_to(p, (len(y), p.shape[-1])))

    def to_pymc(self, *, prefix: str = "", X: Matrix | None = None, y=None, stats=None) -> Tensors:
        """Dirichlet priors; Multinomial rows of whole counts, or the sums of the counts."""
        import pymc as pm
        import pytensor.tensor as pt

        prior = pymc_parts.declare(self, "prior", prefix)
        dims = pymc_parts.prefixed(prefix, self.params["theta"])
        theta = pymc_parts.dirichlet(f"{prefix}theta", self.alpha, prior["alpha"], dims)
        if stats is not None and X is None:
            n = pymc_parts.declare(stats, "stats", prefix)
            log_p = (n["counts"] * pt.log(theta)).sum() + n["log_coefficient"].sum()
            pm.Potential(f"{prefix}x", log_p)
        elif X is not None:
            self.check(X)
            refuse_fractional_counts(X, IN_STATISTICS)
            counts = pymc_parts.cells_data(prefix, X, whole=True)
            pm.Multinomial(
                f"{prefix}x",
                n=counts.sum(axis=1),
                p=theta[y],
                observed=counts,
                dims=(OBS, dims[1]),
            )
        return {"theta": theta}

    def pymc_log_likelihood(self, X: Matrix, theta, *, prefix: str = ""):
        """Sums over the words that occur, and the coefficients."""
        import pymc as pm
        import pytensor.tensor as pt

        self.check(X)
        cells = passes.stored_cells(X, slice(None))
        log_p = pymc_parts.sum_cells(f"{prefix}counts", cells, pt.log(theta["theta"]).T)
        coefficient = log_coefficient(cells, passes.row_sums(cells.data, cells.indptr))
        return log_p + pm.Data(f"{prefix}log_coefficient", coefficient)[:, None]

    def stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None = None
    ) -> MultinomialStats:
        """Sums of counts and of log multinomial coefficients."""
        if kernels.pays(_STEPS * passes.n_stored(X)):
            return self._compiled_stats(X, y, n_classes, weight)
        self.check(X)
        each = np.empty(X.shape[0])
        for rows, cells in passes.stored_blocks(X, 0):
            each[rows] = log_coefficient(cells, passes.row_sums(cells.data, cells.indptr))
        if weight is not None:
            each *= weight
        coefficients = np.bincount(y, weights=each, minlength=n_classes)
        return MultinomialStats(passes.class_sums(X, y, n_classes, weight), coefficients)

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Uniform; unequal by class and feature; rare words in short documents."""
        unequal = 0.5 + np.arange(n_classes * n_features).reshape(n_classes, n_features) % 5
        flat = np.ones((n_classes, n_features))
        return [cls(flat), cls(unequal), cls(0.3 * flat, length=5)]

    def resolve(self, stats: MultinomialStats) -> Self:
        """Broadcast the pseudo-counts to (class, feature)."""
        return broadcast_priors(self, stats.counts.shape, "alpha")

    def update(self, stats: MultinomialStats) -> Self:
        """Pseudo-counts + counts."""
        return replace(self, alpha=self.alpha + stats.counts)

    def mle(self, stats: MultinomialStats) -> dict[str, Array]:
        """Relative frequency of each word; 0 for a word that the class never used."""
        total = stats.counts.sum(axis=-1)
        refuse_undefined("mle", total <= 0, "it has no words (0/0)")
        return {"theta": stats.counts / total[:, None]}

    def map(self) -> dict[str, Array]:
        """Return (alpha - 1)/(sum of alpha - D), the mode on the simplex.

        A word with alpha = 1 beside others above 1 has probability 0.
        """
        return {"theta": dirichlet_mode(self.alpha)}

    def mean(self) -> dict[str, Array]:
        """alpha/(sum of alpha)."""
        return {"theta": self.alpha / self.alpha.sum(axis=-1, keepdims=True)}

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """Independent Dirichlet draws."""
        return {"theta": special.draw_dirichlet(rng, self.alpha, n)}

    def draw_log_density(self, seed: passes.Seed, X: Matrix, n: int) -> Array:
        """Draw the words of a row, and one Gamma variable for the sum of all others: (n, N, C).

        The coefficients, common to the classes, are left out.
        """
        self.check(X)

        def draw(rng: np.random.Generator, row: Matrix) -> Array:
            cells = passes.stored_cells(row, slice(None))
            log_x = np.zeros((n, 1, len(self.alpha)))
            for c, alpha in enumerate(self.alpha if cells.nnz else []):
                used, total = alpha[cells.indices], alpha.sum()
                logs = special.draw_log_gamma(rng, used, (n, len(used)))
                norm = special.log_sum_exp(logs)
                if (others := total - used.sum()) > _ROUNDING * total:
                    norm = np.logaddexp(norm, special.draw_log_gamma(rng, others, (n,)))
                log_x[:, 0, c] = (logs - norm[:, None]) @ cells.data
            return log_x

        return passes.draws_of_each_row(draw, seed, X)

    def log_density(self, theta: Theta) -> Array:
        """Return (...) sum over classes of log Dirichlet densities."""
        return density_by_draws(
            lambda t: log_dirichlet_density(t["theta"], self.alpha), theta, self.params
        )

    def log_predictive(self, X: Matrix) -> Array:
        """Return (N, C) log Dirichlet-multinomial masses, coefficient included."""
        import pandas as pd

        log_mass = self._log_numerators(X)
        wide = np.float64 if X.dtype.kind == "f" else None  # whole numbers add up in their own
        length = np.asarray(X.sum(axis=1, dtype=wide), dtype=np.float64).ravel()
        total = self.alpha.sum(axis=-1)
        is_long = length >= LONG
        for block in passes.row_blocks(len(length), len(total)):
            which, distinct = pd.factorize(np.where(is_long[block], 0.0, length[block]))
            norm = special.log_factorial(distinct)[:, None] - special.log_gamma_difference(
                total, distinct[:, None]
            )
            log_mass[block] += norm[which]
        for row in passes.few_at_a_time(np.flatnonzero(is_long)):
            cells = passes.stored_cells(X, row)
            log_mass[row] = log_long(cells, length[row], self.alpha)
        return log_mass

    def _log_numerators(self, X: Matrix) -> Array:
        """Add up log r(alpha, x): (N, C)."""
        if kernels.pays(len(self.alpha) * passes.n_stored(X)):
            return self._compiled_numerators(X)
        self.check(X)
        if self.alpha.size > passes.n_stored(X):
            return self._sum_terms(passes.stored_cells(X, slice(None)))
        log_mass = look_up_counts(X, self.alpha, np.array(1.0), np.array(0.0))
        others = np.flatnonzero(np.isnan(log_mass[:, 0]))
        if len(others):
            log_mass[others] = self._sum_terms(passes.stored_cells(X, others))
        return log_mass

    def _compiled_numerators(self, X: Matrix) -> Array:
        """Return `_log_numerators` of many rows."""
        from bayesgen.numerics.kernels.compiling import as_data
        from bayesgen.numerics.kernels.threads import run_in_threads
        from bayesgen.numerics.kernels.words import sum_word_terms

        largest = np.fmax.reduce(X.data if sparse.issparse(X) else X, axis=None, initial=1)
        terms = self._terms_of_one
        cells_of_word = passes.n_stored(X) // X.shape[1]
        most = min(largest, _LOOKED_UP, _TABLE_CELLS // terms.size, cells_of_word)
        if most > 1:
            alpha = self.alpha.T.copy()
            terms = np.concatenate([terms, np.empty((int(most) - 1, *alpha.shape))])
            for n in range(2, len(terms)):  # log r(a, n) - log r(a, n - 1) = log (a + n - 1)/n
                np.add(terms[n - 1], np.log((alpha + (n - 1)) / n), out=terms[n])
        log_mass = np.zeros((X.shape[0], len(self.alpha)))
        n_others = np.zeros(X.shape[0], np.int64)
        X = passes.each_cell_once(X) if sparse.issparse(X) else X

        def add_terms(rows: slice) -> tuple[Array, Array]:
            cells = _cells(X, rows)
            others = sum_word_terms(*cells, as_data(terms), log_mass[rows], n_others[rows])
            return cells[2][others], cells[1][others]

        others = run_in_threads(add_terms, _blocks(X))
        if np.isnan(log_mass[:, 0]).any():
            self.check(X)
        if n_others.any():
            counts, words = (np.concatenate(cells) for cells in zip(*others, strict=True))
            cells = sparse.csr_matrix((counts, words, np.append(0, n_others.cumsum())), X.shape)
            for rows in passes.row_blocks(X.shape[0], 1 + cells.nnz // X.shape[0]):
                log_mass[rows] += self._sum_terms(cells[rows])
        return log_mass

    @cached_property
    def _terms_of_one(self) -> Array:
        """Return (2, D, C) log r(alpha, 0) = 0 and log r(alpha, 1) = log alpha."""
        terms = np.zeros((2, *self.alpha.T.shape))
        np.log(self.alpha.T, out=terms[1])
        return terms

    def _sum_terms(self, cells: sparse.csr_matrix) -> Array:
        """Add up log r(alpha, x), computed once for each distinct cell: (n, C)."""
        word, x, count = passes.distinct_cells(cells)
        log_r = special.log_gamma_difference(self.alpha[:, word], x) - special.log_factorial(x)
        return passes.shared_sums(count, log_r).T

    def _compiled_stats(
        self, X: Matrix, y: Array, n_classes: int, weight: Array | None
    ) -> MultinomialStats:
        """Return `stats` of many rows."""
        from bayesgen.numerics.kernels.compiling import as_data
        from bayesgen.numerics.kernels.words import add_words

        codes = as_data(np.ascontiguousarray(y, dtype=np.int64))
        weights = as_data(np.ascontiguousarray(() if weight is None else weight, dtype=np.float64))
        counts, coefficients = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes)
        X = passes.each_cell_once(X) if sparse.issparse(X) else X
        for rows in _blocks(X):
            add_words(*_cells(X, rows), codes[rows], weights[rows], counts, coefficients)
        if np.isnan(coefficients).any():
            self.check(X)
        return MultinomialStats(counts, coefficients)

    def log_evidence(self, stats: MultinomialStats) -> float:
        """Log coefficients + sum over classes of log B(alpha + counts) - log B(alpha).

        The probability of the count vectors given their lengths. It is arranged as the
        Dirichlet-multinomial mass of each class's total counts, times the probability of the
        documents given those totals, which no hyper-parameter enters. The first is exact at
        totals of 1e12. The second carries the rounding of the log coefficients, 1e-16 of their
        size: a constant, the same for every prior.
        """
        cells = passes.stored_cells(stats.counts, slice(None))
        given_totals = stats.log_coefficient - log_coefficient(cells, stats.counts.sum(axis=-1))
        # the totals of a class are its own alone: the diagonal of a (C, C) table
        mass = [
            replace(self, alpha=self.alpha[[c]]).log_predictive(stats.counts[[c]])[0, 0]
            for c in range(len(self.alpha))
        ]
        return float(np.sum(mass) + given_totals.sum())

    def log_predictive_without(self, X: Matrix, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract the row from its class; for very long documents add up the others instead."""
        self.check(X)
        log_x, cells = self.log_predictive(X), passes.stored_cells(X, slice(None))
        row, n = row_of_cells(cells), cells.data
        length = passes.row_sums(n, cells.indptr)
        before = self.alpha[y[row], cells.indices]
        remaining = before - weight[row] * n
        words = passes.row_sums(special.log_gamma_difference(remaining, n), cells.indptr)
        total = self.alpha.sum(axis=-1)[y] - weight * length
        words -= special.log_gamma_difference(total, length)
        log_x[np.arange(len(y)), y] = words + log_coefficient(cells, length)
        left = np.where(length >= LONG, 0.0, total / (total + weight * length))
        np.minimum.at(left, row, remaining / before)
        return log_x, left

    def beta_margins(self, stats: MultinomialStats) -> tuple[Array, Array, Array]:
        """Return the Beta parameters of each token against all others, and its count."""
        a: Array = np.asarray(self.alpha, dtype=np.float64)
        return a, a.sum(axis=1, keepdims=True) - a, stats.counts

    def urns(self, X: Matrix) -> Urns:
        """Return the words of each document: one urn per class."""
        self.check(X)
        cells = passes.stored_cells(X, slice(None))
        row, length = row_of_cells(cells), passes.row_sums(cells.data, cells.indptr)
        cell = self.alpha[:, cells.indices]
        total = np.broadcast_to(self.alpha.sum(axis=-1)[:, None], cell.shape)
        return Urns(row, cells.indices, cells.data, length[row], cell, total)

    def linear_form(self, theta: Theta | None) -> tuple[Array, Array]:
        """Log probabilities as weights of the counts; plug-ins only."""
        if theta is None:
            raise NotLinearError(
                "the posterior predictive of a document is Dirichlet-multinomial: a word's second "
                "occurrence weighs less than its first, so the rule is not linear in the counts; "
                "ask for the linear form of a plug-in, such as method='posterior_mean'"
            )
        p = theta["theta"]
        with np.errstate(divide="ignore"):
            return np.log(p), np.zeros(len(p))

    def information(self, theta: Theta, weights: Array) -> Array:
        """Return (D,) shares of the words in the information of one token on the class, in nats.

        Sum over classes of pi theta_cj log(theta_cj / mean_j). Each share is >= 0; over the
        features they sum to the mutual information of the class and one word drawn from a
        document. No share is the mutual information of a count: that depends on the length.
        """
        p, pi = theta["theta"], weights[:, None]
        mean = (pi * p).sum(axis=0)
        return (pi * xlogy(p, p)).sum(axis=0) - xlogy(mean, mean)
