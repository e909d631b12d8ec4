r"""Columns that depend on each other along forests: what such families have in common.

A forest T over the columns has the weight :math:`\rho^{\text{number of roots}} \prod_{uv \in T}
w_{uv}`: a spanning tree of the columns and one root node, which is node 0 of every graph here and
joined to each column with weight rho. A forest is told by the parent of each column, -1 for a root.
"""

import abc
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self, get_args

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from bayesgen.families.errors import UndefinedEstimateError, refuse_unknown
from bayesgen.families.names import StructureName
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.spanning_trees import Elimination, heaviest_tree, log_sum_of_trees
from bayesgen.numerics.special import Array

# ------------------------------------------------------------------------------------------------
# Strength of the tables and weight of roots by the evidence, on a fixed lattice.

# half octaves of A, in rows, and half decades of the root weight over the number of columns: a
# lattice, so that chunks, merges and any order of classes lead to the same numbers
_OCTAVES = (-4, 18)
_DECADES = (-5, 5)
START = (6, 0)  # A = 8 rows, root weight = number of columns: half the columns are roots


def value(n_features: int, point: tuple[int, int]) -> tuple[float, float]:
    """A and root weight at a point of the lattice."""
    return float(2.0 ** (point[0] / 2)), float(n_features * 10.0 ** (point[1] / 2))


def search(
    evidence: Callable[[float, float], float],
    n_features: int,
    free: tuple[bool, bool] = (True, True),
) -> tuple[float, float]:
    """The point of the largest evidence: a pattern search with steps of 4, 2 and 1.

    Parameters
    ----------
    evidence : function of A and root weight
    n_features : int
    free : whether each of the two is looked for; else it stays at `START`.
    """
    seen: dict[tuple[int, int], float] = {}

    def at(point: tuple[int, int]) -> float:
        if point not in seen:
            seen[point] = evidence(*value(n_features, point))
        return seen[point]

    best = START
    for step in (4, 2, 1):
        moved = True
        while moved:
            moved = False
            for axis in np.flatnonzero(free):
                for sign in (1, -1):
                    shift = [0, 0]
                    shift[axis] = sign * step
                    near = (best[0] + shift[0], best[1] + shift[1])
                    inside = _OCTAVES[0] <= near[0] <= _OCTAVES[1]
                    inside &= _DECADES[0] <= near[1] <= _DECADES[1]
                    # rounding must not decide between two points
                    if inside and at(near) > at(best) + 1e-9 * (1 + abs(at(best))):
                        best, moved = near, True
    return value(n_features, best)


_TIE = 8  # digits after the point, in nats, beyond which two edges have the same weight


class ForestAverage(abc.ABC):
    """A family whose density is an average over forests, or that of one forest per class.

    Fields `edges` (C, D, D) or (C, 1, 1), 0 where two columns cannot be neighbours; `root_weight`
    (C,); `structure`, "average", or else `edges` are the edges of one forest. A forest that the
    rows choose ("tree", "map") is chosen again by `update`, and without each row by leave-one-out.
    """

    edges: Any
    root_weight: Any
    structure: StructureName
    given: ClassVar[str] = "parameters"  # what a forest has besides its edges

    @property
    @abc.abstractmethod
    def n_columns(self) -> int:
        """D."""

    @property
    @abc.abstractmethod
    def log_weights(self) -> list[Array]:
        """Of each class (D, D) log weights of the edges, given what is known."""

    @abc.abstractmethod
    def changes(self, c: int, cells: Array, t: Array) -> tuple[Array, Array]:
        """Changes of the log weights of class c by rows of weight t.

        Parameters
        ----------
        cells : (n, D)
        t : (..., n or 1)

        Returns
        -------
        columns : (..., n, D)
            Of the evidences of single columns.
        edges : (..., n, P)
            Of the log weights of the pairs that may be neighbours.
        """

    @abc.abstractmethod
    def cells(self, X: Any) -> Array:
        """(N, D) rows as `changes` has them."""

    def log_predictive(self, X: Any) -> Array:
        """(N, C) product of the columns' predictives times a ratio of sums over forests."""
        cells, one = self.cells(X), np.ones(len(X))
        return np.stack([growth(self, c, cells, one) for c in range(len(self.neighbours))], axis=1)

    @property
    def chooses(self) -> bool:
        """Whether the rows choose the forest."""
        return self.structure in ("tree", "map")

    @property
    def no_evidence(self) -> str:
        """Of a forest that the same rows chose: their density given it is no evidence."""
        if not self.chooses:
            return ""
        return (
            f"structure={self.structure!r} has chosen the forests from the same rows, whose "
            "density given them is too high by what the choice fits; structure='average' has an "
            "evidence"
        )

    def chosen(self, log_weights: Any) -> Array:
        """(C, D, D) edges of the heaviest forests under (D, D) log weights of each class."""
        roots = self.root_weight if self.structure == "map" else [None] * len(self.root_weight)
        return np.array([best_forest(w, rho)[0] for w, rho in zip(log_weights, roots, strict=True)])

    def over_all(self) -> Self:
        """The same counts, over all forests in place of the one that was chosen."""
        if not self.chooses:
            return self
        every = np.ones((len(self.edges), 1, 1))
        return replace(self, structure="average", edges=every)  # type: ignore[type-var]

    def log_predictive_without(self, X: Any, y: Array, weight: Array) -> tuple[Array, Array]:
        """By the evidence with and without; a forest that rows choose is chosen without each."""
        out, left = self.log_predictive(X), np.ones(len(X))
        if not self.chooses:
            for c in np.unique(y).tolist():
                rows = np.flatnonzero(y == c)
                cells, w = self.cells(X[rows]), weight[rows]
                base = growth(self, c, cells, -w)
                out[rows, c] = growth(self, c, cells, 1 - w) - base
                left[rows] = digits_left(out[rows, c], base, w)
            return out, left
        every = self.over_all()
        whole = self.log_weights
        for c in np.unique(y):
            i, j = every.neighbours[c]
            one = replace(self, root_weight=self.root_weight[[c]])  # type: ignore[type-var]
            own = np.flatnonzero(y == c)
            for part in row_blocks(len(own), len(i)):
                rows = own[part]
                cells, w = self.cells(X[rows]), weight[rows]
                gone, gone_edges = every.changes(c, cells, -w)
                back, back_edges = every.changes(c, cells, 1 - w)
                for k, row in enumerate(rows):
                    log_w = np.array(whole[c])
                    log_w[i, j] += gone_edges[k]
                    log_w[j, i] = log_w[i, j]
                    in_it = one.chosen([log_w])[0][i, j] > 0
                    base = gone[k].sum() + gone_edges[k, in_it].sum()
                    out[row, c] = back[k].sum() + back_edges[k, in_it].sum() - base
                    left[row] = digits_left(out[row, c], base, w[k])
        return out, left

    def other_scales(self, given: Self) -> list[Self]:
        """No edges: no root weight within reach of the search undoes edges that are certain."""
        if self.is_forest or given.root_weight is not None:
            return []
        return [replace(self, edges=np.zeros_like(self.edges))]  # type: ignore[type-var]

    def given_edges(self, n_classes: int, n_features: int, resolved: bool) -> Array:
        """`edges` as given, checked: (C, D, D), or (C, 1, 1) ones where all are allowed.

        `resolved`: the family is resolved, and a forest that rows choose is in its `edges`.
        """
        refuse_unknown("structure", self.structure, get_args(StructureName))
        if self.chooses and self.edges is not None and not resolved:
            raise ValueError(
                f"structure={self.structure!r} chooses the edges by the rows: give edges= with "
                "structure='fixed', or with 'average' those that may be"
            )
        if self.edges is None:
            if self.structure == "fixed":
                raise ValueError("structure='fixed' needs edges=: which columns are neighbours")
            return np.ones((n_classes, 1, 1))
        edges = np.asarray(self.edges, dtype=np.float64)
        known = {(n, n) for n in (1, n_features)}
        if edges.shape[-2:] not in known or edges.shape[:-2] not in ((), (1,), (n_classes,)):
            raise ValueError(
                f"edges has shape {np.shape(self.edges)}: it must be a matrix ({n_features}, "
                f"{n_features}) of the columns, 1 where two are neighbours, else 0, or one for "
                "each class"
            )
        edges = np.broadcast_to(edges, (n_classes, *edges.shape[-2:]))
        if (edges != np.swapaxes(edges, 1, 2)).any():
            raise ValueError("edges must be symmetric: an edge has no direction")
        out = np.array(edges)
        if out.shape[1] > 1:
            out[:, np.arange(n_features), np.arange(n_features)] = 0.0
        if self.is_forest and not (
            out.shape[1:] == (n_features, n_features)
            and all(
                np.count_nonzero(e) // 2 + connected_components(e, directed=False)[0] == n_features
                for e in out
            )
        ):
            raise ValueError(
                f"structure={self.structure!r}: edges must be a matrix (D, D) without cycles; "
                "structure='average' averages over the forests among them"
            )
        return out

    @cached_property
    def neighbours(self) -> list[tuple[Array, Array]]:
        """Pairs of columns that may be neighbours in each class, the later column first."""
        shape = (self.n_columns,) * 2
        whole = (np.tril(np.broadcast_to(e, shape), -1) > 0 for e in self.edges)
        return [np.nonzero(allowed) for allowed in whole]  # type: ignore[misc] # two axes

    @property
    def is_forest(self) -> bool:
        """Whether `edges` are the edges of one forest, and not those that may be."""
        return self.structure != "average"

    @cached_property
    def graphs(self) -> list[Array]:
        """(D + 1, D + 1) log weights of each class, the root first."""
        return [
            graph(log_w, rho, edges)
            for log_w, rho, edges in zip(
                self.log_weights, self.root_weight, self.edges, strict=True
            )
        ]

    @cached_property
    def eliminations(self) -> list[Elimination]:
        """Of the graph of each class."""
        return [Elimination(log_w) for log_w in self.graphs]

    def log_sums(self, singles: Array, log_w: Array) -> Array:
        """(C,) log of the sum over forests of prior weight times evidence, over the prior's sum.

        Parameters
        ----------
        singles : (C, D) log evidences of the columns
        log_w : (C, D, D) log weights of the edges
        """
        alone: Array = singles.sum(axis=1)
        if self.is_forest:
            pairs = zip(log_w, self.neighbours, strict=True)
            return alone + np.array([own[both].sum() for own, both in pairs])
        each = list(zip(self.root_weight, self.edges, strict=True))
        weights = np.concatenate([log_w, 0.0 * log_w])
        graphs = [graph(w, *own) for w, own in zip(weights, each + each, strict=True)]
        total, prior = log_sum_of_trees(np.stack(graphs)).reshape(2, -1)
        return alone + total - prior

    def map(self) -> dict[str, Array]:
        """Refused: probabilities of forests and densities given them have no common mode."""
        raise UndefinedEstimateError(
            "map",
            f"forests have {self.given} of different dimensions, whose densities cannot be "
            "compared",
            advice="structure='map' plugs in the most probable forest",
        )

    def mean(self) -> dict[str, Array]:
        """Refused: there is no mean of forests."""
        raise UndefinedEstimateError(
            "posterior_mean",
            "forests have no mean",
            advice="method='posterior_predictive' averages over them",
        )

    def edge_probabilities(self) -> Array:
        """(C, D, D) posterior probability that two columns are neighbours."""
        if self.is_forest:
            return np.array(self.edges)
        return np.array([e.edge_probabilities()[1:, 1:] for e in self.eliminations])

    def root_probabilities(self) -> Array:
        """(C, D) posterior probability that a column is the root of its tree."""
        if self.is_forest:
            labels = (connected_components(e, directed=False)[1] for e in self.edges)
            return np.array([1.0 / np.bincount(label)[label] for label in labels])
        return np.array([e.edge_probabilities()[0, 1:] for e in self.eliminations])

    def draw_parents(self, rng: np.random.Generator, n: int, c: int) -> Array:
        """(n, D) forests of class c in proportion to their weights."""
        if self.is_forest:
            return _with_roots(rng, self.edges[c] > 0, n)
        return self.eliminations[c].draw(rng, n)[:, 1:] - 1

    def log_probability(self, c: int, parents: Array) -> Array:
        """(n,) log probabilities of forests (n, D) of class c."""
        column = np.arange(self.n_columns) + 1
        if self.is_forest:
            root = np.log(self.root_probabilities()[c])
            out = np.where(parents < 0, root, 0.0).sum(axis=1)
            given = self.edges[c][column - 1, parents] > 0
            right = ((parents < 0) | given).all(axis=1)
            right &= (parents >= 0).sum(axis=1) == np.count_nonzero(self.edges[c]) // 2
            out = np.where(right, out, -np.inf)
        else:
            own = self.graphs[c][column, parents + 1].sum(axis=-1)
            out = own - log_sum_of_trees(self.graphs[c])
        found: Array = np.where(_reaches_roots(parents), out, -np.inf)
        return found


def graph(log_w: Array, root_weight: float, edges: Array) -> Array:
    """(D + 1, D + 1) log weights with the root as node 0, joined to every column.

    Parameters
    ----------
    log_w : (D, D)
    root_weight : float
    edges : (D, D) or (1, 1), 0 where no edge may be
    """
    n_features = len(log_w)
    out = np.full((n_features + 1, n_features + 1), np.log(root_weight))
    out[1:, 1:] = np.where(edges > 0, (log_w + log_w.T) / 2, -np.inf)
    np.fill_diagonal(out, -np.inf)
    return out


def best_forest(log_w: Array, root_weight: float | None) -> tuple[Array, float]:
    """(D, D) 0/1 edges of the heaviest tree, or rooted forest, and the log of its weight.

    Parameters
    ----------
    log_w : (D, D)
    root_weight : float, or None for a single tree
    """
    n_features = len(log_w)
    # equal evidences differ by rounding, in which counts less a row and counts without it differ
    log_w = np.round(log_w, _TIE)
    if root_weight is None:
        parents = heaviest_tree(log_w)
        roots = 0.0
    else:
        parents = heaviest_tree(graph(log_w, root_weight, np.ones((1, 1))))[1:] - 1
        roots = float(np.log(root_weight) * (parents < 0).sum())
    child = np.flatnonzero(parents >= 0)
    edges = np.zeros((n_features, n_features))
    edges[child, parents[child]] = edges[parents[child], child] = 1.0
    return edges, roots + float(log_w[child, parents[child]].sum())


def _with_roots(rng: np.random.Generator, edges: Array, n: int) -> Array:
    """(n, D) parents in one forest, the root of each of its trees drawn uniformly."""
    n_trees, label = connected_components(edges, directed=False)
    out = np.empty((n, len(edges)), dtype=np.int64)
    for tree in range(n_trees):
        columns = np.flatnonzero(label == tree)
        which = rng.integers(len(columns), size=n)
        for root in np.unique(which):
            order, up = breadth_first_order(edges, columns[root], directed=False)
            parents = np.where(up[order] < 0, -1, up[order])
            out[np.ix_(which == root, order)] = parents
    return out


def _reaches_roots(parents: Array) -> Array:
    """(n,) whether every column of forests (n, D) leads to a root."""
    up = np.concatenate([np.full((len(parents), 1), -1), parents], axis=1) + 1  # 0 is above roots
    for _ in range(parents.shape[1].bit_length()):
        up = np.take_along_axis(up, up, axis=1)
    reached: Array = (up == 0).all(axis=1)
    return reached


# ------------------------------------------------------------------------------------------------
# Evidence of all rows with more of one row, theta integrated out.
#
# Under a forest T the density of a row is a product over columns and edges, and so is the evidence
# of all rows. With W(D) and w(D) the evidences of columns and the weights of edges given data D,
# and W(D + t x) those after a row of weight t, which may be negative,
#
# .. math:: E\, p(x \mid \theta)^t = \prod_u \frac{W_u(D + t x)}{W_u(D)}
#           \frac{Z\{w(D + t x)\}}{Z\{w(D)\}}.


def digits_left(difference: Array, base: Array, weight: Array) -> Array:
    """How large a difference of evidences is beside what it is the difference of; at most 1."""
    largest = np.maximum(np.abs(base), weight)  # within them too there are terms as large as w
    return np.asarray(np.minimum(1.0, (1.0 + np.abs(difference)) / (1.0 + largest)))


def log_ratio(f: ForestAverage, c: int, edges: Array) -> Array:
    """(..., n) log of the sum over forests with changed weights, less that before."""
    i, j = f.neighbours[c]
    if f.is_forest:  # one term, with every choice of roots
        total: Array = edges.sum(axis=-1)
        return total
    n_nodes = f.n_columns + 1
    change = np.zeros((*edges.shape[:-1], n_nodes, n_nodes), dtype=edges.dtype)
    change[..., i + 1, j + 1] = edges
    return f.eliminations[c].log_ratio(change)


def growth(f: ForestAverage, c: int, cells: Array, t: Array) -> Array:
    """(n,) log evidence of a class after rows (n, D) of weights t (n,), less that before."""
    out = np.empty(len(cells))
    for rows in row_blocks(len(cells), (cells.shape[1] + 1) ** 2):
        columns, edges = f.changes(c, cells[rows], t[rows])
        out[rows] = columns.sum(axis=-1) + log_ratio(f, c, edges)
    return out
