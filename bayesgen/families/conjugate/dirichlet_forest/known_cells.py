r"""Predictive of the known cells of a row: its missing cells summed out, along forests.

Given a forest T the sum over missing cells is exact, by messages from the leaves to the roots, at
a cost of D K^2. The average over all forests is a mean over draws of T, with little variance: A(T),
the part of the density whose edges join two known cells, is averaged over all forests in closed
form, and the draws tell only what the missing cells add,

.. math:: p(x_o) = \bar A \; \frac{E_T\, p(x_o \mid T)}{E_T\, A(T)}, \qquad
          \bar A = \prod_{u \in o} p(x_u) \frac{Z\{w_{uv} r_{uv}^{[u, v \in o]}\}}{Z\{w_{uv}\}}.

Numerator and denominator share the draws, and are equal where no missing cell joins two others.
Source: Pearl (1988), Probabilistic Reasoning in Intelligent Systems, chapter 4, for the messages.

S forests, N rows, D columns, K categories.
"""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.conjugate.dirichlet_forest.structures import concentrations
from bayesgen.families.shared import forest_cumulants
from bayesgen.numerics.special import Array, log_sum_exp

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_forest.family import DirichletForest

_CELLS = 1 << 22  # numbers of one block: 32 MiB
_DRAWS = 1024, 8192  # forests; the second of rows whose standard error is above `_ENOUGH`
_ENOUGH = 0.02  # standard error of a log density


def log_predictive(f: "DirichletForest", codes: Array) -> tuple[Array, Array]:
    """(N, C) log p(x_o | D) of codes (N, D), NaN where missing, and its standard error (N, C)."""
    out, error = np.empty((2, len(codes), len(f.strength)))
    for c in range(len(f.strength)):
        if f.is_forest:
            forest = f.draw_parents(np.random.default_rng(0), 1, c)
            out[:, c], error[:, c] = _given_forests(f, c, forest, codes)[0], 0.0
            continue
        rows = np.arange(len(codes))
        for n in _DRAWS:
            forests = f.draw_parents(np.random.default_rng([n, c]), n, c)
            step = max(1, _CELLS // max(n, (codes.shape[1] + 1) ** 2))
            for some in (rows[at : at + step] for at in range(0, len(rows), step)):
                out[some, c], error[some, c] = _averaged(f, c, forests, codes[some])
            rows = rows[error[rows, c] > _ENOUGH]
            if not len(rows):
                break
    return out, error


def _averaged(f: "DirichletForest", c: int, forests: Array, codes: Array) -> tuple[Array, Array]:
    """(N,) log predictive of class c, and its standard error."""
    known = ~np.isnan(codes)
    cells = np.where(known, codes, 0).astype(np.int64)
    _, edges = f.changes(c, cells, np.ones(1))
    i, j = f.neighbours[c]
    edges = np.where(known[:, i] & known[:, j], edges, 0.0)
    exact = forest_cumulants.log_ratio(f, c, edges)  # the columns' own terms are in both
    both = np.zeros((codes.shape[1] + 1, codes.shape[1] + 1, len(codes)))  # the root last
    both[i, j] = both[j, i] = edges.T
    control = np.zeros((len(forests), len(codes)))
    for u, parent in enumerate(forests.T):
        control += both[u, parent]
    whole = _given_forests(f, c, forests, codes)
    means = log_sum_exp(whole, axis=0), log_sum_exp(control, axis=0)
    shares = [np.exp(a - mean) for a, mean in zip((whole, control), means, strict=True)]
    spread = (shares[0] - shares[1]).std(axis=0, ddof=1) * np.sqrt(len(forests))
    return exact + means[0] - means[1], spread


def _given_forests(f: "DirichletForest", c: int, forests: Array, codes: Array) -> Array:
    """(S, N) log p(x_o | T, D) of class c."""
    k = f.pairs.shape[-1]
    out = np.empty((len(forests), len(codes)))
    step = max(1, _CELLS // (codes.shape[1] * k * max(k, len(codes))))
    for start in range(0, len(forests), step):
        own = slice(start, start + step)
        tables = concentrations(f, c, forests[own])
        size = tables.sum(axis=-1, keepdims=True)
        tables = np.divide(tables, size, out=tables, where=size > 0)
        out[own] = log_likelihood(codes, forests[own], tables)
    return out


def log_likelihood(codes: Array, parents: Array, tables: Array) -> Array:
    """(S, N) log p(x_o | theta) of codes (N, D), NaN where missing.

    Parameters
    ----------
    parents : (S, D)
    tables : (S, D, K, K) p(x_u | x_parent), of a root in the row of parent code 0
    """
    n_draws, n_columns, k, _ = tables.shape
    out = np.empty((n_draws, len(codes)))
    step = max(1, _CELLS // (n_draws * n_columns * k))
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        out[:, rows] = _upwards(codes[rows], parents, tables)
    return out


def _upwards(codes: Array, parents: Array, tables: Array) -> Array:
    """Messages of the columns to their parents, the deepest first."""
    draw = np.arange(len(parents))
    one = (codes[..., None] == np.arange(tables.shape[-1])) | np.isnan(codes)[..., None]
    belief = np.repeat(np.moveaxis(one, 0, -1)[None].astype(np.float64), len(parents), axis=0)
    depth, above = np.zeros(parents.shape, dtype=np.int64), parents
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, np.take_along_axis(parents, np.maximum(above, 0), 1), -1)
    out = np.zeros((len(parents), len(codes)))
    for u in np.argsort(-depth, axis=1, kind="stable").T:
        message = tables[draw, u] @ belief[draw, u]  # (S, K of the parent, N)
        up = parents[draw, u]
        root = up < 0
        with np.errstate(divide="ignore"):
            out[root] += np.log(message[root, 0])
            at = draw[~root], up[~root]
            joint = belief[at] * message[~root]
            top = joint.max(axis=1)
            out[~root] += np.log(top)
        belief[at] = joint / np.where(top > 0, top, 1.0)[:, None]
    return out
