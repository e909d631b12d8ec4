r"""The log-odds of two classes as a sum over correlated features.

With one covariance, :math:`w = \Sigma^{-1}(\mu_a - \mu_b)`, feature j has w_j (x_j - midpoint of
the means), and nothing is left over. Else feature j has
:math:`-\tfrac12 u_j (\Sigma_a^{-1} u)_j` with u = x - mu_a, less the same of b: every product of
two features is split between them equally (their Shapley values). What remains is half the
log-ratio of the determinants. Under one covariance the rule of a plug-in is linear in x.
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import digamma

from bayesgen.families.contract import Theta
from bayesgen.families.errors import NotLinearError
from bayesgen.families.shared.mahalanobis import linear_scores, pattern_blocks, patterns
from bayesgen.numerics.kernels.blas import sharing
from bayesgen.numerics.rows import Matrix, dense_block, has_nan
from bayesgen.numerics.special import Array, log_multigamma_difference

if TYPE_CHECKING:
    from bayesgen.families.conjugate.normal_inverse_wishart.family import NormalInverseWishart


def terms(
    f: "NormalInverseWishart", X: Matrix, a: int, b: int, theta: Theta | None = None
) -> tuple[Array, Array]:
    """Terms (..., N, D) and rest (..., N), as in `FeatureTerms`."""
    lead = () if theta is None else np.shape(theta["mu"])[:-2]
    out, rest = np.zeros((*lead, *X.shape)), np.zeros((*lead, X.shape[0]))
    for rows, columns in pattern_blocks(X, f.live):
        if not len(columns):
            continue
        part = f if len(columns) == f.dim else f.marginal(columns)
        x = dense_block(X, rows)[:, columns]
        if theta is None:
            terms, log_det = _expected(part, x - part.shift, a, b)
        else:
            mu, sigma = np.asarray(theta["mu"]), np.asarray(theta["Sigma"])
            mu, sigma = mu[..., columns], sigma[..., columns[:, None], columns]
            terms, log_det = _given(x, mu[..., a, :], mu[..., b, :], sigma, a, b, f.shared)
        at = np.arange(X.shape[0])[rows]
        out[..., at[:, None], columns] = terms
        rest[..., at] = log_det[..., None]
    return out, rest


def rest_cgf(f: "NormalInverseWishart", X: Matrix, t: Array) -> Array:
    """(K, N), as in `UnattributedTerm`: half the log determinant of each class's precision."""
    if f.shared:
        return np.zeros((len(t), X.shape[0]), dtype=t.dtype)
    out = np.zeros((len(t), X.shape[0]), dtype=t.dtype)
    for rows, columns in pattern_blocks(X, f.live):
        part, dim = f.marginal(columns), len(columns)
        for c in range(len(f.mu)):
            tc = t[:, 0, c]
            own = log_multigamma_difference(part.nu[c] / 2, tc / 2, dim)
            own = own + tc / 2 * (dim * np.log(2) - part.log_det[c])
            out[:, rows] += own[:, None]
    return out


def _expected(f: "NormalInverseWishart", x: Array, a: int, b: int) -> tuple[Array, Array]:
    """(n, D) and () expectations of the terms of complete rows x, minus shift."""
    if f.shared:
        inverse = cho_solve((f.factor[0], True), np.eye(f.dim))
        w = f.nu[0] * inverse @ (f.mu[a] - f.mu[b])
        level = -0.5 * (1 / f.kappa[a] - 1 / f.kappa[b])
        return w * (x - (f.mu[a] + f.mu[b]) / 2) + level, np.zeros(())
    terms, log_det = [], []
    for c in (a, b):
        u = x - f.mu[c]
        solved = cho_solve((f.factor[c], True), u.T).T
        terms.append(-0.5 * (f.nu[c] * u * solved + 1 / f.kappa[c]))
        halves = (f.nu[c] - np.arange(f.dim)) / 2
        log_det.append(0.5 * (digamma(halves).sum() - f.log_det[c]))
    return terms[0] - terms[1], np.asarray(log_det[0] - log_det[1])


def _given(
    x: Array, mu_a: Array, mu_b: Array, sigma: Array, a: int, b: int, shared: bool
) -> tuple[Array, Array]:
    """(..., n, D) and (...) terms of complete rows under theta."""
    if shared:
        w = np.linalg.solve(sigma, (mu_a - mu_b)[..., None])[..., 0]
        terms = w[..., None, :] * (x - (mu_a + mu_b)[..., None, :] / 2)
        return terms, np.zeros(mu_a.shape[:-1])
    terms, log_det = [], []
    for mu, own in ((mu_a, sigma[..., a, :, :]), (mu_b, sigma[..., b, :, :])):
        u = x - mu[..., None, :]
        solved = np.swapaxes(np.linalg.solve(own, np.swapaxes(u, -1, -2)), -1, -2)
        terms.append(-0.5 * u * solved)
        log_det.append(-0.5 * np.linalg.slogdet(own)[1])
    return terms[0] - terms[1], log_det[0] - log_det[1]


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
            "its boundary is curved unless the classes have equal counts and weights, and its "
            "log-odds are not linear even then; a plug-in "
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
