"""The tables of an n-gram model in PyMC, on documents or on the counts of their n-grams."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesgen.families.shared.ngrams import concatenate, distinct_ngrams
from bayesgen.families.shared.pymc_parts import container, dirichlet, prefixed, sum_cells
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.dirichlet_markov.family import DirichletMarkov


def declare(
    f: "DirichletMarkov", prefix: str, X: Array | None, y: Any, stats: Any
) -> dict[str, Any]:
    """As `Family.to_pymc`."""
    import pymc as pm
    import pytensor.tensor as pt

    new = stats
    if X is not None:
        new = f.stats(X, np.zeros(len(X), dtype=np.int64), len(f.alpha))
    whole = f
    if new is not None:
        whole = f.update(replace(new, counts=np.zeros_like(new.counts)))
    index = whole.index
    dims = prefixed(prefix, f.params["theta"])
    named = pm.modelcontext(None).coords.get(dims[1])
    if named is not None and len(named) != len(index.contexts):
        raise ValueError(
            f"the documents have contexts that are not among the {len(named)} that were seen "
            "in training: fit these documents first"
        )
    a = container(f"{prefix}prior_alpha", f.alpha, (dims[0], dims[2]))[:, None, :]
    if whole.counts.any():
        a = a + container(f"{prefix}prior_counts", index.dense(whole.counts), dims)
    theta = dirichlet(f"{prefix}theta", whole.dense(), a, dims)
    if stats is not None and X is None:
        # a table as large as theta: statistics over the same contexts have the same shape
        counts = replace(whole, counts=np.zeros_like(whole.counts)).update(stats).counts
        n = container(f"{prefix}stats_counts", index.dense(counts), dims)
        pm.Potential(f"{prefix}x", (n * pt.log(theta)).sum())
    elif X is not None:
        tokens, lengths = concatenate(X, f.n_tokens)
        grams, gram = distinct_ngrams(tokens, lengths, f.order, f.n_tokens)
        at = index.context_tree.find(grams[:, :-1])[gram]
        cell = f"{prefix}cell"
        row = pm.Data(f"{prefix}x_row", np.repeat(np.arange(len(X)), lengths), dims=cell)
        context = pm.Data(f"{prefix}x_context", at, dims=cell)
        p = theta[y[row], context]
        cells = pm.Data(f"{prefix}cells", tokens, dims=cell)
        pm.Categorical(f"{prefix}x", p=p, observed=cells, dims=cell)
    return {"theta": theta}


def log_likelihood(f: "DirichletMarkov", X: Array, theta: Any, prefix: str) -> Any:
    """(N, C), as in `UnlabelledRows`."""
    import pytensor.tensor as pt

    tokens, lengths = concatenate(X, f.n_tokens)
    grams, gram = distinct_ngrams(tokens, lengths, f.order, f.n_tokens)
    at = f.index.context_tree.find(grams[:, :-1])
    if len(at) and at.min() < 0:
        raise ValueError("the documents have contexts that this family does not have")
    cells = sparse.csr_matrix(
        (np.ones(len(gram)), (np.repeat(np.arange(len(X)), lengths), gram)),
        shape=(len(X), len(grams)),
    )
    table = pt.log(theta["theta"][:, at, grams[:, -1]]).T
    return sum_cells(f"{prefix}ngrams", cells, table)
