r"""Weighted spanning trees: their sum, the probability of each edge, and draws.

A tree on the nodes 0 .. V-1 has the product of the weights of its edges as its weight. Nodes leave
one by one, the last first; the paths through the node that leaves become edges (star-mesh):

.. math:: s_k = \sum_{i<k} w_{ik}, \quad \log Z \mathrel{+}= \log s_k, \quad
          w_{ij} \mathrel{+}= w_{ik} w_{jk} / s_k .

Nothing is subtracted, so for positive weights the sum has full relative accuracy, where a
determinant (the matrix-tree theorem) loses all digits once weights differ by 1e16. Weights are
logarithms, which may differ by more than numbers hold. The same steps backwards give the
probability of each edge and exact draws. Source: Colbourn, Myrvold and Neufeld (1996), Two
algorithms for unranking arborescences; Meila and Jaakkola (2000), Tractable Bayesian learning of
tree belief networks, for the sum over trees.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from bayesgen.numerics import kernels
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

_SPAN = 600.0  # in nats: so much less than the largest weight is a number with all its digits
_CELLS = 1 << 18  # numbers in one block of graphs


# plus, times, over, and the sum over the first axis, of numbers and of logarithms
_NUMBERS = np.add, np.multiply, np.divide, np.add.reduce
_LOGARITHMS = np.logaddexp, np.add, np.subtract, np.logaddexp.reduce


def _steps(log_w: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Eliminate the nodes k = V-1 .. 1 of graphs (V, V, ...) of log weights.

    Yields the log weights of the edges of k (k, ...), their log sum (...), the log of each one's
    share in it, and the log weights (k, k, ...) of the paths through k.
    """
    for k in range(len(log_w) - 1, 0, -1):
        edges = log_w[k, :k]
        log_sum = np.logaddexp.reduce(edges)
        share = edges - np.where(np.isfinite(log_sum), log_sum, 0.0)
        paths = edges[:, None] + share
        paths[np.arange(k), np.arange(k)] = -np.inf
        yield edges, log_sum, share, paths
        log_w = np.logaddexp(log_w[:k, :k], paths)


def log_sum_of_trees(log_w: Array) -> Array:
    """Log of the sum over all spanning trees of the product of their edges' weights.

    Parameters
    ----------
    log_w : (..., V, V)
        Logarithms of the weights, symmetric; the diagonal is not looked at, -inf is no edge.

    Returns
    -------
    (...)
        -inf where the graph is not connected.
    """
    log_sums = np.zeros(log_w.shape[:-2])
    for _, log_sum, _, _ in _steps(np.moveaxis(log_w, (-2, -1), (0, 1))):  # graphs innermost
        log_sums += log_sum
    return log_sums


class Elimination:
    """The steps of one graph's elimination, kept for what is asked of it again and again.

    The weight of an edge when it leaves, with the later of its nodes, is the weight that it had and
    that of the paths that have become part of it. Both are kept as parts of that last weight, which
    are never too large for a number, and too small only where they do not matter.

    Parameters
    ----------
    log_w : (V, V)
        As in `log_sum_of_trees`; the graph must be connected.
    """

    def __init__(self, log_w: Array) -> None:
        self.n_nodes = len(log_w)
        w = np.array(log_w, dtype=np.float64)
        np.fill_diagonal(w, -np.inf)
        last = np.zeros_like(w)
        self._log_sums = np.full(self.n_nodes, np.nan)  # of nodes k = 1 .. V-1
        self._log_steps: list[tuple[Array, Array]] = []  # shares and paths of k = V-1 .. 1
        for edges, self._log_sums[len(edges)], share, paths in _steps(w):
            k = len(edges)
            if not np.isfinite(self._log_sums[k]):
                raise ValueError("the graph is not connected: it has no spanning tree")
            last[k, :k] = last[:k, k] = np.where(np.isfinite(edges), edges, 0.0)
            # of huge numbers, parts of a whole keep their sum at least
            self._log_steps.append((share - np.logaddexp.reduce(share), paths))
        self._log_w = w
        whole = np.exp(w - last)
        for share, paths in self._log_steps:
            k = len(share)
            paths -= last[:k, :k]
            whole[:k, :k] += np.exp(paths)
        log_whole = np.log(whole, out=np.zeros_like(whole), where=whole > 0)
        self._log_start = w - last - log_whole
        for share, paths in self._log_steps:
            paths -= log_whole[: len(share), : len(share)]

    @cached_property
    def _start(self) -> Array:
        """Return (V, V) part of an edge's last weight that it had from the start."""
        return np.exp(self._log_start)

    @cached_property
    def _numbers(self) -> list[tuple[Array, Array]]:
        """Return the logarithms of `_log_steps` as numbers."""
        return [(np.exp(share), np.exp(paths)) for share, paths in self._log_steps]

    def log_ratio(self, i: Array, j: Array, change: Array) -> Array:
        """Log of the sum over trees after the weights have changed, less that before.

        Nothing as large as either is computed: the ratio has all digits where both are huge.

        Parameters
        ----------
        i, j : (P,) nodes of edges, i > j
        change : (n, P)
            What is added to the logarithms of their weights.

        Returns
        -------
        (n,)
            NaN where a change is NaN or infinite.
        """
        ratios = np.full(len(change), np.nan)
        largest = np.abs(change).max(axis=1, initial=0.0)
        fits = largest * self.n_nodes <= _SPAN
        if fits.any():
            w = np.repeat(self._start[..., None], np.count_nonzero(fits), axis=2)
            w[i, j] *= np.exp(change[fits].T)  # graphs innermost
            ratios[fits] = np.log(_changed_sums(w, self._numbers, *_NUMBERS)).sum(axis=0)
        if (wide := ~fits & (largest < np.inf)).any():
            w = np.repeat(self._log_start[..., None], np.count_nonzero(wide), axis=2)
            w[i, j] += change[wide].T
            ratios[wide] = _changed_sums(w, self._log_steps, *_LOGARITHMS).sum(axis=0)
        return ratios

    def log_ratio_of_codes(
        self, i: Array, j: Array, tables: Array, which: Array, codes: Array
    ) -> Array:
        """`log_ratio` of rows of codes, compiled where they are many.

        Parameters
        ----------
        i, j : (P,) columns i > j, which are nodes i + 1 and j + 1
        tables : (T, P, K, K)
            Change of the log weight between two columns by their codes.
        which : (n,) the table of each row
        codes : int64 (n, D)

        Returns
        -------
        (n,)
        """
        ratios = np.full(len(codes), np.nan)
        if kernels.pays(len(codes) * self.n_nodes**3 // 6):
            from bayesgen.numerics.kernels.trees import log_ratios

            with np.errstate(over="ignore"):
                factors = np.exp(tables)
            least = float(np.exp(-_SPAN / self.n_nodes))
            log_ratios(i, j, factors, which, codes, least, *self._for_kernel, ratios)
        others = np.flatnonzero(np.isnan(ratios))
        for rows in (others[some] for some in row_blocks(len(others), self.n_nodes**2, _CELLS)):
            cells = which[rows, None], np.arange(len(i)), codes[rows][:, i], codes[rows][:, j]
            ratios[rows] = self.log_ratio(i + 1, j + 1, tables[cells])
        return ratios

    @cached_property
    def _for_kernel(self) -> tuple[Array, Array, Array, Array]:
        """Return the graph as `kernels.trees.log_ratios` takes it."""
        n, finite = self.n_nodes, self._log_w[np.isfinite(self._log_w)]
        if np.ptp(finite) <= _SPAN / 2:  # the weights themselves are numbers
            scale = np.exp(self._log_sums - finite.max())
            share = np.repeat(1 / scale[:, None], n, axis=1)
            return np.exp(self._log_w - finite.max()), share, scale, np.zeros((0, n, n))
        share, paths = np.zeros((n, n)), np.zeros((n, n, n))
        for share_of_k, paths_of_k in self._numbers:
            k = len(share_of_k)
            share[k, :k], paths[k, :k, :k] = share_of_k, paths_of_k
        return self._start, share, np.ones(n), paths

    def edge_probabilities(self) -> Array:
        """Return (V, V) probability of each edge in a tree drawn in proportion to its weight.

        That is w dlog Z/dw: the steps of the elimination, backwards.
        """
        p = np.zeros((self.n_nodes, self.n_nodes))  # of an edge with its last weight
        for share, paths in reversed(self._numbers):
            k = len(share)
            through = p[:k, :k] * paths
            p[k, :k] = through.sum(axis=0) + through.sum(axis=1) + (1 - through.sum()) * share
        p = np.clip(p, 0.0, 1.0) * self._start
        return p + p.T

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw (n, V) trees: the neighbour of each node towards node 0, -1 for node 0.

        A tree of the graph without its last node k becomes one of the whole: each edge was there
        already, or stands for a path through k and is cut, in proportion to the two parts of its
        weight; every part of the tree that is left is joined to k by one edge, chosen in
        proportion to its weight.
        """
        cuts, log_w = [], self._log_start.copy()
        with np.errstate(invalid="ignore"):  # no edge, which no tree has
            for share, paths in self._log_steps:
                log_w = np.logaddexp(log_w[: len(share), : len(share)], paths)
                cuts.append((share, np.exp(paths - log_w)))
        parent = np.full((n, 1), -1)
        draw = np.arange(n)[:, None]
        for share, through in reversed(cuts):
            k = len(share)
            node = np.broadcast_to(np.arange(k), (n, k))
            cut = (rng.random((n, k)) < through[node, parent]) & (parent >= 0)
            top = np.where(cut | (parent < 0), node, parent)  # of the part that a node is in
            for _ in range(k.bit_length()):
                top = top[draw, top]
            score = share + rng.gumbel(size=(n, k))
            best = np.full((n, k), -np.inf)
            np.maximum.at(best, (np.broadcast_to(draw, (n, k)), top), score)
            joined = np.isfinite(score) & (score == best[draw, top])
            grown = np.concatenate([parent, np.zeros((n, 1), dtype=parent.dtype)], axis=1)
            of_root = joined & (top == 0)
            row, column = np.nonzero(of_root)
            grown[row, k] = column
            # the other parts hang from k: the path from where each is joined to its top turns round
            row, column = np.nonzero(joined & ~of_root)
            last = top[row, column]
            towards = np.full(len(row), k)
            while len(row):
                following = grown[row, column]
                grown[row, column] = towards
                more = column != last
                row, last, towards, column = row[more], last[more], column[more], following[more]
            parent = grown
        return parent


def _changed_sums(w: Array, steps: list[tuple[Array, Array]], plus, times, over, total) -> Array:
    """Eliminate graphs (V, V, n) of parts of last weights, in place: (V - 1, n) sums over nodes."""
    sums = np.empty((len(steps), w.shape[-1]))
    for (share, paths), node_sum in zip(steps, sums, strict=True):
        k = len(share)
        edges = w[k, :k]
        node_sum[:] = total(times(share[:, None], edges))
        through = times(edges[:, None], over(edges, node_sum))
        w[:k, :k] = plus(w[:k, :k], times(paths[..., None], through))
    return sums


def heaviest_tree(log_w: Array) -> Array:
    """Return the heaviest tree (V,): each node's neighbour towards node 0, -1 for node 0.

    Prim's algorithm; ties go to the lower number.
    """
    n_nodes = len(log_w)
    parent = np.zeros(n_nodes, dtype=np.int64)
    parent[0] = -1
    best = np.array(log_w[0], dtype=np.float64)
    outside = np.arange(n_nodes) > 0
    while outside.any():
        new = int(np.argmax(np.where(outside, best, -np.inf)))
        if not outside[new]:
            raise ValueError("the graph is not connected: it has no spanning tree")
        outside[new] = False
        closer = outside & (log_w[new] > best)
        parent[closer], best[closer] = new, log_w[new][closer]
    return parent


# ------------------------------------------------------------------------------------------------
# Rooted forests over columns: a spanning tree of the columns and one root node, which is node 0
# and joined to each column with the weight of a root. A forest is told by the parent of each
# column, -1 for a root.

_TIE = 8  # digits of a log weight: beyond them rounding would decide between two edges


def graph(log_w: Array, root_weight: Array | float, edges: Array) -> Array:
    """Return (..., D + 1, D + 1) log weights with the root as node 0, joined to every column.

    Parameters
    ----------
    log_w : (..., D, D)
    root_weight : (...)
    edges : (..., D, D), 0 where no edge may be
    """
    n_nodes = log_w.shape[-1] + 1
    log_graph = np.empty((*log_w.shape[:-2], n_nodes, n_nodes))
    log_graph[...] = np.log(root_weight)[..., None, None]
    symmetric = (log_w + np.swapaxes(log_w, -1, -2)) / 2
    log_graph[..., 1:, 1:] = np.where(edges > 0, symmetric, -np.inf)
    log_graph[..., np.arange(n_nodes), np.arange(n_nodes)] = -np.inf
    return log_graph


def best_forest(log_w: Array, root_weight: float | None) -> tuple[Array, float]:
    """Return (D, D) 0/1 edges of the heaviest tree, or rooted forest, and the log of its weight.

    Parameters
    ----------
    log_w : (D, D)
    root_weight : float, or None for a single tree
    """
    n_features = len(log_w)
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


def draw_roots(rng: np.random.Generator, edges: Array, n: int) -> Array:
    """Return (n, D) parents in one forest, the root of each of its trees drawn uniformly."""
    n_trees, label = connected_components(edges, directed=False)
    drawn = np.empty((n, len(edges)), dtype=np.int64)
    for tree in range(n_trees):
        columns = np.flatnonzero(label == tree)
        which = rng.integers(len(columns), size=n)
        for root in np.unique(which):
            order, up = breadth_first_order(edges, columns[root], directed=False)
            parents = np.where(up[order] < 0, -1, up[order])
            drawn[np.ix_(which == root, order)] = parents
    return drawn


def depths(parents: Array) -> Array:
    """Return (n, D) numbers of columns above each in forests (n, D); D of a column in a cycle."""
    depth, above = np.zeros_like(parents), parents
    for _ in range(parents.shape[1]):
        depth += above >= 0
        above = np.where(above >= 0, np.take_along_axis(parents, np.maximum(above, 0), 1), -1)
        if (above < 0).all():
            break
    return depth
