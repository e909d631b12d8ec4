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

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import rel_entr

from bayesgen.errors import refuse_unknown
from bayesgen.families.contract import ConjugateFamily, Stats, Theta, padded
from bayesgen.families.errors import UndefinedEstimateError, refuse_undefined
from bayesgen.families.names import (
    CATEGORY,
    CATEGORY_BIS,
    CLASS,
    FEATURE,
    FEATURE_BIS,
    PARENT_CATEGORY,
    StructureName,
)
from bayesgen.families.records import Hyperparameter, array
from bayesgen.families.shared.codes import declared_codes
from bayesgen.families.shared.densities import density_by_draws, log_dirichlet_density
from bayesgen.families.shared.hyperparameters import broadcast_prior
from bayesgen.numerics import special
from bayesgen.numerics.rows import Seed, draws_of_each_row, row_blocks
from bayesgen.numerics.spanning_trees import (
    Elimination,
    best_forest,
    depths,
    draw_roots,
    graph,
    heaviest_tree,
    log_sum_of_trees,
)
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Counts of pairs of categories: all that the average over forests needs of rows.

_MOST_CELLS = 1 << 30  # of the tables of all classes: 8.6 GB of counts


@dataclass(frozen=True, eq=False)
class ForestStats(Stats):
    """Weighted counts of each pair of categories of each pair of features.

    The table of a feature and itself is diagonal: the counts of its categories.
    """

    pairs: Array = array(CLASS, FEATURE, FEATURE_BIS, CATEGORY, CATEGORY_BIS)


def count_pairs(codes: Array, y: Array, n_classes: int, k: int, weight: Array | None) -> Array:
    """Return (C, D, D, k, k) weighted counts of codes (N, D) in 0 .. k-1."""
    n_features = codes.shape[1]
    n = n_classes * (n_features * k) ** 2
    if n > _MOST_CELLS:
        raise ValueError(
            f"the pairs of {n_features} columns of up to {k} categories need {n:.1e} counts, "
            f"{8e-9 * n:.1f} GB; the limit is {_MOST_CELLS:.1e}. Use fewer columns, or fewer bins "
            "and categories"
        )
    pairs = np.zeros((n_classes, n_features * k, n_features * k))
    for c in range(n_classes):
        members = np.flatnonzero(y == c)
        for block in row_blocks(len(members), n_features * k):
            rows = members[block]
            cells = np.zeros((len(rows), n_features, k))
            np.put_along_axis(cells, codes[rows][..., None], 1.0, axis=2)
            flat = cells.reshape(len(rows), -1)
            pairs[c] += (flat if weight is None else flat * weight[rows, None]).T @ flat
    shape = (n_classes, n_features, k, n_features, k)
    return np.ascontiguousarray(pairs.reshape(shape).transpose(0, 1, 3, 2, 4))


def margins(pairs: Array) -> Array:
    """Return (..., D, K) counts of single columns from those of pairs (..., D, D, K, K)."""
    column, code = np.arange(pairs.shape[-3]), np.arange(pairs.shape[-1])
    counts: Array = pairs[..., column[:, None], column[:, None], code, code]
    return counts


# ------------------------------------------------------------------------------------------------
# Forests and tables given them: draws, densities, estimates, new rows.
#
# A forest is the parent of each column, -1 for a root; its tables are p(x_u | x_parent), with the
# margin of a root in the row of parent code 0.


def real_cells(levels: Array, parents: Array, k: int) -> Array:
    """Return (..., D, K, K) bool: where tables of forests (..., D) have cells and no padding."""
    contexts = np.where(parents < 0, 1, levels[parents])
    codes = np.arange(k)
    rows: Array = codes < contexts[..., None]
    return rows[..., None] & (codes < levels[:, None])[:, None, :]


def concentrations(f: "DirichletForest", c: int, parents: Array) -> Array:
    """Return (n, D, K, K) concentrations of the tables of forests (n, D); 0 in the padding."""
    k, levels = f.pairs.shape[-1], f.levels
    column = np.arange(len(levels))
    root = parents < 0
    other = np.where(root, column, parents)
    counts = f.pairs[c][other, column]  # of a root: the diagonal table of the column itself
    margin = np.zeros_like(counts)
    margin[:, :, 0] = counts[..., np.arange(k), np.arange(k)]
    n = np.where(root[..., None, None], margin, counts)
    prior = f.strength[c] / np.where(root, levels, levels[other] * levels)
    return np.where(real_cells(levels, parents, k), n + prior[..., None, None], 0.0)


# ------------------------------------------------------------------------------------------------
# Evidences of single columns and of pairs: the weights of the forests.
#
# With pseudo-counts :math:`A/(K_u K_v)` for a pair and :math:`A/K_u` for a column, which are its
# margins, W is the Dirichlet-multinomial evidence of a table, and a forest has the evidence
# :math:`\prod_u W_u \prod_{uv} w_{uv}` with :math:`w_{uv} = W_{uv}/(W_u W_v)`.
# Source: Heckerman, Geiger and Chickering (1995), section 5; Meila and Jaakkola (2000).


def log_evidences(pairs: Array, strength: float, levels: Array) -> tuple[Array, Array]:
    """Return (D,) log W_u and (D, D) log w_uv of one class.

    Parameters
    ----------
    pairs : (D, D, K, K) counts
    strength : float
        A, in rows.
    levels : (D,) numbers of categories
    """
    n_features, k = len(levels), pairs.shape[-1]
    margin = margins(pairs)
    total = special.log_gamma_difference(strength, margin.sum(axis=1))
    single = special.log_gamma_difference((strength / levels)[:, None], margin).sum(axis=1) - total
    i, j = np.tril_indices(n_features, -1)
    flat = pairs[i, j].ravel()
    cell = np.flatnonzero(flat > 0)  # few where a column has many categories; others add 0
    pair = cell // k**2
    pseudo = (strength / (levels[i] * levels[j]))[pair]
    both = np.zeros((n_features, n_features))
    both[i, j] = np.bincount(pair, special.log_gamma_difference(pseudo, flat[cell]), len(i))
    return single, both + both.T - total - single[:, None] - single


# ------------------------------------------------------------------------------------------------
# Evidence of all rows with more of one row, theta integrated out.
#
# Under a forest T the density of a row is a product over columns and edges, and so is the evidence
# of all rows. With W(D) and w(D) the evidences of columns and the weights of edges given data D,
# and W(D + t x) those after a row of weight t, which may be negative,
#
# .. math:: E\, p(x \mid \theta)^t = \prod_u \frac{W_u(D + t x)}{W_u(D)}
#           \frac{Z\{w(D + t x)\}}{Z\{w(D)\}}.


def log_gamma_growth(a: Array, t: Array) -> Array:
    """Return `log_gamma_difference`, for t = 1 and -1 by one logarithm."""
    if (np.abs(t) != 1).any():
        return special.log_gamma_difference(a, t)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(t * np.log(a + np.minimum(t, 0)))


class Growth(NamedTuple):
    """What n rows with weights of their own add to log evidences of columns and to log weights.

    It is told by tables, so that rows of equal weight share a table.
    """

    columns: Array  # (T, D, K)
    edges: Array  # (T, P, K, K)
    which: Array  # (n,) table of each row
    codes: Array  # (n, D)

    def of_columns(self) -> Array:
        """Return (n, D)."""
        return self.columns[self.which[:, None], np.arange(self.codes.shape[1]), self.codes]

    def of_edges(self, i: Array, j: Array) -> Array:
        """Return (n, P) of the pairs of columns i and j (P,)."""
        ends = self.codes[:, i], self.codes[:, j]
        return self.edges[self.which[:, None], np.arange(len(i)), *ends]


def digits_left(difference: Array, base: Array, weight: Array) -> Array:
    """Return the share of digits that a difference of evidences keeps; at most 1."""
    largest = np.maximum(np.abs(base), weight)  # within them too there are terms as large as w
    return np.asarray(np.minimum(1.0, (1.0 + np.abs(difference)) / (1.0 + largest)))


# ------------------------------------------------------------------------------------------------
# Strength of the tables and weight of roots by the evidence, on a fixed lattice.

# half octaves of A, in rows, and half decades of the root weight over the number of columns: a
# lattice, so that chunks, merges and any order of classes lead to the same numbers
_OCTAVES = (-4, 18)
_DECADES = (-5, 5)
START = (6, 0)  # A = 8 rows, root weight = number of columns: half the columns are roots


def lattice_value(n_features: int, point: tuple[int, int]) -> tuple[float, float]:
    """Return a and root weight at a point of the lattice."""
    return float(2.0 ** (point[0] / 2)), float(n_features * 10.0 ** (point[1] / 2))


def search_lattice(
    evidence: Callable[[float, float], float],
    n_features: int,
    free: tuple[bool, bool] = (True, True),
) -> tuple[float, float]:
    """Return the point of the largest evidence: a pattern search with steps of 4, 2 and 1.

    Parameters
    ----------
    evidence : function of A and root weight
    n_features : int
    free : whether each of the two is looked for; else it stays at `START`.
    """
    evidence_of = cache(lambda point: evidence(*lattice_value(n_features, point)))
    best = START
    for step in (4, 2, 1):
        moved = True
        while moved:
            moved = False
            for axis, sign in itertools.product(np.flatnonzero(free), (1, -1)):
                move = sign * step
                near = best[0] + move * (axis == 0), best[1] + move * (axis == 1)
                inside = _OCTAVES[0] <= near[0] <= _OCTAVES[1]
                inside &= _DECADES[0] <= near[1] <= _DECADES[1]
                # rounding must not decide between two points
                least = evidence_of(best) + 1e-9 * (1 + abs(evidence_of(best)))
                if inside and evidence_of(near) > least:
                    best, moved = near, True
    return lattice_value(n_features, best)


# ------------------------------------------------------------------------------------------------
# The family.


@dataclass(frozen=True, eq=False)
class DirichletForest(ConjugateFamily):
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

    positions: ClassVar[tuple[str, ...]] = ("parents",)
    holds: ClassVar[str] = "code"
    kind: ClassVar[str] = "binned"
    statistics: ClassVar[type[Stats]] = ForestStats
    tunable: ClassVar[tuple[str, ...]] = ("strength", "root_weight")
    fits_missing: ClassVar[bool] = False
    no_pymc: ClassVar[str] = (
        "the forest is a discrete parameter; TreeAugmentedNB.to_pymc(structure=...) is the model "
        "of the tables for given forests, or of the mixture over all of few columns"
    )

    strength: Hyperparameter = array(CLASS, default=None)
    root_weight: Hyperparameter = array(CLASS, default=None)
    levels: Hyperparameter = array(FEATURE, default=None)
    edges: Hyperparameter = array(CLASS, FEATURE, FEATURE_BIS, default=None)
    pairs: Hyperparameter = array(CLASS, FEATURE, FEATURE_BIS, CATEGORY, CATEGORY_BIS, default=None)
    structure: StructureName = "average"

    @property
    def params(self) -> dict[str, tuple[str, ...]]:
        """``parents``: position of the column that each depends on, -1 for a root; ``tables``."""
        return {
            "parents": (CLASS, FEATURE),
            "tables": (CLASS, FEATURE, PARENT_CATEGORY, CATEGORY),
        }

    # -- rows ------------------------------------------------------------------------------------

    def codes(self, X) -> Array:
        """Return (N, D) int64 codes, all declared.

        Raises
        ------
        ValueError
            At a missing cell, or a number that is no code of its feature.
        """
        why = (
            "which columns depend on each other is known from complete pairs alone: pairwise "
            "counts of incomplete rows have no common margins"
        )
        return declared_codes(X, self.levels, why)

    def stats(self, X, y: Array, n_classes: int, weight: Array | None = None) -> ForestStats:
        """Counts of pairs of categories."""
        X = np.asarray(X)
        if self.levels is not None:
            levels = np.asarray(self.levels)
        else:
            top = np.fmax.reduce(X, axis=None, initial=0) if X.size else 0
            levels = np.full(X.shape[1], int(top) + 1)
        codes = replace(self, levels=levels).codes(X)
        return ForestStats(count_pairs(codes, y, n_classes, int(levels.max()), weight))

    def log_likelihood(self, X, theta: Theta) -> Array:
        """Add up the log probabilities of cells given their parents' codes: (..., N, C)."""
        X, parents = np.asarray(X), np.asarray(theta["parents"]).astype(np.int64)
        *lead, n_features = parents.shape
        parents = parents.reshape(-1, n_features)
        width = self.pairs.shape[-1]
        tables = np.reshape(theta["tables"], (len(parents), n_features, width, width))
        log_p = np.empty((len(parents), len(X)))
        has_gaps = np.isnan(X).any(axis=1)
        log_p[:, has_gaps] = log_likelihood_of_known(X[has_gaps], parents, tables)
        column, complete = np.arange(n_features), np.flatnonzero(~has_gaps)
        codes = self.codes(X[complete])
        for rows in row_blocks(len(codes), n_features):
            block = codes[rows]
            for log_p_of_draw, up, table in zip(log_p, parents, tables, strict=True):
                above = np.where(up < 0, 0, block[:, up])
                with np.errstate(divide="ignore"):
                    log_p_of_draw[complete[rows]] = np.log(table[column, above, block]).sum(axis=1)
        return np.moveaxis(log_p.reshape(*lead, len(X)), -1, -2)

    def simulate(self, rng: np.random.Generator, theta: Theta, y: Array) -> Array:
        """Return (N, D) codes, as int64: roots first, then what depends on them."""
        row = np.arange(len(y))
        of_row = (row, y) if np.ndim(theta["parents"]) > 2 else (y,)
        parents = np.asarray(theta["parents"])[of_row].astype(np.int64)
        depth = depths(parents)
        if (depth == self.n_columns).any():
            raise ValueError("parents: a column depends on itself through others")
        codes = np.zeros(parents.shape, dtype=np.int64)
        uniform = rng.random(parents.shape)
        for u in np.argsort(depth, axis=1, kind="stable").T:
            up = parents[row, u]
            p = theta["tables"][*of_row, u, np.where(up < 0, 0, codes[row, up])]
            upto = np.cumsum(p, axis=-1)  # the sum may miss 1 by rounding
            drawn = (uniform[row, u, None] * upto[:, -1:] >= upto[:, :-1]).sum(axis=-1)
            codes[row, u] = np.minimum(drawn, self.levels[u] - 1)
        return codes

    # -- forests ---------------------------------------------------------------------------------

    @property
    def chooses(self) -> bool:
        """Return whether the rows choose the forest."""
        return self.structure in ("tree", "map")

    @property
    def is_forest(self) -> bool:
        """Return whether `edges` are the edges of one forest, and not those that may be."""
        return self.structure != "average"

    @property
    def no_evidence(self) -> str:
        """Return why a forest that the same rows chose has no evidence."""
        if not self.chooses:
            return ""
        return (
            f"structure={self.structure!r} has chosen the forests from the same rows, whose "
            "density given them is too high by what the choice fits; structure='average' has an "
            "evidence"
        )

    @cached_property
    def neighbours(self) -> list[tuple[Array, ...]]:
        """Pairs of columns that may be neighbours in each class, the later column first."""
        return [np.nonzero(np.tril(edges, -1) > 0) for edges in self.edges]

    @cached_property
    def graphs(self) -> Array:
        """Return (C, D + 1, D + 1) log weights of each class, the root first."""
        return graph(self.log_weights, self.root_weight, self.edges)

    @cached_property
    def eliminations(self) -> list[Elimination]:
        """Return the elimination of the graph of each class."""
        return [Elimination(log_w) for log_w in self.graphs]

    def _heaviest(self, log_weights: Array) -> list[tuple[Array, float]]:
        """Return edges (D, D) and log weight of the forest that rows choose in each class."""
        roots = self.root_weight if self.structure == "map" else [None] * len(self.root_weight)
        return [best_forest(log_w, rho) for log_w, rho in zip(log_weights, roots, strict=True)]

    def other_scales(self, given: Self, stats) -> dict[str, Self]:
        """No edges: no root weight within reach of the search undoes edges that are certain."""
        if self.is_forest or given.root_weight is not None:
            return {}
        return {"no edges": replace(self, edges=np.zeros_like(self.edges))}

    def given_edges(self, n_classes: int, n_features: int, resolved: bool) -> Array:
        """Return (C, D, D) `edges`, checked; ones where all are allowed.

        `resolved`: the family is resolved, and a forest that rows choose is in its `edges`.
        """
        refuse_unknown("structure", self.structure, get_args(StructureName))
        if self.chooses and self.edges is not None and not resolved:
            raise ValueError(
                f"structure={self.structure!r} chooses the edges by the rows: give edges= with "
                "structure='fixed', or with 'average' those that may be"
            )
        if self.edges is None and self.structure == "fixed":
            raise ValueError("structure='fixed' needs edges=: which columns are neighbours")
        weights = np.asarray(1.0 if self.edges is None else self.edges, dtype=np.float64)
        try:
            edges = np.array(np.broadcast_to(weights, (n_classes, n_features, n_features)))
        except ValueError:
            raise ValueError(
                f"edges has shape {weights.shape}: it must be a matrix ({n_features}, "
                f"{n_features}) of the columns, 1 where two are neighbours, else 0, or one for "
                "each class"
            ) from None
        if (edges != np.swapaxes(edges, 1, 2)).any():
            raise ValueError("edges must be symmetric: an edge has no direction")
        edges[:, np.arange(n_features), np.arange(n_features)] = 0.0
        if self.edges is None or not self.is_forest:
            return edges
        n_trees = [connected_components(e, directed=False)[0] for e in edges]
        if (np.count_nonzero(edges, axis=(1, 2)) // 2 + n_trees != n_features).any():
            raise ValueError(
                f"structure={self.structure!r}: edges must be a matrix (D, D) without cycles; "
                "structure='average' averages over the forests among them"
            )
        return edges

    def edge_probabilities(self) -> Array:
        """Return (C, D, D) posterior probability that two columns are neighbours."""
        if self.is_forest:
            return np.array(self.edges)
        return np.array([e.edge_probabilities()[1:, 1:] for e in self.eliminations])

    def root_probabilities(self) -> Array:
        """Return (C, D) posterior probability that a column is the root of its tree."""
        if self.is_forest:
            labels = (connected_components(e, directed=False)[1] for e in self.edges)
            return np.array([1.0 / np.bincount(label)[label] for label in labels])
        return np.array([e.edge_probabilities()[0, 1:] for e in self.eliminations])

    def draw_parents(self, rng: np.random.Generator, n: int, c: int) -> Array:
        """Return (n, D) forests of class c in proportion to their weights."""
        if self.is_forest:
            return draw_roots(rng, self.edges[c] > 0, n)
        return self.eliminations[c].draw(rng, n)[:, 1:] - 1

    def log_probability(self, c: int, parents: Array) -> Array:
        """Return (n,) log probabilities of forests (n, D) of class c."""
        column = np.arange(self.n_columns)
        if self.is_forest:  # with all edges, rooted anywhere
            edges, root = self.edges[c] > 0, np.log(self.root_probabilities()[c])
            is_edge = np.where(edges, 0.0, -np.inf)[column, parents]
            log_p = np.where(parents < 0, root, is_edge).sum(axis=1)
            log_p[2 * (parents >= 0).sum(axis=1) < np.count_nonzero(edges)] = -np.inf
        else:
            log_weight = self.graphs[c][column + 1, parents + 1].sum(axis=-1)
            log_p = log_weight - log_sum_of_trees(self.graphs[c])
        has_cycle = (depths(parents) == self.n_columns).any(axis=1)
        log_probability: Array = np.where(has_cycle, -np.inf, log_p)
        return log_probability

    # -- prior and posterior ---------------------------------------------------------------------

    @classmethod
    def examples(cls, n_classes: int, n_features: int) -> list[Self]:
        """Three categories, a flat prior; two to four with weights by class; allowed edges."""
        flat = cls(np.full(n_classes, 6.0), np.full(n_classes, 2.0), np.full(n_features, 3))
        levels = 2 + np.arange(n_features) % 3
        ragged = cls(5.0 + np.arange(n_classes), 0.3 * (1 + np.arange(n_classes)), levels)
        near = np.abs(np.arange(n_features)[:, None] - np.arange(n_features)) <= 2
        banded = cls(9.0, 1.0, np.full(n_features, 3), near)
        nothing = ForestStats(np.zeros((n_classes, n_features, n_features, 1, 1)))
        return [family.resolve(nothing) for family in (flat, ragged, banded)]

    def resolve(self, stats: ForestStats) -> Self:
        """Numbers of categories, edges, and the strengths by the evidence where they are None."""
        n_classes, n_features, _, k, _ = stats.pairs.shape
        levels = np.full(n_features, k) if self.levels is None else np.asarray(self.levels)
        if levels.shape != (n_features,):
            raise ValueError(f"levels has {levels.size} entries for {n_features} features")
        edges = self.given_edges(n_classes, n_features, self.pairs is not None)
        strength, root_weight = (
            None if value is None else broadcast_prior(name, value, (n_classes,))
            for name, value in (("strength", self.strength), ("root_weight", self.root_weight))
        )
        resolved = replace(
            self, strength=strength, root_weight=root_weight, levels=levels, edges=edges
        )
        seen = resolved._counts(stats)
        if self.pairs is None:
            resolved = replace(resolved, pairs=np.zeros_like(seen))
        is_chosen = not self.chooses or self.edges is not None
        resolved = resolved._with_strengths(seen, is_chosen)
        if is_chosen:
            return resolved
        return replace(resolved, edges=resolved.update(ForestStats(seen)).edges)

    def _with_strengths(self, seen: Array, is_chosen: bool) -> Self:
        """Strength and root weight at the largest evidence of counts (C, D, D, K, K).

        `is_chosen`: the forests are not those of the largest evidence, but known.
        """
        is_free = (self.strength is None, self.root_weight is None)
        if not any(is_free):
            return self
        n_classes, n_features = seen.shape[:2]

        def with_values(*values: float):  # Self
            each = [np.full(n_classes, value) for value in values]
            return replace(
                self,
                strength=each[0] if is_free[0] else self.strength,
                root_weight=each[1] if is_free[1] else self.root_weight,
            )

        if not seen.any():
            return with_values(*lattice_value(n_features, START))

        @cache
        def evidences(strength: float) -> tuple[Array, Array]:
            return with_values(strength, 1.0)._evidences(self.pairs + seen)

        def log_joint(strength: float, root_weight: float) -> float:
            family = with_values(strength, root_weight)
            return float(family._log_joint(*evidences(strength), is_chosen).sum())

        # a single tree has no use for roots
        looked_for = (is_free[0], is_free[1] and self.structure in ("average", "map"))
        return with_values(*search_lattice(log_joint, n_features, looked_for))

    def _counts(self, stats: ForestStats) -> Array:
        """Return (C, D, D, K, K) counts of the declared categories."""
        width = int(self.levels.max())
        counts = padded(stats.pairs, width, 2)
        is_outside = np.arange(counts.shape[-1]) >= self.levels[:, None]
        if (counts.sum(axis=(0, 2, 4)) * is_outside).any():
            raise ValueError("a feature has codes beyond its declared categories")
        return counts[..., :width, :width]

    def update(self, stats: ForestStats) -> Self:
        """Return the counts of pairs added; by them a forest that rows choose is chosen anew."""
        new = replace(self, pairs=self.pairs + self._counts(stats))
        if not self.chooses:
            return new
        return replace(new, edges=np.array([edges for edges, _ in new._heaviest(new.log_weights)]))

    # -- closed forms ----------------------------------------------------------------------------

    def _evidences(self, pairs: Array) -> tuple[Array, Array]:
        """Return (C, D) log W_u and (C, D, D) log w_uv."""
        classes = zip(pairs, self.strength, strict=True)
        single, log_w = zip(*(log_evidences(p, a, self.levels) for p, a in classes), strict=True)
        return np.array(single), np.array(log_w)

    def _log_joint(self, single: Array, log_w: Array, is_chosen: bool = True) -> Array:
        """Return (C,) log evidences, the forest integrated out, or the best (not `is_chosen`).

        That is the log of the sum over forests of prior weight times evidence, less the log of the
        prior's sum.
        """
        alone: Array = single.sum(axis=1)
        if self.is_forest and is_chosen:
            return alone + np.where(np.tril(self.edges) > 0, log_w, 0.0).sum(axis=(1, 2))
        if is_chosen:
            both = np.stack([log_w, np.zeros_like(log_w)])
            total, prior = log_sum_of_trees(graph(both, self.root_weight, self.edges))
        else:  # among all forests, of which the sum is known
            total = np.array([weight for _, weight in self._heaviest(log_w)])
            rho, d = self.root_weight, self.n_columns
            prior = np.log(rho) + (d - 1) * np.log(rho + d)
        return np.asarray(alone + total - prior)

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.levels)

    @property
    def log_weights(self) -> Array:
        """Return (C, D, D) log weights of the edges given the counts."""
        return self._evidences(self.pairs)[1]

    @cached_property
    def totals(self) -> Array:
        """Return (C,) pseudo-counts and counts of all rows of a class."""
        rows: Array = self.pairs[:, 0, 0].sum(axis=(1, 2))
        return rows + self.strength

    def log_evidence(self, stats: ForestStats) -> float:
        """Sum over classes of the log evidence of all rows less that of those known before."""
        pairs = self._counts(stats)
        if not pairs.any():
            return 0.0
        total, before = (
            self._log_joint(*self._evidences(p)) for p in (self.pairs + pairs, self.pairs)
        )
        return float((total - before).sum())

    def log_predictive(self, X) -> Array:
        """Multiply the columns' posterior means by a ratio of two sums over forests: (N, C)."""
        return self.log_predictive_with_error(X)[0]

    def log_predictive_with_error(self, X) -> tuple[Array, Array]:
        """Return (N, C) `log_predictive` and its standard error: 0 but for rows with many gaps.

        Missing cells (NaN) are summed out: exactly for one forest per class, and for an average
        where they may be filled in few ways, else by draws of forests.
        """
        X, n_classes = np.asarray(X), len(self.pairs)
        log_p, error = np.zeros((2, len(X), n_classes))
        has_gaps = np.isnan(X).any(axis=1)
        codes, one = self.codes(X[~has_gaps]), np.ones(np.count_nonzero(~has_gaps))
        for c in range(n_classes):
            log_p[~has_gaps, c] = self.log_growth(c, codes, one)
        if has_gaps.any():
            log_p[has_gaps], error[has_gaps] = _log_predictive_of_known(self, X[has_gaps])
        return log_p, error

    def log_predictive_without(self, X, y: Array, weight: Array) -> tuple[Array, Array]:
        """Subtract evidences with and without the row; a chosen forest is chosen without it."""
        codes, rows = self.codes(X), np.flatnonzero(y >= 0)
        log_p, left = self.log_predictive(codes), np.ones(len(y))
        if self.chooses:
            after, base = self._chosen_without(codes[rows], y[rows], weight[rows])
        else:
            after, base = np.empty((2, len(rows)))
            for c in np.unique(y[rows]).tolist():
                some = np.flatnonzero(y[rows] == c)
                w = weight[rows[some]]
                base[some] = self.log_growth(c, codes[rows[some]], -w)
                after[some] = self.log_growth(c, codes[rows[some]], 1 - w)
        log_p[rows, y[rows]] = after - base
        left[rows] = digits_left(after - base, base, weight[rows])
        return log_p, left

    def _chosen_without(self, codes: Array, y: Array, weight: Array) -> tuple[Array, Array]:
        """Return (n,) log evidences with each row and without it, by the forest of the others."""
        after, base = np.empty((2, len(codes)))
        every = replace(self, structure="average", edges=np.ones_like(self.edges))
        log_weights = self.log_weights
        for c in np.unique(y).tolist():
            i, j = every.neighbours[c]
            one_class = replace(self, root_weight=self.root_weight[[c]])
            members = np.flatnonzero(y == c)
            for block in row_blocks(len(members), len(i)):
                rows = members[block]
                gone, back = (
                    every.growth(c, codes[rows], t) for t in (-weight[rows], 1 - weight[rows])
                )
                base[rows], after[rows] = (g.of_columns().sum(axis=1) for g in (gone, back))
                gone_edges, back_edges = gone.of_edges(i, j), back.of_edges(i, j)
                for k, row in enumerate(rows):
                    log_w = np.array(log_weights[c])
                    log_w[i, j] += gone_edges[k]
                    log_w[j, i] = log_w[i, j]
                    in_it = one_class._heaviest(log_w[None])[0][0][i, j] > 0
                    base[row] += gone_edges[k, in_it].sum()
                    after[row] += back_edges[k, in_it].sum()
        return after, base

    def growth(self, c: int, codes: Array, t: Array) -> Growth:
        """Return what rows of codes (n, D) and weights t (n,), each alone, add in class c."""
        i, j = self.neighbours[c]
        column, pairs, levels = np.arange(self.n_columns), self.pairs[c], self.levels
        t, which = np.unique(t, return_inverse=True)
        if len(t) * pairs.shape[-1] ** 2 <= len(codes):
            single, both = margins(pairs), pairs[i, j]
        else:  # the rows have fewer cells than the tables
            single = pairs[column, column, codes, codes][..., None]
            both = pairs[i, j, codes[:, i], codes[:, j]][..., None, None]
            t, which, codes = t[which], np.arange(len(codes)), np.zeros_like(codes)
        single = single + (self.strength[c] / levels)[:, None]
        both = both + (self.strength[c] / (levels[i] * levels[j]))[:, None, None]
        total, single, both = (
            log_gamma_growth(a, t.reshape(-1, *(1,) * axes))
            for a, axes in ((self.totals[c], 2), (single, 2), (both, 3))
        )
        single = single - total
        both = both - single[:, i, :, None] - single[:, j, None, :] - total[..., None]
        return Growth(single, both, which, codes)

    def log_growth(self, c: int, codes: Array, t: Array) -> Array:
        """Return (n,) log evidence of class c with rows (n, D) of weights t (n,), less before."""
        log_growths = np.zeros(len(codes))
        i, j = self.neighbours[c]
        for rows in row_blocks(len(codes), len(i) + self.n_columns, _CELLS // 4):
            if not t[rows].any():
                continue
            growth = self.growth(c, codes[rows], t[rows])
            if self.is_forest or not len(i):  # one term, with every choice of roots
                of_forests = growth.of_edges(i, j).sum(axis=1)
            else:
                of_forests = self.eliminations[c].log_ratio_of_codes(i, j, *growth[1:])
            log_growths[rows] = growth.of_columns().sum(axis=1) + of_forests
        return log_growths

    # -- theta -----------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, Array]:
        """{name: (n, *dims)} forests in proportion to their evidence, and tables given them."""
        n_classes, n_features, _, k, _ = self.pairs.shape
        parents = np.empty((n, n_classes, n_features))
        tables = np.zeros((n, n_classes, n_features, k, k))
        for c in range(n_classes):
            parents_of_c = self.draw_parents(rng, n, c)
            parents[:, c] = parents_of_c
            for block in row_blocks(n, n_features * k * k):
                alpha = concentrations(self, c, parents_of_c[block])
                rows = alpha[..., 0] > 0
                tables[block, c][rows] = special.draw_dirichlet(rng, alpha[rows], 1)[0]
        return {"parents": parents, "tables": tables}

    def map(self) -> dict[str, Array]:
        """Refused: probabilities of forests and densities given them have no common mode."""
        raise UndefinedEstimateError(
            "map",
            "forests have tables of different dimensions, whose densities cannot be compared",
            advice="structure='map' plugs in the most probable forest",
        )

    def mean(self) -> dict[str, Array]:
        """Refused: there is no mean of forests."""
        raise UndefinedEstimateError(
            "posterior_mean",
            "forests have no mean",
            advice="method='posterior_predictive' averages over them",
        )

    def draw_log_density(self, seed: Seed, X, n: int) -> Array:
        """Return (n, N, C) without the tables of other cells than the rows' (`DensityDraws`)."""

        def of_row(rng: np.random.Generator, codes: Array) -> Array:
            """Draw forests, and Beta variables for the cells of the row alone."""
            log_x = np.empty((n, len(codes), len(self.strength)))
            column = np.arange(codes.shape[1])
            for c, strength in enumerate(self.strength):
                single = self.pairs[c][column, column, codes, codes] + strength / self.levels
                parents = self.draw_parents(rng, n, c)
                for draws in row_blocks(n, codes.size):
                    up = parents[draws, None]  # (n, 1, D)
                    root, other = up < 0, np.where(up < 0, column, up)
                    above = np.arange(len(codes))[:, None], other
                    pair = self.pairs[c][other, column, codes[above], codes]
                    cell = np.where(
                        root, single, pair + strength / (self.levels[other] * self.levels)
                    )
                    whole = np.where(root, self.totals[c], single[above])
                    each = special.draw_log_beta(rng, cell, whole - cell, 1)[0]
                    log_x[draws, :, c] = each.sum(axis=-1)
            return log_x

        return draws_of_each_row(of_row, seed, self.codes(X))

    def log_density(self, theta: Theta) -> Array:
        """Return (...) log probability of the forests plus log density of the tables given them."""

        def of_draws(draws: dict[str, Array]) -> Array:
            log_p = np.zeros(len(draws["parents"]))
            for c in range(len(self.strength)):
                parents = draws["parents"][:, c].astype(np.int64)
                log_p += self.log_probability(c, parents)
                alpha = concentrations(self, c, parents)
                rows = alpha[..., 0] > 0
                terms = np.zeros(rows.shape)
                terms[rows] = log_dirichlet_density(draws["tables"][:, c][rows], alpha[rows])
                log_p += terms.sum(axis=(1, 2))
            return log_p

        return density_by_draws(of_draws, theta, self.params)

    def mle(self, stats: ForestStats) -> dict[str, Array]:
        """Allowed forest of the largest likelihood (Chow and Liu 1968), frequencies in it."""
        pairs = self._counts(stats)
        n_classes, n_features, _, k, _ = pairs.shape
        total = pairs[:, 0, 0].sum(axis=(1, 2))
        refuse_undefined("mle", total <= 0, "it has no row (0/0)")
        rows_alone = replace(self, pairs=pairs, strength=np.zeros(n_classes))
        parents = np.empty((n_classes, n_features), dtype=np.int64)
        tables = np.empty((n_classes, n_features, k, k))
        for c, margin in enumerate(margins(pairs)):
            expected = margin[:, None, :, None] * margin[None, :, None, :] / total[c]
            gain = rel_entr(pairs[c], expected).sum(axis=(2, 3))
            # every edge gains at least 0, and a root -1: there are no more roots than must be
            parents[c] = heaviest_tree(graph(gain, np.exp(-1.0), self.edges[c]))[1:] - 1
            counts = concentrations(rows_alone, c, parents[[c]])[0]
            unseen = counts.sum(axis=-1, keepdims=True) == 0  # a parent code: any table
            counts = np.where(unseen, real_cells(self.levels, parents[c], k), counts)
            size = counts.sum(axis=-1, keepdims=True)
            tables[c] = np.divide(counts, size, out=np.zeros_like(counts), where=size > 0)
        return {"parents": parents, "tables": tables}


# ------------------------------------------------------------------------------------------------
# Predictive of the known cells of a row: its missing cells summed out, along forests.
#
# Given a forest T the sum over missing cells is exact, by messages from the leaves to the roots,
# at a cost of D K^2. The average over all forests is a mean over draws of T, with little variance:
# A(T), the part of the density whose edges join two known cells, is averaged over all forests in
# closed form, and the draws tell only what the missing cells add,
#
# .. math:: p(x_o) = \bar A \; \frac{E_T\, p(x_o \mid T)}{E_T\, A(T)}, \qquad
#           \bar A = \prod_{u \in o} p(x_u) \frac{Z\{w_{uv} r_{uv}^{[u, v \in o]}\}}{Z\{w_{uv}\}}.
#
# Numerator and denominator share the draws, and are equal where no missing cell joins two others.
# Source: Pearl (1988), Probabilistic Reasoning in Intelligent Systems, chapter 4, for the
# messages.
#
# S forests, N rows, D columns, K categories.

_CELLS = 1 << 22  # numbers of one block: 32 MiB
_COMPLETIONS = 4096  # of one row with missing cells
_STEPS = 2e8  # completions x classes x columns^3 of a row that is summed over exactly: .1 s
_DRAWS = 1024, 8192  # forests; the second of rows whose standard error is above `_ENOUGH`
_ENOUGH = 0.02  # standard error of a log density


def _log_predictive_of_known(f: "DirichletForest", X: Array) -> tuple[Array, Array]:
    """Return (N, C) log predictive of codes with gaps (NaN), and its standard error."""
    n_classes = len(f.pairs)
    log_p, error = np.zeros((2, len(X), n_classes))
    if f.is_forest:
        for c in range(n_classes):
            forest = f.draw_parents(np.random.default_rng(0), 1, c)
            log_p[:, c] = _given_forests(f, c, forest, X)[0]
        return log_p, error
    n_ways = np.where(np.isnan(X), f.levels, 1.0).prod(axis=1)
    is_few = (n_ways <= _COMPLETIONS) & (n_ways * f.n_columns**3 * n_classes <= _STEPS)
    few, many = np.flatnonzero(is_few), np.flatnonzero(~is_few)
    most = int(n_ways[few].max(initial=1))
    for rows in (few[block] for block in row_blocks(len(few), most * f.n_columns, _CELLS)):
        filled, first = completions(X[rows], f.levels)
        log_p[rows] = np.logaddexp.reduceat(f.log_predictive(filled), first)
    for c in range(n_classes if len(many) else 0):
        unsure = many
        for n in _DRAWS:
            forests = f.draw_parents(np.random.default_rng([n, c]), n, c)
            width = max(n, (f.n_columns + 1) ** 2)
            for rows in (unsure[block] for block in row_blocks(len(unsure), width, _CELLS)):
                log_p[rows, c], error[rows, c] = _averaged(f, c, forests, X[rows])
            unsure = unsure[error[unsure, c] > _ENOUGH]
            if not len(unsure):
                break
    return log_p, error


def completions(X: Array, levels: Array) -> tuple[Array, Array]:
    """Fill missing cells of codes (N, D) in every way: (M, D), and where each row's begin (N,)."""
    row, filled = np.arange(len(X)), X
    for j, k in enumerate(levels):
        n = np.where(np.isnan(filled[:, j]), k, 1)
        row, filled = np.repeat(row, n), np.repeat(filled, n, axis=0)
        is_gap = np.isnan(filled[:, j])
        filled[is_gap, j] = np.tile(np.arange(k), np.count_nonzero(is_gap) // k)
    return filled, np.flatnonzero(np.diff(row, prepend=-1))


def _averaged(f: "DirichletForest", c: int, parents: Array, codes: Array) -> tuple[Array, Array]:
    """Return (N,) log predictive of class c, and its standard error."""
    seen = ~np.isnan(codes)
    cells = np.where(seen, codes, 0).astype(np.int64)
    i, j = f.neighbours[c]
    edges = f.growth(c, cells, np.ones(len(cells))).of_edges(i, j)
    edges = np.where(seen[:, i] & seen[:, j], edges, 0.0)
    exact = f.eliminations[c].log_ratio(i + 1, j + 1, edges)  # the columns' terms are in both
    both = np.zeros((codes.shape[1] + 1, codes.shape[1] + 1, len(codes)))  # the root last
    both[i, j] = both[j, i] = edges.T
    control = np.zeros((len(parents), len(codes)))
    for u, parent in enumerate(parents.T):
        control += both[u, parent]
    whole = _given_forests(f, c, parents, codes)
    means = special.log_sum_exp(whole, axis=0), special.log_sum_exp(control, axis=0)
    shares = [np.exp(a - mean) for a, mean in zip((whole, control), means, strict=True)]
    spread = (shares[0] - shares[1]).std(axis=0, ddof=1) * np.sqrt(len(parents))
    return exact + means[0] - means[1], spread


def _given_forests(f: "DirichletForest", c: int, forests: Array, codes: Array) -> Array:
    """Return (S, N) log p(x_o | T, D) of class c."""
    k = f.pairs.shape[-1]
    log_p = np.empty((len(forests), len(codes)))
    for block in row_blocks(len(forests), codes.shape[1] * k * max(k, len(codes)), _CELLS):
        tables = concentrations(f, c, forests[block])
        size = tables.sum(axis=-1, keepdims=True)
        tables = np.divide(tables, size, out=tables, where=size > 0)
        log_p[block] = log_likelihood_of_known(codes, forests[block], tables)
    return log_p


def log_likelihood_of_known(codes: Array, parents: Array, tables: Array) -> Array:
    """Return (S, N) log p(x_o | theta) of codes (N, D), NaN where missing.

    Parameters
    ----------
    parents : (S, D)
    tables : (S, D, K, K) p(x_u | x_parent), of a root in the row of parent code 0
    """
    n_draws, n_columns, k, _ = tables.shape
    log_p = np.empty((n_draws, len(codes)))
    for rows in row_blocks(len(codes), n_draws * n_columns * k, _CELLS):
        log_p[:, rows] = _upwards(codes[rows], parents, tables)
    return log_p


def _upwards(codes: Array, parents: Array, tables: Array) -> Array:
    """Messages of the columns to their parents, the deepest first."""
    draw = np.arange(len(parents))
    one = (codes[..., None] == np.arange(tables.shape[-1])) | np.isnan(codes)[..., None]
    belief = np.repeat(np.moveaxis(one, 0, -1)[None].astype(np.float64), len(parents), axis=0)
    log_p = np.zeros((len(parents), len(codes)))
    for u in np.argsort(-depths(parents), axis=1, kind="stable").T:
        message = tables[draw, u] @ belief[draw, u]  # (S, K of the parent, N)
        up = parents[draw, u]
        root = up < 0
        with np.errstate(divide="ignore"):
            log_p[root] += np.log(message[root, 0])
            children = draw[~root], up[~root]
            joint = belief[children] * message[~root]
            top = joint.max(axis=1)
            log_p[~root] += np.log(top)
        belief[children] = joint / np.where(top > 0, top, 1.0)[:, None]
    return log_p


# ------------------------------------------------------------------------------------------------
# PyMC models of the tables of given forests, and of the mixture over all forests of few columns.
#
# In the mixture every table that some forest has is a variable with its Dirichlet prior, whether
# the forest at hand uses it or not, and the forest itself is summed out of the likelihood: all
# variables are continuous, so that NUTS samples the average that the closed form integrates.

MOST = 4  # columns of a mixture over all rooted forests: 125 of them


def rooted_forests(n_columns: int) -> Array:
    """Return (F, D) parents, -1 for a root, of every rooted forest: F = (D + 1)^(D - 1)."""
    every = np.array(list(itertools.product(range(-1, n_columns), repeat=n_columns)))
    forests: Array = every[(depths(every) < n_columns).all(axis=1)]
    return forests


def declare(f: "DirichletForest", pairs: Array | None, forests: list[Array]) -> None:
    """Declare tables and the potential ``x`` in the PyMC model on the stack.

    Variables ``tables_{c}_{u}`` (code_{u}) of a root and ``tables_{c}_{u}_{p}`` (code_{p},
    code_{u}) of column u given column p, of class number c; deterministic ``forest_{c}``
    (structure_{c}), the probabilities of the forests given the tables and the rows.

    Parameters
    ----------
    f : prior
    pairs : (C, D, D, K, K) counts, or None for the prior alone
    forests : for each class (F, D) parents, one or all
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    model.add_coords({f"code_{u}": np.arange(k) for u, k in enumerate(f.levels)})
    total: Any = 0.0
    for c, class_forests in enumerate(forests):
        logs: dict[tuple[int, int], Any] = {}
        for u, p in sorted({(u, int(p)) for row in class_forests for u, p in enumerate(row)}):
            k = int(f.levels[u])
            contexts = 1 if p < 0 else int(f.levels[p])
            shape = (k,) if p < 0 else (contexts, k)
            dims = (f"code_{u}",) if p < 0 else (f"code_{p}", f"code_{u}")
            alpha = np.full(shape, f.strength[c] / (k * contexts))
            name = f"tables_{c}_{u}" + (f"_{p}" if p >= 0 else "")
            theta = pt.ones(shape) if k == 1 else pm.Dirichlet(name, alpha, dims=dims)
            if pairs is None:
                continue
            counts = pairs[c, u, u] if p < 0 else pairs[c, p, u]
            counts = np.diagonal(counts)[:k] if p < 0 else counts[:contexts, :k]
            logs[u, p] = (counts * pt.log(theta)).sum()
        if pairs is None:
            continue
        terms = pt.stack([sum(logs[u, int(p)] for u, p in enumerate(row)) for row in class_forests])
        if len(class_forests) > 1:
            terms = terms + f.log_probability(c, class_forests)
        whole = pt.logsumexp(terms)
        model.add_coord(f"structure_{c}", np.arange(len(class_forests)))
        pm.Deterministic(f"forest_{c}", pt.exp(terms - whole), dims=f"structure_{c}")
        total = total + whole
    if pairs is not None:
        pm.Potential("x", total)
