"""PyMC models of the tables of given forests, and of the mixture over all forests of few columns.

In the mixture every table that some forest has is a variable with its Dirichlet prior, whether the
forest at hand uses it or not, and the forest itself is summed out of the likelihood: all variables
are continuous, so that NUTS samples the average that the closed form integrates.
"""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.numerics.special import Array, log_sum_exp

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_forest.family import DirichletForest

MOST = 4  # columns of a mixture over all rooted forests: 125 of them


def rooted_forests(n_columns: int) -> Array:
    """(F, D) parents, -1 for a root, of every rooted forest: F = (D + 1)^(D - 1)."""
    found = []
    for parents in itertools.product(range(-1, n_columns), repeat=n_columns):
        up = np.append(np.array(parents), -1)  # the last place: above the roots
        at = np.arange(n_columns)
        for _ in range(n_columns):
            at = up[at]
        if (at == -1).all():
            found.append(parents)
    return np.array(found)


def log_prior(f: "DirichletForest", c: int, forests: Array) -> Array:
    """(F,) log prior probabilities among the forests given; -inf of one with a forbidden edge."""
    n_columns = forests.shape[1]
    allowed = np.broadcast_to(f.edges[c], (n_columns, n_columns)) > 0
    right = ((forests < 0) | allowed[np.arange(n_columns), forests]).all(axis=1)
    weight = np.log(f.root_weight[c]) * (forests < 0).sum(axis=1)
    weight = np.where(right, weight, -np.inf)
    out: Array = weight - log_sum_exp(weight)
    return out


def declare(f: "DirichletForest", pairs: Array | None, forests: list[Array]) -> None:
    """Declare tables and the potential ``x`` in the PyMC model on the stack.

    Variables ``tables_{c}_{u}`` (code_{u}) of a root and ``tables_{c}_{u}_{p}`` (code_{p},
    code_{u}) of column u given column p, of class number c; deterministic ``forest_{c}``
    (structure_{c}), the probabilities of the forests given the tables and the rows.

    Parameters
    ----------
    f : prior
    pairs : (C, D, D, K, K) counts, or None for the prior alone
    forests : for each class (F, D) parents
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    model.add_coords({f"code_{u}": np.arange(k) for u, k in enumerate(f.levels)})
    total: Any = 0.0
    for c, own in enumerate(forests):
        logs: dict[tuple[int, int], Any] = {}
        for u, p in sorted({(u, int(p)) for row in own for u, p in enumerate(row)}):
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
        terms = pt.stack([sum(logs[u, int(p)] for u, p in enumerate(row)) for row in own])
        terms = terms + log_prior(f, c, own)
        whole = pt.logsumexp(terms)
        model.add_coord(f"structure_{c}", np.arange(len(own)))
        pm.Deterministic(f"forest_{c}", pt.exp(terms - whole), dims=f"structure_{c}")
        total = total + whole
    if pairs is not None:
        pm.Potential("x", total)
