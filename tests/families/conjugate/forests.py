"""Every rooted forest of a few columns, one by one, and tables: what averages are held to."""

import itertools

import numpy as np
from scipy.special import gammaln

A = 3.7  # pseudo-counts of a table


def rows(n, levels, seed=0):
    """Codes (n, D), of which the second depends on the first."""
    rng = np.random.default_rng(seed)
    X = rng.integers(np.array(levels), size=(n, len(levels)))
    X[:, 1] = np.where(rng.random(n) < 0.7, X[:, 0] % levels[1], X[:, 1])
    return X


def log_table(X, columns, levels):
    """Log evidence of the joint table of some columns, Dirichlet(A/cells)."""
    counts = np.zeros([levels[j] for j in columns])
    for row in X:
        counts[tuple(row[list(columns)])] += 1
    a = A / counts.size
    return gammaln(A) - gammaln(A + len(X)) + (gammaln(a + counts) - gammaln(a)).sum()


def rooted_forests(n):
    """Parents (-1: root) of every rooted forest of n columns: (n + 1)^(n - 1) of them."""
    for parents in itertools.product(range(-1, n), repeat=n):
        if all(_leads_up(parents, u) for u in range(n)):
            yield parents


def _leads_up(parents, u):
    for _ in range(len(parents)):
        u = parents[u]
        if u == -1:
            return True
    return False


def edges_and_roots(forests, shares):
    """(D, D) probabilities of edges and (D,) of roots, from those of the forests."""
    d = len(forests[0])
    edges, roots = np.zeros((d, d)), np.zeros(d)
    for forest, share in zip(forests, shares, strict=True):
        for u, parent in enumerate(forest):
            if parent < 0:
                roots[u] += share
            else:
                edges[u, parent] += share
                edges[parent, u] += share
    return edges, roots


def counts_of(drawn, forests):
    """(F,) how often each forest is among the rows of parents that were drawn."""
    frequencies = np.zeros(len(forests))
    for parents in drawn.astype(int):
        frequencies[forests.index(tuple(parents))] += 1
    return frequencies
