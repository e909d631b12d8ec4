"""The density of the means and covariances."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.families.contract import Theta
from bayesgen.families.shared.densities import density_by_draws, log_inverse_wishart_density
from bayesgen.numerics.special import Array

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def log_density(f: "NormalInverseWishart", theta: Theta) -> Array:
    """(...) inverse Wishart densities of Sigma, Normal ones of mu given Sigma, live columns."""
    live = f.live
    part = f if len(live) == f.dim else f.marginal(live)

    def of_draws(t: dict[str, Array]) -> Array:
        sigma = t["Sigma"][:, None] if f.shared else t["Sigma"]
        sigma = sigma[..., live[:, None], live]
        factor, inside = _cholesky(sigma)
        out = log_inverse_wishart_density(factor, part.nu, part.factor).sum(axis=-1)
        length = np.linalg.norm(factor, axis=-1)
        step = (t["mu"][..., live] - part.shift - part.mu) / length
        white = np.linalg.solve(factor / length[..., None], step[..., None])[..., 0]
        log_norm = len(live) * np.log(part.kappa / (2 * np.pi))
        log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        q = part.kappa * np.square(white).sum(axis=-1)
        out += 0.5 * (log_norm - log_det - q).sum(axis=-1)
        return np.where(inside, out, -np.inf)

    return density_by_draws(of_draws, theta, f.params)


def _cholesky(sigma: Array) -> tuple[Array, Array]:
    """Lower factors of matrices (S, G, D, D), and (S,) whether all G are positive definite.

    Where they are not the factor is the identity.
    """
    try:
        return np.linalg.cholesky(sigma), np.ones(len(sigma), dtype=bool)
    except np.linalg.LinAlgError:
        pass
    factor = np.broadcast_to(np.eye(sigma.shape[-1]), sigma.shape).copy()
    inside = np.zeros(len(sigma), dtype=bool)
    for s, matrices in enumerate(sigma):
        try:
            factor[s] = np.linalg.cholesky(matrices)
            inside[s] = True
        except np.linalg.LinAlgError:
            continue
    return factor, inside
