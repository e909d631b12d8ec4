r"""Categories that depend on each other along a forest, averaged over all forests.

Within class c every column but the roots of a forest T depends on one other column,

.. math:: p(x \mid y=c, \theta, T) = \prod_u p(x_u \mid x_{\text{parent}(u)}),

with the prior :math:`p(T) \propto \rho^{\text{number of roots}}` over all rooted forests, and
Dirichlet tables with pseudo-counts :math:`A/(K_u K_v)` for each pair of categories. These are the
margins of one table for every pair (a hyper-Dirichlet prior), so that the direction of an edge
does not matter, and with W the Dirichlet-multinomial evidences of columns and pairs

.. math:: p(X \mid y=c) = \prod_u W_u \, \frac{Z(w)}{Z(1)}, \quad
          w_{uv} = \frac{W_{uv}}{W_u W_v}, \quad Z(w) = \sum_T \rho^{\dots} \prod_{uv \in T} w_{uv},

the sum over the spanning trees of the columns and one root node (`numerics.spanning_trees`), and
:math:`Z(1) = \rho (\rho + D)^{D-1}`. Large rho is naive Bayes, small rho a single tree.

Sources: Meila and Jaakkola (2000), Tractable Bayesian learning of tree belief networks; Cerquides
and Lopez de Mantaras (2005), TAN classifiers based on decomposable distributions; Friedman, Geiger
and Goldszmidt (1997) for trees within classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.families.conjugate.dirichlet_forest import known_cells, structures
from bayesgen.families.conjugate.dirichlet_forest.statistics import (
    ForestStats,
    count_pairs,
    padded,
)
from bayesgen.families.conjugate.dirichlet_forest.tables import (
    cgf_by_tables,
    log_evidences,
    log_growth,
)
from bayesgen.families.contract import ConjugateFamily, Stats, Theta
from bayesgen.families.errors import UndefinedEstimateError
from bayesgen.families.names import (
    CATEGORY,
    CATEGORY_BIS,
    CLASS,
    FEATURE,
    FEATURE_BIS,
    PARENT_CATEGORY,
    PROBABILITY,
    StructureName,
)
from bayesgen.families.records import array
from bayesgen.families.shared import forest_cumulants, forest_terms, strengths
from bayesgen.families.shared.category_codes import declared_codes
from bayesgen.families.shared.densities import density_by_draws
from bayesgen.families.shared.forests import ForestAverage, best_forest
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array


@dataclass(frozen=True, eq=False)
class DirichletForest(ForestAverage, ConjugateFamily):
    """Categorical features along forests of dependences, with Dirichlet tables.

    X holds the category codes 0 .. K_j - 1.

    Parameters
    ----------
    strength : float or array (class,), > 0, or None
        A: pseudo-counts in the table of any pair of columns, in rows. None: by the evidence of the
        rows, the same for all classes, among powers of the root of 2 from 1/4 to 512.
    root_weight : float or array (class,), > 0, or None
        rho: prior weight of a column that depends on no other, against 1 for each edge. None: by
        the evidence, among D 10^(i/2), i = -5 .. 5.
    levels : array (feature,) of int, or None
        Numbers of categories. None: as many for every feature as the training rows have.
    edges : array broadcasting to (class, feature, feature_bis), or None
        Of an average 0 where two columns cannot be neighbours; else the edges. Symmetric. Rows
        choose those of "tree" and "map".
    pairs : array (class, feature, feature_bis, category, category_bis), or None
        Counts behind a posterior. None: zeros, a prior.
    structure : {"average", "tree", "map", "fixed"}
        ``"average"``: over all forests that `edges` allow. ``"tree"``: the one tree of the largest
        evidence of the training rows in each class, ``"map"`` the one rooted forest, both
        plugged in. ``"fixed"``: `edges` are the forest.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [1, 1], [0, 0], [1, 1]])
    >>> family = DirichletForest(strength=4.0, root_weight=1.0)
    >>> stats = family.stats(X, np.zeros(4, dtype=int), n_classes=1)
    >>> posterior = family.resolve(stats).update(stats)
    >>> np.exp(posterior.log_predictive(np.array([[0, 0], [0, 1]]))).round(3)
    array([[0.355],
           [0.145]])
    """

    describes: ClassVar[str] = PROBABILITY
    positions: ClassVar[tuple[str, ...]] = ("parents",)
    holds: ClassVar[str] = "code"
    kind: ClassVar[str] = "binned"
    statistics: ClassVar[type[Stats]] = ForestStats
    tunable: ClassVar[tuple[str, ...]] = ("strength", "root_weight")
    pseudo_counts: ClassVar[tuple[str, ...]] = ("strength",)
    missing: ClassVar[str] = (
        "which columns depend on each other is known from complete pairs alone: pairwise counts of "
        "incomplete rows have no common margins"
    )
    no_pymc: ClassVar[str] = (
        "the forest is a discrete parameter; TreeAugmentedNB.to_pymc(structure=...) is the model "
        "of the tables for given forests, or of the mixture over all of few columns"
    )

    strength: Any = array(CLASS, default=None)
    root_weight: Any = array(CLASS, default=None)
    levels: Any = array(FEATURE, default=None)
    edges: Any = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    pairs: Any = array(CLASS, FEATURE, FEATURE_BIS, CATEGORY, CATEGORY_BIS, default=None)
    structure: StructureName = "average"

    # methods with a page of their own
    draw = structures.draw

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``parents``: position of the column that each depends on, -1 for a root; ``tables``."""
        return {
            "parents": (CLASS, FEATURE),
            "tables": (CLASS, FEATURE, PARENT_CATEGORY, CATEGORY),
        }

    # -- rows ------------------------------------------------------------------------------------

    def codes(self, X: Any) -> Array:
        """(N, D) int64 codes, all declared.

        Raises
        ------
        ValueError
            At a missing cell, or a number that is no code of its feature.
        """
        return declared_codes(X, self.levels, self.missing)

    def stats(self, X: Any, y: Array, n_classes: int, weight: Array | None = None) -> ForestStats:
        """Counts of pairs of categories."""
        X = np.asarray(X)
        if self.levels is not None:
            levels = np.asarray(self.levels)
        else:
            top = np.fmax.reduce(X, axis=None, initial=0) if X.size else 0
            levels = np.full(X.shape[1], int(top) + 1)
        codes = replace(self, levels=levels).codes(X)
        return ForestStats(count_pairs(codes, y, n_classes, int(levels.max()), weight))

    def log_likelihood(self, X: Any, theta: Theta) -> Array:
        """(..., N, C) sum of the log probabilities of the cells given their parents' codes."""
        return structures.log_likelihood(self.codes(X), dict(theta), self.levels)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """(N, D) codes, as int64: roots first, then what depends on them."""
        n_features, width = self.pairs.shape[1], self.pairs.shape[-1]
        out = np.empty((len(y), n_features), dtype=np.int64)
        for rows in row_blocks(len(y), n_features * width**2):
            one_each = np.ndim(theta["parents"]) > 2
            part = {k: theta[k][rows] if one_each else theta[k] for k in ("parents", "tables")}
            parents, tables = (self.rows_of(part, name, y[rows]) for name in part)
            out[rows] = structures.simulate(rng, parents, tables, self.levels)
        return out

    # -- prior and posterior ---------------------------------------------------------------------

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Three categories, a flat prior; two to four with weights by class; allowed edges."""
        flat = cls(np.full(n_classes, 6.0), np.full(n_classes, 2.0), np.full(n_features, 3))
        levels = 2 + np.arange(n_features) % 3
        ragged = cls(5.0 + np.arange(n_classes), 0.3 * (1 + np.arange(n_classes)), levels)
        near = np.abs(np.arange(n_features)[:, None] - np.arange(n_features)) <= 2
        banded = cls(9.0, 1.0, np.full(n_features, 3), near)
        k = [3, int(levels.max(initial=2)), 3]
        shape = (n_classes, n_features, n_features)
        return [
            f.resolve(ForestStats(np.zeros((*shape, n, n))))
            for f, n in zip((flat, ragged, banded), k, strict=True)
        ]

    def resolve(self, stats: ForestStats) -> Self:
        """Numbers of categories, edges, and the strengths by the evidence where they are None."""
        n_classes, n_features, _, k, _ = stats.pairs.shape
        levels = np.full(n_features, k) if self.levels is None else np.asarray(self.levels)
        if levels.shape != (n_features,):
            raise ValueError(f"levels has {levels.size} entries for {n_features} features")
        width = int(levels.max())
        seen = padded(stats.pairs, width)
        if seen.shape[-1] > width and seen[..., width:].any():
            raise ValueError(f"the rows have codes beyond the {width} declared categories")
        pairs = np.zeros((*seen.shape[:3], width, width)) if self.pairs is None else self.pairs
        edges = self.given_edges(n_classes, n_features, self.pairs is not None)
        strength, root_weight = (
            None if value is None else broadcast_prior(name, value, (n_classes,))
            for name, value in (("strength", self.strength), ("root_weight", self.root_weight))
        )
        known = replace(
            self,
            strength=strength,
            root_weight=root_weight,
            levels=levels,
            pairs=pairs,
            edges=edges,
        )
        known = known._with_strengths(seen[..., :width, :width])
        if not self.chooses or self.edges is not None:
            return known
        best = known.update(ForestStats(seen)).edges
        return replace(known, edges=best)

    def _with_strengths(self, seen: Array) -> Self:
        """Strength and root weight at the largest evidence of counts (C, D, D, K, K)."""
        free = (self.strength is None, self.root_weight is None)
        if not any(free):
            return self
        n_classes, n_features = seen.shape[:2]

        def known(strength: float, root_weight: float):  # type: ignore[no-untyped-def] # Self
            values = [np.full(n_classes, v) for v in (strength, root_weight)]
            given = (self.strength, self.root_weight)
            both = [v if free[i] else given[i] for i, v in enumerate(values)]
            return replace(self, strength=both[0], root_weight=both[1])

        if not seen.any():
            return known(*strengths.value(n_features, strengths.START))
        stats = ForestStats(seen)
        # a single tree has no use for roots
        looked_for = (free[0], free[1] and self.structure in ("average", "map"))
        tables: dict[float, Any] = {}

        looking = self.chooses and self.edges.shape[-1] == 1

        def evidence(strength: float, root_weight: float) -> float:
            if strength not in tables:
                tables[strength] = known(strength, 1.0)._evidences(self.pairs + stats.pairs)
            prior = known(strength, root_weight)
            if not looking:
                return float(prior._log_joint(tables[strength]).sum())
            rho = None if self.structure == "tree" else root_weight
            best = sum(
                float(single.sum()) + best_forest(w, rho)[1] for single, w in tables[strength]
            )
            forests = np.log(root_weight) + (n_features - 1) * np.log(root_weight + n_features)
            return best if rho is None else best - n_classes * float(forests)

        return known(*strengths.search(evidence, n_features, looked_for))

    def update(self, stats: ForestStats) -> Self:
        """The counts of pairs added; by them a forest that rows choose is chosen anew."""
        width = self.pairs.shape[-1]
        beyond = padded(stats.pairs, width)
        outside = np.arange(beyond.shape[-1]) >= self.levels[:, None]
        if (beyond.sum(axis=(0, 2, 4)) * outside).any():
            raise ValueError("a feature has codes beyond its declared categories")
        new = replace(self, pairs=self.pairs + beyond[..., :width, :width])
        return replace(new, edges=new.chosen(new.log_weights)) if self.chooses else new

    # -- closed forms ----------------------------------------------------------------------------

    def _evidences(self, pairs: Array) -> list[tuple[Array, Array]]:
        """(D,) log W_u and (D, D) log w_uv of each class."""
        return [log_evidences(p, a, self.levels) for p, a in zip(pairs, self.strength, strict=True)]

    def _log_joint(self, evidences: Sequence[tuple[Array, Array]]) -> Array:
        """(C,) log evidences, the forest integrated out."""
        singles, log_w = zip(*evidences, strict=True)
        return self.log_sums(np.array(singles), np.array(log_w))

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.levels)

    @property
    def log_weights(self) -> list[Array]:
        """Of each class (D, D) log weights of the edges, given the counts."""
        return [log_w for _, log_w in self._evidences(self.pairs)]

    @cached_property
    def totals(self) -> Array:
        """(C,) pseudo-counts and counts of all rows of a class."""
        rows: Array = self.pairs[:, 0, 0].sum(axis=(1, 2))
        return rows + self.strength

    def log_evidence(self, stats: ForestStats) -> float:
        """Sum over classes of the log evidence of all rows less that of those known before."""
        width = self.pairs.shape[-1]
        own = padded(stats.pairs, width)[..., :width, :width]
        if not own.any():
            return 0.0
        total, before = (
            self._log_joint(self._evidences(p)) for p in (self.pairs + own, self.pairs)
        )
        return float((total - before).sum())

    def log_predictive(self, X: Any) -> Array:
        """(N, C) product of the columns' posterior means times a ratio of two sums over forests."""
        codes, unit = self.codes(X), np.eye(len(self.pairs))
        found = cgf_by_tables(self, codes, unit.sum(axis=0))
        if found is not None:
            return found
        return np.stack([forest_cumulants.cgf(self, codes, e) for e in unit], axis=1)

    def log_predictive_of_known(self, X: Array) -> tuple[Array, Array]:
        """(N, C) of codes with missing cells (NaN) summed out, and its standard error.

        Exact for one forest per class; of an average by draws of forests (`known_cells`).
        """
        return known_cells.log_predictive(self, np.asarray(X, dtype=np.float64))

    def log_likelihood_of_known(self, X: Array, theta: Theta) -> Array:
        """(..., N, C) of codes with missing cells (NaN) summed out, exactly."""
        parents = np.asarray(theta["parents"]).astype(np.int64)
        tables = np.asarray(theta["tables"], dtype=np.float64)
        gone = np.isnan(X).any(axis=1)
        out = np.empty((*parents.shape[:-2], len(X), parents.shape[-2]))
        if not gone.all():
            out[..., ~gone, :] = self.log_likelihood(X[~gone], theta)
        flat = parents.reshape(-1, parents.shape[-1]), tables.reshape(-1, *tables.shape[-3:])
        found = known_cells.log_likelihood(X[gone], *flat).reshape(*parents.shape[:-1], -1)
        out[..., gone, :] = np.moveaxis(found, -1, -2)
        return out

    def cgf(self, X: Any, t: Array) -> Array:
        """In closed form: the row's tables with t more counts (`forest_cumulants`)."""
        codes = self.codes(X)
        found = cgf_by_tables(self, codes, np.asarray(t))
        return forest_cumulants.cgf(self, codes, t) if found is None else found.sum(axis=1)

    def changes(self, c: int, cells: Array, t: Array) -> tuple[Array, Array]:
        """By counts of t in the cells of rows of codes."""
        i, j = self.neighbours[c]
        column = np.arange(cells.shape[1])
        strength, total = self.strength[c], self.totals[c]
        single = self.pairs[c][column, column, cells, cells] + strength / self.levels
        both = self.pairs[c][i, j, cells[:, i], cells[:, j]]
        both = both + strength / (self.levels[i] * self.levels[j])
        one, two, all_rows = (log_growth(a, t[..., None]) for a in (single, both, total))
        edges = two - one[..., i] - one[..., j] + all_rows
        return one - all_rows, edges

    cells = codes

    def terms_given(self, X: Any, theta: Theta, c: int) -> Array:
        """By the margins that the tables have along the forest."""
        parents, tables = np.asarray(theta["parents"]), np.asarray(theta["tables"])
        return forest_terms.of_tables(self.codes(X), parents[..., c, :], tables[..., c, :, :, :])

    # -- theta -----------------------------------------------------------------------------------

    def draw_log_density(self, rng: np.random.Generator, X: Any, n: int) -> Array:
        """(n, N, C) without the tables of other cells than the rows' (`DensityDraws`)."""
        return structures.draw_log_density(self, rng, self.codes(X), n)

    def log_density(self, theta: Theta) -> Array:
        """(...) log probability of the forests plus log density of the tables given them."""
        return density_by_draws(lambda t: structures.log_density(self, t), theta, self.params)

    def mle(self, stats: ForestStats) -> dict[str, Array]:
        """Forest of the largest likelihood (Chow and Liu 1968), relative frequencies in it."""
        width = self.pairs.shape[-1]
        own = padded(stats.pairs, width)[..., :width, :width]
        return structures.mle(own, self.levels, self.edges)

    def map(self) -> dict[str, Array]:
        """Refused: probabilities of forests and densities of their tables have no common mode."""
        raise UndefinedEstimateError(
            "map",
            "forests have tables of different dimensions, whose densities cannot be compared; "
            "structure='map' plugs in the most probable forest",
        )
