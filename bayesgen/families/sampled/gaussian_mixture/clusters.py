"""Clusters of each class: where chains start, and numbers that mean the same in every draw.

Chains start at what k-means finds. A mixture's likelihood does not change when its clusters change
places, and a chain may do so at any time. Afterwards the clusters of each draw are renumbered such
that what they say of the rows, the probabilities that a row is of each of them, differs as little
as possible from the mean over draws, in Kullback-Leibler divergence.

Source: Stephens (2000), Dealing with label switching in mixture models, algorithm 2.
"""

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.optimize import linear_sum_assignment

from bayesgen.numerics.rows import Matrix
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.sampled.gaussian_mixture.family import GaussianMixture


def first_point(f: "GaussianMixture", X: Matrix, y: Array) -> tuple[Array, Array, dict[str, Array]]:
    """Means and scales of the clusters, in units of the columns, and the shares beside."""
    X = (np.asarray(X, dtype=np.float64) - f.location) / f.scale
    n_classes, n_components = np.shape(f.concentration)
    dim = X.shape[1]
    mu = np.zeros((n_classes, n_components, dim))
    sigma = np.ones(mu.shape)
    weight = np.array(f.concentration, dtype=np.float64)
    for c, k in enumerate(f.sizes):
        x = X[(y == c) & ~np.isnan(X).all(axis=1)]
        if not len(x):
            continue
        mean = np.nan_to_num(np.where(np.isnan(x), 0.0, x).sum(axis=0))
        mean = mean / np.maximum((~np.isnan(x)).sum(axis=0), 1)
        x = np.where(np.isnan(x), mean, x)
        centres, label = _clusters(x, int(k))
        mu[c, :k] = centres
        for cluster in range(k):
            own = x[label == cluster]
            weight[c, cluster] += len(own)
            if len(own) > 1:
                sigma[c, cluster] = np.sqrt(np.square(own - own.mean(axis=0)).mean(axis=0))
    sigma = np.maximum(sigma, 0.05)
    left = weight[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1]
    share = np.divide(weight[:, :-1], left, out=np.full(left.shape, 0.5), where=left > 0)
    shares = {"stick": np.clip(share, 0.05, 0.95)} if n_components > 1 else {}
    if f.covariance == "full" and dim > 1:
        pairs = dim * (dim - 1) // 2
        shares["correlation_partial"] = np.full((n_classes, n_components, pairs), 0.5)
    return mu, sigma, shares


def _clusters(x: Array, k: int) -> tuple[Array, Array]:
    """Centres (k, D) and labels (n,) by k-means, the best of some starts; few rows are repeated."""
    rng = np.random.default_rng(0)
    if len(np.unique(x, axis=0)) <= k:
        centres = np.resize(np.unique(x, axis=0), (k, x.shape[1]))
        centres = centres + 0.1 * rng.standard_normal(centres.shape)
        return centres, np.square(x[:, None] - centres).sum(axis=-1).argmin(axis=1)
    if k == 1:
        return x.mean(axis=0, keepdims=True), np.zeros(len(x), dtype=int)
    best, least = None, np.inf
    for _ in range(10):
        first = x[rng.choice(len(x), k, replace=False)]
        with warnings.catch_warnings():
            # which keeps its centre
            warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
            centres, label = kmeans2(x, first, minit="matrix", missing="warn")
        loss = np.square(x - centres[label]).sum()
        if loss < least:
            best, least = (centres, label), loss
    assert best is not None
    return best


_SWEEPS = 20  # at most


def renumbering(log_p: Array, log_density: Array) -> Array:
    """Which cluster of each draw comes first, second, ...

    Parameters
    ----------
    log_p : (S, N, K)
        Log probability that row n is of cluster k, by draw s.
    log_density : (S,)
        Of all rows; the draw with the largest is what the others are first compared with.

    Returns
    -------
    (S, K)
        Permutations; their order among each other is that of the draw with the largest density.
    """
    p = np.exp(log_p)
    order = np.tile(np.arange(p.shape[2]), (len(p), 1))
    mean = p[log_density.argmax()]
    for _ in range(_SWEEPS):
        loss = -np.einsum("snj,nk->skj", p, np.log(np.maximum(mean, 1e-12)))
        new = np.array([linear_sum_assignment(table)[1] for table in loss])
        mean = np.take_along_axis(p, new[:, None, :], axis=2).mean(axis=0)
        if np.array_equal(new, order):
            break
        order = new
    return order
