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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from scipy.special import xlogy

from bayesgen.families.capabilities import FeatureTerms
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
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
from bayesgen.families.shared import forests
from bayesgen.families.shared.codes import declared_codes, draw_codes
from bayesgen.families.shared.densities import density_by_draws, log_dirichlet_density
from bayesgen.families.shared.forests import START, followed_argument, search, value
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics import kernels
from bayesgen.numerics.rows import cgf_by_rows, row_blocks
from bayesgen.numerics.special import (
    Array,
    draw_dirichlet,
    draw_log_beta,
    log_gamma_difference,
    log_softmax,
    log_sum_exp,
)

# ------------------------------------------------------------------------------------------------
# Counts of the cells of sets of columns, and where each set has its cells.
#
# The tables of all sets of m columns stand one after the other in one array, the sets in
# lexicographic order, the last column of a set innermost: columns with different numbers of
# categories leave no cell unused.


@dataclass(frozen=True, eq=False)
class SuperParentStats(Stats):
    """Weighted counts of each cell of each set of n columns, and of each set of n + 1."""

    parents: Array = array(CLASS, PARENT_CELL)
    cells: Array = array(CLASS, CELL)


class Tables(NamedTuple):
    """All sets of m columns."""

    columns: Array  # (S, m) rising
    strides: Array  # (S, m) in cells
    first: Array  # (S,) first cell of each set
    share: Array  # (cells,) the inverse of the number of cells of the set

    def cells_of(self, codes: Array) -> Array:
        """(n, S) the cell of each set that rows of codes (n, D) are in."""
        out = np.repeat(self.first[None], len(codes), axis=0)
        for k in range(self.columns.shape[1]):
            out += codes[:, self.columns[:, k]] * self.strides[:, k]
        return out

    def part(self, sets: Array) -> "Tables":
        """Some of the sets, in the same array of cells."""
        return self._replace(
            columns=self.columns[sets], strides=self.strides[sets], first=self.first[sets]
        )

    def counts_of(self, codes: Array, y: Array, n_classes: int, weight: Array | None) -> Array:
        """(C, cells) weighted counts."""
        n = len(self.share)
        out = np.zeros((n_classes, n))
        for rows in row_blocks(len(codes), len(self.first)):
            at = self.cells_of(codes[rows])
            for c in range(n_classes):
                own = y[rows] == c
                w = None if weight is None else np.repeat(weight[rows][own], at.shape[1])
                out[c] += np.bincount(at[own].ravel(), w, n)
        return out

    def size(self, s: int) -> int:
        """Number of cells of a set."""
        return round(1 / self.share[self.first[s]])

    def sums(self, values: Array) -> Array:
        """(..., S) of values (..., cells)."""
        out: Array = np.add.reduceat(values, self.first, axis=-1)
        return out


class Layout(NamedTuple):
    """The sets of n columns, super-parents, and those of n + 1: with one of the others each."""

    parents: Tables
    wide: Tables
    above: Array  # (S, columns - n) the sets of n + 1 columns that hold a set of n
    below: Array  # (T, n + 1) the sets of n columns within a set of n + 1


def n_cells(levels: Array, n: int) -> float:
    """Of the tables of all sets of n + 1 columns: an elementary symmetric polynomial."""
    sizes = np.asarray(levels, dtype=np.float64)
    sizes = sizes[random_columns(sizes)]
    sums = np.zeros(min(n + 1, len(sizes)) + 1)
    sums[0] = 1.0
    for size in sizes:
        sums[1:] += size * sums[:-1]
    return float(sums[-1])


@lru_cache(maxsize=16)
def layout(levels: tuple[int, ...], n: int) -> Layout:
    """For columns with so many categories each.

    Columns of one category are in no set: they say nothing, and nothing depends on them. Of fewer
    columns than n + 1 all but one are super-parents.
    """
    sizes = np.array(levels)
    columns = random_columns(sizes)
    n = min(n, len(columns) - 1)
    parents, wide = (_tables(sizes, columns, m) for m in (n, n + 1))
    if n == 0:  # the empty set
        every = np.arange(len(columns))
        return Layout(parents, wide, every[None], 0 * every[:, None])
    place = np.zeros((len(levels),) * n, dtype=np.int64)
    place[tuple(parents.columns.T)] = np.arange(len(parents.columns))
    below = np.stack(
        [place[tuple(np.delete(wide.columns, k, axis=1).T)] for k in range(n + 1)], axis=1
    )
    order = np.argsort(below.ravel(), kind="stable")
    above = (order // (n + 1)).reshape(len(parents.columns), len(columns) - n)
    return Layout(parents, wide, above, below)


def random_columns(levels: Array) -> Array:
    """Positions of the columns with more than one category; if there is none, of all."""
    found = np.flatnonzero(levels > 1)
    return found if len(found) else np.arange(len(levels))


def _tables(levels: Array, among: Array, m: int) -> Tables:
    columns = np.array(list(combinations(among, m)), dtype=np.int64)
    sizes = levels[columns]  # (S, m)
    after = np.cumprod(sizes[:, ::-1], axis=1)[:, ::-1]
    size = after[:, 0] if m else np.ones(1, dtype=np.int64)
    strides = np.concatenate([after[:, 1:], np.ones((len(columns), 1), np.int64)], axis=1)[:, :m]
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    return Tables(columns, strides, first, np.repeat(1.0 / size, size))


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

    @property
    def is_ensemble(self) -> bool:
        """Whether all sets count the same, whatever the rows."""
        return self.weights == "uniform"

    # -- rows ------------------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """Sets of columns and where their tables stand."""
        if self.n not in (1, 2):
            raise ValueError(f"n must be 1 or 2, got {self.n!r}")
        levels = tuple(int(k) for k in np.asarray(self.levels))
        if min(levels, default=1) < 1:
            raise ValueError(f"every column needs a category, got {min(levels)} in levels")
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
        return log_likelihood(self, self.codes(X), dict(theta))

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) codes, as int64: super-parents first, then the others."""
        return simulate(self, rng, dict(theta), y)

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
        return with_children(tables, one, two)

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
        return log_predictive(self, self.codes(X))

    def log_predictive_of_known(self, X: Any) -> tuple[Array, Array]:
        """(N, C) of the cells that are not NaN, the others summed over exactly: no error."""
        gone = np.isnan(np.asarray(X, dtype=np.float64))
        log_x = log_predictive_of_known(self, self.codes(np.where(gone, 0, X)), gone)
        return log_x, np.zeros_like(log_x)

    def log_predictive_without(self, X: Any, y: Array, weight: Array) -> tuple[Array, Array]:
        """Counts less the row's own, and the weights of the sets likewise (`RowRemoval`)."""
        return log_predictive_without(self, self.codes(X), y, weight)

    def cgf(self, X: Any, t: Array) -> Array:
        """In closed form: an average over sets of super-parents of tables with t more counts."""
        return cgf(self, self.codes(X), np.asarray(t))

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
            first, second = (expected_terms(self, codes, c) for c in (a, b))
        else:
            first, second = (terms_given(self, codes, c, theta) for c in (a, b))
        terms = first - second
        return terms, np.zeros(terms.shape[:-1])

    # -- theta -----------------------------------------------------------------------------------

    def draw_log_density(self, rng: np.random.Generator, X: Any, n: int) -> Array:
        """(n, N, C) without the tables of other cells than the rows' (`DensityDraws`)."""
        return draw_log_density(self, rng, self.codes(X), n)

    def log_density(self, theta: Theta) -> Array:
        """(...) log weight of the super-parents plus log density of the tables given them."""
        return density_by_draws(lambda t: log_density(self, t), theta, self.params)

    def map(self) -> dict[str, Array]:
        """Refused: a set of super-parents has no mean, and tables of several no common mode."""
        raise UndefinedEstimateError("map", _NO_POINT, advice=_INSTEAD)

    def mean(self) -> dict[str, Array]:
        """Refused: a set of super-parents has no mean, and tables of several no common mode."""
        raise UndefinedEstimateError("posterior_mean", _NO_POINT, advice=_INSTEAD)

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, *dims)}."""
        n_classes, levels = len(self.strength), np.asarray(self.levels)
        sets = np.empty((n, n_classes))
        tables = np.zeros((n, n_classes, len(levels), _contexts(self), int(levels.max())))
        for c in range(n_classes):
            weights = np.exp(self.log_weights[c])
            sets[:, c] = rng.choice(len(weights), size=n, p=weights / weights.sum())
            for s, draws in _groups(sets[:, c]):
                alpha = concentrations(self, c, s)
                at = np.nonzero(alpha[..., 0] > 0)
                rows = draw_dirichlet(rng, alpha[at], len(draws))
                tables[draws[:, None], c, at[0], at[1]] = rows
        return {"super_parents": sets, "tables": tables}

    def mle(self, stats: "SuperParentStats") -> dict[str, Array]:
        """The super-parents of the largest likelihood in each class, and frequencies given them."""
        rows = stats.parents[:, : self.layout.parents.size(0)].sum(axis=1)
        refuse_undefined("mle", rows <= 0, "it has no row (0/0)")
        one, two = (
            own.sums(xlogy(counts, counts)) - xlogy(rows, rows)[:, None]
            for own, counts in (
                (self.layout.parents, stats.parents),
                (self.layout.wide, stats.cells),
            )
        )
        sets = with_children(self.layout, one, two).argmax(axis=1)
        given = replace(self, parents=stats.parents, cells=stats.cells)
        alone = replace(given, strength=np.zeros(len(rows)))
        both = replace(given, strength=np.ones(len(rows)))  # and where there is a cell
        counts, real = (
            np.array([concentrations(own, c, s) for c, s in enumerate(sets)])
            for own in (alone, both)
        )
        empty = counts.sum(axis=-1, keepdims=True) == 0  # codes never seen: any table
        counts = np.where(empty, real > 0, counts)
        total = counts.sum(axis=-1, keepdims=True)
        tables = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
        return {"super_parents": sets.astype(np.float64), "tables": tables}


_NO_POINT = "one set of super-parents is no average over all"
_INSTEAD = (
    "method='posterior_predictive' averages over them, and a forest with given edges has one "
    "parent for each column"
)


def _log_evidences(tables: Tables, counts: Array, strength: float) -> Array:
    """(S,) log evidence of the table of each set, from counts (cells,)."""
    change = np.zeros(len(counts))
    some = np.flatnonzero(counts > 0)
    change[some] = log_gamma_difference(strength * tables.share[some], counts[some])
    n_rows = counts.sum() / len(tables.first)  # every row is in one cell of each table
    return tables.sums(change) - log_gamma_difference(strength, n_rows)


# ------------------------------------------------------------------------------------------------
# Tables given super-parents: draws, densities, likelihood, new rows.
#
# The super-parents of a set stand in the order of their columns. The k-th has a table given those
# before it, any other column given all of them; the codes of several are one code, the last of
# them innermost.


def concentrations(f: "DirichletSuperParents", c: int, s: int) -> Array:
    """(D, contexts, K) Dirichlet concentrations of the tables of set s; 0 in the padding."""
    tables, levels = f.layout, np.asarray(f.levels)
    columns = tables.parents.columns[s]
    out = np.zeros((len(levels), _contexts(f), int(levels.max())))
    out[levels == 1, : int(levels[columns].prod()), 0] = 1.0  # in no set: probability 1

    def put(j: int, table: Array) -> None:  # (..., K_j)
        flat = table.reshape(-1, levels[j])
        out[j, : len(flat), : levels[j]] = flat

    own = _table(tables.parents, f.parents[c], f.strength[c], s, levels[columns])
    for k, j in enumerate(columns):
        put(j, own.sum(axis=tuple(range(k + 1, own.ndim))))
    for t in tables.above[s]:
        wide = tables.wide.columns[t]
        (at,) = np.flatnonzero(~np.isin(wide, columns))
        table = _table(tables.wide, f.cells[c], f.strength[c], int(t), levels[wide])
        put(wide[at], np.moveaxis(table, at, -1))
    return out


def _table(tables: "Tables", counts: Array, strength: float, s: int, shape: Array) -> Array:
    """Pseudo-counts and counts of one set of columns as an array with an axis for each."""
    cells = slice(tables.first[s], tables.first[s] + tables.size(s))
    out: Array = counts[cells] + strength * tables.share[cells]
    return out.reshape(shape)


def _contexts(f: "DirichletSuperParents") -> int:
    levels = np.asarray(f.levels)
    return int(levels[f.layout.parents.columns].prod(axis=1).max())


def _groups(sets: Array) -> Iterator[tuple[int, Array]]:
    """Each set of super-parents that occurs, and where."""
    codes = sets.astype(np.int64)
    for s in np.unique(codes):
        yield int(s), np.flatnonzero(codes == s)


def contexts(f: "DirichletSuperParents", s: int, codes: Array) -> Array:
    """(n, D) the row of each column's table that rows of codes (n, D) are in."""
    columns, levels = f.layout.parents.columns[s], np.asarray(f.levels)
    out = np.zeros(codes.shape, dtype=np.int64)
    so_far = np.zeros(len(codes), dtype=np.int64)
    for j in columns:
        out[:, j] = so_far
        so_far = so_far * levels[j] + codes[:, j]
    others = np.setdiff1d(np.arange(codes.shape[1]), columns)
    out[:, others] = so_far[:, None]
    return out


def draw_log_density(
    f: "DirichletSuperParents", rng: np.random.Generator, codes: Array, n: int
) -> Array:
    """(n, N, C): super-parents by their weights, and of the tables the cells of each row alone.

    Of a Dirichlet table one cell is a Beta variable, independent of those of the other tables.
    """
    out = np.zeros((n, len(codes), len(f.strength)))
    gamma = rng.spawn(1)[0]  # so many shapes: quantiles of quasi-random numbers would take longer
    for c in range(len(f.strength)):
        one, two = (
            counts[c][at] + f.strength[c] * own.share[at]
            for own, counts in ((f.layout.parents, f.parents), (f.layout.wide, f.cells))
            for at in (own.cells_of(codes),)
        )
        upto = np.cumsum(np.exp(f.log_weights[c]))
        sets = np.minimum(np.searchsorted(upto, rng.random((n,)) * upto[-1]), len(upto) - 1)
        for s, draws in _groups(sets):
            cell = np.concatenate([one[:, [s]], two[:, f.layout.above[s]]], axis=1)
            whole = np.repeat(one[:, [s]], cell.shape[1], axis=1)
            whole[:, 0] = f.totals[c]
            for block in row_blocks(len(draws), cell.size):
                some = draws[block]
                out[some, :, c] = draw_log_beta(gamma, cell, whole - cell, len(some)).sum(axis=-1)
    return out


def log_density(f: "DirichletSuperParents", theta: dict[str, Array]) -> Array:
    """(n,)."""
    out = np.zeros(len(theta["super_parents"]))
    for c in range(len(f.strength)):
        for s, draws in _groups(theta["super_parents"][:, c]):
            alpha = concentrations(f, c, s)
            at = np.nonzero(alpha[..., 0] > 0)
            own = theta["tables"][draws][:, c][:, at[0], at[1]]
            out[draws] += f.log_weights[c][s]
            out[draws] += log_dirichlet_density(own, alpha[at]).sum(axis=-1)
    return out


def log_likelihood(f: "DirichletSuperParents", codes: Array, theta: dict[str, Array]) -> Array:
    """(..., N, C) log p(x | theta) of rows of codes."""
    sets = np.asarray(theta["super_parents"], dtype=np.float64)
    tables = np.asarray(theta["tables"], dtype=np.float64)
    flat = tables.reshape(-1, *tables.shape[-3:])
    out = np.empty((len(flat), len(codes)))
    column = np.arange(codes.shape[1])
    for s, draws in _groups(sets.ravel()):
        for rows in row_blocks(len(codes), codes.shape[1]):
            own = codes[rows]
            context = contexts(f, s, own)
            with np.errstate(divide="ignore"):
                for d in draws:
                    out[d, rows] = np.log(flat[d][column, context, own]).sum(axis=1)
    return np.moveaxis(out.reshape(*sets.shape, len(codes)), -1, -2)


def expected_terms(f: "DirichletSuperParents", codes: Array, c: int) -> Array:
    """(N, D) posterior means of the terms of class c, of one super-parent."""
    tables, columns = f.layout, f.layout.parents.columns[:, 0]
    i, j = tables.wide.columns.T
    weights = np.zeros(codes.shape[1])
    weights[columns] = np.exp(f.log_weights[c])

    def changes(t: Array) -> tuple[Array, Array]:
        one, two = (
            log_gamma_difference(counts[c][at] + f.strength[c] * own.share[at], t)
            for own, counts in ((tables.parents, f.parents), (tables.wide, f.cells))
            for at in (own.cells_of(codes),)
        )
        whole = log_gamma_difference(f.totals[c], t)
        single = np.zeros(codes.shape, dtype=one.dtype)
        single[:, columns] = one - whole
        return single, two - whole - single[:, i] - single[:, j]

    return forests.expected(changes, (i, j), weights[i] + weights[j])


def terms_given(f: "DirichletSuperParents", codes: Array, c: int, theta: Theta) -> Array:
    """(..., N, D) the same for draws (..., *dims) of theta."""
    parent = f.layout.parents.columns[np.asarray(theta["super_parents"])[..., c].astype(int), 0]
    column = np.arange(codes.shape[1])
    parents = np.where(column == parent[..., None], -1, parent[..., None])
    tables = np.asarray(theta["tables"])[..., c, :, :, :]
    return forests.of_tables(codes, parents, tables)


def simulate(
    f: "DirichletSuperParents", rng: np.random.Generator, theta: dict[str, Array], y: Array
) -> Array:
    """(N, D) codes; theta is one value, or one for each row."""
    n_features = len(f.levels)
    out = np.zeros((len(y), n_features), dtype=np.int64)
    one_each = np.ndim(theta["super_parents"]) > 1
    sets = theta["super_parents"][np.arange(len(y)), y] if one_each else theta["super_parents"][y]
    for s, members in _groups(sets):
        columns = f.layout.parents.columns[s]
        others = np.setdiff1d(np.arange(n_features), columns)
        for block in row_blocks(len(members), n_features * int(np.max(f.levels))):
            rows = members[block]
            table = theta["tables"][rows, y[rows]] if one_each else theta["tables"][y[rows]]
            for part in (*columns[:, None], others):
                at = contexts(f, s, out[rows])[:, part]
                p = table[np.arange(len(rows))[:, None], part, at]
                out[np.ix_(rows, part)] = draw_codes(rng, p, np.arange(len(rows)))
    return out


def declare(prior: "DirichletSuperParents", posterior: Any, sets: list[int]) -> None:
    """Declare tables and the potential ``x`` in the PyMC model on the stack.

    Variables ``tables_{c}_{j}`` (context_{c}_{j}, code_{j}) of column j in class number c; a
    context is a combination of codes of the super-parents.

    Parameters
    ----------
    prior, posterior
        The posterior None: no rows.
    sets : for each class the number of its set of super-parents
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    total: Any = 0.0
    for c, s in enumerate(sets):
        before = concentrations(prior, c, s)
        after = before if posterior is None else concentrations(posterior, c, s)
        for j, k in enumerate(np.asarray(prior.levels)):
            real = before[j, :, 0] > 0
            alpha = before[j, real, :k]
            theta = pt.ones(alpha.shape)
            if k > 1:
                dims = f"context_{c}_{j}", f"code_{j}"
                model.add_coords(dict(zip(dims, map(np.arange, alpha.shape), strict=True)))
                theta = pm.Dirichlet(f"tables_{c}_{j}", alpha, dims=dims)
            total = total + ((after - before)[j, real, :k] * pt.log(theta)).sum()
    if posterior is not None:
        pm.Potential("x", total)


# ------------------------------------------------------------------------------------------------
# Predictives, cumulants and leave-one-out: averages over sets of super-parents.
#
# Given super-parents s, counts t added to the cells that a row is in multiply the evidence by
#
# .. math:: E\, p(x \mid \theta, s)^t = \frac{g_s}{g_\emptyset}
#           \prod_{j \notin s} \frac{g_{s \cup j}}{g_s}, \quad
#           g_u = \frac{\Gamma(n_u(x) + t)}{\Gamma(n_u(x))},
#
# with :math:`n_u(x)` the counts and pseudo-counts of the row's cell in the table of the columns u.


def with_children(tables: Layout, one: Array, two: Array) -> Array:
    """(..., S) of logs of tables of super-parents (..., S) and of sets with one more (..., T).

    The table of the super-parents, times that of each other column given them.
    """
    n_children = tables.above.shape[1]
    out: Array = two[..., tables.above].sum(axis=-1) - (n_children - 1) * one
    return out


def _powers(n: Array, prior: Array, t: Array, counted: bool) -> Array:
    """log Gamma(n + prior + t) - log Gamma(n + prior) of counts n; of one row a logarithm.

    `counted`: what leaves (t < 0) was counted, so that the prior is left at least, also where a
    count of 1e15 has rounded it off.
    """
    if np.iscomplexobj(t):
        return log_gamma_difference(n + prior, t)
    if (t == 1).all():
        return np.broadcast_to(np.log(n + prior), np.broadcast_shapes(n.shape, t.shape))
    if not counted:
        return log_gamma_difference(n + prior, t)
    left = np.where(t < 0, np.maximum(n + t, 0.0), n) + prior
    return -np.log(left) if (t == -1).all() else np.sign(t) * log_gamma_difference(left, np.abs(t))


def log_powers(
    f: "DirichletSuperParents", c: int, codes: Array, t: Array, *, counted: bool = False
) -> Array:
    """(..., n, S) log of the mean over the tables of p(x | theta, s)^t, t (..., n or 1)."""
    tables, each = f.layout, t[..., None]
    one, two = (
        _powers(counts[c][at], f.strength[c] * own.share[at], each, counted)
        for own, counts in ((tables.parents, f.parents), (tables.wide, f.cells))
        for at in (own.cells_of(codes),)
    )
    n = np.asarray(f.totals[c] - f.strength[c])
    return with_children(tables, one, two) - _powers(n, f.strength[c], each, counted)


def log_predictive(f: "DirichletSuperParents", codes: Array) -> Array:
    """(N, C) with a compiled kernel for many rows, in which an index serves all classes."""
    tables, n_classes = f.layout, len(f.strength)
    out = np.empty((len(codes), n_classes))
    steps = len(codes) * tables.below.size * n_classes
    if not kernels.pays(steps):
        one = np.ones(1)
        for rows in row_blocks(len(codes), tables.above.size):
            for c in range(n_classes):
                terms = log_powers(f, c, codes[rows], one)
                out[rows, c] = log_sum_exp(f.log_weights[c] + terms)
        return out
    from bayesgen.numerics.kernels.threads import over_blocks
    from bayesgen.numerics.kernels.trees import average

    n_children = tables.above.shape[1]
    strength = f.strength[:, None]
    one = np.log(f.parents + strength * tables.parents.share) * (1 - n_children)
    two = np.log(f.cells + strength * tables.wide.share)
    constant = f.log_weights - np.log(f.totals)[:, None]
    given: Any = (
        *(np.ascontiguousarray(a.T) for a in (one, two, constant)),
        *(tables.parents.columns, tables.parents.strides, tables.parents.first),
        *(tables.wide.columns, tables.wide.strides, tables.wide.first, tables.below),
    )

    def part(start: int, stop: int) -> None:
        average(codes[start:stop], out[start:stop], *given)

    list(over_blocks(part, len(codes), tables.below.size))
    return out


def log_predictive_of_known(f: "DirichletSuperParents", codes: Array, gone: Array) -> Array:
    """(N, C) where cells `gone` (N, D) are summed over, whatever their codes say.

    A column that is no super-parent sums to 1. The super-parents of a set that are gone are filled
    in with each of their codes: they are n at most.
    """
    out = np.empty((len(codes), len(f.strength)))
    patterns, which = np.unique(gone, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == k)
        out[rows] = _of_pattern(f, codes[rows], pattern)
    return out


def _of_pattern(f: "DirichletSuperParents", codes: Array, gone: Array) -> Array:
    """(N, C), the same cells gone in all rows."""
    tables = f.layout
    n_parents = tables.parents.columns.shape[1]
    n_columns = n_parents + tables.above.shape[1]
    gaps = np.intersect1d(np.flatnonzero(gone), tables.wide.columns)
    # the number, sum and sum of squares of the columns of a set that are gone tell up to two
    j = np.arange(len(gone))
    key = 1 + 4 * (j + 4 * len(gone) * j * j)
    lacking = [(gone * key)[t.columns].sum(axis=1) for t in (tables.parents, tables.wide)]
    out = np.full((len(codes), len(f.strength)), -np.inf)
    for filled in (g for m in range(n_parents + 1) for g in combinations(gaps.tolist(), m)):
        sets, known = (np.flatnonzero(lack == key[list(filled)].sum()) for lack in lacking)
        if not len(sets):
            continue
        n_known = n_columns - len(gaps) - (n_parents - len(filled))
        place = np.full(len(tables.wide.first), len(known))
        place[known] = np.arange(len(known))
        above = place[tables.above[sets]]  # tables with columns that are gone: one place, of zeros
        some, wide = tables.parents.part(sets), tables.wide.part(known)
        values = list(product(*(range(f.levels[j]) for j in filled)))
        for rows in row_blocks(len(codes), len(values) * (above.size + 1)):
            each = np.repeat(codes[rows], len(values), axis=0)
            each[:, list(filled)] = np.tile(values, (len(each) // len(values), 1))
            one_at, two_at = some.cells_of(each), wide.cells_of(each)
            for c, (strength, total) in enumerate(zip(f.strength, f.totals, strict=True)):
                one = np.log(f.parents[c][one_at] + strength * tables.parents.share[one_at])
                two = np.log(f.cells[c][two_at] + strength * tables.wide.share[two_at])
                two = np.append(two, np.zeros((len(two), 1)), axis=1)
                terms = two[:, above].sum(axis=2) - (n_known - 1) * one
                terms += f.log_weights[c, sets] - np.log(total)
                found = log_sum_exp(terms.reshape(-1, len(values) * len(sets)))
                out[rows, c] = np.logaddexp(out[rows, c], found)
    return out


def log_predictive_without(
    f: "DirichletSuperParents", codes: Array, y: Array, weight: Array
) -> tuple[Array, Array]:
    """As in `RowRemoval`: of the row's own class the tables, and by evidence also the weights."""
    out, kept = log_predictive(f, codes), np.ones(len(codes))
    for c in range(len(f.strength)):
        own = np.flatnonzero((y == c) & (weight > 0))
        for block in row_blocks(len(own), f.layout.above.size):
            rows = own[block]
            w = weight[rows]
            left = log_powers(f, c, codes[rows], -w, counted=True)
            back: Any = 0.0
            if not (w == 1).all():
                back = log_powers(f, c, codes[rows], 1 - w, counted=True)
            log_w = f.log_weights[c] + (left if f.weights == "evidence" else np.zeros(left.shape))
            out[rows, c] = log_sum_exp(log_w + back - left) - log_sum_exp(log_w)
            largest = np.maximum(np.abs(left).max(axis=-1), w)
            kept[rows] = np.minimum(1.0, (1.0 + np.abs(out[rows, c])) / (1.0 + largest))
    return out, kept


def cgf(f: "DirichletSuperParents", codes: Array, t: Array) -> Array:
    """(..., N), as in `ConjugateFamily.cgf`."""
    dtype = np.complex128 if np.iscomplexobj(t) else np.float64
    size = f.layout.above.size

    def mean(c: int, terms: Array) -> Array:
        log_w = f.log_weights[c]
        if not np.iscomplexobj(terms):
            return log_sum_exp(log_w + terms)
        top = terms.real.max(axis=-1, keepdims=True)
        shift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            out: Array = np.log(np.exp(log_w + terms - shift).sum(axis=-1)) + shift[..., 0]
        return out

    def cell(rows: slice, t: Array) -> Array:
        own = codes[rows]
        out = np.zeros((*t.shape[:-2], len(own)), dtype=dtype)
        for c in range(len(f.strength)):
            tc = t[..., c].astype(dtype)
            if not tc.any():
                continue
            terms = log_powers(f, c, own, tc)
            value = mean(c, terms)
            if dtype is np.complex128:

                def at(some: Array, t: Array, c: int = c) -> Array:
                    return mean(c, log_powers(f, c, own[some], t))

                turn = np.abs(terms.imag).max(axis=-1)
                value = value.real + 1j * followed_argument(at, value.imag, turn, tc, size)
            out += value
        return out

    return cgf_by_rows(cell, len(codes), size, t)
