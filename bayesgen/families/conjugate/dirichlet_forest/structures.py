"""Forests and tables given them: draws, densities, estimates, new rows.

A forest is the parent of each column, -1 for a root; its tables are p(x_u | x_parent), with the
margin of a root in the row of parent code 0.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.errors import refuse_undefined
from bayesgen.families.shared.densities import log_dirichlet_density
from bayesgen.families.shared.forests import graph
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.spanning_trees import heaviest_tree
from bayesgen.numerics.special import Array, draw_dirichlet, draw_log_beta

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_forest.family import DirichletForest


def real_cells(levels: Array, parents: Array, k: int) -> Array:
    """(..., D, K, K) where the tables of forests (..., D) have cells; the rest is padding."""
    contexts = np.where(parents < 0, 1, levels[parents])
    codes = np.arange(k)
    rows: Array = codes < contexts[..., None]
    return rows[..., None] & (codes < levels[:, None])[:, None, :]


def concentrations(f: "DirichletForest", c: int, parents: Array) -> Array:
    """(n, D, K, K) Dirichlet concentrations of the tables of forests (n, D); 0 in the padding."""
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


def draw(f: "DirichletForest", rng: np.random.Generator, n: int) -> dict[str, Array]:
    """{name: (n, *dims)} forests in proportion to their evidence, and tables given them."""
    n_classes, n_features, _, k, _ = f.pairs.shape
    parents = np.empty((n, n_classes, n_features))
    tables = np.zeros((n, n_classes, n_features, k, k))
    for c in range(n_classes):
        own = f.draw_parents(rng, n, c)
        parents[:, c] = own
        for block in row_blocks(n, n_features * k * k):
            alpha = concentrations(f, c, own[block])
            rows = alpha[..., 0] > 0
            tables[block, c][rows] = draw_dirichlet(rng, alpha[rows], 1)[0]
    return {"parents": parents, "tables": tables}


def draw_log_density(f: "DirichletForest", rng: np.random.Generator, codes: Array, n: int) -> Array:
    """(n, N, C): forests, and of the tables given them the cells of each row alone, Beta each."""
    out = np.empty((n, len(codes), len(f.strength)))
    column = np.arange(codes.shape[1])
    gamma = rng.spawn(1)[0]  # so many shapes: quantiles of quasi-random numbers would take longer
    for c, strength in enumerate(f.strength):
        single = f.pairs[c][column, column, codes, codes] + strength / f.levels
        parents = f.draw_parents(gamma, n, c)
        for draws in row_blocks(n, codes.size):
            up = parents[draws, None]  # (n, 1, D)
            root, other = up < 0, np.where(up < 0, column, up)
            above = np.arange(len(codes))[:, None], other
            pair = f.pairs[c][other, column, codes[above], codes]
            cell = np.where(root, single, pair + strength / (f.levels[other] * f.levels))
            whole = np.where(root, f.totals[c], single[above])
            each = draw_log_beta(gamma, cell, whole - cell, 1)[0]
            out[draws, :, c] = each.sum(axis=-1)
    return out


def log_density(f: "DirichletForest", theta: dict[str, Array]) -> Array:
    """(n,) log probability of the forests plus the log density of the tables given them."""
    out = np.zeros(len(theta["parents"]))
    for c in range(len(f.strength)):
        parents = theta["parents"][:, c].astype(np.int64)
        out += f.log_probability(c, parents)
        alpha = concentrations(f, c, parents)
        rows = alpha[..., 0] > 0
        terms = np.zeros(rows.shape)
        terms[rows] = log_dirichlet_density(theta["tables"][:, c][rows], alpha[rows])
        out += terms.sum(axis=(1, 2))
    return out


def log_likelihood(codes: Array, theta: dict[str, Array], levels: Array) -> Array:
    """(..., N, C) log p(x | theta) of rows of codes."""
    parents = np.asarray(theta["parents"]).astype(np.int64)
    tables = np.asarray(theta["tables"], dtype=np.float64)
    *lead, n_classes, n_features = parents.shape
    parents, tables = parents.reshape(-1, n_features), tables.reshape(-1, *tables.shape[-3:])
    out = np.empty((len(parents), len(codes)))
    column = np.arange(n_features)
    for rows in row_blocks(len(codes), n_features):
        own = codes[rows]
        for s, (up, table) in enumerate(zip(parents, tables, strict=True)):
            above = np.where(up < 0, 0, own[:, up])
            with np.errstate(divide="ignore"):
                out[s, rows] = np.log(table[column, above, own]).sum(axis=1)
    return np.moveaxis(out.reshape(*lead, n_classes, len(codes))[...], -1, -2)


def simulate(rng: np.random.Generator, parents: Array, tables: Array, levels: Array) -> Array:
    """(n, D) codes from a forest (n, D) and tables (n, D, K, K) of each row's own."""
    n, n_features = parents.shape
    parents = parents.astype(np.int64)
    codes = np.zeros((n, n_features), dtype=np.int64)
    uniform = rng.random((n, n_features))
    waiting = np.ones((n, n_features), dtype=bool)
    row = np.arange(n)[:, None]
    while waiting.any():
        ready = waiting & ((parents < 0) | ~waiting[row, parents])
        i, u = np.nonzero(ready)
        if not len(i):
            raise ValueError("parents: a column depends on itself through others")
        up = parents[i, u]
        p = tables[i, u, np.where(up < 0, 0, codes[i, up])]
        upto = np.cumsum(p, axis=-1)  # the sum may miss 1 by rounding
        drawn = (uniform[i, u, None] * upto[:, -1:] >= upto[:, :-1]).sum(axis=-1)
        codes[i, u] = np.minimum(drawn, levels[u] - 1)
        waiting[i, u] = False
    return codes


def mle(pairs: Array, levels: Array, edges: Array) -> dict[str, Array]:
    """The allowed forest of the largest likelihood (Chow and Liu 1968), and frequencies in it.

    Parameters
    ----------
    pairs : (C, D, D, K, K) counts
    levels : (D,)
    edges : (C, D, D) or (C, 1, 1), 0 where no edge may be
    """
    n_classes, n_features, _, k, _ = pairs.shape
    column = np.arange(n_features)
    total = pairs[:, 0, 0].sum(axis=(1, 2))
    refuse_undefined("mle", total <= 0, "it has no row (0/0)")
    parents = np.empty((n_classes, n_features))
    tables = np.zeros((n_classes, n_features, k, k))
    for c, own in enumerate(pairs):
        margin = own[column, column][:, np.arange(k), np.arange(k)]
        expected = margin[:, None, :, None] * margin[None, :, None, :] / total[c]
        seen = own > 0
        gain = own * np.log(np.where(seen, own, 1.0) / np.where(seen, expected, 1.0))
        # every edge gains at least 0, and a root -1: there are no more roots than must be
        up = heaviest_tree(graph(gain.sum(axis=(2, 3)), np.exp(-1.0), edges[c]))[1:] - 1
        parents[c] = up
        root = up < 0
        counts = own[np.where(root, column, up), column]
        counts[root] = 0.0
        counts[root, 0] = margin[root]
        real = real_cells(levels, up, k)
        empty = counts.sum(axis=-1, keepdims=True) == 0  # a parent code never seen: any table
        counts = np.where(empty, real, counts)
        size = counts.sum(axis=-1, keepdims=True)
        tables[c] = np.divide(counts, size, out=np.zeros_like(counts), where=size > 0)
    return {"parents": parents, "tables": tables}
