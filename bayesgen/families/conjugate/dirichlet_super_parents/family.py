r"""Categories that all depend on the same n of them, averaged over which ones these are.

Within class c a set s of n columns, the super-parents, has one joint table, and every other column
a table for each of its cells,

.. math:: p(x \mid y=c, \theta, s) = p(x_s) \prod_{j \notin s} p(x_j \mid x_s),

with Dirichlet pseudo-counts :math:`A / \prod_{j \in t} K_j` for each cell of a set t of columns,
which are the margins of one table. With W_t the Dirichlet-multinomial evidence of the table of t,
and :math:`n_t(x)` the counts and pseudo-counts of the cell that x is in,

.. math:: p(X \mid y=c, s) = W_s \prod_{j \notin s} \frac{W_{s \cup j}}{W_s}, \quad
          p(x \mid y=c, s, D) = \frac{n_s(x)}{n} \prod_{j \notin s}
          \frac{n_{s \cup j}(x)}{n_s(x)}.

The average over s has uniform weights, or the posterior probabilities of s given the rows of the
class. With uniform weights it is the predictive of averaged n-dependence estimators (AODE), one
that no prior over s leads to: Bayes' rule would move the weights.

Sources: Webb, Boughton and Wang (2005), Not so naive Bayes, for n = 1; Webb et al. (2012), Learning
by extrapolation from marginal to full-multivariate probability distributions, for any n; Heckerman,
Geiger and Chickering (1995), section 5, for the tables.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from bayesgen.families.capabilities import FeatureTerms
from bayesgen.families.conjugate.dirichlet_super_parents import averages, structures
from bayesgen.families.conjugate.dirichlet_super_parents.statistics import (
    Layout,
    SuperParentStats,
    Tables,
    layout,
    n_cells,
)
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import (
    CATEGORY,
    CELL,
    CLASS,
    FEATURE,
    PARENT_CATEGORY,
    PARENT_CELL,
    PROBABILITY,
)
from bayesgen.families.records import array
from bayesgen.families.shared.category_codes import declared_codes
from bayesgen.families.shared.densities import density_by_draws
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.families.shared.strengths import START, search, value
from bayesgen.numerics.special import Array, log_gamma_difference, log_softmax, log_sum_exp

Weights = Literal["uniform", "evidence"]

MOST_CELLS = 1 << 25  # of the tables of all classes: 256 MB of counts


@dataclass(frozen=True, eq=False)
class DirichletSuperParents(ConjugateFamily):
    """Categorical features that depend on n of them, with Dirichlet tables.

    X holds the category codes 0 .. K_j - 1.

    Parameters
    ----------
    levels : array (feature,) of int
        Numbers of categories.
    strength : float or array (class,), > 0, or None
        A: pseudo-counts in the table of any set of columns, in rows. None: by the evidence of the
        rows, the same for all classes, among powers of the root of 2 from 1/4 to 512.
    parents, cells : arrays of counts, or None
        Behind a posterior, as in `SuperParentStats`. None: zeros, a prior.
    n : int
        Number of super-parents; of fewer columns than n + 1, all but one. Columns of one category
        do not count.
    weights : {"evidence", "uniform"}
        Of the sets of super-parents. ``"evidence"``: their posterior probabilities in each class,
        uniform a priori. ``"uniform"``: the same whatever the rows; predictives of one row after
        the other then do not multiply to the evidence, which stays that of the uniform prior.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [1, 1], [0, 0], [1, 1]])
    >>> family = DirichletSuperParents([2, 2], strength=4.0)
    >>> stats = family.stats(X, np.zeros(4, dtype=int), n_classes=1)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[0, 0], [0, 1]]))).round(3)
    array([[0.375],
           [0.125]])
    """

    describes: ClassVar[str] = PROBABILITY
    positions: ClassVar[tuple[str, ...]] = ("super_parents",)
    holds: ClassVar[str] = "code"
    kind: ClassVar[str] = "binned"
    statistics: ClassVar[type[Stats]] = SuperParentStats
    tunable: ClassVar[tuple[str, ...]] = ("strength",)
    missing: ClassVar[str] = (
        "the counts of incomplete rows have no common margins; AnDE sums over missing cells of "
        "new rows"
    )
    no_pymc: ClassVar[str] = (
        "the set of super-parents is a discrete parameter; AnDE.to_pymc(structure=...) is the "
        "model of the tables for a given set"
    )

    levels: Any = array(FEATURE)
    strength: Any = array(CLASS, default=None)
    parents: Any = array(CLASS, PARENT_CELL, default=None)
    cells: Any = array(CLASS, CELL, default=None)
    n: int = 1
    weights: Weights = "evidence"

    # methods with a page of their own
    draw = structures.draw
    mle = structures.mle

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``super_parents``: number of the set, in lexicographic order; ``tables``.

        The k-th super-parent has its table given those before it, and every other feature given
        all of them.
        """
        return {
            "super_parents": (CLASS,),
            "tables": (CLASS, FEATURE, PARENT_CATEGORY, CATEGORY),
        }

    # -- rows ------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """Sets of columns and where their tables stand."""
        if self.n not in (1, 2):
            raise ValueError(f"n must be 1 or 2, got {self.n!r}")
        levels = tuple(int(k) for k in np.asarray(self.levels))
        return layout(levels, self.n)

    def codes(self, X: Any) -> Array:
        """(N, D) int64 codes, all declared."""
        return declared_codes(X, self.levels, self.missing)

    def stats(
        self, X: Any, y: Array, n_classes: int, weight: Array | None = None
    ) -> SuperParentStats:
        """Counts of the cells of all sets of n and of n + 1 columns.

        Raises
        ------
        ValueError
            If they are more than 2^25 for all classes.
        """
        n = n_classes * n_cells(self.levels, self.n)
        if n > MOST_CELLS:
            raise ValueError(
                f"n={self.n} and {len(self.levels)} columns need {n:.1e} counts, "
                f"{8e-9 * n:.1f} GB; the limit is {MOST_CELLS:.1e}. Use n=1, fewer columns, or "
                "fewer bins and categories"
            )
        tables = self.layout
        codes = self.codes(X)
        counts = (t.counts_of(codes, y, n_classes, weight) for t in (tables.parents, tables.wide))
        return SuperParentStats(*counts)

    def log_likelihood(self, X: Any, theta: Theta) -> Array:
        """(..., N, C) sum of the log probabilities of the cells given the super-parents' codes."""
        return structures.log_likelihood(self, self.codes(X), dict(theta))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) codes, as int64: super-parents first, then the others."""
        return structures.simulate(self, rng, dict(theta), y)

    # -- prior and posterior ---------------------------------------------------------------------

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """One super-parent among two to four categories, strengths by class; two super-parents.

        With weights by evidence: uniform ones do not obey the chain rule.
        """
        ragged = 2 + np.arange(n_features) % 3
        found = [
            cls(ragged, 5.0 + np.arange(n_classes)),
            cls(np.full(n_features, 2), np.full(n_classes, 9.0), n=2),
        ]
        nobody = np.zeros(0, dtype=np.int64)
        empty = np.zeros((0, n_features), dtype=np.int64)
        return [f.resolve(f.stats(empty, nobody, n_classes)) for f in found]

    def resolve(self, stats: SuperParentStats) -> Self:
        """Zeros for counts that are None, and the strength by the evidence where it is None."""
        if self.weights not in get_args(Weights):
            raise ValueError(f"weights must be 'uniform' or 'evidence', got {self.weights!r}")
        tables, n_classes = self.layout, len(stats.parents)
        sizes = len(tables.parents.share), len(tables.wide.share)
        if (stats.parents.shape[1], stats.cells.shape[1]) != sizes:
            raise ValueError(
                f"the statistics are of other columns than those with {self.levels} categories"
            )
        parents, cells = (
            np.zeros((n_classes, size)) if counts is None else counts
            for size, counts in zip(sizes, (self.parents, self.cells), strict=True)
        )
        known = replace(self, levels=np.asarray(self.levels), parents=parents, cells=cells)
        if self.strength is not None:
            strength = broadcast_prior("strength", self.strength, (n_classes,))
            return replace(known, strength=strength)

        def given(strength: float):  # type: ignore[no-untyped-def] # Self
            return replace(known, strength=np.full(n_classes, strength))

        if not stats.parents.any():
            return given(value(1, START)[0])
        best, _ = search(lambda a, _: float(given(a).log_evidence(stats)), 1, (True, False))
        return given(best)

    def update(self, stats: SuperParentStats) -> Self:
        """Counts added."""
        return replace(self, parents=self.parents + stats.parents, cells=self.cells + stats.cells)

    # -- closed forms ----------------------------------------------------------------------------

    @cached_property
    def totals(self) -> Array:
        """(C,) pseudo-counts and counts of all rows of a class."""
        rows: Array = self.parents[:, : self.layout.parents.size(0)].sum(axis=1)
        return rows + self.strength

    def _log_evidences(self, parents: Array, cells: Array) -> Array:
        """(C, S) of counts, under each set of super-parents, from the pseudo-counts alone."""
        tables = self.layout
        one, two = (
            np.array([_log_evidences(t, *own) for own in zip(counts, self.strength, strict=True)])
            for t, counts in ((tables.parents, parents), (tables.wide, cells))
        )
        return averages.with_children(tables, one, two)

    @cached_property
    def log_weights(self) -> Array:
        """(C, S) log of the weight of each set of super-parents."""
        if self.weights == "uniform":
            n_sets = len(self.layout.parents.first)
            return np.full((len(self.strength), n_sets), -np.log(n_sets))
        return log_softmax(self._log_evidences(self.parents, self.cells))

    def log_evidence(self, stats: SuperParentStats) -> float:
        """Sum over classes of the log evidence of the weighted sets of super-parents."""
        if not stats.parents.any():
            return 0.0
        before = self._log_evidences(self.parents, self.cells)
        both = self._log_evidences(self.parents + stats.parents, self.cells + stats.cells)
        return float(log_sum_exp(self.log_weights + both - before).sum())

    def log_predictive(self, X: Any) -> Array:
        """(N, C) average over the sets of super-parents."""
        return averages.log_predictive(self, self.codes(X))

    def log_predictive_of_known(self, X: Any) -> tuple[Array, Array]:
        """(N, C) of the cells that are not NaN, the others summed over exactly: no error."""
        gone = np.isnan(np.asarray(X, dtype=np.float64))
        log_x = averages.log_predictive_of_known(self, self.codes(np.where(gone, 0, X)), gone)
        return log_x, np.zeros_like(log_x)

    def log_predictive_without(self, X: Any, y: Array, weight: Array) -> tuple[Array, Array]:
        """Counts less the row's own, and the weights of the sets likewise (`RowRemoval`)."""
        return averages.log_predictive_without(self, self.codes(X), y, weight)

    def cgf(self, X: Any, t: Array) -> Array:
        """In closed form: an average over sets of super-parents of tables with t more counts."""
        return averages.cgf(self, self.codes(X), np.asarray(t))

    def capability[K](self, kind: type[K]) -> K | None:
        """`FeatureTerms` of a single super-parent alone: two and a column are no sum over pairs."""
        if kind is FeatureTerms and self.layout.parents.columns.shape[1] != 1:
            return None
        return super().capability(kind)

    def log_odds_terms(
        self, X: Any, a: int, b: int, theta: Theta | None = None
    ) -> tuple[Array, Array]:
        """As in `FeatureTerms`: forests in which one column is the parent of all others."""
        codes = self.codes(X)
        if theta is None:
            first, second = (structures.expected_terms(self, codes, c) for c in (a, b))
        else:
            first, second = (structures.terms_given(self, codes, c, theta) for c in (a, b))
        terms = first - second
        return terms, np.zeros(terms.shape[:-1])

    # -- theta -----------------------------------------------------------------------------------

    def draw_log_density(self, rng: np.random.Generator, X: Any, n: int) -> Array:
        """(n, N, C) without the tables of other cells than the rows' (`DensityDraws`)."""
        return structures.draw_log_density(self, rng, self.codes(X), n)

    def log_density(self, theta: Theta) -> Array:
        """(...) log weight of the super-parents plus log density of the tables given them."""
        return density_by_draws(lambda t: structures.log_density(self, t), theta, self.params)

    def map(self) -> dict[str, Array]:
        """Refused: a set of super-parents has no mean, and tables of several no common mode."""
        raise UndefinedEstimateError("map", _NO_POINT)

    def mean(self) -> dict[str, Array]:
        """Refused: a set of super-parents has no mean, and tables of several no common mode."""
        raise UndefinedEstimateError("posterior_mean", _NO_POINT)


_NO_POINT = (
    "one set of super-parents is no average over all; method='posterior_predictive' averages over "
    "them, and a forest with given edges has one parent for each column"
)


def _log_evidences(tables: Tables, counts: Array, strength: float) -> Array:
    """(S,) log evidence of the table of each set, from counts (cells,)."""
    change = np.zeros(len(counts))
    some = np.flatnonzero(counts > 0)
    change[some] = log_gamma_difference(strength * tables.share[some], counts[some])
    n_rows = counts.sum() / len(tables.first)  # every row is in one cell of each table
    return tables.sums(change) - log_gamma_difference(strength, n_rows)
