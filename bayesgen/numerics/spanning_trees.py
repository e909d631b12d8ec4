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

from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import Array

_SPAN = 600.0  # in nats: so much less than the largest weight is a number with all its digits
_CELLS = 1 << 18  # numbers in one block of graphs


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
    lead, n_nodes = log_w.shape[:-2], log_w.shape[-1]
    flat = log_w.reshape(-1, n_nodes, n_nodes)
    log_sums = np.zeros(len(flat))
    for rows in row_blocks(len(flat), n_nodes**2, _CELLS):
        w = np.moveaxis(flat[rows], 0, -1).copy()  # graphs innermost
        for k in range(n_nodes - 1, 0, -1):
            edges = w[k, :k]
            s = _log_sum(edges)
            log_sums[rows] += s
            share = edges - np.where(np.isfinite(s), s, 0.0)
            for i in range(k - 1, 0, -1):
                w[i, :i] = np.logaddexp(w[i, :i], edges[i] + share[:i])
    return log_sums.reshape(lead)


def _log_sum(a: Array) -> Array:
    """Log of the sum of exponentials over the first axis."""
    top = a.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        log_sum: Array = np.log(np.exp(a - safe).sum(axis=0)) + safe
    return log_sum


class Elimination:
    """The steps of one graph's elimination, kept for what is asked of it again and again.

    Parameters
    ----------
    log_w : (V, V)
        As in `log_sum_of_trees`; the graph must be connected.
    """

    def __init__(self, log_w: Array) -> None:
        w = np.array(log_w, dtype=np.float64)
        np.fill_diagonal(w, -np.inf)
        self.n_nodes = len(w)
        finite = np.isfinite(w)
        connected = connected_components(finite, directed=False)[0] == 1
        if not connected or (self.n_nodes > 1 and not np.isfinite(w.max())):
            raise ValueError("the graph is not connected: it has no spanning tree")
        self._log_w = w
        # a row's changes, and their products, are to be numbers as well
        self._wide = self.n_nodes > 1 and bool(np.ptp(w[finite]) > _SPAN / 2)

    @cached_property
    def log_steps(self) -> list[tuple[Array, Array, Array]]:
        """Return the logarithms of `steps`, which stay finite where numbers underflow."""
        w, steps = self._log_w, []
        for k in range(len(w) - 1, 0, -1):
            edges = w[k, :k]
            share = edges - _log_sum(edges)
            share -= _log_sum(share)  # of huge numbers, parts of a whole keep their sum at least
            through = edges[:, None] + share
            np.fill_diagonal(through, -np.inf)
            reduced = np.logaddexp(w[:k, :k], through)
            finite = np.where(np.isfinite(reduced), reduced, 0.0)
            parts = np.stack([w[:k, :k] - finite, through - finite])
            whole = _log_sum(parts)
            original, through = parts - np.where(np.isfinite(whole), whole, 0.0)
            steps.append((share, original, through))
            w = reduced
        return steps

    @cached_property
    def steps(self) -> list[tuple[Array, Array, Array]]:
        """Return what the elimination of each node k = V-1 .. 1 needs again.

        The share of each edge of k (k,), and for the edges that are left (k, k) the part of the
        new weight that they had, and the part of the path through k.
        """
        return [(np.exp(a), np.exp(b), np.exp(c)) for a, b, c in self.log_steps]

    def log_ratio(self, change: Array) -> Array:
        """Log of the sum over trees after the weights have changed, less that before.

        Nothing as large as either is computed: the ratio has all digits where both are huge.

        Parameters
        ----------
        change : (..., V, V)
            What is added to the logarithms of the weights; symmetric.

        Returns
        -------
        (...)
            NaN where a change is NaN or infinite.
        """
        lead, n = change.shape[:-2], self.n_nodes
        flat = change.reshape(-1, n, n)
        is_finite = np.isfinite(flat).all(axis=(1, 2))
        ratios = np.where(is_finite, 0.0, np.nan)
        flat = np.where(is_finite[:, None, None], flat, 0.0)
        for rows in row_blocks(len(flat), n**2, _CELLS):
            r = np.moveaxis(flat[rows], 0, -1).copy()  # graphs innermost
            for share, original, through in self.log_steps:
                k = len(share)
                edges = r[k, :k]
                s = _log_sum(share[:, None] + edges)
                ratios[rows] += s
                for i in range(1, k):
                    added = through[i, :i, None] + edges[i] + (edges[:i] - s)
                    r[i, :i] = np.logaddexp(original[i, :i, None] + r[i, :i], added)
        return ratios.reshape(lead)

    def log_ratio_of_codes(self, codes: Array, table: Array) -> Array:
        """`log_ratio` of rows of codes, compiled: about D^3 / 6 multiplications of each row.

        Parameters
        ----------
        codes : int64 (n, D)
        table : (D, D, K, K), symmetric as (D K, D K)
            Change of the log weight between columns u and v, which are nodes u + 1 and v + 1, by
            their codes.

        Returns
        -------
        (n,)
        """
        from bayesgen.numerics.kernels.trees import log_ratios, log_ratios_in_parts

        ratios = np.empty(len(codes))
        with np.errstate(over="ignore"):
            table_and_floor = np.exp(table), np.exp(-_SPAN / self.n_nodes)
        w = np.exp(self._log_w - self._log_w.max())

        if self._wide:
            log_ratios_in_parts(codes, *table_and_floor, *self._packed, ratios)
        else:
            log_ratios(codes, *table_and_floor, w, ratios)
        i, j = np.tril_indices(self.n_nodes - 1, -1)
        wide = np.flatnonzero(np.isnan(ratios))
        for rows in (wide[some] for some in row_blocks(len(wide), self.n_nodes**2, _CELLS)):
            change = np.zeros((len(rows), self.n_nodes, self.n_nodes))
            block = codes[rows]
            change[:, i + 1, j + 1] = table[i, j, block[:, i], block[:, j]]
            ratios[rows] = self.log_ratio(change)
        return ratios

    @cached_property
    def _packed(self) -> tuple[Array, Array, Array]:
        """Return the steps one after the other, as the kernel takes them."""
        share = np.zeros((self.n_nodes, self.n_nodes))
        below = np.tri(self.n_nodes, k=-1, dtype=bool)
        kept, added = [], []
        for weights, original, through in self.steps:
            k = len(weights)
            share[k, :k] = weights
            kept.append(original[below[:k, :k]])
            added.append(through[below[:k, :k]])
        return share, np.concatenate(kept), np.concatenate(added)

    def edge_probabilities(self) -> Array:
        """Return (V, V) probability of each edge in a tree drawn in proportion to its weight.

        That is w dlog Z/dw: the steps of the elimination, backwards.
        """
        p = np.zeros((1, 1))
        for share, original, through in reversed(self.steps):
            k = len(share)
            virtual = p * through
            grown = np.zeros((k + 1, k + 1))
            grown[:k, :k] = p * original
            edge_share = virtual.sum(axis=1) + (1 - virtual.sum() / 2) * share
            grown[k, :k] = grown[:k, k] = np.clip(edge_share, 0.0, 1.0)
            p = grown
        return p

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw (n, V) trees: the neighbour of each node towards node 0, -1 for node 0.

        A tree of the graph without its last node k becomes one of the whole: each edge was there
        already, or stands for a path through k and is cut, in proportion to the two parts of its
        weight; every part of the tree that is left is joined to k by one edge, chosen in
        proportion to its weight.
        """
        parent = np.full((n, 1), -1)
        draw = np.arange(n)[:, None]
        for share, _, through in reversed(self.log_steps):
            k = len(share)
            node = np.broadcast_to(np.arange(k), (n, k))
            virtual = np.exp(through)[node, parent]
            cut = (rng.random((n, k)) < virtual) & (parent >= 0)
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


def graph(log_w: Array, root_weight: float, edges: Array) -> Array:
    """Return (D + 1, D + 1) log weights with the root as node 0, joined to every column.

    Parameters
    ----------
    log_w : (D, D)
    root_weight : float
    edges : (D, D) or (1, 1), 0 where no edge may be
    """
    n_features = len(log_w)
    log_graph = np.full((n_features + 1, n_features + 1), np.log(root_weight))
    log_graph[1:, 1:] = np.where(edges > 0, (log_w + log_w.T) / 2, -np.inf)
    np.fill_diagonal(log_graph, -np.inf)
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


def reaches_roots(parents: Array) -> Array:
    """Return (n,) whether every column of forests (n, D) leads to a root."""
    up = np.concatenate([np.full((len(parents), 1), -1), parents], axis=1) + 1  # 0 is above roots
    for _ in range(parents.shape[1].bit_length()):
        up = np.take_along_axis(up, up, axis=1)
    reached: Array = (up == 0).all(axis=1)
    return reached
