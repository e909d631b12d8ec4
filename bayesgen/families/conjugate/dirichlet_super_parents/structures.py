"""Tables given super-parents: draws, densities, likelihood, new rows.

The super-parents of a set stand in the order of their columns. The k-th has a table given those
before it, any other column given all of them; the codes of several are one code, the last of them
innermost.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

from bayesgen.families.conjugate.dirichlet_super_parents.averages import with_children
from bayesgen.families.contract import Theta
from bayesgen.families.errors import refuse_undefined
from bayesgen.families.shared import forest_terms
from bayesgen.families.shared.category_codes import draw_codes
from bayesgen.families.shared.densities import log_dirichlet_density
from bayesgen.numerics.rows import row_blocks
from bayesgen.numerics.special import (
    Array,
    draw_dirichlet,
    draw_log_beta,
    log_gamma_difference,
)

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_super_parents.family import DirichletSuperParents
    from bayesgen.families.conjugate.dirichlet_super_parents.statistics import (
        SuperParentStats,
        Tables,
    )


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


def draw(f: "DirichletSuperParents", rng: np.random.Generator, n: int) -> dict[str, Array]:
    """{name: (n, *dims)}."""
    n_classes, levels = len(f.strength), np.asarray(f.levels)
    sets = np.empty((n, n_classes))
    tables = np.zeros((n, n_classes, len(levels), _contexts(f), int(levels.max())))
    for c in range(n_classes):
        weights = np.exp(f.log_weights[c])
        sets[:, c] = rng.choice(len(weights), size=n, p=weights / weights.sum())
        for s, draws in _groups(sets[:, c]):
            alpha = concentrations(f, c, s)
            at = np.nonzero(alpha[..., 0] > 0)
            rows = draw_dirichlet(rng, alpha[at], len(draws))
            tables[draws[:, None], c, at[0], at[1]] = rows
    return {"super_parents": sets, "tables": tables}


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
    """(N, D) posterior means of the terms of class c (`forest_terms`), of one super-parent."""
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

    return forest_terms.expected(changes, (i, j), weights[i] + weights[j])


def terms_given(f: "DirichletSuperParents", codes: Array, c: int, theta: Theta) -> Array:
    """(..., N, D) the same for draws (..., *dims) of theta."""
    parent = f.layout.parents.columns[np.asarray(theta["super_parents"])[..., c].astype(int), 0]
    column = np.arange(codes.shape[1])
    parents = np.where(column == parent[..., None], -1, parent[..., None])
    tables = np.asarray(theta["tables"])[..., c, :, :, :]
    return forest_terms.of_tables(codes, parents, tables)


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


def mle(f: "DirichletSuperParents", stats: "SuperParentStats") -> dict[str, Array]:
    """The super-parents of the largest likelihood in each class, and frequencies given them."""
    rows = stats.parents[:, : f.layout.parents.size(0)].sum(axis=1)
    refuse_undefined("mle", rows <= 0, "it has no row (0/0)")
    one, two = (
        own.sums(xlogy(counts, counts)) - xlogy(rows, rows)[:, None]
        for own, counts in ((f.layout.parents, stats.parents), (f.layout.wide, stats.cells))
    )
    sets = with_children(f.layout, one, two).argmax(axis=1)
    nothing = replace(stats, parents=0 * stats.parents, cells=0 * stats.cells)
    alone = replace(f, strength=np.zeros(len(rows)), parents=stats.parents, cells=stats.cells)
    flat = replace(f, strength=np.ones(len(rows)), parents=nothing.parents, cells=nothing.cells)
    counts, real = (
        np.array([concentrations(own, c, s) for c, s in enumerate(sets)]) for own in (alone, flat)
    )
    empty = counts.sum(axis=-1, keepdims=True) == 0  # codes never seen: any table
    counts = np.where(empty, real, counts)
    total = counts.sum(axis=-1, keepdims=True)
    tables = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return {"super_parents": sets.astype(np.float64), "tables": tables}


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
