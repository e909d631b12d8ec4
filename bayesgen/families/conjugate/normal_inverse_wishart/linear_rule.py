"""One covariance for all classes: the rule of a plug-in is linear in the features."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.errors import NotLinearError
from bayesgen.families.shared.mahalanobis import linear_scores, patterns
from bayesgen.numerics.kernels.blas import sharing
from bayesgen.numerics.rows import Matrix, has_nan
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def scores(f: "NormalInverseWishart", X: Matrix, theta: Theta) -> Array:
    """(..., N, C) log-likelihood less its quadratic part, which the classes have in common."""
    mu, sigma = f.flat(theta)
    centre = mu.sum(axis=(0, 1)) / max(1, mu[..., 0].size)

    def linear(rows: Array | slice, columns: Array) -> Array:
        step = (mu - centre)[..., columns]
        own = sigma[:, 0, columns[:, None], columns]
        with sharing(False):  # BLAS's own threads spin on, and would take a core from ours
            w = np.swapaxes(np.linalg.solve(own, np.swapaxes(step, 1, 2)), 1, 2)
        level = -0.5 * (w * step).sum(axis=-1)
        return linear_scores(X, rows, columns, centre[columns], w, level)

    out = linear(slice(None), f.live)
    if has_nan(out):  # a pass over X to look for missing cells would take as long
        for rows, columns in patterns(X, f.live):
            out[:, rows] = linear(rows, columns)
    return out.reshape(*np.shape(theta["mu"])[:-2], *out.shape[1:])


def weights(f: "NormalInverseWishart", theta: Theta | None) -> tuple[Array, Array]:
    """w = Sigma^-1 mu, and its level, as in `LinearRule`."""
    if theta is None:
        raise NotLinearError(
            "the posterior predictive is a multivariate Student t: even with one covariance "
            "its boundary is curved unless the classes have equal counts; a plug-in "
            "(method='posterior_mean', 'map' or 'mle') with a shared covariance is linear"
        )
    if not f.shared:
        raise NotLinearError(
            "each class has its own covariance, so the rule is quadratic; "
            "LinearDiscriminant is linear"
        )
    live, mu = f.live, np.asarray(theta["mu"])
    w = np.zeros(mu.shape)
    sigma = np.asarray(theta["Sigma"])[live[:, None], live]
    w[:, live] = np.linalg.solve(sigma, mu[:, live].T).T
    return w, -0.5 * (w * mu).sum(axis=-1)
