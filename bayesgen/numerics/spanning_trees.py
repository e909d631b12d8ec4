r"""Weighted spanning trees: their sum, the probability of each edge, and draws.

A tree on the nodes 0 .. V-1 has the product of the weights of its edges as its weight. Nodes leave
one by one, the last first; the paths through the node that leaves become edges (star-mesh):

.. math:: s_k = \sum_{i<k} w_{ik}, \quad \log Z \mathrel{+}= \log s_k, \quad
          w_{ij} \mathrel{+}= w_{ik} w_{jk} / s_k .

Nothing is subtracted, so for positive weights the sum has full relative accuracy, where a
determinant (the matrix-tree theorem) loses all digits once weights differ by 1e16. Weights that
span more than e^600 are eliminated in logarithms. The same steps backwards give the probability of
each edge and exact draws. Source: Colbourn, Myrvold and Neufeld (1996), Two algorithms for
unranking arborescences; Meila and Jaakkola (2000), Tractable Bayesian learning of tree belief
networks, for the sum over trees.
"""

import numpy as np

from bayesgen.numerics.special import Array

_SPAN = 600.0  # in nats: so much less than the largest weight is a number with all its digits
_CELLS = 1 << 18  # numbers in one block of graphs


def log_sum_of_trees(log_w: Array) -> Array:
    """Log of the sum over all spanning trees of the product of their edges' weights.

    Parameters
    ----------
    log_w : (..., V, V), real or complex
        Logarithms of the weights, symmetric; the diagonal is not looked at, -inf is no edge. Of
        complex weights the imaginary part of the result is one of the arguments of the sum, and
        digits are lost where terms cancel.

    Returns
    -------
    (...)
        -inf where the graph is not connected.
    """
    log_w = np.asarray(log_w)
    lead, n_nodes = log_w.shape[:-2], log_w.shape[-1]
    flat = log_w.reshape(-1, n_nodes, n_nodes)
    out = np.zeros(len(flat), dtype=np.result_type(log_w.dtype, np.float64))
    if n_nodes > 1:
        step = max(1, _CELLS // n_nodes**2)
        for start in range(0, len(flat), step):
            rows = slice(start, start + step)
            out[rows] = _sum(np.moveaxis(flat[rows], 0, -1))  # graphs innermost
    return out.reshape(lead)


def _sum(log_w: Array) -> Array:
    """(n,) of weights (V, V, n)."""
    n_nodes, _, n = log_w.shape
    lower = log_w[np.tril_indices(n_nodes, -1)]
    finite = np.isfinite(lower)
    top = np.where(finite, lower.real, -np.inf).max(axis=0)
    least = np.where(finite, lower.real, np.inf).min(axis=0)
    wide = ~(top - least <= _SPAN)
    if np.isnan(lower).any() or (lower.real == np.inf).any():
        bad = np.isnan(lower).any(axis=0) | (lower.real == np.inf).any(axis=0)
        out = np.full(n, np.nan, dtype=log_w.dtype)
        if not bad.all():
            out[~bad] = _sum(log_w[..., ~bad])
        return out
    if wide.any():
        out = np.empty(n, dtype=log_w.dtype)
        out[wide] = _sum_in_logs(log_w[..., wide])
        if not wide.all():
            out[~wide] = _sum(log_w[..., ~wide])
        return out
    w = np.exp(log_w - top)
    total = (n_nodes - 1) * top.astype(w.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(n_nodes - 1, 0, -1):
            edges = w[k, :k]
            s = edges.sum(axis=0)
            total += np.log(s)
            share = edges / s
            for i in range(k - 1, 0, -1):
                w[i, :i] += edges[i] * share[:i]
    return np.where(np.isnan(total), -np.inf, total)


def _sum_in_logs(log_w: Array) -> Array:
    """(n,) of weights (V, V, n) that span more than numbers do."""
    w = np.array(log_w)
    total = np.zeros(w.shape[2], dtype=w.dtype)
    for k in range(len(w) - 1, 0, -1):
        edges = w[k, :k]
        s = _log_sum(edges)
        total += s
        share = edges - np.where(np.isfinite(s), s, 0.0)
        for i in range(k - 1, 0, -1):
            w[i, :i] = _log_add(w[i, :i], edges[i] + share[:i])
    return total


def _log_sum(a: Array) -> Array:
    """Log of the sum of exponentials over the first axis."""
    top = a.real.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        out: Array = np.log(np.exp(a - safe).sum(axis=0)) + safe
    return out


def _log_add(a: Array, b: Array) -> Array:
    if not np.iscomplexobj(a):
        out: Array = np.logaddexp(a, b)
        return out
    return _log_sum(np.stack([a, b]))


def _levels(log_w: Array) -> list[Array]:
    """Weights (k + 1, k + 1) among the nodes 0 .. k when k is about to leave, k = V-1 .. 1."""
    w = np.array(log_w, dtype=np.float64)
    np.fill_diagonal(w, -np.inf)
    top = w.max(initial=-np.inf)
    w -= top if np.isfinite(top) else 0.0  # no result depends on it, and small numbers round less
    levels = []
    for k in range(len(w) - 1, 0, -1):
        levels.append(w)
        edges = w[k, :k]
        s = _log_sum(edges)
        if s == -np.inf:
            raise ValueError("the graph is not connected: it has no spanning tree")
        through = edges[:, None] + edges - s
        np.fill_diagonal(through, -np.inf)
        w = np.logaddexp(w[:k, :k], through)
    return levels


def edge_probabilities(log_w: Array) -> Array:
    """(V, V) probability of each edge in a tree drawn in proportion to its weight.

    That is w dlog Z/dw: the steps of the elimination, backwards.

    Parameters
    ----------
    log_w : (V, V)
        As in `log_sum_of_trees`.
    """
    n_nodes = len(log_w)
    out = np.zeros((1, 1))
    reduced = np.full((1, 1), -np.inf)  # weights after the node has left
    for w in reversed(_levels(log_w)):
        k = len(w) - 1
        edges = w[k, :k]
        s = _log_sum(edges)
        with np.errstate(invalid="ignore"):
            original = np.exp(np.where(w[:k, :k] == -np.inf, -np.inf, w[:k, :k] - reduced))
        through = out * (1 - original)
        grown = np.zeros((k + 1, k + 1))
        grown[:k, :k] = out * original
        own = through.sum(axis=1) + (1 - through.sum() / 2) * np.exp(edges - s)
        grown[k, :k] = grown[:k, k] = np.clip(own, 0.0, 1.0)
        out, reduced = grown, w
    return out if n_nodes > 1 else np.zeros((n_nodes, n_nodes))


def draw_trees(rng: np.random.Generator, log_w: Array, n: int) -> Array:
    """(n, V) independent trees: the neighbour of each node towards node 0, -1 for node 0 itself.

    A tree of the graph without its last node k becomes one of the whole: each edge ij was there
    already with probability w_ij/w'_ij, else it stands for a path through k and is cut; every part
    that is left is joined to k by one edge, chosen in proportion to its weight.

    Parameters
    ----------
    log_w : (V, V)
        As in `log_sum_of_trees`.
    n : int
    """
    parent = np.full((n, 1), -1)
    reduced = np.full((1, 1), -np.inf)
    draw = np.arange(n)[:, None]
    for w in reversed(_levels(log_w)):
        k = len(w) - 1
        node = np.broadcast_to(np.arange(k), (n, k))
        with np.errstate(invalid="ignore"):
            original = np.exp(np.where(w[:k, :k] == -np.inf, -np.inf, w[:k, :k] - reduced))
        cut = (rng.random((n, k)) >= original[node, parent]) & (parent >= 0)
        top = np.where(cut | (parent < 0), node, parent)  # of the part that a node is in
        for _ in range(max(1, int(k).bit_length())):
            top = top[draw, top]
        score = w[k, :k] + rng.gumbel(size=(n, k))
        best = np.full((n, k), -np.inf)
        np.maximum.at(best, (np.broadcast_to(draw, (n, k)), top), score)
        joined = np.isfinite(score) & (score == best[draw, top])
        grown = np.concatenate([parent, np.zeros((n, 1), dtype=parent.dtype)], axis=1)
        of_root = joined & (top == 0)
        row, at = np.nonzero(of_root)
        grown[row, k] = at
        # the other parts hang from k: the path from where they are joined to their top turns round
        row, at = np.nonzero(joined & ~of_root)
        last = top[row, at]
        towards = np.full(len(row), k)
        while len(row):
            following = grown[row, at]
            grown[row, at] = towards
            more = at != last
            row, last, towards, at = row[more], last[more], at[more], following[more]
        parent, reduced = grown, w
    return parent
